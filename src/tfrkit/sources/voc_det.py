"""The source `voc-det`: images with XML annotations of Pascal VOC, in VOC's folders or any others."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

from tfrkit._limits import LIMITS
from tfrkit.errors import Hint, SourceError, Step
from tfrkit.features.labels import SORTED, LabelMap, make_class_map
from tfrkit.images.encode import ImageOptions
from tfrkit.sources.base import Problem, Scan, count_bad_inputs
from tfrkit.sources.boxes import BoxFitter, BoxPolicy
from tfrkit.sources.class_files import find_class_file, load_classes
from tfrkit.sources.description import DescribedSource
from tfrkit.sources.detection import DetectionGatherer, FoundObject, describe_classes
from tfrkit.sources.image_features import to_problem
from tfrkit.sources.voc_layout import FilesById, find_folder, note_unused_lists, read_sets
from tfrkit.sources.voc_seg import VOC_CLASSES
from tfrkit.sources.voc_xml import VocAnnotation, parse_voc_xml
from tfrkit.sources.walk import IMAGE_SUFFIXES, find_files, read_file, require_folder
from tfrkit.storage.inputs import read_ahead

FIELDS: Mapping[str, str] = {"difficult": "int64", "truncated": "int64", "view": "bytes"}

_VOC = "voc"
_XML_FOLDERS = ("Annotations", "annotations")
_IMAGE_FOLDERS = ("JPEGImages", "images")
# Top-level folders that are splits, and the names of these splits.
FOLDER_SPLITS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}


@dataclass(frozen=True)
class VocDet(DescribedSource):
    """A dataset of images with annotations in Pascal VOC XML.

    Attributes:
        root: The folder: VOCdevkit/VOC2007, or any folder with .xml files and images below it.
        sets: Lists of ImageSets/Main to use; each becomes a split. By default train, val and test, if they exist. If
            there are no lists, all annotations are used, split only if all are in folders named train, val or test.
        classes: Class names, a file that lists them, a label map .pbtxt, or "voc" for VOC's 20; any other class stops
            the build. By default a file of names in the folder; else VOC's 20, if no other occurs and every annotation
            is VOC's (<folder>VOC2007</folder>, or <database>The VOC2007 Database</database>, of any year); else the
            names that occur, sorted.
        label_offset: The id of the first class; by default 1, because 0 is the background, unless a file defines ids.
        boxes: What to do with boxes that are not inside their image: "fail", "clip" or "drop".
        images: How images are stored.
    """

    root: str
    _: KW_ONLY
    sets: Sequence[str] = ()
    classes: str | Sequence[str] | None = None
    label_offset: int | None = None
    boxes: BoxPolicy = "fail"
    images: ImageOptions = field(default_factory=ImageOptions)

    kind = "voc-det"

    def __post_init__(self) -> None:
        super().__post_init__()
        BoxFitter(self.boxes)

    def scan(self, scratch: str) -> Scan:
        """Read every annotation, and the header of every image."""
        require_folder(self.root, "images with annotations")
        files = _Files(self.root)
        listed = read_sets(self.root, "Main", self.sets)
        if listed is None:
            pairs, names, notes = files.pair_all()
            notes += note_unused_lists(self.root, "Main")
            problems = []
        else:
            pairs = files.pair_listed(listed.ids)
            names, notes, problems = listed.split_names, listed.notes, listed.problems
        gatherer = DetectionGatherer(self.root, BoxFitter(self.boxes), exif=self.images.exif, split_names=names)
        gatherer.problems += [*problems, *files.problems]
        ahead = read_ahead(pairs, self._files_of, head_nbytes=LIMITS.image_head_nbytes)
        are_voc = [self._gather(gatherer, pair) for pair in ahead]
        labels = self._decide_classes(gatherer.counts, is_voc=bool(are_voc) and all(are_voc))
        return gatherer.make_scan(
            f"annotations (.xml) in {os.path.join(self.root, files.xml_folder)} with their images",
            labels,
            self.images,
            fields=FIELDS,
            notes=notes,
            about_labels=_describe_classes(labels),
            ignored=files.ignored,
            found=len(pairs) + count_bad_inputs((*problems, *files.problems)),
        )

    def _files_of(self, pair: _Pair) -> list[str]:
        files = [pair.image] if pair.annotation is not None else [pair.xml, pair.image]
        return [os.path.join(self.root, file) for file in files]

    def _gather(self, gatherer: DetectionGatherer, pair: _Pair) -> bool:
        """Add one image; return whether its annotation is VOC's own, or True if it cannot be read."""
        try:
            annotation = pair.annotation or parse_voc_xml(read_file(self.root, pair.xml), pair.xml)
        except (SourceError, OSError) as error:
            gatherer.problems.append(to_problem(pair.xml, error, input=pair.key))
            return True
        gatherer.problems += [
            Problem(f"{pair.xml}, line {line}", reason, input=pair.key) for line, reason in annotation.problems
        ]
        if annotation.problems:
            return annotation.is_voc
        objects = [
            FoundObject(
                found.name,
                found.corners,
                f"{pair.xml}, line {found.line}",
                {"difficult": found.difficult, "truncated": found.truncated, "view": found.pose},
            )
            for found in annotation.objects
        ]
        gatherer.add(
            pair.key,
            pair.image,
            objects,
            source_id=os.path.basename(pair.image),
            declared=(annotation.width, annotation.height),
            declared_at=pair.xml,
            split=pair.split,
        )
        return annotation.is_voc

    def _decide_classes(self, counts: Mapping[str, int], *, is_voc: bool) -> LabelMap:
        classes = self.classes or find_class_file(self.root)
        offset = 1 if self.label_offset is None else self.label_offset
        is_voc = is_voc and counts.keys() <= set(VOC_CLASSES[1:])
        if classes == _VOC or (classes is None and is_voc):
            return LabelMap(VOC_CLASSES[1:], origin="the 20 of Pascal VOC", offset=offset)
        if classes is not None:
            return load_classes(classes, label_offset=self.label_offset)
        return make_class_map(counts, offset=offset)


