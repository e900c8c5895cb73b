"""Export in the COCO format.

Writes annotations/instances_<split>.json and images in <split>/; without splits, annotations.json and images/.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from typing import Any, BinaryIO

import numpy as np

from tfrkit.errors import CodecError
from tfrkit.ops.export.annotations import AnnotatedImage, AnnotationTask, export_annotated
from tfrkit.ops.export.names import safe_part
from tfrkit.ops.export.objects import corners_to_pixels
from tfrkit.ops.export.pictures import decode_text
from tfrkit.ops.export.report import Export, OnBad
from tfrkit.pictures.masks import describe_sizes, read_mask
from tfrkit.pictures.values import list_values
from tfrkit.progress import Progress
from tfrkit.storage.resolve import Address

_CAPTION = "image/caption"
_SOURCE_ID = "image/source_id"
_MAX_ID = 1 << 53  # readers that parse numbers as floats cannot distinguish larger ids


def export_coco(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    *,
    image: str | None = None,
    name: str | None = None,
    names: str | None = None,
    on_bad: OnBad = "fail",
    force: bool = False,
    incomplete: bool = False,
    progress: Progress | None = None,
) -> Export:
    """Write images with a COCO file for each split.

    Category ids are the stored labels; image ids come from image/source_id if it is a number. Object masks become run
    lengths, image/caption becomes captions_<split>.json. Boxes have the fewest decimals that restore the stored
    values. Arguments are those of `export_voc`.
    """
    return export_annotated(
        "coco",
        address,
        output,
        _CocoWriter,
        image=image,
        name=name,
        names=names,
        extra=(_CAPTION, _SOURCE_ID),
        on_bad=on_bad,
        force=force,
        incomplete=incomplete,
        progress=progress,
    )


class _Split:
    """Contents of the JSON files of one split, collected in temporary files."""

    def __init__(self, task: AnnotationTask) -> None:
        self.images: BinaryIO = task.folder.open_scratch()
        self.annotations: BinaryIO = task.folder.open_scratch()
        self.captions: BinaryIO = task.folder.open_scratch()
        self.ids: set[int] = set()
        self.num_annotations = 0
        self.num_captions = 0

    def take_id(self, wanted: int | None, number: int) -> int:
        """Reserve and return an id: `wanted` if it is free, else the first free one from `number` + 1 on."""
        identifier = number + 1 if wanted is None or wanted in self.ids else wanted
        while identifier in self.ids:
            identifier += 1
        self.ids.add(identifier)
        return identifier


class _CocoWriter:
    def __init__(self, task: AnnotationTask) -> None:
        self._task = task
        self._folder = task.folder
        self._has_captions = _CAPTION in task.source.schema.features
        self._splits: dict[str, _Split] = {}

    def prepare(self, image: AnnotatedImage) -> list[dict[str, Any]]:
        """Return the annotations of an image, without their ids."""
        found = image.objects
        pixels = corners_to_pixels(found.corners, image.width, image.height)
        masks = found.extras.get("mask")
        entries = []
        for index, label in enumerate(found.labels):
            xmin, ymin, xmax, ymax = pixels[index].tolist()
            box = [xmin, ymin, round(xmax - xmin, 6), round(ymax - ymin, 6)]
            area = found.extras["area"][index] if "area" in found.extras else box[2] * box[3]
            entries.append(
                {
                    "category_id": label,
                    "bbox": [_to_number(value) for value in box],
                    # The shortest decimal that rounds to the stored float32: 702.1, not 702.0999755859375.
                    "area": _to_number(float(str(np.float32(area)))),
                    "iscrowd": int(found.extras["is_crowd"][index]) if "is_crowd" in found.extras else 0,
                    "segmentation": [] if masks is None else _outline(masks[index], image, index),
                }
            )
        return entries

    def write(self, image: AnnotatedImage, prepared: list[dict[str, Any]]) -> None:
        split = self._splits.get(image.split)
        if split is None:
            split = self._splits[image.split] = _Split(self._task)
        identifier = split.take_id(_read_id(image), image.number)
        self._folder.write(f"{self._image_folder(image.split)}/{image.path}", image.data)
        entry = {"id": identifier, "file_name": image.path, "width": image.width, "height": image.height}
        _append(split.images, entry)
        for annotation in prepared:
            split.num_annotations += 1
            _append(split.annotations, {"id": split.num_annotations, "image_id": identifier, **annotation})
        for caption in list_values(image.picture.values.get(_CAPTION)) if self._has_captions else ():
            split.num_captions += 1
            text = decode_text(caption) if isinstance(caption, bytes) else str(caption)
            _append(split.captions, {"id": split.num_captions, "image_id": identifier, "caption": text})

    def finish(self) -> None:
        classes = self._task.objects.classes.names
        categories = [{"id": number, "name": name, "supercategory": ""} for number, name in classes.items()]
        for name, split in self._splits.items():
            part = safe_part(name)
            instances = f"annotations/instances_{part}.json" if name else "annotations.json"
            with self._folder.open(instances) as file:
                _write_document(file, {"images": split.images, "annotations": split.annotations}, categories)
            if self._has_captions:
                captions = f"annotations/captions_{part}.json" if name else "captions.json"
                with self._folder.open(captions) as file:
                    _write_document(file, {"images": split.images, "annotations": split.captions}, None)

    def _image_folder(self, split: str) -> str:
        return safe_part(split) if split else "images"


def encode_run_lengths(mask: np.ndarray[Any, np.dtype[Any]]) -> dict[str, Any]:
    """Encode a mask (height, width) as COCO's run lengths: column by column, zeros first, any other value is 1.

    Example:
        >>> encode_run_lengths(np.array([[0, 1], [1, 0]]))
        {'size': [2, 2], 'counts': [1, 2, 1]}
    """
    flat = np.ascontiguousarray(mask.T).reshape(-1) != 0
    steps = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    runs = np.diff(np.concatenate([[0], steps, [flat.size]])).tolist()
    return {"size": list(mask.shape), "counts": [0, *runs] if flat.size and flat[0] else runs}


def _outline(value: Any, image: AnnotatedImage, index: int) -> dict[str, Any]:
    try:
        mask = read_mask(value, (image.height, image.width))
    except CodecError as error:
        raise CodecError(f"object {index} {error.what}") from None
    if mask.shape != (image.height, image.width):
        raise CodecError(f"object {index} {describe_sizes(mask.shape[::-1], (image.width, image.height))}")
    return encode_run_lengths(mask)


def _read_id(image: AnnotatedImage) -> int | None:
    value = image.picture.values.get(_SOURCE_ID)
    if isinstance(value, bytes) and value.isdigit() and len(value) < 20 and str(int(value)).encode() == value:
        return int(value) if int(value) < _MAX_ID else None
    return value if isinstance(value, int) and 0 <= value < _MAX_ID else None


def _to_number(value: float) -> int | float:
    return int(value) if value == int(value) else value


def _append(file: BinaryIO, entry: dict[str, Any]) -> None:
    if file.tell():
        file.write(b",\n")
    file.write(json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace"))


def _write_document(file: BinaryIO, lists: dict[str, BinaryIO], categories: list[dict[str, Any]] | None) -> None:
    file.write(b'{"info": {"description": "exported by tfrkit"},\n"licenses": []')
    for name, entries in lists.items():
        file.write(f',\n"{name}": [\n'.encode())
        entries.seek(0)
        shutil.copyfileobj(entries, file)
        file.write(b"\n]")
    if categories is not None:
        text = json.dumps(categories, ensure_ascii=False)
        file.write(f',\n"categories": {text}'.encode("utf-8", "backslashreplace"))
    file.write(b"}\n")
