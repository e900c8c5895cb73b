"""Export in the YOLO format: images/<split>/x.jpg, labels/<split>/x.txt, and class names in data.yaml."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable

import numpy as np

from tfrkit.errors import CodecError
from tfrkit.features.labels import name_unused
from tfrkit.ops.export.annotations import AnnotatedImage, AnnotationTask, export_annotated
from tfrkit.ops.export.names import safe_part
from tfrkit.ops.export.objects import ClassTable, Corners
from tfrkit.ops.export.report import Export, OnBad
from tfrkit.progress import Progress
from tfrkit.storage.resolve import Address

# YOLO's names for splits that are called differently elsewhere.
_SPLITS = {"training": "train", "valid": "val", "validation": "val", "dev": "val", "eval": "val", "testing": "test"}
_KNOWN = ("train", "val", "test")
_DECIMALS = range(4, 10)
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")


def export_yolo(
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
    """Write images with a label file each: class, centre, width and height as fractions of the image size.

    Classes are numbered from 0 in the order of their ids; gaps between ids are closed, unless the dataset was built
    from YOLO files, which may have gaps. Numbers have the fewest decimals that restore the stored boxes. Arguments are
    those of `export_voc`.
    """
    return export_annotated(
        "yolo",
        address,
        output,
        _YoloWriter,
        image=image,
        name=name,
        names=names,
        on_bad=on_bad,
        force=force,
        incomplete=incomplete,
        progress=progress,
    )


class _YoloWriter:
    def __init__(self, task: AnnotationTask) -> None:
        self._task = task
        self._folder = task.folder
        self._names = number_classes(task.objects.classes, keeps_gaps=task.source.source_kind == "yolo")
        self._numbers = {label: number for number, (label, _) in self._names.items()}
        self._splits = _name_splits(list(task.source.splits))

    def prepare(self, image: AnnotatedImage) -> str:
        found = image.objects
        lines = [
            f"{self._numbers[label]} {numbers}"
            for label, numbers in zip(found.labels, make_yolo_boxes(found.corners, image), strict=True)
        ]
        return "".join(f"{line}\n" for line in lines)

    def write(self, image: AnnotatedImage, prepared: str) -> None:
        split = self._splits.get(image.split, "")
        place = f"{split}/" if split else ""
        self._folder.write(f"images/{place}{image.path}", image.data)
        self._folder.write(f"labels/{place}{image.stem}.txt", prepared.encode())

    def finish(self) -> None:
        lines = [f"{split}: images/{split}" for split in self._splits.values() if split]
        names = {number: name for number, (_, name) in self._names.items()}
        lines += [f"nc: {len(names)}", "names:"]
        # A JSON string is also a valid YAML string.
        lines += [
            f"  {number}: {json.dumps(_CONTROLS.sub('_', name), ensure_ascii=False)}" for number, name in names.items()
        ]
        self._folder.write("data.yaml", "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
        strange = [split for split in self._splits.values() if split and split not in _KNOWN]
        if strange:
            self._task.report.notes.append(f"splits that YOLO does not know: {', '.join(strange)}")
        if not any(self._splits.values()):
            self._task.report.notes.append("data.yaml names no train and val, as the files name no splits")


def number_classes(classes: ClassTable, *, keeps_gaps: bool) -> dict[int, tuple[int, str]]:
    """Map YOLO's class numbers, consecutive from 0, to (id, name)."""
    if not classes.names:
        return {}
    if keeps_gaps:
        first, last = min(classes.names), max(classes.names)
        return {
            label - first: (label, classes.names.get(label, name_unused(label - first)))
            for label in range(first, last + 1)
        }
    return dict(enumerate(classes.names.items()))


def make_yolo_boxes(corners: Corners, image: AnnotatedImage) -> list[str]:
    """Format each box as `x y width height`, with the fewest decimals that restore the stored corners."""
    exact = corners.astype(np.float64)
    if exact.size and not (exact.min() >= -1 and exact.max() <= 2):
        raise CodecError(
            f"boxes expected corners as fractions of the image, from 0 to 1, got {exact.min():g} to {exact.max():g}"
        )
    sizes = np.array([image.width, image.height, image.width, image.height], np.float64)
    centres = (exact[:, :2] + exact[:, 2:]) / 2
    extents = exact[:, 2:] - exact[:, :2]
    values = np.concatenate([centres, extents], axis=1)
    shown = [""] * len(values)
    for decimals in _DECIMALS:
        rounded = np.round(values, decimals)
        half = rounded[:, 2:] / 2
        back = np.concatenate([rounded[:, :2] - half, rounded[:, :2] + half], axis=1)
        # Readers convert to pixels and clip to the image.
        back = (np.clip(back * sizes, 0, sizes) / sizes).astype(np.float32)
        is_last = decimals == _DECIMALS[-1]
        for index in np.flatnonzero((back == corners).all(axis=1) | is_last).tolist():
            if not shown[index]:
                shown[index] = " ".join(_show(value, decimals) for value in rounded[index].tolist())
    return shown


def _show(value: float, decimals: int) -> str:
    return f"{value:.{decimals}f}".rstrip("0").rstrip(".")


def _name_splits(splits: list[str]) -> dict[str, str]:
    """Map splits to YOLO's names for them; if two would get the same name, all keep their own."""
    named = {split: _SPLITS.get(split, split) for split in splits}
    if len(set(named.values())) < len(named):
        named = {split: split for split in splits}
    return {split: safe_part(name) if name else "" for split, name in named.items()}
