"""Tar files of samples: members with the same name up to the first dot belong to one sample.

Only the headers are read. Members that an archive must not contain (names that lead out of it, links, devices) are
reported as problems, and a truncated archive is never mistaken for a shorter one.
"""

from __future__ import annotations

import os
import re
import tarfile
from collections import Counter
from dataclasses import dataclass, field

from tfrkit.container.codecs import compression_of_magic
from tfrkit.errors import SourceError
from tfrkit.sources.base import Problem
from tfrkit.storage.local import open_to_read

_NAME = re.compile(r"(?P<key>(?:.*/)?[^./][^/.]*)\.(?P<suffix>[^/]+)")
_HEAD_NBYTES = 16
_BLOCK_NBYTES = 512


@dataclass(frozen=True)
class SampleMember:
    """One file of a sample: the part of its name after the first dot, and the range of its bytes in the archive."""

    suffix: str
    offset: int
    nbytes: int


@dataclass
class TarSamples:
    """The samples of one archive, in its order."""

    samples: dict[str, list[SampleMember]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)


def list_samples(path: str, shown: str) -> TarSamples:
    """List the samples of an archive, which messages call `shown`. Raises `SourceError` if it is not a tar file."""
    found = TarSamples()
    size = os.path.getsize(path)
    with open_to_read(path) as file:
        head = file.read(_HEAD_NBYTES)
        packing = "bzip2" if head.startswith(b"BZ") else compression_of_magic(head)
        if packing is not None:
            raise SourceError(
                f"expected an uncompressed tar file, got one compressed with {packing}",
                shard=shown,
                hint="decompress it first",
            )
        file.seek(0)
        try:
            with tarfile.open(fileobj=file, mode="r:") as archive:
                bad: set[str] = set()
                last = ""
                for member in archive:
                    last = _add_member(found, member, shown, size, last, bad)
                stop = archive.offset
        except tarfile.TarError as error:
            raise SourceError(f"not a valid tar file, {str(error).lower()}", shard=shown) from None
        file.seek(stop)
        end = file.read(_BLOCK_NBYTES)
    if len(end) < _BLOCK_NBYTES or any(end):
        what = "holds something else" if any(end) else "ends without its end mark, it may be truncated"
        found.problems.append(Problem(f"{shown}, byte {stop}", f"tar {what}"))
    for key in bad:
        found.samples.pop(key, None)
    return found


def _add_member(found: TarSamples, member: tarfile.TarInfo, shown: str, size: int, last: str, bad: set[str]) -> str:
    """Add one member; return the key of its sample, or `last` if it was not added to a sample."""
    where = f"{shown}, member {member.name!r:.200}"
    if member.isdir():
        return last
    match = _NAME.fullmatch(member.name)
    reason = _judge_member(member, size)
    if reason is not None:
        sample = where if match is None else f"{shown}, sample {match['key']!r:.200}"
        found.problems.append(Problem(where, reason, input=sample))
        if match is not None:
            bad.add(match["key"])
        return last
    if match is None or os.path.basename(member.name).startswith("__"):
        found.ignored["members without a suffix" if match is None else "metadata"] += 1
        return last
    key, suffix = match["key"], match["suffix"].lower()
    sample = f"{shown}, sample {key!r:.200}"
    if key not in found.samples:
        found.samples[key] = []
    elif key != last:
        found.problems.append(
            Problem(where, f"sample {key!r:.200} expected in one place of the tar, got two", input=sample)
        )
        bad.add(key)
    if any(other.suffix == suffix for other in found.samples[key]):
        found.problems.append(Problem(where, f"sample {key!r:.200} expected one .{suffix}, got two", input=sample))
        bad.add(key)
    found.samples[key].append(SampleMember(suffix, member.offset_data, member.size))
    return key


def _judge_member(member: tarfile.TarInfo, size: int) -> str | None:
    """Return the reason why a member is refused, or None."""
    if member.name.startswith("/") or ".." in member.name.split("/"):
        return "name expected inside the archive, got one that leads out of it"
    if not member.isreg():
        kind = "a link" if member.issym() or member.islnk() else "no file"
        return f"expected a file, got {kind}"
    if member.issparse():
        return "expected a whole file, got a sparse one"
    if member.offset_data + member.size > size:
        return f"truncated, {member.size} bytes expected, {max(0, size - member.offset_data)} are there"
    return None
