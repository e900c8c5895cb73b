"""A slow pure-Python implementation of what the native core does.

Every function works byte by byte, so that it can be compared with docs/look-up/format.md. The fast code is tested
against it. It uses nothing else of tfrkit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal["bytes", "float", "int64"]
# The values of one feature, or None for a Feature without a list.
Feature = tuple[Kind, list[bytes] | list[float] | list[int]] | None
Features = dict[bytes, Feature]
FeatureLists = dict[bytes, list[Feature]]

HEADER_SIZE = 8 + 4  # length, masked crc of length
FOOTER_SIZE = 4  # masked crc of payload
FRAME_OVERHEAD = HEADER_SIZE + FOOTER_SIZE
MAX_DEPTH = 100  # protobuf's own limit on nested groups
_MAX_LENGTH_SIZE = 5  # tags and lengths are 32 bits in protobuf, including padded ones
_UINT64 = (1 << 64) - 1
_KINDS: dict[int, Kind] = {1: "bytes", 2: "float", 3: "int64"}
_FIELD_OF_KIND = {kind: number for number, kind in _KINDS.items()}


class ReferenceFault(ValueError):
    """Damage, with the core's name for it."""

    def __init__(self, kind: str, offset: int = 0) -> None:
        super().__init__(f"{kind} at byte {offset}")
        self.kind = kind
        self.offset = offset


# --- checksums -------------------------------------------------------------------------------------


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _crc_table()


def crc32c(data: bytes, crc: int = 0) -> int:
    """Return the CRC-32C (Castagnoli) of some bytes, continued from `crc`."""
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """Return the checksum as it is stored in a frame."""
    crc = crc32c(data)
    rotated = (crc >> 15) | (crc << 17 & 0xFFFFFFFF)
    return (rotated + 0xA282EAD8) & 0xFFFFFFFF


# --- frames ----------------------------------------------------------------------------------------


def write_frame(record: bytes) -> bytes:
    """Return one record as a frame."""
    length = struct.pack("<Q", len(record))
    return length + struct.pack("<I", masked_crc32c(length)) + record + struct.pack("<I", masked_crc32c(record))


def write_frames(records: list[bytes]) -> bytes:
    """Return records as the bytes of a shard."""
    return b"".join(write_frame(record) for record in records)


def read_frame(data: bytes, offset: int) -> tuple[bytes, int]:
    """Return the record of the frame at `offset`, and the offset of the next frame."""
    if len(data) - offset < HEADER_SIZE:
        raise ReferenceFault("truncated_header", offset)
    (length,) = struct.unpack_from("<Q", data, offset)
    (length_crc,) = struct.unpack_from("<I", data, offset + 8)
    if length_crc != masked_crc32c(data[offset : offset + 8]):
        raise ReferenceFault("length_checksum", offset)
    start = offset + HEADER_SIZE
    if start + length + FOOTER_SIZE > len(data):
        raise ReferenceFault("truncated_payload", offset)
    record = data[start : start + length]
    (record_crc,) = struct.unpack_from("<I", data, start + length)
    if record_crc != masked_crc32c(record):
        raise ReferenceFault("payload_checksum", offset)
    return record, start + length + FOOTER_SIZE


def read_frames(data: bytes) -> list[bytes]:
    """Return every record of a shard; the first damage raises."""
    records, offset = [], 0
    while offset < len(data):
        record, offset = read_frame(data, offset)
        records.append(record)
    return records


def index_frames(data: bytes) -> list[int]:
    """Return the offset of each frame of a sound shard."""
    offsets, offset = [], 0
    while offset < len(data):
        offsets.append(offset)
        _, offset = read_frame(data, offset)
    return offsets


def find_next_frame(data: bytes, offset: int) -> int | None:
    """Find the first frame with two valid checksums at or after `offset`, and return its offset."""
    for candidate in range(offset, len(data) - FRAME_OVERHEAD + 1):
        try:
            read_frame(data, candidate)
        except ReferenceFault:
            continue
        return candidate
    return None


def salvage_frames(data: bytes) -> tuple[list[bytes], list[int]]:
    """Return every readable record, and the start of each damaged range.

    After damage, reading resumes at the next frame with two valid checksums. If only a payload is damaged and a frame
    follows it, the payload is not searched.
    """
    records, damage, offset = [], [], 0
    while offset < len(data):
        try:
            record, offset = read_frame(data, offset)
            records.append(record)
        except ReferenceFault as fault:
            damage.append(offset)
            after = _step_over(data, offset) if fault.kind == "payload_checksum" else None
            found = find_next_frame(data, offset + 1) if after is None else after
            if found is None:
                break
            offset = found
    return records, damage


