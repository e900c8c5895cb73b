"""Arithmetic by name, as `tf.multiply`, with TensorFlow's type rule: operands and result have the same type.

A plain Python number takes the type of the tensor on the other side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfrkit.compat.dtypes import as_dtype
from tfrkit.compat.graph import deferrable
from tfrkit.compat.op_errors import InvalidArgumentError
from tfrkit.compat.tensor import Tensor, to_tensor, wrap


def _pair(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Convert both operands to tensors of the same type."""
    if hasattr(x, "dtype") and not hasattr(y, "dtype"):
        return to_tensor(x), to_tensor(y, x.dtype)
    if hasattr(y, "dtype") and not hasattr(x, "dtype"):
        return to_tensor(x, y.dtype), to_tensor(y)
    left = to_tensor(x)
    right = to_tensor(y) if hasattr(y, "dtype") else to_tensor(y, left.dtype)
    if left.dtype != right.dtype:
        kinds = f"{as_dtype(left.dtype)!r} and {as_dtype(right.dtype)!r}"
        raise InvalidArgumentError(None, None, f"expected two values of the same type, got {kinds}")
    return left, right


def _binary(function: Callable[[Any, Any], Any], about: str) -> Callable[..., Any]:
    def compute(x: Any, y: Any, name: Any = None) -> Tensor:
        left, right = _pair(x, y)
        with np.errstate(all="ignore"):
            try:
                return wrap(np.asarray(function(np.asarray(left), np.asarray(right))))
            except ValueError as error:
                raise InvalidArgumentError(None, None, f"incompatible shapes {left.shape} and {right.shape}") from error

    compute.__doc__ = about
    return deferrable(compute)


def _divide(left: Any, right: Any) -> Any:
    if left.dtype.kind in "iu":
        # TensorFlow divides integers in float64, but 8-bit and 16-bit ones in float32.
        wanted = np.float32 if left.dtype.itemsize < 4 else np.float64
        return left.astype(wanted) / right.astype(wanted)
    return left / right


def _divide_as_python_2(left: Any, right: Any) -> Any:
    return left // right if left.dtype.kind in "iu" else left / right


ELEMENTWISE = {
    "add": _binary(np.add, "The sum."),
    "subtract": _binary(np.subtract, "The difference."),
    "multiply": _binary(np.multiply, "The product."),
    "divide": _binary(_divide, "The quotient; of integers, a float."),
    "truediv": _binary(_divide, "The quotient; of integers, a float."),
    "div": _binary(_divide_as_python_2, "The quotient; of integers, rounded down."),
    "minimum": _binary(np.minimum, "The smaller one of each pair."),
    "maximum": _binary(np.maximum, "The larger one of each pair."),
    "equal": _binary(np.equal, "Whether each pair is equal."),
    "not_equal": _binary(np.not_equal, "Whether each pair differs."),
    "greater": _binary(np.greater, "Whether the first one of each pair is larger."),
    "greater_equal": _binary(np.greater_equal, "Whether the first one of each pair is larger or equal."),
    "less": _binary(np.less, "Whether the first one of each pair is smaller."),
    "less_equal": _binary(np.less_equal, "Whether the first one of each pair is smaller or equal."),
}
