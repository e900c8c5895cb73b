"""The table of compressions: whatever lists them elsewhere agrees with it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import get_args

import pytest

import tfrkit
from tfrkit.cli import build_options
from tfrkit.cli.options import COMPRESSION_METAVAR, CompressionChoice
from tfrkit.compat.record_io import TFRecordOptions
from tfrkit.container.codecs import (
    COMPRESSIONS,
    FORMATS,
    Compression,
    CompressionWord,
    Level,
    compression_of_magic,
    compression_of_name,
    level_number,
    open_codec,
    read_compression,
)
from tfrkit.container.deflate import Deflater
from tfrkit.ops.reshape.convert import convert

PACKED = [row for row in FORMATS.values() if row.codec is not None]
ROOT = Path(__file__).parents[3]


def words_of(kind: object) -> set[str]:
    return {word for part in get_args(kind) for word in (get_args(part) or (part,)) if isinstance(word, str)}


def test_types_name_every_compression() -> None:
    assert get_args(Compression) == COMPRESSIONS == tuple(FORMATS)
    assert words_of(CompressionWord) == {"", "gz", *COMPRESSIONS, *(row.name.upper() for row in PACKED)}
    assert set(get_args(CompressionChoice)) == {"gz", *COMPRESSIONS}


def test_types_name_every_level_word() -> None:
    for row in PACKED:
        words = sorted(words_of(Level))
        assert words == ["default", "fast", "small"]
        assert tuple(level_number(row.name, word) for word in words) == row.levels  # type: ignore[arg-type]


@pytest.mark.parametrize("row", PACKED, ids=lambda row: row.name)
def test_written_stream_has_the_magic_and_is_read(row) -> None:
    deflater = Deflater(row.name)
    stored = deflater.write(b"abc" * 100) + deflater.finish()
    assert stored.startswith(row.member_magic or row.magic)
    assert compression_of_magic(stored) == (row.name if row.magic else None)
    for careful in (False, True):
        assert open_codec(row.name, careful=careful).decompress(stored, 1000) == b"abc" * 100
    low, high = row.level_range
    for wrong in (low - 1, high + 1):
        with pytest.raises(ValueError, match=f"a number from {low} to {high}, got {wrong}"):
            level_number(row.name, wrong)


def test_suffixes_name_one_compression_each() -> None:
    for row in PACKED:
        assert [compression_of_name(f"x.{suffix.upper()}") for suffix in row.suffixes] == [row.name] * len(row.suffixes)
        assert [read_compression(suffix) for suffix in row.suffixes] == [row.name] * len(row.suffixes)
    suffixes = [suffix for row in PACKED for suffix in row.suffixes]
    assert len(set(suffixes)) == len(suffixes)


def test_command_line_offers_the_table() -> None:
    assert "|".join(COMPRESSIONS) == COMPRESSION_METAVAR
    read_by_tensorflow = [row.tensorflow is not None for row in FORMATS.values()]
    assert read_by_tensorflow == [True, True, True, False, False], "the first three, as the help of build says"
    assert "TensorFlow reads the first three" in inspect.getsource(build_options)


def test_compat_takes_what_tensorflow_reads() -> None:
    taken = {TFRecordOptions(row.tensorflow).compression_type for row in FORMATS.values() if row.tensorflow is not None}
    assert taken == {"", "GZIP", "ZLIB"}


@pytest.mark.parametrize("function", [convert, tfrkit.build, tfrkit.Writer], ids=lambda one: one.__name__)
def test_docstring_names_every_compression(function) -> None:
    text = (function.__doc__ or "") + (getattr(function.__init__, "__doc__", "") or "")
    assert [name for name in COMPRESSIONS if f'"{name}"' not in text] == []


def test_format_page_names_every_compression() -> None:
    page = (ROOT / "docs" / "look-up" / "format.md").read_text()
    assert [name for name in COMPRESSIONS if name not in page] == []


def test_formats_with_checkpoints_are_those_of_deflate() -> None:
    assert {name for name, row in FORMATS.items() if row.is_deflate} == {"gzip", "zlib"}


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_finished_stream_takes_no_more(compression: Compression) -> None:
    stream = Deflater(compression)
    stream.write(b"data")
    stream.finish()
    assert stream.finish() == b""
    with pytest.raises(ValueError, match="write to a finished compressed stream"):
        stream.write(b"more")
