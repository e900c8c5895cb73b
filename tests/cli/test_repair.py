from __future__ import annotations

from pathlib import Path

from tfrkit.testing.corruption import flip, frame_offsets


def test_repair_keeps_the_rest_and_says_what_was_lost(tfr, sample: Path) -> None:
    data = sample.read_bytes()
    start, stop = frame_offsets(data)[3:5]
    sample.write_bytes(flip(data, start + 20))
    done = tfr("repair", "sample.tfrecord", "-o", "good.tfrecord", code=1)
    assert done.lines[0].startswith(f"lost: sample.tfrecord, record 3, bytes {start} to {stop}: payload checksum")
    assert done.lines[1:] == ["good.tfrecord: 9 records", f"lost {stop - start} bytes in 1 place"]
    assert tfr("verify", "good.tfrecord").lines == ["ok, 9 records"]


def test_repair_of_a_sound_file_loses_nothing(tfr, sample: Path) -> None:
    result = tfr("repair", "sample.tfrecord", "-o", "good.tfrecord", "--format", "json").json
    assert (result["records"], result["lost_bytes"], result["lost"]) == (10, 0, [])
    assert "replace it: --force" in tfr("repair", "sample.tfrecord", "-o", "good.tfrecord", code=3).err
    tfr("repair", "sample.tfrecord", "-o", "good.tfrecord", "--force")
    assert "'rar' is not one of" in tfr("repair", "sample.tfrecord", "-o", "x", "--compression", "rar", code=2).err
