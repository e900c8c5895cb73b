"""Read the values of a row by feature name, for all kinds of records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrkit._types import Row
from tfrkit.errors import CodecError
from tfrkit.features.schema import Schema
from tfrkit.pictures.features import BoxFeatures, BoxOrder

Corners = np.ndarray[Any, np.dtype[np.float64]]
"""(boxes, 4) as xmin, ymin, xmax, ymax."""


def flatten_row(row: Row, schema: Schema) -> Mapping[str, Any]:
    """Return the features of a row by name; for a SequenceExample, context and feature lists are merged."""
    return {**row["context"], **row["feature_lists"]} if schema.kind == "sequence_example" else row


def list_values(value: Any) -> list[Any]:
    """Return the values of a feature as a flat list, from no value, one value, an array or nested lists."""
    if value is None:
        return []
    if isinstance(value, np.ndarray):
        return list(value.reshape(-1))
    return [one for item in value for one in list_values(item)] if isinstance(value, list) else [value]


def read_corners(values: Mapping[str, Any], boxes: BoxFeatures) -> Corners:
    """Return the boxes of a row; raise `CodecError` if the numbers do not form complete boxes."""
    sides = [np.asarray(list_values(values.get(name)), np.float64) for name in boxes.sides]
    lengths = [len(side) for side in sides]
    if len(sides) == 1:
        if lengths[0] % 4:
            raise CodecError(f"boxes expected four numbers each, got {lengths[0]} in all")
        return _to_corners(sides[0].reshape(-1, 4), boxes.order)
    if len(set(lengths)) != 1:
        raise CodecError(f"boxes expected four lists of equal length, got {', '.join(map(str, lengths))}")
    return np.stack(sides, axis=1)


def _to_corners(numbers: Corners, order: BoxOrder) -> Corners:
    if order == "xyxy":
        return numbers
    if order == "yxyx":
        return numbers[:, [1, 0, 3, 2]]
    first, size = numbers[:, :2], numbers[:, 2:]
    low = first - size / 2 if order == "cxcywh" else first
    return np.concatenate([low, low + size], axis=1)
