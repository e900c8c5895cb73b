"""The source `coco`: JSON files with images, categories and annotations, which are boxes, outlines and captions."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import NamedTuple

from tfrkit._limits import LIMITS
from tfrkit.errors import Hint, SourceError, Step
from tfrkit.features.labels import LabelMap, make_numbered_map
from tfrkit.images.encode import ImageOptions
from tfrkit.sources.base import Problem, Scan
from tfrkit.sources.boxes import BoxFitter, BoxPolicy
from tfrkit.sources.coco_json import CocoData, CocoImage, add_captions, parse_coco
from tfrkit.sources.description import DescribedSource
from tfrkit.sources.detection import DetectionGatherer, FoundObject, note_zero
from tfrkit.sources.walk import describe_unreadable
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.inputs import read_ahead, read_input
from tfrkit.storage.lookup import can_list, expand_remote_glob, is_file, is_folder

FIELDS: Mapping[str, str] = {"is_crowd": "int64", "area": "float"}

# Category ids have gaps, but a wider range than this means that the numbers are not ids.
_MAX_ID_RANGE = 1 << 16
_SET_NAME = re.compile(r"(?:instances|captions|person_keypoints|annotations)_(?P<set>.+)\.json")
_SPLITS = {"valid": "val", "validation": "val"}


class _File(NamedTuple):
    """One JSON file: the name of its split, and its path below the root."""

    split: str
    path: str


@dataclass(frozen=True)
class Coco(DescribedSource):
    """A dataset in COCO format.

    Attributes:
        path: The JSON file, or a folder with annotations/instances_train2017.json and train2017/, with
            train/_annotations.coco.json next to its images, or with annotations.json.
        sets: The files of a folder to use, by the name after `instances_` or by their folder; each becomes a split.
        image_root: The folder that file names of images are relative to, if it is not found automatically.
        masks: Also store the outline of each object as a PNG of 0 and 1 in `image/object/mask`.
        captions: Also store captions: "auto" reads `captions_<set>.json` next to the file; else the path of a file.
        label_offset: Number the categories consecutively from this label, in the order of their ids. By default labels
            are the category ids of the file, with their gaps.
        boxes: What to do with boxes that are not inside their image: "fail", "clip" or "drop".
        images: How images are stored.
    """

    path: str
    _: KW_ONLY
    sets: Sequence[str] = ()
    image_root: str | None = None
    masks: bool = False
    captions: str | None = None
    label_offset: int | None = None
    boxes: BoxPolicy = "fail"
    images: ImageOptions = field(default_factory=ImageOptions)

    kind = "coco"

    def __post_init__(self) -> None:
        super().__post_init__()
        BoxFitter(self.boxes)

    def scan(self, scratch: str) -> Scan:
        """Read the annotations, and the header of every image."""
        root, files = self._find_files()
        fitter = BoxFitter(self.boxes)
        names = tuple(file.split for file in files) if is_folder(self.path) and files[0].split else ()
        base = self.image_root or root
        gatherer = DetectionGatherer(base, fitter, exif=self.images.exif, split_names=names, needs_outlines=self.masks)
        categories: dict[int, str] = {}
        num_images = num_keypoints = 0
        has_captions = self.captions is not None
        for index, file in enumerate(files):
            coco = self._load(root, file)
            gatherer.problems += coco.problems
            num_keypoints += coco.num_keypoints
            num_images += len(coco.images)
            has_captions = has_captions or coco.has_captions
            for number, name in coco.categories.items():
                clean = fitter.name(name, f"{file.path}, category {number}")
                if categories.setdefault(number, clean) != clean:
                    raise SourceError(
                        f"category {number} expected one name in all files, got {categories[number]!r} and {clean!r}",
                        shard=file.path,
                    )
            folder = "" if self.image_root else _find_image_folder(root, file, coco)
            prefix = f"{file.split}/" if len(files) > 1 else ""
            files_of = partial(_files_of, base, folder)
            for image in read_ahead(coco.images.values(), files_of, head_nbytes=LIMITS.image_head_nbytes):
                self._gather(gatherer, image, categories, folder, prefix, index if names else -1, file)
        labels = self._number(categories)
        scan = gatherer.make_scan(
            f"images named in {', '.join(file.path for file in files)}",
            labels,
            self.images,
            fields=FIELDS,
            notes=(),
            about_labels=[f"labels: {labels.origin}", *note_zero(labels)],
            masks=self.masks,
            captions=has_captions,
            found=num_images,
        )
        if num_keypoints:
            have = "annotation has" if num_keypoints == 1 else "annotations have"
            scan.notes.append(f"keypoints are not stored: {num_keypoints:,} {have} some")
        return scan

    def _load(self, root: str, file: _File) -> CocoData:
        coco = parse_coco(_read(os.path.join(root, file.path)), file.path, masks=self.masks)
        if self.captions == "auto":
            path = re.sub(r"(instances|person_keypoints)_(?=[^/]*$)", "captions_", file.path)
            if path == file.path:
                raise SourceError(
                    "captions expected next to a file called instances_<set>.json",
                    shard=file.path,
                    hint=Hint(Step("name their file: {captions}", captions=...)),
                )
            add_captions(coco, _read(os.path.join(root, path)), path)
        elif self.captions is not None:
            add_captions(coco, _read(self.captions), self.captions)
        return coco

    def _gather(
        self,
        gatherer: DetectionGatherer,
        image: CocoImage,
        categories: Mapping[int, str],
        folder: str,
        prefix: str,
        split: int,
        file: _File,
    ) -> None:
        where = f"{file.path}, image {image.identifier!r:.40}"
        path = _place_of(folder, image)
        if os.path.isabs(path) or path.split("/")[0] == "..":
            reason = f"file_name expected a path below the images, got {image.file_name!r:.64}"
            gatherer.problems.append(Problem(where, reason))
            return
        if image.is_bad:
            return
        objects = [
            FoundObject(
                categories[found.category],
                found.corners,
                found.where,
                {"is_crowd": found.is_crowd, "area": found.area},
                found.outline,
            )
            for found in image.objects
        ]
        gatherer.add(
            f"{prefix}{image.file_name}",
            path,
            objects,
            source_id=str(image.identifier),
            name=_name_image(image),
            declared=(image.width, image.height),
            declared_at=where,
            captions=image.captions,
            split=split,
        )

    def _find_files(self) -> tuple[str, list[_File]]:
        """Return the root and its JSON files."""
        if is_file(self.path):
            if self.sets:
                raise ValueError("sets expected a folder with several files, got one file")
            return os.path.dirname(self.path) or ".", [_File("", os.path.basename(self.path))]
        if not is_folder(self.path):
            raise SourceError("no such file or folder, expected a COCO file", shard=self.path)
        found = _list_files(self.path)
        if self.sets:
            missing = [name for name in self.sets if name not in found]
            if missing:
                raise SourceError(
                    f"no set {missing[0]!r}, expected one of {', '.join(sorted(found)) or 'none'}", shard=self.path
                )
            found = {name: found[name] for name in self.sets}
        if not found:
            raise SourceError(
                "no COCO file, looked for annotations/instances_*.json, */_annotations.coco.json and annotations.json",
                shard=self.path,
            )
        return self.path, [_File(_SPLITS.get(name, name), path) for name, path in found.items()]

    def _number(self, categories: Mapping[int, str]) -> LabelMap:
        ordered = [categories[number] for number in sorted(categories)]
        if self.label_offset is not None:
            origin = f"{_count(ordered)}, renumbered from {self.label_offset}"
            return LabelMap(tuple(ordered), title="category", origin=origin, offset=self.label_offset)
        if not categories:
            return LabelMap((), title="category", origin="no categories")
        first, last = min(categories), max(categories)
        if last - first > _MAX_ID_RANGE:
            raise SourceError(
                f"category ids expected close together, got {first} to {last}",
                hint=Hint(Step("renumber them: {label_offset}", label_offset=1)),
            )
        own = f"their own ids, {first} to {last}" if len(ordered) > 1 else f"its own id, {first}"
        origin = f"{_count(ordered)} with {own}"
        return make_numbered_map(categories, title="category", origin=origin)


def _count(categories: Sequence[str]) -> str:
    return "1 category" if len(categories) == 1 else f"{len(categories):,} categories"


def _list_files(root: str) -> dict[str, str]:
    """Return set → path of its JSON file below the root, for the first COCO layout that matches."""
    found = {}
    for path in _glob(root, "annotations", "instances_*.json"):
        match = _SET_NAME.fullmatch(os.path.basename(path))
        if match is not None:
            found[match["set"]] = path
    if not found:
        for path in _glob(root, "*", "_annotations.coco.json"):
            found[os.path.dirname(path)] = path
    if not found:
        for path in ("_annotations.coco.json", "annotations.json", "annotations/annotations.json"):
            if is_file(os.path.join(root, path)):
                return {"": path}
    return found


def _glob(root: str, folder: str, pattern: str) -> list[str]:
    if not has_scheme(root):
        return sorted(glob.glob(f"{folder}/{pattern}", root_dir=root))
    found = expand_remote_glob(f"{root.rstrip('/')}/{folder}/{pattern}") if can_list(root) else []
    return [address[len(root.rstrip("/")) + 1 :] for address in found]


def _name_image(image: CocoImage) -> str | None:
    """Return the file name of an image with its folders; None if there are none, or they lead out of the images."""
    name = os.path.normpath(image.file_name.replace("\\", "/"))
    return name if "/" in name and name.split("/")[0] != ".." else None


def _place_of(folder: str, image: CocoImage) -> str:
    return os.path.normpath(os.path.join(folder, image.file_name.replace("\\", "/")))


def _files_of(base: str, folder: str, image: CocoImage) -> list[str]:
    path = _place_of(folder, image)
    return [] if image.is_bad or path.startswith("..") else [os.path.join(base, path)]


def _find_image_folder(root: str, file: _File, coco: CocoData) -> str:
    """Return the folder below the root that contains the first images of a file; by default the file's own folder."""
    beside = os.path.dirname(file.path)
    match = _SET_NAME.fullmatch(os.path.basename(file.path))
    name = match["set"] if match is not None else file.split
    above = os.path.dirname(beside)
    folders = [beside, *(os.path.join(above, *parts) for parts in ((name,), ("images", name), ("images",), ()))]
    firsts = [image.file_name for image in list(coco.images.values())[:20]]
    for folder in dict.fromkeys(folders):
        if any(is_file(os.path.join(root, folder, first)) for first in firsts):
            return folder
    return beside


def _read(path: str) -> bytes:
    try:
        return read_input(path)
    except OSError as error:
        raise SourceError(describe_unreadable(error, "open"), shard=path) from None
