from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tfrkit
from tfrkit.errors import CorruptRecordError, MissingFeatureError
from tfrkit.ops.edit.dedupe import Leak, dedupe
from tfrkit.ops.verify.verify import verify
from tfrkit.testing.reference import encode_example, encode_sequence_example, write_frames


def example(number: int, **more: int) -> bytes:
    features = {b"a": ("int64", [number]), **{name.encode(): ("int64", [value]) for name, value in more.items()}}
    return encode_example(features)  # type: ignore[arg-type]


def write(path: Path, records: list[bytes]) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(write_frames(records))
    return str(path)


def read(path: Path | str) -> list[bytes]:
    return list(map(bytes, tfrkit.open(path).records()))


def test_later_copies_go_and_the_first_stays(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tfrecord", [example(number % 4) for number in range(10)] + [example(9)])
    made = dedupe(path, tmp_path / "y.tfrecord")
    assert read(tmp_path / "y.tfrecord") == [example(number) for number in (0, 1, 2, 3, 9)]
    assert (made.dropped, made.records, made.leaks) == (6, 5, [])
    made = dedupe(path, in_place=True)
    assert (made.dropped, read(path)) == (6, read(tmp_path / "y.tfrecord"))
    assert (dedupe(path, in_place=True).is_written, dedupe(path, dry_run=True).is_written) == (False, False)
    # A requested copy is written even if nothing is dropped.
    assert dedupe(path, tmp_path / "z.tfrecord").is_written
    assert read(tmp_path / "z.tfrecord") == read(path)


def leaky(tmp_path: Path) -> tuple[Path, str, str]:
    folder = tmp_path / "d"
    test = write(folder / "test.tfrecord", [example(0), example(1), example(1)])
    train = write(folder / "train.tfrecord", [example(5), example(1), example(0), example(5), example(1)])
    return folder, test, train


def test_copies_in_two_splits_are_named(tmp_path: Path) -> None:
    folder, test, train = leaky(tmp_path)
    made = dedupe(folder, tmp_path / "out")
    assert made.leaks == [
        Leak(train, 1, "train", test, 1, "test"),
        Leak(train, 2, "train", test, 0, "test"),
        Leak(train, 4, "train", test, 1, "test"),
    ]
    assert made.to_json()["leaks"][0]["other_split"] == "test"
    assert {Path(file.path).name: (file.records, file.dropped) for file in made.files} == {
        "test.tfrecord": (2, 1),
        "train.tfrecord": (1, 4),
    }
    assert read(tmp_path / "out" / "train.tfrecord") == [example(5)]
    assert dedupe(tmp_path / "out", dry_run=True).num_leaks == 0


def test_shard_that_is_left_without_records_is_named(tmp_path: Path) -> None:
    for number, numbers in enumerate([[1, 2], [2, 1]]):
        write(tmp_path / "d" / f"x-0000{number}-of-00002.tfrecord", [example(one) for one in numbers])
    made = dedupe(tmp_path / "d", dry_run=True)
    assert made.notes == ["shards without a record now: x-00001-of-00002.tfrecord; fewer shards: tfr reshard"]


def test_one_copy_in_each_split(tmp_path: Path) -> None:
    folder, _, train = leaky(tmp_path)
    made = dedupe(folder, per_split=True, in_place=True)
    assert made.splits == {"test": 2, "train": 3}
    assert read(train) == [example(5), example(1), example(0)]
    # The kept ones are the remaining leaks.
    assert [leak.record for leak in made.leaks] == [1, 2]
    assert verify(folder).findings == []


def test_by_features_and_records_that_lack_them(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    records = [
        example(1, b=1),
        example(2, b=1),
        example(3),
        example(4),
        example(5, b=2),
        example(5, b=1),
        example(6, b=2),
    ]
    path = write(tmp_path / "x.tfrecord", records)
    made = dedupe(path, tmp_path / "y.tfrecord", by=["b"])
    assert read(tmp_path / "y.tfrecord") == [records[at] for at in (0, 2, 3, 4)]
    assert dedupe(path, dry_run=True, by=["a", "b"]).dropped == 0
    assert made.dropped == 3
    with pytest.raises(MissingFeatureError, match=r"no feature 'c'.*\n  features: a, b"):
        dedupe(path, dry_run=True, by=["c"])
    with pytest.raises(TypeError, match="by expected a list of names, got the string 'a'"):
        dedupe(path, dry_run=True, by="a")


def test_feature_named_like_the_number_of_a_record_does_not_stand_for_it(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    records = [example(number % 3, _record=9 - number) for number in range(6)]
    path = write(tmp_path / "x.tfrecord", records)
    dedupe(path, tmp_path / "y.tfrecord", by=["a"])
    assert read(tmp_path / "y.tfrecord") == records[:3]


def test_by_bytes_lists_and_the_context_of_sequences(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    rows: list[dict[str, Any]] = [{"image": b"\xff" + bytes([n % 3]), "v": [1.5, n % 2], "n": n} for n in range(6)]
    with tfrkit.Writer(tmp_path / "x.tfrecord") as writer:
        for row in rows:
            writer.write(row)
    assert dedupe(tmp_path / "x.tfrecord", dry_run=True, by=["image"]).dropped == 3
    assert dedupe(tmp_path / "x.tfrecord", dry_run=True, by=["v"]).dropped == 4
    assert dedupe(tmp_path / "x.tfrecord", dry_run=True, by=["v", "image"]).dropped == 0
    frames = {b"t": [("int64", [1])]}
    records = [encode_sequence_example({b"k": ("int64", [n % 2])}, frames) for n in range(4)]
    path = write(tmp_path / "s.tfrecord", records)
    for names in (["k"], ["context.k"]):
        assert dedupe(path, dry_run=True, by=names).dropped == 2
    assert dedupe(path, dry_run=True, by=["feature_lists.t"]).dropped == 3


def test_raw_records_empty_files_and_damage(tmp_path: Path) -> None:
    path = write(tmp_path / "raw.tfrecord", [b"", b"x", b"", b"x", b"y"])
    dedupe(path, in_place=True)
    assert read(path) == [b"", b"x", b"y"]
    empty = write(tmp_path / "empty.tfrecord", [])
    assert dedupe(empty, dry_run=True).records == 0
    data = bytearray(Path(path).read_bytes())
    data[30] ^= 1
    Path(path).write_bytes(data)
    with pytest.raises(CorruptRecordError, match=rf"- at {path}, record 1, byte 16"):
        dedupe(path, in_place=True)


def test_counts_in_sidecars_are_those_of_what_is_left(tmp_path: Path) -> None:
    rows = [{"a": number % 7} for number in range(30)]
    tfrkit.build(rows, tmp_path / "d", shards=3)
    made = dedupe(tmp_path / "d", in_place=True)
    assert made.records == 7
    assert verify(tmp_path / "d", sha256=True).findings == []
    info = json.loads((tmp_path / "d" / "dataset_info.json").read_text())
    assert [int(length) for length in info["splits"][0]["shardLengths"]] == [file.records for file in made.files]
