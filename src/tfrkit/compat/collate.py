"""Combine several elements into one batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrkit.compat.op_errors import DataLossError, InvalidArgumentError
from tfrkit.compat.ragged import RaggedTensor, stack_ragged
from tfrkit.compat.shapes import TensorShape
from tfrkit.compat.structure import map_parts, spread
from tfrkit.compat.tensor import SparseTensor, Tensor, to_tensor, wrap


def batch_elements(elements: Sequence[Any]) -> Any:
    """Stack tensors of one shape, keeping the dicts and tuples around them."""
    return map_parts(lambda *parts: _stack(parts), *elements)


def pad_elements(elements: Sequence[Any], shapes: Any, fills: Any) -> Any:
    """Pad tensors to the largest, or to given sizes, and stack them."""
    return map_parts(
        lambda *parts: _pad(parts[:-2], *parts[-2:]),
        *elements,
        spread(shapes, elements[0], "padded_shapes"),
        spread(fills, elements[0], "padding_values"),
    )


def _stack(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], SparseTensor):
        return _stack_sparse(parts)
    if isinstance(parts[0], RaggedTensor):
        return stack_ragged(parts)
    for part in parts:
        if part.shape != parts[0].shape:
            raise InvalidArgumentError(
                None, None, f"batch expected tensors of one shape, got {parts[0].shape} and {part.shape}"
            )
    return wrap(np.stack([np.asarray(part) for part in parts]))


def _stack_sparse(parts: Sequence[SparseTensor]) -> SparseTensor:
    indices = [np.insert(np.asarray(part.indices), 0, number, 1) for number, part in enumerate(parts)]
    sizes = np.max([np.asarray(part.dense_shape) for part in parts], 0)
    values = np.concatenate([np.asarray(part.values) for part in parts])
    return SparseTensor(np.concatenate(indices), values, [len(parts), *sizes.tolist()])


def _pad(parts: Sequence[Any], shape: Any, fill: Any) -> Tensor:
    if not isinstance(parts[0], Tensor):
        kind = type(parts[0]).__name__
        raise TypeError(f"padded_batch expected dense tensors, got a {kind}\n  make it one: tf.sparse.to_dense(value)")
    rank = parts[0].ndim
    sizes = [None] * rank if shape is None else TensorShape(shape).as_list()
    if len(sizes) != rank:
        raise ValueError(f"padded_shapes expected {rank} sizes, got {sizes}")
    largest = [max(int(part.shape[axis]) for part in parts) for axis in range(rank)]
    wanted = [most if size is None else size for size, most in zip(sizes, largest, strict=True)]
    if any(most > size for most, size in zip(largest, wanted, strict=True)):
        raise DataLossError(None, None, f"padded_batch expected tensors within {wanted}, got {largest}")
    dtype = parts[0].dtype
    value = (b"" if dtype.kind == "O" else 0) if fill is None else to_tensor(fill, dtype).numpy()
    padded = np.full((len(parts), *wanted), value, dtype)
    for number, part in enumerate(parts):
        place: tuple[Any, ...] = (number, *map(slice, part.shape))
        padded[place] = part.numpy()  # bytes if a single string: NumPy would store the tensor itself
    return wrap(padded)
