"""Convert a schema to Arrow types, for the columns of `feeds.arrow` and as text.

int64 lists become int64, float lists float, bytes large_binary and text large_string. A size that varies or is 0
becomes a large_list, any other a fixed_size_list. Serialized and raw arrays have the type of their elements. A feature
list of a SequenceExample becomes a large_list of the type of one frame. A feature that no record sets becomes null.

A SequenceExample becomes two struct columns, context and feature_lists, like its rows and batches: the same name may be
in both, and a flat table would have to rename one of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tfrkit.errors import SchemaError
from tfrkit.features.schema import Schema, show_name
from tfrkit.features.schema_json import to_json
from tfrkit.features.spec import Spec
from tfrkit.features.tensor_dtypes import name_value_dtype

# The key of a field's metadata; its value is the feature in the JSON form of `schema_json`.
METADATA_KEY = "tfrkit.feature"

# Arrow's name of a type, and its letter in the C data interface.
_PLAIN_TYPES = {
    "null": "n",
    "bool": "b",
    "halffloat": "e",
    "float": "f",
    "double": "g",
    "large_binary": "Z",
    "large_string": "U",
    "int8": "c",
    "uint8": "C",
    "int16": "s",
    "uint16": "S",
    "int32": "i",
    "uint32": "I",
    "int64": "l",
    "uint64": "L",
}
# Dtypes whose names differ between NumPy and Arrow.
_ARROW_NAMES = {"float16": "halffloat", "float32": "float", "float64": "double", "string": "large_binary"}
_DTYPES = {name: dtype for dtype, name in _ARROW_NAMES.items() if dtype != "string"}
_SPEAKING_TYPES = ("scalar", "bytes", "text", "tensor")


@dataclass(frozen=True)
class ArrowType:
    """An Arrow type: a plain type, a list of `item` with fixed or varying `size`, or a struct of `fields`."""

    name: str
    item: ArrowType | None = None
    size: int | None = None
    fields: tuple[ArrowField, ...] = ()

    def __str__(self) -> str:
        if self.name == "struct":
            return f"struct<{', '.join(map(str, self.fields))}>"
        if self.item is None:
            return self.name
        if self.size is None:
            return f"{self.name}<item: {self.item}>"
        return f"{self.name}<item: {self.item}>[{self.size}]"

    @property
    def format(self) -> str:
        """The format string of the C data interface, without children."""
        if self.name == "struct":
            return "+s"
        if self.item is None:
            return _PLAIN_TYPES[self.name]
        return "+L" if self.size is None else f"+w:{self.size}"

    @cached_property
    def dtype(self) -> str | None:
        """NumPy's name of a numeric type; None for other types."""
        if self.name in ("null", "large_binary", "large_string") or self.name not in _PLAIN_TYPES:
            return None
        return _DTYPES.get(self.name, self.name)

    @cached_property
    def depth(self) -> int:
        """Number of lists around the element."""
        return 0 if self.item is None else 1 + self.item.depth

    def widen_halves(self) -> ArrowType:
        """Return the type with float16 replaced by float32, for readers without float16."""
        if self.item is not None:
            return replace(self, item=self.item.widen_halves())
        return replace(self, name="float") if self.name == "halffloat" else self


@dataclass(frozen=True)
class ArrowField:
    """A named column; a column that is not nullable has a value in every record.

    `name` is the feature name with NULs and bytes that are not UTF-8 escaped, because Arrow accepts neither. `metadata`
    is set if the type alone does not describe the feature completely.
    """

    name: str
    type: ArrowType
    nullable: bool
    feature: str = ""
    spec: Spec | None = None
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        shown = show_name(self.feature if self.spec is not None else self.name, quotes=False)
        return f"{shown}: {self.type}{'' if self.nullable else ' not null'}"


def to_arrow_fields(schema: Schema) -> list[ArrowField]:
    """Return the columns of a schema; for SequenceExamples the structs context and feature_lists, if not empty.

    Raises `SchemaError` for a feature whose kind differs between records: no column can hold it.
    """
    described = to_json(schema)
    features = _to_fields(schema.features, described["features"])
    if schema.kind != "sequence_example":
        return features
    lists = _to_fields(schema.feature_lists, described["feature_lists"])
    structs = {"context": features, "feature_lists": lists}
    return [
        ArrowField(name, ArrowType("struct", fields=tuple(fields)), nullable=False)
        for name, fields in structs.items()
        if fields
    ]


