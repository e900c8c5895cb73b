"""Shapes with TensorFlow's methods: `tf.TensorShape`, `tf.Dimension`, `tf.TensorSpec`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from tfrkit.compat.dtypes import DType, as_dtype


class Dimension(int):
    """A size: an int that also has `.value`, as in TensorFlow 1."""

    __slots__ = ()

    def __new__(cls, value: Any) -> Dimension:
        return super().__new__(cls, value)

    @property
    def value(self) -> int:
        return int(self)


class TensorShape(tuple[Any, ...]):
    """A shape: a tuple of sizes, None if a size is unknown. `TensorShape(None)` has unknown rank."""

    _is_known: bool

    def __new__(cls, dims: Any = None) -> TensorShape:
        is_known = dims is not None and getattr(dims, "_is_known", True)
        sizes: Iterable[Any] = () if not is_known else dims if isinstance(dims, Iterable) else (dims,)
        made = super().__new__(cls, [None if size in (None, -1) else Dimension(size) for size in sizes])
        made._is_known = is_known
        return made

    def as_list(self) -> list[Any]:
        """Return the sizes as a list."""
        self._require_rank()
        return [None if size is None else int(size) for size in tuple(self)]

    @property
    def dims(self) -> list[Any] | None:
        return list(self) if self._is_known else None

    @property
    def rank(self) -> int | None:
        return len(self) if self._is_known else None

    ndims = rank

    def num_elements(self) -> int | None:
        """Return the number of values, or None if it is unknown."""
        return math.prod(self) if self.is_fully_defined() else None

    def is_fully_defined(self) -> bool:
        """Whether every size is known."""
        return self._is_known and None not in tuple(self)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether one tensor can have both shapes."""
        theirs = TensorShape(other)
        if not (self._is_known and theirs._is_known):
            return True
        pairs = zip(tuple(self), tuple(theirs), strict=False)
        return len(self) == len(theirs) and all(None in pair or pair[0] == pair[1] for pair in pairs)

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise if no tensor can have both shapes."""
        if not self.is_compatible_with(other):
            raise ValueError(f"shape expected {self}, got {TensorShape(other)}")

    def concatenate(self, other: Any) -> TensorShape:
        """Return the sizes of both shapes, one after the other."""
        theirs = TensorShape(other)
        return TensorShape((*self, *theirs)) if self._is_known and theirs._is_known else TensorShape(None)

    def merge_with(self, other: Any) -> TensorShape:
        """Combine two compatible shapes: a size is known if either shape knows it."""
        self.assert_is_compatible_with(other)
        theirs = TensorShape(other)
        if not (self._is_known and theirs._is_known):
            return self if self._is_known else theirs
        return TensorShape([mine if theirs is None else theirs for mine, theirs in zip(self, theirs, strict=True)])

    def _require_rank(self) -> None:
        if not self._is_known:
            raise ValueError("expected a shape with a known rank, got an unknown one")

    def __getitem__(self, key: Any) -> Any:
        self._require_rank()
        found = super().__getitem__(key)
        return TensorShape(found) if isinstance(key, slice) else found

    def __iter__(self) -> Iterator[Any]:
        self._require_rank()
        return super().__iter__()

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TensorShape) and not (self._is_known and other._is_known):
            return self._is_known == other._is_known
        return tuple.__eq__(self, tuple(other)) if isinstance(other, (list, tuple)) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return super().__hash__()

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (tuple(self) if self._is_known else None,)

    def __str__(self) -> str:
        return str(tuple(self)) if self._is_known else "<unknown>"

    def __repr__(self) -> str:
        return f"TensorShape({self.as_list() if self._is_known else None})"


class TensorSpec:
    """Shape and type of a tensor, for `Dataset.from_generator(output_signature=...)`."""

    def __init__(self, shape: Any, dtype: Any = "float32", name: Any = None) -> None:
        self.shape = TensorShape(shape)
        self.dtype: DType = as_dtype(dtype)
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"
