"""Files truncated by another program while they are read: an error or complete data, never a crash.

Each case runs in its own process, because the failure would be a crash.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tfrkit import _native
from tfrkit.errors import StorageError
from tfrkit.storage.local import LocalReader
from tfrkit.testing.corruption import frame_offsets
from tfrkit.testing.reference import write_frames

_SCRIPT = r"""
import faulthandler, json, os, random, shutil, sys, threading
import numpy as np
import tfrkit as tfr
from tfrkit import _native
from tfrkit.errors import StorageError

modes, verify, faulthandler_mode, folder, seed = sys.argv[1:]
if faulthandler_mode == "before":
    faulthandler.enable()
NUM_ROWS, ROUNDS = 40_000, 20
random_ = random.Random(int(seed))
source, path = os.path.join(folder, "source"), os.path.join(folder, "shard")
with tfr.Writer(source) as writer:
    writer.write_columns({"id": np.arange(NUM_ROWS), "triple": np.arange(NUM_ROWS) * 3})
payloads = list(tfr.open(source).records())

def check(batch, expected):
    assert np.array_equal(batch["id"], expected) and np.array_equal(batch["triple"], expected * 3), "wrong rows"

def read_threaded(ds, cut):
    start = 0
    for step, batch in enumerate(ds.batch(512, threads=2)):
        check(batch, np.arange(start, start + len(batch["id"])))
        start += len(batch["id"])
        cut(step)
    assert start == NUM_ROWS, "rows are missing"

