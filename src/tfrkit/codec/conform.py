"""Conversion of rows to the form of a given schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrkit.codec.coerce import Coercer, Floats
from tfrkit.codec.narrow_floats import narrow_floats
from tfrkit.errors import FeatureKindError, MissingFeatureError, SchemaError, ShapeError, at_row
from tfrkit.features.schema import describe_missing, find_nearest_name, show_name
from tfrkit.features.spec import Spec
from tfrkit.features.tensor_dtypes import NARROW_FLOATS

_Array = np.ndarray[Any, Any]


class SchemaCoercer:
    """Converts rows to the form of a schema; raises for values that do not fit."""

    def __init__(self, floats: Floats = "ask") -> None:
        self._plain = Coercer(floats)
        self._floats = floats

    def conform(self, row: Mapping[str, Any], specs: Mapping[str, Spec], row_number: int) -> dict[str, Any]:
        """Return the row with every value in stored form, in the order of the schema."""
        self.check_names(row, specs, row_number)
        self._plain.row = row_number
        stored = {}
        for name, spec in specs.items():
            if name not in row:
                if not spec.optional:
                    raise self._plain.make_error(MissingFeatureError, name, "expected in every row, got none")
                continue
            stored[name] = self.conform_value(name, row[name], spec, row_number)
        return stored

    def check_names(self, row: Mapping[str, Any], specs: Mapping[str, Spec], row_number: int) -> None:
        """Raise for a name that is not in the schema."""
        for name in row:
            if name not in specs:
                raise at_row(MissingFeatureError, f"{describe_missing(name, specs)} in the schema", row_number)

    def conform_value(self, name: str, value: Any, spec: Spec, row_number: int) -> Any:
        """Convert one value to stored form: a flat array of the right dtype, or a list of bytes."""
        self._plain.row = row_number
        if value is None:
            if spec.optional:
                return None
            raise self._plain.make_error(MissingFeatureError, name, "expected a value, got None")
        if spec.kind == "int64" and spec.num_classes is not None:
            value = self._to_class_ids(name, value, spec)
        if spec.encoding == "tensor_proto":
            array = self._to_inner_array(name, value, spec)
            narrow = spec.dtype if spec.dtype in NARROW_FLOATS else None
            return [self._plain.to_tensor(name, array, dtype=narrow)]
        if spec.encoding == "raw":
            array = self._to_inner_array(name, value, spec)
            return [(narrow_floats(array, spec.dtype) if spec.dtype in NARROW_FLOATS else array).tobytes()]
        if spec.encoding != "list":
            raise SchemaError(f"feature {show_name(name)} expected a list, tensor or raw bytes, got {spec.encoding!r}")
        if spec.kind == "bytes":
            return self._to_bytes_list(name, value, spec)
        array = self._to_numbers(name, value, spec.kind)
        if array.dtype.kind not in ("iub" if spec.kind == "int64" else "iubf"):
            raise self._plain.make_error(FeatureKindError, name, f"expected {spec.kind}, got {array.dtype}")
        self._check_shape(name, array.shape, spec)
        if spec.kind == "int64":
            return self._plain.to_int64(name, array)
        if array.dtype.kind != "f":
            return self._plain.ints_to_float32(name, array)
        return self._plain.to_float32(name, array, must_be_exact=self._floats == "ask")

    def _to_numbers(self, name: str, value: Any, kind: str) -> _Array:
        if isinstance(value, (list, tuple)) and not value:
            return np.empty(0, np.int64 if kind == "int64" else np.float32)
        return self._plain.to_array(name, value)

    def _to_bytes_list(self, name: str, value: Any, spec: Spec) -> list[bytes]:
        if isinstance(value, np.ndarray) and value.dtype.kind not in "SUO":
            raise self._plain.make_error(FeatureKindError, name, f"expected bytes, got an array of {value.dtype}")
        kind, values = self._plain.coerce_free(name, value, "bytes")
        if kind != "bytes":
            raise self._plain.make_error(FeatureKindError, name, f"expected bytes, got {kind}")
        is_single = isinstance(value, (str, bytes, bytearray, memoryview, np.bytes_, np.str_))
        self._check_shape(name, () if is_single else (len(values),), spec)
        stored: list[bytes] = values
        return stored

    def _to_class_ids(self, name: str, value: Any, spec: Spec) -> Any:
        """Convert class names to ids, and check ids against the number of classes."""
        if isinstance(value, str):
            classes = spec.classes or ()
            if value not in classes:
                nearest = find_nearest_name(value, classes)
                hint = f", did you mean {show_name(nearest)}" if nearest is not None else ""
                raise self._plain.make_error(SchemaError, name, f"has no class {show_name(value)}{hint}")
            return classes.index(value)
        if isinstance(value, (list, tuple)) and any(isinstance(item, str) for item in value):
            return [self._to_class_ids(name, item, spec) for item in value]
        array = self._to_numbers(name, value, "int64")
        if array.dtype.kind in "iub" and array.size and spec.num_classes is not None:
            counted = array[array != spec.ignore] if spec.ignore is not None else array
            low, high = (int(counted.min()), int(counted.max())) if counted.size else (0, 0)
            if low < 0 or high >= spec.num_classes:
                raise self._plain.make_error(
                    SchemaError, name, f"expected class ids 0..{spec.num_classes - 1}, got {low if low < 0 else high}"
                )
        return value

    def _to_inner_array(self, name: str, value: Any, spec: Spec) -> _Array:
        """Convert a value to the array for a serialized tensor or raw bytes, of the schema's dtype and shape."""
        array = self._to_numbers(name, value, "int64" if spec.dtype != "string" else "bytes")
        wants_text, is_text = spec.dtype == "string", array.dtype.kind in "SUO"
        if spec.dtype is not None and wants_text != is_text:
            raise self._wrong_dtype(name, spec, array)
        if spec.dtype in NARROW_FLOATS:
            array = self._to_narrow(name, array, spec)
        elif spec.dtype is not None and not is_text and array.dtype.name != spec.dtype:
            try:
                wanted = np.dtype(spec.dtype)
            except TypeError:
                raise SchemaError(
                    f"feature {show_name(name)} expected an array of {spec.dtype}, which NumPy does not have"
                ) from None
            with np.errstate(all="ignore"):
                cast = array.real.astype(wanted) if wanted.kind != "c" else array.astype(wanted)
                back = cast.astype(array.dtype)
            if not np.array_equal(back, array, equal_nan=array.dtype.kind in "fc" and wanted.kind in "fc"):
                raise self._wrong_dtype(name, spec, array)
            array = cast
        self._check_shape(name, array.shape, spec)
        return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)

    def _to_narrow(self, name: str, array: _Array, spec: Spec) -> _Array:
        """Convert numbers to float32 for a float type that NumPy lacks; raise if that type would round them."""
        if array.dtype.name in NARROW_FLOATS:  # an array of ml_dtypes
            array = array.astype(np.float32)
        if array.dtype.kind not in "iubf":
            raise self._wrong_dtype(name, spec, array)
        try:
            narrow_floats(array, str(spec.dtype))
        except ValueError as error:
            raise self._plain.make_error(FeatureKindError, name, str(error)) from None
        return array.astype(np.float32)

    def _wrong_dtype(self, name: str, spec: Spec, array: _Array) -> FeatureKindError:
        return self._plain.make_error(
            FeatureKindError, name, f"expected {spec.dtype}, got {array.dtype} values that do not fit it"
        )

    def _check_shape(self, name: str, shape: tuple[int, ...], spec: Spec) -> None:
        fits = len(shape) == len(spec.shape) and all(w in (None, g) for w, g in zip(spec.shape, shape, strict=True))
        is_one = spec.encoding == "list" and spec.shape == () and shape == (1,)
        # A single value is accepted as a list of one if the schema has shape (None,): tables have 5, not [5].
        is_list_of_one = spec.encoding == "list" and shape == () and len(spec.shape) == 1 and spec.shape[0] in (None, 1)
        if not (fits or is_one or is_list_of_one):
            raise self._plain.make_error(ShapeError, name, f"expected shape {spec.shape}, got {shape}")
