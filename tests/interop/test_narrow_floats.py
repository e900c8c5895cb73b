"""Floats that NumPy lacks have the values that ml_dtypes gives them, which TensorFlow and JAX use."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tfrkit as tfr
from tfrkit.codec.narrow_floats import bits_dtype, widen_floats
from tfrkit.features.tensor_dtypes import NARROW_FLOATS


@pytest.mark.parametrize("dtype", sorted(NARROW_FLOATS))
def test_every_value_is_that_of_ml_dtypes(dtype: str) -> None:
    bits = np.arange(1 << 8 * bits_dtype(dtype).itemsize).astype(bits_dtype(dtype))
    expected = bits.view(getattr(ml_dtypes, dtype)).astype(np.float32)
    np.testing.assert_array_equal(widen_floats(bits, dtype), expected)


@pytest.mark.parametrize("dtype", sorted(NARROW_FLOATS))
def test_arrays_of_ml_dtypes_are_written_as_what_they_are(dtype: str, tmp_path: Path) -> None:
    array = np.array([1.5, -2.0]).astype(getattr(ml_dtypes, dtype))
    with tfr.Writer(tmp_path / "a.tfrecord") as writer:
        writer.write({"x": array})
        writer.write_columns({"x": array[None]})
    # Without a schema, bytes are detected as bfloat16 tensors but not as 8-bit ones.
    schema = tfr.Schema({"x": tfr.Spec("bytes", (2,), "tensor", "tensor_proto", dtype)})
    with tfr.Writer(tmp_path / "b.tfrecord", schema=schema) as writer:
        writer.write({"x": array})
        writer.write({"x": [1.5, -2.0]})
    stored = []
    for name in ("a", "b"):
        ds = tfr.open(tmp_path / f"{name}.tfrecord", schema=schema)
        assert [row["x"].tolist() for row in ds] == [[1.5, -2.0]] * 2
        stored += map(bytes, ds.records())
    assert len(set(stored)) == 1
