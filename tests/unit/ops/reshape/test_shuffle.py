from __future__ import annotations

import gzip
import random
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

import tfrkit
from tfrkit._limits import LIMITS
from tfrkit.engines.part import Part
from tfrkit.errors import CorruptRecordError
from tfrkit.ops.reshape.shuffle import shuffle
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import encode_example, write_frames


def make_records(count: int, size: int = 50) -> list[bytes]:
    generator = random.Random(count)
    return [b"%06d" % number + generator.randbytes(generator.randrange(size)) for number in range(count)]


def read(path: Path | str) -> list[bytes]:
    return list(tfrkit.open(path).records())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.tfrecord"
    path.write_bytes(write_frames(make_records(2000)))
    return path


@pytest.mark.parametrize("seed", [0, 3])
def test_order_is_that_of_dataset_shuffle(source: Path, tmp_path: Path, seed: int) -> None:
    made = shuffle(source, tmp_path / "out.tfrecord", seed=seed)
    records = tfrkit.open(source).records()
    order = tfrkit.open(source).shuffle(seed)._get_order()
    numbers = [int(number) for start in range(2000) for number in order.at(np.array([start], "u8"))]
    assert read(tmp_path / "out.tfrecord") == [records[number] for number in numbers]
    assert made.seed == seed


def test_first_records_are_pinned(tmp_path: Path) -> None:
    (tmp_path / "in.tfrecord").write_bytes(write_frames([b"%d" % number for number in range(1000)]))
    shuffle(tmp_path / "in.tfrecord", tmp_path / "out.tfrecord", seed=3)
    assert read(tmp_path / "out.tfrecord")[:6] == [b"341", b"793", b"694", b"355", b"238", b"875"]


@pytest.mark.parametrize("bucket_nbytes", [1 << 20, 30_000, 3_000, 400])
def test_order_does_not_depend_on_memory(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket_nbytes: int
) -> None:
    shuffle(source, tmp_path / "whole.tfrecord", seed=5)
    monkeypatch.setattr(LIMITS, "min_shuffle_nbytes", 1)
    monkeypatch.setattr(LIMITS, "max_buckets", 1000)
    shuffle(source, tmp_path / "bits.tfrecord", seed=5, memory=bucket_nbytes * 8)
    assert (tmp_path / "bits.tfrecord").read_bytes() == (tmp_path / "whole.tfrecord").read_bytes()


