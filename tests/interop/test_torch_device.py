"""Batches on a device. Here the device is the CPU, with our decoder in the place of the GPU's."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")

import tfrkit as tfr  # noqa: E402
from tfrkit._limits import LIMITS  # noqa: E402
from tfrkit.errors import CodecError, CpuImagesWarning  # noqa: E402
from tfrkit.feeds import torch as feed_module  # noqa: E402
from tfrkit.feeds import torch_device as device_module  # noqa: E402
from tfrkit.feeds.torch_device import DeviceFeed  # noqa: E402
from tfrkit.images.decode import decode_image  # noqa: E402
from tfrkit.ops.bench_gpu import time_gpu  # noqa: E402

SIZE = (48, 40)
SHAPES = [(100, 150), (60, 50), (300, 20), (64, 64), (48, 40)]


def make_photo(height: int, width: int, seed: int = 0, form: str = "JPEG", mode: str = "RGB", **options: Any) -> bytes:
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC).convert(mode).save(out, form, **options)
    return out.getvalue()


def decode_here(encoded: list[Any], channels: int) -> list[Any]:
    """What torchvision's decoder gives, which also refuses a call for one image it cannot decode."""
    made = []
    for one in encoded:
        data = one.numpy().tobytes()
        if b"refuse" in data:
            raise RuntimeError("Failed to decode jpeg stream: 2")
        made.append(decode_image(data, channels="rgb" if channels == 3 else "gray"))
    return [torch.from_numpy(pixels.transpose(2, 0, 1).copy()) for pixels in made]


class FeedHere(DeviceFeed):
    def __init__(self, device: Any, **options: Any) -> None:
        super().__init__("cpu", decode=decode_here, **options)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(feed_module, "DeviceFeed", FeedHere)
    return "cuda"


def write(path: Path, images: list[bytes]) -> str:
    with tfr.Writer(str(path)) as writer:
        for number, image in enumerate(images):
            writer.write({"image": image, "label": number, "name": b"n%d" % number, "few": list(range(number % 3))})
    return str(path)


@pytest.fixture
def photos(tmp_path: Path) -> str:
    return write(tmp_path / "photos.tfrecord", [make_photo(*SHAPES[n % 5], seed=n) for n in range(23)])


@pytest.mark.parametrize("fit", ["stretch", "crop", "pad"])
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("channels", ["rgb", "gray"])
def test_images_are_those_of_the_cpu(photos: str, device: str, fit: str, antialias: bool, channels: str) -> None:
    options = {"size": SIZE, "fit": fit, "antialias": antialias, "fill": 9, "reduced": False, "channels": channels}
    ds = tfr.open(photos).shuffle(seed=3)
    expected = list(ds.decode(image=options).batch(5).to_torch())
    loader = ds.decode(image=options, device=device).batch(5).to_torch()
    given = list(loader)
    assert len(given) == len(expected) == 5
    for one, other in zip(given, expected, strict=True):
        assert list(one) == list(other)
        assert one["image"].shape == other["image"].shape
        assert (one["image"].int() - other["image"].int()).abs().max() <= 1  # rounding
        assert torch.equal(one["label"], other["label"])
        assert one["name"] == other["name"]
        assert torch.equal(one["few"].values, other["few"].values)
        assert torch.equal(one["few"].row_splits, other["few"].row_splits)
    assert loader.on_cpu == {}


def test_images_reach_jax_by_dlpack(photos: str, monkeypatch: pytest.MonkeyPatch) -> None:
    jax = pytest.importorskip("jax")
    monkeypatch.setattr(device_module, "DeviceFeed", FeedHere)
    options = {"size": SIZE, "reduced": False}
    expected = list(tfr.open(photos).decode(image=options).batch(5).to_torch())
    given = list(tfr.open(photos).decode(image=options).batch(5).to_jax(device="cuda"))
    assert len(given) == len(expected) == 5
    for one, other in zip(given, expected, strict=True):
        assert isinstance(one["image"], jax.Array)
        assert np.abs(np.asarray(one["image"]).astype(int) - other["image"].numpy()).max() <= 1
        assert one["label"].tolist() == other["label"].tolist()


