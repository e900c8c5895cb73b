"""Deliberate damage: small operations for tests of broken shards."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tfrkit.testing import reference


def flip(data: bytes, offset: int, bit: int = 0) -> bytes:
    """Flip one bit of the byte at `offset`."""
    out = bytearray(data)
    out[offset] ^= 1 << bit
    return bytes(out)


def truncate(data: bytes, nbytes: int) -> bytes:
    """Keep the first `nbytes` bytes; a negative number removes that many from the end."""
    return data[:nbytes]


def splice(data: bytes, start: int, stop: int, patch: bytes = b"") -> bytes:
    """Replace [start, stop) with bytes of any length."""
    return data[:start] + patch + data[stop:]


def make_frame(
    record: bytes, *, length: int | None = None, length_crc: int | None = None, crc: int | None = None
) -> bytes:
    """Make a frame with a forged length or checksums; the checksum of a forged length is valid unless forged, too."""
    head = struct.pack("<Q", len(record) if length is None else length)
    length_crc = reference.masked_crc32c(head) if length_crc is None else length_crc
    crc = reference.masked_crc32c(record) if crc is None else crc
    return head + struct.pack("<I", length_crc) + record + struct.pack("<I", crc)


def frame_offsets(data: bytes) -> list[int]:
    """Return the offset of each frame, following the lengths without any check."""
    offsets, offset = [], 0
    while offset + reference.FRAME_OVERHEAD <= len(data):
        offsets.append(offset)
        offset += reference.FRAME_OVERHEAD + struct.unpack_from("<Q", data, offset)[0]
    return offsets


def fix_checksum(data: bytes, record: int) -> bytes:
    """Recompute both checksums of one record.

    Then other damage passes the checksums: a wrong length, a message that does not parse.
    """
    offset = frame_offsets(data)[record]
    (length,) = struct.unpack_from("<Q", data, offset)
    start = offset + reference.HEADER_SIZE
    length_crc = struct.pack("<I", reference.masked_crc32c(data[offset : offset + 8]))
    crc = struct.pack("<I", reference.masked_crc32c(data[start : start + length]))
    data = splice(data, offset + 8, start, length_crc)
    return splice(data, start + length, start + length + reference.FOOTER_SIZE, crc)


def flip_each_byte(data: bytes, *, bit: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Damage each byte in turn: yield its offset and the damaged shard.

    Without `bit`, the bit varies with the offset, so that high and low bits of every field are covered.
    """
    for offset in range(len(data)):
        yield offset, flip(data, offset, offset * 5 % 8 if bit is None else bit)
