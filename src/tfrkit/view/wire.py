"""Explain the bytes of a record field by field: frame, protobuf fields, values."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from tfrkit._native import masked_crc32c

_HEADER = 8 + 4
_MAX_VARINT = 10
_MAX_DEPTH = 8
_SHOWN = 40  # bytes of a value

# Message types: field number → (name, type of the content or None for bytes, is packed numbers).
_MESSAGES: dict[str, dict[int, tuple[str, str]]] = {
    "Example": {1: ("features", "Features")},
    "SequenceExample": {1: ("context", "Features"), 2: ("feature_lists", "FeatureLists")},
    "Features": {1: ("feature", "FeatureEntry")},
    "FeatureEntry": {1: ("key", "text"), 2: ("value", "Feature")},
    "FeatureLists": {1: ("feature_list", "FeatureListEntry")},
    "FeatureListEntry": {1: ("key", "text"), 2: ("value", "FeatureList")},
    "FeatureList": {1: ("feature", "Feature")},
    "Feature": {1: ("bytes_list", "BytesList"), 2: ("float_list", "FloatList"), 3: ("int64_list", "Int64List")},
    "BytesList": {1: ("value", "bytes")},
    "FloatList": {1: ("value", "floats")},
    "Int64List": {1: ("value", "varints")},
}
_WIRE_TYPES = {0: "varint", 1: "64-bit", 2: "length-delimited", 5: "32-bit"}


class Field(NamedTuple):
    """A range of bytes of a frame and its meaning; `start` counts from the start of the frame."""

    start: int
    stop: int
    depth: int
    path: str
    what: str
    value: str = ""
    is_bad: bool = False

    def to_json(self) -> dict[str, Any]:
        return self._asdict()


def explain_frame(frame: bytes, kind: str, *, start: int, stop: int, limit: int) -> list[Field]:
    """Return the fields of a frame that touch the bytes from `start` to `stop`, at most `limit`.

    `kind` is that of the dataset. Values before `start` are skipped. Bytes that do not parse are one bad field;
    nothing is raised.
    """
    found: list[Field] = []
    for field in _explain(frame, kind, start):
        if field.start >= stop:
            # Fields come in order of their start, except for checksums at the end.
            break
        if field.stop > start:
            found.append(field)
            if len(found) == limit:
                break
    length = int.from_bytes(frame[:8], "little")
    end = _HEADER + length
    if end < stop and end + 4 > start and len(frame) >= end + 4 and len(found) < limit:
        stored = int.from_bytes(frame[end : end + 4], "little")
        found.append(_explain_checksum(end, "payload checksum", stored, masked_crc32c(frame[_HEADER:end])))
    return found


def _explain(frame: bytes, kind: str, since: int) -> Iterator[Field]:
    if len(frame) < _HEADER:
        yield Field(0, len(frame), 0, "frame", "header ends early", is_bad=True)
        return
    length = int.from_bytes(frame[:8], "little")
    is_cut = length + _HEADER + 4 > len(frame)
    yield Field(0, 8, 0, "frame", "length", f"{length}", is_cut)
    stored = int.from_bytes(frame[8:12], "little")
    yield _explain_checksum(8, "length checksum", stored, masked_crc32c(frame[:8]))
    payload_stop = min(len(frame), _HEADER + length)
    message = {"example": "Example", "sequence_example": "SequenceExample"}.get(kind)
    if message is None:
        if payload_stop > _HEADER:
            yield Field(_HEADER, payload_stop, 1, "record", f"{payload_stop - _HEADER} bytes")
        return
    yield from _explain_message(frame, _HEADER, payload_stop, message, "", 1, since)


def _explain_checksum(start: int, what: str, stored: int, computed: int) -> Field:
    is_bad = stored != computed
    value = f"0x{stored:08x}" + (f", computed 0x{computed:08x}" if is_bad else "")
    return Field(start, start + 4, 0, "frame", what, value, is_bad)


def _explain_message(
    data: bytes, start: int, stop: int, message: str, path: str, depth: int, since: int
) -> Iterator[Field]:
    at = start
    key = ""
    while at < stop:
        tag = _read_varint(data, at, stop)
        if tag is None:
            yield Field(at, stop, depth, path or message, "bytes that are not a field", is_bad=True)
            return
        number, after = tag
        field, wire_type = number >> 3, number & 7
        name, content = _MESSAGES[message].get(field, (f"field {field}", "unknown"))
        inner = f"{path}.{name}" if path else name
        end = _find_end(data, after, stop, wire_type)
        what = f"field {field}, {_WIRE_TYPES.get(wire_type, f'wire type {wire_type}')}"
        if end is None:
            yield Field(at, stop, depth, inner, f"{what}, does not end", is_bad=True)
            return
        value_start, value_stop = end
        if wire_type == 2:
            what = f"field {field}, {value_stop - value_start} bytes"
            yield Field(at, value_start, depth, inner, what)
        else:
            yield Field(at, after, depth, inner, what)
        shown = inner
        if content == "text" and wire_type == 2:
            key = data[value_start:value_stop][:200].decode("utf-8", "backslashreplace")
        elif message.endswith("Entry") and field == 2:
            shown = f'{path}["{key}"]'
        if value_stop > since:
            yield from _explain_value(data, value_start, value_stop, wire_type, content, shown, depth + 1, since)
        at = value_stop


def _explain_value(
    data: bytes, start: int, stop: int, wire_type: int, content: str, path: str, depth: int, since: int
) -> Iterator[Field]:
    if wire_type == 0:
        number, _ = _read_varint(data, start, stop) or (0, 0)
        yield Field(start, stop, depth, path, "varint", str(_to_signed(number)))
    elif wire_type in (1, 5):
        form = "<f" if wire_type == 5 and content == "floats" else "<I" if wire_type == 5 else "<Q"
        yield Field(start, stop, depth, path, _WIRE_TYPES[wire_type], f"{struct.unpack(form, data[start:stop])[0]:.9g}")
    elif content in _MESSAGES and depth < 2 * _MAX_DEPTH:
        yield from _explain_message(data, start, stop, content, path, depth, since)
    elif content == "floats":
        for at in range(start + max(0, since - start) // 4 * 4, stop - 3, 4):
            yield Field(at, at + 4, depth, path, "float", f"{struct.unpack_from('<f', data, at)[0]:.9g}")
        if (stop - start) % 4:
            yield Field(stop - (stop - start) % 4, stop, depth, path, "not a whole float", is_bad=True)
    elif content == "varints":
        yield from _explain_varints(data, start, stop, path, depth)
    elif stop > start:
        value = data[start : min(stop, start + _SHOWN)]
        text = value.decode("utf-8", "backslashreplace") if content == "text" else repr(value)[2:-1]
        more = " …" if stop - start > _SHOWN else ""
        yield Field(start, stop, depth, path, "text" if content == "text" else "bytes", text + more)


def _explain_varints(data: bytes, start: int, stop: int, path: str, depth: int) -> Iterator[Field]:
    at = start
    while at < stop:
        found = _read_varint(data, at, stop)
        if found is None:
            yield Field(at, stop, depth, path, "a number that does not end", is_bad=True)
            return
        yield Field(at, found[1], depth, path, "varint", str(_to_signed(found[0])))
        at = found[1]


def _read_varint(data: bytes, start: int, stop: int) -> tuple[int, int] | None:
    """Return a number and the place after it; None if it does not end."""
    number = 0
    for at in range(start, min(stop, start + _MAX_VARINT)):
        number |= (data[at] & 127) << 7 * (at - start)
        if data[at] < 128:
            return number, at + 1
    return None


def _find_end(data: bytes, start: int, stop: int, wire_type: int) -> tuple[int, int] | None:
    """Return where the value of a field starts and stops; None if it is not whole."""
    if wire_type == 0:
        found = _read_varint(data, start, stop)
        return None if found is None else (start, found[1])
    if wire_type in (1, 5):
        end = start + (8 if wire_type == 1 else 4)
        return (start, end) if end <= stop else None
    length = _read_varint(data, start, stop) if wire_type == 2 else None
    if length is None or length[1] + length[0] > stop:
        return None
    return length[1], length[1] + length[0]


def _to_signed(number: int) -> int:
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number
