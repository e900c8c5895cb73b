"""The rows of many shards in columns: `_index/shards.bin`, beside the manifest of a dataset.

A manifest with 250,000 shards is 55 MB of JSON, which takes seconds and half a gigabyte as Python objects. This file
has the same rows as arrays, sorted by name. It is made from the text of the manifest and holds its digest, so that it
is ignored once the manifest is another one; readers that do not know it, or cannot use it, read the manifest.
All numbers are little-endian:

    byte  size  what
       0     8  magic, "TFRKSHD\\n"
       8     4  version, 1
      12     4  crc32c of everything from byte 80 on
      16     8  number of shards, n
      24     8  size of the head, followed by zeros up to a multiple of 8 bytes
      32     8  size of all ETags
      40     8  size of the manifest
      48    16  blake2b-128 of the manifest
      64    12  zero
      76     4  crc32c of bytes 0 to 76
      80        head, JSON: the manifest without its shards, the names of the shards, those of the splits
             8n  records of each shard
             8n  bytes
             8n  end of its ETag among all ETags; of no bytes if it is not known
             4n  split, 0 if there is none
            32n  sha256, zero if it is not known
                 ETags
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import struct
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit._types import UInt64Array

_MAGIC: Final = b"TFRKSHD\n"
_VERSION: Final = 1
_HEADER: Final = struct.Struct("<8sIIQQQQ16s12x")
_HEADER_NBYTES: Final = _HEADER.size + 4
_MAX_DIGITS: Final = 18
_NUMBERED: Final = re.compile(rf"(.*-)(\d{{5,{_MAX_DIGITS}}})(-of-\d{{5,{_MAX_DIGITS}}}.*)", re.DOTALL)
_MAX_SHARDS: Final = 1 << 32
_KEYS: Final = frozenset({"name", "split", "records", "nbytes", "sha256", "etag"})


ManifestId = tuple[int, bytes]
"""Size of a manifest and its blake2b-128."""


class UnusableTableError(ValueError):
    """A file that is not a table, or is damaged, or of another version."""


class StaleTableError(UnusableTableError):
    """A table of another manifest than the present one."""


class _Run(NamedTuple):
    """Names that count up: prefix, number with leading zeros, suffix. A single name has a width of 0."""

    prefix: str
    first: int
    width: int
    suffix: str
    num: int


class ShardTable:
    """Facts about the shards of one folder, in the order of their names. `head` is the rest of the manifest."""

    def __init__(self, data: bytes, manifest: ManifestId) -> None:
        """Check and parse a table of a manifest, which is given by its size and digest."""
        if data[:8] != _MAGIC:
            raise UnusableTableError(f"it does not start with {_MAGIC!r}")
        if len(data) < _HEADER_NBYTES:
            raise UnusableTableError(f"it is truncated, {len(data)} bytes")
        fields = _HEADER.unpack_from(data)
        version, body_crc, num_shards, head_nbytes, etags_nbytes, manifest_nbytes, digest = fields[1:]
        if version != _VERSION:
            raise UnusableTableError(f"it is of version {version}, this tfrkit reads version {_VERSION}")
        view = memoryview(data)
        if _native.crc32c(view[: _HEADER.size]) != struct.unpack_from("<I", data, _HEADER.size)[0]:
            raise UnusableTableError("its header is damaged")
        start = _HEADER_NBYTES + -(-head_nbytes // 8) * 8
        expected = start + num_shards * (8 + 8 + 8 + 4 + 32) + etags_nbytes
        if num_shards > _MAX_SHARDS or len(data) != expected:
            raise UnusableTableError(f"it has {len(data)} bytes, expected {expected}")
        if (manifest_nbytes, digest) != manifest:
            raise StaleTableError("it is of another manifest")
        if _native.crc32c(view[_HEADER_NBYTES:]) != body_crc:
            raise UnusableTableError("a checksum does not match")
        self._data = data
        self._numbers: UInt64Array | None = None  # in the table of all shards, if this one has some of them
        self.whole = self
        self.manifest = manifest
        self._columns(view, start, num_shards)
        self._read_head(bytes(view[_HEADER_NBYTES : _HEADER_NBYTES + head_nbytes]))

    def _columns(self, view: memoryview, start: int, count: int) -> None:
        def take(dtype: str, width: int) -> Any:
            nonlocal start
            found = np.frombuffer(view, dtype, count * width, start)
            start += found.nbytes
            return found

        self.records: UInt64Array = take("<u8", 1)
        self.nbytes: UInt64Array = take("<u8", 1)
        self._etag_stops = take("<u8", 1)
        self.split_codes = take("<u4", 1)
        self._sha256 = take("u1", 32)
        self._etags = view[start:]
        if count and (np.any(np.diff(self._etag_stops.view(np.int64)) < 0) or self._etag_stops[-1] != len(self._etags)):
            raise UnusableTableError("its ETags are out of order")

    def _read_head(self, text: bytes) -> None:
        try:
            content = json.loads(text)
            self.head: Mapping[str, Any] = content["manifest"]
            self.split_names: list[str] = [str(name) for name in content["splits"]]
            self.fingerprint: str | None = content["fingerprint"]
            self._runs = [_Run(*run) for run in content["names"]]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise UnusableTableError("its head is not as expected") from None
        if (
            not isinstance(self.head, dict)
            or not isinstance(self.fingerprint, str | None)
            or not all(map(_is_run, self._runs))
        ):
            raise UnusableTableError("its head is not as expected")
        self._starts = [0, *accumulate(run.num for run in self._runs)]
        if self._starts[-1] != len(self.records) or int(self.split_codes.max(initial=0)) > len(self.split_names):
            raise UnusableTableError("its header does not match its rows")

    def __len__(self) -> int:
        return len(self.records)

    def name(self, number: int) -> str:
        """Return the file name of a shard."""
        at = bisect_right(self._starts, number) - 1
        return _name_in(self._runs[at], number - self._starts[at])

    def names(self) -> list[str]:
        """Return all file names."""
        return [_name_in(run, number) for run in self._runs for number in range(run.num)]

    def find(self, name: str) -> int | None:
        """Return the number of the shard with this file name, or None."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.name(middle) < name:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self.name(low) == name else None

    def etag(self, number: int) -> str | None:
        """Return the ETag of a shard, with quotes, or None."""
        if self._numbers is not None:
            number = int(self._numbers[number])
        start = int(self._etag_stops[number - 1]) if number else 0
        found = bytes(self._etags[start : int(self._etag_stops[number])])
        return found.decode("utf-8", "surrogateescape") or None

    def split(self, number: int) -> str | None:
        """Return the split of a shard, or None."""
        code = int(self.split_codes[number])
        return self.split_names[code - 1] if code else None

    def sha256(self, number: int) -> str | None:
        """Return the sha256 of a shard in hex, or None."""
        found = self._sha256[32 * number : 32 * number + 32].tobytes()
        return found.hex() if any(found) else None

    @property
    def has_gaps(self) -> bool:
        """Whether a name says of how many shards it is one, and they are not all there; False is certain."""
        for run in self._runs:
            total = re.match(r"-of-(\d+)", run.suffix)
            if not run.width or total is None or run.first or run.num != int(total[1]):
                return True
        return False

    def take(self, numbers: UInt64Array) -> ShardTable:
        """Return a table of the shards with these numbers; `whole` is the table of all."""
        taken = copy.copy(self)
        taken._numbers = numbers
        taken.records, taken.nbytes = self.records[numbers], self.nbytes[numbers]
        taken.split_codes = self.split_codes[numbers]
        taken._sha256 = self._sha256.reshape(-1, 32)[numbers].reshape(-1)
        names = self.names()
        taken._runs = _find_runs([names[number] for number in numbers.tolist()])
        taken._starts = [0, *accumulate(run.num for run in taken._runs)]
        taken.fingerprint = fingerprint_entries(
            (int(nbytes), taken.sha256(number)) for number, nbytes in enumerate(taken.nbytes)
        )
        return taken

    def __reduce__(self) -> tuple[object, ...]:
        return _restore_table, (self._data, self.manifest, self._numbers)


