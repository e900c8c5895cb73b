"""Conversion of a Python value to one of the three lists of an Example, without silent loss.

    int, bool, NumPy integer            Int64List of one
    float exact in float32              FloatList of one
    bytes, str                          BytesList of one
    list or 1-D array of these          the same list, longer
    any other dtype, or rank above 1    a serialized tensor, see codec/tensor_proto.py
    None                                a Feature with no list

A float that is not exact in float32 requires a choice: `floats="float32"` rounds, `floats="float64"` stores all
floats as serialized tensors.
"""

from __future__ import annotations

import sys
from typing import Any, Literal

import numpy as np

from tfrkit.codec.tensor_proto import encode_tensor
from tfrkit.errors import E, FeatureKindError, Hint, ShapeError, Step, at_row
from tfrkit.features.schema import show_name
from tfrkit.features.tensor_dtypes import NARROW_FLOATS

Floats = Literal["ask", "float32", "float64"]
Coerced = tuple[str, Any]
"""A kind, and a list of bytes or a contiguous array of int64 or float32."""

_Array = np.ndarray[Any, Any]
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_STORED = {"int64": "<i8", "float": "<f4"}
_TEXT = (str, bytes, bytearray, memoryview, np.bytes_, np.str_)
_INTEGER = (int, np.integer, np.bool_)
# Hints for missing values of pandas and for types that cannot be stored in records.
_NO_VALUE = "if it means no value: pass None, leave the key out, or give the table itself, build(df, path)"
_TIME = "pass text or a number: value.isoformat(), value.timestamp()"
_REMEDIES = {
    "NAType": _NO_VALUE,
    "NaTType": _NO_VALUE,
    "Timestamp": _TIME,
    "datetime": _TIME,
    "date": "pass text or a number: value.isoformat(), value.toordinal()",
    "Decimal": "pass text or a number: str(value), float(value)",
}


