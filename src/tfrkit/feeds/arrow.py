"""Arrow: a dataset as a stream of record batches for any Arrow library. No Arrow library is needed here."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from tfrkit import _native
from tfrkit.codec.decode import Batch
from tfrkit.errors import CodecError, SchemaError, ShapeError
from tfrkit.features.arrow_schema import ArrowField, ArrowType, print_arrow_schema, to_arrow_fields
from tfrkit.features.schema import Schema, show_name
from tfrkit.feeds.arrow_layout import Node, lay_out_columns

MakeBatches = Callable[[], Iterator[Batch]]
"""Starts a new pass over the batches."""

_Description = tuple[bytes, bytes, bytes, bool, tuple[Any, ...]]


class ArrowStream:
    """A dataset as an Arrow stream, by the PyCapsule protocol.

    Pass it to ``pyarrow.table``, ``pyarrow.RecordBatchReader.from_stream``, ``polars.DataFrame``,
    ``pandas.DataFrame.from_arrow``, or name the variable in DuckDB's SQL. Nothing is read before that. Each consumer
    starts a new pass, so a stream can have any number of consumers, on any thread.

    Numbers and bytes are not copied. Absent and unset features are null. Facts that Arrow's types do not express (class
    names, whether bytes are an image) are JSON in the metadata of a field, under ``tfrkit.feature``. Damage raises the
    consumer's own exception with tfrkit's message, which names shard, record and byte.
    """

    def __init__(self, make_batches: MakeBatches, schema: Schema) -> None:
        if schema.kind not in ("example", "sequence_example") and len(schema):
            raise CodecError(f"expected records that are Examples, got {schema.kind} records")
        self._make_batches = make_batches
        self._schema = schema
        self._fields = to_arrow_fields(schema)

    @property
    def schema(self) -> Schema:
        """Schema of the batches."""
        return self._schema

    def batches(self) -> Iterator[Batch]:
        """Start a new pass over the batches before conversion to Arrow."""
        return self._make_batches()

    def __arrow_c_schema__(self) -> object:
        return _native.make_arrow_schema(self._description)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Start a pass. A requested schema is ignored, as the protocol allows."""
        return _native.make_arrow_stream(self._description, self._lay_out_batches())

    def __repr__(self) -> str:
        columns = print_arrow_schema(self._schema).replace("\n", "\n  ")
        return f"ArrowStream(\n  {columns}\n)" if columns else "ArrowStream()"

    @cached_property
    def _description(self) -> _Description:
        children = tuple(_describe_field(field) for field in self._fields)
        return b"+s", b"", b"", False, children

    def _lay_out_batches(self) -> Iterator[Node]:
        first_row = 0
        is_sequence = self._schema.kind == "sequence_example"
        for batch in self._make_batches():
            if not self._fields:
                raise SchemaError(
                    "no record has a feature, and Arrow has no rows without columns",
                    hint="count the records: len(ds)",
                )
            node = self._lay_out_structs(batch, first_row) if is_sequence else self._lay_out_rows(batch, first_row)
            yield node
            first_row += node[0]

    def _lay_out_rows(self, batch: Batch, first_row: int) -> Node:
        return _to_struct(lay_out_columns(batch, self._fields, first_row), self._fields)

    def _lay_out_structs(self, batch: Mapping[str, Batch], first_row: int) -> Node:
        nodes = []
        for field in self._fields:
            columns = lay_out_columns(batch[field.name], field.type.fields, first_row)
            nodes.append(_to_struct(columns, field.type.fields))
        return _to_struct(nodes, self._fields)


def to_arrow(make_batches: MakeBatches, schema: Schema) -> ArrowStream:
    """Return the batches as an Arrow stream; nothing is read yet.

    `make_batches` is called once for each pass. `schema` describes the batches: for decoded images, their dtype and
    shape (``encoding="raw"``).

    Example:
        >>> stream = to_arrow(lambda: ds.batch(4096), ds.schema)
        >>> pyarrow.table(stream).num_rows == len(ds)
        True
    """
    return ArrowStream(make_batches, schema)


@contextmanager
def with_own_errors(stream: ArrowStream) -> Iterator[ArrowStream]:
    """Lend the stream to a consumer; tfrkit's own errors are raised unchanged, not as the consumer's exceptions."""
    watched = _WatchedStream(stream.batches, stream.schema)
    try:
        yield watched
    except BaseException:
        if watched.error is not None:
            raise watched.error from None
        raise


class _WatchedStream(ArrowStream):
    """A stream that keeps its first error, also SIGTERM's, of which a consumer knows only the text."""

    error: BaseException | None = None

    def _lay_out_batches(self) -> Iterator[Node]:
        try:
            yield from super()._lay_out_batches()
        except GeneratorExit:
            raise
        except BaseException as error:
            self.error = self.error or error
            raise


def _to_struct(nodes: Sequence[Node], fields: Sequence[ArrowField]) -> Node:
    num_rows = nodes[0][0]
    for node, field in zip(nodes, fields, strict=True):
        if node[0] != num_rows:
            first, other = (show_name(name, quotes=False) for name in (fields[0].name, field.name))
            raise ShapeError(f"columns of a batch differ in length, {num_rows} of {first}, {node[0]} of {other}")
    return num_rows, 0, (None,), tuple(nodes)


def _describe_field(field: ArrowField) -> _Description:
    return _describe_type(field.type, field.name, field.metadata, field.nullable)


def _describe_type(arrow_type: ArrowType, name: str, metadata: Mapping[str, str], nullable: bool) -> _Description:
    children = tuple(_describe_field(field) for field in arrow_type.fields)
    if arrow_type.item is not None:
        children = (_describe_type(arrow_type.item, "item", {}, True),)
    return arrow_type.format.encode(), name.encode(), _pack_metadata(metadata), nullable, children


def _pack_metadata(metadata: Mapping[str, str]) -> bytes:
    """Encode metadata for the C data interface: 32-bit counts and lengths in the machine's byte order."""
    if not metadata:
        return b""
    packed = struct.pack("=i", len(metadata))
    for text in (text for pair in metadata.items() for text in pair):
        encoded = text.encode()
        packed += struct.pack("=i", len(encoded)) + encoded
    return packed
