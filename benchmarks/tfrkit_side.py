"""tfrkit's ways: code as in the README, with nothing tuned for the benchmark."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import data
import numpy as np
import old_scripts
import tfrkit_build
import tfrkit_loading
import tfrkit_rows
import tfrkit_tools
from work import BATCH, DIGEST_PICKS, IMAGE_BATCH, Answer, Digest, Work, digest_strings, drain

import tfrkit as tfr
from tfrkit.compat import tensorflow as compat


def make_works(root: Path, out: Path, *, threads: int) -> dict[str, Work]:
    """Return what tfrkit does here, by the name of the work."""
    sizes = data.sizes_of(root)
    works: dict[str, Work] = {}
    for name, file in (
        ("records_small", "small.tfrecord"),
        ("records_large", "images.tfrecord"),
        ("records_gzip", "packed.tfrecord.gz"),
        ("records_zlib", "packed.tfrecord.zlib"),
    ):
        path = root / file
        works[name] = Work(
            {"ds.records()": partial(read_records, path, count_of(sizes, file))}, partial(digest_records, path)
        )
    for name, file, batch in (
        ("columns_tabular", "tabular.tfrecord", BATCH),
        ("columns_images", "images.tfrecord", IMAGE_BATCH),
        ("columns_tokens", "tokens.tfrecord", BATCH),
        ("columns_sequences", "sequences.tfrecord", BATCH),
        ("columns_gzip", "packed.tfrecord.gz", BATCH),
        ("columns_zlib", "packed.tfrecord.zlib", BATCH),
    ):
        path = root / file
        works[name] = Work(
            {f"ds.batch({batch})": partial(read_columns, path, batch, threads, count_of(sizes, file))},
            partial(digest_columns, path, batch),
        )
    images = root / "images.tfrecord"
    works["records_large"].ways["ds.records().views()"] = partial(view_records, images, count_of(sizes, images.name))
    works["verify_small"] = Work({"tfr.verify(parse=False)": partial(verify, root / "small.tfrecord")})
    for name, file, picked in (
        ("random_small", "small.tfrecord", "all"),
        ("random_large", "images.tfrecord", "all"),
        ("random_large_unchecked", "images.tfrecord", "none"),
    ):
        works[name] = pick_work(root / file, picked, sizes.picks, count_of(sizes, file))

    plain, packed = out / "tfrkit.tfrecord", out / "tfrkit.tfrecord.gz"
    works["write_rows"] = Work({"Writer.write": partial(write_rows, plain, sizes.packed)}, output=plain)
    works["write_messages"] = Work(
        {"tfrkit.compat, tf.train.Example": partial(write_messages, plain, sizes.packed)}, output=plain
    )
    works["write_columns"] = Work({"Writer.write_columns": partial(write_columns, plain, sizes.packed)}, output=plain)
    for name, level in (("write_gzip", "default"), ("write_gzip_fast", "fast")):
        works[name] = Work(
            {f"Writer.write_record, level {level}": partial(write_gzip, root, packed, level)}, output=packed
        )
    works |= tfrkit_rows.make_works(root)
    works |= old_scripts.make_works(compat, root)
    works |= tfrkit_loading.make_works(root, threads=threads)
    works |= tfrkit_tools.make_works(root, out, threads=threads)
    return works | tfrkit_build.make_works(root, threads=threads)


def count_of(sizes: data.Sizes, file: str) -> int:
    """Return how many records a file holds."""
    return int(getattr(sizes, file.partition(".")[0]))


# -- reading -----------------------------------------------------------------------------------------------------------


def read_records(path: Path, count: int) -> int:
    """Take every payload as Python bytes."""
    with tfr.open(path) as ds:
        drain(ds.records())
    return count


def view_records(path: Path, count: int) -> int:
    """Take every payload as a view, every byte checked and none copied."""
    with tfr.open(path) as ds:
        drain(ds.records().views())
    return count


def digest_records(path: Path) -> Answer:
    """Digest all payloads."""
    with tfr.open(path) as ds:
        return digest_strings(ds.records())


def verify(path: Path) -> int:
    """Check both checksums of every frame."""
    result = tfr.verify(path, parse=False)
    assert result.ok
    return result.records


def read_columns(path: Path, batch: int, threads: int, count: int) -> int:
    """Take every batch. The schema is given, as TensorFlow is given its own."""
    schema = keep(f"schema of {path}", lambda: tfr.open(path).schema)
    with tfr.open(path, schema=schema) as ds:
        drain(ds.batch(batch, threads=threads))
    return count


def digest_columns(path: Path, batch: int) -> Answer:
    """Digest every column."""
    digest = Digest()
    with tfr.open(path) as ds:
        for columns in ds.batch(batch):
            if columns.keys() == {"context", "feature_lists"}:
                for name, column in columns["context"].items():
                    add_column(digest, f"context/{name}", column)
                for name, column in columns["feature_lists"].items():
                    digest.add_lengths(f"feature_lists/{name}", column.lengths)
                    add_frames(digest, f"feature_lists/{name} step", column.values)
            else:
                for name, column in columns.items():
                    add_column(digest, name, column)
    return digest.result()


def add_column(digest: Digest, name: str, column: Any) -> None:
    """Feed a dense, bytes or ragged column to the digest."""
    if isinstance(column, tfr.Ragged):
        digest.add_lengths(name, column.lengths)
        add_column(digest, name, column.values)
    elif isinstance(column, tfr.BytesColumn):
        digest.add_strings(name, column)
    else:
        digest.add(name, column)


def add_frames(digest: Digest, name: str, frames: Any) -> None:
    """Feed the frames of a list; frames of one size are what TensorFlow calls ragged, with equal lengths."""
    if isinstance(frames, tfr.Ragged):
        add_column(digest, name, frames)
        return
    width = frames.shape[1] if isinstance(frames, np.ndarray) and frames.ndim == 2 else 1
    digest.add_lengths(name, np.full(len(frames), width))
    add_column(digest, name, frames)


def pick_work(path: Path, verify: str, num_picks: int, num_records: int) -> Work:
    """Return the work of fetching payloads one at a time; frame offsets are known, as with an index."""
    picks = data.uniform_picks(num_picks, num_records)
    records = tfr.open(path, verify=verify).records()

    def fetch_all() -> int:
        for index in picks:
            records[index]
        return num_picks

    return Work(
        {"ds.records()[i]": fetch_all}, lambda: digest_strings(records[index] for index in picks[:DIGEST_PICKS])
    )


# -- writing -----------------------------------------------------------------------------------------------------------

_kept: dict[str, Any] = {}  # inputs of timed writes, made during the untimed first call


def keep(name: str, make: Callable[[], Any]) -> Any:
    """Return an input, made once."""
    if name not in _kept:
        _kept[name] = make()
    return _kept[name]


def write_rows(path: Path, count: int) -> int:
    """Write Python dicts one by one."""
    rows = keep("rows", partial(data.tabular_rows, count))
    with tfr.Writer(path) as writer:
        for row in rows:
            writer.write(row)
    return len(rows)


def write_messages(path: Path, count: int) -> int:
    """Write the same rows as a script for TensorFlow does, with its names."""
    rows = keep("rows", partial(data.tabular_rows, count))
    with compat.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            writer.write(data.example_of(compat, row))
    return len(rows)


def write_columns(path: Path, count: int) -> int:
    """Write NumPy columns and lists of bytes in one call."""
    columns = keep("columns", partial(data.tabular_columns, count))
    with tfr.Writer(path) as writer:
        writer.write_columns(columns)
    return count


def write_gzip(root: Path, path: Path, level: str) -> int:
    """Write ready payloads through gzip."""
    payloads = keep("payloads", lambda: list(tfr.open(root / "packed.tfrecord").records()))
    with tfr.Writer(path, compression="gzip", level=level) as writer:
        for payload in payloads:
            writer.write_record(payload)
    return len(payloads)
