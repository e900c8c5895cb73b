"""Peers that feed a training loop with images, each from its own format, in its own way, in worker processes.

All of them leave decoding to their user, so all of them get the same two lines of Pillow, which is what their own
examples do. Pillow's bilinear filter always weighs every pixel of the source (antialiasing).

| side | format | order |
| --- | --- | --- |
| webdataset | tar files, in file order | a buffer |
| litdata | its own: chunks | shuffled |
| grain | array_record | shuffled |
| mosaicml-streaming | its own: MDS | shuffled |
| tfrecord (vahidk) | TFRecord and a text index, in file order | a buffer |

Worker processes live on from pass to pass where a library can do that, so that their start is not timed. Imports are
made where they are needed: each side runs in a process of its own, and may not be installed.
"""

from __future__ import annotations

import io
import math
import shutil
import struct
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import Any

import data
import numpy as np
from PIL import Image
from plain_frames import iterate_frames, iterate_payloads
from work import (
    BATCH,
    IMAGE_BATCH,
    IMAGE_SHUFFLE_BUFFER,
    PIXELS,
    Answer,
    Digest,
    PixelDigest,
    Work,
    drain,
)

Batches = Callable[[], Iterable[tuple[Any, Any]]]  # of images and labels, one epoch each time it is iterated over

NUM_TARS = 8  # WebDataset deals whole files out to its workers
LABEL = struct.Struct("<q")


def make_works(peer: str, root: Path, *, threads: int) -> dict[str, Work]:
    """Return what a peer does here, by the name of the work."""
    makers: dict[str, Callable[[Path, int], tuple[str, Batches]]] = {
        "webdataset": make_webdataset,
        "litdata": make_litdata,
        "grain": make_grain,
        "mosaicml-streaming": make_mosaicml,
        "tfrecord": make_vahidk,
    }
    way, batches = makers[peer](root, threads)
    count = data.sizes_of(root).jpegs
    works = {"images_decode_antialias": image_work(way, cache(batches), count)}
    if peer == "tfrecord":
        works["torch_tabular"] = make_vahidk_table(root, threads)
    return works


def image_work(way: str, batches: Batches, count: int) -> Work:
    """Return the work of one pass over batches of images and labels."""

    def drain_all() -> int:
        drain(batches())
        return count

    def digest() -> Answer:
        result = PixelDigest(count)
        for images, labels in batches():
            result.add(np.asarray(images), np.asarray(labels))
        return result.result()

    return Work({way: drain_all}, digest)


def decode(photo: bytes) -> np.ndarray:
    """Decode and resize, as everybody does it."""
    image = Image.open(io.BytesIO(photo)).convert("RGB")
    return np.array(image.resize((PIXELS, PIXELS), Image.Resampling.BILINEAR))