def _step_over(data: bytes, offset: int) -> int | None:
    """Return the end of the frame at `offset` if the shard ends there or a valid length follows."""
    (length,) = struct.unpack_from("<Q", data, offset)
    after = int(offset + FRAME_OVERHEAD + length)
    header = data[after : after + HEADER_SIZE]
    if not header:
        return after
    is_header = len(header) == HEADER_SIZE and header[8:] == struct.pack("<I", masked_crc32c(header[:8]))
    return after if is_header else None


# --- wire format -----------------------------------------------------------------------------------


class Field(NamedTuple):
    """One field of a message. `value` is an int for varints, else the bytes of the value."""

    number: int
    wire_type: int
    value: int | bytes


def write_varint(value: int) -> bytes:
    """Return the shortest varint of a value; negative values are 64-bit two's complement."""
    value &= _UINT64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, offset: int, *, max_bytes: int = 10) -> tuple[int, int]:
    """Return a varint and the offset after it. Bits above the 64th are dropped, as in protobuf."""
    value = 0
    for position in range(max_bytes):
        if offset + position >= len(data):
            break
        byte = data[offset + position]
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return value & _UINT64, offset + position + 1
    raise ReferenceFault("wire", offset)


def read_fields(data: bytes) -> Iterator[Field]:
    """Return the fields of a message in order. A group's value is the bytes between its two tags."""
    offset = 0
    while offset < len(data):
        field, offset = _read_field(data, offset, 0)
        yield field


def _read_field(data: bytes, offset: int, depth: int) -> tuple[Field, int]:
    number, wire_type, offset = _read_tag(data, offset)
    if wire_type == 0:
        value, offset = read_varint(data, offset)
        return Field(number, 0, value), offset
    if wire_type == 3:
        start = offset
        if depth >= MAX_DEPTH:
            raise ReferenceFault("wire", offset)
        while True:
            inner, inner_type, after = _read_tag(data, offset)
            if inner_type == 4:
                if inner != number:
                    raise ReferenceFault("wire", offset)
                return Field(number, 3, data[start:offset]), after
            _, offset = _read_field(data, offset, depth + 1)
    if wire_type == 1:
        nbytes = 8
    elif wire_type == 5:
        nbytes = 4
    elif wire_type == 2:
        nbytes, offset = read_varint(data, offset, max_bytes=_MAX_LENGTH_SIZE)
    else:
        raise ReferenceFault("wire", offset)
    if nbytes > len(data) - offset:
        raise ReferenceFault("wire", offset)
    return Field(number, wire_type, data[offset : offset + nbytes]), offset + nbytes


def _read_tag(data: bytes, offset: int) -> tuple[int, int, int]:
    tag, after = read_varint(data, offset, max_bytes=_MAX_LENGTH_SIZE)
    if tag > 0xFFFFFFFF or tag >> 3 == 0:
        raise ReferenceFault("wire", offset)
    return tag >> 3, tag & 7, after


def _messages(data: bytes, number: int) -> Iterator[bytes]:
    """Return the length-delimited fields with one number; all other fields are unknown and skipped."""
    for field in read_fields(data):
        if field.number == number and field.wire_type == 2:
            assert isinstance(field.value, bytes)
            yield field.value


# --- Example and SequenceExample -------------------------------------------------------------------


def parse_example(record: bytes) -> Features:
    """Return the features of an Example by name."""
    return _parse_features(_messages(record, 1))


def parse_sequence_example(record: bytes) -> tuple[Features, FeatureLists]:
    """Return the context and the feature lists of a SequenceExample."""
    context = _parse_features(_messages(record, 1))
    lists: FeatureLists = {}
    for piece in _messages(record, 2):
        for entry in _messages(piece, 1):
            name, values = _parse_entry(entry)
            lists[name] = [_parse_feature([frame]) for value in values for frame in _messages(value, 1)]
    return context, lists


def _parse_features(pieces: Iterator[bytes]) -> Features:
    """Parse a Features message that is split into several pieces."""
    features: Features = {}
    for piece in pieces:
        for entry in _messages(piece, 1):
            name, values = _parse_entry(entry)
            features[name] = _parse_feature(values)  # the last entry of a name wins
    return features


