"""The bars for a machine with many cores, in one command of less than four minutes on 16 cores.

    python benchmarks/many_cores.py                   # on 16 cores; prints Markdown
    python benchmarks/many_cores.py --quick           # small data: does everything run
    python benchmarks/many_cores.py --long            # also memory over 20 GB and, with CUDA, `gpu.py`

Batches of columns on 1 to 16 threads and in as many processes (`threads.py`), through `to_torch()` if PyTorch is
installed, JPEG decoding if Pillow and simplejpeg are, and compressed shards (`compressed.py`). Bars come last. A part
that fails is named, and the others run.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from threads import ORDERS, Row, describe_machine, format_rows, measure, open_batches, write_shards

import tfrkit as tfr

MAX_SECONDS = 240
IMAGE = (375, 500)
NUM_PHOTOS = 64

Bars = list[tuple[str, float, float]]
"""Names, what is wanted, and what was measured."""


def measure_columns(options: argparse.Namespace, bars: Bars) -> None:
    """Threads against processes, in file order and shuffled; then `to_torch()` against the plain loop."""
    most = max(options.threads)
    with tempfile.TemporaryDirectory(prefix="tfrkit-threads-") as folder:
        write_shards(Path(folder), options.rows, most)
        paths = sorted(str(path) for path in Path(folder).glob("*.tfrecord"))
        for order in ORDERS:
            rows: list[Row] = []

            def keep(found: Iterator[Row], rows: list[Row] = rows) -> Iterator[Row]:
                for row in found:
                    rows.append(row)
                    yield row

            print_lines(chain([""], format_rows(order, keep(measure(paths, order, options)))))
            last = rows[-1]
            bars.append((f"columns, {order}, {most} threads : {most} processes", 0.75, last.rate / last.allowed))
            bars.append(
                (f"columns, {order}, {most} threads : 1", 12 if order == "file order" else 8, last.rate / rows[0].rate)
            )
            bars.append(
                (
                    f"columns, {order}, worst of more threads : fewer",
                    0.97,
                    min((b.rate / a.rate for a, b in pairwise(rows)), default=1),
                )
            )
        if find_spec("torch") is None:
            print("\nto_torch(): PyTorch is not installed")
            return
        for order in ORDERS:
            plain, torched = time_torch(paths, order, most, options.rounds)
            print(
                f"\n{order}, {most} threads: plain loop {plain / 1e6:.2f}, to_torch() {torched / 1e6:.2f} M rows/s",
                flush=True,
            )
            bars.append((f"columns, {order}, to_torch() : the plain loop", 0.95, torched / plain))


def time_torch(paths: list[str], order: str, threads: int, rounds: int) -> tuple[float, float]:
    """Rows a second of the plain loop and of `to_torch()`, the best of passes by turns."""
    num_rows = len(tfr.open(paths))
    batches = open_batches(paths, order, 1024, threads)
    ways: list[Any] = [batches, batches.to_torch()]
    best = [0.0, 0.0]
    for number in range(2 * rounds + 2):
        for way, loop in enumerate(ways):
            started = time.perf_counter()
            for _ in loop:  # nothing else: `len` of a tensor takes longer than that of an array
                pass
            if number > 1:  # pages are mapped in, PyTorch is imported
                best[way] = max(best[way], num_rows / (time.perf_counter() - started))
    return best[0], best[1]


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


def measure_photos(options: argparse.Namespace, bars: Bars) -> None:
    """Shuffled, decoded, resized to 224 x 224, batches of 64."""
    print_lines(
        [
            "| JPEG decode and resize, threads | images/s | : one thread | : row before |",
            "| ---: | ---: | ---: | ---: |",
        ]
    )
    most = max(options.threads)
    rates: list[float] = []
    with tempfile.TemporaryDirectory(prefix="tfrkit-photos-") as folder:
        path = Path(folder) / "photos.tfrecord"
        write_photos(path, options.photos)
        for number in options.threads:
            batches = tfr.open(path).shuffle(seed=1).decode(image=(224, 224)).batch(64, threads=number)
            share = options.photos * number // most  # about the same time for each
            started, num_rows = time.perf_counter(), 0
            for batch in batches:
                num_rows += len(batch["label"])
                if num_rows >= share:
                    break
            rates.append(num_rows / (time.perf_counter() - started))
            before = rates[-2] if len(rates) > 1 else rates[-1]
            print_lines([f"| {number} | {rates[-1]:,.0f} | {rates[-1] / rates[0]:.2f} | {rates[-1] / before:.2f} |"])
    bars.append((f"JPEG decode and resize, {most} threads : 1", 13, rates[-1] / rates[0]))
    bars.append(
        (
            "JPEG decode and resize, worst of more threads : fewer",
            0.97,
            min((b / a for a, b in pairwise(rates)), default=1),
        )
    )


def print_lines(lines: Any) -> None:
    for line in lines:
        print(line, flush=True)


def run_part(
    title: str, part: Callable[[argparse.Namespace, Bars], None], options: argparse.Namespace, bars: Bars
) -> None:
    print(f"\n## {title}\n", flush=True)
    started = time.perf_counter()
    try:
        part(options, bars)
    except Exception:  # noqa: BLE001  (the other parts run)
        traceback.print_exc(file=sys.stdout)
    print(f"\n{time.perf_counter() - started:.0f} s", flush=True)


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
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    options.rows, options.photos = (100_000, 256) if options.quick else (2_000_000, 16_000)
    options.batch, options.rounds = 1024, 3
    started, bars = time.perf_counter(), Bars()
    print(f"# Many cores\n\n{describe_machine()}", flush=True)
    run_part("Threads against processes", measure_columns, options, bars)
    run_part("JPEGs", measure_photos, options, bars)
    print("\n## Bars\n\n| work | bar | measured |\n| --- | ---: | ---: |")
    for name, wanted, found in bars:
        print(f"| {name} | {wanted} | {found:.2f} |", flush=True)
    threads = ["--threads", *map(str, options.threads)]
    run_script("compressed.py", "--rows", "40000" if options.quick else "160000", "--rounds", "1", *threads)
    if options.long:
        run_script("memory.py", "--gigabytes", *(["1"] if options.quick else ["2", "20"]))
        if find_spec("torch") is not None and find_spec("torchvision") is not None:
            import torch

            if torch.cuda.is_available():
                run_script("gpu.py")
    print(f"\n{time.perf_counter() - started:.0f} s in all")


if __name__ == "__main__":
    main()
