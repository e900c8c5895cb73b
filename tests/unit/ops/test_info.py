from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tfrkit.errors import CorruptRecordError
from tfrkit.ops.info import describe
from tfrkit.testing.corruption import flip
from tfrkit.testing.reference import encode_example, encode_sequence_example, write_frames

EXAMPLES = write_frames(
    [encode_example({b"x": ("int64", [number]), b"y": ("bytes", [b"a"] * number)}) for number in range(3)]
)
SEQUENCES = write_frames([encode_sequence_example({}, {b"f": [("int64", [1])]})])


def test_every_file_is_described(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(EXAMPLES)
    (tmp_path / "b.tfrecord").write_bytes(gzip.compress(SEQUENCES))
    (tmp_path / "c.tfrecord").write_bytes(write_frames([b"hello"]))
    (tmp_path / "d.tfrecord").write_bytes(b"")
    described = describe(tmp_path).to_json()
    assert set(described) == {
        *("records", "record_bytes", "kind", "compression", "splits", "files", "features", "notes")
    }
    assert (described["records"], described["kind"], described["compression"]) == (5, "mixed", "mixed")
    assert [(file["compression"], file["records"], file["kind"]) for file in described["files"]] == [
        ("none", 3, "example"),
        ("gzip", 1, "sequence_example"),
        ("none", 1, "raw"),
        ("none", 0, "example"),
    ]
    assert described["files"][0]["bytes"] == len(EXAMPLES)
    assert described["files"][0]["path"] == str(tmp_path / "a.tfrecord")


def test_features_have_type_presence_and_lengths(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(EXAMPLES)
    x, y = describe(tmp_path).features
    assert {"name", "type", "present", "min_length", "max_length", "meaning"} <= set(x)
    assert (x["name"], x["type"], x["present"], x["min_length"], x["max_length"]) == ("x", "int64", 3, 1, 1)
    assert (y["name"], y["type"], y["present"], y["min_length"], y["max_length"]) == ("y", "bytes", 3, 0, 2)


def test_empty_file_is_described_without_failing(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"")
    described = describe(tmp_path / "a.tfrecord").to_json()
    assert (described["records"], described["features"], described["compression"]) == (0, [], "none")


def test_damage_raises(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(flip(EXAMPLES, 14))
    with pytest.raises(CorruptRecordError, match="a.tfrecord, record 0, byte 0"):
        describe(tmp_path)
