"""Write a shard to the disk of the worker, and store it under its final name."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tfrkit.build.journal import ShardResult, drop_done
from tfrkit.build.task import JoinTask, ShardTask
from tfrkit.container.index import INDEX_FOLDER, index_path
from tfrkit.engines.base import Tick
from tfrkit.storage.options import StorageOptions, use_given
from tfrkit.storage.temporaries import make_scratch
from tfrkit.storage.upload import upload_file


@dataclass(frozen=True)
class UploadTask:
    """Writes a shard with `inner`, then stores it at `address`, with its index.

    Equal shards have equal bytes, so any number of workers may do this, more than once.
    """

    inner: ShardTask | JoinTask
    address: str
    stores: Mapping[str, StorageOptions]
    has_own_disk: bool = False
    """Whether the worker is on another machine than `path`, and writes to a scratch folder of its own."""

    @property
    def path(self) -> str:
        """The local file of the shard."""
        return self.inner.path

    @property
    def key(self) -> str:
        """The name of the shard."""
        return self.inner.key

    @property
    def reader(self) -> Any:
        """The reader of the items; an engine looks at where it is defined."""
        return getattr(self.inner, "reader", None)

    def run(self, tick: Tick) -> ShardResult:
        """Write and store the shard; nothing is stored if bad inputs fail the build."""
        use_given(self.stores)
        if self.has_own_disk:
            with make_scratch("tfrkit-shard") as scratch:
                return self._run(replace(self.inner, path=os.path.join(scratch, os.path.basename(self.path))), tick)
        return self._run(self.inner, tick)

    def _run(self, inner: ShardTask | JoinTask, tick: Tick) -> ShardResult:
        os.makedirs(os.path.join(os.path.dirname(inner.path), INDEX_FOLDER), exist_ok=True)
        result = inner.run(tick)
        tick(0, 0, 0)  # ends this process if its parent is gone
        return store_shard(result, inner.path, self.address) if result.sha256 else result


def store_shard(result: ShardResult, path: str, address: str) -> ShardResult:
    """Store a complete shard, its index first, and remove both from the disk; return its result and version."""
    upload_file(index_path(path), index_path(address))
    result.etag = upload_file(path, address) or ""
    result.is_stored = True
    drop_done(path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(index_path(path))
    return result
