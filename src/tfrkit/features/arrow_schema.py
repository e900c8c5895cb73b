"""A schema in Arrow's terms, as text or, given the pyarrow module, as a `pyarrow.Schema`.

int64 lists are int64, float lists are float, bytes are large_binary and text large_string; a size that varies gives
a large_list, a fixed one a fixed_size_list; serialized and raw arrays have the type of what is inside them. Frames of
a SequenceExample are a large_list of what one frame is. A feature that no record ever sets is null.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tfrkit.features.schema import Schema, show_name
from tfrkit.features.spec import Spec

# Names as Arrow prints them, and the pyarrow functions that make them.
_ARROW_NAMES = {
    "float16": "halffloat",
    "float32": "float",
    "float64": "double",
    "bool": "bool",
    "string": "large_binary",
}
_ARROW_NAMES |= {f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_FACTORIES = {"halffloat": "float16", "float": "float32", "double": "float64", "bool": "bool_"}


@dataclass(frozen=True)
class ArrowType:
    """A type: a plain one by name, or a list of another, of fixed `size` or not."""

    name: str
    item: ArrowType | None = None
    size: int | None = None

    def __str__(self) -> str:
        if self.item is None:
            return self.name
        if self.size is None:
            return f"{self.name}<item: {self.item}>"
        return f"{self.name}<item: {self.item}>[{self.size}]"

    def build(self, pyarrow: ModuleType) -> Any:
        """The same as a `pyarrow.DataType`."""
        if self.item is None:
            return getattr(pyarrow, _FACTORIES.get(self.name, self.name))()
        if self.size is None:
            return pyarrow.large_list(self.item.build(pyarrow))
        return pyarrow.list_(self.item.build(pyarrow), self.size)


@dataclass(frozen=True)
class ArrowField:
    """A named column; one that is not nullable has a value in every record."""

    name: str
    type: ArrowType
    nullable: bool

    def __str__(self) -> str:
        return f"{show_name(self.name, quotes=False)}: {self.type}{'' if self.nullable else ' not null'}"


def to_arrow_fields(schema: Schema) -> list[ArrowField]:
    """The columns of the schema, features first.

    A feature list that shares its name with a context feature is called ``feature_lists/<name>``. Raises
    `SchemaError` for a feature whose kind differs from record to record: no column can hold it.
    """
    fields = []
    for name in schema.features:
        spec = schema.require_one_kind(name)
        fields.append(ArrowField(name, find_type(spec), spec.optional))
    for name, spec in schema.feature_lists.items():
        schema.select([name]).require_one_kind(name)
        column = f"feature_lists/{name}" if name in schema.features else name
        fields.append(ArrowField(column, find_type(spec), spec.optional))
    return fields


def print_arrow_schema(schema: Schema) -> str:
    """One line a column, in the words of `pyarrow.Schema.to_string`.

    Example:
        >>> print(print_arrow_schema(Schema({"label": "int64", "tokens": ("int64", (None,))})))
        label: int64 not null
        tokens: large_list<item: int64> not null
    """
    return "\n".join(str(field) for field in to_arrow_fields(schema))


def build_arrow_schema(schema: Schema, pyarrow: ModuleType) -> Any:
    """The same as a `pyarrow.Schema`; the caller brings the module."""
    fields = [pyarrow.field(field.name, field.type.build(pyarrow), field.nullable) for field in to_arrow_fields(schema)]
    return pyarrow.schema(fields)


def find_type(spec: Spec) -> ArrowType:
    """The Arrow type of one feature."""
    if spec.seen == ():
        return ArrowType("null")
    element = _find_element(spec)
    # A tensor of an element type that Arrow lacks stays as the bytes it is stored in.
    shape = spec.shape if spec.encoding == "list" or element.name != "large_binary" or spec.dtype == "string" else ()
    for size in reversed(list(_outer_sizes(spec, shape))):
        element = ArrowType("large_list", element) if size is None else ArrowType("fixed_size_list", element, size)
    return element


def _outer_sizes(spec: Spec, shape: tuple[int | None, ...]) -> Iterator[int | None]:
    if spec.is_list:
        yield None
    yield from shape


def _find_element(spec: Spec) -> ArrowType:
    if spec.encoding != "list":
        return ArrowType(_ARROW_NAMES.get(spec.dtype or "", "large_binary"))
    if spec.kind == "bytes":
        return ArrowType("large_string" if spec.logical == "text" else "large_binary")
    plain = "int64" if spec.kind == "int64" else "float"
    return ArrowType(_ARROW_NAMES.get(spec.dtype or "", plain))
