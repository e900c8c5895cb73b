"""The source `yolo`: each image has a text file with one object per line; data.yaml or classes.txt has class names.

data.yaml                                  names, and the paths of train, val and test
images/train/x.jpg  labels/train/x.txt     or train/images/x.jpg  train/labels/x.txt, or both in one folder
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, NamedTuple

from tfrkit._limits import LIMITS
from tfrkit.errors import Hint, SourceError, Step
from tfrkit.features.labels import LABEL_MAP_SUFFIXES, LabelMap, make_numbered_map, read_class_map
from tfrkit.images.encode import ImageOptions
from tfrkit.sources.base import Problem, Scan
from tfrkit.sources.boxes import BoxFitter, BoxPolicy
from tfrkit.sources.class_files import read_small_text
from tfrkit.sources.description import DescribedSource
from tfrkit.sources.detection import DetectionGatherer, FoundObject, note_zero
from tfrkit.sources.voc_det import FOLDER_SPLITS
from tfrkit.sources.walk import IMAGE_SUFFIXES, find_files
from tfrkit.sources.yolo_files import DataYaml, YoloObject, parse_data_yaml, parse_names, parse_yolo_labels
from tfrkit.storage.inputs import open_input, read_ahead
from tfrkit.storage.lookup import is_file, is_folder

MissingLabels = Literal["empty", "fail"]

_YAML_NAMES = ("data.yaml", "data.yml", "dataset.yaml")
_NAME_FILES = ("classes.txt", "obj.names", "labels/classes.txt", "labels.txt", "train/classes.txt")
_OTHER_TEXTS = frozenset({"classes.txt", "labels.txt", "train.txt", "val.txt", "test.txt"})


class _Image(NamedTuple):
    """An image and its expected label file, as paths below the root."""

    file: str
    labels: str
    split: int


@dataclass(frozen=True)
class Yolo(DescribedSource):
    """A dataset in YOLO format.

    Attributes:
        path: The folder, or its data.yaml.
        sets: The sets to use, by their names in data.yaml or of their folders. By default those of train, val and test
            that exist; if none exists, all folders that data.yaml names.
        classes: Class names in the order of YOLO's class numbers, a file that lists them, or a label map .pbtxt of the
            labels to write; by default from data.yaml or classes.txt.
        label_offset: The label of YOLO's class 0: 1, as detection readers expect; 0 keeps YOLO's numbers.
        missing_labels: An image without a label file has no objects ("empty"), or is a problem ("fail").
        boxes: What to do with boxes that are not inside their image: "fail", "clip" or "drop".
        images: How images are stored.
    """

    path: str
    _: KW_ONLY
    sets: Sequence[str] = ()
    classes: str | Sequence[str] | None = None
    label_offset: int = 1
    missing_labels: MissingLabels = "empty"
    boxes: BoxPolicy = "fail"
    images: ImageOptions = field(default_factory=ImageOptions)

    kind = "yolo"

    def __post_init__(self) -> None:
        super().__post_init__()
        BoxFitter(self.boxes)
        if self.missing_labels not in ("empty", "fail"):
            raise ValueError(f"missing_labels expected 'empty' or 'fail', got {self.missing_labels!r:.64}")

    def scan(self, scratch: str) -> Scan:
        """Read every label file, and the header of every image."""
        layout = _YoloLayout(self.path, self.sets)
        names = self._load_names(layout)
        fitter = BoxFitter(self.boxes)
        gatherer = DetectionGatherer(layout.root, fitter, exif=self.images.exif, split_names=layout.split_names)
        gatherer.problems += layout.problems
        tally = _LabelTally()

        def files_of(image: _Image) -> list[str]:
            return [os.path.join(layout.root, file) for file in (image.labels, image.file)]

        for image in read_ahead(layout.images, files_of, head_nbytes=LIMITS.image_head_nbytes):
            self._gather(gatherer, layout, image, names, tally)
        if layout.images and tally.num_missing == len(layout.images):
            raise SourceError(
                f"no label file for any of {len(layout.images)} images, expected {layout.images[0].labels!r} "
                f"for {layout.images[0].file!r}",
                shard=layout.root,
            )
        labels = self._number(names, gatherer.counts, tally)
        return gatherer.make_scan(
            f"images with label files (.txt) in {self.path}",
            labels,
            self.images,
            fields={},
            notes=[*layout.notes, *tally.notes()],
            about_labels=[f"classes: {labels.origin}", *note_zero(labels)],
            found=len(layout.images),
        )

    def _gather(
        self,
        gatherer: DetectionGatherer,
        layout: _YoloLayout,
        image: _Image,
        names: Mapping[int, str],
        tally: _LabelTally,
    ) -> None:
        path = os.path.join(layout.root, image.labels)
        try:
            found, problems = parse_yolo_labels(read_small_text(path), has_keypoints=layout.has_keypoints)
        except SourceError as error:
            if os.path.lexists(path) or is_file(path) or self.missing_labels == "fail":
                gatherer.problems.append(Problem(image.labels, error.what, input=image.file))
                return
            tally.num_missing += 1
            found, problems = [], []
        tally.add(found)
        gatherer.problems += [
            Problem(f"{image.labels}, line {line}", reason, input=image.file) for line, reason in problems
        ]
        unknown = [one for one in found if names and one.label not in names]
        for one in unknown:
            reason = f"class {one.label} is not one of the {len(names)} classes, 0 to {max(names)}"
            where = f"{image.labels}, line {one.line}"
            gatherer.problems.append(Problem(where, reason, blocking=True, input=image.file))
        if problems or unknown:
            return
        objects = [
            FoundObject(names.get(one.label, str(one.label)), one.corners, f"{image.labels}, line {one.line}")
            for one in found
        ]
        name = os.path.basename(image.file)
        gatherer.add(image.file, image.file, objects, source_id=name, split=image.split, are_parts=True)

    def _load_names(self, layout: _YoloLayout) -> dict[int, str]:
        """Return class names by YOLO's class number; empty if there are none."""
        if self.classes is not None and not isinstance(self.classes, str):
            return dict(enumerate(self.classes))
        if self.classes is not None and self.classes.endswith(LABEL_MAP_SUFFIXES):
            return self._subtract_offset(read_class_map(self.classes))
        if self.classes is not None:
            return dict(enumerate(parse_names(read_small_text(self.classes))))
        return layout.names

    def _subtract_offset(self, labels: LabelMap) -> dict[int, str]:
        """Return the names of a label map by YOLO's class number."""
        if labels.offset < self.label_offset:
            raise SourceError(
                f"label map expected ids from {self.label_offset} up, got {labels.offset}",
                shard=str(self.classes),
                hint=Hint(Step("YOLO's class 0 has the first one: {label_offset}", label_offset=labels.offset)),
            )
        ids = {labels.offset + position: name for position, name in enumerate(labels.names)}
        return {number - self.label_offset: name for number, name in ids.items() if number not in labels.gaps}

    def _number(self, names: Mapping[int, str], counts: Mapping[str, int], tally: _LabelTally) -> LabelMap:
        if not names:
            numbers = range(max(tally.labels, default=-1) + 1)
            origin = f"{len(numbers)} numbers without names, as there is no data.yaml or classes.txt"
            return LabelMap(tuple(map(str, numbers)), origin=origin, offset=self.label_offset)
        plus = f", labels are their numbers plus {self.label_offset}" if self.label_offset else ""
        return make_numbered_map(names, start=0, offset=self.label_offset, origin=f"{len(names)} names{plus}")


