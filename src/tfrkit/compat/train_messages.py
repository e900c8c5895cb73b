"""The messages of a record: `tf.train.Example`, `SequenceExample` and their parts.

The core parses and serializes. It handles whole records only, so a part is wrapped in the smallest record that can
contain it, and unwrapped again.
"""

from __future__ import annotations

from typing import Any, Self

from tfrkit import _native
from tfrkit.codec.tensor_proto import encode_varint
from tfrkit.compat.containers import MessageMap, Values, list_values
from tfrkit.compat.message import MapField, Message, MessageField, MessagesField, ValuesField
from tfrkit.errors import WireError

_FIELD_1, _FIELD_2, _FIELD_3 = 0x0A, 0x12, 0x1A  # tags of length-delimited fields
_EMPTY_NAME = b"\x0a\x00"
_HEADER_NBYTES, _FOOTER_NBYTES = 8 + 4, 4  # of the frame around a record

_LIST_FIELDS = {"bytes": "bytes_list", "float": "float_list", "int64": "int64_list"}
_KINDS = {name: kind for kind, name in _LIST_FIELDS.items()}


class _Record(Message):
    """A message with its position in a whole record."""

    __slots__ = ()
    _RECORD_KIND = "example"
    _TAGS: tuple[int, ...] = ()  # fields that lead to it, outermost first

    def SerializeToString(self, *, deterministic: bool | None = None) -> bytes:
        data = self._encode()
        for tag in self._TAGS:
            data = _open_field(data, tag)
        return data

    @classmethod
    def FromString(cls, data: Any) -> Self:
        if isinstance(data, str):
            raise TypeError(f"{cls.__name__} is parsed from bytes, got str")
        record = bytes(data) if cls._TAGS else data
        for tag in reversed(cls._TAGS):
            record = bytes((tag,)) + encode_varint(len(record)) + record
        found = _native.read_message(cls._RECORD_KIND, record)
        if isinstance(found, _native.Fault):
            raise WireError(f"expected a serialized {cls.__name__}, got other bytes")
        parsed = cls()
        try:
            parsed._decode(*found)
        except UnicodeDecodeError:
            raise WireError(f"expected a serialized {cls.__name__}, got a feature name that is not UTF-8") from None
        return parsed

    def _encode(self) -> bytes:
        """Encode the smallest record that contains this message."""
        raise NotImplementedError

    def _decode(self, features: Any, lists: Any) -> None:
        """Take the content from the core's reading of that record."""
        raise NotImplementedError


class _Values(_Record):
    """A list of values of one kind. Frozen, it is a plain list."""

    __slots__ = ()
    _KIND = ""

    def _init(self, *values: Any, **fields: Any) -> None:
        value = fields.get("value")
        if value is None or len(fields) > 1 or values:
            super()._init(*values, **fields)
            return
        self._waits_for = None
        self._frozen = list_values(value, self._KIND)

    def _thaw(self, frozen: list[Any]) -> dict[str, Any]:
        values = Values(self, self._KIND)
        values.take(frozen.copy())
        return {"value": values}

    def _encode(self) -> bytes:
        return Feature(**{_LIST_FIELDS[self._KIND]: self})._encode()

    def _decode(self, features: Any, lists: Any) -> None:
        self._held["value"] = Values(self, self._KIND)
        self._held["value"].take(features[0][2])


class BytesList(_Values, _native.BytesListBase):
    """A list of bytes."""

    __slots__ = ()
    _TAGS = (_FIELD_1, _FIELD_1, _FIELD_2, _FIELD_1)
    _KIND = "bytes"
    value = ValuesField("bytes")


class FloatList(_Values, _native.FloatListBase):
    """A list of float32 numbers."""

    __slots__ = ()
    _TAGS = (_FIELD_1, _FIELD_1, _FIELD_2, _FIELD_2)
    _KIND = "float"
    value = ValuesField("float")


class Int64List(_Values, _native.Int64ListBase):
    """A list of integers."""

    __slots__ = ()
    _TAGS = (_FIELD_1, _FIELD_1, _FIELD_2, _FIELD_3)
    _KIND = "int64"
    value = ValuesField("int64")


class Feature(_Record, _native.FeatureBase):
    """One of three lists, or none: see `WhichOneof("kind")`. Frozen, it is (field name, values)."""

    __slots__ = ()
    _TAGS = (_FIELD_1, _FIELD_1, _FIELD_2)
    bytes_list = MessageField(BytesList, oneof="kind")
    float_list = MessageField(FloatList, oneof="kind")
    int64_list = MessageField(Int64List, oneof="kind")

    def _thaw(self, frozen: tuple[str, list[Any]]) -> dict[str, Any]:
        name, values = frozen
        return {name: _LIST_TYPES[name]._of(values)}

    def _encode(self) -> bytes:
        return _encode_example({"": self})

    def _decode(self, features: Any, lists: Any) -> None:
        _, kind, values = features[0]
        self._take(kind, values)

    def _take(self, kind: str | None, values: list[Any]) -> None:
        """Take values that the core has read, without a copy."""
        if kind is not None:
            child = getattr(self, _LIST_FIELDS[kind])
            child.value.take(values)
            child._waits_for = None


_LIST_TYPES: dict[str, type[_Values]] = {"bytes_list": BytesList, "float_list": FloatList, "int64_list": Int64List}