def print_arrow_schema(schema: Schema) -> str:
    """Format the columns of a schema, one per line, like `pyarrow.Schema.to_string`.

    Example:
        >>> print(print_arrow_schema(Schema({"label": "int64", "tokens": ("int64", (None,))})))
        label: int64 not null
        tokens: large_list<item: int64>
    """
    return "\n".join(map(str, to_arrow_fields(schema)))


def find_type(spec: Spec) -> ArrowType:
    """Return the Arrow type of a feature."""
    if spec.seen == ():
        null = ArrowType("null")
        return ArrowType("large_list", null) if spec.is_list else null
    element = _find_element(spec)
    for size in reversed(list(_outer_sizes(spec))):
        # Parquet files with lists of the fixed size 0 cannot be read, and polars ends with a panic.
        element = ArrowType("fixed_size_list", element, size) if size else ArrowType("large_list", element)
    return element


def is_kept_as_bytes(spec: Spec) -> bool:
    """Whether a feature is an array whose element type Arrow lacks, so that the column holds its stored bytes."""
    return spec.encoding != "list" and spec.dtype != "string" and _find_element(spec).name == "large_binary"


def _to_fields(specs: Mapping[str, Spec], described: list[dict[str, Any]]) -> list[ArrowField]:
    fields: list[ArrowField] = []
    taken: dict[str, str] = {}
    for (name, spec), row in zip(specs.items(), described, strict=True):
        if spec.seen is not None:
            Schema({name: spec}).require_one_kind(name)
        arrow_name = escape_name(name)
        if taken.setdefault(arrow_name, name) != name:
            raise SchemaError(f"features {show_name(taken[arrow_name])} and {show_name(name)} have one name in Arrow")
        metadata = {}
        if arrow_name != name or not _is_told_by_type(spec):
            metadata[METADATA_KEY] = json.dumps(row)
        fields.append(ArrowField(arrow_name, find_type(spec), may_be_missing(spec), name, spec, metadata))
    return fields


def may_be_missing(spec: Spec) -> bool:
    """Whether a record may lack the feature; reading checks its presence only if the number of values is fixed."""
    return spec.is_list or spec.fixed_length < 0 or spec.seen == ()


def escape_name(name: str) -> str:
    """Escape NULs and surrogates in the name of a feature: Arrow's C data interface has NUL-terminated UTF-8 names."""
    if "\0" not in name and name.isprintable():
        return name
    return "".join(c if c != "\0" and not "\ud800" <= c <= "\udfff" else repr(c)[1:-1] for c in name)


def _is_told_by_type(spec: Spec) -> bool:
    others = (spec.dtype, spec.num_classes, spec.ignore, spec.format, spec.decoded_shape, spec.seen)
    is_plain = spec.encoding == "list" and spec.logical in _SPEAKING_TYPES and all(value is None for value in others)
    return is_plain and None not in spec.shape[1:]


def _outer_sizes(spec: Spec) -> Iterator[int | None]:
    if spec.is_list:
        yield None
    if is_kept_as_bytes(spec):
        return
    # Values stay flat if more than one size varies (in a list: any but the first), because the shape is unknown then.
    num_unknown = spec.shape.count(None)
    is_flat = {"list": None in spec.shape[1:], "tensor_proto": False}.get(spec.encoding, num_unknown > 1)
    yield from (None,) if is_flat else spec.shape


def _find_element(spec: Spec) -> ArrowType:
    if spec.encoding != "list":
        return ArrowType(_name_dtype(spec.dtype, "large_binary"))
    if spec.kind == "bytes":
        return ArrowType("large_string" if spec.logical == "text" else "large_binary")
    return ArrowType(_name_dtype(spec.dtype, "int64" if spec.kind == "int64" else "float"))


def _name_dtype(dtype: str | None, otherwise: str) -> str:
    values = name_value_dtype(dtype or "")
    name = _ARROW_NAMES.get(values, values)
    return name if name in _PLAIN_TYPES else otherwise
