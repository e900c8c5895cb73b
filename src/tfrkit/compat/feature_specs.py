"""Feature specs for the parse functions: `FixedLenFeature` and others."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tfrkit.compat.dtypes import DTYPES, DType, as_dtype, string
from tfrkit.compat.op_errors import InvalidArgumentError

# TensorFlow parses only into these three types.
KINDS: dict[DType, str] = {DTYPES["int64"]: "int64", DTYPES["float32"]: "float", string: "bytes"}


class FixedLenFeature(NamedTuple):
    """A fixed number of values, given by the shape; a feature without a default must be present."""

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """Any number of values, returned as a SparseTensor."""

    dtype: Any


class FixedLenSequenceFeature(NamedTuple):
    """Any number of items of one shape, padded in a batch."""

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class SparseFeature(NamedTuple):
    """Values of one feature with their indices in other features, returned as a SparseTensor of a given size."""

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class _Partition(NamedTuple):
    key: str


class _RaggedFeature(NamedTuple):
    dtype: Any
    value_key: str | None = None
    partitions: Any = ()
    row_splits_dtype: Any = "int32"
    validate: bool = False


class RaggedFeature(_RaggedFeature):
    """Any number of values: a vector for one record, a RaggedTensor for a batch.

    `partitions` split the values into rows, outermost first; all but UniformRowLength name an int64 feature.
    """

    __slots__ = ()

    class RowSplits(_Partition):
        """Split by the start of each row and the end of the last row."""

    class RowLengths(_Partition):
        """Split by the length of each row."""

    class RowStarts(_Partition):
        """Split by the start of each row."""

    class RowLimits(_Partition):
        """Split by the end of each row."""

    class ValueRowIds(_Partition):
        """Split by the row number of each value."""

    class UniformRowLength(NamedTuple):
        """Split into rows of equal length."""

        length: Any

    def __new__(
        cls,
        dtype: Any,
        value_key: str | None = None,
        partitions: Any = (),
        row_splits_dtype: Any = "int32",
        validate: bool = False,
    ) -> RaggedFeature:
        if not isinstance(partitions, (list, tuple)):
            raise TypeError(f"partitions expected a list, got {partitions!r}")
        for partition in partitions:
            if type(partition) not in PARTITIONS:
                raise TypeError(f"partitions expected RaggedFeature.RowLengths or another partition, got {partition!r}")
        return super().__new__(cls, dtype, value_key, partitions, row_splits_dtype, validate)


PARTITIONS = (
    RaggedFeature.RowSplits,
    RaggedFeature.RowLengths,
    RaggedFeature.RowStarts,
    RaggedFeature.RowLimits,
    RaggedFeature.ValueRowIds,
    RaggedFeature.UniformRowLength,
)
Spec = FixedLenFeature | VarLenFeature | FixedLenSequenceFeature | RaggedFeature | SparseFeature


def kind_of(spec: Spec) -> str:
    """Return the kind of list that holds the values of a spec."""
    dtype = as_dtype(spec.dtype)
    if dtype not in KINDS:
        raise InvalidArgumentError(
            None, None, f"dtype expected tf.int64, tf.float32 or tf.string, got {dtype!r}, which records cannot store"
        )
    return KINDS[dtype]


def shape_of(name: str, spec: FixedLenFeature | FixedLenSequenceFeature) -> tuple[int, ...]:
    """Return the shape of a spec; every size must be known."""
    sizes = spec.shape if isinstance(spec.shape, (list, tuple)) else [spec.shape]
    if hasattr(spec.shape, "tolist"):
        sizes = spec.shape.tolist()
    shape = []
    for size in sizes:
        if size is None:
            raise ValueError(
                f"feature {name!r} expected a shape of known sizes, got {spec.shape}\n"
                "  use FixedLenSequenceFeature or VarLenFeature"
            )
        if int(size) < 0:
            raise ValueError(f"feature {name!r} expected sizes of 0 or more, got shape {spec.shape}")
        shape.append(int(size))
    return tuple(shape)


def count_of(shape: tuple[int, ...]) -> int:
    """Return the number of values of a shape."""
    return math.prod(shape)


def check_features(features: Any, what: str = "features") -> dict[str, Any]:
    """Check that the argument of a parse function is a dict of names to specs, and return it."""
    if not isinstance(features, dict) or not features:
        raise ValueError(f"{what} expected a dict of names to feature specs, got {features!r}")
    for name in features:
        if not isinstance(name, str):
            raise TypeError(f"{what} expected names that are str, got {name!r}")
    return features


def refuse_spec(name: str, spec: Any) -> ValueError:
    """Make the error for a value that is not a supported spec."""
    return ValueError(
        f"feature {name!r} expected FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, SparseFeature or "
        f"RaggedFeature, if the function supports it, got {spec!r}"
    )
