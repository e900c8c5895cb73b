"""The same questions answered by loops over tf.data, as people write them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import data
import numpy as np
import tensorflow as tf
from tool_questions import AVERAGED, GROUP, STAT_FEATURES, digest_groups, digest_moments
from work import BATCH, IMAGE_BATCH, Work

TOP_VALUES = 20
HISTOGRAM_BINS = 10


def make_works(root: Path, out: Path, spec: dict[str, Any], *, threads: int) -> dict[str, Work]:
    """Return what the loops do here, by the name of the work."""
    sizes = data.sizes_of(root)
    tabular = str(root / "tabular.tfrecord")
    packed = out / "tensorflow.tfrecord.gz"
    group = partial(group_rows, tabular, {name: spec[name] for name in (GROUP, AVERAGED)}, threads)
    describe = partial(describe_columns, tabular, spec, threads)
    return {
        "sql_tabular": Work(
            {"parse the two columns, count with NumPy": lambda: len(group()) and sizes.tabular},
            lambda: digest_groups(group()),
        ),
        "stats_tabular": Work(
            {"parse, NumPy and Counter": lambda: len(describe()) and sizes.tabular},
            lambda: digest_moments({name: describe()[name] for name in STAT_FEATURES}),
        ),
        "verify_large": Work(
            {
                "TFRecordDataset.batch": partial(read_all, str(root / "images.tfrecord"), sizes.images, None),
                "TFRecordDataset.batch, 8 MB buffer": partial(
                    read_all, str(root / "images.tfrecord"), sizes.images, 8 << 20
                ),
            }
        ),
        "convert_gzip": Work(
            {
                "tf_record_iterator, TFRecordWriter": partial(
                    pack, str(root / "packed.tfrecord"), str(packed), sizes.packed
                )
            },
            output=packed,
        ),
    }


def iterate_batches(path: str, spec: dict[str, Any], threads: int) -> Iterator[dict[str, np.ndarray]]:
    """Yield parsed batches, parsed on as many threads as there are."""
    parsed = tf.data.TFRecordDataset(path, buffer_size=8 << 20).batch(BATCH)
    parsed = parsed.map(lambda records: tf.io.parse_example(records, spec), num_parallel_calls=threads).prefetch(2)
    for batch in parsed:
        yield {name: value.numpy() for name, value in batch.items()}


def group_rows(path: str, spec: dict[str, Any], threads: int) -> list[tuple[int, int, float]]:
    """Count and average by group; the groups are known to be small numbers."""
    counts = np.zeros(10, np.int64)
    sums = np.zeros(10, np.float64)
    for batch in iterate_batches(path, spec, threads):
        counts += np.bincount(batch[GROUP], minlength=10)
        sums += np.bincount(batch[GROUP], weights=batch[AVERAGED], minlength=10)
    return [(key, int(count), total / count) for key, (count, total) in enumerate(zip(counts, sums, strict=True))]


def describe_columns(path: str, spec: dict[str, Any], threads: int) -> dict[str, tuple[float, float, float]]:
    """Take range, mean, deviation and a histogram of each number column, and the most frequent of each text column."""
    figures: dict[str, list[float]] = {}
    histograms: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    counters: dict[str, Counter[bytes]] = {}
    rows = 0
    for batch in iterate_batches(path, spec, threads):
        for name, values in batch.items():
            if values.dtype == object:
                counters.setdefault(name, Counter()).update(values.tolist())
                continue
            exact = values.astype(np.float64)
            one = figures.setdefault(name, [math.inf, -math.inf, 0.0, 0.0])
            one[0], one[1] = min(one[0], float(values.min())), max(one[1], float(values.max()))
            one[2] += float(exact.sum())
            one[3] += float(np.square(exact).sum())
            if name not in histograms:
                histograms[name] = np.histogram(exact, HISTOGRAM_BINS)
            else:
                counts, edges = histograms[name]
                histograms[name] = counts + np.histogram(exact, edges)[0], edges
        rows += len(values)
    for counter in counters.values():
        counter.most_common(TOP_VALUES)
    return {name: (low, high, total / rows) for name, (low, high, total, _) in figures.items()}


def read_all(path: str, count: int, buffer: int | None) -> int:
    """Read every record, which compares both checksums, and drop it."""
    for _ in tf.data.TFRecordDataset(path, buffer_size=buffer).batch(IMAGE_BATCH):
        pass
    return count


def pack(source: str, target: str, count: int) -> int:
    """Copy a file record by record into a compressed one."""
    with tf.io.TFRecordWriter(target, "GZIP") as writer:
        for record in tf.compat.v1.io.tf_record_iterator(source):
            writer.write(record)
    return count
