"""tfrkit feeding a training loop: shuffled tables, decoded images, PyTorch.

Every pass opens the file and finds its records on the clock; the schema is given, as TensorFlow is given its
own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import data
import numpy as np
from work import BATCH, IMAGE_BATCH, PIXELS, Answer, Digest, PixelDigest, Work, drain, score_mixing

import tfrkit as tfr

SEED = 7

MakeBatches = Callable[[], Any]


def make_works(root: Path, *, threads: int) -> dict[str, Work]:
    """Return what tfrkit does here, by the name of the work."""
    sizes = data.sizes_of(root)
    tabular, jpegs = root / "tabular.tfrecord", root / "jpegs.tfrecord"
    shuffle = partial(shuffle_rows, tabular, threads)
    load = partial(load_torch, root / "packed.tfrecord", threads)
    works = {
        "shuffle_tabular": Work(
            {f"ds.shuffle(seed={SEED}).batch({BATCH})": partial(drain_batches, shuffle, sizes.tabular)},
            partial(digest_rows, shuffle),
            note=partial(describe_mixing, shuffle, sizes.tabular),
        ),
        "torch_tabular": Work(
            {f"ds.shuffle().batch({BATCH}).to_torch()": partial(drain_batches, load, sizes.packed)},
            partial(digest_rows, load),
        ),
    }
    for name, antialias in (("images_decode", False), ("images_decode_antialias", True)):
        decode = partial(decode_images, jpegs, antialias, threads)
        works[name] = Work(
            {f"ds.shuffle().decode(image=...).batch({IMAGE_BATCH})": partial(drain_batches, decode, sizes.jpegs)},
            partial(digest_images, decode, sizes.jpegs),
        )
    return works


@cache
def find_schema(path: Path) -> tfr.Schema:
    """Return the schema, found once."""
    return tfr.open(path).schema


def open_shuffled(path: Path) -> tfr.Dataset:
    """Return the records in an order that mixes the whole file."""
    return tfr.open(path, schema=find_schema(path)).shuffle(seed=SEED)


def shuffle_rows(path: Path, threads: int) -> Any:
    """Return batches of shuffled rows."""
    return open_shuffled(path).batch(BATCH, threads=threads)


def decode_images(path: Path, antialias: bool, threads: int) -> Any:
    """Return batches of decoded and resized images, shuffled."""
    image = {"size": (PIXELS, PIXELS), "antialias": antialias}
    return open_shuffled(path).decode(image=image).batch(IMAGE_BATCH, threads=threads)


def load_torch(path: Path, num_workers: int) -> Any:
    """Return a PyTorch loader of shuffled batches."""
    return open_shuffled(path).batch(BATCH).to_torch(num_workers=num_workers)


def drain_batches(make: MakeBatches, count: int) -> int:
    """Take every batch of an epoch."""
    drain(make())
    return count


def digest_rows(make: MakeBatches) -> Answer:
    """Digest every column of an epoch, in any order."""
    digest = Digest()
    for batch in make():
        digest.add_unordered({name: plain_column(column) for name, column in batch.items()})
    return digest.result()


def plain_column(column: Any) -> Any:
    """Return a column as an array or a list of bytes."""
    return list(column) if isinstance(column, tfr.BytesColumn | list) else np.asarray(column)


def describe_mixing(make: MakeBatches, count: int) -> str:
    """Say how well the rows of an epoch were mixed, by the numbers they have in the file."""
    finder = data.RowFinder(count)
    return f"mixing {score_mixing(np.concatenate([finder.find(batch) for batch in make()])):.3f} of 1"


def digest_images(make: MakeBatches, count: int) -> Answer:
    """Digest labels and some pixels."""
    digest = PixelDigest(count)
    for batch in make():
        digest.add(batch["image"], batch["label"])
    return digest.result()
