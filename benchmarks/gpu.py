"""Onto the GPU: JPEGs decoded there against a bare loop of the hardware decoder, and columns copied to it.

Needs tfrkit, a PyTorch with CUDA and torchvision; prints a Markdown table.

    python benchmarks/gpu.py [--images 10000] [--batch 256]
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
from PIL import Image

import tfrkit as tfr

SIZE = (224, 224)
ROWS = 400_000


def make_photo(rng: np.random.Generator, height: int, width: int) -> bytes:
    """A JPEG of soft colours and some noise, which packs as a photo does."""
    small = rng.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), dtype=np.uint8)
    pixels = np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)).astype(np.int16)
    pixels += rng.integers(-6, 7, pixels.shape, dtype=np.int16)
    out = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=90)
    return out.getvalue()


def write_photos(path: Path, count: int, *, mixed: bool) -> list[bytes]:
    rng = np.random.default_rng(7)
    sides = [(int(h), int(w)) for h, w in rng.integers(300, 600, (512, 2))] if mixed else [(375, 500)] * 512
    photos = [make_photo(rng, *side) for side in sides]
    with tfr.Writer(str(path)) as writer:
        for number in range(count):
            writer.write({"image": photos[number % 512], "label": number})
    return [photos[number % 512] for number in range(count)]


def measure(
    runs: dict[str, Callable[[], Iterable[Any]]], count: int, rounds: int = 4
) -> dict[str, tuple[float, float]]:
    """(items per second, cores of the host used) of each, the best of several rounds, by turns."""
    best = dict.fromkeys(runs, (0.0, 0.0))
    for _ in range(rounds):
        for name, run in runs.items():
            torch.cuda.synchronize()
            before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
            for _ in run():
                pass
            torch.cuda.synchronize()
            seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            best[name] = max(best[name], (count / seconds, used / seconds))
    return best


def bare_loop(encoded: list[bytes], batch: int) -> Iterable[Any]:
    """The batched decoder over bytes that are in memory already, nothing else."""
    tensors = [torch.frombuffer(bytearray(one), dtype=torch.uint8) for one in encoded]
    rgb = torchvision.io.ImageReadMode.RGB

    def run() -> Iterable[Any]:
        for start in range(0, len(tensors), batch):
            yield torchvision.io.decode_jpeg(tensors[start : start + batch], mode=rgb, device="cuda")

    return run


def compare(path: Path, batch: int) -> tuple[float, int]:
    """Mean and largest difference of GPU and CPU pixels of the first batch; labels must be equal."""
    ds = tfr.open(path)
    on_gpu = next(iter(ds.decode(image=SIZE, device="cuda").batch(batch).to_torch()))
    on_cpu = next(iter(ds.decode(image=SIZE).batch(batch)))
    assert on_gpu["label"].tolist() == on_cpu["label"].tolist()
    difference = np.abs(on_gpu["image"].cpu().numpy().astype(int) - on_cpu["image"])
    assert difference.mean() < 2, difference.mean()
    return float(difference.mean()), int(difference.max())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=256)
    arguments = parser.parse_args()
    lines = ["| work | per second | host cores | ratio |", "| --- | ---: | ---: | ---: |"]

    def add(what: str, runs: dict[str, Callable[[], Iterable[Any]]], count: int) -> None:
        found = measure(runs, count)
        base = next(iter(found.values()))[0]
        for name, (rate, cores) in found.items():
            lines.append(f"| {what}: {name} | {rate:,.0f} | {cores:.1f} | {rate / base:.2f} |")
            print(lines[-1], file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        for kind in ("one size", "mixed sizes"):
            path = Path(folder) / f"{kind[:3]}.tfrecord"
            encoded = write_photos(path, arguments.images, mixed=kind != "one size")
            mean, most = compare(path, 64)
            print(f"{kind}: GPU pixels differ from the CPU's by {mean:.2f} on average, {most} at most", file=sys.stderr)
            ds = tfr.open(path)
            on_gpu = ds.decode(image=SIZE, device="cuda").batch(arguments.batch).to_torch()
            shuffled = ds.shuffle(seed=1).decode(image=SIZE, device="cuda").batch(arguments.batch).to_torch()
            on_cpu = ds.decode(image=SIZE).batch(arguments.batch).to_torch(device="cuda")
            add(
                f"images of {kind}",
                {
                    "bare loop of nvJPEG, no resize": bare_loop(encoded, arguments.batch),
                    "decoded and resized on the GPU": partial(iter, on_gpu),
                    "the same, shuffled": partial(iter, shuffled),
                    "decoded on the CPU, copied": partial(iter, on_cpu),
                },
                arguments.images,
            )
        table = Path(folder) / "table.tfrecord"
        rng = np.random.default_rng(1)
        with tfr.Writer(str(table)) as writer:
            writer.write_columns({f"x{n}": rng.normal(size=ROWS).astype(np.float32) for n in range(20)})
        batches = tfr.open(table).batch(1024)
        runs = {
            "the plain loop": partial(iter, batches),
            "to_torch()": partial(iter, batches.to_torch()),
            "to_torch(device='cuda')": partial(iter, batches.to_torch(device="cuda")),
        }
        add("20 columns, batch 1024", runs, ROWS)
    print(f"{torch.cuda.get_device_name()}, {os.cpu_count()} cores, torch {torch.__version__}\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
