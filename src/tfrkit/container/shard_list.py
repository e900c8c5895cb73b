"""The shards of a dataset as a sequence; names and totals need no object for each shard.

A manifest can list 250,000 shards. Those that a table lists (`shard_table`) become objects when they are used.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import overload
from weakref import WeakValueDictionary

import numpy as np

from tfrkit.container.compression import Compression
from tfrkit.container.listed import ListedNames, list_listing
from tfrkit.container.shard_table import ShardTable
from tfrkit.container.shards import Incomplete, Shard, find_names
from tfrkit.storage.objects import Listing
from tfrkit.storage.resolve import Address

_MAX_KEPT = 1024  # shards that are not in use
_EMPTY_NBYTES = 64  # an empty compressed file is shorter


class ShardList(Sequence[Shard]):
    """Shards that are open."""

    def __init__(self, shards: Iterable[Shard]) -> None:
        self._shards = list(shards)
        self.has_pipe = any(shard.reader.size is None for shard in self._shards)
        """Whether one can be read only once, sequentially."""
        self.is_remote = any(shard.reader.is_remote for shard in self._shards)
        """Whether one is in a store."""

    @classmethod
    def of(cls, shards: Iterable[Shard]) -> ShardList:
        """Return the shards themselves if they are a list of this kind, else one of them."""
        return shards if isinstance(shards, ShardList) else cls(shards)

    @classmethod
    def open(cls, address: Address | Iterable[Address], *, incomplete: Incomplete) -> ShardList:
        """Find and open the shards of an address; see `find_shards`."""
        names = find_names(address, incomplete=incomplete)
        if not isinstance(names, ListedNames):
            return cls(Shard.open_all(names))
        return ListedShards(names, names.table.head["compression"], list_listing(names))

    def __len__(self) -> int:
        return len(self._shards)

    def __iter__(self) -> Iterator[Shard]:
        return iter(self._shards)

    @overload
    def __getitem__(self, number: int) -> Shard: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Shard]: ...
    def __getitem__(self, number: int | slice) -> Shard | Sequence[Shard]:
        return self._shards[number]

    @property
    def names(self) -> Sequence[str]:
        """The path of each shard."""
        return [shard.name for shard in self._shards]

    @property
    def nbytes(self) -> int:
        """The stored bytes of all shards together."""
        return sum(shard.nbytes or 0 for shard in self._shards)

    @property
    def compressions(self) -> set[Compression]:
        """Their compressions."""
        return {shard.compression for shard in self._shards}

    @property
    def are_pinned(self) -> bool:
        """Whether the version of each is that of its manifest."""
        return all(shard.reader.listing is not None for shard in self._shards)

    @property
    def table(self) -> ShardTable | None:
        """The table that lists them."""
        return None

    def find_empty(self) -> list[int]:
        """Return the numbers of those without records."""
        return [number for number, shard in enumerate(self._shards) if shard.is_empty]

    def close(self) -> None:
        for shard in self._shards:
            shard.reader.close()

    def pack(self) -> Callable[[], ShardList]:
        """Return a function to pickle; in another process it returns the same shards, whose files open on first use."""
        known = [
            (one.name, one.nbytes, one.compression, one.reader.version, one.reader.listing, one.is_assumed)
            for one in self._shards
        ]
        return partial(_reopen, known)


def _reopen(known: list[tuple[str, int | None, Compression, str | None, Listing | None, bool]]) -> ShardList:
    return ShardList(Shard.open_later(*one) for one in known)


class ListedShards(ShardList):
    """Shards that a table lists; each becomes an object when it is used."""

    def __init__(self, names: ListedNames, compression: Compression, listing: Listing | None) -> None:
        self.has_pipe, self.is_remote = False, names.stamp is None
        self._names = names
        self._compression = compression
        self._listing = listing
        self._made: WeakValueDictionary[int, Shard] = WeakValueDictionary()
        self._kept: OrderedDict[int, Shard] = OrderedDict()

    __iter__ = Sequence.__iter__

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, number: int) -> Shard: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Shard]: ...
    def __getitem__(self, number: int | slice) -> Shard | Sequence[Shard]:
        if isinstance(number, slice):
            return [self._find(at) for at in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        return self._find(number % len(self))

    def _find(self, number: int) -> Shard:
        shard = self._made.get(number)
        if shard is None:
            table = self._names.table
            version = None if self._listing is None else table.etag(number)
            shard = Shard.open_later(
                self._names[number],
                int(table.nbytes[number]),
                self._compression,
                version,
                None if version is None else self._listing,
                is_assumed=version is None,
            )
            shard = self._made.setdefault(number, shard)
        self._kept[number] = shard
        # A version that the first request pinned must not be forgotten, nor the identity of a file that was read.
        if self._listing is not None and len(self._kept) > _MAX_KEPT:
            for old in list(islice(self._kept, _MAX_KEPT // 2)):
                self._kept.pop(old, None)
        return shard

    @property
    def names(self) -> Sequence[str]:
        return self._names

    @property
    def nbytes(self) -> int:
        return int(self.table.nbytes.sum())

    @property
    def compressions(self) -> set[Compression]:
        return {self._compression}

    @property
    def are_pinned(self) -> bool:
        return self._listing is not None

    @property
    def table(self) -> ShardTable:
        return self._names.table

    def find_empty(self) -> list[int]:
        most = 0 if self._compression == "none" else _EMPTY_NBYTES
        few = np.flatnonzero(self.table.nbytes <= most).tolist()
        return [number for number in few if self._find(number).is_empty]

    def close(self) -> None:
        for shard in list(self._made.values()):
            shard.close()
        self._kept.clear()

    def pack(self) -> Callable[[], ShardList]:
        return partial(ListedShards, self._names, self._compression, self._listing)
