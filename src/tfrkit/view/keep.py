"""Save results: tags, and selections as TFRecord, images or a list. Writes only into the folder of `--out`."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfrkit._types import Record
from tfrkit.errors import CodecError, ContainerError, SchemaError, StorageError, WireError
from tfrkit.images.sniff import SUFFIX_FORMATS, sniff_image
from tfrkit.ops.export.names import SafeNames
from tfrkit.ops.export.pictures import PictureNames, show_number
from tfrkit.ops.export.pixels import ImageFile
from tfrkit.outputs.target import require_output
from tfrkit.pictures.values import flatten_row
from tfrkit.storage.resolve import open_writer
from tfrkit.storage.text_files import read_json
from tfrkit.view.describe import find_value, make_picture
from tfrkit.view.guesses import Guesses
from tfrkit.view.opened import Opened
from tfrkit.writer import Writer

KINDS = ("tfrecord", "images", "list")
TAGS_FILE = "tags.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_SUFFIXES = {format: suffix for suffix, format in SUFFIX_FORMATS.items()} | {"JPEG": ".jpg", "TIFF": ".tif"}


def check_name(name: object) -> str:
    """Return a name for a file or tag: no path, nothing hidden; ValueError otherwise."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or ".." in name:
        raise ValueError(
            f"name may have letters, digits, -, _ and single dots, and starts with a letter or digit, got {name!r:.64}"
        )
    return name