def _parse_entry(data: bytes) -> tuple[bytes, list[bytes]]:
    """Return key and value of a map entry: the last key, and all pieces of the value."""
    names = list(_messages(data, 1))
    return names[-1] if names else b"", list(_messages(data, 2))


def _parse_feature(pieces: list[bytes]) -> Feature:
    kind: Kind | None = None
    values: list[bytes] | list[float] | list[int] = []
    for piece in pieces:
        for field in read_fields(piece):
            if field.wire_type != 2 or field.number not in _KINDS:
                continue
            assert isinstance(field.value, bytes)
            more = _parse_list(_KINDS[field.number], field.value)
            # Members of a oneof: another one replaces, the same one merges.
            values = [*values, *more] if kind == _KINDS[field.number] else more
            kind = _KINDS[field.number]
    return None if kind is None else (kind, values)


def _parse_list(kind: Kind, data: bytes) -> list[bytes] | list[float] | list[int]:
    if kind == "bytes":
        return list(_messages(data, 1))
    if kind == "float":
        packed = b"".join(_packed_floats(data))
        return list(struct.unpack(f"<{len(packed) // 4}f", packed))
    return list(_packed_ints(data))


def _packed_floats(data: bytes) -> Iterator[bytes]:
    for field in read_fields(data):
        if field.number == 1 and field.wire_type in (2, 5):
            assert isinstance(field.value, bytes)
            if len(field.value) % 4:
                raise ReferenceFault("wire")
            yield field.value


def _packed_ints(data: bytes) -> Iterator[int]:
    for field in read_fields(data):
        if field.number != 1:
            continue
        if isinstance(field.value, int):
            yield _to_signed(field.value)
        elif field.wire_type == 2:
            offset = 0
            while offset < len(field.value):
                value, offset = read_varint(field.value, offset)
                yield _to_signed(value)


def _to_signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


# --- canonical bytes -------------------------------------------------------------------------------


def write_field(number: int, value: bytes) -> bytes:
    """Return a length-delimited field."""
    return write_varint(number << 3 | 2) + write_varint(len(value)) + value


def encode_feature(feature: Feature) -> bytes:
    """Encode a Feature; without a kind it is empty, without values it has an empty list."""
    if feature is None:
        return b""
    kind, values = feature
    if kind == "bytes":
        body = b"".join(write_field(1, value) for value in values)  # type: ignore[arg-type]
    elif kind == "float":
        body = struct.pack(f"<{len(values)}f", *values)
    else:
        body = b"".join(write_varint(value) for value in values)  # type: ignore[arg-type]
    if kind != "bytes" and values:
        body = write_field(1, body)
    return write_field(_FIELD_OF_KIND[kind], body)


def _encode_features(features: Features) -> bytes:
    return b"".join(
        write_field(1, write_field(1, name) + write_field(2, encode_feature(features[name])))
        for name in sorted(features)
    )


def encode_example(features: Features) -> bytes:
    """Return the canonical bytes of an Example: names sorted, lists packed, shortest varints."""
    return write_field(1, _encode_features(features))


def encode_sequence_example(context: Features, lists: FeatureLists) -> bytes:
    """Return the canonical bytes of a SequenceExample. Its feature_lists are written even if empty."""
    body = b""
    for name in sorted(lists):
        frames = b"".join(write_field(1, encode_feature(frame)) for frame in lists[name])
        body += write_field(1, write_field(1, name) + write_field(2, frames))
    head = write_field(1, _encode_features(context)) if context else b""
    return head + write_field(2, body)


# --- record shapes ----------------------------------------------------------------------


def classify_record(record: bytes) -> str:
    """Return the type of a record if it has only defined fields; see record_shape.h."""
    if not record:
        return "empty"
    num_features = num_lists = num_entries = 0
    is_strict, has_foreign_lists = True, False
    try:
        for field in read_fields(record):
            if field.number == 1 and field.wire_type == 2:
                judged: tuple[bool, int] | None = _judge_map(field.value, of_lists=False)
                num_features += 1
            else:
                judged = _judge_lists(field)
                num_lists += judged is not None
                has_foreign_lists |= judged is None and field.number == 2 and field.wire_type == 2
            is_strict &= judged is not None and judged[0]
            num_entries += 0 if judged is None else judged[1]
    except (ReferenceFault, UnicodeDecodeError):
        return "other"
    if num_lists and has_foreign_lists:
        return "other"  # malformed for every reader of SequenceExamples
    if is_strict and num_features <= 1 and num_lists <= 1:
        return "sequence_example" if num_lists else "example"
    if num_entries:
        return "loose_sequence" if num_lists else "loose_example"
    return "other"


