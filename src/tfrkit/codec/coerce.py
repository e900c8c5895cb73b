"""From a Python value to one of Example's three lists, without losing anything unasked.

    int, bool, NumPy integer            Int64List of one
    float that float32 holds exactly    FloatList of one
    bytes, str                          BytesList of one
    list or 1-D array of these          the same list, longer
    any other dtype, or rank above 1    a serialized tensor, see codec/tensor_proto.py
    None                                a Feature with no list

A float that float32 does not hold asks for a choice: `floats="float32"` rounds, `floats="float64"` keeps it
as a serialized tensor.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tfrkit.codec.tensor_proto import encode_tensor
from tfrkit.errors import FeatureKindError, ShapeError
from tfrkit.features.schema import show_name

Floats = Literal["ask", "float32", "float64"]
Coerced = tuple[str, Any]
"""A kind, with a list of bytes or a contiguous array of int64 or float32."""

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1


class Coercer:
    """Decides for values the core does not take by itself. `row` is kept by the writer, for messages."""

    def __init__(self, floats: Floats = "ask") -> None:
        if floats not in ("ask", "float32", "float64"):
            raise ValueError(f"floats expected 'ask', 'float32' or 'float64', got {floats!r}")
        self._floats = floats
        self.row = 0

    def __call__(self, name: str, value: object, expected: str | None) -> Coerced:
        """The list to store; raises with the name of the feature and the row."""
        kind, values = self.coerce_free(name, value, expected)
        if expected is not None and kind != expected:
            if expected == "float" and kind == "int64":
                return "float", self.to_float32(name, values.astype(np.float64), must_be_exact=True)
            raise FeatureKindError(
                f"feature {show_name(name)} expected {expected} as in rows before, got {kind} - at row {self.row}"
            )
        return kind, values

    def coerce_free(self, name: str, value: object, expected: str | None) -> Coerced:
        """The same without comparing the kind; `expected` types an empty list."""
        if isinstance(value, str):
            return "bytes", [self._encode_text(name, value)]
        if isinstance(value, (bytes, bytearray, memoryview)):
            return "bytes", [bytes(value)]
        if isinstance(value, dict):
            raise TypeError(
                f"feature {show_name(name)} expected a value, got a dict - at row {self.row}\n"
                '  a SequenceExample is {"context": {...}, "feature_lists": {...}}'
            )
        if isinstance(value, (list, tuple)):
            if not value:
                if expected is None:
                    raise ValueError(
                        f"feature {show_name(name)} expected a typed empty list, got [] - at row {self.row}\n"
                        "  pass np.array([], np.int64), np.array([], np.float32) or a schema"
                    )
                return expected, [] if expected == "bytes" else np.empty(0, _STORED[expected])
            if all(isinstance(item, (str, bytes, bytearray, memoryview)) for item in value):
                return "bytes", [self._encode_text(name, v) if isinstance(v, str) else bytes(v) for v in value]
        return self._coerce_array(name, value)

    def _coerce_array(self, name: str, value: object) -> Coerced:
        is_typed = isinstance(value, np.ndarray) or (hasattr(value, "dtype") and hasattr(value, "shape"))
        array = self.to_array(name, value)
        if array.dtype.kind in "SUO" and array.ndim <= 1:
            return "bytes", [
                self._encode_text(name, item) if isinstance(item, str) else self._require_bytes(name, item)
                for item in array.reshape(-1).tolist()
            ]
        # A scalar, or a plain Python list, is about values; an array is about its dtype too.
        is_plain = array.ndim == 0 or (array.ndim == 1 and not is_typed)
        if array.dtype.kind in "iub" and is_plain:
            return "int64", self.to_int64(name, array)
        if array.dtype.kind == "f" and is_plain and (array.dtype.itemsize <= 4 or self._floats != "float64"):
            return "float", self.to_float32(name, array, must_be_exact=self._floats == "ask")
        if array.ndim == 1 and is_typed:
            if array.dtype == np.int64:
                return "int64", np.ascontiguousarray(array, "<i8")
            if array.dtype == np.float32:
                return "float", np.ascontiguousarray(array, "<f4")
            if array.dtype == np.float64 and self._floats == "float32":
                return "float", self.to_float32(name, array, must_be_exact=False)
        try:
            return "bytes", [encode_tensor(array)]
        except TypeError as error:
            raise TypeError(f"feature {show_name(name)} {error} - at row {self.row}") from None

    def to_array(self, name: str, value: object) -> np.ndarray[Any, Any]:
        """The value as an array of numbers, booleans or strings."""
        try:
            array = np.asarray(value)
        except ValueError:
            raise ShapeError(
                f"feature {show_name(name)} expected rows of one length, got a nested list that is ragged "
                f"- at row {self.row}"
            ) from None
        if array.dtype.kind == "O" and array.ndim == 0:
            raise TypeError(
                f"feature {show_name(name)} expected numbers, bytes, str or arrays, got {type(value).__name__} "
                f"- at row {self.row}"
            )
        if array.dtype.kind in "OU" and isinstance(value, (list, tuple)) and _has_int(value):
            raise OverflowError(
                f"feature {show_name(name)} expected integers of 64 bits or values of one type, got "
                f"{str(value)[:64]} - at row {self.row}"
            )
        return array

    def to_int64(self, name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Integers or booleans, flat, as an Int64List holds them."""
        if array.dtype == np.uint64 and array.size and int(array.max()) > _INT64_MAX:
            raise OverflowError(
                f"feature {show_name(name)} expected an integer of 64 bits with sign, got {int(array.max())} "
                f"- at row {self.row}"
            )
        return np.ascontiguousarray(array.reshape(-1), "<i8")

    def to_float32(self, name: str, array: np.ndarray[Any, Any], *, must_be_exact: bool) -> np.ndarray[Any, Any]:
        """Floats, flat, as a FloatList holds them."""
        wide = array.reshape(-1)
        with np.errstate(over="ignore"):
            stored = np.ascontiguousarray(wide, "<f4")
        overflown = np.isinf(stored) & ~np.isinf(wide)
        if overflown.any():
            raise OverflowError(
                f"feature {show_name(name)} expected a number that float32 holds, got {wide[overflown][0]!r} "
                f'- at row {self.row}\n  keep it exactly: Writer(..., floats="float64")'
            )
        if must_be_exact:
            rounded = (stored.astype(wide.dtype) != wide) & ~np.isnan(wide)
            if rounded.any():
                first = wide[rounded][0]
                raise ValueError(
                    f"feature {show_name(name)} would round {float(first)!r} to "
                    f"{float(np.float32(first))!r} in a float32 list - at row {self.row}\n"
                    '  choose: Writer(..., floats="float32") rounds, floats="float64" keeps it as a tensor'
                )
        return stored

    def _encode_text(self, name: str, text: str) -> bytes:
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"feature {show_name(name)} expected text that UTF-8 holds, got {text[error.start]!r} "
                f"- at row {self.row}"
            ) from None

    def _require_bytes(self, name: str, item: object) -> bytes:
        if isinstance(item, (bytes, bytearray)):
            return bytes(item)
        raise TypeError(
            f"feature {show_name(name)} expected numbers, bytes, str or arrays, got {type(item).__name__} "
            f"- at row {self.row}"
        )


_STORED = {"int64": "<i8", "float": "<f4"}


def _has_int(value: Any) -> bool:
    return any(isinstance(item, (int, float)) for item in value)
