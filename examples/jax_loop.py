"""A training loop in plain JAX on a TFRecord of little digits: split, shuffle, batches on the device, resume.

pip install 'tfrkit[jax]'
python jax_loop.py
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw, ImageFont

import tfrkit as tfr

SIDE = 16
Params = list[tuple[jax.Array, jax.Array]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("digits"))
    parser.add_argument("--digits", type=int, default=4000)
    parser.add_argument("--epochs", type=int, default=6)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / "digits.tfrecord"
    write_digits(path, options.digits)

    train, test = tfr.open(str(path)).split({"train": 0.8, "test": 0.2}, stratify="label", seed=0)
    loader = train.shuffle(seed=1).batch(64, drop_last=True).to_jax()
    params = init_params([SIDE * SIDE, 64, 10], seed=0)
    while loader.epoch < options.epochs:
        epoch, loss = loader.epoch, jnp.zeros(())
        for batch in loader:
            params, loss = update(params, batch["pixels"], batch["label"])
        print(f"epoch {epoch}: loss {loss:.3f}")

    whole = test.to_jax()
    accuracy = (predict(params, whole["pixels"]).argmax(1) == whole["label"]).mean()
    print(f"accuracy: {accuracy:.1%} of {len(test)} digits (chance: 10%)")
    show_resume(train)


def show_resume(train: tfr.Dataset) -> None:
    """The state of a loader is a few numbers; a new loader resumes from them."""
    loader = train.shuffle(seed=1).batch(64).to_jax()
    batches = iter(loader)
    for _ in range(5):
        next(batches)
    state = json.dumps(loader.state_dict())
    expected = [batch["label"].tolist() for batch in batches]
    resumed = train.shuffle(seed=1).batch(64).to_jax()
    resumed.load_state_dict(json.loads(state))
    assert [batch["label"].tolist() for batch in resumed] == expected
    print(f"resumed after 5 batches from {state}")


# ---- model ---------------------------------------------------------------------------------------------------------


def init_params(sizes: list[int], seed: int) -> Params:
    rng = np.random.default_rng(seed)
    pairs = itertools.pairwise(sizes)
    return [(jnp.asarray(rng.normal(0, (2 / a) ** 0.5, (a, b)), jnp.float32), jnp.zeros(b)) for a, b in pairs]


@jax.jit
def predict(params: Params, pixels: jax.Array) -> jax.Array:
    values = pixels.reshape(len(pixels), -1) / 255 - 0.5
    for weights, bias in params[:-1]:
        values = jax.nn.relu(values @ weights + bias)
    weights, bias = params[-1]
    return values @ weights + bias


def loss_of(params: Params, pixels: jax.Array, labels: jax.Array) -> jax.Array:
    scores = jax.nn.log_softmax(predict(params, pixels))
    return -jnp.take_along_axis(scores, labels[:, None], 1).mean()


@jax.jit
def update(params: Params, pixels: jax.Array, labels: jax.Array) -> tuple[Params, jax.Array]:
    loss, gradients = jax.value_and_grad(loss_of)(params, pixels, labels)
    return jax.tree.map(lambda value, gradient: value - 0.1 * gradient, params, gradients), loss


# ---- data ----------------------------------------------------------------------------------------------------------


def write_digits(path: Path, num_digits: int) -> None:
    rng = np.random.default_rng(5)
    font = ImageFont.load_default(size=15)
    with tfr.Writer(str(path)) as writer:
        for _ in range(num_digits):
            label = int(rng.integers(10))
            writer.write({"pixels": draw_digit(label, font, rng), "label": label})


def draw_digit(label: int, font: Any, rng: np.random.Generator) -> np.ndarray:
    picture = Image.new("L", (SIDE, SIDE), 0)
    place = (int(rng.integers(2, 6)), int(rng.integers(-2, 1)))
    ImageDraw.Draw(picture).text(place, str(label), font=font, fill=int(rng.integers(150, 256)))
    pixels = np.asarray(picture, np.int16) + rng.normal(0, 20, (SIDE, SIDE)).astype(np.int16)
    return pixels.clip(0, 255).astype(np.uint8)


if __name__ == "__main__":
    main()
