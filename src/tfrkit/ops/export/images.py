"""Export the images of a dataset as files with the stored bytes, in a folder per split and class."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import accumulate
from typing import Literal

from tfrkit.errors import CodecError, QueryError
from tfrkit.features.labels import is_unused
from tfrkit.features.schema import show_name
from tfrkit.images.encode import inspect_image
from tfrkit.ops.choose_records import choose_records, find_records
from tfrkit.ops.export.input import ExportInput, RecordNumber
from tfrkit.ops.export.names import SafeNames, safe_part
from tfrkit.ops.export.pictures import PictureRow, PictureSource, show_number
from tfrkit.ops.export.report import Export, OnBad, require_on_bad
from tfrkit.ops.export.rows import to_csv_line
from tfrkit.ops.preview import value_to_json
from tfrkit.outputs.staging import StagedFolder
from tfrkit.outputs.stored import open_folder
from tfrkit.pictures.pixels import ShapeWord, read_shape
from tfrkit.progress import Progress
from tfrkit.storage.resolve import Address, show_address

FolderLayout = Literal["auto", "flat"]

_LABELS_FILE = "labels.csv"


def export_images(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    *,
    image: str | None = None,
    label: str | None = None,
    name: str | None = None,
    layout: FolderLayout = "auto",
    shape: ShapeWord | None = None,
    count: int | None = None,
    where: str | None = None,
    on_bad: OnBad = "fail",
    force: bool = False,
    incomplete: bool = False,
    progress: Progress | None = None,
) -> Export:
    """Write the images of a dataset into a folder, with their stored bytes.

    A file gets the name stored in its record (image/filename and similar features), else the record number. Each named
    class is a folder, and so is each split if there are several, unless the stored name already has these folders. Raw
    pixels become PNG. If there are masks, they are written to masks/ as PNG with a palette, and images to images/. A
    clip becomes a folder of images. Labels that are not classes are listed in labels.csv. A dataset that `tfr build
    class-folders` made from a folder is written back as that folder.

    Args:
        address: Path, glob, folder, or a list of these.
        output: The folder to create.
        image: The feature with the images; found by default.
        label: The feature with the class, or with the values for labels.csv; found by default.
        name: The feature with the file names; found by default.
        layout: "auto", or "flat" for no folders except those in stored names; all labels are then in labels.csv.
        shape: Shape of raw pixels, "224x224" or "224x224x3", height first, if no feature holds it.
        count: Write the images of at most this many records, evenly spaced.
        where: Write only images of records that match this condition in DuckDB's SQL: "label = 3". Needs
            ``pip install 'tfrkit[sql]'``.
        on_bad: A record without an image stops the export ("fail"), or is left out and listed ("skip").
        force: Replace the folder.
        incomplete: Continue if shards of a set are missing.
        progress: Progress callback.
    """
    if layout not in ("auto", "flat"):
        raise ValueError(f"layout expected 'auto' or 'flat', got {layout!r}")
    require_on_bad(on_bad)
    target = show_address(output)
    with ExportInput(address, progress, incomplete=incomplete) as source:
        pictures = PictureSource(source, image=image, label=label, name=name, shape=read_shape(shape))
        report = Export("images", target)
        chosen = _choose(source, count, where)
        if chosen is not None:
            report.available = source.num_records
        with open_folder(target, sources=source.paths, force=force, nbytes=source.nbytes) as folder:
            writer = _ImageWriter(source, pictures, folder, report, is_flat=layout == "flat")
            source.begin()
            for place, row in source.rows(pictures.feature_names, chosen=chosen):
                try:
                    writer.write(place, pictures.read(row))
                except CodecError as error:
                    report.take_bad(source, place, error.what, on_bad)
                else:
                    report.records += 1
            writer.finish()
            source.end()
            folder.commit()
            report.files, report.nbytes = folder.files, folder.nbytes
        report.notes += pictures.describe()
        others = pictures.find_others()
        if others:
            shown = ", ".join(show_name(one) for one in others[:8]) + (" and more" if len(others) > 8 else "")
            report.notes.append(f"images of other features are not written, another can be chosen: {shown}")
        return report


def _choose(source: ExportInput, count: int | None, where: str | None) -> list[int] | None:
    """Return the numbers of the records to write; None for all."""
    if count is not None and count < 1:
        raise ValueError(f"count expected at least 1, got {count}")
    found = None if where is None else find_records(source.paths, where)
    if found is not None and not found:
        raise QueryError(f"no record is chosen, the condition is true for none of {source.num_records:,}")
    if count is None:
        return found
    total = source.num_records if found is None else len(found)
    places = choose_records(total, count, None)
    return places if found is None else [found[place] for place in places]


class _ImageWriter:
    """Writes the pictures, masks and labels of records."""

    def __init__(
        self, source: ExportInput, pictures: PictureSource, folder: StagedFolder, report: Export, *, is_flat: bool
    ) -> None:
        self._source = source
        self._pictures = pictures
        self._folder = folder
        self._report = report
        splits = source.split_names()
        self._splits = splits if len(set(splits)) > 1 and not is_flat else [""] * len(splits)
        self._names = SafeNames()
        self._mask_names = SafeNames()
        self._has_masks = pictures.mask_feature is not None
        self._has_classes = pictures.class_feature is not None and not is_flat
        self._labels = self._choose_labels()
        self._starts = [0, *accumulate(source.counts)]
        self._num_clip_masks = 0
        self._seen_classes: set[str] = set()
        if self._labels:
            self._names.reserve(_LABELS_FILE)
            self._table = folder.open(_LABELS_FILE)
            self._table.write(to_csv_line(["file", *self._labels]))

    def _choose_labels(self) -> list[str]:
        """Return the features to list in labels.csv; none if classes are folders."""
        pictures = self._pictures
        if self._has_classes:
            return []
        names = list(pictures.features.labels)
        if pictures.class_feature is not None and pictures.class_feature not in names:
            names.append(pictures.class_feature)
        return names

    def write(self, place: RecordNumber, picture: PictureRow) -> None:
        """Write the files of one record; on `CodecError` none of them is written."""
        mask = self._read_mask(picture)
        number = self._starts[place.shard] + place.record
        otherwise = show_number(number, self._source.num_records)
        if picture.is_clip:
            path = self._write_frames(place, picture, otherwise)
        else:
            [file] = picture.files
            wanted, otherwise = self._pictures.names.name_file(picture.name, file, otherwise)
            path = self._take(self._place(place, wanted, picture.class_name), otherwise)
            self._folder.write(self._below("images", path), file.data)
            self._report.images += 1
        if mask is not None:
            stem = os.path.splitext(path)[0]
            self._folder.write(f"masks/{self._mask_names.take(f'{stem}.png', otherwise=otherwise)}", mask)
            self._report.masks += 1
        if self._labels:
            cells = [value_to_json(picture.values.get(name)) for name in self._labels]
            self._table.write(to_csv_line([self._below("images", path), *cells]))

    def finish(self) -> None:
        """Close labels.csv, add notes and create the folders of classes without images."""
        if self._labels:
            self._table.close()
            self._report.tables.append(_LABELS_FILE)
        if self._num_clip_masks:
            self._report.notes.append(f"masks of clips are not written: {self._num_clip_masks} records have some")
        is_whole = self._report.available is None
        if self._has_classes and is_whole and self._source.source_kind == "class-folders":
            # A class without images needs its folder, too: otherwise a new build would shift the ids of the others.
            label = "image/class/label"
            schema = self._source.schema
            classes = schema[label].classes if label in schema else None
            for name in set(classes or ()) - self._seen_classes:
                if not is_unused(name):
                    for split in set(self._splits):
                        folder = safe_part(name)
                        self._folder.make_folder(f"{safe_part(split)}/{folder}" if split else folder)

    def _read_mask(self, picture: PictureRow) -> bytes | None:
        if not self._has_masks:
            return None
        if picture.is_clip:
            self._num_clip_masks += 1
            return None
        info = inspect_image(picture.files[0].data)
        size = (info.width, info.height) if info.width and info.height else None
        return self._pictures.read_mask(picture, size)

    def _write_frames(self, place: RecordNumber, picture: PictureRow, otherwise: str) -> str:
        wanted = self._place(place, picture.name or otherwise, picture.class_name)
        path = self._take(wanted, otherwise)
        inside = SafeNames()
        for index, file in enumerate(picture.files):
            plain = f"{index:06d}{file.suffix}"
            name = picture.frame_names[index] if index < len(picture.frame_names) else plain
            self._folder.write(
                self._below("images", f"{path}/{inside.take(name or plain, otherwise=plain)}"), file.data
            )
            self._report.images += 1
        return path

    def _place(self, place: RecordNumber, name: str, class_name: str | None) -> str:
        """Return the stored name with the folders of its split and class prepended, unless it has them."""
        parts = name.split("/")
        split = self._splits[place.shard]
        if split and parts[0] == split and len(parts) > 1:
            parts = parts[1:]
        if self._has_classes and class_name is not None:
            folder = safe_part(class_name)
            self._seen_classes.add(class_name)
            if folder not in parts[:1] or len(parts) == 1:
                parts = [folder, *parts]
        return "/".join([split, *parts] if split else parts)

    def _take(self, wanted: str, otherwise: str) -> str:
        path = self._names.take(wanted, otherwise=otherwise)
        if path != wanted:
            self._report.note_renamed(wanted, path)
        return path

    def _below(self, folder: str, path: str) -> str:
        return f"{folder}/{path}" if self._has_masks else path
