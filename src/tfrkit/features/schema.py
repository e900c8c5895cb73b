"""Schema: the features of a dataset in order, and the comparison of two schemas."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias, get_args

from tfrkit.errors import Hint, MissingFeatureError, SchemaError, Step, TfrkitWarning, warn_caller
from tfrkit.features.spec import STORAGE_KINDS, RecordKind, Spec, check_shape, refuse_choice
from tfrkit.features.tensor_dtypes import DTYPE_NUMBERS, UNSEEN_DTYPES

# The forms in which users may give a feature: a Spec, a type, or a type and a shape.
SpecLike: TypeAlias = Spec | str | type | tuple[str | type, tuple[int | None, ...]]

# Accepted types in addition to the storage kinds and the tensor dtypes.
_TYPE_WORDS: Mapping[object, Mapping[str, Any]] = MappingProxyType(
    {
        int: {"kind": "int64"},
        float: {"kind": "float"},
        bytes: {"kind": "bytes"},
        str: {"kind": "bytes", "logical": "text"},
        "float32": {"kind": "float"},
        "text": {"kind": "bytes", "logical": "text"},
        "string": {"kind": "bytes"},
        "image": {"kind": "bytes", "logical": "image"},
        "mask": {"kind": "bytes", "logical": "mask"},
        "class_label": {"kind": "int64", "logical": "class_label"},
    }
)
# Limits for the search of similar names, because comparing long names takes quadratic time.
PARTS = ("context", "feature_lists")
"""The parts of a SequenceExample, in rows, in SQL and in names: ``context.x``, ``feature_lists.x``."""

_MAX_COMPARED_NAME = 200
_MAX_COMPARED_NAMES = 2000


class Schema:
    """The features of the records of a dataset, ordered and immutable.

    `features` are the features of an Example, or the context of a SequenceExample; `feature_lists` are the
    feature lists of a SequenceExample. A feature is given as a `Spec`, a type, or a type and a shape. Types
    are the storage kinds ``"int64"``, ``"float"`` and ``"bytes"``, the words ``"text"``, ``"image"``, ``"mask"``
    and ``"class_label"``, Python's int, float, bytes and str, or any other dtype (``"uint8"``, ``"float64"``),
    which is stored as a serialized tensor.

    Bytes of a name that are not UTF-8 are kept as surrogate escapes; NULs are kept, too.

    Example:
        >>> schema = Schema({"label": "int64", "xyz": ("float", (3,)), "tokens": ("int64", (None,))})
        >>> schema["xyz"].shape
        (3,)
        >>> schema["lable"]
        Traceback (most recent call last):
        tfrkit.errors.MissingFeatureError: no feature 'lable', did you mean 'label'
    """

    __slots__ = ("_feature_lists", "_features", "_kind")

    def __init__(
        self,
        features: Mapping[str, SpecLike] | None = None,
        *,
        feature_lists: Mapping[str, SpecLike] | None = None,
        kind: RecordKind | None = None,
    ) -> None:
        if kind is None:
            kind = "example" if feature_lists is None else "sequence_example"
        if kind not in get_args(RecordKind):
            raise refuse_choice("kind", kind, get_args(RecordKind))
        if feature_lists and kind != "sequence_example":
            raise ValueError(f"feature lists expected kind 'sequence_example', got {kind!r}")
        self._kind: RecordKind = kind
        self._features = _read_specs(features or {}, is_list=False)
        self._feature_lists = _read_specs(feature_lists or {}, is_list=True)

    @property
    def kind(self) -> RecordKind:
        """Kind of the records: "example", "sequence_example" or "raw"."""
        return self._kind

    @property
    def features(self) -> Mapping[str, Spec]:
        """Features of an Example, or of the context of a SequenceExample."""
        return self._features

    @property
    def feature_lists(self) -> Mapping[str, Spec]:
        """Feature lists of a SequenceExample."""
        return self._feature_lists

    @property
    def names(self) -> tuple[str, ...]:
        """All feature names: features, then feature lists."""
        return (*self._features, *self._feature_lists)

    def __getitem__(self, name: str) -> Spec:
        spec = self._features.get(name) or self._feature_lists.get(name)
        if spec is None:
            raise MissingFeatureError(describe_missing(name, self.names))
        return spec

    def __contains__(self, name: object) -> bool:
        return name in self._features or name in self._feature_lists

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self._features) + len(self._feature_lists)

    @classmethod
    def from_pbtxt(cls, text: str) -> Schema:
        """Read the text of a schema.pbtxt, as TFX and TFDV write it.

        Warns about each feature that is left out. Raises `SchemaError` for text that is not a schema.

        Example:
            >>> Schema.from_pbtxt('feature { name: "x" type: INT presence { min_fraction: 1 } shape {} }')["x"]
            Spec('int64')
        """
        from tfrkit.features.schema_pbtxt import from_pbtxt  # it imports this module

        read = from_pbtxt(text)
        for note in read.notes:
            warn_caller(TfrkitWarning(note))
        return read.schema

    def select(self, names: Iterable[str]) -> Schema:
        """Return a schema with only the named features, in the given order.

        A name that is in both the context and the feature lists selects both; ``context.x`` and ``feature_lists.x``
        select one of them.
        """
        if isinstance(names, str):
            raise TypeError(f"names expected a list of names, got the string {names!r}")
        wanted = [find_part(self, name) for name in dict.fromkeys(names)]

        def pick(part: str, specs: Mapping[str, Spec]) -> dict[str, SpecLike]:
            return {name: specs[name] for named, name in wanted if named in (None, part) and name in specs}

        lists = pick(PARTS[1], self._feature_lists) if self._kind == "sequence_example" else None
        return Schema(pick(PARTS[0], self._features), feature_lists=lists, kind=self._kind)

    def require_one_kind(self, name: str) -> Spec:
        """Return the spec of a feature, and check that it can be decoded to a column.

        Raises `SchemaError` if its kind differs between records: one column cannot hold several kinds.
        """
        spec = self[name]
        if spec.seen is not None and len(spec.seen) > 1:
            raise SchemaError(
                f"feature {show_name(name)} expected one kind, got {' and '.join(spec.seen)} in different records",
                hint=Hint(
                    Step("leave it out: {features}", features=[...]),
                    Step("read the bytes: ds.records()", in_python=True),
                ),
            )
        return spec

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return (
            self._kind == other._kind
            and self._features == other._features
            and self._feature_lists == other._feature_lists
        )

    def __hash__(self) -> int:
        return hash((self._kind, frozenset(self._features.items()), frozenset(self._feature_lists.items())))

    def __reduce__(self) -> tuple[object, ...]:
        lists = dict(self._feature_lists) if self._kind == "sequence_example" else None
        return _rebuild, (dict(self._features), lists, self._kind)

    def __repr__(self) -> str:
        text = f"Schema({_show_specs(self._features)}"
        if self._feature_lists:
            text += f", feature_lists={_show_specs(self._feature_lists)}"
        elif self._kind != "example":
            text += f", kind={self._kind!r}"
        return text + ")"

    def __str__(self) -> str:
        heading = f"{self._kind}, {len(self)} feature{'' if len(self) == 1 else 's'}"
        if not len(self):
            return heading
        rows = [("name", "type", "shape", "meaning")]
        for spec_by_name in (self._features, self._feature_lists):
            for name, spec in spec_by_name.items():
                rows.append((show_name(name, quotes=False), describe_type(spec), str(spec.shape), _show_meaning(spec)))
        widths = [min(40, max(len(row[column]) for row in rows)) for column in range(3)]
        lines = ["  ".join((*map(str.ljust, row[:3], widths), row[3])).rstrip() for row in rows]
        return "\n".join([heading, *lines])


def find_mismatches(schema: Schema, found: Schema) -> list[str]:
    """List the mismatches between `schema` and `found`, the schema of the data, one sentence each.

    Features that only `found` has are not a mismatch, because a schema may select columns. Neither is a missing
    optional feature, or a bytes feature whose content cannot be recognized as an array.
    """
    if schema.kind != found.kind and not (schema.kind == "sequence_example" and found.kind == "example"):
        # A SequenceExample with only a context is, byte for byte, an Example.
        return [f"records expected {schema.kind}, got {found.kind}"]
    mismatches = []
    for wanted_specs, found_specs, other_specs, place in (
        (schema.features, found.features, found.feature_lists, "feature_lists"),
        (schema.feature_lists, found.feature_lists, found.features, "context"),
    ):
        for name, wanted in wanted_specs.items():
            got = found_specs.get(name)
            if got is not None:
                mismatches += [f"feature {show_name(name)} {text}" for text in _compare_specs(wanted, got)]
            elif name in other_specs:
                here = "feature_lists" if wanted.is_list else "the features of the record"
                mismatches.append(f"feature {show_name(name)} expected in {here}, got it in the {place}")
            elif not wanted.optional:
                mismatches.append(describe_missing(name, found.names))
    return mismatches


def find_part(schema: Schema, name: str) -> tuple[str | None, str]:
    """Return the part of a SequenceExample that a name starts with, or None, and the feature; raise if there is none.

    ``context.x`` is the spelling of SQL and of what commands show, ``context/x`` that of columns in CSV and npz files.

    Example:
        >>> schema = Schema({"id": "int64"}, feature_lists={"id": "int64"})
        >>> find_part(schema, "id"), find_part(schema, "context.id"), find_part(schema, "feature_lists/id")
        ((None, 'id'), ('context', 'id'), ('feature_lists', 'id'))
    """
    if name in schema:
        return None, name
    if schema.kind == "sequence_example" and isinstance(name, str):
        for part, specs in zip(PARTS, (schema.features, schema.feature_lists), strict=True):
            plain = name[len(part) + 1 :]
            if not name.startswith((f"{part}.", f"{part}/")):
                continue
            if plain in specs:
                return part, plain
            meant = f"{part}.{plain}"
            if plain in schema:
                other = f"{PARTS[part == PARTS[0]]}.{plain}"
                raise MissingFeatureError(f"no feature {show_name(meant)}, did you mean {show_name(other)}")
            raise MissingFeatureError(describe_missing(meant, [f"{part}.{near}" for near in specs]))
    raise MissingFeatureError(describe_missing(name, schema.names))


def describe_missing(name: str, names: Iterable[str]) -> str:
    """Return the message for an unknown name: ``no feature 'lable', did you mean 'label'``."""
    nearest = find_nearest_name(name, names)
    return f"no feature {show_name(name)}" + (f", did you mean {show_name(nearest)}" if nearest is not None else "")


def find_nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar name, or None: other case, a missing prefix ("height" for "image/height"), or a typo."""
    if not isinstance(name, str) or len(name) > _MAX_COMPARED_NAME:
        return None
    candidates = [other for other in names if len(other) <= _MAX_COMPARED_NAME][:_MAX_COMPARED_NAMES]
    folded = name.casefold()
    for other in candidates:
        if other.casefold() == folded:
            return other
    for other in candidates:
        if other.casefold().endswith(("/" + folded, "_" + folded)):
            return other
    close = difflib.get_close_matches(name, candidates, n=1, cutoff=0.6)
    return close[0] if close else None


