"""TFRecords in Apache Spark, without TensorFlow: a Python data source with the short name "tfrecords".

Needs PySpark 4.1 or newer and pyarrow: pip install pyspark pyarrow, on every node. Importing this module imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfrkit.container.codecs import read_compression
from tfrkit.errors import StorageError
from tfrkit.exchange.parts import PartsOutput, WrittenPart
from tfrkit.exchange.shard_reads import ShardReads

try:
    import pyarrow
    import pyarrow.compute
    from pyspark.sql import datasource
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
except ImportError as error:
    raise ImportError(f"{error}\n  install Spark: pip install 'pyspark>=4.1' pyarrow") from None

__all__ = ["TFRecords"]

_OPTIONS = ("path", "verify", "on_error", "push_filters", "compression", "floats")


class TFRecords(datasource.DataSource):  # type: ignore[misc]
    """TFRecord files as a data source of Spark; each task reads or writes one shard.

    Options for reading are verify ("all", "lengths", "none") and on_error ("raise", "skip"), as of `tfrkit.open`; for
    writing, compression ("none", "gzip", "zlib", "xz", "zstd") and floats ("ask", "float32", "float64"), as of
    `tfrkit.Writer`. The path is a path, a glob, a folder, or a remote address; to write, a folder that all nodes see.
    Mode "overwrite" replaces a dataset; all files appear, or none. A null is an absent feature.

    With the option push_filters="true" and the setting spark.sql.python.filterPushdown.enabled, comparisons of
    integers and texts are applied before rows go to Spark. Then load again to read without a filter: Spark 4.3 keeps
    the filters of `df.filter(...)` and applies them when the same `df` is read as a whole, for any Python data source.

    Example:
        >>> spark.dataSource.register(tfrkit.spark.TFRecords)
        >>> spark.read.format("tfrecords").load("train/").filter("label = 3").count()
        >>> df.write.format("tfrecords").mode("overwrite").save("out/")
    """

    @classmethod
    def name(cls) -> str:
        """Return the short name."""
        return "tfrecords"

    def schema(self) -> Any:
        """Return the columns: the features of the records."""
        return from_arrow_schema(self._open().describe())

    def reader(self, schema: Any) -> SparkReader:
        """Return a reader of the columns of `schema`."""
        pushes = str(self._read_options().get("push_filters", "false")).lower() == "true"
        return SparkReader(self._open(schema.names), to_arrow_schema(schema), pushes)

    def writer(self, schema: Any, overwrite: bool) -> SparkWriter:
        """Return a writer; raises if the output exists and is not to be replaced."""
        options = self._read_options()
        compression = read_compression(options.get("compression", "none")) or "none"
        floats: Any = options.get("floats", "ask")
        return SparkWriter(PartsOutput.begin(self._path(), compression=compression, floats=floats, force=overwrite))

    def _open(self, features: Sequence[str] | None = None) -> ShardReads:
        options = self._read_options()
        verify: Any = options.get("verify", "all")
        on_error: Any = options.get("on_error", "raise")
        return ShardReads.of(self._path(), features=features, verify=verify, on_error=on_error)

    def _path(self) -> str:
        path: str | None = self._read_options().get("path")
        if path is None:
            raise StorageError("expected a path", hint='name it: .load("train/") or .save("out/")')
        return path.removeprefix("file:")

    def _read_options(self) -> Mapping[str, Any]:
        unknown = sorted(name for name in self.options if name not in _OPTIONS)
        if unknown:
            raise ValueError(f"option expected one of {', '.join(_OPTIONS)}, got {unknown[0]!r}")
        return {name: self.options[name] for name in _OPTIONS if self.options.get(name) is not None}


class ShardPartition(datasource.InputPartition):  # type: ignore[misc]
    """One shard."""

    def __init__(self, path: str) -> None:
        super().__init__(path)


class SparkReader(datasource.DataSourceReader):  # type: ignore[misc]
    """Reads shards as record batches with the types that Spark expects."""

    def __init__(self, reads: ShardReads, schema: Any, pushes: bool) -> None:
        self._reads = reads
        self._schema = schema
        self._pushes = pushes
        self._filters: list[Any] = []

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Take the filters that mean the same here as in Spark; return the others."""
        for one in filters:
            if not self._pushes or _make_mask(one, self._schema) is None:
                yield one
            else:
                self._filters.append(one)

    def partitions(self) -> Sequence[Any]:
        """Return the shards."""
        return [ShardPartition(path) for path in self._reads.paths]

    def read(self, partition: Any) -> Iterator[Any]:
        """Yield the record batches of a shard."""
        masks = [mask for one in self._filters if (mask := _make_mask(one, self._schema)) is not None]
        for batch in self._reads.read([partition.value], self._schema.names):
            columns = [batch.column(name).cast(self._schema.field(name).type) for name in self._schema.names]
            made = pyarrow.record_batch(columns, schema=self._schema)
            for mask in masks:
                made = made.filter(mask(made))
            if made.num_rows:
                yield made


