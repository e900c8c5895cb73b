"""A shard (one file of frames) with its compression, and the search for shards in folders and globs."""

from __future__ import annotations

import itertools
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from tfrkit import _native
from tfrkit.container.codecs import FORMATS
from tfrkit.container.compression import (
    FRAME_HEADER_NBYTES,
    Compression,
    detect_compression,
    holds_other_data,
    inflate_head,
    inflate_start,
    is_frame_header,
    is_zlib_header,
)
from tfrkit.container.identify import describe_foreign, suggest_remedy
from tfrkit.container.listed import ListedNames, list_by_manifest, list_in_table, recall_compression
from tfrkit.container.names import IncompleteSet, find_incomplete_sets, is_shard_name, resembles_shard_name
from tfrkit.errors import (
    Hint,
    IncompleteSetWarning,
    NotATFRecordError,
    Step,
    StorageError,
    warn_caller,
)
from tfrkit.storage.addresses import has_scheme, suggest_list
from tfrkit.storage.base import ByteReader, LocalRanges, lead_in_turn
from tfrkit.storage.git_lfs import REMEDY, describe_pointer, describe_pointer_file
from tfrkit.storage.local import open_to_read
from tfrkit.storage.lookup import can_list, find_object, walk_remote
from tfrkit.storage.objects import Listing
from tfrkit.storage.resolve import Address, expand_address, open_reader, show_address, walk_folder
from tfrkit.storage.transaction import require_no_change

_HEAD_NBYTES = 4096
_MAX_NAMED = 3  # files in a message
_EMPTY_NBYTES = 64  # an empty compressed file is shorter

# A shard with a damaged first frame is still a TFRecord. Limits of the search for a valid frame after it, in stored
# bytes (60 ms for random bytes) and in inflated bytes.
_SEARCH_NBYTES = 64 << 20
_INFLATED_SEARCH_NBYTES = 4 << 20

_NUMBERS = re.compile(r"\d+")
_MAX_LISTED = 100_000  # missing shards in a warning

Incomplete = Literal["ignore", "warn", "refuse"]
"""What to do if shards of a numbered set are missing."""


class _PeekedPipe(LocalRanges):
    """A pipe whose first bytes are in `head`, and are read again."""

    def __init__(self, reader: ByteReader) -> None:
        self._reader = reader
        self.name = reader.name
        self.size: int | None = None
        self.head = b""
        while len(self.head) < _HEAD_NBYTES and (piece := reader.read(_HEAD_NBYTES - len(self.head))):
            self.head += piece

    def read_at(self, offset: int, nbytes: int) -> bytes:
        return self._reader.read_at(offset, nbytes)

    def read(self, nbytes: int) -> bytes:
        if self.head:
            piece, self.head = self.head[:nbytes], self.head[nbytes:]
            return piece
        return self._reader.read(nbytes)

    def close(self) -> None:
        self._reader.close()