def _restore_table(data: bytes, manifest: ManifestId, numbers: UInt64Array | None) -> ShardTable:
    table = ShardTable(data, manifest)
    return table if numbers is None else table.take(numbers)


def fingerprint_entries(entries: Iterable[tuple[int | None, str | None]]) -> str | None:
    """Hash the (size, sha256) of the shards as manifests list them, without reading a shard; None if one is unknown.

    It starts with "m", which the fingerprint of the bytes never does.
    """
    digest = hashlib.blake2b(digest_size=8)
    for nbytes, sha256 in entries:
        if nbytes is None or sha256 is None:
            return None
        digest.update(f"{nbytes}:{sha256};".encode())
    return f"m{digest.hexdigest()}"


def identify_manifest(text: bytes) -> ManifestId:
    """Return the size and digest by which a table names its manifest."""
    return len(text), hashlib.blake2b(text, digest_size=16).digest()


def wants_table(text: bytes) -> bool:
    """Whether a manifest has so much to parse that a table is made of it and looked for."""
    return len(text) >= LIMITS.table_text_nbytes


def make_table(text: bytes) -> bytes | None:
    """Return the table of a manifest; None if a row has more, or less, than a table holds."""
    try:
        content = json.loads(text)
        rows = sorted(content.pop("shards"), key=lambda row: str(row["name"]))
        is_plain = all(set(row) <= _KEYS and _is_plain(row) for row in rows)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    if not is_plain:
        return None
    fingerprint = fingerprint_entries((row["nbytes"], row.get("sha256")) for row in rows)
    splits = list(dict.fromkeys(row["split"] for row in rows if row.get("split")))
    codes = {name: number for number, name in enumerate(splits, 1)}
    etags = [str(row.get("etag") or "").encode("utf-8", "surrogateescape") for row in rows]
    head = json.dumps(
        {
            "manifest": content,
            "splits": splits,
            "fingerprint": fingerprint,
            "names": _find_runs([r["name"] for r in rows]),
        }
    ).encode()
    columns = [
        head + bytes(-len(head) % 8),
        np.array([row["records"] for row in rows], "<u8").tobytes(),
        np.array([row["nbytes"] for row in rows], "<u8").tobytes(),
        np.cumsum([len(etag) for etag in etags]).astype("<u8").tobytes(),
        np.array([codes.get(row.get("split") or "", 0) for row in rows], "<u4").tobytes(),
        b"".join(bytes.fromhex(row.get("sha256") or "00" * 32) for row in rows),
        *etags,
    ]
    body = b"".join(columns)
    nbytes, digest = identify_manifest(text)
    sizes = len(rows), len(head), sum(map(len, etags))
    header = _HEADER.pack(_MAGIC, _VERSION, _native.crc32c(body), *sizes, nbytes, digest)
    return header + struct.pack("<I", _native.crc32c(header)) + body