def stack_rows(rows: list[tuple[np.ndarray, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Put rows into a batch."""
    return np.stack([image for image, _ in rows]), np.array([label for _, label in rows])


def make_copy(root: Path, suffix: str, write: Callable[[Path, Iterator[tuple[bytes, int]]], None]) -> Path:
    """Return the photos in a peer's format, a file or a folder, made when it is not there yet."""
    target = root / f"jpegs{suffix}"
    if not target.exists():
        unfinished = root / f"unfinished-{target.name}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.unlink(missing_ok=True)
        write(unfinished, iterate_photos(root))
        shutil.move(unfinished, target)
    return target


def iterate_photos(root: Path) -> Iterator[tuple[bytes, int]]:
    """Yield the JPEGs with their labels, which are their numbers; see `jpeg_side.load_photos`."""
    for label, payload in enumerate(iterate_payloads(root / "jpegs.tfrecord")):
        start, stop = payload.index(b"\xff\xd8\xff"), payload.rindex(b"\xff\xd9") + 2
        yield payload[start:stop], label


# -- webdataset --------------------------------------------------------------------------------------------------------


def make_webdataset(root: Path, workers: int) -> tuple[str, Batches]:
    """WebDataset, with its pipeline in the workers of PyTorch's loader."""
    import torch
    import webdataset

    def write(folder: Path, photos: Iterator[tuple[bytes, int]]) -> None:
        folder.mkdir()
        with ExitStack() as stack:
            tars = [stack.enter_context(tarfile.open(folder / f"{n}.tar", "w")) for n in range(NUM_TARS)]
            for photo, label in photos:
                for suffix, content in (("jpg", photo), ("cls", str(label).encode())):
                    entry = tarfile.TarInfo(f"{label:05d}.{suffix}")
                    entry.size = len(content)
                    tars[label % NUM_TARS].addfile(entry, io.BytesIO(content))

    urls = [str(path) for path in sorted(make_copy(root, ".tars", write).iterdir())]

    def batches() -> Iterable[tuple[Any, Any]]:
        dataset = (
            webdataset.WebDataset(urls, shardshuffle=NUM_TARS)
            .shuffle(IMAGE_SHUFFLE_BUFFER)
            .to_tuple("jpg", "cls")
            .map_tuple(decode, int)
            .batched(IMAGE_BATCH, collation_fn=stack_rows)
        )
        return torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers, persistent_workers=True)

    return f"WebDataset, DataLoader, {workers} workers", batches


# -- litdata -----------------------------------------------------------------------------------------------------------


def make_litdata(root: Path, workers: int) -> tuple[str, Batches]:
    """LitData, with its own loader."""
    import litdata
    from litdata.streaming.writer import BinaryWriter

    def write(folder: Path, photos: Iterator[tuple[bytes, int]]) -> None:
        folder.mkdir()
        writer = BinaryWriter(str(folder), chunk_bytes=64 << 20)
        for photo, label in photos:
            writer[label] = {"image": photo, "label": label}
        writer.done()
        writer.merge()

    class Photos(litdata.StreamingDataset):
        def __getitem__(self, index: Any) -> tuple[np.ndarray, int]:
            row = super().__getitem__(index)
            return decode(row["image"]), row["label"]

    folder = make_copy(root, ".litdata", write)

    def batches() -> Iterable[tuple[Any, Any]]:
        dataset = Photos(str(folder), shuffle=True, drop_last=False)
        return litdata.StreamingDataLoader(
            dataset, batch_size=IMAGE_BATCH, num_workers=workers, drop_last=False, persistent_workers=True
        )

    return f"StreamingDataset, StreamingDataLoader, {workers} workers", batches


# -- grain -------------------------------------------------------------------------------------------------------------


def decode_entry(entry: bytes) -> tuple[np.ndarray, int]:
    """Decode what the array_record file holds: a label, then the JPEG."""
    return decode(entry[LABEL.size :]), LABEL.unpack_from(entry)[0]


class Epochs:
    """Epoch after epoch of one endless iterator."""

    def __init__(self, batches: Iterator[Any], num_batches: int) -> None:
        self._batches = batches
        self._num_batches = num_batches

    def __iter__(self) -> Iterator[Any]:
        return islice(self._batches, self._num_batches)


def make_grain(root: Path, workers: int) -> tuple[str, Batches]:
    """Grain, from array_record, which is what it is made for."""
    import grain
    from array_record.python.array_record_module import ArrayRecordWriter

    def write(path: Path, photos: Iterator[tuple[bytes, int]]) -> None:
        writer = ArrayRecordWriter(str(path), "group_size:1,uncompressed")
        for photo, label in photos:
            writer.write(LABEL.pack(label) + photo)
        writer.close()

    path = make_copy(root, ".arrayrecord", write)

    def batches() -> Iterable[tuple[Any, Any]]:
        source = grain.sources.ArrayRecordDataSource(str(path))
        dataset = grain.MapDataset.source(source).shuffle(seed=7).map(decode_entry).batch(IMAGE_BATCH).repeat()
        # By default 500 batches are made ahead, also while other sides are timed.
        ahead = grain.ReadOptions(num_threads=2, prefetch_buffer_size=2)
        options = grain.MultiprocessingOptions(num_workers=workers)
        return Epochs(iter(dataset.to_iter_dataset(ahead).mp_prefetch(options)), math.ceil(len(source) / IMAGE_BATCH))

    return f"MapDataset, mp_prefetch, {workers} workers", batches


# -- mosaicml-streaming ------------------------------------------------------------------------------------------------


def make_mosaicml(root: Path, workers: int) -> tuple[str, Batches]:
    """MosaicML's StreamingDataset from local files, in PyTorch's loader."""
    import torch

    operators = declare_operators(torch)
    import streaming

    def write(folder: Path, photos: Iterator[tuple[bytes, int]]) -> None:
        with streaming.MDSWriter(out=str(folder), columns={"image": "bytes", "label": "int"}) as writer:
            for photo, label in photos:
                writer.write({"image": photo, "label": label})

    class Photos(streaming.StreamingDataset):
        def __getitem__(self, index: Any) -> tuple[np.ndarray, int]:
            row = super().__getitem__(index)
            return decode(row["image"]), row["label"]

    folder = make_copy(root, ".mds", write)

    def batches() -> Iterable[tuple[Any, Any]]:
        assert operators is not None
        streaming.base.util.clean_stale_shared_memory()
        dataset = Photos(local=str(folder), shuffle=True, batch_size=IMAGE_BATCH)
        return torch.utils.data.DataLoader(
            dataset, batch_size=IMAGE_BATCH, num_workers=workers, persistent_workers=True
        )

    return f"StreamingDataset, DataLoader, {workers} workers", batches


def declare_operators(torch: Any) -> Any:
    """Make torchvision importable with a PyTorch without CUDA, while the result is held.

    MosaicML imports torchvision and uses nothing of it here. The one that fits a CPU build of PyTorch is not where pip
    finds it, and the other stops at the two operators whose library it cannot load.
    """
    library = torch.library.Library("torchvision", "FRAGMENT")
    if torch.version.cuda is None and "+cpu" not in metadata.version("torchvision"):
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


# -- vahidk's tfrecord -------------------------------------------------------------------------------------------------


def decode_row(row: dict[str, Any]) -> tuple[np.ndarray, int]:
    """Decode a row of vahidk's dataset."""
    return decode(row["image"]), int(row["label"][0])


def make_vahidk(root: Path, workers: int) -> tuple[str, Batches]:
    """vahidk's dataset with its index, in PyTorch's loader."""
    import torch
    from tfrecord.torch.dataset import TFRecordDataset

    index = make_index(root / "jpegs.tfrecord")
    buffer = min(IMAGE_SHUFFLE_BUFFER, data.sizes_of(root).jpegs // workers // 2)

    def batches() -> Iterable[tuple[Any, Any]]:
        dataset = TFRecordDataset(
            str(root / "jpegs.tfrecord"),
            str(index),
            {"image": "byte", "label": "int"},
            shuffle_queue_size=buffer,
            transform=decode_row,
        )
        return torch.utils.data.DataLoader(
            dataset, batch_size=IMAGE_BATCH, num_workers=workers, persistent_workers=True
        )

    return f"TFRecordDataset, DataLoader, {workers} workers", batches


def make_vahidk_table(root: Path, workers: int) -> Work:
    """vahidk's dataset of scalars, in file order: its shuffle queue would only slow it down."""
    import torch
    from tfrecord.torch.dataset import TFRecordDataset

    path, count = root / "packed.tfrecord", data.sizes_of(root).packed
    kinds = (("float", data.NUM_FLOATS), ("int", data.NUM_INTS), ("byte", data.NUM_BYTES))
    names = {"float": "float", "int": "int", "byte": "bytes"}
    description = {f"{names[kind]}_{number}": kind for kind, total in kinds for number in range(total)}

    def batches() -> Iterable[dict[str, Any]]:
        dataset = TFRecordDataset(str(path), str(make_index(path)), description)
        return torch.utils.data.DataLoader(dataset, batch_size=BATCH, num_workers=workers)

    def drain_all() -> int:
        drain(batches())
        return count

    def digest() -> Answer:
        result = Digest()
        for batch in batches():
            result.add_unordered({name: v if isinstance(v, list) else v.numpy() for name, v in batch.items()})
        return result.result()

    return Work({f"TFRecordDataset, DataLoader, {workers} workers, not shuffled": drain_all}, digest)


def make_index(path: Path) -> Path:
    """Return the text index that vahidk and DALI read: offset and size of every frame, one a line."""
    target = path.with_suffix(".idx")
    if not target.exists():
        unfinished = target.with_name(f"unfinished-{target.name}")
        offset = 0
        with unfinished.open("w") as lines:
            for frame in iterate_frames(path):
                lines.write(f"{offset} {len(frame)}\n")
                offset += len(frame)
        shutil.move(unfinished, target)
    return target