class Shard:
    """One file of frames.

    Opening reads only the first bytes. Thread-safe.
    """

    compression: Compression

    def __init__(self, reader: ByteReader, *, compression: Compression | None = None) -> None:
        """Detect the compression from the first bytes, unless it is given."""
        self.name = reader.name
        self._was_read = False
        self._is_assumed = False
        if compression is not None:
            self.reader, self.compression = reader, compression
            return
        if reader.size is None:
            reader = _PeekedPipe(reader)
            head = reader.head
        else:
            head = reader.read_at(0, _HEAD_NBYTES)
        self.reader = reader
        found = detect_compression(head)
        self.compression = "none"
        if found is None:
            self.compression = self._explain(head)
        elif found != "none":
            self.compression = found
            self._check_inflated(head)
        self.reader.park()

    @classmethod
    def open(cls, path: str) -> Shard:
        return cls(open_reader(path))

    @classmethod
    def open_all(cls, paths: Iterable[str]) -> list[Shard]:
        """Open several shards.

        Of remote shards in one folder only the first is read: the others are expected to have its compression, which is
        checked when they are read. None is read if a manifest lists their compression, which is certain if it lists
        their versions, too.
        """
        shards = []
        known: dict[str, Compression] = {}
        paths = list(paths)
        for path in paths:
            place = _NUMBERS.sub("", path) if has_scheme(path) else ""
            listed = recall_compression(path) if place else None
            if listed is not None:
                reader = open_reader(path)
                # A version without a listing is that of a later request: the manifest may have been replaced.
                if reader.listing is not None or reader.version is None:
                    shards.append(cls(reader, compression=listed))
                    shards[-1]._is_assumed = reader.listing is None
                    continue
            if not place or place not in known:
                try:
                    shards.append(cls.open(path))
                except NotATFRecordError as error:
                    if len(paths) > _MAX_NAMED and error.hint is None:
                        folder = shlex.quote(os.path.dirname(path) or ".")
                        error.hint = f"list every file that cannot be read: tfr verify {folder}"
                    raise
                known[place] = shards[-1].compression
                continue
            shards.append(cls(open_reader(path), compression=known[place]))
            shards[-1]._is_assumed = True
        return shards

    @classmethod
    def open_later(
        cls,
        path: str,
        nbytes: int | None,
        compression: Compression,
        version: str | None,
        listing: Listing | None,
        is_assumed: bool,
    ) -> Shard:
        """Return a shard with known size and compression; its file is opened on first use and must have this size.

        A pipe has no size and is opened now.
        """
        if nbytes is None:
            return cls.open(path)
        shard = cls(open_reader(path, size=nbytes, version=version, listing=listing), compression=compression)
        shard._is_assumed = is_assumed
        return shard

    def confirm(self) -> None:
        """Check the compression of a remote shard that `open_all` did not read. Costs one request, once."""
        if self._is_assumed:
            self.compression = Shard(self.reader).compression
            self._is_assumed = False

    @property
    def is_assumed(self) -> bool:
        """Whether the compression is taken from another shard of the folder."""
        return self._is_assumed

    @property
    def nbytes(self) -> int | None:
        """Size as stored; None for a pipe."""
        return self.reader.size

    @property
    def is_empty(self) -> bool:
        """Whether the shard has no bytes, or is a small compressed file that inflates to none."""
        if self.compression == "none" or self.nbytes is None or self.nbytes > _EMPTY_NBYTES:
            return self.nbytes == 0
        return not inflate_start(self.reader, self.compression, 1)

    def start_reading(self) -> None:
        """Start a pass; raise at the second pass over a pipe."""
        if self._was_read and self.nbytes is None:
            raise StorageError("expected a file, got a pipe, which can be read only once", shard=self.name)
        self._was_read = True
        if self._is_assumed:
            self.confirm()

    def close(self) -> None:
        self.reader.close()

    def _explain(self, head: bytes) -> Compression:
        """Raise if the file is not a TFRecord; return the compression of a TFRecord with a damaged first frame."""
        size = self.nbytes
        tail = b"" if size is None else self.reader.read_at(max(0, size - _HEAD_NBYTES), _HEAD_NBYTES)
        foreign = describe_foreign(head, size, tail=tail)
        if foreign is not None:
            raise NotATFRecordError(f"expected a TFRecord, got {foreign}", shard=self.name, hint=suggest_remedy(head))
        span = self.reader.span()
        if span is None and size is not None:
            span = self.reader.read_at(0, _SEARCH_NBYTES)
        if span is not None:
            stop = min(len(span), _SEARCH_NBYTES)
            found, _ = _native.find_next_frame(span, 0, stop, True)
            if found:
                return "none"
        if is_zlib_header(head) and size is not None:
            # A zlib header has only two bytes; a frame in the inflated bytes confirms it.
            inflated = inflate_start(self.reader, "zlib", _INFLATED_SEARCH_NBYTES)
            if inflated and _native.find_next_frame(inflated, 0, len(inflated), True)[0]:
                return "zlib"
        if len(head) < FRAME_HEADER_NBYTES:
            raise NotATFRecordError(
                f"expected a TFRecord, got {len(head)} bytes, fewer than the 16 of an empty record", shard=self.name
            )
        stored = int.from_bytes(head[8:12], "little")
        computed = _native.masked_crc32c(head[:8])
        raise NotATFRecordError(
            f"expected a TFRecord, no frame starts at byte 0 (length checksum stored {stored:#010x}, "
            f"computed {computed:#010x}) and none was found after it",
            shard=self.name,
        )

    def _check_inflated(self, head: bytes) -> None:
        if not holds_other_data(head, self.compression):
            return
        foreign = describe_foreign(inflate_head(head, self.compression), None)
        if foreign is not None:
            raise NotATFRecordError(f"expected a TFRecord, got a {self.compression} of {foreign}", shard=self.name)
        if self.nbytes is None:
            return
        # Either the first frame is damaged, or this is not a TFRecord. The search has a limit, because inflating all of
        # a decompression bomb may take hours.
        inflated = inflate_start(self.reader, self.compression, _INFLATED_SEARCH_NBYTES)
        found, _ = _native.find_next_frame(inflated, 0, len(inflated), True)
        if not found:
            raise NotATFRecordError(
                f"expected a TFRecord, found no frame in the first {len(inflated)} bytes of what this "
                f"{self.compression} file holds",
                shard=self.name,
            )


