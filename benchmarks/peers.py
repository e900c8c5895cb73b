"""The peers: other readers of TFRecord files, and two other formats with random access.

| side | format | checksums |
| --- | --- | --- |
| tfr-reader | TFRecord, scalar or list by record number | none checked |
| tfrecord (vahidk) | TFRecord, in file order | none checked |
| bagz | its own: records and a table of their ends | has none |
| array_record | its own: Riegeli chunks | checked |

Those that feed a training loop are in `loader_peers.py` and `dali_side.py`, the one that takes statistics is in
`validation_side.py`. A peer that is not installed has no works
and is named as absent in the report.
"""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import data
import numpy as np
from work import DIGEST_PICKS, IMAGE_BATCH, Answer, Digest, Work, digest_strings, drain

READERS = ("tfr-reader", "tfrecord", "bagz", "array_record")
LOADERS = ("webdataset", "litdata", "grain", "mosaicml-streaming", "nvidia-dali-cuda120")
VALIDATION = "tensorflow-data-validation"
PEERS = (*READERS, *LOADERS, VALIDATION)  # the names of their distributions


def make_works(peer: str, root: Path, *, threads: int) -> dict[str, Work]:
    """Return what a peer does here, by the name of the work."""
    if peer == VALIDATION:
        validated: dict[str, Work] = importlib.import_module("validation_side").make_works(root, threads=threads)
        return validated
    if peer in LOADERS or threads > 1:
        module = importlib.import_module("dali_side" if "dali" in peer else "loader_peers")
        works: dict[str, Work] = module.make_works(peer, root, threads=threads)
        return works
    makers = {
        "tfr-reader": make_tfr_reader,
        "tfrecord": make_vahidk,
        "bagz": make_bagz,
        "array_record": make_array_record,
    }
    return makers[peer](root)


def pick_work(get: Callable[[int], bytes], way: str, num_picks: int, num_records: int) -> Work:
    """Return the work of fetching records one at a time."""
    picks = data.uniform_picks(num_picks, num_records)

    def fetch_all() -> int:
        for index in picks:
            get(index)
        return num_picks

    return Work({way: fetch_all}, lambda: digest_strings(get(index) for index in picks[:DIGEST_PICKS]))


def make_tfr_reader(root: Path) -> dict[str, Work]:
    """tfr-reader's compiled readers, without reopening the file for every record as its Python class does."""
    from tfr_reader.cython.decoder import example_from_bytes
    from tfr_reader.cython.indexer import TFRecordFileReader

    sizes = data.sizes_of(root)
    small = TFRecordFileReader(str(root / "small.tfrecord"), save_index=False)
    images = TFRecordFileReader(str(root / "images.tfrecord"), save_index=False)

    def columns() -> Iterator[dict[str, Any]]:
        for start in range(0, sizes.images, IMAGE_BATCH):
            rows = [
                example_from_bytes(images.get_example(index)).features.feature
                for index in range(start, min(start + IMAGE_BATCH, sizes.images))
            ]
            batch: dict[str, Any] = {"image": [row["image"].bytes_list.value[0] for row in rows]}
            for name in ("height", "width", "label"):
                batch[name] = np.array([row[name].int64_list.value[0] for row in rows], np.int64)
            yield batch

    def parse_all() -> int:
        drain(columns())
        return sizes.images

    def digest() -> Answer:
        result = Digest()
        for batch in columns():
            for name, values in batch.items():
                if name == "image":
                    result.add_strings(name, values)
                else:
                    result.add(name, values)
        return result.result()

    return {
        "random_small": pick_work(small.get_example, "TFRecordFileReader.get_example", sizes.picks, sizes.small),
        "random_large": pick_work(images.get_example, "TFRecordFileReader.get_example", sizes.picks, sizes.images),
        "columns_images": (images_work := Work({"get_example + example_from_bytes": parse_all}, digest)),
        "rows_images": images_work,
    }


def make_vahidk(root: Path) -> dict[str, Work]:
    """vahidk's tfrecord, whose iterator yields views that are valid until the next step."""
    from tfrecord.reader import tfrecord_iterator

    sizes = data.sizes_of(root)

    def read_all(path: Path, count: int) -> int:
        drain(tfrecord_iterator(str(path)))
        return count

    def read_bytes(path: Path, count: int) -> int:
        for record in tfrecord_iterator(str(path)):
            bytes(record)
        return count

    small, images = root / "small.tfrecord", root / "images.tfrecord"
    return {
        "records_small": Work(
            {"tfrecord_iterator, to bytes": partial(read_bytes, small, sizes.small)},
            lambda: digest_strings(map(bytes, tfrecord_iterator(str(small)))),
        ),
        "records_large": Work(
            {"tfrecord_iterator": partial(read_all, images, sizes.images)},
            lambda: digest_strings(map(bytes, tfrecord_iterator(str(images)))),
        ),
    }


def copy_once(root: Path, name: str, suffix: str, write: Callable[[Path, Iterator[bytes]], None]) -> Path:
    """Return a peer-format copy of a TFRecord file, made when it is not there yet."""
    from plain_frames import iterate_payloads

    target = root / f"{name}{suffix}"
    if not target.exists():
        partial_copy = target.with_name(f"unfinished-{target.name}")
        write(partial_copy, iterate_payloads(root / f"{name}.tfrecord"))
        shutil.move(partial_copy, target)
    return target


def make_bagz(root: Path) -> dict[str, Work]:
    """Bagz without compression."""
    import bagz

    sizes = data.sizes_of(root)

    def write(path: Path, payloads: Iterator[bytes]) -> None:
        options = bagz.Writer.Options(compression=bagz.CompressionNone())
        with bagz.Writer(path, options) as writer:
            for payload in payloads:
                writer.write(payload)

    options = bagz.Reader.Options(compression=bagz.CompressionNone(), limits_storage=bagz.LimitsStorage.IN_MEMORY)
    small = bagz.Reader(copy_once(root, "small", ".bagz", write), options)
    images = bagz.Reader(copy_once(root, "images", ".bagz", write), options)
    large = pick_work(images.__getitem__, "Reader[i]", sizes.picks, sizes.images)
    return {
        "random_small": pick_work(small.__getitem__, "Reader[i]", sizes.picks, sizes.small),
        "random_large": large,
        "random_large_unchecked": large,
    }


def make_array_record(root: Path) -> dict[str, Work]:
    """ArrayRecord with one record a chunk, uncompressed, and the reader options it documents for random access."""
    from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter

    sizes = data.sizes_of(root)

    def write(path: Path, payloads: Iterator[bytes]) -> None:
        writer = ArrayRecordWriter(str(path), "group_size:1,uncompressed")
        for payload in payloads:
            writer.write(payload)
        writer.close()

    options = "readahead_buffer_size:0,max_parallelism:0"
    works = {}
    for work, name, count in (("random_small", "small", sizes.small), ("random_large", "images", sizes.images)):
        reader = ArrayRecordReader(str(copy_once(root, name, ".arrayrecord", write)), options)
        # It is slow with small records and would take most of the run: a hundredth of the picks is enough.
        num_picks = max(sizes.picks // 100, 10) if name == "small" else sizes.picks // 10

        def get(index: int, reader: Any = reader) -> bytes:
            return reader.read([index])[0]

        work_of = pick_work(get, "ArrayRecordReader.read([i])", num_picks, count)
        works[work] = Work(work_of.ways)
    return works
