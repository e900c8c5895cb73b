from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tfrkit
from tfrkit.errors import TfrkitError
from tfrkit.ops.bench import bench


def jpeg() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3)).astype(np.uint8)).save(file, "JPEG")
    return file.getvalue()


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_every_step_and_compression_is_timed(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "x.tfrecord"
    with tfrkit.Writer(path, compression=compression) as writer:  # type: ignore[arg-type]
        for number in range(200):
            writer.write({"id": number, "text": "the same words again and again " * 4})
    result = bench(path)
    assert result.num_records == 200
    wanted = ["disk", "checksum", "parse", "collate"]
    if compression == "gzip":
        wanted.insert(1, "inflate")
    assert [step.name for step in result.steps] == wanted
    assert result.limit in wanted
    assert all(step.seconds_per_record > 0 for step in result.steps)
    costs = {cost.compression: cost for cost in result.compressions}
    assert list(costs) == ["none", "gzip", "zlib", "xz", "zstd"]
    assert costs["none"].nbytes == result.plain_nbytes
    assert all(cost.nbytes < result.plain_nbytes / 4 for name, cost in costs.items() if name != "none")
    assert result.mixing["exact"] > 0.8 > result.mixing["none"]


def test_images_are_decoded_and_the_slowest_step_is_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    with tfrkit.Writer(path) as writer:
        for number in range(50):
            writer.write({"image": jpeg(), "label": number})
    result = bench(path)
    assert [step.name for step in result.steps] == ["disk", "checksum", "parse", "decode", "collate"]
    seconds = {step.name: step.seconds_per_record for step in result.steps}
    assert seconds["decode"] > seconds["parse"]
    # Which one that is depends on how busy the disk is.
    assert result.limit == max(seconds, key=lambda name: seconds[name])


def test_only_the_asked_for_part_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    with tfrkit.Writer(path) as writer:
        for _ in range(100):
            writer.write_record(bytes(1000))
    result = bench(path, sample_nbytes=10_000)
    assert result.num_records == 10
    assert [step.name for step in result.steps] == ["disk", "checksum"]  # raw records are not parsed


def test_nothing_to_time_raises(tmp_path: Path) -> None:
    (tmp_path / "x.tfrecord").touch()
    with pytest.raises(TfrkitError, match=r"no records to time - at .*x\.tfrecord"):
        bench(tmp_path / "x.tfrecord")
