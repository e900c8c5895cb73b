"""Images, masks and text of a dataset as arrays."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit
from tfrkit.errors import CodecError, MissingFeatureError
from tfrkit.features.tfds_export import to_tfds


def encode(array: np.ndarray[Any, Any], format: str = "PNG", palette: bool = False) -> bytes:
    image = Image.fromarray(array)
    if palette:
        image = Image.frombytes("P", (array.shape[1], array.shape[0]), array.tobytes())
        image.putpalette([value for index in range(256) for value in (255 - index, index, 0)])
    file = io.BytesIO()
    image.save(file, format)
    return file.getvalue()


def picture(number: int) -> np.ndarray[Any, Any]:
    return np.full((8 + number % 2, 6, 3), number, np.uint8)


@pytest.fixture
def ds(tmp_path: Path) -> tfrkit.Dataset:
    with tfrkit.Writer(tmp_path / "a.tfrecord") as writer:
        for number in range(20):
            mask = np.full((8, 6), (0, 20, 255)[number % 3], np.uint8)
            writer.write(
                {
                    "image": encode(picture(number)),
                    "mask": encode(mask, palette=True),
                    "name": f"图{number}",
                    "raw": bytes([number] * 4),
                    "label": number,
                }
            )
    return tfrkit.open(tmp_path)


@pytest.mark.parametrize("threads", [1, 3])
def test_images_are_decoded_resized_and_stacked(ds: tfrkit.Dataset, threads: int) -> None:
    seen = []
    for batch in ds.shuffle(seed=1).decode(image=(4, 5)).batch(6, threads=threads):
        assert batch["image"].shape == (len(batch["label"]), 4, 5, 3)
        assert batch["image"].dtype == np.uint8
        assert batch["image"][:, 0, 0, 0].tolist() == batch["label"].tolist()
        seen += batch["label"].tolist()
    assert sorted(seen) == list(range(20))


def test_decoded_rows_keep_their_other_values(ds: tfrkit.Dataset) -> None:
    row = ds.decode(image="image", mask="mask", name="text", raw={"dtype": "uint8", "shape": (2, 2)})[4]
    assert row["image"].shape == (8, 6, 3)
    assert np.unique(row["mask"]).tolist() == [20]
    assert row["name"] == "图4"
    assert row["raw"].tolist() == [[4, 4], [4, 4]]
    assert row["label"] == 4


def test_masks_keep_their_indices_when_resized(ds: tfrkit.Dataset) -> None:
    (batch,) = ds.decode(mask={"type": "mask", "size": (3, 3)}).batch(20)
    assert batch["mask"].shape == (20, 3, 3)
    assert set(np.unique(batch["mask"]).tolist()) == {0, 20, 255}


def test_decode_then_map_then_batch(ds: tfrkit.Dataset) -> None:
    mapped = ds.decode(image=(2, 2)).map(lambda row: {"mean": float(row["image"].mean()), "label": row["label"]})
    (batch,) = mapped.batch(20)
    assert batch["mean"].tolist() == batch["label"].tolist()


def test_decoding_goes_to_another_process(ds: tfrkit.Dataset) -> None:
    batches = pickle.loads(pickle.dumps(ds.decode(image=(2, 2)).batch(20)))
    assert next(iter(batches))["image"].shape == (20, 2, 2, 3)


def test_undecodable_image_names_the_record_or_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "bad.tfrecord"
    with tfrkit.Writer(path) as writer:
        for number in range(10):
            data = encode(picture(0), "JPEG")
            writer.write({"image": data[: len(data) // 2] if number == 6 else data, "label": number})
    for order in (lambda ds: ds, lambda ds: ds.shuffle(seed=1)):
        with pytest.raises(CodecError, match=r"feature 'image' .* - at .*bad\.tfrecord, record 6, byte \d+"):
            list(order(tfrkit.open(path)).decode(image=(4, 4)).batch(4))
        ds = tfrkit.open(path, on_error="skip")
        given = [label for batch in order(ds).decode(image=(4, 4)).batch(4) for label in batch["label"].tolist()]
        assert sorted(given) == [0, 1, 2, 3, 4, 5, 7, 8, 9]
        assert [finding.record for finding in ds.errors] == [6]
    with pytest.raises(CodecError, match="record 6"):
        list(tfrkit.open(path, on_error="skip", max_errors=0).decode(image=(4, 4)).batch(4))


def test_unknown_feature_is_reported_with_the_nearest(ds: tfrkit.Dataset) -> None:
    with pytest.raises(MissingFeatureError, match="no feature 'imgae', did you mean 'image'"):
        ds.decode(imgae=(4, 4))


# --- masks, from schema, option or data

NUMBERS = np.random.default_rng(0).choice(np.array([0, 11, 255], np.uint8), (3, 12, 16))


def write_masks(path: Path, **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tfrkit.Writer(path, **options) as writer:
        for number, mask in enumerate(NUMBERS):
            writer.write({"image": encode(picture(number)), "segmentation_mask": encode(mask, palette=number % 2 == 0)})


def make_inferred(folder: Path) -> tfrkit.Dataset:
    write_masks(folder / "a.tfrecord")
    return tfrkit.open(folder / "a.tfrecord")


def make_of_tfds(folder: Path) -> tfrkit.Dataset:
    write_masks(folder / "x-train.tfrecord-00000-of-00001")
    files = to_tfds(tfrkit.Schema({"image": "image", "segmentation_mask": "mask"}))
    (folder / "features.json").write_text(json.dumps(files.features))
    return tfrkit.open(folder)


def make_given(folder: Path) -> tfrkit.Dataset:
    write_masks(folder / "a.tfrecord")
    return tfrkit.open(folder / "a.tfrecord", schema={"image": "image", "segmentation_mask": "mask"})


@pytest.mark.parametrize("make", [make_inferred, make_of_tfds, make_given])
@pytest.mark.parametrize("asked", [(6, 8), {"size": (6, 8)}, {"size": (6, 8), "fit": "crop"}, True, "image"], ids=repr)
def test_class_numbers_of_a_mask_are_never_blended(tmp_path: Path, make: Any, asked: Any) -> None:
    ds = make(tmp_path)
    [batch] = ds.decode(segmentation_mask=asked).batch(3)
    expected = NUMBERS[:, 1::2, 1::2] if asked not in (True, "image") else NUMBERS
    assert np.array_equal(batch["segmentation_mask"], expected)
    rows = list(ds.decode(segmentation_mask=asked))
    assert all(np.array_equal(row["segmentation_mask"], mask) for row, mask in zip(rows, expected, strict=True))


@pytest.mark.parametrize("make", [make_inferred, make_of_tfds, make_given])
def test_option_of_photos_for_a_mask_is_named_when_requested(tmp_path: Path, make: Any) -> None:
    with pytest.raises(TypeError, match="'segmentation_mask': option 'filter' is for images, but the schema"):
        make(tmp_path).decode(segmentation_mask={"size": (6, 8), "filter": "bilinear"})
