"""`records()`, `files`, `splits` and `repr` of a part follow its rows."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit
from tfrkit import Dataset
from tfrkit._limits import LIMITS
from tfrkit.container.codecs import COMPRESSIONS, Compression
from tfrkit.errors import CorruptRecordError
from tfrkit.testing.corruption import flip, frame_offsets

SIZES = {"a-train-00000-of-00002": 7, "a-train-00001-of-00002": 5, "a-test-00000-of-00001": 4}
NUM_ROWS = sum(SIZES.values())
PAYLOAD = b"x" * 50


def write(folder: Path, compression: Compression = "none") -> list[Path]:
    paths = []
    number = 0
    for name, size in SIZES.items():
        paths.append(folder / f"{name}.tfrecord")
        with tfrkit.Writer(paths[-1], compression=compression) as writer:
            for _ in range(size):
                writer.write({"id": number, "x": PAYLOAD})
                number += 1
    return paths


def is_odd(row: dict[str, Any]) -> bool:
    return bool(row["id"] % 2)


PARTS: dict[str, Callable[[Dataset], Dataset]] = {
    "whole": lambda ds: ds,
    "selected": lambda ds: ds.select(["id"]),
    "split by name": lambda ds: ds["train"],
    "slice by name": lambda ds: ds["train[3:9]+test"],
    "split": lambda ds: ds.split({"train": 0.8, "test": 0.2}, seed=0)["test"],
    "split by group": lambda ds: ds.split({"train": 0.5, "test": 0.5}, group="id")["train"],
    "fold": lambda ds: ds.folds(3)[1].train,
    "take": lambda ds: ds.take(3),
    "skip": lambda ds: ds.skip(13),
    "filter": lambda ds: ds.filter(is_odd),
    "shuffle": lambda ds: ds.shuffle(3),
    "another epoch": lambda ds: ds.shuffle(3, epoch=2),
    "window": lambda ds: ds.shuffle(3, window=8, block=2),
    "repeat": lambda ds: ds.take(2).shuffle(1).repeat(3),
    "part of a part": lambda ds: ds["test"].shuffle(5).skip(1).take(2),
    "nothing": lambda ds: ds.take(0),
    "mix": lambda ds: tfrkit.mix([(ds["train"], 0.5), (ds["test"], 0.5)], seed=1, size=9),
}


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("held_nbytes", [0, 256 << 20])
def test_records_of_a_part_are_its_rows_in_their_order(
    name: str, compression: Compression, held_nbytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMITS, "held_nbytes", held_nbytes)
    paths = write(tmp_path, compression)
    part = PARTS[name](tfrkit.open(paths))
    whole = tfrkit.open(paths).records()
    wanted = [whole[row["id"]] for row in part]
    records = part.records()
    assert list(records) == wanted
    assert [bytes(view) for view in records.views()] == wanted
    assert len(records) == len(part) == len(wanted)
    assert records[:] == wanted
    assert [records[number] for number in range(-len(wanted), 0)] == wanted
    with pytest.raises(IndexError, match=f"record {len(wanted)} of {len(wanted)}"):
        _ = records[len(wanted)]


@pytest.mark.parametrize("name", PARTS)
def test_files_and_splits_of_a_part_are_those_of_its_rows(name: str, tmp_path: Path) -> None:
    paths = write(tmp_path)
    part = PARTS[name](tfrkit.open(paths))
    ids = [row["id"] for row in part]
    edges = np.cumsum([0, *SIZES.values()])
    shards = sorted({int(np.searchsorted(edges, number % NUM_ROWS, side="right")) - 1 for number in ids})
    if name != "mix":  # which has the files of both its sources
        assert part.files == [str(paths[shard]) for shard in shards]
    counts = {"train": sum(number < 12 for number in ids), "test": sum(number >= 12 for number in ids)}
    assert part.splits == {split: count for split, count in counts.items() if count}


def test_repr_of_a_part_names_its_files_and_rows(tmp_path: Path) -> None:
    ds = tfrkit.open(write(tmp_path))
    assert repr(ds["test"]) == "Dataset(a-test-00000-of-00001.tfrecord; 4 rows; features id, x)"
    assert "a-test" not in repr(ds["train"].shuffle(1))


@pytest.mark.parametrize("how", [lambda ds: ds.map(dict), lambda ds: ds.take(3).decode(x="text")])
def test_records_after_map_or_decode_are_refused(how: Callable[[Dataset], Dataset], tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"(?s)records are bytes as stored, and map or decode .* before map and decode"
    ):
        how(tfrkit.open(write(tmp_path))).records()


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("name", ["shuffle", "window", "take", "split by name", "repeat"])
def test_damage_in_a_part_is_raised_or_left_out(name: str, compression: Compression, tmp_path: Path) -> None:
    paths = write(tmp_path)
    sound = list(tfrkit.open(paths).records())
    for path, record in zip(paths, (1, 0, 3), strict=True):
        data = path.read_bytes()
        damaged = flip(data, frame_offsets(data)[record] + 40)
        path.write_bytes(gzip.compress(damaged) if compression == "gzip" else damaged)
    schema = {"id": tfrkit.Spec("int64"), "x": tfrkit.Spec("bytes")}
    part = PARTS[name](tfrkit.open(paths, on_error="skip", schema=schema))
    ids = [row["id"] for row in part]
    assert ids
    assert list(part.records()) == [sound[number] for number in ids]
    with pytest.raises(CorruptRecordError, match=r"payload checksum mismatch.*record [013]"):
        list(PARTS[name](tfrkit.open(paths, schema=schema)).records())


def test_records_of_an_endless_part_stop_at_the_requested_count(tmp_path: Path) -> None:
    ds = tfrkit.open(write(tmp_path))
    endless = ds.take(2).repeat()
    assert list(islice(endless.records(), 5)) == [*ds.records()[:2], *ds.records()[:2], ds.records()[0]]
    assert [Path(name).name for name in endless.files] == ["a-train-00000-of-00002.tfrecord"]
    with pytest.raises(TypeError, match="repeats without end has no number of rows in each split"):
        _ = endless.splits