class _LabelTally:
    """Counts over all label files of a dataset."""

    def __init__(self) -> None:
        self.num_missing = 0
        self.labels: set[int] = set()
        self._num_outlines = 0

    def add(self, objects: Iterable[YoloObject]) -> None:
        for one in objects:
            self.labels.add(one.label)
            self._num_outlines += one.is_outline

    def notes(self) -> list[str]:
        notes = []
        if self.num_missing:
            notes.append(f"images without a label file, assumed to have no objects: {self.num_missing}")
        if self._num_outlines:
            notes.append(f"outlines, stored as their bounding boxes: {self._num_outlines}")
        return notes


class _YoloLayout:
    """Finds the images, label files and class names of a dataset."""

    def __init__(self, path: str, sets: Sequence[str]) -> None:
        self.notes: list[str] = []
        self.problems: list[Problem] = []
        self.images: list[_Image] = []
        self.names: dict[int, str] = {}
        self.has_keypoints = False
        self.root, yaml = _find_root(path)
        described = None
        if yaml is not None:
            described = parse_data_yaml(read_small_text(yaml), yaml)
            self.names, self.has_keypoints = described.names, described.has_keypoints
        if not self.names:
            self._read_names()
        places = self._find_places(described, sets)
        if sets:
            missing = [name for name in sets if name not in places]
            if missing:
                there = ", ".join(filter(None, places)) or "images without sets"
                raise SourceError(f"no set {missing[0]!r}, expected one of {there}", shard=self.root)
            places = {name: places[name] for name in sets}
        self._require_different(places)
        self.split_names = tuple(name for name in places if name)
        for name, folders in places.items():
            self._list_images(folders, self.split_names.index(name) if name else -1)
        self._find_orphans()

    def _require_different(self, places: Mapping[str, Sequence[str]]) -> None:
        names: dict[str, str] = {}
        for name, folders in places.items():
            for folder in folders:
                other = names.setdefault(folder, name)
                if other != name:
                    raise SourceError(
                        f"sets expected different images, got {folder!r} for {other} and {name}",
                        shard=self.root,
                        hint=Hint(Step("use one of them: {sets}", sets=[other])),
                    )

    def _read_names(self) -> None:
        for name in _NAME_FILES:
            path = os.path.join(self.root, name)
            if is_file(path):
                self.names = dict(enumerate(parse_names(read_small_text(path))))
                self.notes.append(f"class names from {name}")
                return

    def _find_places(self, described: DataYaml | None, sets: Sequence[str]) -> dict[str, list[str]]:
        """Return split → image folders or list files below the root; the split is "" if there are no splits."""
        if described is not None:
            named = dict(described.splits)
            # An unknown key may be anything, such as a licence; it is a set only if it names a folder or a list.
            for name, places in described.others.items():
                if name in sets or (not described.splits and self._are_places(described.path, places)):
                    named[name] = places
            if named:
                return {
                    name: [_resolve(self.root, described.path, place) for place in places]
                    for name, places in named.items()
                }
        for pattern in ("images/{}", "{}/images", "{}"):
            found: dict[str, list[str]] = {}
            for folder, split in (FOLDER_SPLITS | {name: name for name in sets if name not in FOLDER_SPLITS}).items():
                place = pattern.format(folder)
                if is_folder(os.path.join(self.root, place)):
                    found.setdefault(split, []).append(place)
            if found:
                return found
        return {"": ["images" if is_folder(os.path.join(self.root, "images")) else ""]}

    def _are_places(self, prefix: str, places: Sequence[str]) -> bool:
        try:
            found = [os.path.join(self.root, _resolve(self.root, prefix, place)) for place in places]
        except SourceError:
            return False
        return all(is_folder(path) or path.endswith(".txt") for path in found)

    def _list_images(self, places: Sequence[str], split: int) -> None:
        for place in places:
            path = os.path.join(self.root, place)
            if is_file(path):
                folder = os.path.dirname(place)
                lines = (line.strip() for line in read_small_text(path).splitlines())
                files = [os.path.normpath(os.path.join(folder, line)) for line in lines if line]
            else:
                files = [_join(place, file.key) for file in find_files(path, IMAGE_SUFFIXES).files]
            self.images += [_Image(file, _label_path(file), split) for file in files]

    def _find_orphans(self) -> None:
        """Add a problem for each label file that has no image."""
        expected = {image.labels for image in self.images}
        orphans = set()
        for folder in {os.path.dirname(image.labels) for image in self.images}:
            if is_folder(os.path.join(self.root, folder)):
                found = find_files(os.path.join(self.root, folder), {".txt"}).files
                orphans |= {_join(folder, file.key) for file in found} - expected
        for labels in sorted(orphans):
            if os.path.basename(labels) not in _OTHER_TEXTS and _looks_like_labels(self.root, labels):
                kind = "label files have no image"
                self.problems.append(Problem(labels, "label file has no image", input=None, kind=kind))


