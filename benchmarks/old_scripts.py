"""How scripts for TensorFlow read: the same code with its names, run by TensorFlow and by tfrkit.compat."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import data
import numpy as np
from work import BATCH, Answer, Digest, Work, drain

ROWS_SHARE = 20  # rows of tensors take TensorFlow half a millisecond each, so a part of the file is enough


def make_works(tf: Any, root: Path) -> dict[str, Work]:
    """Return the scripts, by the name of the work."""
    path, count = str(root / "packed.tfrecord"), data.sizes_of(root).packed
    works = {}
    for name, way, read, num_rows in (
        ("script_rows", "map(parse_single_example)", read_rows, count // ROWS_SHARE),
        ("script_map_batch", "map(parse_single_example).batch", read_mapped, count),
        ("script_batches", "batch.map(parse_example)", read_batches, count),
    ):
        dataset = read(tf, path, num_rows)
        works[name] = Work({way: partial(count_rows, dataset, num_rows)}, partial(digest_elements, dataset))
    return works


def spec_of(tf: Any) -> dict[str, Any]:
    """Return the parse spec of the tabular Examples."""
    kinds = (("float", tf.float32, data.NUM_FLOATS), ("int", tf.int64, data.NUM_INTS))
    return {
        f"{kind}_{index}": tf.io.FixedLenFeature([], dtype)
        for kind, dtype, count in (*kinds, ("bytes", tf.string, data.NUM_BYTES))
        for index in range(count)
    }


def parser_of(tf: Any) -> Callable[[Any], Any]:
    """Return the function of the tutorial."""
    spec = spec_of(tf)

    def parse(record: Any) -> Any:
        return tf.io.parse_single_example(record, spec)

    return parse


def read_rows(tf: Any, path: str, num_rows: int) -> Any:
    """Parse each record; an element is a row of tensors."""
    return tf.data.TFRecordDataset(path).take(num_rows).map(parser_of(tf))


def read_mapped(tf: Any, path: str, num_rows: int) -> Any:
    """Parse each record, then batch the rows."""
    return tf.data.TFRecordDataset(path).map(parser_of(tf)).batch(BATCH)


def read_batches(tf: Any, path: str, num_rows: int) -> Any:
    """Batch the records, then parse each batch."""
    spec = spec_of(tf)
    return tf.data.TFRecordDataset(path).batch(BATCH).map(lambda records: tf.io.parse_example(records, spec))


def count_rows(dataset: Any, num_rows: int) -> int:
    """Take all elements."""
    drain(dataset)
    return num_rows


def digest_elements(dataset: Any) -> Answer:
    """Digest every column."""
    digest = Digest()
    for element in dataset:
        for name, value in element.items():
            array = np.atleast_1d(np.asarray(value.numpy()))
            if array.dtype.kind in "OS":
                digest.add_strings(name, array.astype(object).tolist())
            else:
                digest.add(name, array)
    return digest.result()
