"""TensorFlow feeding a training loop: tf.data with a shuffle buffer, in the forms that might be the fastest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import data
import numpy as np
import tensorflow as tf
from work import (
    BATCH,
    IMAGE_BATCH,
    IMAGE_SHUFFLE_BUFFER,
    PIXELS,
    SHUFFLE_BUFFER,
    Answer,
    Digest,
    PixelDigest,
    Work,
    drain,
    score_mixing,
)


def make_works(root: Path, spec: dict[str, Any], *, threads: int) -> dict[str, Work]:
    """Return what TensorFlow does here, by the name of the work; ``spec`` is that of the tabular Examples."""
    sizes = data.sizes_of(root)
    shuffled = shuffle_datasets(str(root / "tabular.tfrecord"), spec, threads)
    plainest = next(iter(shuffled.values()))
    works = {
        "shuffle_tabular": Work(
            ways_of(shuffled, sizes.tabular),
            partial(digest_rows, plainest),
            note=partial(describe_mixing, plainest, sizes.tabular),
        )
    }
    for name, antialias in (("images_decode", False), ("images_decode_antialias", True)):
        decoded = image_datasets(str(root / "jpegs.tfrecord"), antialias, threads)
        works[name] = Work(
            ways_of(decoded, sizes.jpegs), partial(digest_images, next(iter(decoded.values())), sizes.jpegs)
        )
    return works


def ways_of(datasets: dict[str, tf.data.Dataset], count: int) -> dict[str, Callable[[], int]]:
    """Return one way for each dataset; built and traced before the timing."""

    def drain_dataset(dataset: tf.data.Dataset) -> int:
        drain(dataset)
        return count

    return {way: partial(drain_dataset, dataset) for way, dataset in datasets.items()}


def shuffle_datasets(path: str, spec: dict[str, Any], threads: int) -> dict[str, tf.data.Dataset]:
    """Return batches of parsed Examples from a shuffle buffer."""

    def by_map(buffer: int | None, parallel: int) -> tf.data.Dataset:
        records = tf.data.TFRecordDataset(path, buffer_size=buffer).shuffle(SHUFFLE_BUFFER).batch(BATCH)
        parsed = records.map(lambda batch: tf.io.parse_example(batch, spec), num_parallel_calls=parallel)
        return parsed.prefetch(tf.data.AUTOTUNE)

    def by_fused_operation(buffer: int | None) -> tf.data.Dataset:
        records = tf.data.TFRecordDataset(path, buffer_size=buffer).shuffle(SHUFFLE_BUFFER).batch(BATCH)
        parse = tf.data.experimental.parse_example_dataset(spec, num_parallel_calls=threads)
        return records.apply(parse).prefetch(tf.data.AUTOTUNE)

    name = f"shuffle({SHUFFLE_BUFFER:_})"
    return {
        f"{name}, map(parse_example), AUTOTUNE": by_map(None, tf.data.AUTOTUNE),
        f"{name}, map(parse_example), {threads} calls": by_map(None, threads),
        f"{name}, map(parse_example), {threads} calls, 8 MB buffer": by_map(8 << 20, threads),
        f"{name}, parse_example_dataset": by_fused_operation(None),
        f"{name}, parse_example_dataset, 8 MB buffer": by_fused_operation(8 << 20),
    }


def image_datasets(path: str, antialias: bool, threads: int) -> dict[str, tf.data.Dataset]:
    """Return batches of decoded and resized images from a shuffle buffer."""
    spec = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def decode(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        row = tf.io.parse_single_example(record, spec)
        image = tf.io.decode_jpeg(row["image"], channels=3, dct_method="INTEGER_ACCURATE", fancy_upscaling=True)
        image = tf.image.resize(image, (PIXELS, PIXELS), method="bilinear", antialias=antialias)
        return tf.cast(tf.round(image), tf.uint8), row["label"]

    def make(parallel: int, *, in_order: bool, parallel_batch: int | None = None) -> tf.data.Dataset:
        records = tf.data.TFRecordDataset(path).shuffle(IMAGE_SHUFFLE_BUFFER)
        decoded = records.map(decode, num_parallel_calls=parallel, deterministic=in_order)
        order = {} if parallel_batch is None else {"num_parallel_calls": parallel_batch, "deterministic": in_order}
        batches = decoded.batch(IMAGE_BATCH, **order)
        return batches.prefetch(tf.data.AUTOTUNE)

    return {
        "map(decode_jpeg, resize), AUTOTUNE": make(tf.data.AUTOTUNE, in_order=True),
        "map(decode_jpeg, resize), AUTOTUNE, any order": make(tf.data.AUTOTUNE, in_order=False),
        f"map(decode_jpeg, resize), {threads} calls, any order": make(threads, in_order=False),
        "map(decode_jpeg, resize), AUTOTUNE, parallel batch": make(
            tf.data.AUTOTUNE, in_order=False, parallel_batch=tf.data.AUTOTUNE
        ),
    }


def digest_rows(dataset: tf.data.Dataset) -> Answer:
    """Digest every column, in any order."""
    digest = Digest()
    for batch in dataset:
        columns = {name: column.numpy() for name, column in batch.items()}
        digest.add_unordered(
            {name: list(values) if values.dtype == object else values for name, values in columns.items()}
        )
    return digest.result()


def describe_mixing(dataset: tf.data.Dataset, count: int) -> str:
    """Say how well the rows were mixed, by the numbers they have in the file."""
    finder = data.RowFinder(count)
    numbers = [finder.find({name: batch[name].numpy() for name in ("float_0", "float_1")}) for batch in dataset]
    return f"mixing {score_mixing(np.concatenate(numbers)):.3f} of 1"


def digest_images(dataset: tf.data.Dataset, count: int) -> Answer:
    """Digest labels and some pixels."""
    digest = PixelDigest(count)
    for images, labels in dataset:
        digest.add(images.numpy(), labels.numpy())
    return digest.result()
