"""The same questions answered by loops over tf.data, as people write them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import data
import numpy as np
import tensorflow as tf
from tool_questions import (
    AVERAGED,
    GROUP,
    NUM_BINS,
    NUM_TOP,
    QUANTILES,
    Figures,
    digest_figures,
    digest_groups,
)
from work import BATCH, IMAGE_BATCH, Work


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
            {"parse, then NumPy and Counter on whole columns": lambda: len(describe()) and sizes.tabular},
            lambda: digest_figures(describe(), sizes.tabular),
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
    """Yield batches, parsed on all threads."""
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


def describe_columns(path: str, spec: dict[str, Any], threads: int) -> dict[str, Figures]:
    """Take the figures that `tfr stats` prints of every column.

    A million numbers are few: columns are put together, and one sort of each gives all but the moments. That is
    quicker than figures batch by batch, and takes memory for all values. That every row has one value is checked by
    the parser.
    """
    pieces: dict[str, list[np.ndarray]] = {}
    for batch in iterate_batches(path, spec, threads):
        for name, values in batch.items():
            pieces.setdefault(name, []).append(values)
    with ThreadPoolExecutor(threads) as pool:  # NumPy sorts without the interpreter lock
        return dict(zip(pieces, pool.map(describe_column, pieces.values()), strict=True))


def describe_column(pieces: list[np.ndarray]) -> Figures:
    """Take the figures of one column."""
    values = np.concatenate(pieces)
    return describe_texts(values.tolist()) if values.dtype == object else describe_numbers(values)


def describe_texts(values: list[bytes]) -> Figures:
    """Take the figures of the sizes, and count the values."""
    counter = Counter(values)
    top = counter.most_common(NUM_TOP)
    sizes = describe_numbers(np.fromiter(map(len, values), np.int64, len(values)))
    return sizes._replace(distinct=len(counter), top=top)


def describe_numbers(values: np.ndarray) -> Figures:
    """Take all figures of numbers that are finite, from one sort of them."""
    in_order = np.sort(values)
    low, high = in_order[0].item(), in_order[-1].item()
    starts = np.concatenate([[0], np.flatnonzero(in_order[1:] != in_order[:-1]) + 1])
    counts = np.diff(starts, append=len(values))
    is_few = isinstance(low, int) and high - low < NUM_BINS
    edges = np.arange(low, high + 2) if is_few else np.linspace(low, high, NUM_BINS + 1)
    inner = np.searchsorted(in_order, edges[1:-1])
    # Of many values that come once, the few that come more often.
    least = np.partition(counts, -NUM_TOP)[-NUM_TOP] if len(counts) > NUM_TOP else 0
    often = np.flatnonzero(counts >= least)
    often = often[np.argsort(-counts[often], kind="stable")[:NUM_TOP]]
    return Figures(
        low,
        high,
        float(values.mean(dtype=np.float64)),
        float(values.std(dtype=np.float64)),
        int(np.count_nonzero(values == 0)),
        in_order[[int(share * (len(values) - 1)) for share in QUANTILES.values()]].tolist(),
        np.diff(inner, prepend=0, append=len(values)).tolist(),
        len(starts),
        list(zip(in_order[starts[often]].tolist(), counts[often].tolist(), strict=True)),
    )


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
