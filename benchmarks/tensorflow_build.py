"""The scripts people write to build TFRecord files: one process, Pillow or pandas, and ``tf.train.Example``."""

from __future__ import annotations

import io
import random
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import data
import numpy as np
import tensorflow as tf
from pictures import CAPTCHA_LENGTH, CAPTCHA_LETTERS
from PIL import Image
from work import BATCH, COMPARED_IMAGES, IMAGE_BATCH, PIXEL_STEP, PIXELS, Answer, Digest, Work

NUM_SHARDS = 4


def make_works(root: Path) -> dict[str, Work]:
    """Return what the scripts build here, by the name of the work."""
    out = root / "built-tensorflow"
    prepare = partial(empty, out)
    photos = {
        "jpeg_build": ("Pillow for the size, tf.train.Example", read_size),
        "jpeg_build_checked": ("tf.io.decode_jpeg for the size, tf.train.Example", decode_size),
    }
    works = {
        name: Work(
            {way: partial(build_photos, root / "photos", out, measure)}, output=out, reader="photos", prepare=prepare
        )
        for name, (way, measure) in photos.items()
    }
    works["captcha_build"] = Work(
        {
            "Pillow, tf.train.Example": partial(
                build_captchas, root / "captchas", out, data.sizes_of(root).test_captchas
            )
        },
        output=out,
        reader="captchas",
        prepare=prepare,
    )
    for name in ("csv", "parquet"):
        works[f"{name}_build"] = Work(
            {"pandas, tf.train.Example": partial(build_table, root / f"table.{name}", out)},
            output=out,
            reader="table",
            prepare=prepare,
        )
    return works


def empty(folder: Path) -> None:
    """Remove what an earlier run has written."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()


# -- the scripts -------------------------------------------------------------------------------------------------------


def build_captchas(folder: Path, out: Path, num_test: int) -> int:
    """Shuffle, keep some for test, resize, turn gray, store raw pixels and one label a character."""
    paths = sorted(folder.iterdir())
    random.Random(0).shuffle(paths)
    for name, chosen in (("test", paths[:num_test]), ("train", paths[num_test:])):
        with tf.io.TFRecordWriter(str(out / f"{name}.tfrecord")) as writer:
            for path in chosen:
                image = Image.open(path).resize((PIXELS, PIXELS)).convert("L")
                row: dict[str, Any] = {"image": image.tobytes()}
                for place in range(CAPTCHA_LENGTH):
                    row[f"label{place}"] = CAPTCHA_LETTERS.index(path.name[place])
                writer.write(data.example_of(tf, row))
    return len(paths)


def build_photos(folder: Path, out: Path, measure: Any) -> int:
    """Store files as they are, with class and size, mixed, in a few shards."""
    classes = sorted(path.name for path in folder.iterdir())
    paths = [(path, label) for label, name in enumerate(classes) for path in sorted((folder / name).iterdir())]
    random.Random(0).shuffle(paths)
    for shard in range(NUM_SHARDS):
        with tf.io.TFRecordWriter(str(out / f"train-{shard}.tfrecord")) as writer:
            for path, label in paths[shard::NUM_SHARDS]:
                content = path.read_bytes()
                height, width = measure(content)
                row = {
                    "image/encoded": content,
                    "image/format": b"jpeg",
                    "image/height": height,
                    "image/width": width,
                    "image/channels": 3,
                    "image/filename": f"{path.parent.name}/{path.name}".encode(),
                    "image/class/label": label,
                    "image/class/text": classes[label].encode(),
                }
                writer.write(data.example_of(tf, row))
    return len(paths)


def read_size(content: bytes) -> tuple[int, int]:
    """Return height and width from the header."""
    image = Image.open(io.BytesIO(content))
    return image.height, image.width


def decode_size(content: bytes) -> tuple[int, int]:
    """Return height and width of the decoded image, as TensorFlow's own ImageNet script does."""
    height, width, _ = tf.io.decode_jpeg(content, channels=3).shape
    return height, width


