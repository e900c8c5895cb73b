"""Images and their masks into PyTorch: masks stay class numbers, whatever happens to their size.

Scenes of coloured shapes are drawn here in the manner of Pascal VOC: a JPEG, and a PNG with a palette in which every
pixel is the number of a class, 255 for the border that counts for nothing.

    pip install 'tfrkit[torch]'
    python segmentation_feed.py
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw

import tfrkit as tfr

CLASSES = ("background", "disc", "box")
IGNORE = 255
SIZE = (64, 96)
PALETTE = [0, 0, 0, 128, 0, 0, 0, 128, 0] + [0] * 252 * 3 + [224, 224, 192]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("scenes"))
    parser.add_argument("--scenes", type=int, default=200)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / "scenes.tfrecord"
    write_scenes(path, options.scenes)

    dataset = tfr.open(str(path)).decode(image=SIZE, mask={"type": "mask", "size": SIZE})
    train, val = dataset.split({"train": 0.8, "val": 0.2}, seed=0)
    loader = train.shuffle(seed=1).batch(16).to_torch()
    print(f"{path}: {len(train)} scenes to train on, {len(val)} to validate on, {len(loader)} batches an epoch")

    pixels = torch.zeros(256, dtype=torch.int64)
    for batch in loader:
        image, mask = batch["image"], batch["mask"]
        assert image.shape[1:] == (*SIZE, 3)
        assert mask.shape[1:] == SIZE
        assert image.dtype == mask.dtype == torch.uint8
        pixels += mask.flatten().bincount(minlength=256)
    found = pixels.nonzero().flatten().tolist()
    # Resizing by nearest neighbour makes no number that was not there, such as the mean of two classes.
    assert found == [*range(len(CLASSES)), IGNORE], found
    for number in found:
        name = "border, ignored" if number == IGNORE else CLASSES[number]
        print(f"class {number:3}: {pixels[number] / pixels.sum():6.1%} of pixels  {name}")
    print(f"loss of a model that knows nothing: {untrained_loss(batch):.3f}, ln(3) is {np.log(3):.3f}")


def untrained_loss(batch: dict[str, torch.Tensor]) -> float:
    """The usual loss takes the masks as they come; ignored pixels do not count."""
    images = batch["image"].permute(0, 3, 1, 2).float() / 255
    scores = torch.zeros(len(images), len(CLASSES), *SIZE)
    return torch.nn.functional.cross_entropy(scores, batch["mask"].long(), ignore_index=IGNORE).item()


def write_scenes(path: Path, num_scenes: int) -> None:
    rng = np.random.default_rng(3)
    with tfr.Writer(str(path)) as writer:
        for number in range(num_scenes):
            image, mask = draw_scene(rng)
            row = {"image": encode(image, "JPEG"), "mask": encode(mask, "PNG"), "name": f"scene_{number:04}"}
            writer.write(row)


def draw_scene(rng: np.random.Generator) -> tuple[Image.Image, Image.Image]:
    """A picture, and a palette image of the same size with the number of its class in every pixel."""
    width, height = (int(size) for size in rng.integers(100, 160, 2))
    image = Image.new("RGB", (width, height), tuple(rng.integers(150, 255, 3).tolist()))
    mask = Image.new("P", (width, height), 0)
    mask.putpalette(PALETTE)
    for number in (1, 2):
        left, top = (int(place) for place in rng.integers(0, 60, 2))
        place = (left, top, left + int(rng.integers(25, 60)), top + int(rng.integers(25, 60)))
        draw_shape(ImageDraw.Draw(image), number, place, tuple(rng.integers(0, 120, 3).tolist()), None)
        draw_shape(ImageDraw.Draw(mask), number, place, number, IGNORE)
    return image, mask


def draw_shape(draw: ImageDraw.ImageDraw, number: int, place: tuple[int, ...], fill: Any, outline: Any) -> None:
    (draw.ellipse if number == 1 else draw.rectangle)(place, fill=fill, outline=outline)


def encode(image: Image.Image, kind: str) -> bytes:
    encoded = io.BytesIO()
    image.save(encoded, kind)
    return encoded.getvalue()


if __name__ == "__main__":
    main()
