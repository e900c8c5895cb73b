"""The cost of an epoch in a store, by order."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrkit as tfr
from tfrkit._limits import LIMITS
from tfrkit.errors import StorageError
from tfrkit.ops.epoch_cost import count_block_reads, epoch_cost
from tfrkit.testing.fake_store import use_fake_store


@pytest.mark.parametrize(
    ("starts", "block", "expected"),
    [
        ([0, 100], 10, 10),
        ([0, 101], 10, 11),
        ([0, 100, 200], 10, 20),
        ([0, 95, 200], 10, 10 + 11),  # the block from 90 to 100 is in both shards
        ([0, 3, 6, 10], 10, 3),
        ([0, 0, 10, 10], 10, 1),
        ([0, 0], 10, 0),
    ],
)
def test_blocks_across_shards_are_two_reads(starts: list[int], block: int, expected: int) -> None:
    assert count_block_reads(starts, block) == expected


def test_costs_are_those_of_a_real_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("block_nbytes", 16 << 10),
        ("exact_nbytes", 1 << 18),
        ("gap_nbytes", 0),
        ("wide_gap_nbytes", 0),
    ):
        monkeypatch.setattr(LIMITS, name, value)
    tfr.build(({"x": number, "pad": b"p" * 160} for number in range(3000)), tmp_path / "d", shards=3)
    with use_fake_store() as store:
        store.add_folder(str(tmp_path / "d"), "d/")
        exact, striped = epoch_cost("s3://b/d/")
        assert not any(verb == "get" and "tfidx" in key for verb, key, _, _ in store.log)
        assert striped.is_default and not exact.is_default
        assert exact.requests == 3000 + 6 and exact.dollars == pytest.approx(3006 * 0.4e-6)
        assert exact.mixing > 0.97 and striped.mixing > 0.85
        ds = tfr.open("s3://b/d/")
        batches = ds.shuffle(0).batch(64, threads=1)
        store.log.clear()
        assert sum(len(batch["x"]) for batch in batches) == 3000
        # Neighbouring blocks of a window are one request; a window may end within a block.
        assert 0.8 * striped.requests <= len(store.log) <= 1.2 * striped.requests
    assert epoch_cost(tmp_path / "d")[0].is_default  # on a disk


def test_pipe_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with tfr.Writer(tmp_path / "x.tfrecord") as writer:
        writer.write({"x": 1})
    with open(tmp_path / "x.tfrecord", "rb") as file:
        monkeypatch.setattr("sys.stdin", file)
        with pytest.raises(StorageError, match="expected files, got a pipe"):
            epoch_cost("-")