def read_rows(ds, cut):
    count = 0
    for row in ds:
        assert row["id"] == count and row["triple"] == 3 * count, "wrong row"
        count += 1
        cut(count // 1000)
    assert count == NUM_ROWS, "rows are missing"

def read_records(ds, cut):
    count = 0
    for record in ds.records():
        assert record == payloads[count], "wrong record"
        count += 1
        cut(count // 1000)
    assert count == NUM_ROWS, "records are missing"

def pick_records(ds, cut):
    records = ds.records()
    for step in range(3000):
        number = random_.randrange(NUM_ROWS)
        assert records[number] == payloads[number], "wrong record"
        cut(step // 50)

def pick_columns(ds, cut):
    records = ds.records()
    builder = _native.ColumnBuilder("example", [(b"id", "int64", False, 1), (b"triple", "int64", False, 1)])
    table = records.open_shard(0).table if len(records) else None
    shards = np.zeros(500, np.uint32)
    for step in range(60):
        numbers = np.array([random_.randrange(NUM_ROWS) for _ in range(500)], np.uint64)
        cut(step)
        try:
            assert builder.append_picks([table], shards, numbers, verify) == (500, None), "faults"
        except StorageError:
            assert builder.num_rows == 0, "rows of a lost file stay behind"
            raise
        ids, triples = (column[0] for column in builder.finish())
        check({"id": ids, "triple": triples}, numbers.astype(np.int64))

readers = {"threaded": read_threaded, "rows": read_rows, "records": read_records, "picks": pick_records,
           "columns": pick_columns}

def read_and_cut(read):
    shutil.copyfile(source, path)
    ds = tfr.open(path, verify=verify)
    ds.records()[0]
    if faulthandler_mode == "after":
        faulthandler.enable()
    size, step_of_cut = random_.randrange(os.path.getsize(path)), random_.randrange(16)
    is_due, is_cut = threading.Event(), threading.Event()
    # Every second time the reader goes on only with the file cut off: a busy machine may cut it too late to matter.
    is_awaited = random_.random() < 0.5

    def cut_off():
        is_due.wait()
        os.truncate(path, size)
        is_cut.set()

    def cut(step):
        if step >= step_of_cut and not is_due.is_set():
            is_due.set()
            if is_awaited:
                is_cut.wait()

    program = threading.Thread(target=cut_off)
    program.start()
    try:
        read(ds, cut)
        return "whole"
    except StorageError as error:
        assert "became shorter while it was read" in str(error) or "changed since it was opened" in str(error), error
        return "error"
    finally:
        is_due.set()
        program.join()

for mode in modes.split():
    print(mode, file=sys.stderr, flush=True)
    outcomes = [read_and_cut(readers[mode]) for _ in range(ROUNDS)]
    print(json.dumps([mode, outcomes.count("whole"), outcomes.count("error")]))
"""

_VIEWS = r"""
import faulthandler, os, sys
import tfrkit as tfr
path, faulthandler_mode = sys.argv[1:]
with tfr.Writer(path) as writer:
    for _ in range(10):
        writer.write_record(b"x" * 5000)
if faulthandler_mode == "before":
    faulthandler.enable()
views = list(tfr.open(path).records().views())
os.truncate(path, 0)
print("cut", flush=True)
bytes(views[5])
"""


RECORDS = [b"record %d " % number * 3 for number in range(40)]
FRAMES = write_frames(RECORDS)
OFFSETS = np.array(frame_offsets(FRAMES), np.uint64)
NUMBERS = np.arange(len(RECORDS), dtype=np.uint64)


def read_by_table(span: _native.FileMap, verify: str) -> list[object]:
    table = _native.FrameTable(span, OFFSETS, verify)
    return [table.read(number) for number in range(len(RECORDS))]


def read_by_append(span: _native.FileMap, verify: str) -> list[object]:
    # Records that are not Examples: the fault shows that the first one was read.
    builder = _native.ColumnBuilder("example", [])
    _, _, fault = builder.append_frames(span, 0, len(span), 100, verify)
    return RECORDS if fault is not None and fault.kind == "wire" else [fault]


def read_by_picks(span: _native.FileMap, verify: str) -> list[object]:
    builder = _native.ColumnBuilder("example", [])
    table = _native.FrameTable(span, OFFSETS, verify)
    for number in NUMBERS[::-1]:
        _, fault = builder.append_picks([table], np.zeros(1, np.uint32), np.array([number]), verify)
        if fault is None or fault.kind != "wire":
            return [number, fault]
    return RECORDS


# Each reads every record of a span and must return RECORDS.
WAYS: dict[str, Callable[[_native.FileMap, str], object]] = {
    "read_frames": lambda span, verify: _native.read_frames(span, 0, len(span), 100, 1 << 20, verify)[0],
    "view_frames": lambda span, verify: list(
        map(bytes, _native.view_frames(span, 0, len(span), 100, 1 << 20, verify)[0])
    ),
    "read_frame_at": lambda span, verify: [_native.read_frame_at(span, int(offset), verify) for offset in OFFSETS],
    "table": read_by_table,
    "check_frames": lambda span, verify: RECORDS[: _native.check_frames(span, 0, len(span), 100, verify)[0]],
    "index_frames": lambda span, verify: (
        RECORDS if np.array_equal(_native.index_frames(span, 0, len(span), 100, verify)[0], OFFSETS) else None
    ),
    "append_frames": read_by_append,
    "append_picks": read_by_picks,
    "find_others": lambda span, verify: RECORDS[: len(_native.find_others(span, 0, len(span), 100, verify)[1])],
    "slice": lambda span, verify: RECORDS if span[:] == FRAMES else None,
}


@pytest.mark.parametrize("verify", ["all", "lengths", "none"])
@pytest.mark.parametrize("way", WAYS)
def test_zeros_after_a_cut_inside_a_page_are_never_data(way: str, verify: str, tmp_path: Path) -> None:
    # No signal for these: the page is still mapped, and its rest reads as zeros.
    assert len(FRAMES) < 4096
    path = tmp_path / "shard"
    for nbytes in [*range(0, len(FRAMES), 11), *range(len(FRAMES) - 5, len(FRAMES))]:
        path.write_bytes(FRAMES)
        reader = LocalReader(str(path))
        span = reader.span()
        assert isinstance(span, _native.FileMap)
        assert WAYS[way](span, verify) == RECORDS
        os.truncate(path, nbytes)
        if way == "append_frames" and nbytes > OFFSETS[1]:
            continue  # it stops at the first record, which is whole
        with pytest.raises(StorageError, match=f"became shorter while it was read, .*, {nbytes} now"):
            WAYS[way](span, verify)
        reader.close()


def test_damage_in_a_whole_file_is_damage_and_no_loss(tmp_path: Path) -> None:
    path = tmp_path / "shard"
    # The last byte of the frame is a zero, and the payload is not what the checksum says.
    path.write_bytes(FRAMES[:-1] + b"\0")
    reader = LocalReader(str(path))
    span = reader.span()
    assert isinstance(span, _native.FileMap)
    last = len(RECORDS) - 1
    assert _native.FrameTable(span, OFFSETS, "none").read(last) == RECORDS[last]
    fault = _native.FrameTable(span, OFFSETS, "all").read(last)
    assert isinstance(fault, _native.Fault) and fault.kind == "payload_checksum"
    reader.close()


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)


def check_cut(modes: str, verify: str, faulthandler_mode: str, folder: Path) -> str:
    """What the process printed about its errors."""
    seed = "7"
    done = run(_SCRIPT, modes, verify, faulthandler_mode, str(folder), seed)
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert [mode for mode, _, _ in outcomes] == modes.split()
    for _, num_whole, num_errors in outcomes:
        assert num_whole + num_errors == 20
        assert num_errors > 0  # or nothing was tried
    return done.stderr


@pytest.mark.parametrize("verify", ["all", "lengths", "none"])
def test_file_cut_off_while_it_is_read_raises_or_gives_all(verify: str, tmp_path: Path) -> None:
    check_cut("threaded rows records picks columns", verify, "off", tmp_path)


@pytest.mark.parametrize(
    ("modes", "faulthandler_mode"), [("threaded rows records picks columns", "before"), ("threaded columns", "after")]
)
def test_faulthandler_hears_nothing_of_a_cut_off_file(modes: str, faulthandler_mode: str, tmp_path: Path) -> None:
    assert "Fatal Python error" not in check_cut(modes, "all", faulthandler_mode, tmp_path)


def test_one_record_of_a_cut_off_file_is_read_with_a_later_faulthandler(tmp_path: Path) -> None:
    # A single record does not look for the handler each time: faulthandler prints its trace, and reading goes on.
    assert "Fatal Python error" in check_cut("picks", "all", "after", tmp_path)


@pytest.mark.parametrize("faulthandler_mode", ["off", "before"])
def test_view_of_cut_off_file_ends_the_process_as_documented(tmp_path: Path, faulthandler_mode: str) -> None:
    done = run(_VIEWS, str(tmp_path / "shard"), faulthandler_mode)
    assert done.stdout == "cut\n"
    if not os.environ.get("TFRKIT_SANITIZE"):  # which has a handler of its own
        assert done.returncode == -signal.SIGBUS
    assert ("Fatal Python error: Bus error" in done.stderr) == (faulthandler_mode == "before")
