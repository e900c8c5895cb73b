"""Shared part of the table exports: chooses the records of each file, and writes all files or none."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO

from tfrkit.errors import StorageError
from tfrkit.ops.export.input import ExportInput
from tfrkit.ops.export.names import SafeNames, safe_part
from tfrkit.ops.export.pieces import Pieces, WriteLines
from tfrkit.ops.export.report import Export
from tfrkit.outputs.staging import StagedFile, StagedFolder
from tfrkit.outputs.stored import open_file, open_folder
from tfrkit.passes.shard_tasks import Finish, OnEngine, connect_if
from tfrkit.progress import Progress
from tfrkit.storage.resolve import Address, show_address

WriteTable = Callable[[ExportInput, BinaryIO, Sequence[int] | None], None]
"""Writes the records of the given shards (None: all) into a file."""


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
    lines: WriteLines | None = None,
    select: Sequence[str] | None = None,
    cluster: OnEngine | None = None,
) -> Export:
    """Write one file, or one per split if `output` is a folder or ends in a slash.

    `growth` is the approximate size of the output by that of the records. With `to_stdout`, "-" is standard output.
    With a cluster, workers write the `lines` of the features `select`, and `write` only what comes before them.
    """
    target = show_address(output)
    if target == "-" and not to_stdout:
        raise StorageError(f"cannot write {kind} to standard output", hint="name a file as output")
    if cluster is not None and target == "-":
        raise StorageError(f"cannot write {kind} of workers to standard output", hint="name a file as output")
    with (
        connect_if(cluster) as workers,
        ExportInput(address, progress, incomplete=incomplete, workers=workers) as source,
    ):
        report = Export(kind, target)
        nbytes = int(source.nbytes * growth) * (1 if workers is None else 2)
        splits = source.splits
        source.begin()
        if target == "-":
            counted = _CountedStdout(sys.stdout.buffer)
            write(source, counted, None)  # type: ignore[arg-type]
            sys.stdout.buffer.flush()
            report.files, report.nbytes = 1, counted.nbytes
        else:
            is_folder = target.endswith(os.sep) or os.path.isdir(target)
            names = SafeNames()
            parts: dict[str, Sequence[int] | None] = {"": None}
            if is_folder:
                parts = {
                    names.take(safe_part(split or "data") + f".{kind}", otherwise=f"data.{kind}"): shards
                    for split, shards in (splits or {"": list(range(len(source.paths)))}).items()
                }
            stage: Callable[..., StagedFile | StagedFolder] = open_folder if is_folder else open_file
            with contextlib.ExitStack() as stack:

                def open_staged(ending: Finish) -> StagedFile | StagedFolder:
                    staged = stage(target, sources=source.paths, force=force or ending.is_repeated, nbytes=nbytes)
                    stack.callback(staged.discard)
                    ending.begin()
                    return staged

                pieces = None
                if workers is None or lines is None:
                    staged = open_staged(Finish())
                elif workers.keeps_files:  # the output begins when the pieces of all parts are there
                    pieces = stack.enter_context(Pieces(source, workers, target, lines, select))
                    pieces.make()
                    staged = open_staged(stack.enter_context(workers.finish()))
                else:
                    staged = open_staged(Finish())
                    pieces = stack.enter_context(Pieces(source, workers, target, lines, select))
                    pieces.make()
                for name, shards in parts.items():
                    with staged.open(name) as file:
                        write(source, file, [] if pieces is not None else shards)
                        if pieces is not None:
                            pieces.copy(file, shards)
                staged.commit()
                report.files, report.nbytes = staged.files, staged.nbytes
            if len(splits) > 1 and not is_folder:
                listed = ", ".join(name or "no split" for name in splits)
                report.notes.append(f"all splits are in one file: {listed}; a folder as output gives one file for each")
        source.end()
        report.records = source.num_records
        return report


class _CountedStdout:
    """Standard output that counts the bytes written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.nbytes = 0

    def write(self, data: bytes) -> int:
        self.nbytes += len(data)
        return self._file.write(data)
