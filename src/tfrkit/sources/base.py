"""The interface of sources.

A source is a small description: where to look, and how to read what is there. `scan` looks once, in the process
that plans, and answers with a `Scan`: every record there will be (`Items`), a reader that turns them into rows, the
schema of these rows, and every problem that can be known before something is written. The plan then works with
numbers [0, len(items)) only. Worker processes get a reader and the items of their shard, and nothing else.

    Source.scan(scratch) ─→ Scan
                             ├─ items      keys, sizes, labels, groups, splits: columns, not objects
                             ├─ reader     rows, columns or records by item; picklable; used in workers
                             ├─ schema     what the rows hold; `refine` adds what only reading showed
                             └─ problems   bad inputs, all of them
"""

from __future__ import annotations

import hashlib
import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from tfrkit._types import Int64Array, Row
from tfrkit.codec.coerce import Floats
from tfrkit.codec.columns import BytesColumn
from tfrkit.errors import SourceError
from tfrkit.features.schema import Schema
from tfrkit.images.encode import ImageFact
from tfrkit.sidecars.read import Sidecars
from tfrkit.storage.local import open_to_read

Facts = dict[str, Counter[ImageFact]]
"""Facts found while reading: feature name → fact → count. Facts of several workers are added up."""

Order = Literal["seeded", "source"]

_FINGERPRINT_SAMPLES = 16
_FINGERPRINT_NBYTES = 64 << 10


class Item(NamedTuple):
    """One future record, as a reader gets it."""

    number: int
    key: str
    data: bytes


@dataclass(frozen=True)
class Problem:
    """One bad input: its place and reason, in the form of an error message.

    Attributes:
        key: Its place.
        reason: The error.
        blocking: It stops the build whatever is to become of bad files: a label outside the map is a mistake of the
            command, not of the file.
        input: The input it counts for, where that is not `key`: an image with two bad boxes is one bad input. None for
            a problem of no single input, such as a column or a class.
        kind: What several problems are together, in the plural, where their reasons differ by more than numbers:
            "annotations name an image that is not there". Problems of one kind are shown as one.
        hint: What to do, with Python arguments: 'leave it out: boxes="drop"'.
    """

    key: str
    reason: str
    blocking: bool = False
    input: str | None = ""
    kind: str = ""
    hint: str = ""

    @property
    def bad_input(self) -> str | None:
        """The input that it counts for; None for no single one."""
        return self.key if self.input == "" else self.input


def count_bad_inputs(problems: Iterable[Problem]) -> int:
    """Different inputs that problems are about."""
    return len({problem.bad_input for problem in problems} - {None})


@dataclass(frozen=True)
class Items:
    """The records a source will give, in its order, as columns: a million of them take some ten megabytes.

    Attributes:
        size: How many.
        keys: Unique names, shown in messages: a path below the root, an id. None where they are row numbers.
        data: Small private bytes of each item for the reader, such as its annotations.
        nbytes: Size of each item's input, for the plan's estimates and for progress. None where not known.
        stamps: mtime of each input (ns), so that a resumed build detects changes.
        labels: A class id each, -1 for none, for `--stratify`.
        groups: A group number each: items of one group stay in one split.
        splits: An index into `split_names` each, where the source itself says which split; -1 for not said.
    """

    size: int
    keys: BytesColumn | None = None
    data: BytesColumn | None = None
    nbytes: Int64Array | None = None
    stamps: Int64Array | None = None
    labels: Int64Array | None = None
    groups: Int64Array | None = None
    splits: Int64Array | None = None
    split_names: tuple[str, ...] = ()

    def key(self, number: int) -> str:
        """The name of an item for messages; its row number where it has none."""
        return f"row {number}" if self.keys is None else os.fsdecode(self.keys[number])

    def item(self, number: int) -> Item:
        """One item, as a reader takes it."""
        return Item(number, self.key(number), b"" if self.data is None else self.data[number])

    def only(self, numbers: Int64Array) -> Items:
        """Some of the items, in the given order, as all there are."""
        columns = {name: getattr(self, name) for name in ("nbytes", "stamps", "labels", "groups", "splits")}
        return Items(
            len(numbers),
            keys=None if self.keys is None else _take_values(self.keys, numbers),
            data=None if self.data is None else _take_values(self.data, numbers),
            split_names=self.split_names,
            **{name: None if column is None else column[numbers] for name, column in columns.items()},
        )

    def take(self, numbers: Int64Array) -> TakenItems:
        """Some items in the given order, to be sent to a worker: only what readers need goes along."""
        return TakenItems(
            numbers,
            None if self.keys is None else _take_values(self.keys, numbers),
            None if self.data is None else _take_values(self.data, numbers),
            None if self.nbytes is None else self.nbytes[numbers],
        )


