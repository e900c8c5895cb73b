from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfrkit._limits import LIMITS
from tfrkit.batches import ahead
from tfrkit.batches.access import Records, ShardAccess
from tfrkit.container.locate import count_frames, save_index, scan_frames
from tfrkit.container.records import FrameStream, Policy, read_records
from tfrkit.container.shards import Shard
from tfrkit.container.writer import ShardWriter
from tfrkit.errors import CorruptRecordError, StaleIndexWarning, StorageError, TfrkitError
from tfrkit.storage.memory import MemoryReader, MemoryWriter
from tfrkit.testing.corruption import flip, frame_offsets, splice
from tfrkit.testing.reference import write_frames

RECORDS = [b"record %d " % number * (number % 7) for number in range(60)]
FRAMES = write_frames(RECORDS)
OFFSETS = frame_offsets(FRAMES)
COMPRESSIONS = ["none", "gzip", "zlib", "xz", "zstd"]


def in_memory(*shards: bytes, policy: Policy | None = None) -> Records:
    opened = [Shard(MemoryReader(data, name=f"s{number}")) for number, data in enumerate(shards)]
    return Records(opened, policy or Policy())


def pack(records: list[bytes], compression: Any) -> bytes:
    return pack_frames(write_frames(records), compression)


def pack_frames(frames: bytes, compression: Any) -> bytes:
    target = MemoryWriter()
    writer = ShardWriter(target, compression=compression)
    writer.write(frames)
    writer.commit()
    assert target.data is not None
    return target.data


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[Any]:
    opened: list[Shard] = []

    def make(*parts: tuple[int, int, str], has_index: bool = False) -> Records:
        shards = []
        for number, (start, stop, compression) in enumerate(parts):
            path = tmp_path / f"s{number}"
            path.write_bytes(pack(RECORDS[start:stop], compression))
            if has_index:
                save_index(str(path))
            shards.append(Shard.open(str(path)))
        opened.extend(shards)
        return Records(shards, Policy())

    yield make
    for shard in opened:
        shard.close()


MIXED = (
    (0, 7, "none"),
    (7, 7, "none"),
    (7, 20, "gzip"),
    (20, 21, "zlib"),
    (21, 21, "xz"),
    (21, 50, "xz"),
    (50, 60, "zstd"),
)


@pytest.mark.parametrize("has_index", [False, True])
@pytest.mark.parametrize("parts", [((0, 60, c),) for c in COMPRESSIONS] + [MIXED])
def test_records_by_number_equal_records_in_order(on_disk: Any, parts: Any, has_index: bool) -> None:
    records = on_disk(*parts, has_index=has_index)
    assert list(records) == RECORDS
    assert len(records) == 60
    assert [records[number] for number in range(60)] == RECORDS
    assert [records[-number - 1] for number in range(60)] == RECORDS[::-1]
    assert records[50:5:-3] == RECORDS[50:5:-3]
    assert records[:] == RECORDS
    assert records.pick([59, 0, 7, 7]) == [RECORDS[59], RECORDS[0], RECORDS[7], RECORDS[7]]
    assert records[np.int64(3)] == RECORDS[3]


@pytest.mark.parametrize("number", [60, -61, 1 << 62])
def test_number_that_is_not_there_raises(number: int) -> None:
    records = in_memory(FRAMES)
    for _ in range(2):  # the second time, the shard is already open
        with pytest.raises(IndexError, match=f"record {number} of 60"):
            records[number]
        assert records[0] == RECORDS[0]


@pytest.mark.parametrize("number", [1.0, "1", None, [1, 2]])
def test_number_of_another_type_raises(number: Any) -> None:
    records = in_memory(FRAMES)
    assert records[0] == RECORDS[0]
    with pytest.raises(TypeError, match="expected a number"):
        records[number]


def test_no_records_are_an_empty_sequence() -> None:
    for records in (in_memory(b""), in_memory(b"", b"")):
        assert len(records) == 0
        assert list(records) == []
        assert records[:] == []
        with pytest.raises(IndexError, match="record 0 of 0"):
            records[0]