def test_images_it_cannot_decode_are_decoded_here_counted_and_named(tmp_path: Path, device: str) -> None:
    images = [
        make_photo(60, 50),
        make_photo(60, 50, progressive=True),
        make_photo(60, 50, form="PNG"),
        make_photo(60, 50, mode="CMYK"),
        make_photo(60, 50, comment=b"refuse"),
        make_photo(60, 50),
        make_photo(60, 50, comment=b"refuse"),
    ]
    path = write(tmp_path / "odd.tfrecord", images)
    options = {"size": SIZE, "reduced": False}
    loader = tfr.open(path).decode(image=options, device=device).batch(7).to_torch()
    with pytest.warns(CpuImagesWarning, match=r"5 of 7 images were decoded on the CPU: 2 JPEG that the GPU") as warned:
        [batch] = list(loader)
    assert "record 1, byte" in str(warned[0].message)
    assert loader.on_cpu == {
        "progressive JPEG": 1,
        "not a JPEG": 1,
        "JPEG with 4 components": 1,
        "JPEG that the GPU decoder refused": 2,
    }
    for row, image in enumerate(images):
        expected = decode_image(image, size=SIZE, reduced=False).astype(int)
        assert np.abs(expected - batch["image"][row].numpy()).max() <= 1


def test_decoder_that_decodes_nothing_raises_its_error(tmp_path: Path, device: str) -> None:
    path = write(tmp_path / "all.tfrecord", [make_photo(60, 50, comment=b"refuse") for _ in range(3)])
    with pytest.raises(RuntimeError, match="Failed to decode jpeg stream"):
        list(tfr.open(path).decode(image=SIZE, device=device).batch(3).to_torch())


