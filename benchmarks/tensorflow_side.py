"""TensorFlow's ways: each piece of work in every form that might be its fastest.

Which of them is fastest differs between versions and machines, so all are tried in each run and the best one is timed.
Results stay tensors: turning string tensors into NumPy would only slow TensorFlow down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import data
import old_scripts
import tensorflow as tf
import tensorflow_build
import tensorflow_loading
import tensorflow_tools
from work import BATCH, IMAGE_BATCH, Answer, Digest, Work, digest_strings, drain

BUFFERS = {"default buffer": None, "1 MB buffer": 1 << 20, "8 MB buffer": 8 << 20}


def make_works(root: Path, out: Path, *, threads: int) -> dict[str, Work]:
    """Return what TensorFlow does here, by the name of the work."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    sizes = data.sizes_of(root)
    small, images = str(root / "small.tfrecord"), str(root / "images.tfrecord")
    works = {
        "records_small": Work(record_ways(small, sizes.small), partial(digest_records, small)),
        "records_large": Work(record_ways(images, sizes.images), partial(digest_records, images)),
    }
    rows, gzip = out / "tensorflow.tfrecord", out / "tensorflow.tfrecord.gz"
    for name in ("write_rows", "write_messages", "write_columns"):
        works[name] = Work({"tf.train.Example": partial(write_rows, rows, sizes.packed)}, output=rows)
    for name in ("write_gzip", "write_gzip_fast"):
        works[name] = Work({"TFRecordWriter": partial(write_gzip, root, gzip)}, output=gzip)
    for name, path, spec, batch, count in (
        ("columns_tabular", "tabular.tfrecord", tabular_spec(), BATCH, sizes.tabular),
        ("columns_images", "images.tfrecord", image_spec(), IMAGE_BATCH, sizes.images),
        ("columns_gzip", "packed.tfrecord.gz", tabular_spec(), BATCH, sizes.packed),
        ("columns_zlib", "packed.tfrecord.zlib", tabular_spec(), BATCH, sizes.packed),
    ):
        ways = parse_ways(str(root / path), {"FixedLenFeature": spec}, batch, count, threads)
        works[name] = Work(ways, partial(digest_examples, str(root / path), spec, batch))
    works["columns_tokens"] = Work(
        parse_ways(str(root / "tokens.tfrecord"), token_specs(), BATCH, sizes.tokens, threads),
        partial(digest_examples, str(root / "tokens.tfrecord"), token_specs()["RaggedFeature"], BATCH),
    )
    works["columns_sequences"] = Work(
        sequence_ways(str(root / "sequences.tfrecord"), sizes.sequences, threads),
        partial(digest_sequences, str(root / "sequences.tfrecord")),
    )
    # The nearest it has to rows of values: a row of tensors takes many times as long.
    for name in ("tabular", "images", "tokens", "sequences"):
        works[f"rows_{name}"] = works[f"columns_{name}"]
    for kind in ("gzip", "zlib"):
        path = str(root / ("packed.tfrecord.gz" if kind == "gzip" else "packed.tfrecord.zlib"))
        works[f"records_{kind}"] = Work(record_ways(path, sizes.packed), partial(digest_records, path))
    works |= old_scripts.make_works(tf, root)
    if threads > 1:
        works |= tensorflow_loading.make_works(root, tabular_spec(), threads=threads)
        works |= tensorflow_tools.make_works(root, out, tabular_spec(), threads=threads)
    return works | tensorflow_build.make_works(root)


def digest_file(path: str, reader: str) -> Answer:
    """Return what TensorFlow reads from a file or a folder."""
    if reader == "tabular":
        return digest_examples(path, tabular_spec(), BATCH)
    return tensorflow_build.digest_built(path, reader)


# -- records -----------------------------------------------------------------------------------------------------------


def compression_of(path: str) -> str:
    """Return the compression option for TensorFlow."""
    return {"gz": "GZIP", "zlib": "ZLIB"}.get(path.rpartition(".")[2], "")


def iterate_records(path: str) -> Iterator[bytes]:
    """Open TensorFlow's lightest reader: it yields Python bytes and checks both checksums."""
    kinds = tf.compat.v1.io.TFRecordCompressionType
    kind = {"": kinds.NONE, "GZIP": kinds.GZIP, "ZLIB": kinds.ZLIB}[compression_of(path)]
    return tf.compat.v1.io.tf_record_iterator(path, options=tf.compat.v1.io.TFRecordOptions(kind))


