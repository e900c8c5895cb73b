"""Names and suffixes of files that hold records."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

from tfrkit.container.codecs import SUFFIX_PATTERN, WRITTEN_SUFFIXES
from tfrkit.storage.addresses import has_scheme

SHARD_SUFFIXES: Final = ("tfrecord", "tfrecords", "tfrec", "tfr", "record", "records")
"""Suffixes of record files, before the suffix of the compression."""

_SUFFIX: Final = rf"\.({'|'.join(SHARD_SUFFIXES)})"
_NUMBERED: Final = r"\d{5,}-of-\d{5,}"

# A file with a matching name is a shard, whatever it contains: a damaged shard must not be skipped silently.
_SHARD_NAME = re.compile(rf"({_SUFFIX}|(^|[-_.]){_NUMBERED})({SUFFIX_PATTERN})?$", re.IGNORECASE)
# A file with a matching name may be a shard; its first bytes decide, because read_tfrecord.py also matches.
_SIMILAR_NAME = re.compile(rf"tfrecord|{_SUFFIX}(?![a-z])|-{_NUMBERED}", re.IGNORECASE)
_OUTPUT_NAME = re.compile(rf"({_SUFFIX}|({_SUFFIX})?{SUFFIX_PATTERN})$", re.IGNORECASE)


FOREIGN_SUFFIXES: Final = ("bz2", "lz4", "zip", "7z", "br", "snappy")
"""Suffixes of compressions that cannot be written, so an output with one would be misnamed."""


def refuse_foreign_suffix(path: str) -> None:
    """Raise ValueError if the suffix of an output is a compression that cannot be written.

    Example:
        >>> refuse_foreign_suffix("x.tfrecord.bz2")
        Traceback (most recent call last):
        ValueError: compression .bz2 cannot be written, only .gz, .zlib, .xz, .zst - at x.tfrecord.bz2
    """
    suffix = path.rpartition(".")[2].lower()
    if "." in path and suffix in FOREIGN_SUFFIXES:
        raise ValueError(f"compression .{suffix} cannot be written, only {', '.join(WRITTEN_SUFFIXES)} - at {path}")


def is_shard_name(name: str) -> bool:
    """Whether a file has the name of a shard: NAME.tfrecord, NAME.record, NAME-00000-of-00010, also with .gz."""
    return _SHARD_NAME.search(name) is not None


def resembles_shard_name(name: str) -> bool:
    """Whether a name contains a record suffix anywhere, such as x.tfrecord.bak."""
    return _SIMILAR_NAME.search(name) is not None


def strip_output_suffix(path: str) -> str | None:
    """Return the path of an output file without its suffixes; None if it has none and names a folder.

    Example:
        >>> strip_output_suffix("a/train.record"), strip_output_suffix("x.tfrecord.gz"), strip_output_suffix("out")
        ('a/train', 'x', None)
    """
    found = _OUTPUT_NAME.search(path)
    return None if found is None else path[: found.start()]


def title_files(paths: Sequence[str]) -> str:
    """Return the title of a dataset: the name of its file, or of its folder with the number of files."""
    if len(paths) == 1:
        return os.path.basename(paths[0])
    folder = os.path.commonpath([path if has_scheme(path) else os.path.abspath(path) for path in paths])
    return f"{os.path.basename(folder)}, {len(paths)} files"
