"""Frames of files, passed on by part."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrkit._limits import LIMITS
from tfrkit.errors import CorruptRecordError, StorageError
from tfrkit.passes.frame_sources import FrameRange, deal_frames, deal_range, open_sources
from tfrkit.progress import Quiet
from tfrkit.testing.corruption import flip
from tfrkit.testing.reference import read_frames, write_frames

RECORDS = [b"a", b"bb", b"ccc", b"d"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "x.tfrecord"
    made.write_bytes(write_frames(RECORDS))
    return made


@pytest.mark.parametrize(("start", "stop", "cuts"), [(0, 4, [2, 4]), (1, 3, [2, 3]), (0, 2, [2]), (2, 4, [3, 4])])
def test_records_of_a_range_go_to_their_part(path: Path, start: int, stop: int, cuts: list[int]) -> None:
    parts: dict[int, bytes] = {}

    def put(part: int, frames: memoryview) -> None:
        parts[part] = parts.get(part, b"") + bytes(frames)

    deal_range(FrameRange(str(path), start, stop, 4), cuts, put, Quiet(), first_part=7)
    bounds = [start, *cuts]
    assert {part: read_frames(frames) for part, frames in parts.items()} == {
        7 + number: RECORDS[bounds[number] : bounds[number + 1]] for number in range(len(cuts))
    }


def test_range_up_to_the_end_of_a_file_that_changed_raises(path: Path) -> None:
    with pytest.raises(StorageError, match="the file changed, 4 records, expected 5 as counted before"):
        deal_range(FrameRange(str(path), 0, 5, 5), [5], lambda part, frames: None, Quiet())


class Bad(Quiet):
    num_records = num_bad = 0

    def advance(self, num_items: int, nbytes: int, num_bad: int) -> None:
        self.num_records += num_items
        self.num_bad += num_bad


def test_sound_records_are_not_counted_as_bad(path: Path) -> None:
    with open_sources(path) as sources:
        progress = Bad()
        deal_frames(sources, None, 1, lambda part, frames: None, progress)
    assert (progress.num_records, progress.num_bad) == (4, 0)


def test_damage_is_raised_with_the_command_that_copies_what_is_readable(path: Path) -> None:
    path.write_bytes(flip(path.read_bytes(), 14))
    with pytest.raises(CorruptRecordError, match="nothing was written") as caught, open_sources(path) as sources:
        deal_frames(sources, None, 1, lambda part, frames: None, Quiet())
    assert f"tfr repair {path}" in str(caught.value)


def test_range_reads_no_further_than_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "dealt_records", 2)
    path = tmp_path / "long.tfrecord"
    data = write_frames([bytes([number]) for number in range(8)])
    path.write_bytes(flip(data, len(data) - 1))  # in the last record
    found: list[bytes] = []

    def put(part: int, frames: memoryview) -> None:
        found.extend(read_frames(bytes(frames)))

    tally = deal_range(FrameRange(str(path), 0, 4, 8), [4], put, Quiet())
    assert (tally.num_records, found) == (4, [bytes([number]) for number in range(4)])
    with pytest.raises(CorruptRecordError):
        deal_range(FrameRange(str(path), 4, 8, 8), [8], put, Quiet())


def test_range_up_to_the_end_of_a_file_that_grew_raises(path: Path) -> None:
    with pytest.raises(StorageError, match="the file changed, it has more than the 3 records"):
        deal_range(FrameRange(str(path), 0, 3, 3), [3], lambda part, frames: None, Quiet())
