"""Digests of whole files."""

from __future__ import annotations

import hashlib

from tfrkit._limits import LIMITS
from tfrkit.storage.resolve import open_reader


def hash_file(path: str) -> str:
    """Return the sha256 of a file as hex digits."""
    digest = hashlib.sha256()
    reader = open_reader(path)
    try:
        stream = reader.stream(0)
        while piece := stream.read(LIMITS.digest_nbytes):
            digest.update(piece)
    finally:
        reader.close()
    return digest.hexdigest()