def open_records(path: str, *, buffer: int | None) -> tf.data.Dataset:
    """Open the tf.data reader."""
    return tf.data.TFRecordDataset(path, compression_type=compression_of(path), buffer_size=buffer)


def record_ways(path: str, count: int) -> dict[str, Callable[[], int]]:
    """Return the ways to pass over all records."""

    def by_iterator() -> int:
        drain(iterate_records(path))
        return count

    def by_batches(dataset: tf.data.Dataset, as_bytes: bool) -> int:
        for records in dataset:
            if as_bytes:
                drain(records.numpy().tolist())
        return count

    ways: dict[str, Callable[[], int]] = {"tf_record_iterator": by_iterator}
    batch = IMAGE_BATCH if "images" in path else BATCH
    # A compressed scan may leave its records in tensors; the plain one must return Python bytes.
    as_bytes = not compression_of(path)
    for name, buffer in BUFFERS.items():
        ways[f"TFRecordDataset.batch, {name}"] = partial(
            by_batches, open_records(path, buffer=buffer).batch(batch), as_bytes
        )
    return ways


def digest_records(path: str) -> Answer:
    """Digest all payloads."""
    return digest_strings(iterate_records(path))


# -- Examples to columns -----------------------------------------------------------------------------------------------


def tabular_spec() -> dict[str, Any]:
    """Return the parse spec of the tabular Examples."""
    spec: dict[str, Any] = {}
    for kind, dtype, count in (
        ("float", tf.float32, data.NUM_FLOATS),
        ("int", tf.int64, data.NUM_INTS),
        ("bytes", tf.string, data.NUM_BYTES),
    ):
        spec.update({f"{kind}_{index}": tf.io.FixedLenFeature([], dtype) for index in range(count)})
    return spec


def image_spec() -> dict[str, Any]:
    """Return the parse spec of the image Examples."""
    ints = {name: tf.io.FixedLenFeature([], tf.int64) for name in ("height", "width", "label")}
    return {"image": tf.io.FixedLenFeature([], tf.string), **ints}


def token_specs() -> dict[str, Any]:
    """Return both ways TensorFlow has for lists of any length."""
    return {
        "RaggedFeature": {"tokens": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)},
        "VarLenFeature": {"tokens": tf.io.VarLenFeature(tf.int64)},
    }


def parse_ways(path: str, specs: dict[str, Any], batch: int, count: int, threads: int) -> dict[str, Callable[[], int]]:
    """Return the ways to parse a file of Examples batch by batch."""

    def by_map(spec: dict[str, Any], buffer: int | None, parallel: int | None, size: int) -> tf.data.Dataset:
        records = open_records(path, buffer=buffer).batch(size)
        parsed = records.map(lambda batch: tf.io.parse_example(batch, spec), num_parallel_calls=parallel)
        return parsed.prefetch(2) if parallel else parsed

    def by_fused_operation(spec: dict[str, Any], buffer: int | None) -> tf.data.Dataset:
        records = open_records(path, buffer=buffer).batch(batch)
        return records.apply(tf.data.experimental.parse_example_dataset(spec, num_parallel_calls=threads)).prefetch(2)

    def by_iterator(spec: dict[str, Any]) -> int:
        payloads = []
        for payload in iterate_records(path):
            payloads.append(payload)
            if len(payloads) == batch:
                tf.io.parse_example(payloads, spec)
                payloads = []
        if payloads:
            tf.io.parse_example(payloads, spec)
        return count

    ways: dict[str, Callable[[], int]] = {}
    for kind, spec in specs.items():
        datasets = {
            "map(parse_example)": by_map(spec, None, None, batch),
            "map(parse_example), 8 MB buffer": by_map(spec, 8 << 20, None, batch),
            "map(parse_example), parallel, prefetch": by_map(spec, None, threads, batch),
            "map(parse_example), parallel, prefetch, 8 MB buffer": by_map(spec, 8 << 20, threads, batch),
            "parse_example_dataset": by_fused_operation(spec, None),
            "parse_example_dataset, 8 MB buffer": by_fused_operation(spec, 8 << 20),
        }
        if batch == IMAGE_BATCH:
            datasets["map(parse_example), batch 16"] = by_map(spec, None, None, 16)
            datasets["map(parse_example), batch 256"] = by_map(spec, None, None, 256)
        ways.update({f"{kind}, {way}": partial(drain_dataset, dataset, count) for way, dataset in datasets.items()})
        ways[f"{kind}, tf_record_iterator + eager parse_example"] = partial(by_iterator, spec)
    return ways


def drain_dataset(dataset: tf.data.Dataset, count: int) -> int:
    """Iterate over a dataset built and traced before the timing."""
    drain(dataset)
    return count