class Coercer:
    """Converts values that the core does not accept directly. The writer sets `row`, for messages."""

    def __init__(self, floats: Floats = "ask") -> None:
        if floats not in ("ask", "float32", "float64"):
            raise ValueError(f"floats expected 'ask', 'float32' or 'float64', got {floats!r}")
        self._floats = floats
        self._wide_names: set[str] = set()  # features whose floats are kept as float64 tensors
        self.row = 0
        self.untyped: list[str] | None = None
        """Features of this row that are empty lists of unknown kind; if None, such a list raises."""

    def __call__(self, name: str, value: object, expected: str | None) -> Coerced:
        """Convert a value to the list to store; errors name the feature and the row."""
        if name in self._wide_names and isinstance(value, (*_INTEGER, float)):
            return "bytes", [encode_tensor(np.float64(self._exact_float(name, value)))]
        kind, values = self.coerce_free(name, value, expected)
        if expected is None or kind == expected:
            return kind, values
        if expected == "float" and kind == "int64":
            return "float", self.ints_to_float32(name, values)
        raise self._wrong_kind(name, value, expected, kind)

    def make_error(self, kind: type[E], name: str, what: str, hint: str | None = None) -> E:
        """Make an error about a feature of the current row."""
        return at_row(kind, f"feature {show_name(name)} {what}", self.row, hint)

    def coerce_free(self, name: str, value: object, expected: str | None) -> Coerced:
        """Convert a value without comparing the kind; `expected` is only the kind of an empty list."""
        if isinstance(value, _TEXT):
            return "bytes", [self.to_bytes(name, value)]
        if isinstance(value, dict):
            raise self.make_error(
                TypeError,
                name,
                "expected a value, got a dict",
                'a SequenceExample is {"context": {...}, "feature_lists": {...}}',
            )
        if isinstance(value, (list, tuple)):
            if not value:
                if expected is None:
                    if self.untyped is None:
                        raise self._untyped_list(name, value)
                    self.untyped.append(name)
                    return "unset", []
                return expected, [] if expected == "bytes" else np.empty(0, _STORED[expected])
            if all(isinstance(item, _TEXT) for item in value):
                return "bytes", [self.to_bytes(name, item) for item in value]
        return self._coerce_array(name, value)

    def _coerce_array(self, name: str, value: object) -> Coerced:
        is_typed = hasattr(value, "dtype") and hasattr(value, "shape")
        array = self.to_array(name, value)
        if array.dtype.kind in "SUO" and array.ndim <= 1:
            return "bytes", [self.to_bytes(name, item) for item in array.reshape(-1).tolist()]
        # For a scalar or a Python list the values decide the kind; for an array also its dtype.
        is_plain = array.ndim == 0 or (array.ndim == 1 and not is_typed)
        if array.dtype.kind in "iub" and is_plain:
            return "int64", self.to_int64(name, array)
        if array.dtype.kind == "f" and is_plain and (array.dtype.itemsize <= 4 or self._floats != "float64"):
            return "float", self.to_float32(name, array, must_be_exact=self._floats == "ask")
        if array.ndim == 1 and is_typed:
            if array.dtype.newbyteorder("=") == np.int64:
                return "int64", np.ascontiguousarray(array, "<i8")
            if array.dtype.newbyteorder("=") == np.float32:
                return "float", np.ascontiguousarray(array, "<f4")
            if array.dtype.newbyteorder("=") == np.float64 and self._floats == "float32":
                return "float", self.to_float32(name, array, must_be_exact=False)
        if array.ndim == 0 and array.dtype == np.float64:
            self._wide_names.add(name)
        return "bytes", [self.to_tensor(name, array)]

    def to_tensor(self, name: str, array: _Array, *, dtype: str | None = None) -> bytes:
        """Serialize an array as a tensor; `dtype` is that of `encode_tensor`."""
        try:
            return encode_tensor(array, dtype=dtype)
        except (TypeError, ValueError) as error:
            raise self.make_error(type(error), name, str(error)) from None

    def to_array(self, name: str, value: object) -> _Array:
        """Convert the value to an array of numbers, booleans or strings, without loss."""
        if is_masked(value):
            raise self.make_error(TypeError, name, "expected an array, got a masked array, whose gaps cannot be stored")
        if isinstance(value, (list, tuple)):
            return self._list_to_array(name, value)
        if isinstance(value, int) and not _INT64_MIN <= value <= _INT64_MAX:
            raise self._too_large(name, value)
        try:
            array = np.asarray(value)
        except (ValueError, TypeError) as error:
            raise self.make_error(TypeError, name, str(error)) from None
        is_object = array.dtype.kind == "O" and array.ndim == 0 and not isinstance(array.item(), _TEXT)
        # Arrays of ml_dtypes have the float types that NumPy lacks.
        is_known = array.dtype.kind in "iubfcSUO" or array.dtype.name in NARROW_FLOATS
        if not is_known or is_object:
            raise self._wrong_type(name, value)
        return array

    def _list_to_array(self, name: str, value: list[Any] | tuple[Any, ...]) -> _Array:
        """Check each leaf, because NumPy would convert [1, b"a"] to strings and large integers to floats."""
        if value and all(isinstance(item, np.ndarray) for item in value):
            return self._stack(name, value)
        shape = self._find_shape(name, value)
        leaves: list[Any] = list(value)
        for _ in shape[1:]:
            leaves = [item for inner in leaves for item in inner]
        if not leaves:
            raise self._untyped_list(name, value)
        if all(isinstance(leaf, _TEXT) for leaf in leaves):
            strings = np.empty(len(leaves), object)
            strings[:] = [self.to_bytes(name, leaf) for leaf in leaves]
            return strings.reshape(shape)
        if len(shape) > 1 and all(isinstance(leaf, (bool, np.bool_)) for leaf in leaves):
            return np.array(leaves, np.bool_).reshape(shape)
        if all(isinstance(leaf, _INTEGER) for leaf in leaves):
            for leaf in leaves:
                if not _INT64_MIN <= int(leaf) <= _INT64_MAX:
                    raise self._too_large(name, int(leaf))
            return np.array([int(leaf) for leaf in leaves], np.int64).reshape(shape)
        if all(isinstance(leaf, (*_INTEGER, float, np.floating)) for leaf in leaves):
            return np.array([self._exact_float(name, leaf) for leaf in leaves], np.float64).reshape(shape)
        if all(isinstance(leaf, (*_INTEGER, float, complex, np.number)) for leaf in leaves):
            return np.array(leaves, np.complex128).reshape(shape)
        odd = next((x for x in leaves if not isinstance(x, (*_TEXT, *_INTEGER, float, np.floating))), None)
        got = type(odd).__name__ if odd is not None or None in leaves else "values of several types"
        raise self.make_error(TypeError, name, f"expected numbers, bytes, str or arrays of the same type, got {got}")

    def _stack(self, name: str, arrays: Any) -> _Array:
        if len({(array.shape, array.dtype) for array in arrays}) != 1:
            raise self.make_error(
                ShapeError,
                name,
                f"expected arrays of one shape and dtype, got {arrays[0].shape} {arrays[0].dtype} and others",
            )
        return np.stack(arrays)

    def _find_shape(self, name: str, value: Any) -> tuple[int, ...]:
        """Find the shape of a nested list; raise if its lists differ in length."""
        shape: list[int] = []
        level: list[Any] = [value]
        while level and all(isinstance(item, (list, tuple, np.ndarray)) for item in level):
            if len(shape) == 32:
                raise self.make_error(ShapeError, name, "expected at most 32 dimensions, got a list nested more deeply")
            if isinstance(level[0], np.ndarray) and level[0].ndim == 0:
                break
            lengths = {len(item) for item in level}
            if len(lengths) != 1:
                break
            shape.append(lengths.pop())
            level = [inner for item in level for inner in item]
        if any(isinstance(item, (list, tuple)) or (isinstance(item, np.ndarray) and item.ndim) for item in level):
            raise self.make_error(ShapeError, name, "expected rows of equal length, got a nested list that is ragged")
        return tuple(shape)

    def to_int64(self, name: str, array: _Array) -> _Array:
        """Convert integers or booleans to the flat array of an Int64List."""
        if array.dtype == np.uint64 and array.size and int(array.max()) > _INT64_MAX:
            raise self._too_large(name, int(array.max()))
        return np.ascontiguousarray(array.reshape(-1), "<i8")

    def ints_to_float32(self, name: str, array: _Array) -> _Array:
        """Convert integers in a column of floats to a flat float32 array; raise rather than round, unless allowed."""
        stored = np.ascontiguousarray(array.reshape(-1), "<f4")
        if self._floats != "float32":
            for value, rounded in zip(array.reshape(-1).tolist(), stored.tolist(), strict=True):
                if value != rounded:  # Python compares int and float exactly
                    raise self._would_round(name, value, rounded)
        return stored

    def to_float32(self, name: str, array: _Array, *, must_be_exact: bool) -> _Array:
        """Convert floats to the flat array of a FloatList."""
        wide = array.reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            stored = np.ascontiguousarray(wide, "<f4")
        overflown = np.isinf(stored) & ~np.isinf(wide)
        if overflown.any():
            raise self.make_error(
                OverflowError,
                name,
                f"expected a number that fits in float32, got {wide[overflown][0].item()!r}",
                Hint(Step("keep it exactly: {floats}", floats="float64")),
            )
        if must_be_exact:
            rounded = (stored.astype(wide.dtype) != wide) & ~np.isnan(wide)
            if rounded.any():
                first = wide[rounded][0]
                raise self._would_round(name, float(first), float(np.float32(first)))
        return stored

    def to_bytes(self, name: str, value: object) -> bytes:
        """Return bytes unchanged, and text as UTF-8."""
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        if not isinstance(value, str):
            raise self._wrong_type(name, value)
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise self.make_error(
                ValueError, name, f"expected text that UTF-8 can encode, got {value[error.start]!r}"
            ) from None

    def _exact_float(self, name: str, value: Any) -> float:
        if isinstance(value, _INTEGER):
            whole = int(value)
            try:
                if float(whole) == whole:
                    return float(whole)
            except OverflowError:
                pass
            raise self.make_error(
                OverflowError, name, f"expected a number that float64 represents exactly among floats, got {whole}"
            )
        return float(value)

    def _wrong_kind(self, name: str, value: object, expected: str, kind: str) -> FeatureKindError:
        got, hint = kind, None
        if isinstance(value, float) and value != value:
            got = "NaN"
            hint = _NO_VALUE
        elif expected == "float" and kind == "bytes":
            hint = f"NaN is a float; {_NO_VALUE}"
        return self.wrong_kind(name, expected, got, hint)

    def wrong_kind(self, name: str, expected: str, got: str, hint: str | None = None) -> FeatureKindError:
        """Make the error for a value whose kind is not that of the rows before."""
        if (expected, got) == ("int64", "float"):
            hint = f'store all as floats: schema={{"{name}": "float"}}'
        return self.make_error(FeatureKindError, name, f"expected {expected} as in rows before, got {got}", hint)

    def _wrong_type(self, name: str, value: object) -> TypeError:
        dtype = f" of {value.dtype}" if isinstance(value, np.ndarray) else ""
        kind = type(value).__name__
        hint = _REMEDIES.get(kind)
        return self.make_error(TypeError, name, f"expected numbers, bytes, str or arrays, got {kind}{dtype}", hint)

    def _untyped_list(self, name: str, value: object) -> ValueError:
        return self.make_error(
            ValueError,
            name,
            f"expected a typed empty list, got {value}",
            "pass np.array([], np.int64) or np.array([], np.float32), or give its type: schema=ds.schema",
        )

    def _too_large(self, name: str, value: int) -> OverflowError:
        return self.make_error(OverflowError, name, f"expected a signed 64-bit integer, got {value}")

    def _would_round(self, name: str, value: float, rounded: float) -> ValueError:
        return self.make_error(
            ValueError,
            name,
            f"would round {value!r} to {rounded!r} in a float32 list",
            Hint(Step("round it: {floats}", floats="float32"), Step("keep it as a tensor: {floats}", floats="float64")),
        )


def is_masked(value: object) -> bool:
    """Whether this is a masked array. Checked only if numpy.ma is already imported: importing it is slow."""
    return "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray)