Mask = Callable[[Any], Any]
"""(record batch) → the rows to keep, as an array of booleans or nulls."""

_COMPARISONS = {
    "EqualTo": "equal",
    "GreaterThan": "greater",
    "GreaterThanOrEqual": "greater_equal",
    "LessThan": "less",
    "LessThanOrEqual": "less_equal",
}
_TEXTS = {"StringStartsWith": "starts_with", "StringEndsWith": "ends_with", "StringContains": "match_substring"}


def _make_mask(given: Any, schema: Any) -> Mask | None:
    """Return the function of a filter; None if Spark has to apply it.

    Only integers and texts are compared here: Spark has an order of its own for NaN, and one of bytes.
    """
    kind, compute = type(given).__name__, pyarrow.compute
    if kind == "Not":
        inner = _make_mask(given.child, schema)
        return None if inner is None else lambda batch: compute.invert(inner(batch))
    path: Any = getattr(given, "attribute", ())
    if len(path) != 1 or path[0] not in schema.names:
        return None
    column, stored = path[0], schema.field(path[0]).type
    if kind == "IsNull":
        return lambda batch: batch.column(column).is_null()
    if kind == "IsNotNull":
        return lambda batch: batch.column(column).is_valid()
    wanted = {int} if pyarrow.types.is_integer(stored) else {str} if pyarrow.types.is_string(stored) else set()
    values = list(given.value) if kind == "In" else [getattr(given, "value", None)]
    if not values or {type(value) for value in values} - wanted:
        return None
    if kind in _COMPARISONS:
        compare = getattr(compute, _COMPARISONS[kind])
        return lambda batch: compare(batch.column(column), pyarrow.scalar(values[0], stored))
    if kind in _TEXTS and wanted == {str}:
        match = getattr(compute, _TEXTS[kind])
        return lambda batch: match(batch.column(column), values[0])
    if kind == "In":
        # A null is neither in nor outside of the values.
        return lambda batch: compute.if_else(
            batch.column(column).is_valid(), compute.is_in(batch.column(column), pyarrow.array(values, stored)), None
        )
    return None


@dataclass
class SparkMessage(datasource.WriterCommitMessage):  # type: ignore[misc]
    """The result of a task; None if it had no rows."""

    part: WrittenPart | None


class SparkWriter(datasource.DataSourceArrowWriter):  # type: ignore[misc]
    """Writes one shard per task."""

    def __init__(self, output: PartsOutput) -> None:
        self._output = output

    def write(self, iterator: Iterator[Any]) -> SparkMessage:
        """Write the record batches of a task."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        return SparkMessage(self._output.write(context.partitionId(), map(_to_table, iterator)))

    def commit(self, messages: list[Any]) -> None:
        """Move the shards into place."""
        self._output.commit([one.part for one in messages if one is not None and one.part is not None], "spark")

    def abort(self, messages: list[Any]) -> None:
        """Remove what tasks have written."""
        self._output.abort()


def _to_table(batch: Any) -> Any:
    return pyarrow.Table.from_batches([batch])