@dataclass(frozen=True)
class TakenItems(Sequence[Item]):
    """The items of one shard or of a part of it, in the order of their records."""

    numbers: Int64Array
    keys: BytesColumn | None = None
    data: BytesColumn | None = None
    nbytes: Int64Array | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return TakenItems(
                self.numbers[index],
                None if self.keys is None else self.keys[index],
                None if self.data is None else self.data[index],
                None if self.nbytes is None else self.nbytes[index],
            )
        number = int(self.numbers[index])
        key = f"row {number}" if self.keys is None else os.fsdecode(self.keys[index])
        return Item(number, key, b"" if self.data is None else self.data[index])

    def __iter__(self) -> Iterator[Item]:
        numbers = self.numbers.tolist()
        keys = map("row {}".format, numbers) if self.keys is None else map(os.fsdecode, self.keys)
        data = repeat(b"", len(numbers)) if self.data is None else self.data
        return map(Item, numbers, keys, data)


class ItemsBuilder:
    """Collects items one by one, then sorts them by key and holds them as columns.

    Example:
        >>> builder = ItemsBuilder()
        >>> builder.add("b.jpg", nbytes=7)
        >>> builder.add("a.jpg", nbytes=9)
        >>> items = builder.build()
        >>> items.key(0), items.size
        ('a.jpg', 2)
    """

    def __init__(self, split_names: Sequence[str] = ()) -> None:
        self._split_names = tuple(split_names)
        # Joined, with the end of each: an object for every key would take five times the memory.
        self._keys, self._key_stops = bytearray(), array("q", [0])
        self._data, self._data_stops = bytearray(), array("q", [0])
        self._numbers = {name: array("q") for name in ("nbytes", "stamps", "labels", "groups", "splits")}
        self._last = b""
        self._is_sorted = True

    def __len__(self) -> int:
        return len(self._key_stops) - 1

    def add(
        self,
        key: str,
        *,
        data: bytes = b"",
        nbytes: int = 0,
        stamp: int = 0,
        label: int = -1,
        group: int = -1,
        split: int = -1,
    ) -> None:
        """One more item."""
        encoded = os.fsencode(key)
        self._is_sorted = self._is_sorted and self._last <= encoded
        self._last = encoded
        self._keys += encoded
        self._key_stops.append(len(self._keys))
        self._data += data
        self._data_stops.append(len(self._data))
        numbers = self._numbers
        numbers["nbytes"].append(nbytes)
        numbers["stamps"].append(stamp)
        numbers["labels"].append(label)
        numbers["groups"].append(group)
        numbers["splits"].append(split)

    def extend(self, keys: Sequence[bytes], nbytes: Int64Array, stamps: Int64Array) -> None:
        """Many more items, which are sorted among themselves."""
        if not keys:
            return
        self._is_sorted = self._is_sorted and self._last <= keys[0]
        self._last = keys[-1]
        stops = np.cumsum(np.fromiter(map(len, keys), np.int64, len(keys))) + len(self._keys)
        self._keys += b"".join(keys)
        self._key_stops.frombytes(stops.tobytes())
        self._data_stops.extend(repeat(len(self._data), len(keys)))
        given = {"nbytes": nbytes, "stamps": stamps}
        nothing = np.full(len(keys), -1, np.int64)
        for name, numbers in self._numbers.items():
            numbers.frombytes(np.ascontiguousarray(given.get(name, nothing), np.int64).tobytes())

    def build(self, *, sort: bool = True) -> Items:
        """The items, sorted by key unless the order they were added in means something.

        They take over the memory of the builder, to which nothing can be added after this.
        """
        keys = _to_column(self._keys, self._key_stops)
        data = _to_column(self._data, self._data_stops) if self._data else None
        order: Int64Array | None = None
        if sort and not self._is_sorted:
            listed = list(keys)
            order = np.array(sorted(range(len(listed)), key=listed.__getitem__), np.int64)
            keys = BytesColumn.from_values([listed[i] for i in order])
            data = None if data is None else BytesColumn.from_values([data[int(i)] for i in order])
        columns: dict[str, Int64Array | None] = {}
        for name, values in self._numbers.items():
            column = np.frombuffer(values, np.int64) if values else np.empty(0, np.int64)
            says_nothing = bool((column == (0 if name in ("nbytes", "stamps") else -1)).all())
            columns[name] = None if says_nothing else column if order is None else column[order]
        return Items(len(self), keys=keys, data=data, split_names=self._split_names, **columns)


def _take_values(column: BytesColumn, numbers: Int64Array) -> BytesColumn:
    view = column.data.data
    starts, stops = column.offsets[numbers].tolist(), column.offsets[numbers + 1].tolist()
    return BytesColumn.from_values([view[start:stop].tobytes() for start, stop in zip(starts, stops, strict=True)])


def _to_column(joined: bytearray, stops: array[int]) -> BytesColumn:
    return BytesColumn(np.frombuffer(joined, np.uint8), np.frombuffer(stops, np.int64))