class Features(_Record, _native.FeaturesBase):
    """Features by name. Frozen, it is a dict of frozen features."""

    __slots__ = ()
    _TAGS = (_FIELD_1,)
    feature = MapField(Feature)

    def _thaw(self, frozen: dict[str, Any]) -> dict[str, Any]:
        features = MessageMap(self, Feature)
        features.take({name: Feature._of(inner) for name, inner in frozen.items()})
        return {"feature": features}

    def _encode(self) -> bytes:
        return _encode_example(self.feature) if self._frozen is None else _encode_frozen(self._frozen)

    def _decode(self, features: Any, lists: Any) -> None:
        self.feature.take({name.decode(): _feature_of(kind, values) for name, kind, values in features})


class FeatureList(_Record):
    """A list of features, one per step of a sequence."""

    __slots__ = ()
    _RECORD_KIND = "sequence_example"
    _TAGS = (_FIELD_2, _FIELD_1, _FIELD_2)
    feature = MessagesField(Feature)

    def _encode(self) -> bytes:
        return _encode_lists({"": self})

    def _decode(self, features: Any, lists: Any) -> None:
        self._take(lists[0][1])

    def _take(self, frames: list[tuple[str | None, list[Any]]]) -> None:
        self.feature.take([_feature_of(kind, values) for kind, values in frames])


class FeatureLists(_Record):
    """Feature lists by name."""

    __slots__ = ()
    _RECORD_KIND = "sequence_example"
    _TAGS = (_FIELD_2,)
    feature_list = MapField(FeatureList)

    def _encode(self) -> bytes:
        return _encode_lists(self.feature_list)

    def _decode(self, features: Any, lists: Any) -> None:
        named = {name.decode(): FeatureList() for name, _ in lists}
        for feature_list, (_, frames) in zip(named.values(), lists, strict=True):
            feature_list._take(frames)
        self.feature_list.take(named)


class Example(_Record, _native.ExampleBase):
    """A record: features by name. Frozen, it is its frozen features."""

    __slots__ = ()
    features = MessageField(Features)

    def _thaw(self, frozen: dict[str, Any]) -> dict[str, Any]:
        return {"features": Features._of(frozen)}

    def SerializeToString(self, *, deterministic: bool | None = None) -> bytes:
        return self._encode() if self._frozen is None else _encode_frozen(self._frozen)

    def _encode(self) -> bytes:
        return _encode_example(self.features.feature) if self.HasField("features") else b""

    def _decode(self, features: Any, lists: Any) -> None:
        if features is not None:
            self.features._decode(features, None)
            self.features.SetInParent()


class SequenceExample(_Record):
    """A record with a context and feature lists."""

    __slots__ = ()
    _RECORD_KIND = "sequence_example"
    context = MessageField(Features)
    feature_lists = MessageField(FeatureLists)

    def _encode(self) -> bytes:
        # The context has the same field number and content as the features of an Example.
        context = _encode_example(self.context.feature) if self.HasField("context") else b""
        lists = _encode_lists(self.feature_lists.feature_list) if self.HasField("feature_lists") else b""
        return context + lists

    def _decode(self, features: Any, lists: Any) -> None:
        if features is not None:
            self.context._decode(features, None)
            self.context.SetInParent()
        if lists is not None:
            self.feature_lists._decode(None, lists)
            self.feature_lists.SetInParent()


def _feature_of(kind: str | None, values: list[Any]) -> Feature:
    feature = Feature()
    feature._take(kind, values)
    return feature


# --- writing


class _EmptyList:
    """An empty list, whose kind the core cannot see from its values."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


def _plain_value(feature: Feature) -> Any:
    """Return a feature as the core's encoder accepts it: None, a list of exact types, or an `_EmptyList`."""
    name = feature.WhichOneof("kind")
    if name is None:
        return None
    values = getattr(feature, name).value[:]
    return values or _EmptyList(_KINDS[name])


def _coerce(name: str, value: Any, expected: str | None) -> tuple[str, Any]:
    """Called by the core if a list is empty, or of another kind than the step before it."""
    if isinstance(value, _EmptyList):
        return value.kind, [] if value.kind == "bytes" else b""
    kind = "bytes" if isinstance(value[0], bytes) else "float" if isinstance(value[0], float) else "int64"
    if kind == "bytes":
        return kind, value
    import numpy as np

    return kind, np.array(value, "<f4" if kind == "float" else "<i8")


def _encode_example(features: Any) -> bytes:
    encoder = _native.RowEncoder("float32", _coerce)
    encoder.write({name: _plain_value(features[name]) for name in features})
    return _record_of(encoder)


# Idle encoders: each has cached the names of its last message; the next message mostly has the same names.
_IDLE: list[_native.RowEncoder] = []
_MAX_RECORDS = 1 << 16  # per encoder, because it remembers every name


def _encode_frozen(features: dict[str, tuple[str, list[Any]]]) -> bytes:
    try:
        encoder = _IDLE.pop()
    except IndexError:
        encoder = _native.RowEncoder("float32", _coerce)
    record = encoder.encode_message(features)
    if encoder.num_records < _MAX_RECORDS:
        _IDLE.append(encoder)
    return record


def _encode_lists(lists: Any) -> bytes:
    encoder = _native.RowEncoder("float32", _coerce)
    named = [(name, [_plain_value(frame) for frame in lists[name].feature]) for name in sorted(lists, key=str.encode)]
    encoder.write_sequence([], named)
    return _record_of(encoder)


def _record_of(encoder: _native.RowEncoder) -> bytes:
    return encoder.take()[_HEADER_NBYTES:-_FOOTER_NBYTES].tobytes()


def _open_field(data: bytes, tag: int) -> bytes:
    """Return the content of the only field in `data`; in a map entry, of the field after the empty name."""
    if tag == _FIELD_2 and data.startswith(_EMPTY_NAME):
        data = data[len(_EMPTY_NAME) :]
    position = 1
    while data[position] >= 0x80:
        position += 1
    return data[position + 1 :]