def build_table(path: Path, out: Path) -> int:
    """Read a table with pandas and write its rows one by one."""
    import pandas

    frame = pandas.read_csv(path) if path.suffix == ".csv" else pandas.read_parquet(path)
    columns = list(frame.columns)
    with tf.io.TFRecordWriter(str(out / "table.tfrecord")) as writer:
        for values in frame.itertuples(index=False, name=None):
            row = {
                name: value.encode() if isinstance(value, str) else value
                for name, value in zip(columns, values, strict=True)
            }
            writer.write(data.example_of(tf, row))
    return len(frame)


# -- reading back what anybody wrote -----------------------------------------------------------------------------------


def digest_built(path: str, reader: str) -> Answer:
    """Return what TensorFlow reads from a built dataset, a file or a folder."""
    return {"captchas": digest_captchas, "photos": digest_photos, "table": digest_table}[reader](
        find_shards(Path(path))
    )


def find_shards(path: Path) -> list[Path]:
    """Return the files of a dataset."""
    return [path] if path.is_file() else sorted(file for file in path.iterdir() if ".tfrecord" in file.name)


def iterate_rows(paths: list[Path], spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield parsed batches."""
    size = IMAGE_BATCH if any("image" in name for name in spec) else BATCH
    for records in tf.data.TFRecordDataset([str(path) for path in paths]).batch(size):
        yield {name: value.numpy() for name, value in tf.io.parse_example(records, spec).items()}


def scalars(**names: tf.DType) -> dict[str, Any]:
    """Return the spec of features of one value."""
    return {name: tf.io.FixedLenFeature([], dtype) for name, dtype in names.items()}


def digest_captchas(paths: list[Path]) -> Answer:
    """Digest labels and the size of each split, and some pixels of some pictures."""
    labels = [f"label{place}" for place in range(CAPTCHA_LENGTH)]
    spec = scalars(image=tf.string, **dict.fromkeys(labels, tf.int64))
    digest = Digest()
    pictures: dict[tuple[int, ...], np.ndarray] = {}
    for split in ("train", "test"):
        count = 0
        for batch in iterate_rows([path for path in paths if split in path.name], spec):
            digest.add_unordered({name: batch[name] for name in labels})
            for image, *text in zip(batch["image"], *(batch[name].tolist() for name in labels), strict=True):
                pixels = np.frombuffer(image, np.uint8).reshape(PIXELS, PIXELS)
                pictures[tuple(text)] = pixels[PIXEL_STEP // 2 :: PIXEL_STEP, ::PIXEL_STEP]
                count += 1
        digest.add(f"size of {split}", np.array([count]))
    every = max(1, len(pictures) // COMPARED_IMAGES)
    for text in sorted(pictures)[::every]:
        digest.add_near(f"pixels of {''.join(CAPTCHA_LETTERS[letter] for letter in text)}", pictures[text])
    return digest.result()


def digest_photos(paths: list[Path]) -> Answer:
    """Digest every feature, in any order."""
    ints = dict.fromkeys(("image/height", "image/width", "image/channels", "image/class/label"), tf.int64)
    strings = dict.fromkeys(("image/encoded", "image/format", "image/filename", "image/class/text"), tf.string)
    return digest_unordered(paths, scalars(**ints, **strings))


def digest_table(paths: list[Path]) -> Answer:
    """Digest every column, in any order."""
    ints = dict.fromkeys(("id", "age", "time"), tf.int64)
    floats = dict.fromkeys(("price", "weight", "score"), tf.float32)
    return digest_unordered(paths, scalars(**ints, **floats, city=tf.string, user=tf.string))


def digest_unordered(paths: list[Path], spec: dict[str, Any]) -> Answer:
    """Digest columns, in any order."""
    digest = Digest()
    for batch in iterate_rows(paths, spec):
        digest.add_unordered(
            {name: list(values) if values.dtype == object else values for name, values in batch.items()}
        )
    return digest.result()