def add_tensor(digest: Digest, name: str, value: Any) -> None:
    """Feed a dense, string or ragged tensor to the digest."""
    if isinstance(value, tf.RaggedTensor):
        digest.add_lengths(name, value.row_lengths().numpy())
        add_tensor(digest, name, value.values)
    elif value.dtype == tf.string:
        digest.add_strings(name, value.numpy().reshape(-1).tolist())
    else:
        digest.add(name, value.numpy())


def digest_examples(path: str, spec: dict[str, Any], batch: int) -> Answer:
    """Digest every column."""
    digest = Digest()
    for records in open_records(path, buffer=None).batch(batch):
        for name, value in tf.io.parse_example(records, spec).items():
            add_tensor(digest, name, value)
    return digest.result()


# -- SequenceExamples to columns ---------------------------------------------------------------------------------------


def sequence_specs() -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the context spec and the two ways to spell the feature lists."""
    context = {
        "id": tf.io.FixedLenFeature([], tf.int64),
        "score": tf.io.FixedLenFeature([], tf.float32),
        "name": tf.io.FixedLenFeature([], tf.string),
    }
    fixed = {
        "action": tf.io.FixedLenSequenceFeature([], tf.int64),
        "position": tf.io.FixedLenSequenceFeature([4], tf.float32),
        "word": tf.io.FixedLenSequenceFeature([], tf.string),
    }
    ragged = {name: tf.io.RaggedFeature(feature.dtype, row_splits_dtype=tf.int64) for name, feature in fixed.items()}
    return context, {"FixedLenSequenceFeature": fixed, "RaggedFeature": ragged}


def sequence_ways(path: str, count: int, threads: int) -> dict[str, Callable[[], int]]:
    """Return the ways to parse a file of SequenceExamples batch by batch."""
    context, specs = sequence_specs()

    def by_map(spec: dict[str, Any], buffer: int | None, parallel: int | None, size: int) -> tf.data.Dataset:
        records = open_records(path, buffer=buffer).batch(size)
        parsed = records.map(
            lambda batch: tf.io.parse_sequence_example(batch, context, spec), num_parallel_calls=parallel
        )
        return parsed.prefetch(2) if parallel else parsed

    ways: dict[str, Callable[[], int]] = {}
    for kind, spec in specs.items():
        datasets = {
            "map(parse_sequence_example)": by_map(spec, None, None, BATCH),
            "map(parse_sequence_example), 8 MB buffer": by_map(spec, 8 << 20, None, BATCH),
            "map(parse_sequence_example), batch 256": by_map(spec, None, None, 256),
            "map(parse_sequence_example), parallel, prefetch": by_map(spec, None, threads, BATCH),
        }
        ways.update({f"{kind}, {way}": partial(drain_dataset, dataset, count) for way, dataset in datasets.items()})
    return ways


def digest_sequences(path: str) -> Answer:
    """Digest context and lists; a list's lengths are those of its rows, then those of its steps."""
    context, specs = sequence_specs()
    digest = Digest()
    for records in open_records(path, buffer=None).batch(BATCH):
        scalars, lists, _ = tf.io.parse_sequence_example(records, context, specs["RaggedFeature"])
        for name, value in scalars.items():
            add_tensor(digest, f"context/{name}", value)
        for name, value in lists.items():
            digest.add_lengths(f"feature_lists/{name}", value.row_lengths().numpy())
            add_tensor(digest, f"feature_lists/{name} step", value.values)
    return digest.result()


# -- writing -----------------------------------------------------------------------------------------------------------


def write_rows(path: Path, count: int) -> int:
    """Write rows the tutorial's way: build an Example, serialize it, write it."""
    rows = kept_rows(count)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            writer.write(data.example_of(tf, row))
    return len(rows)


_kept: dict[str, Any] = {}  # inputs of timed writes, made during the untimed first call


def kept_rows(count: int) -> list[dict[str, Any]]:
    """Return the rows to write, made once."""
    if "rows" not in _kept:
        _kept["rows"] = data.tabular_rows(count)
    return _kept["rows"]


def write_gzip(root: Path, path: Path) -> int:
    """Write ready payloads through TensorFlow's gzip."""
    if "payloads" not in _kept:
        _kept["payloads"] = list(iterate_records(str(root / "packed.tfrecord")))
    with tf.io.TFRecordWriter(str(path), options="GZIP") as writer:
        for payload in _kept["payloads"]:
            writer.write(payload)
    return len(_kept["payloads"])
