"""The source `voc-seg`: images and masks of class ids in Pascal VOC format, stored as DeepLab's readers expect.

The masks are palette images. Their indices, 0 to 20 and 255 for pixels without a class, are stored as a gray PNG; the
colours of the palette are not stored.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Literal

import numpy as np

from tfrkit._types import Row, UInt8Array
from tfrkit.errors import Hint, SourceError, Step
from tfrkit.features.labels import LabelMap
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.images.encode import ImageOptions, image_spec
from tfrkit.images.orientation import find_orientation
from tfrkit.images.resize import UPRIGHT, resize_as_pillow, turn_upright
from tfrkit.images.turn import ExifPolicy, require_upright, turn_size
from tfrkit.pictures.colors import Color, voc_colors
from tfrkit.pictures.masks import (
    count_indices,
    describe_sizes,
    encode_indices,
    inspect_mask,
    is_plain_mask,
    parse_color_map,
    read_colors,
    read_indices,
    require_numbers,
    show_histogram,
)
from tfrkit.sources.base import Facts, Item, ItemsBuilder, Problem, Scan
from tfrkit.sources.class_files import find_class_file, load_classes, read_small_text
from tfrkit.sources.description import DescribedSource
from tfrkit.sources.image_features import IMAGE, ImageReader, image_row, to_problem
from tfrkit.sources.measure import Size, explain_difference, measure_image_file, read_orientation
from tfrkit.sources.voc_layout import FilesById, find_folder, note_unused_lists, read_sets
from tfrkit.sources.walk import IMAGE_SUFFIXES, FoundFile, find_files, read_file, require_folder
from tfrkit.storage.inputs import join_stamps, open_input, read_ahead

VOC_CLASSES = (
    "background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable",
    "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor",
)  # fmt: skip

MaskForm = Literal["gray", "keep"]

_MASK = "image/segmentation/class/encoded"
_MASK_FOLDERS = ("SegmentationClass", "SegmentationClassRaw", "SegmentationClassPNG", "masks")
_IMAGE_FOLDERS = ("JPEGImages", "images")
_HEAD_NBYTES = 1 << 14


@dataclass(frozen=True)
class MaskClasses:
    """Options for masks: valid class ids, ids to replace, and colours of classes."""

    num_classes: int
    ignore: int | None = 255
    changes: Mapping[int, int] = field(default_factory=dict)
    colors: Mapping[Color, int] | None = None
    form: MaskForm = "gray"
    exif: ExifPolicy = "keep"


class MaskStore:
    """Converts masks to the form in which they are stored. Picklable."""

    def __init__(self, options: MaskClasses) -> None:
        self._options = options

    def store(self, data: bytes, *, source_size: tuple[int, int], size: tuple[int, int], as_raw: bool) -> bytes:
        """Return the mask to store, in the size of the stored image; raises `SourceError` for bad values or size."""
        info = inspect_mask(data)
        options = self._options
        orientation = UPRIGHT if options.exif == "keep" else find_orientation(memoryview(data))
        if options.exif == "fail":
            require_upright(orientation, "mask")
        mask_size = turn_size((info.width or 0, info.height or 0), orientation)
        if mask_size != source_size:
            raise SourceError(describe_sizes(mask_size, source_size))
        if options.colors is not None:
            mask = read_colors(data, info, options.colors)
        else:
            mask = read_indices(data, info)
        if orientation != UPRIGHT:
            mask = np.ascontiguousarray(turn_upright(mask, orientation))
        mask = self._change(mask)
        self._check(mask)
        mask = resize_as_pillow(mask, size[::-1], "nearest")
        if as_raw:
            return mask.tobytes()
        is_untouched = size == source_size and orientation == UPRIGHT and not options.changes and options.colors is None
        if is_untouched and (options.form == "keep" or is_plain_mask(info)):
            return data
        return encode_indices(mask)

    def _change(self, mask: UInt8Array) -> UInt8Array:
        if not self._options.changes:
            return mask
        table = np.arange(256, dtype=np.uint8)
        for number, other in self._options.changes.items():
            table[number] = other
        return table[mask]

    def _check(self, mask: UInt8Array) -> None:
        counts = count_indices(mask)
        options = self._options
        unknown = [value for value in counts if value >= options.num_classes and value != options.ignore]
        if unknown:
            known = f"0 to {options.num_classes - 1}" + ("" if options.ignore is None else f" and {options.ignore}")
            values = ", ".join(map(str, unknown[:5])) + (" and more" if len(unknown) > 5 else "")
            raise SourceError(
                f"mask expected class numbers {known}, got {values} ({show_histogram(counts)})",
                hint=_advise(unknown[0], counts, options),
            )


def _advise(number: int, counts: Mapping[int, int], options: MaskClasses) -> str:
    """Return the hint for a mask value that is not a class; it does not suggest replacing an `ignore` value in use."""
    is_class = Step(f"if {number} is a class: {{map}}", map={number: min(1, options.num_classes - 1)})
    if options.ignore in counts:
        return Hint(is_class, Step("if it is none: {map}", map={number: options.ignore}))
    return Hint(is_class, Step("if it is none: {ignore}", ignore=number))


class VocSegReader(ImageReader):
    """Reads an image and its mask as a row."""

    def __init__(self, root: str, images: ImageOptions, masks: MaskClasses) -> None:
        super().__init__(root, images)
        self._masks = MaskStore(masks)
        self._as_raw = images.stored_as == "raw"

    def files_of(self, item: Item) -> Sequence[str]:
        return [os.path.join(self._root, file) for file in os.fsdecode(item.data).split("\0")]

    def read(self, item: Item) -> Row:
        """Return the row of one image."""
        image_file, mask_file = os.fsdecode(item.data).split("\0")
        stored = self.store(image_file, is_annotated=True)
        mask = self._masks.store(
            read_file(self._root, mask_file),
            source_size=(stored.source_width, stored.source_height),
            size=(stored.width, stored.height),
            as_raw=self._as_raw,
        )
        return {
            **image_row(stored),
            "image/filename": os.fsencode(os.path.basename(image_file)),
            _MASK: mask,
            "image/segmentation/class/format": "raw" if self._as_raw else "png",
        }


@dataclass(frozen=True)
class VocSeg(DescribedSource):
    """A dataset in Pascal VOC segmentation format.

    Attributes:
        root: The folder with JPEGImages and SegmentationClass: VOCdevkit/VOC2007.
        sets: Lists of ImageSets/Segmentation to use; each becomes a split. By default train, val and test, if they
            exist; if there are no lists, all masks are used, without splits.
        classes: Class names or a file that lists them, background first; by default a file in the folder or VOC's 21.
        ignore: The mask value of pixels that are ignored; None if there is none.
        map: Mask values to replace: {200: 1}.
        colormap: For masks of colours instead of class ids: "voc", or a file with a name and three numbers per line.
        mask: "gray" stores a gray PNG of the class ids, which every reader decodes unchanged; "keep" stores the bytes
            of the file, whose palette TensorFlow's decoder turns into colours.
        images: How images are stored; masks are resized with their images, by nearest neighbour.
    """

    root: str
    _: KW_ONLY
    sets: Sequence[str] = ()
    classes: str | Sequence[str] | None = None
    ignore: int | None = 255
    map: Mapping[int, int] = field(default_factory=dict)
    colormap: str | None = None
    mask: MaskForm = "gray"
    images: ImageOptions = field(default_factory=ImageOptions)

    kind = "voc-seg"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mask not in ("gray", "keep"):
            raise ValueError(f"mask expected 'gray' or 'keep', got {self.mask!r:.64}")
        for number in (*self.map, *self.map.values(), *(() if self.ignore is None else (self.ignore,))):
            if not 0 <= number <= 255:
                raise ValueError(f"mask numbers expected from 0 to 255, got {number}")

    def scan(self, scratch: str) -> Scan:
        """Find all images and masks, and check their headers."""
        require_folder(self.root, "images with masks")
        mask_folder, image_folder = find_folder(self.root, _MASK_FOLDERS), find_folder(self.root, _IMAGE_FOLDERS)
        if mask_folder is None or image_folder is None:
            missing = _MASK_FOLDERS[0] if mask_folder is None else _IMAGE_FOLDERS[0]
            raise SourceError(f"no folder {missing}, expected JPEGImages and SegmentationClass", shard=self.root)
        colors, color_names = self._load_colors()
        labels = self._load_labels(color_names)
        images = find_files(os.path.join(self.root, image_folder), IMAGE_SUFFIXES)
        masks = find_files(os.path.join(self.root, mask_folder), IMAGE_SUFFIXES)
        problems, notes, builder = self._pair(
            image_folder, FilesById(images.files), mask_folder, FilesById(masks.files)
        )
        options = MaskClasses(len(labels), self.ignore, dict(self.map), colors, self.mask, self.images.exif)
        return Scan(
            looked_for=f"masks in {os.path.join(self.root, mask_folder)} with images in {image_folder}",
            items=builder.build(),
            reader=VocSegReader(self.root, self.images, options),
            schema=self._schema(labels, {}),
            problems=problems,
            ignored=images.ignored + masks.ignored,
            notes=[*notes, f"classes: {len(labels)} from {labels.origin}", *self.images.describe(), *images.notes],
            label_files={"classes.txt": labels.to_text()},
            refine=lambda facts: self._schema(labels, facts),
            explain=self.images.describe_seen,
        )

    def _pair(
        self, image_folder: str, images: FilesById, mask_folder: str, masks: FilesById
    ) -> tuple[list[Problem], list[str], ItemsBuilder]:
        listed = read_sets(self.root, "Segmentation", self.sets)
        if listed is None:
            ids = {identifier: (-1, f"{mask_folder}/{identifier}") for identifier in masks.ids()}
            builder, problems, notes = ItemsBuilder(), [], note_unused_lists(self.root, "Segmentation")
        else:
            ids, problems, notes = listed.ids, listed.problems, listed.notes
            builder = ItemsBuilder(listed.split_names)
        found: dict[str, tuple[FoundFile, FoundFile]] = {}
        for identifier, (_, where) in ids.items():
            faults = []
            pair = []
            for files, what, folder in ((images, "image", image_folder), (masks, "mask", mask_folder)):
                try:
                    file = files.find(identifier, f"{what} in {folder}")
                    pair.append(file._replace(key=f"{folder}/{file.key}"))
                except SourceError as error:
                    faults.append(Problem(where, error.what, kind=f"ids have no {what} in {folder}, or several"))
            problems += faults
            if not faults:
                found[identifier] = (pair[0], pair[1])

        def files_of(identifier: str) -> list[str]:
            return [os.path.join(self.root, file.key) for file in found[identifier]]

        for identifier in read_ahead(found, files_of, head_nbytes=_HEAD_NBYTES):
            split, where = ids[identifier]
            image, mask = found[identifier]
            faults = [replace(fault, input=where) for fault in self._compare_headers(image.key, mask.key)]
            problems += faults
            if not faults:
                data = os.fsencode(f"{image.key}\0{mask.key}")
                stamp = join_stamps(self.root, (image.stamp, mask.stamp))
                builder.add(identifier, data=data, nbytes=image.nbytes + mask.nbytes, stamp=stamp, split=split)
        return problems, notes, builder

    def _compare_headers(self, image: str, mask: str) -> list[Problem]:
        """Return the problems in the headers of an image and its mask; workers check the pixels."""
        faults = []
        size = None
        try:
            size = measure_image_file(os.path.join(self.root, image), self.images.exif)
        except (SourceError, OSError) as error:
            faults.append(to_problem(image, error))
        try:
            with open_input(os.path.join(self.root, mask)) as file:
                info = inspect_mask(file.read(_HEAD_NBYTES))
            if size is not None and info.width is not None:
                self._compare_sizes(image, size, mask, (info.width, info.height or 0))
            if self.colormap is None:
                require_numbers(info)
        except (SourceError, OSError) as error:
            faults.append(to_problem(mask, error))
        return faults

    def _compare_sizes(self, image: str, size: Size, mask: str, mask_size: Size) -> None:
        exif = self.images.exif
        if exif != "keep":
            orientation = read_orientation(os.path.join(self.root, mask))
            if exif == "fail":
                require_upright(orientation, "mask")
            mask_size = turn_size(mask_size, orientation)
        if mask_size != size:
            why, hint = explain_difference(os.path.join(self.root, image), mask_size, size, exif)
            raise SourceError(describe_sizes(mask_size, size) + why, hint=hint)

    def _load_colors(self) -> tuple[Mapping[Color, int] | None, list[str]]:
        if self.colormap is None:
            return None, []
        if self.colormap == "voc":
            return voc_colors(), []
        return parse_color_map(read_small_text(self.colormap), self.colormap)

    def _load_labels(self, color_names: list[str]) -> LabelMap:
        classes = self.classes
        if classes is None and color_names and all(color_names):
            return LabelMap(tuple(color_names), origin=str(self.colormap))
        if classes is None:
            classes = find_class_file(self.root)
        if classes is None:
            return LabelMap(VOC_CLASSES, origin="Pascal VOC")
        return load_classes(classes, label_offset=0)

    def _schema(self, labels: LabelMap, facts: Facts) -> Schema:
        image = Spec(**image_spec(self.images, facts.get(IMAGE)))
        if self.images.stored_as == "raw":
            mask = Spec("bytes", (*image.shape[:2], 1), logical="mask", encoding="raw", dtype="uint8")
        else:
            height_width = (image.decoded_shape or (None, None))[:2]
            mask = Spec("bytes", logical="mask", format="png", decoded_shape=(*height_width, 1))
        text = Spec("bytes", logical="text")
        return Schema(
            {
                IMAGE: image,
                "image/filename": text,
                "image/format": text,
                "image/height": "int64",
                "image/width": "int64",
                "image/channels": "int64",
                _MASK: mask.replace(classes=labels.names, ignore=self.ignore),
                "image/segmentation/class/format": text,
            }
        )
