"""Lines of text that the workers of a cluster write, a piece per shard; this process puts the pieces together."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from tfrkit.engines.base import Tick
from tfrkit.ops.export.input import ExportInput, KnownInput
from tfrkit.passes.shard_tasks import Workers
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import explain_os_error
from tfrkit.storage.inputs import open_input
from tfrkit.storage.temporaries import make_scratch
from tfrkit.storage.work_folder import put_shared

WriteLines = Callable[[ExportInput, BinaryIO, Sequence[int] | None, Sequence[str] | None], None]
"""Writes the records of the given shards (None: all), with the given features (None: all), as lines."""

_COPY_NBYTES = 8 << 20


@dataclass(frozen=True)
class PieceTask:
    """Writes the lines of one shard; `write` is a function of a module, which is pickled by its name."""

    path: str
    folder: str
    number: int
    known: KnownInput
    write: WriteLines
    select: tuple[str, ...] | None

    def run(self, tick: Tick) -> str:
        """Return the name of the piece. It appears whole, so that the task may run twice at a time."""
        name = str(self.number)
        with contextlib.ExitStack() as stack:
            folder = self.folder
            if has_scheme(folder):
                folder = stack.enter_context(make_scratch("tfrkit-export"))
            hidden = os.path.join(folder, f"{name}.{secrets.token_hex(8)}")
            try:
                with ExportInput.of_shard(self.path, self.known) as source, open(hidden, "wb") as file:
                    self.write(source, file, None, self.select)
                put_shared(hidden, os.path.join(self.folder, name))
            except OSError as error:
                raise explain_os_error(error, hidden, verb="write") from None
        tick(self.known.num_records, self.known.nbytes, 0)
        return name


class Pieces:
    """The lines of all shards of an input, written by workers into a hidden folder next to the output.

    A context manager: on exit the folder is removed.
    """

    def __init__(
        self, source: ExportInput, workers: Workers, target: str, write: WriteLines, select: Sequence[str] | None
    ) -> None:
        self._source = source
        self._workers = workers
        self._write = write
        self._select = None if select is None else tuple(select)
        name = target.rstrip("/")
        self._folder = workers.make_folder(
            os.path.dirname(name if has_scheme(name) else os.path.abspath(name)),
            (target, write, self._select),
            reads=source.paths,
            is_leased=False,
        )

    def __enter__(self) -> Pieces:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.__exit__()

    def make(self) -> None:
        """Let workers write the pieces."""
        folder = self._folder.path
        tasks = [
            PieceTask(path, folder, number, self._source.know(number), self._write, self._select)
            for number, path in enumerate(self._source.paths)
        ]
        for _ in self._workers.run(tasks, self._source.advance, sees=[folder]):
            pass

    def copy(self, file: BinaryIO, shards: Sequence[int] | None) -> None:
        """Append the pieces of the given shards (None: all) to a file."""
        for number in range(len(self._source.paths)) if shards is None else shards:
            path = os.path.join(self._folder.path, str(number))
            try:
                with open_input(path) as piece:
                    shutil.copyfileobj(piece, file, _COPY_NBYTES)
                if not has_scheme(path) and not self._workers.keeps_files:
                    os.unlink(path)
            except OSError as error:
                raise explain_os_error(error, path, verb="read") from None
