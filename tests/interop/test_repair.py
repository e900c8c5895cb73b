"""TensorFlow reads every record of the files that `repair` writes."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable
from pathlib import Path

import oracle
import pytest
import tensorflow as tf

import tfrkit as tfr
from tfrkit.testing.corruption import flip, frame_offsets, make_frame, splice, truncate
from tfrkit.testing.reference import write_frames
from tfrkit.tools import repair

RECORDS = [random.Random(number).randbytes(20 + 37 * number % 400) for number in range(60)]
FRAMES = write_frames(RECORDS)
OFFSETS = frame_offsets(FRAMES)


def damage_length(data: bytes) -> bytes:
    return splice(data, OFFSETS[20], OFFSETS[21], make_frame(RECORDS[20], length=1 << 33))


# Damage to frames, and the records it loses.
DAMAGES: dict[str, tuple[Callable[[bytes], bytes], set[int]]] = {
    "payload": (lambda data: flip(data, OFFSETS[10] + 14), {10}),
    "payload checksum": (lambda data: flip(data, OFFSETS[11] - 2), {10}),
    "length": (lambda data: flip(data, OFFSETS[10] + 1), {10}),
    "length checksum": (lambda data: flip(data, OFFSETS[10] + 9), {10}),
    "first frame": (lambda data: flip(data, 3), {0}),
    "last frame": (lambda data: flip(data, len(data) - 1), {59}),
    "length with a right checksum": (damage_length, {20}),
    "end of the file": (lambda data: truncate(data, -7), {59}),
    "two places": (lambda data: flip(flip(data, OFFSETS[5]), OFFSETS[40] + 20), {5, 40}),
    "bytes put in": (lambda data: splice(data, OFFSETS[30], OFFSETS[30], b"\xfe" * 500), set()),
    "bytes taken out": (lambda data: splice(data, OFFSETS[30] + 5, OFFSETS[33], b""), {30, 31, 32}),
}
PACK: dict[str, Callable[[bytes], bytes]] = {"none": bytes, "gzip": gzip.compress, "zlib": zlib.compress}


def test_tensorflow_stops_at_the_damage_we_step_over(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(flip(FRAMES, OFFSETS[10] + 14))
    with pytest.raises(tf.errors.DataLossError, match="corrupted record"):
        list(tf.data.TFRecordDataset(str(tmp_path / "bad")))


@pytest.mark.parametrize("compression", PACK)
@pytest.mark.parametrize("name", DAMAGES)
def test_repaired_file_is_read_to_its_end(tmp_path: Path, name: str, compression: str) -> None:
    damage, lost = DAMAGES[name]
    (tmp_path / "bad").write_bytes(PACK[compression](damage(FRAMES)))
    repair(tmp_path / "bad", tmp_path / "good")
    expected = [record for number, record in enumerate(RECORDS) if number not in lost]
    assert oracle.read_with_tensorflow(tmp_path / "good", compression) == expected
    assert tfr.verify(tmp_path / "good", parse=False).ok


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_what_inflates_before_a_tear_is_read(tmp_path: Path, compression: str) -> None:
    packed = PACK[compression](FRAMES)
    (tmp_path / "bad").write_bytes(packed[: len(packed) // 2])
    result = repair(tmp_path / "bad", tmp_path / "good")
    kept = oracle.read_with_tensorflow(tmp_path / "good", compression)
    assert len(kept) == result.records > 10
    assert kept == RECORDS[: len(kept)]


def test_members_after_a_torn_one_are_read(tmp_path: Path) -> None:
    members = [gzip.compress(write_frames(RECORDS[start : start + 20])) for start in (0, 20, 40)]
    middle = len(members[0]) + len(members[1]) // 2
    (tmp_path / "bad").write_bytes(splice(b"".join(members), middle, middle + 60, bytes(60)))
    repair(tmp_path / "bad", tmp_path / "good")
    kept = oracle.read_with_tensorflow(tmp_path / "good", "gzip")
    assert kept[:20] == RECORDS[:20]
    assert kept[-20:] == RECORDS[40:]
    assert set(kept) <= set(RECORDS)


def test_random_damage_leaves_files_that_tensorflow_reads(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        data = bytearray(FRAMES)
        for _ in range(rng.randrange(1, 6)):
            start = rng.randrange(OFFSETS[1], len(data))
            data[start : start + rng.randrange(60)] = rng.randbytes(rng.randrange(60))
        compression = rng.choice(list(PACK))
        (tmp_path / "bad").write_bytes(PACK[compression](bytes(data)))
        result = repair(tmp_path / "bad", tmp_path / "good", force=True)
        kept = oracle.read_with_tensorflow(tmp_path / "good", compression)
        assert len(kept) == result.records
        assert set(kept) <= set(RECORDS)