def _is_plain(row: Mapping[str, Any]) -> bool:
    name, sha256 = row["name"], row.get("sha256")
    return (
        isinstance(name, str) and bool(name) and "/" not in name and name not in (".", "..")
        and all(type(row.get(key)) is int and row[key] >= 0 for key in ("records", "nbytes"))
        and isinstance(row.get("split"), str | None)
        and (sha256 is None or (isinstance(sha256, str) and re.fullmatch("[0-9a-f]{64}", sha256) is not None))
    )  # fmt: skip


def _find_runs(names: Sequence[str]) -> list[_Run]:
    runs: list[_Run] = []
    for name in names:
        found = _NUMBERED.fullmatch(name)
        if found is None:
            runs.append(_Run(name, 0, 0, "", 1))
            continue
        prefix, digits, suffix = found.groups()
        run = _Run(prefix, int(digits), len(digits), suffix, 1)
        last = runs[-1] if runs else run
        if last._replace(first=last.first + last.num, num=1) == run:
            runs[-1] = last._replace(num=last.num + 1)
        else:
            runs.append(run)
    return runs


def _is_run(run: _Run) -> bool:
    """Whether a run has the types and numbers that `_find_runs` gives it; anybody can make right checksums."""
    return (
        isinstance(run.prefix, str) and isinstance(run.suffix, str) and "/" not in run.prefix + run.suffix
        and type(run.first) is type(run.width) is type(run.num) is int
        and run.first >= 0 and 0 <= run.width <= _MAX_DIGITS and run.num > 0
        and (run.width > 0 or (run.num == 1 and run.prefix not in ("", ".", "..")))
    )  # fmt: skip


def _name_in(run: _Run, number: int) -> str:
    return f"{run.prefix}{run.first + number:0{run.width}d}{run.suffix}" if run.width else run.prefix
