from __future__ import annotations

import gzip
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from tfrkit._limits import LIMITS
from tfrkit.batches.survey import Surveyed
from tfrkit.container.records import Stretch
from tfrkit.container.shards import Shard
from tfrkit.errors import LimitError, StorageError
from tfrkit.passes.check import check_stretch, cut_shard, holds_examples
from tfrkit.storage.memory import MemoryReader
from tfrkit.testing.corruption import flip, frame_offsets, make_frame, truncate
from tfrkit.testing.reference import encode_example, write_frames

EXAMPLES = [encode_example({b"x": ("int64", [number])}) for number in range(20)]
FRAMES = write_frames(EXAMPLES)
OFFSETS = frame_offsets(FRAMES)


def whole(shard: Shard) -> Stretch:
    """All of a shard, not cut."""
    return Stretch(shard, b"", 0, shard.nbytes or 0, 0, 0, 0)


def check(data: bytes, *, parse: bool = True) -> tuple[int, list[tuple[int, int]]]:
    shard = Shard(MemoryReader(data))
    checked = check_stretch(whole(shard), parse=parse and holds_examples(shard))
    found = [*(finding for finding, _ in checked.damage), *checked.others]
    return checked.num_frames - len(checked.others), sorted((one.record, one.offset) for one in found)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("data", [b"", FRAMES, write_frames([b""] * 100), write_frames([b"not an example"] * 5)])
def test_sound_shard_has_no_findings(pack: Any, data: bytes) -> None:
    assert check(pack(data)) == (len(frame_offsets(data)), [])


@pytest.mark.parametrize("parse", [True, False])
@pytest.mark.parametrize("record", [0, 7, 19])
@pytest.mark.parametrize("offset", [0, 9, 12, 16])
def test_damage_is_listed_with_record_and_byte(parse: bool, record: int, offset: int) -> None:
    assert check(flip(FRAMES, OFFSETS[record] + offset), parse=parse) == (19, [(record, OFFSETS[record])])


def test_every_place_of_damage_is_listed_in_order() -> None:
    data = truncate(flip(flip(FRAMES, OFFSETS[3]), OFFSETS[9] + 12), -1)
    assert check(data) == (17, [(3, OFFSETS[3]), (9, OFFSETS[9]), (19, OFFSETS[19])])


@pytest.mark.parametrize("other", [b"hello", b"\xff\xff", b"\x0a\x05abc"])
def test_record_that_is_no_example_among_examples_is_listed(other: bytes) -> None:
    data = FRAMES[: OFFSETS[7]] + make_frame(other) + FRAMES[OFFSETS[7] :]
    assert check(data) == (20, [(7, OFFSETS[7])])
    assert check(data, parse=False) == (21, [])


def test_findings_of_both_sorts_come_in_file_order() -> None:
    data = make_frame(b"hello") + flip(FRAMES, OFFSETS[3] + 12) + make_frame(b"hello")
    num_records, places = check(data)
    assert num_records == 19
    assert places == sorted(places)
    assert [record for record, _ in places] == [0, 4, 21]


# --- stretches


@pytest.fixture
def small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "check_nbytes", 100)


def check_in_stretches(data: bytes, *, parse: bool = True) -> tuple[int, list[tuple[int, int]], list[Stretch]]:
    shard = Shard(MemoryReader(data))
    stretches = list(cut_shard(shard))
    places = []
    num_frames = 0
    for stretch in stretches:
        checked = check_stretch(stretch, parse=parse)
        num_frames += checked.num_frames - len(checked.others)
        found = [*(finding for finding, _ in checked.damage), *checked.others]
        places += sorted((finding.record, finding.offset) for finding in found)
    return num_frames, places, stretches


def test_small_or_compressed_shard_is_one_stretch() -> None:
    for data in (b"", FRAMES, gzip.compress(FRAMES)):
        shard = Shard(MemoryReader(data))
        assert list(cut_shard(shard)) == [whole(shard)]


