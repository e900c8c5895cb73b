"""The numbers of tensorflow.DataType, with NumPy's names of the dtypes.

NumPy lacks bfloat16, the 8-bit floats and the 4-bit integers; they have the names that ml_dtypes registers.
Values of those floats are read as float32, which represents each of them exactly. "string" is DT_STRING, an
array of bytes objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DTYPE_NAMES: Mapping[int, str] = MappingProxyType(
    {
        1: "float32",
        2: "float64",
        3: "int32",
        4: "uint8",
        5: "int16",
        6: "int8",
        7: "string",
        8: "complex64",
        9: "int64",
        10: "bool",
        14: "bfloat16",
        17: "uint16",
        18: "complex128",
        19: "float16",
        22: "uint32",
        23: "uint64",
        24: "float8_e5m2",
        25: "float8_e4m3fn",
        26: "float8_e4m3fnuz",
        27: "float8_e4m3b11fnuz",
        28: "float8_e5m2fnuz",
        29: "int4",
        30: "uint4",
    }
)
DTYPE_NUMBERS: Mapping[str, int] = MappingProxyType({name: number for number, name in DTYPE_NAMES.items()})
NARROW_FLOATS = frozenset(name for name in DTYPE_NUMBERS if name == "bfloat16" or name.startswith("float8_"))
"""Floats that NumPy lacks; their values are read as float32 and may be written as float32."""

UNSEEN_DTYPES = frozenset(name for name, number in DTYPE_NUMBERS.items() if number >= 24)
"""8-bit floats and 4-bit integers: `tf.io.serialize_tensor` refuses them, so they are not detected in bytes."""


def name_value_dtype(dtype: str) -> str:
    """Return NumPy's name of the dtype that values have in batches and rows.

    Example:
        >>> name_value_dtype("bfloat16"), name_value_dtype("uint8")
        ('float32', 'uint8')
    """
    return "float32" if dtype in NARROW_FLOATS else dtype
