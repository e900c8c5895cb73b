"""Train a captcha recogniser in PyTorch from one TFRecord file, on the CPU, in less than a minute.

The captchas are drawn here, so nothing is downloaded. Model, optimizer and loader are saved every few steps; stopped in
any way, kill -9 included, the training resumes when it is started again.

    pip install 'tfrkit[torch]'
    python captcha_torch.py --folder captchas
"""

from __future__ import annotations

import argparse
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import nn

import tfrkit as tfr

CHARACTERS = "0123456789"
LENGTH = 4
HEIGHT, WIDTH = 32, 80
SEED = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("captchas"))
    parser.add_argument("--captchas", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=0, help="processes that decode; 0: threads of this one")
    parser.add_argument("--save-every", type=int, default=20, metavar="STEPS")
    options = parser.parse_args()

    path = options.folder / "captchas.tfrecord"
    if not path.exists():  # it appears whole or not at all
        options.folder.mkdir(parents=True, exist_ok=True)
        write_captchas(path, options.captchas)
    dataset = tfr.open(str(path)).decode(image={"size": (HEIGHT, WIDTH), "channels": "gray"})
    train, test = dataset.split({"train": 0.9, "test": 0.1}, seed=0)
    print(f"{path}: {len(train)} captchas to train on, {len(test)} to test on")

    torch.manual_seed(SEED)
    model = Recogniser()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loader = train.shuffle(seed=SEED).batch(options.batch).to_torch(num_workers=options.workers)
    training = Training(model, optimizer, loader, options.folder / "checkpoint.pt")
    training.resume()
    training.run(options.epochs, options.save_every)

    by_character, whole = measure_accuracy(model, test.batch(256).to_torch())
    print(f"accuracy: {by_character:.1%} of characters, {whole:.1%} of captchas (chance: {1 / len(CHARACTERS):.0%})")


# ---- data ----------------------------------------------------------------------------------------------------------


def write_captchas(path: Path, num_captchas: int) -> None:
    """One record a captcha: its PNG, its text, and the number of each character as label0, label1, ..."""
    rng = np.random.default_rng(SEED)
    font = ImageFont.load_default(size=22)
    with tfr.Writer(str(path)) as writer:
        for _ in range(num_captchas):
            labels = rng.integers(len(CHARACTERS), size=LENGTH)
            text = "".join(CHARACTERS[label] for label in labels)
            row: dict[str, Any] = {"image": draw_captcha(text, font, rng), "label/text": text}
            row |= {f"label{place}": label for place, label in enumerate(labels)}
            writer.write(row)


def draw_captcha(text: str, font: Any, rng: np.random.Generator) -> bytes:
    picture = Image.new("L", (WIDTH, HEIGHT), 255)
    for place, character in enumerate(text):
        letter = Image.new("L", (28, HEIGHT), 255)
        ImageDraw.Draw(letter).text((7, 3), character, font=font, fill=int(rng.integers(0, 90)))
        letter = letter.rotate(float(rng.uniform(-12, 12)), fillcolor=255)
        left = 2 + place * 18 + int(rng.integers(-2, 3))
        picture.paste(letter, (left, int(rng.integers(-2, 3))), letter.point(lambda value: 255 - value))
    draw = ImageDraw.Draw(picture)
    for _ in range(2):
        start, stop = rng.integers(0, HEIGHT, 2)
        draw.line([(0, int(start)), (WIDTH, int(stop))], fill=int(rng.integers(100, 200)))
    pixels = np.asarray(picture, np.int16) + rng.normal(0, 12, (HEIGHT, WIDTH)).astype(np.int16)
    encoded = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(encoded, "PNG")
    return encoded.getvalue()


# ---- model ---------------------------------------------------------------------------------------------------------


class Recogniser(nn.Module):
    """Convolutions that all characters share, and a head for each."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in [(1, 12), (12, 24), (24, 48)]:
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]
        self.body = nn.Sequential(*layers, nn.Flatten())
        num_features = 48 * (HEIGHT // 8) * (WIDTH // 8)
        self.heads = nn.ModuleList(nn.Linear(num_features, len(CHARACTERS)) for _ in range(LENGTH))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Scores by captcha, place and character."""
        features = self.body(images.permute(0, 3, 1, 2).float() / 255 - 0.5)
        return torch.stack([head(features) for head in self.heads], 1)


def labels_of(batch: dict[str, Any]) -> torch.Tensor:
    return torch.stack([batch[f"label{place}"] for place in range(LENGTH)], 1)


def measure_accuracy(model: nn.Module, batches: Any) -> tuple[float, float]:
    """Share of characters, and of whole captchas, that are recognised."""
    model.eval()
    with torch.no_grad():
        right = torch.cat([model(batch["image"]).argmax(2) == labels_of(batch) for batch in batches])
    return right.float().mean().item(), right.all(1).float().mean().item()


# ---- training that may be killed at any time -----------------------------------------------------------------------


class Training:
    """Model, optimizer and loader, which are saved together and so always fit each other."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, loader: Any, path: Path) -> None:
        self.model = model
        self.optimizer = optimizer
        self.loader = loader
        self.path = path
        self.step = 0

    def resume(self) -> None:
        if not self.path.exists():
            return
        saved = torch.load(self.path)
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.loader.load_state_dict(saved["loader"])
        self.step = saved["step"]
        print(f"resumed after step {self.step}: epoch {saved['loader']['epoch']}, row {saved['loader']['row']}")

    def save(self) -> None:
        saved = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "loader": self.loader.state_dict(),
            "step": self.step,
        }
        temporary = self.path.with_suffix(".tmp")
        torch.save(saved, temporary)
        os.replace(temporary, self.path)  # a kill here keeps the old one

    def run(self, num_epochs: int, save_every: int) -> None:
        while self.loader.epoch < num_epochs:
            epoch = self.loader.epoch
            self.model.train()
            loss = torch.zeros(())
            for batch in self.loader:
                scores = self.model(batch["image"])
                loss = nn.functional.cross_entropy(scores.flatten(0, 1), labels_of(batch).flatten())
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.step += 1
                if self.step % save_every == 0:
                    self.save()
                    print(f"saved after step {self.step}, loss {loss.item():.3f}", flush=True)
            print(f"epoch {epoch}: loss {loss.item():.3f}", flush=True)
        self.save()


if __name__ == "__main__":
    main()
