from __future__ import annotations

import gzip
import json
import signal
import threading
from pathlib import Path

import pytest

import tfrkit
from tfrkit._limits import LIMITS
from tfrkit.container.compression import InflateReader
from tfrkit.errors import StorageError
from tfrkit.ops.verify.verify import verify, write_report
from tfrkit.testing.corruption import flip, frame_offsets, truncate
from tfrkit.testing.reference import encode_example, write_frames

FRAMES = write_frames([encode_example({b"x": ("int64", [number])}) for number in range(10)])
OFFSETS = frame_offsets(FRAMES)


def test_sound_files_are_ok(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(FRAMES)
    (tmp_path / "b.tfrecord").write_bytes(gzip.compress(FRAMES))
    (tmp_path / "c.tfrecord").write_bytes(b"")
    result = verify(tmp_path)
    assert result.ok
    sizes = [path.stat().st_size for path in sorted(tmp_path.iterdir())]
    assert result.to_json() == {
        "ok": True,
        "records": 20,
        "findings": [],
        "counts": {},
        "shards": [
            {"shard": f"{tmp_path}/{name}.tfrecord", "records": count, "nbytes": nbytes, "findings": 0}
            for name, count, nbytes in zip("abc", (10, 10, 0), sizes, strict=True)
        ],
        "notes": [],
    }
    assert tfrkit.verify is verify


def test_each_fault_has_shard_record_byte_and_cause(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(flip(FRAMES, OFFSETS[4] + 12))
    result = verify(path)
    assert not result.ok
    assert result.records == 9
    (finding,) = result.to_json()["findings"]
    assert finding["cause"].startswith("payload checksum mismatch, stored 0x")
    assert finding == {
        "shard": str(path),
        "record": 4,
        "offset": OFFSETS[4],
        "cause": finding["cause"],
        "kind": "checksum",
        "other": None,
        "stop": None,
        "record_certain": True,
    }
    assert result.to_json()["counts"] == {"checksum": 1}
    assert result.shards[0].to_json()["findings"] == 1


def test_file_that_is_no_tfrecord_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"<!DOCTYPE html><html></html>")
    (tmp_path / "b.tfrecord").write_bytes(truncate(FRAMES, -1))
    result = verify(tmp_path)
    assert result.records == 9
    assert [Path(finding.shard).name for finding in result.findings] == ["a.tfrecord", "b.tfrecord"]
    assert [finding.kind for finding in result.findings] == ["file", "truncated"]
    assert "HTML" in result.findings[0].cause


def test_torn_gzip_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(truncate(gzip.compress(FRAMES), -10))
    result = verify(path)
    assert [finding.kind for finding in result.findings] == ["compression"]
    assert "ends early" in result.findings[0].cause


def test_members_after_a_torn_one_are_checked_too(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(truncate(gzip.compress(FRAMES), -10) + gzip.compress(flip(FRAMES, OFFSETS[2] + 14)))
    result = verify(path)
    kinds = [finding.kind for finding in result.findings]
    # Decoding bytes of the next member may end in one more damaged frame.
    assert kinds[-2:] == ["compression", "checksum"]
    assert 9 <= result.records <= 19


def test_records_are_not_parsed_unless_requested(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(FRAMES + write_frames([b"hello"]))
    result = verify(path)
    assert (result.records, [finding.kind for finding in result.findings]) == (10, ["parse"])
    assert verify(path, parse=False).ok


def test_findings_of_one_file_come_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    data = write_frames([b"hello"]) + flip(FRAMES, OFFSETS[4] + 12) + write_frames([b"hello"]) + flip(FRAMES, 14)
    path.write_bytes(data)
    result = verify(path)
    assert [finding.kind for finding in result.findings] == ["parse", "checksum", "parse", "checksum"]
    assert [finding.record for finding in result.findings] == [0, 5, 11, 12]


def test_address_of_nothing_raises(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no file matches"):
        verify(f"{tmp_path}/*.tfrecord")


def test_unreadable_file_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").symlink_to(tmp_path / "gone")
    (tmp_path / "b.tfrecord").write_bytes(FRAMES)
    result = verify([tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"])
    assert result.records == 10
    assert "no such file" in result.findings[0].cause


# --- threads


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Twelve shards of all sorts, damaged in many places."""
    folder = tmp_path / "d"
    folder.mkdir()
    for number in range(12):
        data = FRAMES * 20
        offsets = frame_offsets(data)
        data = flip(flip(data, offsets[number * 7] + 13), offsets[150 + number] + (number % 2) * 12)
        if number % 3 == 0:
            data = gzip.compress(data)
        if number == 5:
            data = b"<!DOCTYPE html><html></html>"
        (folder / f"{number:02d}.tfrecord").write_bytes(data)
    return folder


@pytest.mark.parametrize("jobs", [2, 7])
def test_findings_are_the_same_on_any_number_of_threads(
    damaged: Path, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = verify(damaged, jobs=1).to_json()
    assert len(alone["findings"]) == 23
    assert verify(damaged, jobs=jobs).to_json() == alone
    monkeypatch.setattr(LIMITS, "check_nbytes", 300)
    assert verify(damaged, jobs=jobs).to_json() == alone


def test_jobs_of_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="jobs expected at least 1, got 0"):
        verify(tmp_path, jobs=0)


class Watch:
    def __init__(self) -> None:
        self.total = self.done = self.found = self.ends = 0

    def begin(self, num_items: int, nbytes: int | None) -> None:
        self.total += nbytes or 0

    def advance(self, num_items: int, nbytes: int, num_bad: int) -> None:
        self.done += nbytes
        self.found += num_bad

    def end(self) -> None:
        self.ends += 1


def test_progress_counts_every_byte(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "check_nbytes", 300)
    (damaged / "05.tfrecord").unlink()
    watch = Watch()
    verify(damaged, progress=watch)
    assert watch.total == watch.done == sum(path.stat().st_size for path in damaged.iterdir())
    assert (watch.found, watch.ends) == (22, 1)


def test_interrupt_ends_it(damaged: Path) -> None:
    class Interrupt(Watch):
        def advance(self, num_items: int, nbytes: int, num_bad: int) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(damaged, progress=Interrupt())


def test_interrupt_does_not_wait_for_the_rest_of_compressed_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        with tfrkit.Writer(tmp_path / f"{number}.tfrecord.gz", compression="gzip") as writer:
            writer.write_columns({"value": [bytes(1000)] * 30_000})
    monkeypatch.setattr(LIMITS, "inflate_nbytes", 1 << 14)  # so there are 1,900 reads of each file
    num_reads = 0
    is_interrupted = threading.Event()
    read = InflateReader.read
    main_thread = threading.main_thread().ident
    assert main_thread is not None

    def count(reader: InflateReader, nbytes: int) -> bytes:
        nonlocal num_reads
        if threading.get_ident() != main_thread:
            num_reads += 1
            if num_reads == 1:
                signal.pthread_kill(main_thread, signal.SIGINT)
            assert is_interrupted.wait(60)
        return read(reader, nbytes)

    def interrupt(number: int, frame: object) -> None:
        is_interrupted.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(InflateReader, "read", count)
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            verify(tmp_path, jobs=2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert 1 <= num_reads < 1000


# --- kinds and reports


def test_kinds_can_be_ignored(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(truncate(flip(FRAMES, OFFSETS[4] + 12), -1))
    assert [found.kind for found in verify(tmp_path, ignore=["checksum"]).findings] == ["truncated"]
    assert verify(tmp_path, ignore=["checksum", "truncated"]).ok
    with pytest.raises(ValueError, match="expected kinds of findings to ignore .*, got 'cheksum'"):
        verify(tmp_path, ignore=["cheksum"])


def test_long_list_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "max_findings", 3)
    (tmp_path / "a.tfrecord").write_bytes(FRAMES + write_frames([b"no example"] * 5))
    result = verify(tmp_path)
    assert len(result.findings) == 3
    assert result.counts == {"parse": 5}
    assert result.notes == ["5 findings of kind parse, of which 3 are listed"]


def test_report_is_the_result_and_replaces_nothing_unasked(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(flip(FRAMES, OFFSETS[4] + 12))
    result = verify(tmp_path / "a.tfrecord")
    report = tmp_path / "report.json"
    write_report(result, report)
    assert json.loads(report.read_text()) == result.to_json()
    with pytest.raises(StorageError, match="the output exists already"):
        write_report(result, report)
    write_report(result, report, force=True)
    with pytest.raises(StorageError, match="the output is one of the files to read"):
        write_report(result, tmp_path / "a.tfrecord", force=True)


def test_many_shards_are_not_open_at_once(tmp_path: Path) -> None:
    import resource

    for number in range(300):
        (tmp_path / f"{number:03d}.tfrecord").write_bytes(FRAMES)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
    try:
        assert verify(tmp_path).records == 3000
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
