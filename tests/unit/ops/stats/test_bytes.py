from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from tfrkit import _native
from tfrkit.codec.columns import BytesColumn
from tfrkit.ops.stats.bytes import MAX_SHOWN_NBYTES, BytesSummary, summarize_bytes


def summarize(values: list[bytes]) -> BytesSummary:
    column = BytesColumn.from_values(values)
    return summarize_bytes(column.data, column.offsets)


def hash_all(values: list[bytes]) -> list[int]:
    column = BytesColumn.from_values(values)
    return _native.hash_values(column.data, column.offsets).tolist()


def hash_slowly(value: bytes) -> int:
    """The hash as native/core/stats/value_hash.h defines it."""
    whole, step = (1 << 64) - 1, 0x9E3779B97F4A7C15

    def take(hash: int, word: int) -> int:
        hash = (hash ^ word) * step & whole
        return hash ^ hash >> 32

    words = [int.from_bytes(value[at : at + 8], "little") for at in range(0, len(value), 8)]
    hash = len(value) * step & whole
    in_lanes = len(value) // 32 * 4
    if in_lanes:
        lanes = [hash + lane & whole for lane in range(4)]
        for at, word in enumerate(words[:in_lanes]):
            lanes[at % 4] = take(lanes[at % 4], word)
        for lane in lanes:
            hash = take(hash, lane)
    for word in words[in_lanes:]:
        hash = take(hash, word)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        hash = (hash ^ hash >> shift) * factor & whole
    return hash ^ hash >> 31


def encode(width: int, height: int, format: str = "PNG", mode: str = "RGB") -> bytes:
    file = io.BytesIO()
    Image.new(mode, (width, height)).save(file, format=format)
    return file.getvalue()


VALUES = [b"", b"\0", b"\0\0", b"a", b"abcdefgh", b"abcdefgh\0", b"abcdefghi", *(b"x" * size for size in range(1, 200))]


def test_different_values_have_different_keys() -> None:
    assert len(set(hash_all(VALUES))) == len(set(VALUES))


def test_keys_are_those_of_the_slow_way() -> None:
    assert hash_all(VALUES) == [hash_slowly(value) for value in VALUES]


@pytest.mark.parametrize("offsets", [[0, 5], [3, 2], [-1, 2]])
def test_offsets_outside_the_data_are_refused(offsets: list[int]) -> None:
    with pytest.raises(IndexError, match="offsets lie outside the data"):
        _native.hash_values(b"abcd", np.array(offsets))


def test_key_of_a_value_does_not_depend_on_what_stands_around_it() -> None:
    together = hash_all(VALUES)
    for value, key in zip(VALUES, together, strict=True):
        assert hash_all([value]) == [key]
        assert hash_all([b"before", value, b"behind it"])[1] == key


@pytest.mark.parametrize("size", [7, 8, 9, MAX_SHOWN_NBYTES, MAX_SHOWN_NBYTES + 1, 1000])
def test_every_byte_of_a_value_counts(size: int) -> None:
    value = bytes(range(1, 101)) * 10
    values = [value[:at] + b"\0" + value[at + 1 : size] for at in range(size)]
    assert len(set(hash_all(values))) == size


def test_text_is_counted_by_value() -> None:
    found = summarize([b"cat", b"dog", b"cat", "grüße".encode(), b""])
    assert (found.count, found.num_distinct, found.is_text) == (5, 4, True)
    assert found.list_top(1) == [(b"cat", 2)]
    assert (found.sizes.low, found.sizes.high) == (0, 7)


@pytest.mark.parametrize("value", [b"\xff", b"a\0b", b"\x1b[31m", b"del\x7f"])
def test_values_with_other_bytes_are_no_text(value: bytes) -> None:
    assert not summarize([b"text", value]).is_text


@pytest.mark.parametrize("value", [b"two\nlines\r\n\tand a tab", b"", "日本".encode()])
def test_white_space_is_text(value: bytes) -> None:
    assert summarize([value]).is_text


def test_long_values_are_counted_but_not_shown() -> None:
    found = summarize([b"a" * 100, b"a" * 100, b"b" * 100])
    assert (found.num_distinct, found.list_top(2), found.shown) == (2, [], {})


def test_images_are_detected_by_their_headers() -> None:
    values = [encode(12, 7), encode(20, 30), encode(5, 5, "JPEG"), encode(9, 9, "GIF", "P"), encode(4, 4, "WEBP")]
    found = summarize([*values, encode(3, 2, "BMP"), encode(3, 3, "TIFF")])
    assert found.are_images
    assert not found.is_text
    assert found.images.formats == {"PNG": 2, "JPEG": 1, "GIF": 1, "WEBP": 1, "BMP": 1, "TIFF": 1}
    assert (found.images.widths.low, found.images.widths.high) == (3, 20)
    assert (found.images.heights.low, found.images.heights.high) == (2, 30)


def test_one_image_among_other_bytes_does_not_make_all_images() -> None:
    found = summarize([encode(2, 2), b"RIFF is how this text begins"])
    assert (found.images.count, found.are_images) == (1, False)


def test_merged_parts_equal_the_whole() -> None:
    values = [f"user-{number % 700}".encode() for number in range(5000)]
    whole, merged = summarize(values), BytesSummary()
    for start in range(0, 5000, 900):
        merged.merge(summarize(values[start : start + 900]))
    assert (merged.count, merged.num_distinct) == (whole.count, whole.num_distinct) == (5000, 700)
    assert merged.table.counts.tolist() == whole.table.counts.tolist()
    assert merged.list_top(3) == whole.list_top(3)


def test_many_different_values_keep_the_frequent_one() -> None:
    merged = BytesSummary()
    for part in range(6):
        values = [f"{part}-{number}".encode() for number in range(6000)] + [b"often"] * 500
        merged.merge(summarize(values))
    assert merged.list_top(1)[0][0] == b"often"
    assert 3000 - merged.table.slack <= merged.list_top(1)[0][1] <= 3000
    assert merged.num_distinct == pytest.approx(36_001, rel=0.08)
    assert len(merged.shown) <= 2 * 4096


def test_no_values_have_nothing() -> None:
    found = summarize_bytes(np.empty(0, np.uint8), np.zeros(1, np.int64))
    assert (found.count, found.num_distinct, found.list_top(3), found.are_images) == (0, 0, [], False)
