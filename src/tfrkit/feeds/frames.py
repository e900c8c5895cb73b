"""Data frames of pandas and polars."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrkit._optional import import_or_explain
from tfrkit.codec.columns import BytesColumn, Column
from tfrkit.codec.decode import Batch, Decoder
from tfrkit.features.arrow_schema import find_type, may_be_missing
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.feeds.arrow import ArrowStream, with_own_errors
from tfrkit.feeds.arrow_layout import Array, Mask, MisfitError, spread, unwrap_optional

if TYPE_CHECKING:
    import pandas
    import polars


def to_polars(stream: ArrowStream) -> polars.DataFrame:
    """Read the whole dataset into a polars DataFrame, through Arrow, without copying numbers.

    Lists become List, or Array if of a fixed size; context and feature_lists of SequenceExamples become Struct columns.
    """
    polars = import_or_explain("polars", "polars")
    with with_own_errors(stream) as own:
        return polars.DataFrame(own)


def to_pandas(stream: ArrowStream) -> pandas.DataFrame:
    """Read the whole dataset into a pandas DataFrame; pyarrow is not needed.

    A feature with one number per row becomes a column of its dtype, or of a nullable dtype (Int64, Float32, boolean) if
    it may be missing: an integer never becomes a float. Text is str. All others become object columns with the values
    of rows: bytes, arrays, lists of bytes, lists of steps; None if the feature is absent or unset.

    Features of SequenceExamples keep their names; a feature list with the name of a context feature is called
    ``feature_lists.<name>``.
    """
    pandas = import_or_explain("pandas", "pandas")
    gathered = list(_name_columns(stream.schema))
    for batch in stream.batches():
        for column in gathered:
            column.add(batch)
    return pandas.DataFrame({column.name: column.finish(pandas) for column in gathered}, copy=False)


def _name_columns(schema: Schema) -> Iterator[_FrameColumn]:
    part = "context" if schema.kind == "sequence_example" else None
    for name, spec in schema.features.items():
        yield _make_column(name, name, spec, part)
    for name, spec in schema.feature_lists.items():
        own_name = f"feature_lists.{name}" if name in schema.features else name
        yield _make_column(own_name, name, spec, "feature_lists")


def _make_column(name: str, feature: str, spec: Spec, part: str | None) -> _FrameColumn:
    kind = _NumberColumn if find_type(spec).dtype is not None else _ObjectColumn
    return kind(name, feature, spec, part)


class _FrameColumn:
    """Collects one column of a DataFrame, batch by batch."""

    def __init__(self, name: str, feature: str, spec: Spec, part: str | None) -> None:
        self.name = name
        self._num_rows = 0
        self._feature = feature
        self._spec = spec
        self._part = part

    def add(self, batch: Batch) -> None:
        columns = batch if self._part is None else batch[self._part]
        column = columns[self._feature]
        try:
            self._add_column(column)
        except MisfitError as error:
            raise error.explain(self._feature, self._num_rows) from None
        self._num_rows += len(column)

    def finish(self, pandas: Any) -> Any:
        raise NotImplementedError

    def _add_column(self, column: Column) -> None:
        raise NotImplementedError


class _NumberColumn(_FrameColumn):
    """A column with at most one number per row."""

    def __init__(self, name: str, feature: str, spec: Spec, part: str | None) -> None:
        super().__init__(name, feature, spec, part)
        self._values: list[Array] = [np.empty(0, find_type(spec).dtype)]
        self._masks: list[Mask] = [np.empty(0, np.bool_)]

    def _add_column(self, column: Column) -> None:
        values, mask = unwrap_optional(self._spec, column)
        values = np.asarray(values, self._values[0].dtype)
        self._values.append(values if mask is None else spread(values, mask))
        self._masks.append(np.ones(len(column), np.bool_) if mask is None else mask)

    def finish(self, pandas: Any) -> Any:
        values = np.concatenate(self._values)
        if not may_be_missing(self._spec):
            return values
        is_missing = ~np.concatenate(self._masks)
        if values.dtype.kind == "b":
            return pandas.arrays.BooleanArray(values, is_missing)
        if values.dtype.kind != "f":
            return pandas.arrays.IntegerArray(values, is_missing)
        # pandas has no nullable float16; float32 represents all its values.
        wide = values.astype(np.float32) if values.dtype.itemsize == 2 else values
        return pandas.arrays.FloatingArray(wide, is_missing)


class _ObjectColumn(_FrameColumn):
    """A column with the values of rows as Python objects."""

    def __init__(self, name: str, feature: str, spec: Spec, part: str | None) -> None:
        super().__init__(name, feature, spec, part)
        self._cells: list[Any] = []
        self._is_text = spec.logical == "text" and spec.encoding == "list"
        specs = {feature: spec}
        self._decoder = Decoder(Schema(feature_lists=specs) if spec.is_list else Schema(specs))

    def _add_column(self, column: Column) -> None:
        if isinstance(column, BytesColumn) and column.presence is None:
            self._cells += _read_texts(column) if self._is_text else list(column)
            return
        cells = self._read_cells(column)
        if self._is_text:
            cells = [_to_text(cell, row) for row, cell in enumerate(cells)]
        self._cells += cells

    def _read_cells(self, column: Column) -> list[Any]:
        batch = {self._feature: column}
        if not self._spec.is_list:
            return [row.get(self._feature) for row in self._decoder.rows(batch, len(column))]
        rows = self._decoder.rows({"context": {}, "feature_lists": batch}, len(column))
        return [row["feature_lists"].get(self._feature) for row in rows]

    def finish(self, pandas: Any) -> Any:
        cells = np.fromiter(self._cells, object, len(self._cells))  # np.array would make a matrix of equal lengths
        return pandas.Series(cells) if self._is_text and self._spec.shape == () else pandas.Series(cells, dtype=object)


def _read_texts(column: BytesColumn) -> list[str]:
    start, stop = int(column.offsets[0]), int(column.offsets[-1])
    joined = column.data[start:stop].tobytes()
    if not joined.isascii():
        return [_to_text(cell, row) for row, cell in enumerate(column)]
    # Decoded in one call, because a call per value takes longer than the decoding.
    text = joined.decode("ascii")
    return [text[at:end] for at, end in pairwise((column.offsets - start).tolist())]


def _to_text(cell: Any, row: int) -> Any:
    if isinstance(cell, list):
        return [_to_text(item, row) for item in cell]
    if not isinstance(cell, bytes):
        return cell
    try:
        return cell.decode()
    except UnicodeDecodeError:
        raise MisfitError(row, "expected text, got bytes that are not UTF-8") from None
