"""Data for the viewer: photos and 10^8 tiny pictures with an index, photos in gzip, 10^6 labelled records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from pictures import PROCESSES, make_photo

import tfrkit as tfr
from tfrkit.container.index import ShardIndex, fingerprint_shard, index_path, write_index
from tfrkit.container.shards import Shard

SEED = 14
TINY = {"image": "image", "shape": "4x4"}  # guesses for the tiny pictures, which are too small to be found
_TINY_NBYTES = 4 * 4
_FRAMES = 1 << 16  # different frames of the large file


@dataclass(frozen=True)
class Sizes:
    """Numbers of records."""

    photos: int = 10_000
    different_photos: int = 1_000
    tiny: int = 100_000_000
    gzip: int = 25_000
    labelled: int = 1_000_000


QUICK = Sizes(photos=1_000, different_photos=200, tiny=1_000_000, gzip=2_500, labelled=100_000)


def make_files(root: Path, sizes: Sizes) -> dict[str, Path]:
    """Make the files that are missing; return all by name."""
    root.mkdir(parents=True, exist_ok=True)
    files = {name: root / f"{name}.tfrecord" for name in ("photos", "tiny", "labelled")}
    files["gzip"] = root / "gzip.tfrecord.gz"
    if not (files["photos"].exists() and files["gzip"].exists()):
        with get_context("spawn").Pool(PROCESSES) as pool:
            photos = pool.map(partial(make_photo, seed=SEED, num_scenes=8), range(sizes.different_photos), chunksize=25)
        _write_photos(files["photos"], photos, sizes.photos, index=True)
        _write_photos(files["gzip"], photos, sizes.gzip, index=False)
    if not files["tiny"].exists():
        _write_tiny(files["tiny"], sizes.tiny)
    if not files["labelled"].exists():
        _write_labelled(files["labelled"], sizes.labelled)
    return files


def _write_photos(path: Path, photos: list[bytes], count: int, *, index: bool) -> None:
    with tfr.Writer(path, level="fast", index=index) as out:
        for number in range(count):
            out.write({"image/encoded": photos[number % len(photos)], "label": number % 10})


def _write_tiny(path: Path, count: int) -> None:
    """Write the same frames again and again, and the index by arithmetic: scanning would take longer than the rest."""
    rng = np.random.default_rng(SEED)
    with tfr.Writer(path) as out:
        for _ in range(_FRAMES):
            out.write({"image": rng.bytes(_TINY_NBYTES)})
    frames = path.read_bytes()
    nbytes = len(frames) // _FRAMES
    with path.open("wb") as file:
        for _ in range(count // _FRAMES):
            file.write(frames)
        file.write(frames[: count % _FRAMES * nbytes])
    offsets = np.arange(count, dtype=np.uint64) * np.uint64(nbytes)
    index = ShardIndex(count, offsets, "none", count * nbytes, None, count * nbytes, "example")
    target = Path(index_path(str(path)))
    target.parent.mkdir(exist_ok=True)
    write_index(str(target), index, fingerprint_shard(Shard.open(str(path)).reader))


def _write_labelled(path: Path, count: int) -> None:
    with tfr.Writer(path, floats="float32", index=True) as out:
        for number in range(count):
            out.write({"label": number * 7919 % 10, "score": number % 1000 / 1000, "name": f"record {number}"})
