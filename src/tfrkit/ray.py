"""TFRecords in Ray Data, without TensorFlow: `ray.data.read_datasource(tfrkit.ray.TFRecords("train/"))`.

Needs Ray Data: pip install 'ray[data]'. Importing this module imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from tfrkit._types import OnError, Verify
from tfrkit.codec.coerce import Floats
from tfrkit.container.codecs import CompressionWord, read_compression
from tfrkit.exchange.parts import PartsOutput, WrittenPart
from tfrkit.exchange.shard_reads import ShardReads
from tfrkit.features.schema import Schema
from tfrkit.outputs.target import require_output
from tfrkit.storage.resolve import Address, show_address

try:
    import pyarrow
    import ray.data as ray_data
    from ray.data.block import BlockAccessor, BlockMetadata
except ImportError as error:
    raise ImportError(f"{error}\n  install Ray Data: pip install 'ray[data]'") from None

__all__ = ["TFRecords", "TFRecordsSink"]

# Ray Data works best with blocks up to 128 MB.
_BLOCK_NBYTES = 64 << 20


class TFRecords(ray_data.Datasource):  # type: ignore[misc]
    """A dataset of TFRecord files as a source of Ray Data; each task reads whole shards.

    Columns have the types of `Dataset.to_arrow`, found once, on the driver: a feature that only some records have is a
    column of all blocks. Arguments are those of `tfrkit.open`.

    Example:
        >>> ds = ray.data.read_datasource(tfrkit.ray.TFRecords("train-*.tfrecord", features=["image", "label"]))
    """

    def __init__(
        self,
        address: Address | Iterable[Address],
        *,
        features: Sequence[str] | None = None,
        schema: Schema | Mapping[str, Any] | None = None,
        verify: Verify = "all",
        on_error: OnError = "raise",
        storage: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._reads = ShardReads.of(
            address, features=features, schema=schema, verify=verify, on_error=on_error, storage=storage
        )

    def estimate_inmemory_data_size(self) -> int | None:
        """Return the size of the files, which is about that of the columns."""
        return sum(self._reads.nbytes)

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[Any]:
        """Return a task for each shard, or for some neighbouring shards if `parallelism` is lower."""
        reads = self._reads
        number = max(1, min(parallelism, len(reads.paths)))
        cuts = [len(reads.paths) * at // number for at in range(number + 1)]
        return [
            ray_data.ReadTask(
                _make_read(reads, reads.paths[start:stop]),
                BlockMetadata(
                    num_rows=None if reads.counts is None else sum(reads.counts[start:stop]),
                    size_bytes=sum(reads.nbytes[start:stop]),
                    input_files=list(reads.paths[start:stop]),
                    exec_stats=None,
                ),
                per_task_row_limit=per_task_row_limit,
            )
            for start, stop in pairwise(cuts)
        ]


class TFRecordsSink(ray_data.Datasink):  # type: ignore[misc]
    """Writes a dataset of Ray Data as TFRecord files with an index and a manifest; all of them appear, or none.

    All nodes see the folder `path` at the same place. Each task writes one shard; Ray Data decides on their number
    (`ds.repartition(8)`). A null is an absent feature.

    Args:
        path: The folder to write.
        compression: "none", "gzip", "zlib", "xz" or "zstd".
        floats: What to do with floats that float32 cannot represent; see `tfrkit.Writer`.
        force: Replace an existing dataset.

    Example:
        >>> ds.write_datasink(tfrkit.ray.TFRecordsSink("out/"))
    """

    def __init__(
        self, path: Any, *, compression: CompressionWord = "none", floats: Floats = "ask", force: bool = False
    ) -> None:
        self._path = show_address(path)
        require_output(self._path, force=force)
        self._compression = read_compression(compression) or "none"
        self._floats: Floats = floats
        self._force = force
        self._output: PartsOutput | None = None

    def on_write_start(self, schema: Any = None) -> None:
        """Make a hidden folder for the tasks."""
        self._begin()

    def _begin(self) -> PartsOutput:
        if self._output is None:
            self._output = PartsOutput.begin(
                self._path, compression=self._compression, floats=self._floats, force=self._force
            )
        return self._output

    def write(self, blocks: Iterable[Any], ctx: Any) -> WrittenPart | None:
        """Write the blocks of one task as one shard."""
        return self._begin().write(ctx.task_idx, (BlockAccessor.for_block(block).to_arrow() for block in blocks))

    def on_write_complete(self, write_result: Any) -> None:
        """Move the shards into place."""
        self._begin().commit([part for part in write_result.write_returns if part is not None], "ray")

    def on_write_failed(self, error: Exception) -> None:
        """Remove what tasks have written."""
        if self._output is not None:
            self._output.abort()

    def get_name(self) -> str:
        """Return the name of the write tasks."""
        return "TFRecords"


def _make_read(reads: ShardReads, paths: Sequence[str]) -> Callable[[], Iterator[Any]]:
    return partial(_read_tables, reads, list(paths))


def _read_tables(reads: ShardReads, paths: Sequence[str]) -> Iterator[Any]:
    """Yield tables of some megabytes, made of neighbouring record batches."""
    held: list[Any] = []
    nbytes = 0
    for batch in reads.read(paths):
        held.append(batch)
        nbytes += batch.nbytes
        if nbytes >= _BLOCK_NBYTES:
            yield pyarrow.Table.from_batches(held)
            held, nbytes = [], 0
    if held:
        yield pyarrow.Table.from_batches(held)
