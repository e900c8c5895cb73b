"""`tf.io.parse_single_sequence_example` and `tf.io.parse_sequence_example`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrkit.compat.feature_specs import (
    FixedLenSequenceFeature,
    RaggedFeature,
    VarLenFeature,
    check_features,
    count_of,
    kind_of,
    refuse_spec,
    shape_of,
)
from tfrkit.compat.graph import Node, is_deferred
from tfrkit.compat.op_errors import InvalidArgumentError, UnimplementedError
from tfrkit.compat.parse_columns import ParsedColumn, read_columns, zero_of
from tfrkit.compat.parse_example import at_row, gather, pad_rows, source_of, unbatch, wanted_columns
from tfrkit.compat.ragged import RaggedTensor
from tfrkit.compat.tensor import SparseTensor, to_byte_strings, to_bytes, wrap

_Array = np.ndarray[Any, np.dtype[Any]]


def parse_single_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_name: Any = None,
    name: Any = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse one serialized SequenceExample into (context, feature lists)."""
    context, lists = _check_specs(context_features, sequence_features)
    if is_deferred(serialized):
        parsed = Node(lambda record: parse_single_sequence_example(record, context, lists), serialized)
        return {key: parsed[0][key] for key in context}, {key: parsed[1][key] for key in lists}
    parts = _parse([to_bytes(serialized, "serialized")], context, lists)
    return {key: unbatch(value) for key, value in parts[0].items()}, {
        key: unbatch(value) for key, value in parts[1].items()
    }


def parse_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_names: Any = None,
    name: Any = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Parse many serialized SequenceExamples into (context, padded feature lists, their lengths)."""
    context, lists = _check_specs(context_features, sequence_features)
    if is_deferred(serialized):
        parsed = Node(lambda records: parse_sequence_example(records, context, lists), serialized)
        dense = [key for key, spec in lists.items() if isinstance(spec, FixedLenSequenceFeature)]
        return (
            {key: parsed[0][key] for key in context},
            {key: parsed[1][key] for key in lists},
            {key: parsed[2][key] for key in dense},
        )
    if isinstance(serialized, (bytes, str)) or getattr(serialized, "ndim", 1) == 0:
        parts = _parse([to_bytes(serialized, "serialized")], context, lists)
        one = [{key: unbatch(value) for key, value in part.items()} for part in parts]
        return one[0], one[1], one[2]
    return _parse(to_byte_strings(serialized, "serialized"), context, lists)


def _check_specs(context: Any, lists: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    if not context and not lists:
        raise ValueError("context_features or sequence_features expected, got neither")
    context = check_features(context, "context_features") if context else {}
    lists = check_features(lists, "sequence_features") if lists else {}
    for key, spec in context.items():
        if isinstance(spec, FixedLenSequenceFeature):
            raise refuse_spec(key, spec)
    for key, spec in lists.items():
        if not isinstance(spec, (FixedLenSequenceFeature, VarLenFeature, RaggedFeature)):
            raise refuse_spec(key, spec)
        if isinstance(spec, RaggedFeature) and spec.partitions:
            raise UnimplementedError(None, None, f"feature list {key!r} cannot have partitions")
        if isinstance(spec, FixedLenSequenceFeature) and spec.default_value is not None:
            raise ValueError(f"feature list {key!r} takes no default_value, got {spec.default_value!r}")
    return context, lists


def _parse(
    records: list[bytes], context: dict[str, Any], lists: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    wanted = wanted_columns(context) | wanted_columns(lists, is_list=True)
    columns = read_columns(records, "sequence_example", wanted)
    contexts = {key: gather(key, spec, columns) for key, spec in context.items()}
    frames = {key: _gather_frames(key, spec, columns[source_of(key, spec), True]) for key, spec in lists.items()}
    lengths = {
        key: wrap(np.diff(_list_splits(columns[key, True])))
        for key, spec in lists.items()
        if isinstance(spec, FixedLenSequenceFeature)
    }
    return contexts, frames, lengths


def _list_splits(column: ParsedColumn) -> _Array:
    assert column.list_splits is not None
    return column.list_splits


def _gather_frames(key: str, spec: Any, column: ParsedColumn) -> Any:
    list_splits = _list_splits(column)
    if isinstance(spec, RaggedFeature):
        dtype = np.dtype(spec.row_splits_dtype)
        return RaggedTensor(RaggedTensor(column.values, column.splits.astype(dtype)), list_splits.astype(dtype))
    if isinstance(spec, VarLenFeature):
        return _gather_sparse_frames(column, list_splits)
    num_rows = len(column.is_present)
    if not spec.allow_missing and not column.is_present.all():
        row = int(np.flatnonzero(~column.is_present)[0])
        raise InvalidArgumentError(
            None,
            None,
            f"feature list {key!r} expected in every record, got none{at_row(row, num_rows)}\n"
            "  take records without it: FixedLenSequenceFeature(..., allow_missing=True)",
        )
    shape = shape_of(key, spec)
    count = count_of(shape)
    frame_lengths = np.diff(column.splits)
    wrong = np.flatnonzero(frame_lengths != count)
    if len(wrong):
        frame = int(wrong[0])
        row = int(np.searchsorted(list_splits, frame, "right")) - 1
        raise InvalidArgumentError(
            None,
            None,
            f"feature list {key!r} expected {count} values in every frame, got {int(frame_lengths[frame])} "
            f"in frame {frame - int(list_splits[row])}{at_row(row, num_rows)}",
        )
    return pad_rows(column.values, np.diff(list_splits) * count, count, shape, zero_of(kind_of(spec)))


def _gather_sparse_frames(column: ParsedColumn, list_splits: _Array) -> SparseTensor:
    frame_lengths, num_frames = np.diff(column.splits), np.diff(list_splits)
    rows = np.repeat(np.arange(len(num_frames)), num_frames)
    frames = np.arange(len(frame_lengths)) - np.repeat(list_splits[:-1], num_frames)
    places = np.arange(len(column.values)) - np.repeat(column.splits[:-1], frame_lengths)
    indices = np.stack([np.repeat(rows, frame_lengths), np.repeat(frames, frame_lengths), places], 1)
    shape = [len(num_frames), int(num_frames.max(initial=0)), int(frame_lengths.max(initial=0))]
    return SparseTensor(indices, column.values, shape)
