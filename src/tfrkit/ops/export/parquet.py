"""Export as Parquet: the Arrow stream of tfrkit, written in row groups of bounded size."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Literal

from tfrkit._limits import LIMITS
from tfrkit._optional import import_or_explain
from tfrkit.codec.decode import Batch
from tfrkit.errors import Hint, SchemaError, Step
from tfrkit.feeds.arrow import ArrowStream, to_arrow, with_own_errors
from tfrkit.ops.export.input import ExportInput
from tfrkit.ops.export.report import Export
from tfrkit.ops.export.tables import export_table
from tfrkit.progress import Progress
from tfrkit.storage.resolve import Address

ParquetCompression = Literal["zstd", "snappy", "gzip", "lz4", "brotli", "none"]

# A row group is held in memory until it is written.
_GROUP_ROWS = 1 << 20


def export_parquet(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    *,
    select: Sequence[str] | None = None,
    compression: ParquetCompression = "zstd",
    force: bool = False,
    incomplete: bool = False,
    progress: Progress | None = None,
) -> Export:
    """Write a dataset as Parquet: one row per record, one column per feature.

    A varying number of values is a list; an absent or unset feature is null, and an empty list stays an empty list.
    Text is a string, other bytes are binary, and serialized tensors have the type of their values. A SequenceExample
    becomes the structs context and feature_lists. Facts that the type cannot express (class names, that bytes are an
    image) are in the column metadata, under tfrkit.feature. Needs pyarrow. Memory: about 300 MB, for a row group and
    its compression.

    Args:
        address: Path, glob, folder, or a list of these.
        output: The file to write, or a folder for one file per split.
        select: Only these features.
        compression: Compression of the columns.
        force: Replace existing files.
        incomplete: Continue if shards of a set are missing.
        progress: Progress callback.
    """
    arrow: Any = import_or_explain("pyarrow", "arrow")
    parquet: Any = import_or_explain("pyarrow.parquet", "arrow")

    def write(source: ExportInput, file: BinaryIO, shards: Sequence[int] | None) -> None:
        source.require_examples()
        schema = source.schema if select is None else source.schema.select(select)

        def make_batches() -> Iterator[Batch]:
            names = list(schema.names)
            for batch in source.batches(
                names, shards=shards, max_nbytes=LIMITS.parquet_batch_nbytes, max_rows=_GROUP_ROWS
            ):
                yield batch.columns

        stream = to_arrow(make_batches, schema)
        if not len(schema):
            raise SchemaError("expected records with features, got none", shard=source.paths[0])
        try:
            _write_stream(stream, file, compression, arrow, parquet)
        except NotImplementedError as error:
            reason = str(error).splitlines()[0][:200]
            raise SchemaError(
                f"expected types that Parquet can store, got others, {reason}",
                shard=source.paths[0],
                hint=Hint(Step("leave the feature out: {select}", select=[...])),
            ) from None

    return export_table("parquet", address, output, write, force=force, incomplete=incomplete, progress=progress)


def _write_stream(stream: ArrowStream, file: BinaryIO, compression: str, arrow: Any, parquet: Any) -> None:
    with with_own_errors(stream) as watched:
        reader = arrow.RecordBatchReader.from_stream(watched)
        writer = parquet.ParquetWriter(file, reader.schema, compression=compression)
        try:
            for group in _gather(reader):
                writer.write_table(arrow.Table.from_batches(group), row_group_size=_GROUP_ROWS)
            writer.close()
        except BaseException:
            writer.is_open = False  # else it writes its end when it is deleted, to a file that is closed by then
            raise


def _gather(batches: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield batches in groups of about the same size, so that small shards do not become small row groups."""
    group: list[Any] = []
    nbytes = num_rows = 0
    for batch in batches:
        if group and (nbytes + batch.nbytes > LIMITS.parquet_group_nbytes or num_rows + batch.num_rows > _GROUP_ROWS):
            yield group
            group, nbytes, num_rows = [], 0, 0
        group.append(batch)
        nbytes += batch.nbytes
        num_rows += batch.num_rows
    if group:
        yield group
