"""The shards of an output while they are being written."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from tfrkit.container.codecs import Compression, Level
from tfrkit.outputs.shard import OutputThreads, ShardOutput, Written


class OutShard(NamedTuple):
    """A shard to write. If `num_records` is known, the shard is finished as soon as it has that many.

    `compression` is set if it differs from that of the output.
    """

    name: str
    split: str | None = None
    num_records: int | None = None
    compression: Compression | None = None


class Outputs:
    """The shards of one output while they are being written.

    A context manager: on exit it stops the threads and closes open files. Messages use the path that `final` returns
    for the name of a shard.
    """

    def __init__(
        self,
        shards: Sequence[OutShard],
        threads: OutputThreads,
        *,
        folder: str,
        compression: Compression = "none",
        level: Level = "default",
        final: Callable[[str], str] | None = None,
        descriptor: int | None = None,
        then: Callable[[str], None] | None = None,
    ) -> None:
        self.folder = folder
        self.threads = threads
        self._shards = shards
        self._open: dict[int, ShardOutput] = {}
        self._ended: dict[int, ShardOutput] = {}
        self._compression: Compression = compression
        self._final = final or partial(os.path.join, folder)
        self._options: dict[str, Any] = {"level": level, "descriptor": descriptor, "then": then}

    def __enter__(self) -> Outputs:
        return self

    def __exit__(self, *_: object) -> None:
        self.threads.close()
        for output in (*self._open.values(), *self._ended.values()):
            output.discard()

    def put(self, number: int, frames: Any) -> None:
        """Append whole frames to a shard. The buffer must not be changed afterwards."""
        output = self._get(number)
        output.write(frames)
        if output.tally.num_records == self._shards[number].num_records:
            self._end(number)

    def put_last(self, number: int, frames: Any) -> None:
        """Append whole frames to a shard after finishing all earlier shards: for frames fed in shard order."""
        for before in [other for other in self._open if other < number]:
            self._end(before)
        self.put(number, frames)

    def finish(self) -> list[Written]:
        """Finish and return every shard, including empty ones."""
        for number in range(len(self._shards)):
            if number not in self._ended:
                self._get(number)
                self._end(number)
        self.threads.queue.drain()
        written = [self._ended[number].written for number in range(len(self._shards))]
        return [shard for shard in written if shard is not None]

    def _get(self, number: int) -> ShardOutput:
        output = self._open.get(number)
        if output is None:
            if number in self._ended:
                raise RuntimeError(f"shard {self._shards[number].name} is complete already")
            shard = self._shards[number]
            output = self._open[number] = ShardOutput(
                os.path.join(self.folder, shard.name),
                self.threads,
                compression=shard.compression or self._compression,
                name=self._final(shard.name),
                **self._options,
            )
        return output

    def _end(self, number: int) -> None:
        self._ended[number] = output = self._open.pop(number)
        output.finish()
