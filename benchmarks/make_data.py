"""Making the benchmark's data: TensorFlow writes the records, once, into the cache folder.

TensorFlow and what makes pictures and tables are imported only where files are made.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import data

PHOTO_FOLDERS = 4  # classes of the folder of photos

# Every file or folder, and the size of which it is made.
FILES = {
    "small.tfrecord": "small",
    "images.tfrecord": "images",
    "tabular.tfrecord": "tabular",
    "packed.tfrecord": "packed",
    "packed.tfrecord.gz": "packed",
    "packed.tfrecord.zlib": "packed",
    "tokens.tfrecord": "tokens",
    "sequences.tfrecord": "sequences",
    "jpegs.tfrecord": "jpegs",
    "captchas": "captchas",
    "photos": "photos",
    "table.csv": "table",
    "table.parquet": "table",
}


def make_data(root: Path, sizes: data.Sizes) -> None:
    """Make every file in ``root`` that is missing or was made with another version or size."""
    marker = root / "data.json"
    held = json.loads(marker.read_text()) if marker.exists() else {}
    made = held["sizes"] if (held.get("version"), held.get("seed")) == (data.VERSION, data.SEED) else {}
    root.mkdir(parents=True, exist_ok=True)
    wanted = vars(sizes)
    names = [name for name, size in FILES.items() if made.get(size) != wanted[size] or not (root / name).exists()]
    marker.write_text(json.dumps({"version": data.VERSION, "seed": data.SEED, "sizes": without_names(made, names)}))
    makers = find_makers(root, sizes)
    for name in names:
        print(f"making {root.name}/{name}", flush=True)
        remove_with_copies(root, name)
        unfinished = root / f"unfinished-{name}"
        makers[name](unfinished)
        shutil.move(unfinished, root / name)
    marker.write_text(json.dumps({"version": data.VERSION, "seed": data.SEED, "sizes": wanted}))


def without_names(made: dict[str, int], names: list[str]) -> dict[str, int]:
    """Return the sizes that need not be made again if making the named files is stopped half-way."""
    stale = {FILES[name] for name in names}
    return {size: count for size, count in made.items() if size not in stale}


def remove_with_copies(root: Path, name: str) -> None:
    """Remove a file or folder, and the copies of it in formats of peers."""
    stem = name.partition(".")[0]
    for old in (root / name, root / f"unfinished-{name}", *root.glob(f"{stem}.*")):
        if old.name == name or old.name not in FILES:
            shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)


def find_makers(root: Path, sizes: data.Sizes) -> dict[str, Callable[[Path], None]]:
    """Return what makes each file."""
    packed = cache(lambda: list(examples(data.tabular_rows(sizes.packed))))
    return {
        "small.tfrecord": lambda path: write_records(path, data.small_payloads(sizes.small)),
        "images.tfrecord": lambda path: write_records(path, examples(data.image_rows(sizes.images))),
        "tabular.tfrecord": lambda path: write_records(path, examples(data.tabular_rows(sizes.tabular))),
        "packed.tfrecord": lambda path: write_records(path, packed()),
        "packed.tfrecord.gz": lambda path: write_records(path, packed(), "GZIP"),
        "packed.tfrecord.zlib": lambda path: write_records(path, packed(), "ZLIB"),
        "tokens.tfrecord": lambda path: write_records(
            path, examples({"tokens": row} for row in data.token_rows(sizes.tokens))
        ),
        "sequences.tfrecord": lambda path: write_records(path, sequences(data.sequence_rows(sizes.sequences))),
        "jpegs.tfrecord": lambda path: write_records(path, examples(jpeg_rows(sizes.jpegs))),
        "captchas": partial(write_captchas, sizes.captchas),
        "photos": partial(write_photos, root / "jpegs.tfrecord", sizes.photos),
        "table.csv": partial(write_csv, sizes.table),
        "table.parquet": partial(write_parquet, sizes.table),
    }


def jpeg_rows(num_rows: int) -> Iterator[dict[str, Any]]:
    """Yield photos with their number."""
    from pictures import make_photos

    for number, photo in enumerate(make_photos(num_rows, data.SEED)):
        yield {"image": photo, "label": number}


def write_records(path: Path, payloads: Iterable[bytes], compression: str = "") -> None:
    """Write a TFRecord file with TensorFlow."""
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path), options=compression) as writer:
        for payload in payloads:
            writer.write(payload)


def write_captchas(count: int, folder: Path) -> None:
    """Write a flat folder of captchas named by their text."""
    from pictures import make_captchas

    folder.mkdir()
    for name, picture in make_captchas(count, data.SEED):
        (folder / name).write_bytes(picture)


def write_photos(source: Path, count: int, folder: Path) -> None:
    """Write the photos of the Examples as files into folders of classes, several times where more are wanted."""
    import tensorflow as tf

    spec = {"image": tf.io.FixedLenFeature([], tf.string)}
    photos = [
        tf.io.parse_single_example(record, spec)["image"].numpy() for record in tf.data.TFRecordDataset(str(source))
    ]
    for number, photo in enumerate(islice(cycle(photos), count)):
        path = folder / f"class_{number * PHOTO_FOLDERS // count}" / f"{number:05d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(photo)


def write_csv(num_rows: int, path: Path) -> None:
    """Write the table as text."""
    import pandas

    pandas.DataFrame(data.table_columns(num_rows)).to_csv(path, index=False)


def write_parquet(num_rows: int, path: Path) -> None:
    """Write the table as Parquet."""
    import pandas

    pandas.DataFrame(data.table_columns(num_rows)).to_parquet(path, index=False)


def examples(rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Yield rows as serialized Examples."""
    import tensorflow as tf

    return (data.example_of(tf, row) for row in rows)


def sequences(rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Yield rows as serialized SequenceExamples."""
    import tensorflow as tf

    return (data.sequence_of(tf, row) for row in rows)


def main() -> None:
    """Make the data of the folder that is given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    make_data(options.root, data.QUICK if options.quick else data.FULL)


if __name__ == "__main__":
    main()