class Tags:
    """Lists of records by name and dataset, kept in a file if there is a folder for it. Safe to share."""

    def __init__(self, folder: str | None) -> None:
        self._path = None if folder is None else os.path.join(folder, TAGS_FILE)
        self._lock = threading.Lock()
        self._records: dict[tuple[str, int], set[int]] = {}
        if self._path is not None and os.path.exists(self._path):
            self._records = _read_tags(self._path)

    def count(self) -> dict[str, int]:
        """Return the number of records of each tag."""
        counts: dict[str, int] = {}
        for (name, _), records in sorted(self._records.items()):
            counts[name] = counts.get(name, 0) + len(records)
        return counts

    def of(self, number: int, record: int) -> list[str]:
        """Return the tags of a record."""
        return sorted(name for (name, one), records in self._records.items() if one == number and record in records)

    def find(self, number: int, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the records of a tag, ascending."""
        return np.array(sorted(self._records.get((name, number), ())), np.int64)

    def set(self, number: int, name: str, records: Iterable[int], *, on: bool) -> None:
        """Add a tag to records, or remove it."""
        with self._lock:
            found = self._records.setdefault((name, number), set())
            found.update(records) if on else found.difference_update(records)
            if not found:
                del self._records[name, number]
            if self._path is not None:
                self._write(self._path)

    def _write(self, path: str) -> None:
        stored: dict[str, dict[str, list[int]]] = {}
        for (name, number), records in sorted(self._records.items()):
            stored.setdefault(name, {})[str(number)] = sorted(records)
        with open_writer(path, make_folders=True) as writer:
            writer.write(json.dumps(stored, indent=1).encode())
            writer.commit()


def _read_tags(path: str) -> dict[tuple[str, int], set[int]]:
    """Read the file of tags. Raises `StorageError` if it is not one: the next tag would replace it."""
    stored = read_json(path)
    try:
        found = {(name, int(number)): set(rows) for name, sets in stored.items() for number, rows in sets.items()}
    except (AttributeError, TypeError, ValueError):
        found = {("", -1): set()}
    if not all(number >= 0 and all(map(_is_record, records)) for (_, number), records in found.items()):
        raise StorageError(
            "expected tags with lists of records", shard=path, hint="move the file away, or choose another --out"
        )
    return found


def _is_record(record: object) -> bool:
    return type(record) is int and 0 <= record < 1 << 62


@dataclass
class _SoundRecords:
    """The sound records of some items; counts the damaged ones that it leaves out."""

    opened: Opened
    items: Iterable[int]
    num_damaged: int = 0

    def __iter__(self) -> Iterator[tuple[int, Record]]:
        for item in self.items:
            try:
                if item >= 0:
                    yield item, self.opened.read_sound(item)
                    continue
            except (ContainerError, WireError) as error:
                self.opened.find_damage(item, error)
            self.num_damaged += 1

    def list_all(self) -> Iterator[int]:
        """Yield every item that is a record, damaged or not."""
        for item in self.items:
            if item >= 0:
                yield item
            else:
                self.num_damaged += 1


def export(
    opened: Opened,
    guesses: Guesses,
    items: Iterable[int],
    kind: str,
    folder: str,
    name: str,
    *,
    lists_damage: bool = False,
) -> dict[str, Any]:
    """Write records into `folder`; return path, number of records and bytes, and of items that were left out.

    Damaged items are left out; with `lists_damage`, a list has those that are records.
    """
    if kind not in KINDS:
        raise ValueError(f"as expected {', '.join(KINDS)}, got {kind!r:.64}")
    path = os.path.join(folder, check_name(name) + {"tfrecord": ".tfrecord", "images": "", "list": ".txt"}[kind])
    try:
        require_output(path, sources=opened.paths)
    except StorageError as error:
        raise error.replace(hint="choose another name") from None
    os.makedirs(folder, exist_ok=True)
    records, num_without = _SoundRecords(opened, items), 0
    if kind == "tfrecord":
        num_records, nbytes = _write_records(records, path)
    elif kind == "list":
        numbers = records.list_all() if lists_damage else (number for number, _ in records)
        num_records, nbytes = _write_list(opened, numbers, path)
    else:
        num_records, nbytes, num_without = _write_images(opened, guesses, records, path)
    counts = {"records": num_records, "bytes": nbytes, "damaged": records.num_damaged, "without_image": num_without}
    return {"ok": True, "path": path, **counts}


def _write_records(records: _SoundRecords, path: str) -> tuple[int, int]:
    with Writer(path) as writer:
        for _, payload in records:
            writer.write_record(payload)
        num_records = writer.num_records
    return num_records, os.path.getsize(path)


def _write_list(opened: Opened, records: Iterable[int], path: str) -> tuple[int, int]:
    num_records = nbytes = 0
    with open_writer(path) as writer:
        for lines in _batch(opened, records):
            data = "".join(lines).encode("utf-8", "surrogateescape")
            writer.write(data)
            num_records, nbytes = num_records + len(lines), nbytes + len(data)
        writer.commit()
    return num_records, nbytes


def _batch(opened: Opened, records: Iterable[int]) -> Iterator[list[str]]:
    lines = []
    for record in records:
        place = opened.locate(record)
        lines.append(f"{record}\t{opened.paths[place.shard]}\t{place.ordinal}\t{place.offset}\n")
        if len(lines) == 4096:
            yield lines
            lines = []
    yield lines


def _write_images(opened: Opened, guesses: Guesses, records: _SoundRecords, folder: str) -> tuple[int, int, int]:
    features = guesses.features
    if features is None:
        raise StorageError("expected records with images, got none", hint="export them as tfrecord")
    num_records = nbytes = num_without = 0
    names, taken = PictureNames(opened.schema, features.title), SafeNames()
    os.makedirs(folder)
    for record, _ in records:
        try:
            data = find_value(opened, record, features.image, None)
            info = sniff_image(data[:64]) if isinstance(data, bytes) else None
            suffix = ".png" if info is None else _SUFFIXES.get(info.format, ".bin")
            if info is None:
                data, _ = make_picture(opened, guesses, record, features.image, None)
            stored = names.read(flatten_row(opened.read_row(record), opened.schema))
        except (CodecError, SchemaError, LookupError):
            num_without += 1
            continue
        file = ImageFile(data, suffix, is_made=info is None)
        wanted, otherwise = names.name_file(stored, file, show_number(record, opened.num_records))
        with open_writer(os.path.join(folder, taken.take(wanted, otherwise=otherwise)), make_folders=True) as writer:
            writer.write(data)
            writer.commit()
        num_records, nbytes = num_records + 1, nbytes + len(data)
    return num_records, nbytes, num_without