def test_too_small_memory_limit_is_reported(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="memory expected at least 64MB, got 1MB"):
        shuffle(source, tmp_path / "out.tfrecord", memory="1MB")
    monkeypatch.setattr(LIMITS, "min_shuffle_nbytes", 1)
    monkeypatch.setattr(LIMITS, "max_buckets", 4)
    with pytest.raises(ValueError, match="memory expected at least .*MB for this much data"):
        shuffle(source, tmp_path / "out.tfrecord", memory=1000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.tfrecord"]


def test_one_part_shuffles_more_than_buckets_hold(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffle(source, tmp_path / "whole", seed=5, shards=3)
    monkeypatch.setattr(LIMITS, "min_shuffle_nbytes", 1)
    monkeypatch.setattr(LIMITS, "max_buckets", 4)
    monkeypatch.setattr(LIMITS, "run_stretch_nbytes", 64)
    with pytest.raises(ValueError, match=r"--part 0/1 --parts DIR"):
        shuffle(source, tmp_path / "one" / "whole", seed=5, shards=3, memory=10_000)
    part = Part("0/1", str(tmp_path / "meet"))
    shuffle(source, tmp_path / "one" / "whole", seed=5, shards=3, memory=10_000, engine=part, jobs=1)
    for path in (tmp_path / "whole").glob("*.tfrecord*"):
        assert (tmp_path / "one" / "whole" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("memory", ["64MB", 16_000])
def test_several_files_some_compressed_some_empty_are_mixed_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: int | str
) -> None:
    monkeypatch.setattr(LIMITS, "min_shuffle_nbytes", 1)
    records = make_records(900)
    (tmp_path / "a.tfrecord").write_bytes(write_frames(records[:300]))
    (tmp_path / "b.tfrecord").write_bytes(b"")
    (tmp_path / "c.tfrecord").write_bytes(gzip.compress(write_frames(records[300:])))
    made = shuffle(f"{tmp_path}/*.tfrecord", tmp_path / "out", memory=memory, shards=4, seed=9)
    mixed = [record for file in made.files for record in read(file.path)]
    assert sorted(mixed) == sorted(records)
    numbers = [
        int(number)
        for number in tfrkit.open(f"{tmp_path}/*.tfrecord").shuffle(9)._get_order().at(np.arange(900, dtype="u8"))
    ]
    assert mixed == [records[number] for number in numbers]
    assert [file.records for file in made.files] == [225] * 4


def test_splits_are_mixed_each_on_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    records = make_records(100)
    (folder / "train-00000-of-00002.tfrecord").write_bytes(write_frames(records[:40]))
    (folder / "train-00001-of-00002.tfrecord").write_bytes(write_frames(records[40:80]))
    (folder / "test.tfrecord").write_bytes(write_frames(records[80:]))
    made = shuffle(folder, tmp_path / "out", seed=2)
    assert made.splits == {"test": 20, "train": 80}
    train = [record for file in made.files if file.split == "train" for record in read(file.path)]
    assert len([file for file in made.files if file.split == "train"]) == 2
    order = tfrkit.open(folder)["train"].shuffle(2)._get_order().at(np.arange(80, dtype="u8"))
    everything = tfrkit.open(folder).records()
    assert train == [everything[int(number)] for number in order]
    assert any("each split is shuffled separately" in note for note in made.notes)


def test_labels_are_mixed_as_by_chance(tmp_path: Path) -> None:
    """Sorted by label before; afterwards the longest run of one label is as expected by chance, about 12 of 20,000."""
    rows = [encode_example({b"label": ("int64", [number // 10_000])}) for number in range(20_000)]
    (tmp_path / "in.tfrecord").write_bytes(write_frames(rows))
    shuffle(tmp_path / "in.tfrecord", tmp_path / "out.tfrecord", seed=0)
    labels = tfrkit.open(tmp_path / "out.tfrecord")._read_column("label").tolist()
    longest = max(len(list(run)) for _, run in groupby(labels))
    assert 8 <= longest <= 25


def test_record_larger_than_a_bucket_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "min_shuffle_nbytes", 1)
    records = [*make_records(50), b"x" * 300_000]
    (tmp_path / "in.tfrecord").write_bytes(write_frames(records))
    shuffle(tmp_path / "in.tfrecord", tmp_path / "out.tfrecord", memory=100_000)
    assert sorted(read(tmp_path / "out.tfrecord")) == sorted(records)


def test_damage_in_a_bucket_run_leaves_nothing(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "min_shuffle_nbytes", 1)
    data = source.read_bytes()
    source.write_bytes(flip(data, len(data) - 6))
    with pytest.raises(CorruptRecordError, match="record 1999"):
        shuffle(source, tmp_path / "out", memory=40_000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.tfrecord"]


def test_one_record_is_shuffled(tmp_path: Path) -> None:
    (tmp_path / "in.tfrecord").write_bytes(write_frames([b"only"]))
    assert shuffle(tmp_path / "in.tfrecord", tmp_path / "out", shards=5).records == 1
    assert read(tmp_path / "out") == [b"only"]


def test_one_file_of_several_shards_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one output file is one shard, got 3"):
        shuffle(source, tmp_path / "out.tfrecord", shards=3)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_large_records_are_read_in_the_new_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    """All methods write the same files; compressed ones have no random access."""
    monkeypatch.setattr(LIMITS, "min_shuffle_nbytes", 1)
    monkeypatch.setattr(LIMITS, "large_record_nbytes", 100)
    records = make_records(500, 400)
    for number in range(3):
        data = write_frames(records[number * 200 : number * 200 + 200])
        (tmp_path / f"{number}.tfrecord").write_bytes(gzip.compress(data) if compression == "gzip" else data)
    made = [
        shuffle(f"{tmp_path}/*.tfrecord", tmp_path / name, memory=memory, shards=4, compression="none", seed=6)
        for name, memory in (("direct", 50_000), ("whole", 10_000_000))
    ]
    for one, two in zip(made[0].files, made[1].files, strict=True):
        assert Path(one.path).read_bytes() == Path(two.path).read_bytes()
    order = tfrkit.open(f"{tmp_path}/*.tfrecord").shuffle(6)._get_order().at(np.arange(500, dtype=np.uint64))
    mixed = [record for file in made[0].files for record in read(file.path)]
    assert mixed == [records[number] for number in order.tolist()]


def test_damage_in_a_large_record_names_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "min_shuffle_nbytes", 1)
    monkeypatch.setattr(LIMITS, "large_record_nbytes", 100)
    data = write_frames(make_records(100, 400))
    offset = frame_offsets(data)[57]
    (tmp_path / "in.tfrecord").write_bytes(flip(data, offset + 15))
    with pytest.raises(CorruptRecordError, match=rf"record 57, byte {offset}\n.*tfr repair"):
        shuffle(tmp_path / "in.tfrecord", tmp_path / "out", memory=1000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.tfrecord"]


@pytest.mark.resources
@pytest.mark.parametrize("size", [1000, 100_000])
def test_memory_stays_bounded(tmp_path: Path, size: int) -> None:
    """256 MB of data with 64 MiB of memory: peak memory above the baseline."""
    frame = write_frames([bytes(size)])
    with open(tmp_path / "in.tfrecord", "wb") as file:
        for _ in range(256):
            file.write(frame * (1_000_000 // size))
    program = (
        "import resource, sys; from tfrkit.tools import merge, shuffle; source, folder = sys.argv[1:];"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024;"
        "open(folder + '/one.tfrecord', 'wb').close(); merge(folder + '/one.tfrecord', folder + '/two.tfrecord');"
        "before = peak(); shuffle(source, folder + '/out.tfrecord', memory='64MiB'); print(peak() - before)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "in.tfrecord"), str(tmp_path)]
    grown = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert grown < 150
