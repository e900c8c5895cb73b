"""Make the damaged and hostile files of this folder, each named by its fault.

    python make_bad.py

The expected results are in cases.json, written by hand. Only the corruption tools are used, so that the files do not
depend on the code under test.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from tfrkit.testing.corruption import fix_checksum, flip, frame_offsets, make_frame, splice, truncate
from tfrkit.testing.reference import encode_example, write_field, write_frame, write_frames, write_varint

HERE = Path(__file__).parent

EXAMPLES = [encode_example({b"id": ("int64", [i]), b"text": ("bytes", [b"row %d" % i])}) for i in range(3)]
SHARD = write_frames(EXAMPLES)
STARTS = frame_offsets(SHARD)


def features(*entries: bytes) -> bytes:
    """An Example of raw map entries."""
    return write_field(1, b"".join(write_field(1, entry) for entry in entries))


def named(name: bytes, feature: bytes) -> bytes:
    return write_field(1, name) + write_field(2, feature)


def nest(depth: int) -> bytes:
    """Messages in messages in messages, each the first field of the one around it."""
    inner = b""
    for _ in range(depth):
        inner = write_field(1, inner)
    return inner


def behind_sound(record: bytes) -> bytes:
    """A record with valid checksums after two sound ones: only the codec can refuse it."""
    return write_frames([*EXAMPLES[:2], record])


FILES = {
    "empty.tfrecord": b"",
    "eleven_bytes.tfrecord": SHARD[:11],
    "fifteen_bytes.tfrecord": write_frame(b"")[:15],
    "length_2_63.tfrecord": SHARD + make_frame(b"abc", length=2**63),
    "length_2_63_first.tfrecord": make_frame(b"abc", length=2**63),
    "length_2_64_minus_1.tfrecord": SHARD + make_frame(b"abc", length=2**64 - 1),
    "length_one_past_end.tfrecord": SHARD + make_frame(b"abc", length=4),
    "length_flip.tfrecord": flip(SHARD, STARTS[1]),
    "length_checksum_flip.tfrecord": flip(SHARD, STARTS[1] + 8),
    "length_flip_checksum_right.tfrecord": splice(
        SHARD, STARTS[1], STARTS[1] + 12, make_frame(b"", length=len(EXAMPLES[1]) ^ 1)[:12]
    ),
    "payload_flip.tfrecord": flip(SHARD, STARTS[1] + 20),
    "payload_checksum_flip.tfrecord": flip(SHARD, STARTS[2] - 1),
    "first_frame_damaged.tfrecord": flip(SHARD, 3),
    "truncated_in_header.tfrecord": truncate(SHARD, STARTS[2] + 7),
    "truncated_in_payload.tfrecord": truncate(SHARD, STARTS[2] + 20),
    "truncated_in_footer.tfrecord": truncate(SHARD, -1),
    "truncated.tfrecord.gz": truncate(gzip.compress(SHARD, mtime=0), -10),
    "no_trailer.tfrecord.gz": truncate(gzip.compress(SHARD, mtime=0), -8),
    "checksum_wrong.tfrecord.gz": flip(gzip.compress(SHARD, mtime=0), -8),
    "garbage_behind.tfrecord.gz": gzip.compress(SHARD, mtime=0) + b"not a member of it",
    "truncated.tfrecord.zlib": truncate(zlib.compress(SHARD), -6),
    "payload_flip_inside.tfrecord.gz": gzip.compress(flip(SHARD, STARTS[1] + 20), mtime=0),
    "groups_too_deep.tfrecord": behind_sound(b"\x23" * 5000 + b"\x24" * 5000),
    "groups_never_closed.tfrecord": behind_sound(b"\x23" * 5000),
    "messages_too_deep.tfrecord": behind_sound(nest(3000)),
    "varint_never_ends.tfrecord": behind_sound(b"\x0a" + b"\xff" * 20),
    "field_number_zero.tfrecord": behind_sound(b"\x02\x00"),
    "wire_type_seven.tfrecord": behind_sound(b"\x0f\x00"),
    "field_past_end.tfrecord": behind_sound(b"\x0a\x7f\x0a"),
    "float_list_of_five_bytes.tfrecord": write_frames(
        [encode_example({b"f": ("float", [1.5])})] * 2
        + [features(named(b"f", write_field(2, write_field(1, b"12345"))))]
    ),
    "int_list_cut.tfrecord": behind_sound(features(named(b"id", write_field(3, write_field(1, b"\xff"))))),
    "payload_flip_checksum_right.tfrecord": fix_checksum(flip(SHARD, STARTS[1] + 13, 6), 1),
    "random_garbage.tfrecord": bytes(i * i * 7 % 251 for i in range(1000)),
    "web_page.tfrecord": b"<!DOCTYPE html><html><body>404 not found</body></html>\n",
    "web_page.tfrecord.gz": gzip.compress(b"<!DOCTYPE html><html><body>404 not found</body></html>\n", mtime=0),
    "json.tfrecord": b'{"error": "no such object"}\n',
    "lfs_pointer.tfrecord": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab" * 32 + b"\nsize 12345678\n"
    ),
    # Unusual but valid.
    "nul_in_name.tfrecord": write_frame(encode_example({b"a\0b": ("int64", [1]), b"\0": ("int64", [2])})),
    "name_not_utf8.tfrecord": write_frames(
        [encode_example({b"\xff\xfe": ("int64", [i]), b"id": ("int64", [i])}) for i in range(2)]
    ),
    "name_of_a_megabyte.tfrecord.gz": gzip.compress(
        write_frame(encode_example({b"n" * (1 << 20): ("int64", [1])})), mtime=0
    ),
    "length_in_ten_bytes.tfrecord": behind_sound(b"\x0a" + write_varint(2**64 - 1)),
}


def main() -> None:
    for name, data in FILES.items():
        (HERE / name).write_bytes(data)


if __name__ == "__main__":
    main()