def _describe_classes(labels: LabelMap) -> list[str]:
    """Describe the classes; if all of them are VOC's, add how to use the ids of VOC."""
    sentence, *more = describe_classes(labels)
    if labels.origin == SORTED and labels.names and set(labels.names) <= set(VOC_CLASSES):
        sentence = Hint(Step(f"{sentence}; with the numbers of Pascal VOC: {{classes}}", classes=_VOC))
    return [sentence, *more]


class _Pair(NamedTuple):
    """An annotation and its image, as paths below the root."""

    key: str
    xml: str
    image: str
    split: int = -1
    annotation: VocAnnotation | None = None


class _NoImageError(SourceError):
    """The image of an annotation does not exist."""


class _Files:
    """Finds the annotations and images of a folder, and pairs them."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.xml_folder = find_folder(root, _XML_FOLDERS) or ""
        self._image_folder = find_folder(root, _IMAGE_FOLDERS) or ""
        found = find_files(os.path.join(root, self.xml_folder), {".xml"})
        images = find_files(os.path.join(root, self._image_folder), IMAGE_SUFFIXES)
        self._annotations = found.files
        self._images = images.files
        self.ignored = Counter({k: n for k, n in images.ignored.items() if k != ".xml"})
        self.problems: list[Problem] = []

    def pair_listed(self, ids: Mapping[str, tuple[int, str]]) -> list[_Pair]:
        """Pair files by the ids in lists: annotation and image are named by the id."""
        annotations, images = FilesById(self._annotations), FilesById(self._images)
        pairs = []
        for identifier, (split, where) in ids.items():
            found = []
            for files, what, folder in (
                (annotations, "annotation", self.xml_folder),
                (images, "image", self._image_folder),
            ):
                try:
                    found.append(_join(folder, files.find(identifier, f"{what} in {folder or 'the folder'}").key))
                except SourceError as error:
                    kind = f"ids of the lists have no {what}, or several"
                    self.problems.append(Problem(where, error.what, input=identifier, kind=kind))
            if len(found) == 2:
                pairs.append(_Pair(identifier, found[0], found[1], split))
        return pairs

    def pair_all(self) -> tuple[list[_Pair], tuple[str, ...], list[str]]:
        """Pair each annotation with the image it names, or else with that of the same name; also split names, notes."""
        by_name: dict[str, list[str]] = {}
        by_stem: dict[str, list[str]] = {}
        for file in self._images:
            name = os.path.basename(file.key)
            by_name.setdefault(name, []).append(file.key)
            by_stem.setdefault(os.path.splitext(name)[0], []).append(file.key)
        pairs = []
        for file in read_ahead(self._annotations, lambda file: [_join(self._root, _join(self.xml_folder, file.key))]):
            xml = _join(self.xml_folder, file.key)
            try:
                annotation = parse_voc_xml(read_file(self._root, xml), xml)
                image = self._choose(file.key, annotation.filename, by_name, by_stem)
            except _NoImageError as error:
                kind = "annotations name an image that is not there"
                self.problems.append(Problem(xml, error.what, kind=kind))
                continue
            except (SourceError, OSError) as error:
                self.problems.append(to_problem(xml, error, input=xml))
                continue
            pairs.append(_Pair(os.path.splitext(image)[0], xml, _join(self._image_folder, image), -1, annotation))
        pairs = self._check_uses(pairs)
        names, notes = split_by_folder([pair.key for pair in pairs])
        if names:
            pairs = [pair._replace(split=names.index(FOLDER_SPLITS[_top(pair.key)])) for pair in pairs]
        return pairs, names, notes

    def _choose(self, xml: str, named: str, by_name: dict[str, list[str]], by_stem: dict[str, list[str]]) -> str:
        name = os.path.basename(named.replace("\\", "/"))
        stem = os.path.splitext(os.path.basename(xml))[0]
        found, alike = by_name.get(name, []), by_stem.get(stem, [])
        if found and alike and not set(found) & set(alike):
            raise SourceError(f"annotation names {name!r}, but {alike[0]!r} has the same name; which one is meant")
        found = found or alike
        if not found:
            raise _NoImageError(f"no image {name!r}, which the annotation names, and none called {stem!r}")
        folder = os.path.dirname(xml)
        near = [key for key in found if os.path.dirname(key) == folder]
        near = near or [key for key in found if os.path.basename(os.path.dirname(key)) == os.path.basename(folder)]
        chosen = found if len(found) == 1 else near
        if len(chosen) != 1:
            raise SourceError(f"one image {name or stem!r} expected, got {', '.join(found[:3])}")
        return chosen[0]

    def _check_uses(self, pairs: Sequence[_Pair]) -> list[_Pair]:
        """Return the pairs whose image has one annotation; add problems for images with several or none."""
        uses = Counter(pair.image for pair in pairs)
        bad = {os.path.splitext(os.path.basename(problem.key.partition(", line ")[0]))[0] for problem in self.problems}
        for pair in pairs:
            if uses[pair.image] > 1:
                reason = f"image {pair.image!r} expected one annotation, got several"
                self.problems.append(
                    Problem(pair.xml, reason, input=pair.image, kind="images have several annotations")
                )
        for file in self._images:
            image = _join(self._image_folder, file.key)
            # An unreadable annotation is already a problem, so its image is not reported again.
            if image not in uses and os.path.splitext(os.path.basename(image))[0] not in bad:
                self.problems.append(
                    Problem(image, "image has no annotation (.xml)", kind="images have no annotation (.xml)")
                )
        return [pair for pair in pairs if uses[pair.image] == 1]


def split_by_folder(files: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return split names and a note if every file is in a folder named train, val or test; else nothing."""
    tops = {_top(file) for file in files}
    if not tops or not tops <= FOLDER_SPLITS.keys():
        return (), []
    names = tuple(dict.fromkeys(name for top, name in FOLDER_SPLITS.items() if top in tops))
    return names, [f"splits: {', '.join(names)}, by the folders"]


def _top(file: str) -> str:
    return file.partition("/")[0] if "/" in file else ""


def _join(folder: str, key: str) -> str:
    return f"{folder}/{key}" if folder else key