def _judge_lists(field: Field) -> tuple[bool, int] | None:
    """Return `_judge_map` of a field that can be the feature_lists; None if the field is unknown."""
    if field.number != 2 or field.wire_type != 2:
        return None
    try:
        return _judge_map(field.value, of_lists=True)
    except (ReferenceFault, UnicodeDecodeError):
        return None


def _judge_map(data: int | bytes, *, of_lists: bool) -> tuple[bool, int]:
    """Return whether only defined fields occur, as often as writers write them, and the number of complete entries."""
    assert isinstance(data, bytes)
    is_strict, num_entries = _is_plain(data, {1}), 0
    for entry in _messages(data, 1):
        names, values = list(_messages(entry, 1)), list(_messages(entry, 2))
        is_complete = len(names) == len(values) == 1
        is_strict &= is_complete and _is_plain(entry, {1, 2})
        num_entries += is_complete
        for name in names:
            name.decode()
        for value in values:
            frames = list(_messages(value, 1)) if of_lists else [value]
            is_strict &= not of_lists or _is_plain(value, {1})
            for frame in frames:
                _parse_feature([frame])  # damage in a value is damage of the record
                is_strict &= _is_plain_feature(frame)
    return is_strict, num_entries


def _is_plain(message: bytes, numbers: set[int]) -> bool:
    return all(field.wire_type == 2 and field.number in numbers for field in read_fields(message))


def _is_plain_feature(feature: bytes) -> bool:
    fields = list(read_fields(feature))
    wire_types = {1: (2,), 2: (2, 5), 3: (0, 2)}
    return (
        len(fields) <= 1
        and _is_plain(feature, {1, 2, 3})
        and all(
            value.number == 1 and value.wire_type in wire_types[field.number]
            for field in fields
            for value in read_fields(field.value)  # type: ignore[arg-type]
        )
    )


# --- serialized tensors ----------------------------------------------------------------------------

# tensorflow.DataType number to the size of one element in bytes.
ELEMENT_SIZES = {1: 4, 2: 8, 3: 4, 4: 1, 5: 2, 6: 1, 8: 8, 9: 8, 10: 1, 14: 2, 17: 2, 18: 16, 19: 2, 22: 4, 23: 8}
DT_STRING = 7


def encode_tensor(dtype: int, shape: tuple[int, ...], content: bytes | list[bytes]) -> bytes:
    """Encode a TensorProto as tf.io.serialize_tensor does; strings as a list."""
    dims = b"".join(write_field(2, b"\x08" + write_varint(size) if size else b"") for size in shape)
    head = b"\x08" + write_varint(dtype) + write_field(2, dims)
    if isinstance(content, list):
        return head + b"".join(write_field(8, value) for value in content)
    return head + (write_field(4, content) if content else b"")


def read_strict_tensor(data: bytes) -> tuple[int, tuple[int, ...], bytes] | None:
    """Return dtype, shape and content of a TensorProto exactly as `encode_tensor` writes it, else None."""
    try:
        fields = list(read_fields(data))
        dims = [list(read_fields(dim)) for dim in _messages(data, 2) for dim in _messages(dim, 2)]
    except ReferenceFault:
        return None
    dtype = next((field.value for field in fields if field.number == 1 and field.wire_type == 0), 0)
    shape = tuple(dim[0].value if dim and dim[0].wire_type == 0 else 0 for dim in dims)
    content = list(_messages(data, 4))
    strings = list(_messages(data, 8))
    num_elements = 1
    for size in shape:
        num_elements *= int(size)
    if dtype == DT_STRING:
        is_sound = len(strings) == num_elements and not content
    else:
        is_sound = dtype in ELEMENT_SIZES and len(b"".join(content)) == num_elements * ELEMENT_SIZES[int(dtype)]
    # Encode again and compare: this checks the order, shortest varints and that there are no extra fields.
    again = encode_tensor(int(dtype), shape, strings if dtype == DT_STRING else b"".join(content))  # type: ignore[arg-type]
    if not is_sound or again != data or any(int(size) >> 63 for size in shape):
        return None
    return int(dtype), shape, b"" if dtype == DT_STRING else b"".join(content)  # type: ignore[return-value]
