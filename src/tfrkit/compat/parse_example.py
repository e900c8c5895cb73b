"""`tf.io.parse_single_example` and `tf.io.parse_example`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrkit.compat.feature_specs import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    check_features,
    count_of,
    kind_of,
    refuse_spec,
    shape_of,
)
from tfrkit.compat.graph import Node, is_deferred
from tfrkit.compat.op_errors import InvalidArgumentError
from tfrkit.compat.parse_columns import Key, ParsedColumn, read_columns, zero_of
from tfrkit.compat.parse_composite import gather_ragged, gather_sparse_feature, index_keys
from tfrkit.compat.ragged import RaggedTensor
from tfrkit.compat.tensor import SparseTensor, to_byte_strings, to_bytes, to_tensor, wrap

_Array = np.ndarray[Any, np.dtype[Any]]


def parse_single_example(serialized: Any, features: Any, example_names: Any = None, name: Any = None) -> dict[str, Any]:
    """Parse the requested features of one serialized Example."""
    check_features(features)
    if is_deferred(serialized):
        parsed = Node(lambda record: parse_single_example(record, features), serialized)
        return {key: parsed[key] for key in features}
    return parse_one(to_bytes(serialized, "serialized"), features)


def parse_example(serialized: Any, features: Any, example_names: Any = None, name: Any = None) -> dict[str, Any]:
    """Parse the requested features of many serialized Examples; a single one is parsed as by `parse_single_example`."""
    check_features(features)
    if is_deferred(serialized):
        parsed = Node(lambda records: parse_example(records, features), serialized)
        return {key: parsed[key] for key in features}
    if isinstance(serialized, (bytes, str)) or getattr(serialized, "ndim", 1) == 0:
        return parse_single_example(serialized, features)
    records = to_byte_strings(serialized, "serialized")
    columns = read_columns(records, "example", wanted_columns(features))
    return {key: gather(key, spec, columns) for key, spec in features.items()}


def parse_one(record: bytes, features: dict[str, Any]) -> dict[str, Any]:
    """Parse one Example: a batch of one, without the batch dimension."""
    columns = read_columns([record], "example", wanted_columns(features))
    return {key: unbatch(gather(key, spec, columns)) for key, spec in features.items()}


def source_of(key: str, spec: Any) -> str:
    """Return the name of the feature that holds the values of a result."""
    return spec.value_key or key if isinstance(spec, (RaggedFeature, SparseFeature)) else key


def wanted_columns(features: dict[str, Any], *, is_list: bool = False) -> dict[Key, str]:
    """Return the columns that specs need, with their kinds."""
    wanted: dict[Key, str] = {}
    for key, spec in features.items():
        if not isinstance(
            spec, (FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, RaggedFeature, SparseFeature)
        ):
            raise refuse_spec(key, spec)
        asked = {source_of(key, spec): kind_of(spec)}
        if isinstance(spec, SparseFeature):
            asked |= dict.fromkeys(index_keys(spec), "int64")
        if isinstance(spec, RaggedFeature):
            asked |= {part.key: "int64" for part in spec.partitions if hasattr(part, "key")}
        for name, kind in asked.items():
            if wanted.setdefault((name, is_list), kind) != kind:
                raise ValueError(f"feature {name!r} is requested as {wanted[name, is_list]} and as {kind}")
    return wanted


def gather(key: str, spec: Any, columns: dict[Key, ParsedColumn]) -> Any:
    """Make the batch tensor of a spec."""
    if isinstance(spec, SparseFeature):
        return gather_sparse_feature(key, spec, columns)
    if isinstance(spec, RaggedFeature):
        return gather_ragged(key, spec, columns)
    column = columns[key, False]
    if isinstance(spec, FixedLenFeature):
        return _gather_fixed(key, spec, column)
    if isinstance(spec, VarLenFeature):
        return gather_sparse(column.values, column.splits)
    return _gather_sequence(key, spec, column)


def unbatch(value: Any) -> Any:
    """Remove the batch dimension from a batch of one record."""
    if isinstance(value, SparseTensor):
        return SparseTensor(value.indices[:, 1:], value.values, value.dense_shape[1:])
    return value.values if isinstance(value, RaggedTensor) else value[0]


def _gather_fixed(key: str, spec: FixedLenFeature, column: ParsedColumn) -> Any:
    shape = shape_of(key, spec)
    count = count_of(shape)
    num_rows = len(column.is_present)
    lengths = np.diff(column.splits)
    wrong = np.flatnonzero(column.is_present & (lengths != count))
    if len(wrong):
        row = int(wrong[0])
        raise InvalidArgumentError(
            None, None, f"feature {key!r} expected {count} values, got {int(lengths[row])}{at_row(row, num_rows)}"
        )
    default = None if spec.default_value is None else _default_values(key, spec, count)
    if column.is_present.all():
        return wrap(column.values.reshape(num_rows, *shape))
    if default is None:
        row = int(np.flatnonzero(~column.is_present)[0])
        raise InvalidArgumentError(
            None, None, f"feature {key!r} expected in every record, got none{at_row(row, num_rows)}"
        )
    filled = np.empty((num_rows, count), column.values.dtype)
    filled[column.is_present] = column.values.reshape(-1, count) if count else 0
    filled[~column.is_present] = default
    return wrap(filled.reshape(num_rows, *shape))


def _default_values(key: str, spec: FixedLenFeature, count: int) -> _Array:
    default = np.asarray(to_tensor(spec.default_value, spec.dtype)).reshape(-1)
    if len(default) != count:
        raise InvalidArgumentError(
            None, None, f"default_value of feature {key!r} expected {count} values, got {len(default)}"
        )
    return default


def _gather_sequence(key: str, spec: FixedLenSequenceFeature, column: ParsedColumn) -> Any:
    if not spec.allow_missing:
        raise ValueError(f"feature {key!r} expected allow_missing=True in a FixedLenSequenceFeature of an Example")
    shape = shape_of(key, spec)
    count = count_of(shape)
    lengths = np.diff(column.splits)
    wrong = np.flatnonzero(lengths % count if count else lengths)
    if len(wrong):
        row = int(wrong[0])
        raise InvalidArgumentError(
            None,
            None,
            f"feature {key!r} expected a multiple of {count} values, got {int(lengths[row])}"
            f"{at_row(row, len(lengths))}",
        )
    fill: Any = zero_of(kind_of(spec))
    if spec.default_value is not None:
        fill = wrap(to_tensor(spec.default_value, spec.dtype).reshape(())).numpy()
    return pad_rows(column.values, lengths, count, shape, fill)


def pad_rows(values: _Array, lengths: _Array, count: int, shape: tuple[int, ...], fill: Any) -> Any:
    """Pad rows of items of one shape to the longest row: (rows, max items, *shape)."""
    width = int(lengths.max(initial=0))
    padded = np.full((len(lengths), width), fill, values.dtype)
    padded[np.arange(width) < lengths[:, None]] = values
    return wrap(padded.reshape(len(lengths), width // max(1, count), *shape))


def gather_sparse(values: _Array, splits: _Array) -> SparseTensor:
    """Make a SparseTensor of rank 2 from rows of any length."""
    lengths = np.diff(splits)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(len(values)) - np.repeat(splits[:-1], lengths)
    return SparseTensor(np.stack([rows, places], 1), values, [len(lengths), int(lengths.max(initial=0))])


def at_row(row: int, num_rows: int) -> str:
    """Return the position in a batch, for messages."""
    return f" - at record {row} of the batch" if num_rows > 1 else ""