def decode_name(name: bytes) -> str:
    """Decode a feature name of a record; bytes that are not UTF-8 become surrogate escapes."""
    return name.decode("utf-8", "surrogateescape")


def encode_name(name: str) -> bytes:
    """Encode a feature name; the inverse of `decode_name`."""
    return name.encode("utf-8", "surrogateescape")


def show_name(name: str, *, quotes: bool = True) -> str:
    """Format a name for a message: control characters and invalid bytes escaped, cut after 64 characters."""
    text = repr(name if len(name) <= 64 else name[:61] + "...")
    return text if quotes else text[1:-1]


def describe_type(spec: Spec) -> str:
    """Describe the storage: ``int64``, ``uint8 tensor``, ``float32 raw bytes``, ``int64 as bool``, ``bytes?``."""
    if spec.encoding == "tensor_proto":
        text = f"{spec.dtype or 'mixed'} tensor"
    elif spec.encoding != "list":
        text = f"{spec.dtype} {'raw bytes' if spec.encoding == 'raw' else 'zlib bytes'}"
    elif spec.seen is not None and len(spec.seen) > 1:
        text = "|".join(spec.seen)
    elif spec.dtype is not None and spec.logical not in ("image", "mask"):
        text = f"{spec.kind} as {spec.dtype}"
    else:
        text = spec.kind
    return text + (" list" if spec.is_list else "") + ("?" if spec.optional else "")