def test_damage_is_found_when_its_record_is_picked() -> None:
    records = in_memory(FRAMES, flip(FRAMES, OFFSETS[9] + 12))
    assert records[60 + 8] == RECORDS[8]
    with pytest.raises(
        CorruptRecordError, match=rf"payload checksum mismatch, .* - at s1, record 9, byte {OFFSETS[9]}\n"
    ):
        records[60 + 9]


def test_damage_is_not_found_with_verify_none() -> None:
    assert len(in_memory(flip(FRAMES, OFFSETS[9] + 12), policy=Policy("none"))[9]) == len(RECORDS[9])


def test_skipped_damage_has_no_number() -> None:
    policy = Policy("all", "skip")
    data = flip(splice(FRAMES, OFFSETS[30], OFFSETS[30], b"\xfe" * 99), OFFSETS[9] + 12)
    records = in_memory(data, policy=policy)
    assert records[:] == list(records) == RECORDS[:9] + RECORDS[10:]
    assert len(policy.findings) == 2


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_frames_inside_a_damaged_record_are_no_records_however_they_are_read(compression: str) -> None:
    # The length of the outer frame is valid and a frame follows it: only one record is lost.
    outer = flip(write_frames([b"before" + FRAMES]), 14)
    data = pack_frames(FRAMES + outer + FRAMES, compression)
    records = in_memory(data, policy=Policy("all", "skip"))
    assert list(records) == records[:] == RECORDS + RECORDS
    shard = Shard(MemoryReader(data, name="s"))
    assert sum(map(len, read_records(shard, Policy("all", "skip")))) == 120