class ShardsInTurn:
    """Shards that are read whole, one after the other, each opened when it is read.

    Of remote ones the next are requested while one is read.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._readers: dict[int, ByteReader] = {}

    def open(self, number: int) -> Shard:
        """Open the shard of a number. Its first blocks are requested at once."""
        reader = lead_in_turn(number, self._find_reader) if has_scheme(self._paths[number]) else None
        if reader is None:
            return Shard.open(self._paths[number])
        del self._readers[number]
        reader.begin()
        return Shard(reader)

    def _find_reader(self, number: int) -> ByteReader | None:
        if number >= len(self._paths) or not has_scheme(self._paths[number]):
            return None
        if number not in self._readers:
            try:
                self._readers[number] = open_reader(self._paths[number])
            except StorageError:
                return None  # raised again when it is opened
        return self._readers[number]


def lead_shards(shards: Sequence[Shard]) -> Iterator[Shard]:
    """Yield shards that are read whole, one after the other; the start of the next is requested meanwhile."""

    def find_reader(number: int) -> ByteReader | None:
        return shards[number].reader if number < len(shards) else None

    for number, shard in enumerate(shards):
        if shard.reader.is_remote:
            lead_in_turn(number, find_reader)
        yield shard
        shard.reader.lead_to(None)


def looks_like_shard(path: str) -> bool:
    """Whether a file in a folder is a shard, by its name or its first bytes."""
    name = os.path.basename(path)
    if is_shard_name(name):
        return True
    if has_scheme(path):
        head = open_reader(path).read_at(0, _HEAD_NBYTES)
    else:
        if os.path.islink(path) and not os.path.exists(path):
            return False
        with open_to_read(path) as file:
            head = file.read(_HEAD_NBYTES)
    if not head:
        return False
    found = detect_compression(head)
    if found is None and resembles_shard_name(name):
        # Treat a file of unknown type with a shard-like name as a shard, so that opening it reports an error.
        return describe_foreign(head, None) is None or describe_pointer(head) is not None
    if found is not None and FORMATS[found].magic:
        return is_frame_header(inflate_head(head, found, FRAME_HEADER_NBYTES))
    return found is not None


def find_shards(address: Address | Iterable[Address], *, incomplete: Incomplete = "ignore") -> list[str]:
    """Return the paths of the shards of an address.

    In folders, files that are not shards by name or content are skipped. `incomplete` decides what happens if shards
    of a numbered set are missing: nothing, an `IncompleteSetWarning`, or a `StorageError`. A shard that is named
    individually is never incomplete.
    """
    return list(find_names(address, incomplete=incomplete, in_table=False))


def find_names(address: Address | Iterable[Address], *, incomplete: Incomplete, in_table: bool = True) -> Sequence[str]:
    """Return what `find_shards` does, with `in_table` as `ListedNames` if a table lists them: those cost no memory."""
    if isinstance(address, Iterator) and not hasattr(address, "read"):
        address = list(address)  # it is iterated twice
    paths = _expand(address)
    shards = _list_shards(paths, in_table=in_table and len(paths) == 1)
    if in_table and not isinstance(shards, ListedNames):
        shards = list_in_table(shards) or shards
    if isinstance(shards, ListedNames) and not shards.table.has_gaps:
        return shards
    if incomplete != "ignore":
        for found in find_incomplete_sets(shards):
            if len(found.paths) > 1 or found.paths[0] not in _list_named(address):
                _report(found, incomplete)
    return shards


def find_named_shards(address: Address | Iterable[Address]) -> tuple[list[str], list[str], bool]:
    """Return the shards of an address, its folders, and whether it is more than one file given by its path."""
    addresses = [address] if isinstance(address, (str, bytes, os.PathLike)) else list(address)
    paths = _expand(addresses)
    shards = list(_list_shards(paths))
    is_alone = len(shards) == 1 and len(addresses) == 1 and show_address(addresses[0]) == shards[0]
    found = set(shards)
    return shards, [path for path in paths if path not in found], not is_alone


def _list_shards(paths: Iterable[str], *, in_table: bool = False) -> Sequence[str]:
    """Replace each folder among the paths by the shards in it; with `in_table`, the path is the only one."""
    shards: list[str] = []
    folders: dict[str, None] = {}
    for path in paths:
        if has_scheme(path):
            listed = _list_remote(path, in_table=in_table)
            if in_table:
                return listed
            shards += listed
            continue
        if not os.path.isdir(path):
            shards.append(path)
            if path != "-":
                folders[os.path.dirname(path)] = None
            continue
        require_no_change(path)
        inside = [file for file in walk_folder(path) if looks_like_shard(file)]
        if not inside:
            raise _refuse_folder(path)
        shards += inside
        folders |= dict.fromkeys(file.rpartition(os.sep)[0] for file in inside)
    for folder in folders:
        require_no_change(folder)
    return shards


def _list_remote(address: str, *, in_table: bool = False) -> Sequence[str]:
    """Return the shards of a remote address: an object, or a folder, by its manifest or else by a listing."""
    is_named = not address.endswith("/")
    # The likely answer is asked for first.
    is_file = is_named and "." in os.path.basename(address)
    if is_file and find_object(address):
        return [address]
    listed = list_by_manifest(address, in_table=in_table)
    if listed is not None:
        return listed
    if is_named and not is_file and find_object(address):
        return [address]
    files = walk_remote(address) if not is_file or can_list(address) else []
    if not files:
        what = "no such object or folder" if can_list(address) else "the server has no such file"
        raise StorageError(f"cannot open, {what}", shard=address, hint=suggest_list(address))
    inside = [file for file in files if looks_like_shard(file)]
    if not inside:
        named = [file[len(address.rstrip("/")) + 1 :] for file in files[:_MAX_NAMED]]
        more = f" and {len(files) - _MAX_NAMED:,} more" if len(files) > _MAX_NAMED else ""
        raise StorageError(f"found no TFRecord in this folder, only {', '.join(named)}{more}", shard=address)
    return inside


def _expand(address: Address | Iterable[Address]) -> list[str]:
    try:
        return expand_address(address)
    except StorageError as error:
        # The shard may be missing because a folder change is not finished: report that instead.
        if not has_scheme(error.shard or ""):
            require_no_change(os.path.dirname(error.shard or ""))
        raise


def _refuse_folder(folder: str) -> StorageError:
    """Return the error for a folder without TFRecords; it lists some files, so that a wrong folder is obvious."""
    files = [os.path.relpath(path, folder) for path in walk_folder(folder)]
    more = f" and {len(files) - _MAX_NAMED:,} more" if len(files) > _MAX_NAMED else ""
    what = f"only {', '.join(files[:_MAX_NAMED])}{more}" if files else "it has no files"
    hint = f"list what is there: ls {shlex.quote(folder)}"
    for name in files[:_MAX_NAMED]:
        pointer = describe_pointer_file(os.path.join(folder, name))
        if pointer is not None:
            what, hint = f"{name} is {pointer}", REMEDY
            break
    return StorageError(f"found no TFRecord in this folder, {what}", shard=folder, hint=hint)


def _list_named(address: Address | Iterable[Address]) -> set[str]:
    """Return the addresses as paths, to recognize files that are named individually."""
    items = [address] if isinstance(address, (str, bytes, os.PathLike)) else address
    return {show_address(item) for item in items if isinstance(item, (str, bytes, os.PathLike))}


def _report(found: IncompleteSet, incomplete: Incomplete) -> None:
    if incomplete == "refuse":
        raise StorageError(
            f"expected all {found.total} shards of the set, got {len(found.numbers)}, "
            f"missing {found.describe_missing()}",
            shard=found.name,
            hint=Hint(Step("continue without them: {incomplete}", incomplete=True)),
        )
    missing = tuple(itertools.islice(found.missing(), _MAX_LISTED))
    warn_caller(IncompleteSetWarning(str(found), missing))
