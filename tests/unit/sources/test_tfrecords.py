"""Records as they are: any order, any compression, every checksum."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit.errors import CorruptRecordError, NotATFRecordError, SourceError, StorageError, TruncatedShardError
from tfrkit.sources.base import Scan
from tfrkit.sources.tfrecords import TFRecords

RECORDS = [b"", b"a", b"bc" * 100, b"\0" * 5000, *(str(number).encode() for number in range(50))]


def write(path: Path, records: list[bytes], compression: Any = "none") -> None:
    with tfr.Writer(path, compression=compression) as writer:
        for record in records:
            writer.write_record(record)


def scan_paths(tmp_path: Path, path: Any, **options: Any) -> Scan:
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    return TFRecords(path, **options).scan(str(scratch))


def read(scan: Scan, numbers: list[int]) -> list[bytes]:
    reader: Any = pickle.loads(pickle.dumps(scan.reader))  # as it comes to a worker
    return list(reader.read_records(np.array(numbers, np.int64)))


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib", "zstd", "xz"])
def test_tfrecords_are_read_byte_for_byte_in_any_order(tmp_path: Path, compression: str) -> None:
    write(tmp_path / "a.tfrecord", RECORDS, compression)
    write(tmp_path / "b.tfrecord", RECORDS[::-1])
    scan = scan_paths(tmp_path, [str(tmp_path / "a.tfrecord"), str(tmp_path / "b.tfrecord")])
    expected = RECORDS + RECORDS[::-1]
    assert scan.items.size == len(expected)
    assert read(scan, list(range(len(expected)))) == expected
    shuffled = list(range(len(expected)))
    random.Random(0).shuffle(shuffled)
    assert read(scan, shuffled) == [expected[number] for number in shuffled]
    assert read(scan, [3, 3, 0]) == [expected[3], expected[3], expected[0]]
    assert read(scan, []) == []


def test_tfrecords_of_two_files_are_not_read_as_neighbours(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", [b"a0", b"a1", b"a2"])
    write(tmp_path / "b.tfrecord", [b"b0", b"b1", b"b2"])
    scan = scan_paths(tmp_path, str(tmp_path / "*.tfrecord"))
    assert read(scan, [0, 4, 2, 3, 1, 5]) == [b"a0", b"b1", b"a2", b"b0", b"a1", b"b2"]


def test_tfrecords_sizes_are_those_of_the_frames(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", RECORDS)
    scan = scan_paths(tmp_path, str(tmp_path / "a.tfrecord"))
    assert scan.items.nbytes is not None
    assert scan.items.nbytes.tolist() == [len(record) + 16 for record in RECORDS]
    assert scan.schema is None
    assert scan.order == "source"
    assert scan.fingerprint


def test_tfrecords_split_names_follow_the_files(tmp_path: Path) -> None:
    write(tmp_path / "x-train.tfrecord-00000-of-00002", [b"a", b"b"])
    write(tmp_path / "x-train.tfrecord-00001-of-00002", [b"c"])
    write(tmp_path / "x-test.tfrecord-00000-of-00001", [b"d"])
    scan = scan_paths(tmp_path, str(tmp_path / "x-*"), split_names=True)
    assert scan.items.splits is not None
    names = [scan.items.split_names[split] for split in scan.items.splits]
    assert dict(zip(read(scan, [0, 1, 2, 3]), names, strict=True)) == {
        b"a": "train", b"b": "train", b"c": "train", b"d": "test",
    }  # fmt: skip
    [note, _] = scan_paths(tmp_path, str(tmp_path / "x-*")).notes
    assert note == "the splits that the files name were combined: test, train; keep them: split_names=True"
    assert len(scan_paths(tmp_path, str(tmp_path / "x-train*")).notes) == 1
    write(tmp_path / "other.tfrecord", [b"d"])
    with pytest.raises(SourceError, match=r"expected a file of a split.* - at .*other.tfrecord"):
        scan_paths(tmp_path, str(tmp_path / "other.tfrecord"), split_names=True)


def test_tfrecords_incomplete_set_is_refused_or_noted_when_allowed(tmp_path: Path) -> None:
    write(tmp_path / "x-00000-of-00003.tfrecord", [b"a"])
    with pytest.raises(StorageError, match="expected all 3 shards of the set, got 1"):
        scan_paths(tmp_path, str(tmp_path / "x-*"))
    scan = scan_paths(tmp_path, str(tmp_path / "x-*"), incomplete=True)
    assert scan.notes[0].startswith("the set is not complete: 1 of 3 shards")


def test_tfrecords_damaged_payload_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    write(path, [b"first", b"second", b"third"])
    data = bytearray(path.read_bytes())
    data[data.index(b"second")] ^= 1
    path.write_bytes(data)
    scan = scan_paths(tmp_path, str(path))
    assert read(scan, [2, 0]) == [b"third", b"first"]
    with pytest.raises(CorruptRecordError, match=r"payload checksum .* - at .*a.tfrecord, record 1, byte 21\n.*repair"):
        read(scan, [2, 1, 0])


def test_tfrecords_cut_file_is_never_a_shorter_one(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    write(path, RECORDS)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(TruncatedShardError, match=r"a.tfrecord, record 53"):
        scan_paths(tmp_path, str(path))


def test_tfrecords_other_files_and_missing_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"<html>" * 100)
    with pytest.raises(NotATFRecordError, match="expected a TFRecord"):
        scan_paths(tmp_path, str(tmp_path / "a.tfrecord"))
    with pytest.raises(StorageError, match="no such file"):
        scan_paths(tmp_path, str(tmp_path / "gone.tfrecord"))
