from __future__ import annotations

import gzip
import lzma
import os
from pathlib import Path
from typing import Any

import pytest

from tfrkit import Writer
from tfrkit._limits import LIMITS
from tfrkit.container import locate
from tfrkit.container.index import index_path
from tfrkit.container.locate import count_frames, load_frames, save_index, scan_frames, scan_frames_once
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import CorruptRecordError, StaleIndexWarning, StorageError, TruncatedShardError
from tfrkit.storage.memory import MemoryReader
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import write_frames

RECORDS = [b"%d" % number * number for number in range(30)]
FRAMES = write_frames(RECORDS)
OFFSETS = frame_offsets(FRAMES)
COMPRESSIONS = ["none", "gzip", "zlib", "xz", "zstd"]


def write(path: Path, compression: Any = "none", *, num_records: int = 30) -> Path:
    with Writer(path, compression=compression) as writer:
        for record in RECORDS[:num_records]:
            writer.write_record(record)
    return path


@pytest.fixture
def shard(tmp_path: Path) -> Any:
    opened = []

    def open_shard(path: Path) -> Shard:
        opened.append(Shard.open(str(path)))
        return opened[-1]

    yield open_shard
    for item in opened:
        item.close()


def test_scan_finds_every_frame() -> None:
    index = scan_frames(Shard(MemoryReader(FRAMES)), Policy())
    assert index.offsets.tolist() == OFFSETS
    assert index.num_records == 30
    assert index.inflated_size == index.shard_nbytes == len(FRAMES)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Scan in parts of 64 bytes on three threads; collects the start of each part that was walked."""
    monkeypatch.setattr(LIMITS, "scan_nbytes", 64)
    monkeypatch.setattr(LIMITS, "window_nbytes", 40)
    monkeypatch.setattr(locate, "choose_threads", lambda threads: 3)
    walked: list[int] = []
    walk = locate._PartScan.walk

    def note(self: Any, start: int, stop: int) -> Any:
        walked.append(start)
        return walk(self, start, stop)

    monkeypatch.setattr(locate._PartScan, "walk", note)
    return walked


@pytest.mark.parametrize("verify", ["all", "lengths", "none"])
def test_scan_in_parts_finds_the_same_frames(parts: list[int], verify: Any) -> None:
    index = scan_frames(Shard(MemoryReader(FRAMES)), Policy(verify))
    assert index.offsets.tolist() == OFFSETS
    assert index.inflated_size == len(FRAMES)
    assert len(parts) > 10
    assert set(parts) <= set(OFFSETS)


@pytest.mark.parametrize("num_inner", [1, 7, 30])
def test_scan_in_parts_ignores_frames_inside_of_records(parts: list[int], num_inner: int) -> None:
    inner = write_frames(RECORDS[:num_inner])
    frames = write_frames([b"first", inner, b"x", inner + b"odd", inner * 3, b"last"])
    index = scan_frames(Shard(MemoryReader(frames)), Policy())
    assert index.offsets.tolist() == frame_offsets(frames)
    assert parts


def test_scan_in_parts_walks_over_records_without_a_start_in_reach(
    parts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMITS, "scan_search_nbytes", 16)
    index = scan_frames(Shard(MemoryReader(FRAMES)), Policy())
    assert index.offsets.tolist() == OFFSETS
    assert parts


@pytest.mark.parametrize("record", [0, 14, 29])
def test_scan_in_parts_raises_at_the_first_damaged_header(parts: list[int], record: int) -> None:
    with pytest.raises(CorruptRecordError) as caught:
        scan_frames(Shard(MemoryReader(flip(FRAMES, OFFSETS[record])), compression="none"), Policy())
    assert (caught.value.record, caught.value.offset) == (record, OFFSETS[record])
    assert parts


def test_scan_in_parts_of_a_cut_shard_raises(parts: list[int]) -> None:
    with pytest.raises(TruncatedShardError):
        scan_frames(Shard(MemoryReader(FRAMES[:-3])), Policy())
    assert parts


@pytest.mark.parametrize("max_kept", [0, 5, 29, 30])
def test_scan_in_parts_keeps_no_more_places_than_requested(parts: list[int], max_kept: int) -> None:
    counted = count_frames(Shard(MemoryReader(FRAMES)), Policy(), max_kept=max_kept)
    assert (counted.num_records, counted.inflated_size) == (30, len(FRAMES))
    assert (counted.index is not None) == (max_kept == 30)
    assert parts


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("num_records", [0, 1, 30])
def test_scan_of_any_compression_gives_offsets_after_inflating(
    tmp_path: Path, shard: Any, compression: str, num_records: int
) -> None:
    path = write(tmp_path / "s", compression, num_records=num_records)
    index = scan_frames(shard(path), Policy())
    assert index.offsets.tolist() == OFFSETS[:num_records]
    assert index.compression == compression


def test_scan_reads_headers_only_and_leaves_payloads_to_reading() -> None:
    assert scan_frames(Shard(MemoryReader(flip(FRAMES, OFFSETS[9] + 12))), Policy()).num_records == 30


def test_scan_raises_at_a_damaged_header() -> None:
    with pytest.raises(CorruptRecordError, match=f"length checksum mismatch, .* record 9, byte {OFFSETS[9]}"):
        scan_frames(Shard(MemoryReader(flip(FRAMES, OFFSETS[9]))), Policy())


@pytest.mark.parametrize("offset", [0, 12])
def test_scan_counts_only_sound_frames_where_damage_is_skipped(offset: int) -> None:
    policy = Policy("all", "skip")
    index = scan_frames(Shard(MemoryReader(flip(FRAMES, OFFSETS[9] + offset))), policy)
    assert index.offsets.tolist() == OFFSETS[:9] + OFFSETS[10:]
    assert [finding.record for finding in policy.findings.values()] == [9]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_saved_index_is_loaded_again(tmp_path: Path, shard: Any, compression: str) -> None:
    path = write(tmp_path / "s.tfrecord", compression)
    saved, target = save_index(str(path))
    assert target == index_path(str(path)) == str(tmp_path / "_index" / "s.tfrecord.tfidx")
    loaded = load_frames(shard(path), Policy())
    assert loaded is not None
    assert loaded.offsets.tolist() == saved.offsets.tolist() == OFFSETS
    assert loaded.inflated_size == len(FRAMES)


def test_shard_without_an_index_gives_none(tmp_path: Path, shard: Any) -> None:
    assert load_frames(shard(write(tmp_path / "s")), Policy()) is None


def test_index_is_not_used_where_damage_is_skipped(tmp_path: Path, shard: Any) -> None:
    path = write(tmp_path / "s")
    save_index(str(path))
    assert load_frames(shard(path), Policy("all", "skip")) is None


def test_stale_index_is_warned_of_and_not_used(tmp_path: Path, shard: Any) -> None:
    path = write(tmp_path / "s")
    save_index(str(path))
    path.write_bytes(FRAMES[: OFFSETS[20]])
    with pytest.warns(StaleIndexWarning, match=r"(?s)does not fit its shard, .*, not used - at .*\n  rebuild: tfr"):
        assert load_frames(shard(path), Policy()) is None
    with pytest.warns(StaleIndexWarning, match="index does not fit its shard"):
        assert count_frames(shard(path), Policy()).num_records == 20


@pytest.mark.parametrize("compression", ["none", "gzip", "xz"])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_count_keeps_no_more_places_than_requested(compression: str, on_error: Any, tmp_path: Path, shard: Any) -> None:
    data = {"none": bytes, "gzip": gzip.compress, "xz": lzma.compress}[compression](FRAMES)
    (tmp_path / "s").write_bytes(data)
    for max_kept in (0, 1, len(OFFSETS) - 1):
        counted = count_frames(shard(tmp_path / "s"), Policy("all", on_error), max_kept=max_kept)
        assert (counted.num_records, counted.inflated_size, counted.index) == (len(OFFSETS), len(FRAMES), None)
    counted = count_frames(shard(tmp_path / "s"), Policy("all", on_error), max_kept=len(OFFSETS))
    assert counted.index is not None
    assert counted.index.offsets.tolist() == OFFSETS


def test_scan_that_took_long_is_remembered(tmp_path: Path, shard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(LIMITS, "slow_scan_seconds", -1.0)
    path = write(tmp_path / "s")
    scan_frames_once(shard(path), Policy())
    loaded = load_frames(shard(path), Policy())
    assert loaded is not None
    assert loaded.num_records == 30
    assert not (tmp_path / "_index").exists()


def test_cache_that_cannot_be_written_is_no_failure(
    tmp_path: Path, shard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(LIMITS, "slow_scan_seconds", -1.0)
    assert scan_frames_once(shard(write(tmp_path / "s")), Policy()).num_records == 30


def test_remembered_scan_of_a_replaced_file_is_not_used(
    tmp_path: Path, shard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(LIMITS, "slow_scan_seconds", -1.0)
    path = write(tmp_path / "s")
    scan_frames_once(shard(path), Policy())
    write(path, num_records=10)
    loaded = load_frames(shard(path), Policy())
    assert loaded is None or loaded.num_records == 10


def test_index_of_a_pipe_is_refused() -> None:
    source, target = os.pipe()
    os.write(target, FRAMES)
    os.close(target)
    try:
        with pytest.raises(StorageError, match="expected a file, got a pipe, which has no index"):
            save_index(f"/dev/fd/{source}")
    finally:
        os.close(source)
