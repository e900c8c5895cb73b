"""Numbers of TensorFlow's types, as in its types.proto."""

from __future__ import annotations

from tfrkit.features.tensor_dtypes import DTYPE_NUMBERS, UNSEEN_DTYPES


def test_numbers_are_those_of_tensorflow() -> None:
    first = "float32 float64 int32 uint8 int16 int8 string complex64 int64 bool".split()
    numbers = {name: number for number, name in enumerate(first, 1)}
    numbers |= {"bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23}
    late = "float8_e5m2 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2fnuz int4 uint4".split()
    assert numbers | {name: number for number, name in enumerate(late, 24)} == DTYPE_NUMBERS
    assert set(late) == UNSEEN_DTYPES
