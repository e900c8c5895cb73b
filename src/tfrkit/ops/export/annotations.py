"""Export loop shared by the VOC, YOLO and COCO formats: images with their objects, one at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

from tfrkit.errors import CodecError, SchemaError
from tfrkit.images.encode import inspect_image
from tfrkit.ops.export.input import ExportInput
from tfrkit.ops.export.names import SafeNames
from tfrkit.ops.export.objects import FoundObjects, ObjectSource
from tfrkit.ops.export.pictures import PictureRow, PictureSource, show_number
from tfrkit.ops.export.pixels import require_image
from tfrkit.ops.export.report import Export, OnBad, require_on_bad
from tfrkit.outputs.staging import StagedFolder
from tfrkit.outputs.stored import open_folder
from tfrkit.progress import Progress
from tfrkit.storage.resolve import Address, show_address

_DEPTHS = {"L": 1, "P": 1, "LA": 2, "RGBA": 4, "CMYK": 4}


@dataclass
class AnnotatedImage:
    """An image and its objects. `path` is a safe relative name; `number` is the record number, from 0."""

    number: int
    split: str
    path: str
    data: bytes
    width: int
    height: int
    depth: int
    objects: FoundObjects
    picture: PictureRow

    @property
    def stem(self) -> str:
        """The path without its suffix; unique among the images."""
        return os.path.splitext(self.path)[0]


class AnnotationWriter(Protocol):
    """Writes images in one format."""

    def prepare(self, image: AnnotatedImage) -> Any:
        """Do all work that may raise `CodecError`, before any file of the image is written; `write` gets the result."""

    def write(self, image: AnnotatedImage, prepared: Any) -> None:
        """Write the files of an image."""

    def finish(self) -> None:
        """Write the files that need all images, such as class lists."""


@dataclass
class AnnotationTask:
    """Input, output and report of one export, passed to its writer."""

    source: ExportInput
    pictures: PictureSource
    objects: ObjectSource
    folder: StagedFolder
    report: Export


MakeWriter = Callable[[AnnotationTask], AnnotationWriter]


def export_annotated(
    kind: str,
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    make_writer: MakeWriter,
    *,
    image: str | None,
    name: str | None,
    names: str | None,
    extra: tuple[str, ...] = (),
    takes_masks: bool = False,
    is_one_folder: bool = False,
    on_bad: OnBad,
    force: bool,
    incomplete: bool,
    progress: Progress | None,
) -> Export:
    """Write images with their boxes into a folder.

    With `takes_masks`, a dataset with masks needs no boxes. With `is_one_folder`, file names are unique across splits.
    """
    require_on_bad(on_bad)
    target = show_address(output)
    with ExportInput(address, progress, incomplete=incomplete) as source:
        look = PictureSource(source, image=image, name=name, names=names)
        objects = ObjectSource(source, look)
        if objects.boxes is None and not (takes_masks and look.mask_feature is not None):
            raise SchemaError(
                f"expected boxes{' or a mask' if takes_masks else ''}, no feature is called .../bbox/xmin",
                shard=source.paths[0],
                hint="images and labels alone: tfr export images",
            )
        pictures = PictureSource(source, image=image, name=name, names=names, extra=(*objects.extra_features, *extra))
        report = Export(kind, target, notes=objects.describe(names))
        with open_folder(target, sources=source.paths, force=force, nbytes=source.nbytes) as folder:
            task = AnnotationTask(source, pictures, objects, folder, report)
            _write_all(task, make_writer(task), on_bad, is_one_folder=is_one_folder)
            folder.commit()
            report.files, report.nbytes = folder.files, folder.nbytes
        report.notes += pictures.describe()
        return report


def _write_all(task: AnnotationTask, writer: AnnotationWriter, on_bad: OnBad, *, is_one_folder: bool) -> None:
    source, report = task.source, task.report
    splits = source.split_names()
    starts = [0, *accumulate(source.counts)]
    names = {split: SafeNames(by_stem=True, is_plain=True) for split in ([""] if is_one_folder else splits)}
    source.begin()
    for place, row in source.rows(task.pictures.feature_names):
        number, split = starts[place.shard] + place.record, splits[place.shard]
        try:
            picture = task.pictures.read(row)
            file = require_image(picture.files, task.pictures.features.image)
            info = inspect_image(file.data)
            found = task.objects.read(picture.values)
            size = (info.width or 0, info.height or 0)
            depth = _DEPTHS.get(info.mode or "", 3)
            shown = show_number(number, source.num_records)
            wanted, otherwise = task.pictures.names.name_file(picture.name, file, shown)
            image = AnnotatedImage(number, split, wanted, file.data, *size, depth, found, picture)
            prepared = writer.prepare(image)
        except CodecError as error:
            report.take_bad(source, place, error.what, on_bad)
            continue
        image.path = names["" if is_one_folder else split].take(wanted, otherwise=otherwise)
        if image.path != wanted:
            report.note_renamed(wanted, image.path)
        writer.write(image, prepared)
        report.records += 1
    writer.finish()
    source.end()
