"""Shards that are inflated ahead on threads against their slow twin, one thread: the same rows, errors and findings."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit._types import Verify
from tfrkit.batches import ahead
from tfrkit.container.codecs import FORMATS
from tfrkit.container.compression import InflateReader
from tfrkit.container.deflate import Deflater
from tfrkit.container.locate import save_index
from tfrkit.container.segments import Segments, combine_adler32
from tfrkit.errors import SkippedRecordsWarning, TfrkitError
from tfrkit.testing.corruption import flip, frame_offsets, make_frame

COMPRESSIONS = ["gzip", "zlib", "xz", "zstd"]
COUNTS = [400, 0, 1, 700, 300, 2, 500]
THREADS = [2, 5]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test file makes many pieces, and is worth a thread."""
    monkeypatch.setattr(LIMITS, "inflate_nbytes", 1 << 11)
    monkeypatch.setattr(LIMITS, "ahead_step_nbytes", 1 << 13)
    monkeypatch.setattr(LIMITS, "inflater_nbytes", 1)


def write_shards(
    folder: Path, compression: str, change: Callable[[int, bytes], bytes] = lambda shard, data: data
) -> Path:
    """Write shards of Examples; `change` gets the number of each and its bytes before they are compressed."""
    first = 0
    for shard, count in enumerate(COUNTS):
        plain = folder / "plain"
        with tfr.Writer(plain) as writer:
            for number in range(first, first + count):
                writer.write({"id": number, "name": f"row {number}" * (number % 7)})
        first += count
        data = change(shard, plain.read_bytes())
        name = f"s-{shard:05}-of-{len(COUNTS):05}"
        if compression == "none":
            (folder / f"{name}.tfrecord").write_bytes(data)
        else:
            deflater = Deflater(FORMATS[compression].name)
            data = deflater.write(data) + deflater.finish()
            (folder / f"{name}.{FORMATS[compression].suffixes[0]}").write_bytes(data)
        plain.unlink()
    return folder


def collect(items: Iterator[Any]) -> tuple[list[Any], tuple[type, str] | None]:
    """All items, and the error after them."""
    taken: list[Any] = []
    try:
        taken.extend(items)
    except TfrkitError as error:
        return taken, (type(error), str(error))
    return taken, None


def read_batches(ds: tfr.Dataset, threads: int) -> Iterator[Any]:
    batches = ds.batch(64, threads=threads)
    batches.uses_engine = False
    for batch in batches:
        yield batch["id"].tolist(), [bytes(value) for value in batch["name"]]


def read_mapped(ds: tfr.Dataset, threads: int) -> Iterator[Any]:
    for batch in ds.map(lambda row: {"id": row["id"]}).batch(64, threads=threads):
        yield batch["id"].tolist()


def read_by_engine(ds: tfr.Dataset, threads: int) -> Iterator[Any]:
    batches = ds.batch(64, threads=threads)
    if threads > 1 and ds._set.policy.on_error == "raise":
        assert batches.explain_no_engine(is_stream=True, threads=threads) is None
    for batch in batches:
        yield batch["id"].tolist(), [bytes(value) for value in batch["name"]]


WAYS: dict[str, Callable[[tfr.Dataset, int], Iterator[Any]]] = {
    "records": lambda ds, threads: iter(ds.records(threads=threads)),
    "views": lambda ds, threads: map(bytes, ds.records(threads=threads).views()),
    "rows": lambda ds, threads: iter(ds),
    "batches": read_batches,
    "engine": read_by_engine,
    "mapped": read_mapped,
}


