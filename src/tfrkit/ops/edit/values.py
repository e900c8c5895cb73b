"""Converts SQL values to features of records, checked against kind, shape and classes."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tfrkit.codec.edit_record import encode_feature
from tfrkit.errors import FeatureKindError, Hint, SchemaError, ShapeError, Step
from tfrkit.features.schema import describe_type, find_nearest_name, show_name
from tfrkit.features.spec import Spec, StorageKind

EncodeValue = Callable[[Any], bytes | None]
"""Converts an SQL value to a Feature message; None removes the feature."""

_LIST = re.compile(r"\[\d*\]$")
_INTEGERS = {
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
}
_KINDS_OF_TYPES: Mapping[str, tuple[StorageKind, ...]] = {
    **dict.fromkeys(_INTEGERS, ("int64", "float")),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), ("float",)),
    **dict.fromkeys(("VARCHAR", "BLOB"), ("bytes",)),
}
_NULL = '"NULL"'
_CASTS = {"int64": "bigint", "float": "float", "bytes": "varchar"}
_MAX_CACHED = 10_000
_MAX_SHOWN = 64
_MAX_STRETCHES = 8


@dataclass(frozen=True)
class Classes:
    """Valid class ids, and ids by class name. Placeholders such as "unused 0" are not valid."""

    by_name: Mapping[str, int]
    ids: Collection[int]
    """Ascending."""

    @classmethod
    def of(cls, names: Iterable[tuple[int, str]]) -> Classes:
        """Create from (id, name) pairs, leaving out placeholders."""
        used = sorted((number, name) for number, name in names if name != f"unused {number}")
        return cls({name: number for number, name in used}, dict.fromkeys(number for number, _ in used))

    def id_of(self, feature: str, name: str) -> int:
        """Return the id of a class name. Raises `SchemaError` if the name is unknown."""
        found = self.by_name.get(name)
        if found is None:
            nearest = find_nearest_name(name, self.by_name)
            meant = "" if nearest is None else f", did you mean {show_name(nearest)}"
            raise SchemaError(f"feature {show_name(feature)} has no class {show_name(name)}{meant}")
        return found

    def check(self, feature: str, number: int) -> None:
        """Raise `SchemaError` for an invalid class id."""
        if number not in self.ids:
            raise SchemaError(f"feature {show_name(feature)} expected a class id {_show_ids(self.ids)}, got {number}")


def _show_ids(ids: Iterable[int]) -> str:
    """Format ascending numbers as short text: "from 1 to 3" or "of 1, 3 to 5"."""
    stretches: list[list[int]] = []
    for number in ids:
        if stretches and stretches[-1][1] == number - 1:
            stretches[-1][1] = number
        else:
            stretches.append([number, number])
    if len(stretches) == 1:
        return f"from {stretches[0][0]} to {stretches[0][1]}"
    shown = [str(first) if first == last else f"{first} to {last}" for first, last in stretches[:_MAX_STRETCHES]]
    return f"of {', '.join(shown)}{', ...' if len(stretches) > _MAX_STRETCHES else ''}"


def make_encoder(feature: str, spec: Spec, sql_type: str, classes: Classes | None) -> EncodeValue:
    """Return the conversion of values of an SQL type to a feature. Raises if the feature cannot hold them."""
    if spec.encoding != "list" or len(spec.shape) > 1 or spec.is_list:
        what = "a list of frames" if spec.is_list else f"{describe_type(spec)} {spec.shape}"
        raise FeatureKindError(
            f"feature {show_name(feature)} is {what}, expected one whose values are a plain list to set it",
            hint="write the records again: tfrkit.Writer",
        )
    is_list = _LIST.search(sql_type) is not None
    if sql_type != _NULL:
        _check_type(feature, spec, sql_type, is_list=is_list, has_names=bool(classes and classes.by_name))
    convert = _make_converter(feature, spec, classes)
    cache: dict[tuple[type, Any], bytes] = {}

    def encode(value: Any) -> bytes | None:
        if value is None:
            if spec.optional:
                return None
            raise SchemaError(
                f"feature {show_name(feature)} is in every record, got NULL for it",
                hint=Hint(Step("give another value: coalesce(..., 0), or leave the record out: {where}", where=...)),
            )
        if is_list:
            return encode_feature(spec.kind, _convert_list(feature, spec, value, convert))
        key = (type(value), value)
        encoded = cache.get(key)
        if encoded is None:
            encoded = encode_feature(spec.kind, [convert(value)])
            # 0.0 and -0.0 are equal as keys, but different values.
            if value != 0 and len(cache) < _MAX_CACHED and len(encoded) < _MAX_SHOWN:
                cache[key] = encoded
        return encoded

    return encode


def _check_type(feature: str, spec: Spec, sql_type: str, *, is_list: bool, has_names: bool) -> None:
    wants_list = spec.shape != ()
    if is_list and not wants_list:
        raise ShapeError(f"feature {show_name(feature)} expected one value, got a list ({sql_type})")
    if wants_list and not is_list:
        raise ShapeError(
            f"feature {show_name(feature)} expected a list of {spec.kind} values, got one value ({sql_type})",
            hint="write a list: [...]",
        )
    element = _LIST.sub("", sql_type)
    if element == _NULL:
        return  # an empty list; a NULL in it is refused later, with the record number
    kinds = _KINDS_OF_TYPES.get(element.partition("(")[0], ())
    is_name = element == "VARCHAR" and has_names and spec.kind == "int64"
    if spec.kind not in kinds and not is_name:
        brackets = "[]" * is_list
        raise FeatureKindError(
            f"feature {show_name(feature)} expected {spec.kind}, got {sql_type}",
            hint=_explain_kind(spec, sql_type, f"(...)::{_CASTS[spec.kind]}{brackets}"),
        )


def _explain_kind(spec: Spec, sql_type: str, cast: str) -> str:
    """Return the hint for a value of another kind; only numeric text can be cast to a number."""
    if spec.kind == "bytes" or "VARCHAR" not in sql_type:
        return f"say what it becomes: {cast}"
    if spec.logical == "class_label":
        return f"the names of its classes are not known, give a number; text of digits: {cast}"
    return f"give a number; text of digits: {cast}"


def _make_converter(feature: str, spec: Spec, classes: Classes | None) -> Callable[[Any], Any]:
    def to_int(value: Any) -> int:
        if isinstance(value, str):
            assert classes is not None
            return classes.id_of(feature, value)
        number = int(value)
        if not -(1 << 63) <= number < 1 << 63:
            raise FeatureKindError(f"feature {show_name(feature)} expected int64, got {number}, which does not fit")
        if classes is not None and number != spec.ignore:
            classes.check(feature, number)
        return number

    def to_float(value: Any) -> float:
        try:
            number: float = struct.unpack("<f", struct.pack("<f", float(value)))[0]
        except OverflowError:
            number = float("inf")
        # Python compares int, Decimal and float exactly; NaN differs from itself.
        if number == value or value != value:
            return number
        if abs(number) == float("inf"):
            raise FeatureKindError(
                f"feature {show_name(feature)} expected a 32-bit float, got {value}, which does not fit"
            )
        raise FeatureKindError(
            f"feature {show_name(feature)} would round {value} to {number!r} in a float32 list",
            hint=f"round it: (...)::float{'[]' * (spec.shape != ())}",
        )

    def to_bytes(value: Any) -> bytes:
        return value.encode() if isinstance(value, str) else bytes(value)

    return {"int64": to_int, "float": to_float, "bytes": to_bytes}[spec.kind]


def _convert_list(feature: str, spec: Spec, values: Any, convert: Callable[[Any], Any]) -> list[Any]:
    if spec.num_values >= 0 and len(values) != spec.num_values:
        raise ShapeError(f"feature {show_name(feature)} expected {spec.num_values} values, got {len(values)}")
    if any(value is None for value in values):
        raise SchemaError(f"feature {show_name(feature)} expected values, got NULL in a list")
    return [convert(value) for value in values]
