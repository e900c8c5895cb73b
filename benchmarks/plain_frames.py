"""The frames of an uncompressed TFRecord file in twenty lines, for copying files and into the peers' formats."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

HEADER_SIZE = 8 + 4  # length, its checksum
FOOTER_SIZE = 4  # checksum of the payload


def iterate_frames(path: Path) -> Iterator[bytes]:
    """Yield each frame of a file that is known to be whole; no checksum is looked at."""
    with path.open("rb") as file:
        while header := file.read(HEADER_SIZE):
            (nbytes,) = struct.unpack("<Q", header[:8])
            yield header + file.read(nbytes + FOOTER_SIZE)


def iterate_payloads(path: Path) -> Iterator[bytes]:
    """Yield each payload of such a file."""
    for frame in iterate_frames(path):
        yield frame[HEADER_SIZE:-FOOTER_SIZE]