def compare(
    folder: Path, way: str, monkeypatch: pytest.MonkeyPatch, right: Collection[Any] = (), **options: Any
) -> tuple[list[Any], Any, list[Any]]:
    """Read in one way on one thread and on several: the same items, error and findings. Return them.

    Items of several threads may also be one of those that are `right`.
    """
    found = []
    for threads in (1, *THREADS):
        monkeypatch.setattr(ahead, "choose_threads", lambda given: given or threads)  # noqa: B023
        ds = tfr.open(folder, **options)
        items, error = collect(WAYS[way](ds, threads))
        if found:
            pairs = zip(items, found[0][0], strict=True)
            items = [first if item in right else item for item, first in pairs]
        found.append((items, error, ds.errors))
    assert found[1:] == [found[0]] * len(THREADS)
    return found[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_threads_give_what_one_thread_gives(
    tmp_path: Path, compression: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shards(tmp_path, compression)
    items, error, findings = compare(tmp_path, way, monkeypatch)
    assert error is None
    assert findings == []
    assert len(items) == (-(-sum(COUNTS) // 64) if way in ("batches", "engine", "mapped") else sum(COUNTS))


@pytest.mark.parametrize("way", ["records", "views"])
@pytest.mark.parametrize("verify", ["all", "lengths", "none"])
def test_threads_give_what_one_thread_gives_of_files_that_are_not_compressed(
    tmp_path: Path, way: str, verify: Verify, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shards(tmp_path, "none")
    monkeypatch.setattr(LIMITS, "window_nbytes", 1 << 14)  # pages are released often
    items, error, findings = compare(tmp_path, way, monkeypatch, verify=verify)
    assert (len(items), error, findings) == (sum(COUNTS), None, [])


@pytest.mark.parametrize("way", ["records", "views"])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_damage_of_files_that_are_not_compressed_is_met_in_its_place(
    tmp_path: Path, way: str, on_error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shards(tmp_path, "none", damage_frames)
    with pytest.warns(SkippedRecordsWarning) if on_error == "skip" else contextlib.nullcontext():
        items, error, findings = compare(tmp_path, way, monkeypatch, on_error=on_error)
    assert len(items) > 400
    assert (error is None) == (on_error == "skip")
    assert len(findings) == (0 if on_error == "raise" else 3)


def test_files_that_are_not_compressed_are_checked_on_other_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = set()
    check_frames = _native.check_frames

    def watch(*arguments: Any) -> Any:
        names.add(threading.current_thread().name)
        return check_frames(*arguments)

    write_shards(tmp_path, "none")
    monkeypatch.setattr(_native, "check_frames", watch)
    records = tfr.open(tmp_path).records(threads=2)
    assert len(collect(iter(records))[0]) == sum(COUNTS)
    assert names
    assert all(name.startswith("tfrkit-ahead") for name in names)


def damage_frames(shard: int, data: bytes) -> bytes:
    """A payload, a length and the same feature as another kind, in different shards."""
    starts = frame_offsets(data)
    if shard == 3:
        data = flip(flip(data, starts[100] + 14), starts[400] + 2)
    if shard == 4:
        other = make_frame(b"\n\n\n\b\n\x02id\x12\x02\n\x00")  # an Example with an empty list of bytes as id
        data = data[: starts[50]] + other + data[starts[50] :]
    if shard == 6:
        data = data[: starts[-1] + 5]
    return data


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("way", WAYS)
def test_damaged_frames_are_met_in_their_place(
    tmp_path: Path, way: str, on_error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shards(tmp_path, "gzip")
    schema = tfr.open(tmp_path).schema
    write_shards(tmp_path, "gzip", damage_frames)
    with pytest.warns(SkippedRecordsWarning) if on_error == "skip" else contextlib.nullcontext():
        items, error, findings = compare(tmp_path, way, monkeypatch, on_error=on_error, schema=schema)
    assert items
    assert (error is None) == (on_error == "skip")
    assert len(findings) == (0 if on_error == "raise" else 3 if way in ("records", "views") else 4)
    assert [(finding.shard, finding.offset) for finding in findings] == sorted(
        (finding.shard, finding.offset) for finding in findings
    )


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("at", [0.4, 1.0])
def test_damaged_streams_are_met_in_their_place(
    tmp_path: Path, compression: str, on_error: str, at: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shards(tmp_path, compression)
    path = sorted(tmp_path.iterdir())[3]
    stored = path.read_bytes()
    path.write_bytes(stored[: int(len(stored) * 0.7)] if at == 1.0 else flip(stored, int(len(stored) * at)))
    with pytest.warns(SkippedRecordsWarning) if on_error == "skip" else contextlib.nullcontext():
        items, error, findings = compare(tmp_path, "records", monkeypatch, on_error=on_error)
    assert 401 <= len(items) < sum(COUNTS)
    assert (error is None) == (on_error == "skip")
    assert bool(findings) == (on_error == "skip")


def test_limit_of_errors_ends_the_pass_at_the_same_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_shards(tmp_path, "gzip", damage_frames)
    items, error, findings = compare(tmp_path, "records", monkeypatch, on_error="skip", max_errors=1)
    assert len(items) == 401 + 399
    assert error is not None
    assert "max_errors allows 1" in error[1]
    assert len(findings) == 2


@pytest.mark.parametrize("way", WAYS)
def test_shards_are_inflated_on_other_threads(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = set()

    class Watched(InflateReader):
        def read(self, nbytes: int) -> bytes:
            names.add(threading.current_thread().name)
            return super().read(nbytes)

    write_shards(tmp_path, "zlib")
    ds = tfr.open(tmp_path)
    _ = ds.schema
    monkeypatch.setattr("tfrkit.container.windows.InflateReader", Watched)
    monkeypatch.setattr(ahead, "choose_threads", lambda given: given or 2)
    assert collect(WAYS[way](ds, 2))[0]
    assert names
    assert all(name.startswith("tfrkit-ahead") for name in names)


@pytest.mark.parametrize("way", WAYS)
def test_early_end_leaves_no_thread(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch, new_threads: Callable[[], list[str]]
) -> None:
    write_shards(tmp_path, "gzip")
    monkeypatch.setattr(ahead, "choose_threads", lambda given: given or 2)
    items = WAYS[way](tfr.open(tmp_path), 2)
    next(items)
    assert new_threads()
    del items
    assert new_threads() == []


def test_small_files_and_pipes_are_read_without_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "inflater_nbytes", 1 << 20)
    write_shards(tmp_path, "gzip")
    shards = tfr.open(tmp_path)._set.shards
    assert ahead.choose_inflaters(shards, None) == 0
    assert ahead.choose_inflaters(shards, 3) == 3
    plain = tmp_path / "plain"
    with tfr.Writer(plain) as writer:
        writer.write({"id": 1})
    assert ahead.choose_inflaters(tfr.open(plain)._set.shards, 3) == 1


@pytest.fixture
def indexed(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One shard with an index, in about ten segments."""
    monkeypatch.setattr(LIMITS, "checkpoint_nbytes", 1 << 16)
    monkeypatch.setattr(LIMITS, "segment_nbytes", 1 << 18)
    rng = np.random.default_rng(5)
    path = tmp_path / f"one.{FORMATS[request.param].suffixes[0]}"
    with tfr.Writer(path, compression=request.param) as writer:
        for number in range(2500):
            writer.write({"id": number, "name": rng.bytes(rng.integers(900)).hex()})
    save_index(str(path))
    return path


def find_segments(path: Path) -> Segments | None:
    return Segments.find(tfr.open(path)._set.shards[0])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("indexed", ["gzip", "zlib"], indirect=True)
def test_segments_give_what_one_thread_gives(indexed: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    segments = find_segments(indexed)
    assert segments is not None
    assert len(segments.listed) > 5
    monkeypatch.setattr(ahead.FramesAhead, "_read_again", None)
    items, error, _ = compare(indexed, way, monkeypatch)
    assert error is None
    assert len(items) == (2500 if way in ("records", "views", "rows") else 40)


@pytest.mark.parametrize("indexed", ["gzip", "zlib"], indirect=True)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("verify", ["all", "none"])
def test_damage_in_segments_is_met_in_its_place(
    indexed: Path, on_error: str, verify: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = indexed.read_bytes()
    ends = set()
    # Unchecked, a record may be right on several threads only: a checkpoint keeps the bytes before it as they were.
    right = set(tfr.open(indexed).records()) if verify == "none" else set()
    for at in np.linspace(5000, len(stored) - 5000, 8).astype(int).tolist():
        indexed.write_bytes(flip(stored, at, 3))
        assert find_segments(indexed) is not None  # the index does not show the damage
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SkippedRecordsWarning)
            items, error, findings = compare(indexed, "records", monkeypatch, right, on_error=on_error, verify=verify)
        assert (error is not None) == (on_error == "raise")
        assert bool(findings) == (on_error == "skip")
        ends.add(len(items) == 2500)
    # A changed value does not stop the inflating; the checksum of the stream shows it after the last record.
    assert (True in ends) == (verify == "none")


@pytest.mark.parametrize("indexed", ["gzip"], indirect=True)
def test_other_files_have_no_segments(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = indexed.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(LIMITS, "segment_nbytes", 1 << 10)
        assert find_segments(indexed) is None  # checkpoints are too far apart
    indexed.write_bytes(stored[:-1] + bytes([stored[-1] ^ 1]))
    assert find_segments(indexed) is None  # a stale index
    indexed.write_bytes(stored * 2)
    save_index(str(indexed))
    assert find_segments(indexed) is None  # two members


def test_checksums_of_parts_combine() -> None:
    data = bytes(range(256)) * 700
    for cut in (0, 1, 65521, len(data)):
        first, second = data[:cut], data[cut:]
        assert combine_adler32(zlib.adler32(first), zlib.adler32(second), len(second)) == zlib.adler32(data)


FORKED = """
import os, sys, warnings
warnings.simplefilter("ignore")  # of threads in a process that forks
import tfrkit as tfr
from tfrkit._limits import LIMITS
LIMITS.inflate_nbytes, LIMITS.ahead_step_nbytes, LIMITS.inflater_nbytes = 1 << 11, 1 << 13, 1
ds = tfr.open(sys.argv[1])
items = iter(ds.batch(64, threads=2)) if sys.argv[2] == "engine" else iter(ds.records(threads=2))
for _ in range(9):
    next(items)
child = os.fork()
if child != 0:
    assert os.waitpid(child, 0)[1] == 0
print([item["id"].tolist() if sys.argv[2] == "engine" else item for item in items], flush=True)
if child == 0:
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("way", ["records", "engine"])
def test_forked_process_reads_on(tmp_path: Path, way: str) -> None:
    write_shards(tmp_path, "gzip")
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path), way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    in_child, here = done.stdout.splitlines()
    assert in_child == here
    rest = collect(WAYS[way](tfr.open(tmp_path), 1))[0][9:]
    assert here == str([batch[0] for batch in rest] if way == "engine" else rest)
