"""Rows brought into the form a given schema asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrkit.codec.coerce import Coercer, Floats
from tfrkit.codec.tensor_proto import encode_tensor
from tfrkit.errors import FeatureKindError, MissingFeatureError, SchemaError, ShapeError
from tfrkit.features.schema import describe_missing, show_name
from tfrkit.features.spec import Spec


class SchemaCoercer:
    """Brings rows into the form a schema asks for, and says what does not fit."""

    def __init__(self, floats: Floats = "ask") -> None:
        self._plain = Coercer(floats)
        self._floats = floats

    def conform(self, row: Mapping[str, Any], specs: Mapping[str, Spec], row_number: int) -> dict[str, Any]:
        """The row with every value in stored form, in the order of the schema."""
        self.check_names(row, specs, row_number)
        stored = {}
        for name, spec in specs.items():
            if name not in row:
                if not spec.optional:
                    raise MissingFeatureError(
                        f"feature {show_name(name)} expected in every row, got none - at row {row_number}"
                    )
                continue
            stored[name] = self.conform_value(name, row[name], spec, row_number)
        return stored

    def check_names(self, row: Mapping[str, Any], specs: Mapping[str, Spec], row_number: int) -> None:
        """Raise for a name the schema does not have."""
        for name in row:
            if name not in specs:
                raise MissingFeatureError(f"{describe_missing(name, specs)} in the schema - at row {row_number}")

    def conform_value(self, name: str, value: Any, spec: Spec, row_number: int) -> Any:
        """One value in stored form: a flat array of the right dtype, or a list of bytes."""
        self._plain.row = row_number
        if value is None:
            if spec.optional:
                return None
            raise MissingFeatureError(f"feature {show_name(name)} expected a value, got None - at row {row_number}")
        if spec.classes is not None and isinstance(value, str):
            if value not in spec.classes:
                raise SchemaError(f"{describe_missing(value, spec.classes)} among the classes of {show_name(name)}")
            value = spec.classes.index(value)
        if spec.encoding == "tensor_proto":
            return [encode_tensor(self._array(name, value, spec, row_number))]
        if spec.encoding == "raw":
            return [self._array(name, value, spec, row_number).tobytes()]
        if spec.encoding != "list":
            raise SchemaError(f"feature {show_name(name)} expected a list, tensor or raw bytes, got {spec.encoding!r}")
        if spec.kind == "bytes":
            kind, values = self._plain.coerce_free(name, value, "bytes")
            if kind != "bytes":
                raise FeatureKindError(f"feature {show_name(name)} expected bytes, got {kind} - at row {row_number}")
            self._check_shape(name, (len(values),) if spec.shape else (), spec, len(values), row_number)
            return values
        array = self._plain.to_array(name, value)
        if array.dtype.kind not in ("iub" if spec.kind == "int64" else "iubf") and array.size:
            raise FeatureKindError(
                f"feature {show_name(name)} expected {spec.kind}, got {array.dtype} - at row {row_number}"
            )
        self._check_shape(name, array.shape, spec, array.size, row_number)
        if spec.kind == "int64":
            return self._plain.to_int64(name, array)
        wide = array.astype(np.float64) if array.dtype.kind != "f" else array
        return self._plain.to_float32(name, wide, must_be_exact=self._floats == "ask")

    def _array(self, name: str, value: Any, spec: Spec, row_number: int) -> np.ndarray[Any, Any]:
        array = self._plain.to_array(name, value)
        if spec.dtype is not None and spec.dtype != "string" and array.dtype != spec.dtype:
            cast = array.astype(spec.dtype)
            if not np.array_equal(cast.astype(array.dtype), array, equal_nan=array.dtype.kind in "fc"):
                raise FeatureKindError(
                    f"feature {show_name(name)} expected {spec.dtype}, got {array.dtype} values that do not fit it "
                    f"- at row {row_number}"
                )
            array = cast
        self._check_shape(name, array.shape, spec, array.size, row_number)
        return np.ascontiguousarray(array).reshape(array.shape)

    def _check_shape(self, name: str, shape: tuple[int, ...], spec: Spec, size: int, row_number: int) -> None:
        fits = len(shape) == len(spec.shape) and all(w in (None, g) for w, g in zip(spec.shape, shape, strict=True))
        if not fits and not (spec.encoding == "list" and spec.shape == () and size == 1):
            raise ShapeError(
                f"feature {show_name(name)} expected shape {spec.shape}, got {shape} - at row {row_number}"
            )
