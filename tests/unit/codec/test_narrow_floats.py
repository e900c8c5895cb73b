"""bfloat16 and floats of 8 bits: every one of them is a float32 and comes back."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tfrkit.codec.narrow_floats import bits_dtype, narrow_floats, widen_floats
from tfrkit.features.tensor_dtypes import NARROW_FLOATS


@pytest.mark.parametrize("dtype", sorted(NARROW_FLOATS))
def test_every_number_comes_back(dtype: str) -> None:
    bits = np.arange(1 << 8 * bits_dtype(dtype).itemsize).astype(bits_dtype(dtype))
    values = widen_floats(bits, dtype)
    assert values.dtype == np.float32
    is_number = ~np.isnan(values)
    assert (narrow_floats(values, dtype) == bits)[is_number].all()
    assert np.isnan(widen_floats(narrow_floats(values[~is_number], dtype), dtype)).all()
    assert len(np.unique(values[is_number].view(np.uint32))) == is_number.sum()


# Largest and smallest positive number, infinities and NaNs as the format specifications state them.
@pytest.mark.parametrize(
    ("dtype", "largest", "smallest", "num_infinite", "num_nan"),
    [
        ("bfloat16", 3.3895313892515355e38, 9.183549615799121e-41, 2, 254),
        ("float8_e5m2", 57344, 2**-16, 2, 6),
        ("float8_e4m3fn", 448, 2**-9, 0, 2),
        ("float8_e4m3fnuz", 240, 2**-10, 0, 1),
        ("float8_e4m3b11fnuz", 30, 2**-13, 0, 1),
        ("float8_e5m2fnuz", 57344, 2**-17, 0, 1),
    ],
)
def test_ranges_are_those_of_the_format(
    dtype: str, largest: float, smallest: float, num_infinite: int, num_nan: int
) -> None:
    values = widen_floats(np.arange(1 << 8 * bits_dtype(dtype).itemsize).astype(bits_dtype(dtype)), dtype)
    finite = values[np.isfinite(values)]
    assert (finite.max(), finite[finite > 0].min()) == (largest, np.float32(smallest))
    assert (np.isinf(values).sum(), np.isnan(values).sum()) == (num_infinite, num_nan)


@pytest.mark.parametrize(("dtype", "bits"), [("bfloat16", 0x3FC0), ("float8_e5m2", 0x3E), ("float8_e4m3fn", 0x3C)])
def test_one_and_a_half(dtype: str, bits: int) -> None:
    assert narrow_floats(np.array(1.5), dtype) == bits
    assert widen_floats(np.array(bits, bits_dtype(dtype)), dtype).shape == ()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("bfloat16", 0.1),
        ("bfloat16", 1e39),
        ("bfloat16", 257),
        ("float8_e5m2", 1.125),
        ("float8_e4m3fn", np.inf),
        ("float8_e4m3fnuz", -0.0),
    ],
)
def test_number_that_would_round_is_named(dtype: str, value: float) -> None:
    with pytest.raises(ValueError, match=re.escape(f"expected numbers that {dtype} holds, got {value}")):
        narrow_floats(np.array([1, value]), dtype)


def test_nan_with_bits_in_the_lower_half_stays_nan() -> None:
    nan = np.array([0x7F800001], np.uint32).view(np.float32)
    assert np.isnan(widen_floats(narrow_floats(nan, "bfloat16"), "bfloat16")).all()
