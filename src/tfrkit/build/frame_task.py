"""A shard of rows that come as finished frames: made by threads, written and hashed in order by others.

Where a reader gives frames, all work is native and lets go of the interpreter, so threads keep every processor busy,
start at once, and write each byte once. How many there are changes nothing in the shard.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfrkit._ahead import map_ahead
from tfrkit._types import Int64Array, UInt64Array
from tfrkit.build.journal import ShardResult, write_done
from tfrkit.build.task import ShardTask, Tick
from tfrkit.container.locate import save_known_index
from tfrkit.storage.resolve import open_writer

# Frames are made in blocks of about this size, which stay in the cache until they are written and hashed.
_BLOCK_NBYTES = 1 << 20
_MAX_ROWS = 1 << 13
# A shard larger than this is written in parts of about this size, so that a run that is killed loses no more.
_PART_NBYTES = 1 << 30


def count_parts(expected_nbytes: float) -> int:
    """Into how many parts to cut a shard.

    Example:
        >>> count_parts(256e6), count_parts(10e9)
        (1, 10)
    """
    return max(1, -(-int(expected_nbytes) // _PART_NBYTES))


@dataclass(frozen=True)
class FrameTask(ShardTask):
    """A `ShardTask` whose reader gives frames."""

    threads: int = 1

    def run(self, tick: Tick) -> ShardResult:
        """Write the shard, its index and its marker."""
        result = ShardResult(os.path.basename(self.path), num_records=len(self.items))
        reader: Any = self.reader
        output = _Output(self.output)
        try:
            blocks = self._blocks(reader.row_nbytes)
            made = map_ahead(reader.open_framer(self.keys), blocks, threads=self.threads)
            with contextlib.closing(made):
                for frames, starts in made:
                    output.write(frames, starts)
                    tick(len(starts), 0, 0)
            result.nbytes, result.sha256 = output.commit(index=self.num_parts == 1)
        except BaseException:
            output.discard()
            raise
        write_done(self.output, result)
        return result

    def _blocks(self, row_nbytes: float) -> Iterator[Int64Array]:
        """Numbers of the items, in groups whose frames make about a block."""
        numbers = self.items.numbers
        # A frame has names and lengths beside its values: about as much again.
        num_rows = max(1, min(_MAX_ROWS, int(_BLOCK_NBYTES / (2 * row_nbytes + 1))))
        for start in range(0, len(numbers), num_rows):
            yield numbers[start : start + num_rows]


class _Output:
    """The file of a shard, its checksum and where its frames start."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._writer = open_writer(path)
        self._digest = hashlib.sha256()
        self._offsets: list[UInt64Array] = []
        self._nbytes = 0

    def write(self, frames: Any, starts: UInt64Array) -> None:
        """Append frames."""
        self._writer.write(frames.data)
        self._digest.update(frames.data)
        self._offsets.append(starts + np.uint64(self._nbytes))
        self._nbytes += len(frames)

    def commit(self, *, index: bool) -> tuple[int, str]:
        """Make the file appear, with its index if asked for: its size and its checksum."""
        self._writer.commit()
        if index:
            save_known_index(self._path, np.concatenate(self._offsets or [np.empty(0, np.uint64)]))
        return self._nbytes, self._digest.hexdigest()

    def discard(self) -> None:
        """Give up: nothing appears."""
        self._writer.discard()
