"""Conversion of the core's columns to batches and rows, by a schema."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

from tfrkit import _native
from tfrkit._types import Row, Verify
from tfrkit.codec.columns import ABSENT, UNSET, BytesColumn, Column, Ragged, wrap_bytes
from tfrkit.codec.narrow_floats import bits_dtype, widen_floats
from tfrkit.codec.tensor_proto import decode_tensor, tensor_dtype
from tfrkit.errors import CodecError, Hint, ShapeError, Step
from tfrkit.features.schema import Schema, encode_name
from tfrkit.features.spec import Spec
from tfrkit.features.tensor_dtypes import DTYPE_NUMBERS, NARROW_FLOATS, name_value_dtype

Batch = dict[str, Any]
"""Columns by feature name; for SequenceExamples {"context": columns, "feature_lists": columns}."""

_NativeColumn = tuple[Any, Any, Any, Any, Any]


class Decoder:
    """Decodes records of one schema. Share it between threads; make a builder for each.

    `known` is the schema inferred for all records. With it, a record with a feature in neither schema is a fault:
    the schema was inferred from other records. Without it, such features are ignored, as for a schema or a selection of
    features that the caller gave.
    """

    def __init__(self, schema: Schema, *, known: Schema | None = None) -> None:
        if schema.kind not in ("example", "sequence_example"):
            raise CodecError(
                f"expected records that are Examples, got {schema.kind} records",
                hint=Hint(Step("read their bytes: for record in ds.records(): ...", in_python=True)),
            )
        self._schema = schema
        self._is_sequence = schema.kind == "sequence_example"
        self._specs = [*schema.features.items(), *schema.feature_lists.items()]
        for name, spec in self._specs:
            if spec.seen is not None:
                schema.require_one_kind(name)
        self.column_names = [name for name, _ in self._specs]
        self._native_specs = [
            (encode_name(name), spec.kind, spec.is_list, spec.fixed_length) for name, spec in self._specs
        ]

        self._known = None if known is None else _list_others(known, schema)
        self._is_plain = [_is_plain(spec) for _, spec in self._specs]
        self._context_names = [name for name, spec in self._specs if not spec.is_list]
        self._special = [
            (name, spec)
            for (name, spec), is_plain in zip(self._specs, self._is_plain, strict=True)
            if not is_plain and not spec.is_list
        ]

    @property
    def needs_python(self) -> bool:
        """Whether some values are decoded one by one, in Python."""
        return any(
            spec.encoding not in ("list", "raw") or (spec.encoding == "raw" and (None in spec.shape or spec.optional))
            for _, spec in self._specs
        )

    def new_builder(self) -> _native.ColumnBuilder:
        return _native.ColumnBuilder(self._schema.kind, self._native_specs, self._known)

    def new_row_builder(self) -> _native.RowBuilder:
        """Create a builder that makes the same rows as `rows`, without batches."""
        forms = [_find_row_form(name, spec) for name, spec in self._specs]
        specs = [(*spec, form[1] != "python") for spec, form in zip(self._native_specs, forms, strict=True)]
        return _native.RowBuilder(self._schema.kind, specs, self._known, forms, self._make_row_values, _MISSING)

    def _make_row_values(self, index: int, column: _NativeColumn, num_rows: int) -> list[Any]:
        name, spec = self._specs[index]
        collated = _collate_frames(name, spec, column) if spec.is_list else _collate(name, spec, column, num_rows)
        return _row_values(collated, spec)

    def new_engine(
        self,
        *,
        verify: Verify,
        skips: bool,
        threads: int,
        ahead_nbytes: int,
        num_shards: int,
        used: Collection[str] = (),
    ) -> _native.BatchEngine:
        """Create a native engine that makes columns for `assemble`. With 0 threads it runs on the caller's thread.

        Large bytes values of `used` features, which are read in any case, are copied while they are in the cache.
        """
        engine = _native.BatchEngine(
            self._schema.kind,
            self._native_specs,
            self._known,
            self._is_plain,
            verify,
            skips,
            threads,
            ahead_nbytes,
            num_shards,
        )
        engine.copy_values([index for index, (name, _) in enumerate(self._specs) if name in used])
        return engine

    def take_batch(self, builder: _native.ColumnBuilder) -> Batch:
        """Empty a builder into a batch."""
        num_rows = builder.num_rows
        columns = zip(self._is_plain, builder.finish(), strict=True)
        return self.assemble([column[0] if is_plain else column for is_plain, column in columns], num_rows)

    def assemble(self, native: list[Any], num_rows: int) -> Batch:
        """Assemble a batch from the columns of the core."""
        columns = dict(zip(self._context_names, native, strict=False))
        for name, spec in self._special:
            columns[name] = _collate(name, spec, columns[name], num_rows)
        if not self._is_sequence:
            return columns
        lists = {
            name: _collate_frames(name, spec, column)
            for (name, spec), column in zip(self._specs, native, strict=True)
            if spec.is_list
        }
        return {"context": columns, "feature_lists": lists}

    def rows(self, batch: Batch, num_rows: int) -> list[Row]:
        """Return the rows of a batch, with plain Python scalars. Later steps may have made or changed its columns."""
        if not self._is_sequence or batch.keys() != {"context", "feature_lists"}:
            return _rows_of(batch, self._schema.features, num_rows)
        contexts = _rows_of(batch["context"], self._schema.features, num_rows)
        lists = _rows_of(batch["feature_lists"], self._schema.feature_lists, num_rows)
        return [{"context": c, "feature_lists": f} for c, f in zip(contexts, lists, strict=True)]


def _list_others(known: Schema, schema: Schema) -> list[tuple[bytes, bool]]:
    """Return (name, is_list) of the known features that are not decoded."""
    if known is schema:
        return []
    others = [(encode_name(name), False) for name in known.features if name not in schema.features]
    return others + [(encode_name(name), True) for name in known.feature_lists if name not in schema.feature_lists]


def _is_plain(spec: Spec) -> bool:
    """Whether the column has one number per row."""
    if spec.is_list or spec.kind == "bytes" or spec.encoding != "list" or spec.optional or spec.shape != ():
        return False
    stored = np.dtype(np.int64 if spec.kind == "int64" else np.float32)
    return spec.dtype is None or name_value_dtype(spec.dtype) == stored


def _collate(name: str, spec: Spec, column: _NativeColumn, num_rows: int) -> Column:
    values, splits, _, presence, _ = column
    if spec.kind == "bytes":
        values = wrap_bytes(values)
    if spec.encoding != "list":
        return _decode_arrays(name, spec, values, splits, presence)
    values = _cast(spec, values)
    length = spec.fixed_length
    if length < 0:
        return _shape_ragged(name, spec, values, splits, presence)
    if spec.shape == ():
        return values
    if isinstance(values, BytesColumn):
        return Ragged(values, np.arange(num_rows + 1, dtype=np.int64) * length)
    return values.reshape(num_rows, *spec.shape)


def _collate_frames(name: str, spec: Spec, column: _NativeColumn) -> Ragged:
    values, splits, list_splits, presence, frame_presence = column
    if spec.kind == "bytes":
        values = wrap_bytes(values)
    if spec.encoding != "list":
        return Ragged(_decode_arrays(name, spec, values, splits, None), list_splits, presence)
    values = _cast(spec, values)
    if spec.fixed_length < 0:
        values = _shape_ragged(name, spec, values, splits, frame_presence)
    elif isinstance(values, BytesColumn):
        if spec.shape != ():
            num_frames = len(values) // spec.fixed_length if spec.fixed_length else int(list_splits[-1])
            values = Ragged(values, np.arange(num_frames + 1, dtype=np.int64) * spec.fixed_length)
    elif spec.shape != ():
        values = values.reshape(int(list_splits[-1]), *spec.shape)
    return Ragged(values, list_splits, presence)


def _shape_ragged(name: str, spec: Spec, values: Column, splits: Any, presence: Any) -> Ragged:
    """Make ragged rows of values; with a shape such as (None, 4), of groups of four values."""
    inner = spec.shape[1:]
    if not inner or None in inner or isinstance(values, BytesColumn):
        return Ragged(values, splits, presence)
    step = math.prod(size or 0 for size in inner)
    lengths = np.diff(splits)
    wrong = np.flatnonzero(lengths % step) if step else np.flatnonzero(lengths)
    if len(wrong):
        row = int(wrong[0])
        raise ShapeError(f"feature {name!r} expected shape {spec.shape}, got {int(lengths[row])} values", row=row)
    return Ragged(values.reshape(-1, *inner), splits // max(1, step), presence)


def _cast(spec: Spec, values: Column) -> Column:
    dtype = _find_cast(spec)
    return values if dtype is None else values.astype(dtype)


def _find_cast(spec: Spec) -> np.dtype[Any] | None:
    """Find the dtype that numbers of a list are cast to; None if they are not cast.

    TFDS stores bool, uint8 and similar types in int64 lists and declares them in its features.json.
    """
    if spec.dtype is None or spec.kind == "bytes":
        return None
    dtype = np.dtype(name_value_dtype(spec.dtype))
    return None if dtype == (np.int64 if spec.kind == "int64" else np.float32) else dtype


def _find_row_form(name: str, spec: Spec) -> tuple[str, str, tuple[Any, ...] | None, np.dtype[Any] | None, bool]:
    """Describe how the core makes values of rows: (name, form, shape, dtype to cast to, one value is not a list)."""
    is_fixed = spec.fixed_length >= 0
    has_inner = bool(spec.shape[1:]) and None not in spec.shape[1:] and spec.kind != "bytes"
    if spec.encoding != "list" or (not is_fixed and has_inner):
        return name, "python", None, None, False
    if spec.is_list:
        form = "frames" if is_fixed else "frame_lists"
    elif is_fixed:
        form = "value" if spec.shape == () else "array"
    else:
        form = "varying"
    shape = spec.shape if is_fixed and spec.shape != () else None
    return name, form, shape, _find_cast(spec), spec.optional and not spec.is_list and spec.shape == ()


def _decode_arrays(name: str, spec: Spec, values: BytesColumn, splits: Any, presence: Any) -> Column:
    """Decode arrays stored as bytes: stacked if the schema gives one shape and dtype, else a list of arrays.

    If some rows have no array, the result is a Ragged with zero or one array per row.
    """
    decode_one: Callable[[bytes], np.ndarray[Any, np.dtype[Any]]] = decode_tensor
    if spec.encoding != "tensor_proto":
        decode_one = _raw_decoder(name, spec)
    number = 0

    def decode(value: bytes) -> np.ndarray[Any, np.dtype[Any]]:
        nonlocal number
        try:
            array = decode_one(value)
        except (CodecError, zlib.error) as error:
            what = error.what if isinstance(error, CodecError) else str(error)
            row = number if splits is None else int(np.searchsorted(splits, number, side="right")) - 1
            raise CodecError(f"feature {name!r} {what}", row=row) from None
        number += 1
        return array

    if splits is None:
        if spec.encoding == "raw" and None not in spec.shape:
            return _stack_raw(name, spec, values)
        arrays = [decode(value) for value in values]
        if None not in spec.shape and spec.dtype is not None:
            return _stack(name, spec, arrays)
        return arrays
    return Ragged([decode(value) for value in values], splits, presence)


def _stack_raw(name: str, spec: Spec, values: BytesColumn) -> np.ndarray[Any, np.dtype[Any]]:
    dtype = _raw_dtype(spec)
    nbytes = dtype.itemsize * math.prod(size or 0 for size in spec.shape)
    wrong = np.flatnonzero(values.lengths != nbytes)
    if len(wrong):
        row = int(wrong[0])
        raise ShapeError(
            f"feature {name!r} expected {nbytes} bytes (shape {spec.shape}, {spec.dtype}), "
            f"got {int(values.lengths[row])}",
            row=row,
        )
    shape: tuple[Any, ...] = (len(values), *spec.shape)
    return _to_values(values.data.view(dtype).reshape(shape), spec)


def _raw_dtype(spec: Spec) -> np.dtype[Any]:
    """Return the dtype of raw bytes; an integer dtype for a float type that NumPy lacks."""
    return bits_dtype(spec.dtype) if spec.dtype in NARROW_FLOATS else np.dtype(spec.dtype)


def _to_values(raw: np.ndarray[Any, np.dtype[Any]], spec: Spec) -> np.ndarray[Any, np.dtype[Any]]:
    return widen_floats(raw, spec.dtype) if spec.dtype in NARROW_FLOATS else raw


def _inner_dtype(spec: Spec) -> np.dtype[Any]:
    """Return the dtype that a serialized tensor decodes to: object for strings, float32 for floats that NumPy lacks."""
    return tensor_dtype(DTYPE_NUMBERS[spec.dtype or ""]) or np.dtype(object)


def _stack(name: str, spec: Spec, arrays: list[np.ndarray[Any, np.dtype[Any]]]) -> np.ndarray[Any, np.dtype[Any]]:
    if not arrays:
        shape: Any = (0, *spec.shape)
        return np.empty(shape, _inner_dtype(spec))
    wanted = _inner_dtype(spec)
    for row, array in enumerate(arrays):
        if array.shape != spec.shape or array.dtype != wanted:
            raise ShapeError(
                f"feature {name!r} expected shape {spec.shape}, {spec.dtype}, got {array.shape}, {array.dtype}", row=row
            )
    return np.stack(arrays)


def _raw_decoder(name: str, spec: Spec) -> Callable[[bytes], np.ndarray[Any, np.dtype[Any]]]:
    dtype = _raw_dtype(spec)
    unknown = spec.shape.count(None)
    shape = tuple(-1 if size is None else size for size in spec.shape)

    def decode(value: bytes) -> np.ndarray[Any, np.dtype[Any]]:
        if spec.encoding == "zlib":
            limit = max(1 << 20, len(value) * 1032)
            value = zlib.decompressobj().decompress(value, limit)
        if len(value) % dtype.itemsize == 0:
            array = _to_values(np.frombuffer(value, dtype), spec)
            known = math.prod(size for size in spec.shape if size is not None)
            if unknown == 0 and array.size == known:
                return array.reshape(shape)
            if unknown == 1 and known > 0 and array.size % known == 0:
                return array.reshape(shape)
            if unknown > 1:
                return array
        raise ShapeError(f"feature {name!r} expected bytes of {spec.dtype} with shape {spec.shape}, got {len(value)}")

    return decode


def _rows_of(columns: Mapping[str, Column], specs: Mapping[str, Spec], num_rows: int) -> list[Row]:
    names = list(columns)
    if not names:
        return [{} for _ in range(num_rows)]
    values = [_row_values(columns[name], specs.get(name, _PLAIN)) for name in names]
    has_absent = any(isinstance(column, Ragged) and column.presence is not None for column in columns.values())
    rows = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
    if has_absent:
        rows = [{name: value for name, value in row.items() if value is not _MISSING} for row in rows]
    return rows


_MISSING: Any = object()
_PLAIN = Spec("int64", (None,))  # for a column that is not in the schema: not optional, arrays stay arrays


def _row_values(column: Column, spec: Spec) -> list[Any]:
    """Return one value per row; _MISSING if the feature is absent."""
    if isinstance(column, np.ndarray):
        # The dtype of a serialized scalar is part of its value, so it stays an array, of rank 0.
        is_plain = column.ndim == 1 and column.dtype != object
        if spec.encoding != "list" and column.ndim == 1:
            return [np.asarray(value, column.dtype) for value in column]
        return column.tolist() if is_plain else list(column)
    if not isinstance(column, Ragged):
        return list(column)
    values = list(_plain_rows(column, spec))
    if column.presence is not None:
        states = column.presence.tolist()
        values = [
            _MISSING if state == ABSENT else None if state == UNSET else value
            for state, value in zip(states, values, strict=True)
        ]
    return values


def _plain_rows(column: Ragged, spec: Spec) -> Iterator[Any]:
    is_array = spec.encoding != "list"
    is_optional_value = spec.optional and not spec.is_list and (spec.shape == () or is_array)
    for row in column:
        if is_optional_value and len(row) == 1:
            value = row[0]
            yield value.item() if isinstance(value, np.generic) and not is_array else value
        elif isinstance(row, BytesColumn):
            yield list(row)
        elif isinstance(row, Ragged):
            frames = [list(frame) if isinstance(frame, BytesColumn) else frame for frame in row]
            if row.presence is not None:
                states = row.presence.tolist()
                frames = [None if state == UNSET else frame for state, frame in zip(states, frames, strict=True)]
            yield frames
        else:
            yield row
