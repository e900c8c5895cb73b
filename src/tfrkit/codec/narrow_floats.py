"""Conversion of bfloat16 and 8-bit floats, which NumPy lacks, to float32 and back. float32 has all their values."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

_Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class _Float8:
    """An 8-bit float: sign, `exponent_bits`, `fraction_bits`; the exponent counts from -bias.

    `specials`: "ieee" has infinities and NaNs, "fn" only NaNs, "fnuz" one NaN in place of -0.
    """

    exponent_bits: int
    fraction_bits: int
    bias: int
    specials: str


_FLOAT8 = {
    "float8_e5m2": _Float8(5, 2, 15, "ieee"),
    "float8_e4m3fn": _Float8(4, 3, 7, "fn"),
    "float8_e4m3fnuz": _Float8(4, 3, 8, "fnuz"),
    "float8_e4m3b11fnuz": _Float8(4, 3, 11, "fnuz"),
    "float8_e5m2fnuz": _Float8(5, 2, 16, "fnuz"),
}


def bits_dtype(dtype: str) -> np.dtype[Any]:
    """Return the integer dtype of the same width."""
    return np.dtype("<u2" if dtype == "bfloat16" else "u1")


def widen_floats(bits: _Array, dtype: str) -> _Array:
    """Convert narrow floats, given as bits, to float32.

    Example:
        >>> widen_floats(np.array([0x3F80, 0xC000], np.uint16), "bfloat16").tolist()
        [1.0, -2.0]
    """
    if dtype == "bfloat16":
        # A bfloat16 is the upper half of a float32.
        return np.left_shift(bits.reshape(-1), 16, dtype=np.uint32).view(np.float32).reshape(bits.shape)
    return _make_table(dtype)[bits.reshape(-1)].reshape(bits.shape)


def narrow_floats(values: _Array, dtype: str) -> _Array:
    """Convert values to the bits of a narrow float; ValueError for the first value that would be rounded."""
    shape, values = values.shape, values.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.ascontiguousarray(values, np.float32)
    is_nan = np.isnan(wide)
    if dtype == "bfloat16":
        bits = (wide.view(np.uint32) >> 16).astype(np.uint16)
        bits[is_nan & (bits & 0x7F == 0)] |= 0x40  # a NaN whose upper half would be an infinity
    else:
        # Values are compared by their bits, so that -0.0 is not 0.0.
        table = _make_table(dtype).view(np.uint32)
        order = np.argsort(table)
        found = np.searchsorted(table, wide.view(np.uint32), sorter=order)
        bits = order[np.minimum(found, 255)].astype(np.uint8)
        bits[is_nan] = np.flatnonzero(np.isnan(_make_table(dtype)))[0]
    back = widen_floats(bits, dtype)
    wrong = (back != values) & ~is_nan | (np.isnan(back) != is_nan)
    wrong |= (np.signbit(back) != np.signbit(values)) & ~is_nan
    if wrong.any():
        raise ValueError(f"expected numbers that {dtype} holds, got {values[wrong][0].item()!r}")
    return bits.astype(bits_dtype(dtype)).reshape(shape)


@functools.cache
def _make_table(dtype: str) -> _Array:
    """Compute the values of all 256 floats of 8 bits."""
    form = _FLOAT8[dtype]
    bits = np.arange(256)
    exponent = (bits >> form.fraction_bits) & ((1 << form.exponent_bits) - 1)
    fraction = bits & ((1 << form.fraction_bits) - 1)
    # Subnormal numbers (exponent 0) have no leading one.
    mantissa = fraction / (1 << form.fraction_bits) + (exponent > 0)
    values = np.ldexp(mantissa, np.maximum(exponent, 1) - form.bias)
    is_top = exponent == (1 << form.exponent_bits) - 1
    if form.specials == "ieee":
        values = np.where(is_top, np.where(fraction == 0, np.inf, np.nan), values)
    elif form.specials == "fn":
        values = np.where(is_top & (fraction == (1 << form.fraction_bits) - 1), np.nan, values)
    else:
        values = np.where(bits == 0x80, np.nan, values)
    table = np.where(bits >> 7 == 1, -values, values).astype(np.float32)
    table.flags.writeable = False
    return table