def _read_specs(specs: Mapping[str, SpecLike], *, is_list: bool) -> Mapping[str, Spec]:
    read = {}
    for name, given in specs.items():
        if not isinstance(name, str):
            raise TypeError(f"feature name expected str, got {name!r}")
        spec = given if isinstance(given, Spec) else _read_spec(name, given)
        read[name] = spec if spec.is_list == is_list else spec.replace(is_list=is_list)
    return MappingProxyType(read)


def _read_spec(name: str, given: str | type | tuple[str | type, tuple[int | None, ...]]) -> Spec:
    if isinstance(given, tuple) and len(given) == 2:
        type_word, shape = given[0], check_shape(given[1])
    else:
        type_word, shape = given, ()
    if not isinstance(type_word, (str, type)):
        raise TypeError(f"feature {show_name(name)} expected a Spec, a type or (type, shape), got {given!r}")
    if type_word in STORAGE_KINDS:
        return Spec(type_word, shape)
    if type_word in _TYPE_WORDS:
        return Spec(shape=shape, **_TYPE_WORDS[type_word])
    if type_word in DTYPE_NUMBERS:
        return Spec("bytes", shape, logical="tensor", encoding="tensor_proto", dtype=str(type_word))
    known = ", ".join([*STORAGE_KINDS, *(word for word in _TYPE_WORDS if isinstance(word, str)), "a tensor dtype"])
    raise ValueError(f"feature {show_name(name)} expected a type of {known}, got {type_word!r}")