@pytest.mark.parametrize("parts", [((0, 60, "none"),), ((0, 60, "gzip"),), MIXED])
def test_eight_threads_pick_what_one_does(on_disk: Any, parts: Any) -> None:
    records = on_disk(*parts)
    failures: list[object] = []

    def pick(seed: int) -> None:
        for number in np.random.default_rng(seed).integers(0, 60, 200).tolist():
            if records[number] != RECORDS[number]:
                failures.append(number)

    threads = [threading.Thread(target=pick, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_more_shards_than_stay_open_are_read(on_disk: Any, monkeypatch: pytest.MonkeyPatch, compression: str) -> None:
    monkeypatch.setattr(LIMITS, "max_open_shards", 2)
    records = on_disk(*[(start, start + 6, compression) for start in range(0, 60, 6)])
    failures: list[object] = []

    def pick(seed: int) -> None:
        try:
            for number in np.random.default_rng(seed).integers(0, 60, 100).tolist():
                if records[number] != RECORDS[number]:
                    failures.append(number)
        except TfrkitError as error:
            failures.append(error)

    threads = [threading.Thread(target=pick, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_shards_do_not_stay_open_as_files(on_disk: Any) -> None:
    before = len(os.listdir("/proc/self/fd"))
    records = on_disk(*[(start % 60, start % 60 + 1, "none") for start in range(60)])
    assert len(records) == 60
    assert len(list(records)) == 60
    assert len(os.listdir("/proc/self/fd")) - before < 20


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("nbytes", [0, 20])
def test_file_that_shrinks_between_picks_raises(on_disk: Any, tmp_path: Path, compression: str, nbytes: int) -> None:
    records = on_disk((0, 60, compression))
    assert records[0] == RECORDS[0]
    os.truncate(tmp_path / "s0", nbytes)
    if compression == "none":
        with pytest.raises(StorageError, match="the file became shorter|changed since it was opened"):
            records[59]
    else:  # what was inflated before may still be known
        try:
            assert records[59] == RECORDS[59]
        except StorageError as error:
            assert "shorter" in str(error) or "changed" in str(error)


def test_index_removed_after_counting_is_no_loss(on_disk: Any, tmp_path: Path) -> None:
    records = on_disk((0, 60, "none"), has_index=True)
    assert len(records) == 60
    (tmp_path / "_index" / "s0.tfidx").unlink()
    assert records[59] == RECORDS[59]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_stale_index_is_not_used_for_picking_either(compression: str, tmp_path: Path) -> None:
    path = tmp_path / "s.tfrecord"
    path.write_bytes(pack(RECORDS[:10], compression))
    save_index(str(path))
    path.write_bytes(pack(RECORDS, compression))
    records = Records([Shard.open(str(path))], Policy())
    with pytest.warns(StaleIndexWarning, match="index does not fit its shard, .*, not used") as warned:
        assert len(records) == len(RECORDS)
    assert [one.filename for one in warned] == [__file__]
    # Once per shard: it is cached by now.
    assert [records[number] for number in range(len(RECORDS))] == RECORDS


def test_checkpoints_that_do_not_fit_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.tfrecord"
    path.write_bytes(pack(RECORDS, "gzip"))
    index = replace(scan_frames(Shard.open(str(path)), Policy()), checkpoints=b"CKP9 and no more")
    with pytest.warns(StaleIndexWarning, match="inflate checkpoints are damaged, .*, not used"):
        opened = ShardAccess(Shard.open(str(path)), index, Policy())
    assert [opened.read(number) for number in range(len(RECORDS))] == RECORDS


def test_places_of_too_many_frames_are_found_again_when_they_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMITS, "max_kept_offsets", len(RECORDS) + 5)
    records = in_memory(FRAMES, pack(RECORDS, "gzip"), FRAMES)
    assert len(records) == 3 * len(RECORDS)
    assert list(records._scanned) == [0]
    assert list(records[:]) == 3 * RECORDS


def test_many_shards_are_counted_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "shared_scan_nbytes", 0)
    monkeypatch.setattr(ahead, "choose_threads", lambda threads: 3)
    monkeypatch.setattr(LIMITS, "max_kept_offsets", 4 * len(RECORDS))
    names: set[str] = set()
    monkeypatch.setattr(ahead, "count_frames", partial(note_thread, names))
    records = in_memory(*[write_frames(RECORDS[:number]) for number in range(60)])
    assert records.count_by_shard() == list(range(60))
    assert sum(index.num_records for index in records._scanned.values()) <= 4 * len(RECORDS)
    assert names
    assert all(name.startswith("tfrkit") for name in names)
    assert records[-1] == RECORDS[58]


def note_thread(names: set[str], *arguments: Any, **options: Any) -> Any:
    names.add(threading.current_thread().name)
    return count_frames(*arguments, **options)


def test_first_damaged_shard_is_reported_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "shared_scan_nbytes", 0)
    monkeypatch.setattr(ahead, "choose_threads", lambda threads: 3)
    records = in_memory(FRAMES, FRAMES, flip(FRAMES, OFFSETS[7]), FRAMES, flip(FRAMES, OFFSETS[3]))
    with pytest.raises(CorruptRecordError) as caught:
        len(records)
    assert (caught.value.shard, caught.value.record) == ("s2", 7)


def test_known_counts_are_not_recounted_but_checked() -> None:
    opened = [Shard(MemoryReader(FRAMES, name=f"s{number}")) for number in range(2)]
    records = Records(opened, Policy(), counts=[len(RECORDS), len(RECORDS) - 1])
    assert len(records) == 2 * len(RECORDS) - 1
    assert records[0] == RECORDS[0]
    with pytest.raises(StorageError, match="expected 59 records as counted before or by its manifest, got 60 - at s1"):
        records[len(RECORDS)]


def test_shards_that_are_unpacked_to_files_are_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "max_unpacked_shards", 2)
    records = in_memory(*[pack(RECORDS[:3], "xz")] * 5)
    for number in [*range(15), 0, 7, 1]:
        assert records[number] == RECORDS[number % 3]
        assert len(records._unpacked) <= 2
        assert len(records._open) <= 2


def test_count_on_another_thread_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    records = in_memory(FRAMES)
    started, stopped = threading.Event(), threading.Event()
    take = FrameStream.take

    def take_slowly(stream: FrameStream, *args: Any, **options: Any) -> Any:
        started.set()
        stopped.wait(60)
        return take(stream, *args, **options)

    monkeypatch.setattr(FrameStream, "take", take_slowly)
    with ThreadPoolExecutor(1) as executor:
        count = executor.submit(len, records)
        started.wait(60)
        records.stop_count()
        stopped.set()
        with pytest.raises(InterruptedError):
            count.result(60)
    assert len(records) == len(RECORDS)
