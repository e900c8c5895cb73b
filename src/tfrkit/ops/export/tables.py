"""Datasets as tables: which file takes which records, written whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO

from tfrkit.errors import StorageError
from tfrkit.ops.export.input import ExportInput
from tfrkit.ops.export.names import SafeNames, safe_part
from tfrkit.ops.export.report import Export
from tfrkit.outputs.staging import StagedFile, StagedFolder
from tfrkit.progress import Progress
from tfrkit.storage.resolve import Address, expand_home

WriteTable = Callable[[ExportInput, BinaryIO, Sequence[int] | None], None]
"""Writes the records of some shards, None for all, into a file."""


def export_table(
    kind: str,
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    write: WriteTable,
    *,
    growth: float = 1.0,
    to_stdout: bool = False,
    force: bool = False,
    incomplete: bool = False,
    progress: Progress | None = None,
) -> Export:
    """Write one file, or, where `output` is a folder or ends in a slash, one for each split.

    `growth` is how much more than its records a file may take, about. With `to_stdout`, "-" is standard output.
    """
    target = expand_home(output)
    if target == "-" and not to_stdout:
        raise StorageError(f"cannot write {kind} to standard output", hint="name a file as output")
    with ExportInput(address, progress, incomplete=incomplete) as source:
        report = Export(kind, target)
        nbytes = int(source.nbytes * growth)
        splits = source.splits
        source.begin()
        if target == "-":
            counted = _Counted(sys.stdout.buffer)
            write(source, counted, None)  # type: ignore[arg-type]
            sys.stdout.buffer.flush()
            report.files, report.nbytes = 1, counted.nbytes
        elif target.endswith(os.sep) or os.path.isdir(target):
            _write_folder(source, report, write, splits, f".{kind}", force=force, nbytes=nbytes)
        else:
            with StagedFile(target, sources=source.paths, force=force, nbytes=nbytes) as staged:
                write(source, staged.file, None)
                staged.commit()
                report.files, report.nbytes = 1, staged.nbytes
            if len(splits) > 1:
                names = ", ".join(name or "no split" for name in splits)
                report.notes.append(f"all splits are in one file: {names}; a folder as output gives one file for each")
        source.end()
        report.records = source.num_records
        return report


def _write_folder(
    source: ExportInput,
    report: Export,
    write: WriteTable,
    splits: dict[str, list[int]],
    suffix: str,
    *,
    force: bool,
    nbytes: int,
) -> None:
    with StagedFolder(report.output, sources=source.paths, force=force, nbytes=nbytes) as folder:
        names = SafeNames()
        for split, shards in (splits or {"": list(range(len(source.paths)))}).items():
            name = names.take(safe_part(split or "data") + suffix, otherwise=f"data{suffix}")
            with folder.open(name) as file:
                write(source, file, shards)
            folder.count(name)
        folder.commit()
        report.files, report.nbytes = folder.files, folder.nbytes


class _Counted:
    """Standard output, with what was written to it counted."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.nbytes = 0

    def write(self, data: bytes) -> int:
        self.nbytes += len(data)
        return self._file.write(data)
