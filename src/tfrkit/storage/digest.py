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
        offset = 0
        while piece := reader.read_at(offset, LIMITS.digest_nbytes):
            digest.update(piece)
            offset += len(piece)
    finally:
        reader.close()
    return digest.hexdigest()
