"""Write a shard whose reader returns frames: threads encode them, and they are written and hashed in order.

Encoding frames is native code that releases the interpreter lock, so threads use every core, start immediately and
write each byte once. The bytes of the shard do not depend on the number of threads.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tfrkit._limits import LIMITS
from tfrkit._threads import map_ahead
from tfrkit._types import Int64Array
from tfrkit.build.journal import ShardResult, write_done
from tfrkit.build.task import ShardTask
from tfrkit.container.writer import ShardWriter
from tfrkit.engines.base import Tick
from tfrkit.storage.resolve import open_writer

# Frames are encoded in blocks of about this size, which stay in the CPU cache until they are written and hashed.
_BLOCK_NBYTES = 1 << 20


def count_parts(expected_nbytes: float) -> int:
    """Return the number of parts to cut a shard into.

    Example:
        >>> count_parts(256e6), count_parts(10e9)
        (1, 10)
    """
    return max(1, -(-int(expected_nbytes) // LIMITS.part_nbytes))


@dataclass(frozen=True)
class FrameTask(ShardTask):
    """A `ShardTask` whose reader returns frames."""

    threads: int = 1

    def run(self, tick: Tick) -> ShardResult:
        """Write the shard, its index and its marker."""
        result = ShardResult(os.path.basename(self.path), num_records=len(self.items))
        reader: Any = self.reader
        digest, is_whole = hashlib.sha256(), self.num_parts == 1
        with ShardWriter(open_writer(self.output), digest=digest, index=is_whole) as shard:
            blocks = self._blocks(reader.row_nbytes)
            made = map_ahead(reader.open_framer(self.keys), blocks, threads=self.threads)
            with contextlib.closing(made):
                for frames, starts in made:
                    shard.write(frames.data, starts)
                    tick(len(starts), 0, 0)
            shard.commit()
        if is_whole:
            shard.save_index()
        result.nbytes, result.sha256 = shard.num_bytes, digest.hexdigest()
        write_done(self.output, result)
        return result

    def _blocks(self, row_nbytes: float) -> Iterator[Int64Array]:
        """Yield the item numbers in groups whose frames fill about one block."""
        numbers = self.items.numbers
        # In addition to its values a frame has names and lengths, which take about as much space again.
        num_rows = max(1, min(LIMITS.frame_rows, int(_BLOCK_NBYTES / (2 * row_nbytes + 1))))
        for start in range(0, len(numbers), num_rows):
            yield numbers[start : start + num_rows]
