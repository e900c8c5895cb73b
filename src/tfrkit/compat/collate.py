"""Several elements as one batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfrkit.compat.op_errors import DataLossError, InvalidArgumentError
from tfrkit.compat.tensor import RaggedTensor, SparseTensor, Tensor, to_tensor, wrap


def batch_elements(elements: Sequence[Any]) -> Any:
    """Tensors of one shape stacked, in the dicts and tuples they are in."""
    return _merge(elements, lambda parts, path: _stack(parts))


def pad_elements(elements: Sequence[Any], shapes: Any, fills: Any) -> Any:
    """Tensors filled up to the largest, or to given sizes, and stacked."""

    def pad(parts: Sequence[Any], path: tuple[Any, ...]) -> Tensor:
        return _pad(parts, _at(shapes, path), _at(fills, path))

    return _merge(elements, pad)


def _merge(elements: Sequence[Any], join: Callable[..., Any], path: tuple[Any, ...] = ()) -> Any:
    first = elements[0]
    if isinstance(first, dict):
        return {name: _merge([element[name] for element in elements], join, (*path, name)) for name in first}
    if isinstance(first, tuple):
        return tuple(
            _merge([element[number] for element in elements], join, (*path, number)) for number in range(len(first))
        )
    return join(elements, path)


def _stack(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], SparseTensor):
        return _stack_sparse(parts)
    if isinstance(parts[0], RaggedTensor):
        raise InvalidArgumentError(None, None, "batch of ragged tensors is not offered, parse after batching instead")
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


def _pad(parts: Sequence[Tensor], shape: Any, fill: Any) -> Tensor:
    rank = parts[0].ndim
    sizes = [None] * rank if shape is None else list(shape)
    if len(sizes) != rank:
        raise ValueError(f"padded_shapes expected {rank} sizes, got {sizes}")
    largest = [max(part.shape[axis] for part in parts) for axis in range(rank)]
    wanted = [most if size in (None, -1) else int(size) for size, most in zip(sizes, largest, strict=True)]
    if any(most > size for most, size in zip(largest, wanted, strict=True)):
        raise DataLossError(None, None, f"padded_batch expected tensors within {wanted}, got {largest}")
    dtype = parts[0].dtype
    value = (b"" if dtype.kind == "O" else 0) if fill is None else to_tensor(fill).numpy()
    padded = np.full((len(parts), *wanted), value, dtype)
    for number, part in enumerate(parts):
        padded[number][tuple(slice(size) for size in part.shape)] = part
    return wrap(padded)


def _at(structure: Any, path: tuple[Any, ...]) -> Any:
    """The part of nested dicts and tuples at a path; one value alone counts for every part."""
    for step in path:
        if not isinstance(structure, (dict, tuple)):
            break
        structure = structure[step]
    return structure