def _find_root(path: str) -> tuple[str, str | None]:
    """Return the folder, and its data.yaml or None."""
    if is_file(path):
        if not path.endswith((".yaml", ".yml")):
            raise SourceError("expected a folder or a data.yaml, got another file", shard=path)
        return os.path.dirname(path) or ".", path
    if not is_folder(path):
        raise SourceError("no such folder, expected a YOLO dataset", shard=path)
    yaml = next((name for name in _YAML_NAMES if is_file(os.path.join(path, name))), None)
    return path, None if yaml is None else os.path.join(path, yaml)


def _resolve(root: str, prefix: str, place: str) -> str:
    """Resolve a path of data.yaml below the root. Some exports write ../train/images for train/images."""
    bare = place
    while bare.startswith(("../", "./")):
        bare = bare.partition("/")[2]
    candidates = [os.path.join(prefix, place), place, bare]
    for candidate in candidates:
        path = os.path.join(root, candidate)
        if is_file(path) or is_folder(path):
            return os.path.normpath(candidate)
    raise SourceError(f"no folder or list {place!r}, which data.yaml names", shard=root)


def _label_path(image: str) -> str:
    """Return the label file of an image: folder `images` in its path becomes `labels`, else it is next to the image."""
    stem = os.path.splitext(image)[0] if os.path.splitext(image)[1].lower() in IMAGE_SUFFIXES else image
    parts = stem.split("/")
    if "images" in parts[:-1]:
        last = len(parts) - 2 - parts[:-1][::-1].index("images")
        parts[last] = "labels"
    return "/".join(parts) + ".txt"


def _looks_like_labels(root: str, labels: str) -> bool:
    """Return whether a text file may be a label file: it starts with a number or is empty."""
    with open_input(os.path.join(root, labels)) as file:
        return (file.read(64).split() or [b"0"])[0].isdigit()


def _join(folder: str, key: str) -> str:
    return f"{folder}/{key}" if folder and folder != "." else key
