"""A sample of a dataset for quick first results: evenly spaced records, copied to one temporary file for queries."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.batches.shard_set import ShardSet
from tfrkit.errors import ContainerError, WireError
from tfrkit.ops.choose_records import choose_records
from tfrkit.ops.edit.search import RecordSearch
from tfrkit.ops.query.scan import QueryPolicy
from tfrkit.storage.temporaries import make_scratch
from tfrkit.view.opened import Opened
from tfrkit.writer import Writer

Items = np.ndarray[Any, np.dtype[Any]]

MAX_RECORDS = 4096
_MAX_NBYTES = 32 << 20
_MIN_RECORDS = 16
_PROBED = 16


@dataclass
class _SampleRows(QueryPolicy):
    numbers: Items | None = None
    opened: Opened | None = None

    def numbered(self, shard_set: ShardSet) -> ShardSet:
        assert self.opened is not None
        return self.opened.shard_set

    def number_rows(self, first_row: int, num_rows: int) -> Int64Array:
        assert self.numbers is not None
        return self.numbers[first_row : first_row + num_rows]


class Sample:
    """Evenly spaced records of a dataset, made on first use. Safe to share between threads."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._lock = threading.Lock()
        self._numbers: Items | None = None
        self._path = ""

    @property
    def numbers(self) -> Items:
        """Numbers of the sampled records, ascending."""
        self._make()
        assert self._numbers is not None
        return self._numbers

    @property
    def path(self) -> str:
        """A file with these records."""
        self._make()
        return self._path

    def search(self, where: str) -> Items:
        """Return the numbers of the sampled records that match a condition."""
        with contextlib.closing(RecordSearch([self.path], where, policy=self.new_policy())) as search:
            return search.run().astype(np.int64)

    def new_policy(self) -> QueryPolicy:
        """Return the policy of a query of these records: its numbers are those of the dataset."""
        return _SampleRows("none", numbers=self.numbers, opened=self._opened)

    def _make(self) -> None:
        with self._lock:
            if self._numbers is not None:
                return
            scratch = make_scratch("tfrkit-view")
            weakref.finalize(self, scratch.remove)
            self._path = os.path.join(scratch.path, "sample.tfrecord")
            kept = []
            with Writer(self._path) as writer:
                for number in self._choose():
                    try:
                        record = self._opened.read_sound(number)
                    except (ContainerError, WireError) as error:
                        self._opened.find_damage(number, error)
                        continue
                    writer.write_record(record)
                    kept.append(number)
            self._numbers = np.array(kept, np.int64)

    def _choose(self) -> list[int]:
        """Choose as many records as fit into the limit of bytes."""
        total = self._opened.num_records
        sizes = []
        for number in choose_records(total, _PROBED, None):
            try:
                sizes.append(len(self._opened.read(number)))
            except ContainerError:
                continue
        mean = max(1, sum(sizes) // max(1, len(sizes)))
        return choose_records(total, max(_MIN_RECORDS, min(MAX_RECORDS, _MAX_NBYTES // mean)), None)
