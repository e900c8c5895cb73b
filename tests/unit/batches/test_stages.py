"""Steps after decoding."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

import tfrkit
from tfrkit.batches.device_images import EncodedImages


@pytest.fixture
def ds(tmp_path: Path) -> tfrkit.Dataset:
    with tfrkit.Writer(tmp_path / "x.tfrecord") as writer:
        for side in (8, 16):
            file = io.BytesIO()
            Image.new("RGB", (side, side)).save(file, "JPEG")
            writer.write({"image": file.getvalue(), "id": side})
    return tfrkit.open(tmp_path)


def test_images_without_a_size_vary(ds: tfrkit.Dataset) -> None:
    assert ds.decode(image=True)._recipe.stages[-1].varying == {"image"}
    assert ds.decode(image=(4, 4))._recipe.stages[-1].varying == set()


def test_images_for_a_device_are_left_encoded_and_others_decoded(ds: tfrkit.Dataset) -> None:
    [batch] = ds.decode(image=(4, 4), device="cuda").batch(2).leave_images()
    assert isinstance(batch["image"], EncodedImages) and batch["image"].heights.tolist() == [8, 16]
    [batch] = ds.decode(image=(4, 4)).batch(2).leave_images()
    assert batch["image"].shape == (2, 4, 4, 3)
