"""All rows of the bars for a machine with many cores, in one command of about six minutes.

    python benchmarks/many_cores.py                   # on 16 cores; prints Markdown
    python benchmarks/many_cores.py --quick           # small data: does everything run

Runs `threads.py`, JPEG decoding on 1 to 16 threads, `compressed.py`, `memory.py` and, with CUDA, `gpu.py`, one after
the other, each at most four minutes. A part that fails is named, and the others run.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from threads import describe_machine

import tfrkit as tfr

MAX_SECONDS = 240
IMAGE = (375, 500)
NUM_PHOTOS = 64


def write_photos(path: Path, count: int) -> None:
    """Write JPEGs of soft colours and some noise, which pack as photos do."""
    from PIL import Image

    rng = np.random.default_rng(7)
    photos = []
    for _ in range(NUM_PHOTOS):
        small = rng.integers(0, 256, (IMAGE[0] // 8, IMAGE[1] // 8, 3), dtype=np.uint8)
        pixels = np.asarray(Image.fromarray(small).resize(IMAGE[::-1], Image.Resampling.BICUBIC)).astype(np.int16)
        pixels += rng.integers(-6, 7, pixels.shape, dtype=np.int16)
        out = io.BytesIO()
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=85)
        photos.append(out.getvalue())
    with tfr.Writer(path) as writer:
        for number in range(count):
            writer.write({"image": photos[number % NUM_PHOTOS], "label": number})


def measure_photos(threads: list[int], count: int) -> Iterator[str]:
    """Lines of a table: shuffled, decoded, resized to 224 x 224, batches of 64."""
    yield "| JPEG decode and resize, threads | images/s | : one thread | : row before |"
    yield "| ---: | ---: | ---: | ---: |"
    with tempfile.TemporaryDirectory(prefix="tfrkit-photos-") as folder:
        path = Path(folder) / "photos.tfrecord"
        write_photos(path, count)
        first = before = None
        for number in threads:
            batches = tfr.open(path).shuffle(seed=1).decode(image=(224, 224)).batch(64, threads=number)
            share = count * number // max(threads)  # about the same time for each
            started, num_rows = time.perf_counter(), 0
            for batch in batches:
                num_rows += len(batch["label"])
                if num_rows >= share:
                    break
            rate = num_rows / (time.perf_counter() - started)
            first, before = first or rate, before or rate
            yield f"| {number} | {rate:,.0f} | {rate / first:.2f} | {rate / before:.2f} |"
            before = rate


def run_script(name: str, *options: str) -> None:
    print(f"\n## {name} {' '.join(options)}\n", flush=True)
    try:
        done = subprocess.run([sys.executable, Path(__file__).with_name(name), *options], timeout=MAX_SECONDS)
    except subprocess.TimeoutExpired:
        print(f"not finished after {MAX_SECONDS} s")
        return
    if done.returncode:
        print(f"failed with status {done.returncode}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    threads = ["--threads", *map(str, options.threads)]
    print(f"# Many cores\n\n{describe_machine()}", flush=True)
    run_script("threads.py", "--rows", "100000" if options.quick else "2000000", "--rounds", "3", *threads)
    print("\n## JPEGs\n", flush=True)
    for line in measure_photos(options.threads, 256 if options.quick else 20_000):
        print(line, flush=True)
    run_script("compressed.py", "--rows", "40000" if options.quick else "320000", "--rounds", "2", *threads)
    run_script("memory.py", "--gigabytes", *(["1"] if options.quick else ["2", "20"]))
    if find_spec("torch") is not None and find_spec("torchvision") is not None:
        import torch

        if torch.cuda.is_available():
            run_script("gpu.py")


if __name__ == "__main__":
    main()
