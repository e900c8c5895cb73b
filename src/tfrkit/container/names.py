"""Names and suffixes of files that hold records, and sets of shards named -00000-of-00012."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from tfrkit.container.codecs import SUFFIX_PATTERN, WRITTEN_SUFFIXES
from tfrkit.storage.addresses import has_scheme

SHARD_SUFFIXES: Final = ("tfrecord", "tfrecords", "tfrec", "tfr", "record", "records")
"""Suffixes of record files, before the suffix of the compression."""

_SUFFIX: Final = rf"\.({'|'.join(SHARD_SUFFIXES)})"
_NUMBERED: Final = r"\d{5,}-of-\d{5,}"
OF_SET: Final = re.compile(r"(.*)-(\d{5,18})-of-(\d{5,18})(.*)", re.DOTALL)
SET_NUMBER: Final = re.compile(r"-(\d{5,})-of-(\d{5,})")
_MAX_NAMED = 3  # files in a message

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


def name_shard(stem: str, number: int, num_shards: int) -> str:
    """Return the usual name of one shard of a set; from 100,000 shards on, the numbers have more than 5 digits.

    Example:
        >>> name_shard("d-train.tfrecord", 2, 10)
        'd-train.tfrecord-00002-of-00010'
    """
    width = max(5, len(str(num_shards)))
    return f"{stem}-{number:0{width}d}-of-{num_shards:0{width}d}"


class IncompleteSet(NamedTuple):
    """An incomplete set of shards named -00000-of-00012."""

    name: str
    """Glob of its files."""
    paths: list[str]
    """Paths of the existing shards; `numbers` has their numbers."""
    total: int
    numbers: frozenset[int]
    prefix: str
    width: int
    suffix: str

    @property
    def num_missing(self) -> int:
        return self.total - len(self.numbers)

    def missing(self) -> Iterator[str]:
        """Yield the file names of the missing shards, in order."""
        absent = (number for number in range(self.total) if number not in self.numbers)
        return (f"{self.prefix}-{number:0{self.width}d}{self.suffix}" for number in absent)

    def describe_missing(self) -> str:
        """Name the first missing shards: "x-00003-of-00010, x-00007-of-00010 and 2 more"."""
        named = list(itertools.islice(self.missing(), _MAX_NAMED))
        more = f" and {self.num_missing - len(named):,} more" if self.num_missing > len(named) else ""
        return f"{', '.join(named)}{more}"

    def __str__(self) -> str:
        return f"{len(self.numbers)} of {self.total} shards, missing {self.describe_missing()} - at {self.name}"


def find_incomplete_sets(paths: Iterable[str]) -> list[IncompleteSet]:
    """Find numbered sets among the paths, by file name, that have missing shards."""
    sets: dict[tuple[str, str, str], dict[int, str]] = {}
    for path in paths:
        match = OF_SET.fullmatch(path)
        if match and int(match[2]) < int(match[3]):
            head, number, total, tail = match.groups()
            sets.setdefault((head, total, tail), {})[int(number)] = path
    found = []
    for (head, total, tail), numbers in sets.items():
        if len(numbers) < int(total):
            name, prefix = f"{head}-*-of-{total}{tail}", os.path.basename(head)
            paths_there = list(numbers.values())
            found.append(
                IncompleteSet(
                    name, paths_there, int(total), frozenset(numbers), prefix, len(total), f"-of-{total}{tail}"
                )
            )
    return found


def note_missing_shards(paths: Iterable[str]) -> list[str]:
    """Describe each incomplete set in one clause: `1 of 2 shards, missing x-00001-of-00002 - at …`."""
    return [str(found) for found in find_incomplete_sets(paths)]
