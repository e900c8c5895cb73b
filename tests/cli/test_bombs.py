"""Decompression bombs: memory and time stay in proportion to the stored or requested bytes."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tfrkit._native import masked_crc32c
from tfrkit.container.locate import count_frames
from tfrkit.container.records import MAX_STREAMED_NBYTES, Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import CorruptRecordError
from tfrkit.storage.memory import MemoryReader
from tfrkit.testing.reference import write_frames

# Their offsets alone would take 336 MB.
NUM_MEMBERS = 20
A_MEMBER = 1 << 21
MAX_KBYTES = 250_000

# VmHWM and not ru_maxrss, which begins at the memory of the process that started this one.
MEASURE = """
import re, sys
from pathlib import Path
from tfrkit.testing.commands import run_command
ran = run_command(sys.argv[1:])
sys.stdout.write(ran.output)
print(re.search("VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.fixture(scope="module")
def empties(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """42 million empty records in 1.3 MB."""
    path = tmp_path_factory.mktemp("bombs") / "empties.tfrecord.gz"
    path.write_bytes(gzip.compress(write_frames([b""]) * A_MEMBER, 6) * NUM_MEMBERS)
    return path


@pytest.mark.resources
@pytest.mark.parametrize("command", [["count"], ["tail", "-n", "1"], ["head", "-n", "1"], ["info"]])
def test_memory_does_not_grow_with_the_number_of_records(command: list[str], empties: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *command, str(empties)],
        capture_output=True,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        check=True,
        text=True,
    )
    *printed, kbytes = done.stdout.splitlines()
    assert int(kbytes) < MAX_KBYTES
    number = {"count": NUM_MEMBERS * A_MEMBER, "tail": NUM_MEMBERS * A_MEMBER - 1, "head": 0}.get(command[0])
    assert number is None or str(number) in "\n".join(printed)


def lie(length: int, *, zeros: int) -> bytes:
    """Three records, then a valid header with this length, then zeros."""
    header = struct.pack("<Q", length)
    data = write_frames([b"abc"] * 3) + header + struct.pack("<I", masked_crc32c(header)) + bytes(zeros)
    return gzip.compress(data)


def test_length_that_no_record_can_have_is_named_as_such() -> None:
    shard = Shard(MemoryReader(lie(8 << 30, zeros=64 << 20), name="s"))
    message = "length 8589934592 is more than the [0-9]+ bytes a record of this gzip shard may have - at s, record 3"
    with pytest.raises(CorruptRecordError, match=message):
        count_frames(shard, Policy())


def test_bytes_after_a_length_are_counted_in_a_short_stream() -> None:
    shard = Shard(MemoryReader(lie(8 << 30, zeros=3 << 20), name="s"))
    with pytest.raises(Exception, match=f"expected 8589934592 bytes of payload, got {(3 << 20) - 4} - at s, record 3"):
        count_frames(shard, Policy())


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_resync_search_is_bounded_in_streams_only(compression: str) -> None:
    zeros = 24 << 20
    data = gzip.decompress(lie(8 << 30, zeros=zeros)) + write_frames([b"last"])
    shard = Shard(MemoryReader(gzip.compress(data) if compression == "gzip" else data, name="s"))
    policy = Policy("all", "skip", search_nbytes=8 << 20)
    counted = count_frames(shard, policy)
    [finding] = policy.findings.values()
    if compression == "none":
        assert counted.num_records == 4
        return
    assert counted.num_records == 3
    assert finding.cause.endswith(" bytes from there have no frame, the rest was not searched")
    assert 8 << 20 < finding.lost_nbytes < 12 << 20
    assert count_frames(shard, Policy("all", "skip")).num_records == 4


def test_search_goes_as_far_as_the_longest_record_a_stream_may_hold() -> None:
    assert Policy().search_nbytes == MAX_STREAMED_NBYTES