def map_specs(schema: Schema, change: Callable[[Mapping[str, Spec]], Mapping[str, SpecLike]]) -> Schema:
    """Return a schema of the same kind with other features: `change` gets them, and then the feature lists."""
    lists = change(schema.feature_lists) if schema.kind == "sequence_example" else None
    return Schema(change(schema.features), feature_lists=lists, kind=schema.kind)


def _rebuild(features: dict[str, SpecLike], lists: dict[str, SpecLike] | None, kind: RecordKind) -> Schema:
    return Schema(features, feature_lists=lists, kind=kind)


def _show_specs(specs: Mapping[str, Spec]) -> str:
    if not specs:
        return "{}"
    # The position of a spec already shows whether it is a list.
    lines = [f"  {name!r}: {spec.replace(is_list=False)!r}," for name, spec in specs.items()]
    return "\n".join(["{", *lines, "}"])


def _show_meaning(spec: Spec) -> str:
    if spec.meaning:
        return spec.meaning
    if spec.logical == "class_label" and spec.num_classes is not None:
        return f"class id 0..{spec.num_classes - 1}"
    if spec.logical in ("scalar", "tensor"):
        return ""
    shape = "" if spec.decoded_shape is None else f" {spec.decoded_shape}"
    return f"{(spec.format or '').upper()} {spec.logical.replace('_', ' ')}{shape}".strip()


def _compare_specs(wanted: Spec, got: Spec) -> list[str]:
    if got.seen == ():
        return [] if wanted.optional or wanted.is_list else ["expected in every record, got it with no kind set"]
    if got.seen is not None:
        return [f"expected {wanted.kind}, got {' and '.join(got.seen)} in different records"]
    if wanted.kind != got.kind:
        return [f"expected {wanted.kind}, got {got.kind}"]
    texts = []
    if wanted.encoding == "tensor_proto":
        if got.encoding != "tensor_proto" and wanted.dtype in UNSEEN_DTYPES:
            pass  # inference reports these as plain bytes
        elif got.encoding != "tensor_proto":
            texts.append(f"expected a serialized {wanted.dtype or ''} tensor".replace("  ", " ") + ", got plain bytes")
        else:
            if wanted.dtype is not None and wanted.dtype != got.dtype:
                texts.append(f"expected a {wanted.dtype} tensor, got {got.dtype or 'several dtypes'}")
            if not _is_shape_within(got.shape, wanted.shape):
                texts.append(f"expected tensor shape {wanted.shape}, got {got.shape}")
    else:
        texts += _compare_lengths(wanted, got)
    if got.optional and not wanted.optional:
        texts.append("expected in every record, got it in some only")
    return texts


def _compare_lengths(wanted: Spec, got: Spec) -> list[str]:
    if wanted.num_values >= 0:
        if wanted.num_values == got.num_values:
            return []
        return [f"expected {_show_count(wanted)}, got {_show_count(got)}"]
    step = 1
    for size in wanted.shape:
        step *= 1 if size is None else size
    if got.num_values >= 0 and step > 0 and got.num_values % step:
        return [f"expected a multiple of {step} values (shape {wanted.shape}), got {_show_count(got)}"]
    return []


def _show_count(spec: Spec) -> str:
    num_values = spec.num_values
    if num_values < 0:
        return "a number of values that varies"
    shape = f" (shape {spec.shape})" if len(spec.shape) > 1 and spec.encoding == "list" else ""
    return f"{num_values} value{'' if num_values == 1 else 's'}{shape}"


def _is_shape_within(got: tuple[int | None, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(got) == len(wanted) and all(w is None or w == g for g, w in zip(got, wanted, strict=True))
