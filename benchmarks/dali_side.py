"""DALI's CPU pipeline: TFRecord reader, decoder and resize in its own threads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import data
import numpy as np
from loader_peers import make_index
from work import IMAGE_BATCH, IMAGE_SHUFFLE_BUFFER, PIXELS, Answer, PixelDigest, Work


def make_works(peer: str, root: Path, *, threads: int) -> dict[str, Work]:
    """Return what DALI does here, by the name of the work."""
    count = data.sizes_of(root).jpegs
    works = {}
    for name, antialias in (("images_decode", False), ("images_decode_antialias", True)):
        make = cache(partial(make_pipeline, root / "jpegs.tfrecord", antialias, threads))
        works[name] = Work({"CPU pipeline": partial(drain, make, count)}, partial(digest, make, count))
    return works


def make_pipeline(path: Path, antialias: bool, threads: int) -> Any:
    """Return a running pipeline."""
    from nvidia.dali import fn, pipeline_def, tfrecord, types

    @pipeline_def(batch_size=IMAGE_BATCH, num_threads=threads, device_id=None)
    def define() -> tuple[Any, Any]:
        row = fn.readers.tfrecord(
            path=str(path),
            index_path=str(make_index(path)),
            features={
                "image": tfrecord.FixedLenFeature((), tfrecord.string, ""),
                "label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
            },
            random_shuffle=True,
            initial_fill=IMAGE_SHUFFLE_BUFFER,
            pad_last_batch=True,
        )
        image = fn.decoders.image(row["image"], device="cpu", jpeg_fancy_upsampling=True)
        return (
            fn.resize(
                image,
                size=(PIXELS, PIXELS),
                interp_type=types.INTERP_LINEAR,
                antialias=antialias,
                dtype=types.UINT8,
            ),
            row["label"],
        )

    pipeline = define()
    pipeline.build()
    return pipeline


def batches_of(pipeline: Any, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield one epoch, whose last batch the reader fills up."""
    for start in range(0, count, IMAGE_BATCH):
        size = min(IMAGE_BATCH, count - start)
        images, labels = pipeline.run()
        yield images.as_array()[:size], labels.as_array()[:size]


def drain(make: Any, count: int) -> int:
    """Take every batch of an epoch."""
    for _ in batches_of(make(), count):
        pass
    return count


def digest(make: Any, count: int) -> Answer:
    """Digest labels and some pixels."""
    result = PixelDigest(count)
    for images, labels in batches_of(make(), count):
        result.add(images, labels)
    return result.result()
