"""Read and write `schema.pbtxt`, the text form of a tensorflow_metadata Schema, as used by TFX and TFDV.

Supported are name, type, presence, shape or value counts, categorical int domains, text and image domains, and the
feature lists of a SequenceExample, which are in a STRUCT feature called ``##SEQUENCE##``. Rules for checking data
(allowed texts, distributions, drift, environments) are ignored, because they do not describe storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tfrkit.errors import SchemaError
from tfrkit.features.schema import Schema, describe_type, show_name
from tfrkit.features.spec import Logical, Shape, Spec, StorageKind
from tfrkit.features.text_proto import TextMessage, parse_text, quote_text

_SEQUENCE = "##SEQUENCE##"
_KINDS: Mapping[str, StorageKind] = {"BYTES": "bytes", "INT": "int64", "FLOAT": "float"}
_TYPES = {kind: name for name, kind in _KINDS.items()}
# Parts of a tensorflow_metadata Schema that do not describe the contents of a record.
_OTHER_FEATURES = ("sparse_feature", "weighted_feature", "generated_feature")


@dataclass(frozen=True)
class PbtxtSchema:
    """The schema read from a schema.pbtxt, and notes on unsupported parts."""

    schema: Schema
    notes: tuple[str, ...] = ()


def from_pbtxt(text: str) -> PbtxtSchema:
    """Read a schema.pbtxt.

    Features without a type, STRUCT features other than the feature lists, and features computed from others are left
    out with a note. Text that is not a schema raises `SchemaError`, for a syntax error with line and column.

    Example:
        >>> from_pbtxt('feature { name: "x" type: INT presence { min_fraction: 1 } shape {} }').schema["x"]
        Spec('int64')
    """
    message = parse_text(text)
    notes = []
    for field in _OTHER_FEATURES:
        for feature in message.get_messages(field):
            notes.append(f"{field} {show_name(feature.get_text('name') or '')} is left out: no record stores it")
    domains = {domain.get_text("name") or "": domain for domain in message.get_messages("string_domain")}
    int_domains = {domain.get_text("name") or "": domain for domain in message.get_messages("int_domain")}
    reader = _PbtxtReader(domains, int_domains, notes)
    features = reader.read_features(message, place="the schema")
    lists: dict[str, Spec] | None = None
    for feature in message.get_messages("feature"):
        if feature.get_text("name") == _SEQUENCE and feature.get_word("type") == "STRUCT":
            lists = reader.read_features(feature.get_message("struct_domain") or TextMessage(), place=_SEQUENCE)
    if not features and not lists and not message.fields.keys() & {"feature", *_OTHER_FEATURES, "string_domain"}:
        raise SchemaError("text expected a tensorflow_metadata schema, got no field 'feature'")
    return PbtxtSchema(Schema(features, feature_lists=lists), tuple(notes))


def to_pbtxt(schema: Schema) -> str:
    """Return the text of a schema.pbtxt; comments at its top list what it cannot express.

    Raises `SchemaError` for raw records, which have no features.
    """
    text, notes = _print_schema(schema)
    return "".join(f"# {note}\n" for note in notes) + text


class _PbtxtReader:
    def __init__(
        self, string_domains: Mapping[str, TextMessage], int_domains: Mapping[str, TextMessage], notes: list[str]
    ) -> None:
        self._string_domains = string_domains
        self._int_domains = int_domains
        self._notes = notes

    def read_features(self, message: TextMessage, *, place: str) -> dict[str, Spec]:
        specs: dict[str, Spec] = {}
        for feature in message.get_messages("feature"):
            name = feature.get_text("name")
            if name is None:
                raise SchemaError(f"feature of {place} has no name - at line {feature.line}")
            if name in specs:
                raise SchemaError(f"feature {show_name(name)} is present twice - at line {feature.line}")
            word = feature.get_word("type")
            if word is not None and word in _KINDS:
                specs[name] = self._read_spec(feature, _KINDS[word])
            elif not (name == _SEQUENCE and word == "STRUCT"):
                self._notes.append(f"feature {show_name(name)} is left out: its type is {word or 'not given'}")
        return specs

    def _read_spec(self, feature: TextMessage, kind: StorageKind) -> Spec:
        presence = feature.get_message("presence")
        fraction = (presence.get_number("min_fraction") or 0) if presence is not None else 0
        shape = _read_shape(feature)
        try:
            return Spec(kind, shape, optional=fraction < 1, **self._read_domain(feature, kind, shape))
        except ValueError as error:
            raise SchemaError(f"{error} - at line {feature.line}") from error

    def _read_domain(self, feature: TextMessage, kind: StorageKind, shape: Shape) -> dict[str, Any]:
        plain: Logical = "tensor" if shape and kind != "bytes" else "scalar"
        if kind == "bytes":
            domain = feature.get_message("string_domain") or self._string_domains.get(feature.get_text("domain") or "")
            if domain is not None:
                # A list of allowed texts is a rule for checking data, not the names of class ids.
                return {"logical": "text", "meaning": f"one of {len(domain.get_texts('value'))} texts"}
            if "image_domain" in feature.fields:
                return {"logical": "image"}
            if feature.fields.keys() & {"natural_language_domain", "url_domain"}:
                return {"logical": "text"}
        if kind == "int64":
            domain = feature.get_message("int_domain") or self._int_domains.get(feature.get_text("domain") or "")
            if "bool_domain" in feature.fields:
                return {"logical": plain, "meaning": "boolean 0/1"}
            if domain is not None:
                return _read_int_domain(domain, plain)
        return {"logical": plain}


def _read_int_domain(domain: TextMessage, plain: Logical) -> dict[str, Any]:
    low, high = domain.get_number("min"), domain.get_number("max")
    is_class = domain.fields.get("is_categorical", [None])[-1] in ("true", "True", "t", 1)
    if is_class and low in (0, None) and isinstance(high, int) and high >= 0:
        return {"logical": "class_label", "num_classes": high + 1}
    return {"logical": plain, "meaning": f"{'' if low is None else low}..{'' if high is None else high}"}


def _read_shape(feature: TextMessage) -> Shape:
    fixed = feature.get_message("shape")
    if fixed is not None:
        sizes = [dim.get_number("size") for dim in fixed.get_messages("dim")]
        if any(size is not None and (not isinstance(size, int) or size < -1) for size in sizes):
            raise SchemaError(f"shape expected sizes, got {sizes!r:.64} - at line {fixed.line}")
        return tuple(None if size is None or size == -1 else int(size) for size in sizes)
    counts = feature.get_message("value_count")
    if counts is None:
        # One count for each level of nesting; more than one level is a list of lists, which an Example cannot hold.
        levels = (feature.get_message("value_counts") or TextMessage()).get_messages("value_count")
        counts = levels[-1] if levels else TextMessage()
    low, high = counts.get_number("min"), counts.get_number("max")
    if low != high or not isinstance(low, int) or low < 1:
        return (None,)
    return () if low == 1 else (low,)


def _print_schema(schema: Schema) -> tuple[str, list[str]]:
    if schema.kind not in ("example", "sequence_example"):
        raise SchemaError(f"schema.pbtxt expected example or sequence_example records, got {schema.kind}")
    notes: list[str] = []
    lines = list(_print_features(schema.features, notes))
    if schema.kind == "sequence_example":
        inner = [f"    {line}" for line in _print_features(schema.feature_lists, notes)]
        lines += ["feature {", f"  name: {quote_text(_SEQUENCE)}", "  type: STRUCT", "  struct_domain {"]
        lines += [*inner, "  }", "}"]
    return "".join(line + "\n" for line in lines), notes


def _print_features(specs: Mapping[str, Spec], notes: list[str]) -> Iterator[str]:
    for name, spec in specs.items():
        if name != name.encode("utf-8", "replace").decode():
            notes.append(f"feature {show_name(name)} is left out: its name is not UTF-8")
            continue
        if spec.seen is not None and len(spec.seen) > 1:
            notes.append(f"feature {show_name(name)} has {' and '.join(spec.seen)} in different records")
        yield "feature {"
        for line in _print_spec(name, spec):
            yield "  " + line
        yield "}"


def _print_spec(name: str, spec: Spec) -> Iterator[str]:
    yield f"name: {quote_text(name)}"
    yield f"type: {_TYPES[spec.kind]}"
    yield from _print_domain(spec)
    if not spec.optional:
        yield from ("presence {", "  min_fraction: 1.0", "  min_count: 1", "}")
    yield from _print_shape(spec)
    if spec.encoding != "list" or spec.dtype is not None or len(spec.shape) > 1:
        comment = f"{describe_type(spec)} {spec.shape}"
        yield from ("annotation {", f"  comment: {quote_text(comment)}", "}")


def _print_domain(spec: Spec) -> Iterator[str]:
    if spec.logical == "class_label" and spec.kind == "int64" and spec.num_classes:
        yield from ("int_domain {", "  min: 0", f"  max: {spec.num_classes - 1}", "  is_categorical: true", "}")
    elif spec.kind == "bytes" and spec.logical in ("image", "mask"):
        yield "image_domain {}"
    elif spec.kind == "bytes" and spec.logical == "text":
        yield "natural_language_domain {}"


def _print_shape(spec: Spec) -> Iterator[str]:
    shape = spec.shape if spec.encoding == "list" else ()
    if None in shape:
        # Without a count, any number of values is valid, including zero.
        return
    if spec.optional or spec.is_list:
        # A fixed shape would mean that the feature is always present; it may be missing, or a list without frames.
        yield from ("value_count {", f"  min: {spec.num_values}", f"  max: {spec.num_values}", "}")
    elif not shape:
        yield "shape {}"
    else:
        yield "shape {"
        yield from (f"  dim {{ size: {size} }}" for size in shape)
        yield "}"
