"""`tfr shuffle`: the same records in another order."""

from __future__ import annotations

from pathlib import Path


def test_shuffle_keeps_every_record_and_prints_the_seed(tfr, sample: Path) -> None:
    done = tfr("shuffle", "sample.tfrecord", "-o", "mixed.tfrecord", "--memory", "64MiB", "--seed", 3)
    assert done.lines[-1].startswith("mixed.tfrecord: 10 records, 1.9 kB, seed 3")
    before = tfr("cat", "sample.tfrecord", "--format", "jsonl").lines
    after = tfr("cat", "mixed.tfrecord", "--format", "jsonl").lines
    assert sorted(before) == sorted(after)
    assert before != after


def test_shuffle_of_a_folder_keeps_its_number_of_files(tfr, shards: Path) -> None:
    result = tfr("shuffle", "data", "-o", "out", "--format", "json").json
    assert [file["records"] for file in result["files"]] == [3, 3, 4]
    assert result["splits"] == {"train": 10}


def test_shuffle_wrong_memory_exits_2(tfr, sample: Path) -> None:
    assert "memory expected" in tfr("shuffle", "sample.tfrecord", "-o", "out", "--memory", "1KB", code=2).err
    assert "size expected" in tfr("shuffle", "sample.tfrecord", "-o", "out", "--memory", "much", code=2).err


def test_shuffle_damage_exits_3_and_leaves_nothing(tfr, sample: Path, tmp_path: Path) -> None:
    data = bytearray(sample.read_bytes())
    data[-6] ^= 1
    sample.write_bytes(data)
    done = tfr("shuffle", "sample.tfrecord", "-o", "out", code=3)
    assert "payload checksum mismatch" in done.err
    assert "record 9" in done.err
    assert "tfr repair sample.tfrecord" in done.err
    assert not (tmp_path / "out").exists()


def test_shuffle_of_stdin_is_refused(tfr, sample: Path) -> None:
    assert "got a pipe" in tfr("shuffle", "-", "-o", "out", stdin=sample.read_bytes(), code=3).err
