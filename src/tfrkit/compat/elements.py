"""Elements of datasets: tensors, or dicts and tuples of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfrkit.compat.graph import Node
from tfrkit.compat.op_errors import InvalidArgumentError
from tfrkit.compat.ragged import RaggedTensor
from tfrkit.compat.shapes import TensorSpec
from tfrkit.compat.structure import leaves, map_parts
from tfrkit.compat.tensor import SparseTensor, SparseTensorValue, Tensor, to_tensor


def to_element(value: Any) -> Any:
    """Convert the result of a function to an element; lists become tuples."""
    if isinstance(value, dict):
        return {name: to_element(part) for name, part in value.items()}
    if isinstance(value, SparseTensorValue):
        return SparseTensor(*value)
    if isinstance(value, (list, tuple)):
        parts = [to_element(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, Node):
        raise TypeError("a function of a dataset expected to return values, got a graph value from outside it")
    return value if isinstance(value, (SparseTensor, RaggedTensor)) or hasattr(value, "_start") else to_tensor(value)


def call(function: Callable[..., Any], element: Any) -> Any:
    """Call a function with an element; a tuple is passed as several arguments."""
    return function(*element) if isinstance(element, tuple) else function(element)


def to_parts(value: Any) -> Any:
    """Convert the values in dicts and tuples to tensors; a list becomes one tensor."""
    return map_parts(_to_part, value)


def _to_part(value: Any) -> Any:
    return value if isinstance(value, (SparseTensor, RaggedTensor)) else to_tensor(value)


def count_rows(parts: Any, what: str) -> int:
    """Return the number of rows, which must be the same for all parts."""
    counts = set()
    for part in leaves(parts):
        if isinstance(part, Tensor) and part.ndim == 0:
            raise ValueError(f"{what} expected tensors with rows, got a single value")
        counts.add(int(part.dense_shape[0]) if isinstance(part, SparseTensor) else len(part))
    if len(counts) != 1:
        raise ValueError(f"{what} expected tensors of equal length, got lengths {sorted(counts)}")
    return counts.pop()


def row(parts: Any, number: int) -> Any:
    """Return one row of every part."""
    return map_parts(lambda part: _row(part, number), parts)


def _row(part: Any, number: int) -> Any:
    if not isinstance(part, SparseTensor):
        return part[number]
    is_here = np.asarray(part.indices)[:, 0] == number
    return SparseTensor(part.indices[is_here][:, 1:], part.values[is_here], part.dense_shape[1:])


def check_element(value: Any, specs: Any) -> Any:
    """Convert a value from a user's generator to tensors of the given types and shapes."""
    return map_parts(_check_part, specs, tuple(value) if isinstance(value, list) and type(specs) is tuple else value)


def _check_part(spec: TensorSpec, value: Any) -> Any:
    try:
        tensor = to_tensor(value, spec.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"generator expected values of {spec.dtype!r}, got {str(value)[:64]!r}: {error}") from None
    if not spec.shape.is_compatible_with(tensor.shape):
        raise TypeError(f"generator expected shape {spec.shape}, got {tensor.shape}")
    return tensor


def require_positive(name: str, value: Any) -> int:
    """Return a number that is at least 1."""
    if int(value) < 1:
        raise InvalidArgumentError(None, None, f"{name} expected 1 or more, got {int(value)}")
    return int(value)
