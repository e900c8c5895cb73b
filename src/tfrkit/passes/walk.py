"""One pass over the frames of shards, in file order; the policy raises, skips or collects damage."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from tfrkit.container.records import NO_LIMIT, Finding, FrameStream, Policy, Read, Stretch
from tfrkit.container.shards import Incomplete, Shard, find_shards, lead_shards
from tfrkit.errors import StorageError, TfrkitError
from tfrkit.storage.lookup import measure_file
from tfrkit.storage.resolve import Address


class CollectPolicy(Policy):
    """Skips damage, and lists each finding with its error, in the order found."""

    def __init__(self) -> None:
        super().__init__("all", "skip")
        self.listed: list[tuple[Finding, TfrkitError]] = []

    def take(self, finding: Finding, error: TfrkitError) -> None:
        self.listed.append((finding, error))


@contextlib.contextmanager
def open_shards(address: Address | Iterable[Address], *, incomplete: Incomplete = "warn") -> Iterator[list[Shard]]:
    """Open the shards of an address; they are closed at the end of the block."""
    shards = Shard.open_all(find_shards(address, incomplete=incomplete))
    try:
        yield shards
    finally:
        for shard in shards:
            shard.close()


def walk_frames(
    shards: Sequence[Shard],
    policy: Policy,
    read: Read,
    max_frames: int = NO_LIMIT,
    max_nbytes: int = NO_LIMIT,
) -> Iterator[Stretch]:
    """Apply `read` to the frames of shards and yield one stretch after the other; see `FrameStream.take`."""
    streams = (FrameStream(shard, policy) for shard in lead_shards(shards))
    return walk_streams(streams, read, max_frames, max_nbytes)


def walk_streams(
    streams: Iterable[FrameStream], read: Read, max_frames: int = NO_LIMIT, max_nbytes: int = NO_LIMIT
) -> Iterator[Stretch]:
    """Like `walk_frames`, for streams that are already open, such as the readable parts of a shard (`Salvage`)."""
    for stream in streams:
        while stretch := stream.take(read, max_frames, max_nbytes):
            yield stretch


def measure_files(paths: Iterable[str]) -> list[int]:
    """Return the size of each file in bytes, for progress; 0 for a pipe or a missing file."""
    sizes = []
    for path in paths:
        try:
            sizes.append(measure_file(path))
        except (OSError, StorageError):
            sizes.append(0)
    return sizes
