"""Drops, renames, casts and renumbers features of a record; everything else is unchanged.

The record is parsed only down to the entries of its maps. Kept entries are copied byte for byte, in place; so are
unknown fields.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tfrkit import _native
from tfrkit._types import Record
from tfrkit.codec.tensor_proto import encode_varint
from tfrkit.errors import CodecError, FeatureKindError, SchemaError, WireError
from tfrkit.features.schema import decode_name, encode_name, show_name

CastKind = Literal["bytes", "float", "int64"]
CAST_KINDS: tuple[CastKind, ...] = ("bytes", "float", "int64")

DELIMITED, _GROUP_START, _GROUP_END = 2, 3, 4
_MAX_LENGTH_NBYTES = 5  # tags and lengths are 32 bits to protobuf
_MAX_GROUPS = 100  # nesting; protobuf's limit
_FIXED_NBYTES = {1: 8, 5: 4}
_KIND_FIELDS = {"bytes": 1, "float": 2, "int64": 3}
_ENTRY_TAG = _KEY_TAG = 1 << 3 | DELIMITED
_VALUE_TAG = 2 << 3 | DELIMITED

_Action = Literal["copy", "drop", "change"]


class ClassError(SchemaError):
    """A record has a class id without a new one."""


@dataclass
class RecordEditor:
    """Edits records one by one. `seen` has all feature names found so far, before renaming.

    Attributes:
        drop: Names to leave out.
        keep: If not None, all other names are left out.
        rename: Old name to new name.
        cast: Old name to the kind that its values are cast to.
        renumber: Old name to the new class id of each old one. Raises `SchemaError` for an id that is not in it.
    """

    drop: Collection[str] = ()
    keep: Collection[str] | None = None
    rename: Mapping[str, str] = field(default_factory=dict)
    cast: Mapping[str, CastKind] = field(default_factory=dict)
    renumber: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    _actions: dict[bytes, _Action] = field(default_factory=dict, repr=False)

    @property
    def named(self) -> list[str]:
        """All names in the edits."""
        return list(dict.fromkeys([*self.drop, *(self.keep or ()), *self.rename, *self.cast, *self.renumber]))

    @property
    def changes_values(self) -> bool:
        """Whether values change, not only names."""
        return bool(self.cast or self.renumber)

    def edit(self, record: Record) -> Record:
        """Return the edited record. Raises `CodecError` for a record that is not an Example."""
        shape = _native.classify_record(record)
        if shape == "other":
            raise CodecError("expected an Example, got another record, whose features cannot be edited")
        is_sequence = shape in ("sequence_example", "loose_sequence")
        out = []
        # By new name, for all maps of the record: readers merge them.
        features: dict[str, str] = {}
        lists: dict[str, str] = {}
        for number, wire_type, start, value_start, stop in split_fields(record):
            whole = record[start:stop]
            if wire_type == DELIMITED and number == 1:
                out.append(delimit(1, self._edit_map(record[value_start:stop], features, is_list=False)))
            elif wire_type == DELIMITED and number == 2 and is_sequence:
                out.append(delimit(2, self._edit_map(record[value_start:stop], lists, is_list=True)))
            else:
                out.append(whole)
        return b"".join(out)

    def _edit_map(self, message: bytes, names: dict[str, str], *, is_list: bool) -> bytes:
        """Edit the entries of a Features or FeatureLists message."""
        quick = None if self.rename else self._edit_plain_map(message, is_list=is_list)
        if quick is not None:
            return quick
        out: list[bytes] = []
        for number, wire_type, start, value_start, stop in split_fields(message):
            if wire_type != DELIMITED or number != 1:
                out.append(message[start:stop])
                continue
            entry = message[value_start:stop]
            name = read_entry_name(entry)
            self.seen.add(name)
            if name in self.drop or (self.keep is not None and name not in self.keep):
                continue
            new = self.rename.get(name, name)
            if names.setdefault(new, name) != name:
                raise SchemaError(
                    f"two features would be called {show_name(new)}: {show_name(names[new])} and {show_name(name)}"
                )
            if new == name and name not in self.cast and name not in self.renumber:
                out.append(message[start:stop])
            else:
                out.append(delimit(1, self._edit_entry(entry, name, new, is_list=is_list)))
        return b"".join(out)

    def _edit_plain_map(self, message: bytes, *, is_list: bool) -> bytes | None:
        """Edit entries in the usual layout, a short key and then a value; None if an entry has another layout.

        Runs of kept entries are skipped quickly and copied together.
        """
        out: list[bytes] = []
        actions, end = self._actions, len(message)
        at = copied = 0
        try:
            while at < end:
                start = at
                if message[at] != _ENTRY_TAG:
                    return None
                length, at = message[at + 1], at + 2
                if length > 0x7F:
                    length, at = _read_varint(message, start + 1, _MAX_LENGTH_NBYTES)
                stop, value = at + length, at + 2 + message[at + 1]
                if stop > end or message[at] != _KEY_TAG or message[at + 1] > 0x7F or message[value] != _VALUE_TAG:
                    return None
                nbytes, value_start = message[value + 1], value + 2
                if nbytes > 0x7F:
                    nbytes, value_start = _read_varint(message, value + 1, _MAX_LENGTH_NBYTES)
                if value_start + nbytes != stop:
                    return None
                key = message[at + 2 : value]
                action = actions.get(key) or self._choose_action(key)
                at = stop
                if action == "copy":
                    continue
                out.append(message[copied:start])
                copied = stop
                if action == "change":
                    changed = self._change_value(message[value_start:stop], decode_name(key), is_list=is_list)
                    out.append(delimit(1, delimit(1, key) + delimit(2, changed)))
        except IndexError:
            return None
        out.append(message[copied:])
        return b"".join(out)

    def _choose_action(self, key: bytes) -> _Action:
        name = decode_name(key)
        self.seen.add(name)
        action: _Action = "change" if name in self.cast or name in self.renumber else "copy"
        if name in self.drop or (self.keep is not None and name not in self.keep):
            action = "drop"
        self._actions[key] = action
        return action

    def _edit_entry(self, entry: bytes, name: str, new: str, *, is_list: bool) -> bytes:
        out = [delimit(1, encode_name(new))]
        is_changed = name in self.cast or name in self.renumber
        values = []
        for number, wire_type, start, value_start, stop in split_fields(entry):
            if number == 1 and wire_type == DELIMITED:
                continue
            if number == 2 and wire_type == DELIMITED and is_changed:
                values.append(entry[value_start:stop])
            else:
                out.append(entry[start:stop])
        if is_changed and values:
            # Protobuf merges a message in several pieces by concatenation.
            out.append(delimit(2, self._change_value(b"".join(values), name, is_list=is_list)))
        return b"".join(out)

    def _change_value(self, message: bytes, name: str, *, is_list: bool) -> bytes:
        """Change a Feature, or every Feature of a FeatureList."""
        if not is_list:
            return self._change_feature(message, name)
        out = []
        for number, wire_type, start, value_start, stop in split_fields(message):
            if number == 1 and wire_type == DELIMITED:
                out.append(delimit(1, self._change_feature(message[value_start:stop], name)))
            else:
                out.append(message[start:stop])
        return b"".join(out)

    def _change_feature(self, message: bytes, name: str) -> bytes:
        """Cast or renumber a Feature; a Feature without a kind is unchanged."""
        # The core reads whole records, so wrap this feature in one.
        record = delimit(1, delimit(1, delimit(1, b"x") + delimit(2, message)))
        read = _native.read_message("example", record)
        if isinstance(read, _native.Fault):
            raise WireError(f"feature {show_name(name)} is not a well-formed message")
        assert read[0] is not None
        [(_, kind, values)] = read[0]
        if kind is None:
            return message
        if name in self.renumber:
            return _renumber_classes(message, name, kind, values, self.renumber[name])
        return message if kind == self.cast[name] else _cast_values(name, kind, values, self.cast[name])


def _renumber_classes(message: bytes, name: str, kind: str, values: list[Any], new_ids: Mapping[int, int]) -> bytes:
    if kind != "int64":
        raise FeatureKindError(f"feature {show_name(name)} expected class ids, got {kind}")
    unknown = next((value for value in values if value not in new_ids), None)
    if unknown is not None:
        raise ClassError(f"class {unknown} of feature {show_name(name)} is not in the new classes")
    changed = [new_ids[value] for value in values]
    return message if changed == values else encode_feature("int64", changed)


def _cast_values(name: str, old: str, values: list[Any], kind: CastKind) -> bytes:
    convert = _CONVERSIONS[old, kind]
    try:
        return encode_feature(kind, [convert(value) for value in values])
    except (ValueError, OverflowError) as error:
        raise FeatureKindError(f"feature {show_name(name)} cannot be cast from {old} to {kind}, {error}") from None


def encode_feature(kind: CastKind, values: list[Any]) -> bytes:
    """Encode values of this kind as a Feature message."""
    if kind == "bytes":
        content = b"".join(delimit(1, value) for value in values)
    elif not values:
        content = b""
    elif kind == "float":
        content = delimit(1, np.array(values, "<f4").tobytes())
    else:
        content = delimit(1, b"".join(encode_varint(value & (1 << 64) - 1) for value in values))
    return delimit(_KIND_FIELDS[kind], content)


def _int_to_float(value: int) -> float:
    if abs(value) > 1 << 24 and int(np.float32(value)) != value:
        raise ValueError(f"{value} does not fit in float")
    return float(value)


def _float_to_int(value: float) -> int:
    if not math.isfinite(value) or value != int(value):
        raise ValueError(f"{value} is not a whole number")
    return _check_int(int(value))


def _check_int(value: int) -> int:
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value} does not fit in int64")
    return value


def _text_to_int(value: bytes) -> int:
    try:
        # int() also accepts 1_0.
        return _check_int(int(value.decode("ascii").replace("_", "?")))
    except (UnicodeDecodeError, ValueError):
        raise ValueError(f"{value[:32]!r} is not a 64-bit integer") from None


def _text_to_float(value: bytes) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", float(value.decode("ascii"))))[0]  # type: ignore[no-any-return]
    except (UnicodeDecodeError, ValueError, OverflowError):
        raise ValueError(f"{value[:32]!r} is not a number") from None


def _float_to_text(value: float) -> bytes:
    # The shortest text that reads back as this float32.
    return str(np.float32(value)).encode()


_CONVERSIONS: Mapping[tuple[str, str], Callable[[Any], Any]] = {
    ("int64", "float"): _int_to_float,
    ("int64", "bytes"): lambda value: b"%d" % value,
    ("float", "int64"): _float_to_int,
    ("float", "bytes"): _float_to_text,
    ("bytes", "int64"): _text_to_int,
    ("bytes", "float"): _text_to_float,
}


def read_entry_name(entry: bytes) -> str:
    """Read the key of a map entry: the last key in it, or "" if there is none."""
    name = b""
    for number, wire_type, _, value_start, stop in split_fields(entry):
        if number == 1 and wire_type == DELIMITED:
            name = entry[value_start:stop]
    return decode_name(name)


def split_fields(message: bytes) -> list[tuple[int, int, int, int, int]]:
    """Return (number, wire type, start, start of the value, stop) of each field; a group is one field."""
    fields = []
    at, end = 0, len(message)
    open_groups: list[int] = []
    start = value_start = 0
    while at < end:
        if not open_groups:
            start = at
        key, at = _read_varint(message, at, _MAX_LENGTH_NBYTES)
        number, wire_type = key >> 3, key & 7
        if not open_groups:
            value_start = at
        if wire_type == 0:
            _, at = _read_varint(message, at)
        elif wire_type == DELIMITED:
            length, at = _read_varint(message, at, _MAX_LENGTH_NBYTES)
            value_start = value_start if open_groups else at
            at += length
        elif wire_type in _FIXED_NBYTES:
            at += _FIXED_NBYTES[wire_type]
        elif wire_type == _GROUP_START and len(open_groups) < _MAX_GROUPS:
            open_groups.append(number)
        elif wire_type != _GROUP_END or not open_groups or open_groups.pop() != number:
            raise _refuse()
        if at > end or not 0 < number < 1 << 29:
            raise _refuse()
        if not open_groups:
            fields.append((number, wire_type, start, value_start, at))
    if open_groups:
        raise _refuse()
    return fields


def _read_varint(message: bytes, at: int, max_nbytes: int = 10) -> tuple[int, int]:
    value = 0
    for shift, byte in enumerate(message[at : at + max_nbytes]):
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value, at + shift + 1
    raise _refuse()


def _refuse() -> WireError:
    return WireError("record is not a well-formed protobuf message of its kind")


def delimit(number: int, content: bytes) -> bytes:
    """Encode a field of a message: tag, length, content."""
    if len(content) <= 0x7F and number <= 0xF:
        return bytes((number << 3 | DELIMITED, len(content))) + content
    return encode_varint(number << 3 | DELIMITED) + encode_varint(len(content)) + content
