"""The limit of decoding: libjpeg-turbo alone, on photos that are already in memory, with nothing done to the pixels."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import data
import numpy as np
import simplejpeg
from pictures import PHOTO_SIZE
from plain_frames import iterate_payloads
from work import Work

START = b"\xff\xd8\xff"


def make_works(root: Path, out: Path, *, threads: int) -> dict[str, Work]:
    """Return what the decoder does here, by the name of the work."""
    work = Work({"simplejpeg.decode_jpeg": lambda: decode_all(root, threads)})
    return dict.fromkeys(("images_decode", "images_decode_antialias"), work)


def decode_all(root: Path, threads: int) -> int:
    """Decode every photo, each thread into one buffer."""
    photos = load_photos(root)
    width, height = PHOTO_SIZE

    def decode_some(first: int) -> None:
        buffer = np.empty((height, width, 3), np.uint8)
        for photo in photos[first::threads]:
            simplejpeg.decode_jpeg(photo, "RGB", fastdct=False, fastupsample=False, buffer=buffer)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(decode_some, range(threads)))
    return len(photos)


@cache
def load_photos(root: Path) -> list[bytes]:
    """Return the JPEGs, cut out of their Examples: an Example of theirs holds no other bytes that begin like one."""
    photos = [payload[payload.index(START) :] for payload in iterate_payloads(root / "jpegs.tfrecord")]
    assert len(photos) == data.sizes_of(root).jpegs
    return photos
