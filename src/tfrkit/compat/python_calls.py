"""Functions of the script as operations: `py_function`, `numpy_function`, `py_func`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfrkit.compat.dtypes import as_dtype
from tfrkit.compat.graph import deferrable
from tfrkit.compat.op_errors import InvalidArgumentError
from tfrkit.compat.tensor import Tensor, to_tensor


@deferrable
def py_function(func: Callable[..., Any], inp: Sequence[Any], Tout: Any, name: Any = None) -> Any:
    """Call a function with tensors; its results become tensors of the given types."""
    return _check(func(*map(to_tensor, inp)), Tout, to_tensor)


@deferrable
def numpy_function(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,
    stateful: bool = True,
    name: Any = None,
) -> Any:
    """Call a function with NumPy values; its results have to have the given types."""
    return _check(func(*(to_tensor(value).numpy() for value in inp)), Tout, _require_dtype)


def _check(results: Any, dtypes: Any, convert: Callable[[Any, Any], Tensor]) -> Any:
    if not isinstance(dtypes, (list, tuple)):
        return convert(results, dtypes)
    listed = list(results) if isinstance(results, (list, tuple)) else [] if results is None else [results]
    if len(listed) != len(dtypes):
        raise InvalidArgumentError(None, None, f"function expected {len(dtypes)} results, got {len(listed)}")
    return [convert(value, dtype) for value, dtype in zip(listed, dtypes, strict=True)]


def _require_dtype(value: Any, dtype: Any) -> Tensor:
    tensor = to_tensor(value if isinstance(value, (bytes, str)) else np.asarray(value))
    if as_dtype(tensor.dtype) != as_dtype(dtype):
        raise InvalidArgumentError(
            None, None, f"function expected to return {as_dtype(dtype).name}, got {as_dtype(tensor.dtype).name}"
        )
    return tensor