@pytest.mark.usefixtures("small_stretches")
@pytest.mark.parametrize(("num_frames", "most"), [(200, 100), (400, 200)])
def test_stretches_of_a_large_file_are_twice_as_long(num_frames: int, most: int) -> None:
    frames = write_frames([b"x" * 4] * num_frames)  # of 20 bytes
    stretches = list(cut_shard(Shard(MemoryReader(frames))))
    assert max(stretch.nbytes for stretch in stretches) == most
    assert sum(stretch.num_frames for stretch in stretches) == num_frames


@pytest.mark.usefixtures("small_stretches")
def test_stretches_of_a_sound_shard_touch_each_other() -> None:
    _, _, stretches = check_in_stretches(FRAMES)
    assert len(stretches) > 3
    assert stretches[0].start == 0
    assert [stretch.stop for stretch in stretches] == [*(stretch.start for stretch in stretches[1:]), len(FRAMES)]
    assert [stretch.record for stretch in stretches] == [OFFSETS.index(stretch.start) for stretch in stretches]


@pytest.mark.usefixtures("small_stretches")
@pytest.mark.parametrize("parse", [True, False])
def test_each_flipped_byte_is_found_in_stretches_as_in_one_go(parse: bool) -> None:
    data = FRAMES[: OFFSETS[12]] + make_frame(b"hello") + FRAMES[OFFSETS[12] :]
    for offset in range(len(data)):
        damaged = flip(data, offset, offset % 8)
        expected = check(damaged, parse=parse)
        assert check_in_stretches(damaged, parse=parse)[:2] == expected, offset


@pytest.mark.usefixtures("small_stretches")
def test_cut_and_spliced_shards_are_found_in_stretches_as_in_one_go() -> None:
    rng = random.Random(5)
    for _ in range(200):
        start = rng.randrange(60, len(FRAMES))
        data = FRAMES[:start] + rng.randbytes(rng.randrange(40)) + FRAMES[rng.randrange(start, len(FRAMES) + 1) :]
        assert check_in_stretches(data)[:2] == check(data)


def test_records_after_damage_in_a_stretch_keep_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "check_nbytes", len(FRAMES) // 3)
    data = flip(flip(flip(FRAMES, OFFSETS[0] + 13), OFFSETS[2] + 13), OFFSETS[3] + 13)
    data = data[: OFFSETS[4]] + make_frame(b"hello") + data[OFFSETS[4] :]
    num_frames, places, stretches = check_in_stretches(data)
    assert stretches[0].stop > OFFSETS[5]
    assert (num_frames, places) == check(data)
    assert [record for record, _ in places] == [0, 2, 3, 4]


@pytest.mark.usefixtures("small_stretches")
def test_frame_longer_than_a_stretch_is_one_stretch() -> None:
    data = write_frames([*EXAMPLES, encode_example({b"x": ("bytes", [bytes(1000)])}), *EXAMPLES])
    num_frames, places, stretches = check_in_stretches(data)
    assert (num_frames, places) == (41, [])
    assert any(stretch.nbytes > 1000 for stretch in stretches)


@pytest.mark.usefixtures("small_stretches")
def test_shard_that_changes_between_cut_and_check_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(FRAMES)
    shard = Shard.open(str(path))
    stretches = list(cut_shard(shard))
    with path.open("r+b") as file:
        file.seek(stretches[1].start + 1)
        file.write(b"\xff" * 8)
    (_, error), *others = check_stretch(stretches[1], parse=False).damage
    assert not others
    assert isinstance(error, StorageError)
    assert error.what == "the file changed while it was read"


def test_check_ends_at_the_next_step_when_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "window_nbytes", 100)
    stop = threading.Event()
    stop.set()
    assert 0 < check_stretch(whole(Shard(MemoryReader(FRAMES))), parse=False, stop=stop).num_frames < len(EXAMPLES)


def test_shard_of_other_records_does_not_hold_examples() -> None:
    assert holds_examples(Shard(MemoryReader(FRAMES)))
    assert not holds_examples(Shard(MemoryReader(write_frames([b"hello", b"world"]))))


def test_shard_with_too_many_names_holds_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise LimitError("too many names")

    monkeypatch.setattr(Surveyed, "add_shard", refuse)
    assert holds_examples(Shard(MemoryReader(make_frame(b"x"))))