def test_cut_off_image_is_named_or_skipped(tmp_path: Path, device: str) -> None:
    whole = make_photo(60, 50)
    path = write(tmp_path / "cut.tfrecord", [whole, whole[: len(whole) // 2], whole])
    with pytest.raises(CodecError, match=r"feature 'image' .*record 1"):
        list(tfr.open(path).decode(image=SIZE, device=device).batch(3).to_torch())
    kept = tfr.open(path, on_error="skip")
    with pytest.warns(UserWarning, match="1"):
        [batch] = list(kept.decode(image=SIZE, device=device).batch(3).to_torch())
    assert batch["label"].tolist() == [0, 2]
    assert len(batch["image"]) == 2


def test_large_images_are_decoded_in_several_calls(photos: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(tfr.open(photos).decode(image=SIZE, device=device).batch(23).to_torch())
    monkeypatch.setattr(LIMITS, "device_pixels", 20_000)
    parts = list(tfr.open(photos).decode(image=SIZE, device=device).batch(23).to_torch())
    assert torch.equal(whole[0]["image"], parts[0]["image"])


def test_pass_goes_on_from_a_state(photos: str, device: str) -> None:
    loader = tfr.open(photos).shuffle(seed=1).decode(image=SIZE, device=device).batch(4).to_torch()
    passed = iter(loader)
    first = [next(passed) for _ in range(2)]
    state = loader.state_dict()
    rest = list(passed)
    again = tfr.open(photos).shuffle(seed=1).decode(image=SIZE, device=device).batch(4).to_torch()
    again.load_state_dict(state)
    resumed = list(again)
    assert [batch["label"].tolist() for batch in resumed] == [batch["label"].tolist() for batch in rest]
    assert len(first) + len(rest) == 6


def test_rows_are_decoded_on_the_cpu(photos: str) -> None:
    ds = tfr.open(photos).decode(image=SIZE, device="cuda")
    assert ds[0]["image"].shape == (*SIZE, 3)
    assert next(iter(ds.batch(2)))["image"].shape == (2, *SIZE, 3)


def test_columns_go_to_a_device_without_images(photos: str) -> None:
    [expected, *_] = tfr.open(photos).select(["label", "name", "few"]).batch(5)
    [batch, *_] = tfr.open(photos).select(["label", "name", "few"]).batch(5).to_torch(device="cpu")
    assert batch["label"].tolist() == expected["label"].tolist()
    assert batch["name"] == list(expected["name"])


def test_what_a_device_cannot_do_is_refused(photos: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ds = tfr.open(photos)
    with pytest.raises(TypeError, match=r"on a device expected a size, got none\n  .*image=\(224, 224\)"):
        ds.decode(image=True, device=device)
    with pytest.raises(ValueError, match="on a device expected channels 'rgb' or 'gray', got 'rgba'"):
        ds.decode(image={"size": SIZE, "channels": "rgba"}, device=device)
    with pytest.raises(ValueError, match="on a device expected filter 'bilinear', got 'nearest'"):
        ds.decode(image={"size": SIZE, "filter": "nearest"}, device=device)
    with pytest.raises(ValueError, match="map after decode"):
        ds.decode(image=SIZE, device=device).batch(2).map(dict).to_torch()
    with pytest.raises(ValueError, match="device needs threads, got num_workers=2"):
        ds.decode(image=SIZE, device=device).batch(2).to_torch(num_workers=2)
    monkeypatch.undo()
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="device 'cuda' expected a GPU, PyTorch sees none\n  leave device out"):
            ds.decode(image=SIZE, device="cuda").batch(2).to_torch()


def test_feature_called_device_is_a_feature(tmp_path: Path) -> None:
    with tfr.Writer(str(tmp_path / "named.tfrecord")) as writer:
        writer.write({"device": "phone"})
    assert tfr.open(tmp_path / "named.tfrecord").decode(device="text")[0] == {"device": "phone"}


def test_bench_times_both_ways_of_decoding(tmp_path: Path) -> None:
    images = [make_photo(60, 50, seed=n, progressive=n % 4 == 0) for n in range(16)]
    ds = tfr.open(write(tmp_path / "photos.tfrecord", images))
    found = time_gpu(list(ds.records()), ds.schema, device="cpu", decode=decode_here)
    assert found.cpu_images_per_s is not None and found.cpu_images_per_s > 0
    assert found.gpu_images_per_s is not None and found.gpu_images_per_s > 0
    assert "25% stay on the CPU, most: progressive JPEG" in found.verdict


def test_bench_without_a_gpu_says_so_in_one_sentence(photos: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())  # as if torchvision were there
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    ds = tfr.open(photos)
    verdict = time_gpu(list(ds.records()), ds.schema).verdict
    assert verdict == "not with a GPU: PyTorch sees none, the CPU decodes"


@pytest.mark.parametrize("shapes", [[(60, 50), (30, 50)], [(60, 50), (60, 20)], [(60, 50), (60, 50)]])
def test_two_images_that_share_a_side_are_those_of_the_cpu(tmp_path: Path, device: str, shapes: list[Any]) -> None:
    path = write(tmp_path / "two.tfrecord", [make_photo(*shape, seed=n) for n, shape in enumerate(shapes)])
    options = {"size": SIZE, "reduced": False}
    [expected] = tfr.open(path).decode(image=options).batch(2).to_torch()
    [given] = tfr.open(path).decode(image=options, device=device).batch(2).to_torch()
    assert (given["image"].int() - expected["image"].int()).abs().max() <= 1


@pytest.mark.parametrize("level", [0, 255])
def test_black_and_white_stay_so(tmp_path: Path, device: str, level: int) -> None:
    file = io.BytesIO()
    Image.new("RGB", (50, 60), (level, level, level)).save(file, "JPEG")
    path = write(tmp_path / "plain.tfrecord", [file.getvalue()] * 2)
    [given] = tfr.open(path).decode(image={"size": SIZE, "reduced": False}, device=device).batch(2).to_torch()
    assert given["image"].unique().tolist() == [level]
