"""TensorFlow against tfrkit on a machine with many cores: the rows of `many_cores.py` that are held against it.

    python benchmarks/many_cores_tf.py                # prints Markdown, about two minutes on 16 cores
    python benchmarks/many_cores_tf.py --quick        # small data: does everything run

Both read the same files in the same run. Each way of TensorFlow first gives the same values as tfrkit: sums of two
columns, and pixels that differ by no more than decoders do. The best way counts.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from many_cores import write_photos
from threads import NUM_COLUMNS, ORDERS, describe_machine, open_batches, read, write_shards

import tfrkit as tfr

BATCH = 1024
BUFFER = 10_000
SIDE = 224
AUTOTUNE = tf.data.AUTOTUNE
# Pixels: other decoders and filters round differently, and no more.
CLOSE = 2.0


def make_ways(paths: list[str], order: str, threads: int) -> dict[str, tf.data.Dataset]:
    """Return the ways to read parsed batches that might be the fastest."""
    half = range(NUM_COLUMNS // 2)
    spec = {f"i{k}": tf.io.FixedLenFeature([], tf.int64) for k in half}
    spec |= {f"f{k}": tf.io.FixedLenFeature([], tf.float32) for k in half}
    one = tf.data.TFRecordDataset(paths, buffer_size=8 << 20)
    many = tf.data.TFRecordDataset(paths, buffer_size=8 << 20, num_parallel_reads=threads)
    mixed = tf.data.Dataset.from_tensor_slices(paths).interleave(
        lambda path: tf.data.TFRecordDataset(path, buffer_size=8 << 20),
        cycle_length=threads,
        block_length=64,
        num_parallel_calls=AUTOTUNE,
        deterministic=False,
    )

    def parse(records: tf.data.Dataset) -> tf.data.Dataset:
        batches = records.batch(BATCH, num_parallel_calls=AUTOTUNE, deterministic=False)
        parsed = batches.map(
            lambda batch: tf.io.parse_example(batch, spec), num_parallel_calls=AUTOTUNE, deterministic=False
        )
        return parsed.prefetch(AUTOTUNE)

    def fuse(records: tf.data.Dataset) -> tf.data.Dataset:
        fused = tf.data.experimental.parse_example_dataset(spec, num_parallel_calls=threads)
        return records.batch(BATCH).apply(fused).prefetch(AUTOTUNE)

    ways = {"one file after the other": one, "files side by side": many, "interleave, any order": mixed}
    if order != "file order":
        ways = {f"{name}, shuffle({BUFFER:_})": records.shuffle(BUFFER) for name, records in ways.items()}
    made = {f"{name}, map(parse_example)": parse(records) for name, records in ways.items()}
    made |= {f"{name}, parse_example_dataset": fuse(records) for name, records in ways.items()}
    return made


def time_best(loops: dict[str, Callable[[], int]], rounds: int) -> tuple[str, float]:
    """Return the fastest of some loops, each run once before, and its rows per second."""
    rates = {}
    for name, loop in loops.items():
        for _ in range(rounds):
            started = time.perf_counter()
            rate = loop() / (time.perf_counter() - started)
            rates[name] = max(rate, rates.get(name, 0))
        print(f"  {name}: {rates[name]:,.0f} rows/s", flush=True)
    best = max(rates, key=rates.__getitem__)
    return best, rates[best]


def sum_columns(batches: Any) -> tuple[int, float]:
    """Return sums that do not depend on the order."""
    whole, parts = 0, 0.0
    for batch in batches:
        whole += int(np.asarray(batch["i3"]).sum())
        parts += float(np.asarray(batch["f1"], np.float64).sum())
    return whole, round(parts, 3)


def measure_columns(options: argparse.Namespace, lines: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="tfrkit-tf-") as folder:
        write_shards(Path(folder), options.rows, options.threads)
        paths = sorted(str(path) for path in Path(folder).glob("*.tfrecord"))
        for order in ORDERS:
            batches = open_batches(paths, order, BATCH, options.threads)
            wanted = sum_columns(batches)
            ways = make_ways(paths, order, options.threads)
            for name, dataset in ways.items():
                found = sum_columns(dataset)
                if found[0] != wanted[0] or abs(found[1] - wanted[1]) > 1:
                    raise SystemExit(f"{order}, {name}: other values than tfrkit's, {found} and {wanted}")

            def drain(dataset: tf.data.Dataset) -> int:
                return sum(int(batch["i0"].shape[0]) for batch in dataset)

            _, ours = time_best({"tfrkit": lambda batches=batches: read(batches)[0]}, options.rounds)
            loops = {name: lambda dataset=dataset: drain(dataset) for name, dataset in ways.items()}
            best, theirs = time_best(loops, 1)
            bar = 12 if order == "file order" else 50
            lines.append(
                f"| columns, {order} (M rows/s) | {ours / 1e6:.2f} | {theirs / 1e6:.2f} | {ours / theirs:.1f} | {bar} "
                f"| {best} |"
            )


def measure_photos(options: argparse.Namespace, lines: list[str]) -> None:
    spec = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def decode(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        row = tf.io.parse_single_example(record, spec)
        image = tf.io.decode_jpeg(row["image"], channels=3, dct_method="INTEGER_ACCURATE", fancy_upscaling=True)
        image = tf.image.resize(image, (SIDE, SIDE), method="bilinear", antialias=True)
        return tf.cast(tf.round(image), tf.uint8), row["label"]

    with tempfile.TemporaryDirectory(prefix="tfrkit-tf-") as folder:
        path = Path(folder) / "photos.tfrecord"
        write_photos(path, options.photos)
        batches = tfr.open(path).shuffle(seed=1).decode(image=(SIDE, SIDE)).batch(64, threads=options.threads)
        records = tf.data.TFRecordDataset(str(path)).shuffle(1000)
        ways = {
            "map(decode_jpeg, resize), AUTOTUNE": records.map(decode, AUTOTUNE, deterministic=False).batch(64),
            "the same, parallel batch": records.map(decode, AUTOTUNE, deterministic=False).batch(
                64, num_parallel_calls=AUTOTUNE, deterministic=False
            ),
        }
        first = tfr.open(path).decode(image=(SIDE, SIDE))[0]
        for image, label in map(decode, tf.data.TFRecordDataset(str(path)).take(1)):
            far = np.abs(image.numpy().astype(float) - first["image"]).mean()
            if far > CLOSE or int(label) != first["label"]:
                raise SystemExit(f"other pixels than tfrkit's, by {far:.2f} on average")
        for _ in batches:  # once before, as TensorFlow's own
            pass
        _, ours = time_best({"tfrkit": lambda: sum(len(batch["label"]) for batch in batches)}, 1)
        loops = {
            name: lambda dataset=dataset: sum(int(labels.shape[0]) for _, labels in dataset.prefetch(AUTOTUNE))
            for name, dataset in ways.items()
        }
        for loop in loops.values():
            loop()
        best, theirs = time_best(loops, 1)
    lines.append(
        f"| JPEG decode and resize with antialias (images/s) | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} | 1.3 "
        f"| {best} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    options.rows, options.photos, options.rounds = (32_000, 128, 1) if options.quick else (2_000_000, 12_000, 3)
    lines = [
        f"| work, {options.threads} threads | tfrkit | TensorFlow {tf.__version__} | ratio | bar | its best way |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    print(f"# Against TensorFlow\n\n{describe_machine()}\n", flush=True)
    measure_columns(options, lines)
    measure_photos(options, lines)
    print("\n" + "\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