class RowReader(Protocol):
    """Reads one item at a time. Sent to worker processes, so it is picklable and small; one thread at a time."""

    def read(self, item: Item) -> Row:
        """The row of one item; raises `SourceError` or `OSError` for an input that is bad.

        A row of the form {"context": {...}, "feature_lists": {...}} becomes a SequenceExample. Values are those
        `Writer.write` takes.
        """

    def take_facts(self) -> Facts:
        """What was seen since the last call."""


class ColumnReader(Protocol):
    """Reads many items at once, as columns: for tables and arrays, whose rows never become Python objects."""

    def read_columns(self, numbers: Int64Array) -> Mapping[str, Any]:
        """Columns of these items, in this order: what `Writer.write_columns` takes."""


class RecordReader(Protocol):
    """Reads many items at once, as finished records."""

    def read_records(self, numbers: Int64Array) -> Sequence[bytes]:
        """Payloads of these items, in this order."""


Reader = RowReader | ColumnReader | RecordReader


@dataclass
class Scan:
    """What a source found.

    Attributes:
        looked_for: "images in data/ and below": completes "nothing found, looked for ...".
        items: Every good candidate. Inputs with a problem are in `problems` instead.
        reader: How workers read items.
        schema: What rows hold, as far as it is known now. None: the build reads it off the records it wrote.
        problems: Bad inputs. All of them, each named once.
        ignored: Counts of other files by kind (".txt", "hidden").
        notes: One sentence for each decision a user should know of; printed.
        counts: Titles → names → how many: {"class": {"apple": 10}}. Printed by a dry run.
        label_files: Name → text of files to leave beside the shards (classes.txt, charset.txt).
        order: Default order of the records if nothing is split: folders have no order worth
            keeping, arrays and tables do.
        refine: Gives the schema with what reading showed: formats, channels, sizes.
        explain: Gives one sentence for each thing that only reading showed, for the report.
        floats: What the writer does with floats that float32 does not hold, as in `Writer`.
        fingerprint: Of inputs that are no items, such as the one file of a table: a digest of what they hold.
        stamp: When the newest of those was changed (ns).
        sidecars: Sidecars of records that are copied unchanged; they are copied, too.
        found: Number of inputs, good and bad. None where each bad one is a problem of its own.
    """

    looked_for: str
    items: Items
    reader: Reader
    schema: Schema | None
    problems: list[Problem] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    label_files: dict[str, str] = field(default_factory=dict)
    order: Order = "seeded"
    refine: Callable[[Facts], Schema] | None = None
    explain: Callable[[Facts], list[str]] | None = None
    floats: Floats = "ask"
    fingerprint: str = ""
    stamp: int = 0
    sidecars: Sidecars | None = None
    found: int | None = None

    @property
    def num_inputs(self) -> int:
        """Scanned inputs."""
        if self.found is not None:
            return self.found
        return self.items.size + count_bad_inputs(self.problems)

    def schema_after(self, facts: Facts) -> Schema | None:
        """The schema once everything was read, with what reading showed."""
        return self.schema if self.refine is None else self.refine(facts)

    def notes_after(self, facts: Facts) -> list[str]:
        """What to report once everything was read."""
        return [] if self.explain is None else self.explain(facts)


class Source(Protocol):
    """A place samples come from. Making one reads nothing; `scan` does."""

    @property
    def kind(self) -> str:
        """The name of the source on the command line: "class-folders"."""

    @property
    def title(self) -> str:
        """Its input for messages: the path."""

    def options(self) -> dict[str, Any]:
        """Every option that decides about the output, as a JSON value. A change of any is a change of the plan."""

    def scan(self, scratch: str) -> Scan:
        """Scan everything once. Raises `SourceError` if there is nothing to scan.

        `scratch` is a folder on the disk of the output that lives until the build is done; workers see it too.
        """


def require_some(scan: Scan) -> None:
    """Raise if a scan found neither items nor problems: an empty build is not a success."""
    if scan.items.size or scan.problems:
        return
    others = ", ".join(f"{count} {name}" for name, count in scan.ignored.most_common(5))
    raise SourceError(
        f"nothing to build, looked for {scan.looked_for}" + (f", found other files only: {others}" if others else "")
    )


def fingerprint_file(path: str) -> tuple[str, int]:
    """A digest of a file's size and of samples all over it, and when it was changed (ns). Cost: a megabyte at most."""
    digest = hashlib.sha256()
    with open_to_read(path) as file:
        info = os.fstat(file.fileno())
        digest.update(info.st_size.to_bytes(8, "little"))
        for sample in range(_FINGERPRINT_SAMPLES):
            file.seek(max(0, info.st_size - _FINGERPRINT_NBYTES) * sample // (_FINGERPRINT_SAMPLES - 1))
            digest.update(file.read(_FINGERPRINT_NBYTES))
    return digest.hexdigest()[:32], info.st_mtime_ns
