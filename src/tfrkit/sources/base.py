"""The interface of sources.

A source is a small description of where the inputs are and how to read them. `scan` runs once, in the process that
plans, and returns a `Scan`: all future records (`Items`), a reader that turns items into rows, the schema of the
rows, and every problem that can be found before anything is written. The plan then works with the item numbers
[0, items.size) only. Worker processes get a reader and the items of their shard, and nothing else.

    Source.scan(scratch) ─→ Scan
                             ├─ items      keys, sizes, labels, groups, splits: columns, not objects
                             ├─ reader     rows, columns or records by item; picklable; used in workers
                             ├─ schema     features of the rows; `refine` adds facts found by reading
                             └─ problems   all bad inputs
"""

from __future__ import annotations

import hashlib
import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from tfrkit._types import Int64Array, Row
from tfrkit.codec.coerce import Floats
from tfrkit.codec.column_frames import Frames
from tfrkit.codec.columns import BytesColumn
from tfrkit.errors import SourceError
from tfrkit.features.schema import Schema
from tfrkit.images.encode import ImageFact
from tfrkit.sidecars.read import Sidecars
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.inputs import copy_of, read_ahead, stat_input
from tfrkit.storage.local import open_to_read

Facts = dict[str, Counter[ImageFact]]
"""Facts found while reading: feature name → fact → count. Facts of several workers are added up."""

RecordOrder = Literal["seeded", "source"]

_FINGERPRINT_SAMPLES = 16
_FINGERPRINT_NBYTES = 64 << 10


class Item(NamedTuple):
    """One future record, as it is passed to a reader."""

    number: int
    key: str
    data: bytes


@dataclass(frozen=True)
class Problem:
    """One bad input: its place and the reason, in the form of an error message.

    Attributes:
        key: The place of the problem.
        reason: The error.
        blocking: Whether the problem stops the build even if bad inputs are skipped: a label outside the map is a
            mistake in the command, not in the file.
        input: The input it counts for, if that is not `key`: an image with two bad boxes is one bad input. None for a
            problem that belongs to no single input, such as one of a column or a class.
        kind: Common description of similar problems, in the plural, if their reasons differ by more than numbers:
            "annotations name an image that is not there". Problems of one kind are shown together.
        hint: Advice, with Python arguments: 'leave it out: boxes="drop"'.
    """

    key: str
    reason: str
    blocking: bool = False
    input: str | None = ""
    kind: str = ""
    hint: str = ""

    @property
    def bad_input(self) -> str | None:
        """The input that the problem counts for; None if it belongs to no single input."""
        return self.key if self.input == "" else self.input


def count_bad_inputs(problems: Iterable[Problem]) -> int:
    """Count the different inputs that have problems."""
    return len({problem.bad_input for problem in problems} - {None})


@dataclass(frozen=True)
class Items:
    """All items of a source, in its order, as columns: a million items take some ten megabytes.

    Attributes:
        size: Number of items.
        keys: Unique names, shown in messages: a path below the root, an id. None if items are named by row number.
        data: Small private bytes of each item for the reader, such as its annotations.
        is_data_derived: Whether `data` follows from the keys and the options, so that it is left out of digests.
        nbytes: Size of each item's input, for the plan's estimates and for progress. None if unknown.
        stamps: mtime of each input (ns), so that a resumed build detects changes.
        labels: Class id of each item, -1 for none, for `--stratify`.
        groups: Group number of each item; items of one group stay in one split.
        splits: Index into `split_names` of each item, -1 for none. None if the source does not define splits.
    """

    size: int
    keys: BytesColumn | None = None
    data: BytesColumn | None = None
    is_data_derived: bool = False
    nbytes: Int64Array | None = None
    stamps: Int64Array | None = None
    labels: Int64Array | None = None
    groups: Int64Array | None = None
    splits: Int64Array | None = None
    split_names: tuple[str, ...] = ()

    def key(self, number: int) -> str:
        """Return the name of an item for messages: its key, or else its row number."""
        return f"row {number}" if self.keys is None else os.fsdecode(self.keys[number])

    def item(self, number: int) -> Item:
        """Return one item, as it is passed to a reader."""
        return Item(number, self.key(number), b"" if self.data is None else self.data[number])

    def only(self, numbers: Int64Array) -> Items:
        """Return new `Items` of only these items, in the given order and numbered from 0."""
        columns = {name: getattr(self, name) for name in ("nbytes", "stamps", "labels", "groups", "splits")}
        return Items(
            len(numbers),
            keys=None if self.keys is None else _take_values(self.keys, numbers),
            data=None if self.data is None else _take_values(self.data, numbers),
            is_data_derived=self.is_data_derived,
            split_names=self.split_names,
            **{name: None if column is None else column[numbers] for name, column in columns.items()},
        )

    def take(self, numbers: Int64Array) -> TakenItems:
        """Return these items in the given order for a worker, with only the columns that a reader needs."""
        return TakenItems(
            numbers,
            None if self.keys is None else _take_values(self.keys, numbers),
            None if self.data is None else _take_values(self.data, numbers),
            None if self.nbytes is None else self.nbytes[numbers],
            None if self.stamps is None else self.stamps[numbers],
        )


@dataclass(frozen=True)
class TakenItems(Sequence[Item]):
    """The items of one shard or of a part of one, in the order of their records."""

    numbers: Int64Array
    keys: BytesColumn | None = None
    data: BytesColumn | None = None
    nbytes: Int64Array | None = None
    stamps: Int64Array | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return TakenItems(
                self.numbers[index],
                None if self.keys is None else self.keys[index],
                None if self.data is None else self.data[index],
                None if self.nbytes is None else self.nbytes[index],
                None if self.stamps is None else self.stamps[index],
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
    """Collects items one by one, sorts them by key and turns them into columns.

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
        # Keys are concatenated, with their end offsets: one object per key would take five times the memory.
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
        """Add one item."""
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
        """Add many items, which are already sorted by key."""
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
        """Return the items, sorted by key, or in the order in which they were added if `sort` is False.

        The items take over the memory of the builder; nothing can be added to it afterwards.
        """
        keys = _to_column(self._keys, self._key_stops)
        data = _to_column(self._data, self._data_stops) if self._data else None
        order: Int64Array | None = None
        if sort and not self._is_sorted:
            listed = list(keys)
            order = np.array(sorted(range(len(listed)), key=listed.__getitem__), np.int64)
            keys = BytesColumn.from_values([listed[i] for i in order])
            data = None if data is None else BytesColumn.from_values([data[int(i)] for i in order])
        columns: dict[str, Any] = {}
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
    """Reads one item at a time. It is sent to workers, so it is picklable and small; not used by several threads."""

    gives: ClassVar[Literal["rows"]] = "rows"

    def read(self, item: Item) -> Row:
        """Return the row of one item; raises `SourceError` or `OSError` for a bad input.

        A row of the form {"context": {...}, "feature_lists": {...}} becomes a SequenceExample. Values are of the types
        that `Writer.write` takes.
        """

    def files_of(self, item: Item) -> Sequence[str]:
        """Return the files that `read` will read for an item; those in a store are requested ahead."""
        return ()

    def take_facts(self) -> Facts:
        """Return the facts found since the last call."""


class ColumnReader(Protocol):
    """Reads many items at once as columns, for tables and arrays, whose rows never become Python objects."""

    gives: ClassVar[Literal["columns"]] = "columns"

    def read_columns(self, numbers: Int64Array) -> Mapping[str, Any]:
        """Return the columns of these items, in this order, as `Writer.write_columns` takes them."""


class FrameReader(Protocol):
    """Reads many items at once as columns, or as encoded frames, which takes less time."""

    gives: ClassVar[Literal["frames"]] = "frames"

    @property
    def row_nbytes(self) -> float:
        """The approximate number of bytes per row."""

    def read_columns(self, numbers: Int64Array) -> Mapping[str, Any]:
        """Return the columns of these items, as in `ColumnReader`."""

    def open_framer(self, keys: Mapping[str, str]) -> Callable[[Int64Array], Frames]:
        """Return a thread-safe function that encodes items, by number, as frames; `keys` renames columns."""


class RecordReader(Protocol):
    """Reads many items at once as encoded records."""

    gives: ClassVar[Literal["records"]] = "records"

    def read_records(self, numbers: Int64Array) -> Sequence[bytes]:
        """Return the records of these items, in this order."""


Reader = RowReader | ColumnReader | FrameReader | RecordReader


@dataclass
class Scan:
    """The result of scanning a source.

    Attributes:
        looked_for: Completes the message "nothing to build, looked for ...", such as "images in data/ and below".
        items: All items without a problem. Inputs with a problem are in `problems` instead.
        reader: Reads items in workers.
        schema: The schema as far as it is known before reading. None if the build infers it from the written records.
        problems: All bad inputs.
        ignored: Counts of other files by kind (".txt", "hidden").
        notes: One sentence for each decision a user should know of; printed.
        counts: Title → name → count: {"class": {"apple": 10}}. Printed by a dry run.
        label_files: Name → text of files to write next to the shards (classes.txt, charset.txt).
        order: Default order of the records if nothing is split: the order of files in folders has no meaning, that of
            arrays and tables has.
        refine: Returns the schema with the facts found by reading: formats, channels, sizes.
        explain: Returns one sentence for each notable fact found by reading, for the report.
        floats: What the writer does with floats that float32 cannot represent, as in `Writer`.
        fingerprint: A digest of the contents of inputs that are not items, such as the single file of a table.
        stamp: mtime of the newest of the inputs that are not items (ns).
        sidecars: Sidecars of records that are copied unchanged; the sidecars are copied, too.
        found: Number of inputs, good and bad. None if that is the number of items plus the number of bad inputs.
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
    order: RecordOrder = "seeded"
    refine: Callable[[Facts], Schema] | None = None
    explain: Callable[[Facts], list[str]] | None = None
    floats: Floats = "ask"
    fingerprint: str = ""
    stamp: int = 0
    sidecars: Sidecars | None = None
    found: int | None = None

    @property
    def num_inputs(self) -> int:
        """The number of scanned inputs."""
        if self.found is not None:
            return self.found
        return self.items.size + count_bad_inputs(self.problems)

    def schema_after(self, facts: Facts) -> Schema | None:
        """Return the schema after everything was read, with the facts found by reading."""
        return self.schema if self.refine is None else self.refine(facts)

    def notes_after(self, facts: Facts) -> list[str]:
        """Return the notes about facts found by reading."""
        return [] if self.explain is None else self.explain(facts)


@runtime_checkable
class Source(Protocol):
    """A source of samples. Creating one reads nothing; `scan` reads."""

    @property
    def kind(self) -> str:
        """The name of the source on the command line: "class-folders"."""

    @property
    def title(self) -> str:
        """The name of the input for messages: its path."""

    def options(self) -> dict[str, Any]:
        """Return every option that affects the output, as JSON values. Changing one changes the plan."""

    def scan(self, scratch: str) -> Scan:
        """Scan all inputs once. Raises `SourceError` if there is nothing to scan.

        `scratch` is a folder on the disk of the output that exists until the build is done; workers can read it, too.
        """


def read_items(items: TakenItems, reader: RowReader) -> Iterator[Item]:
    """Yield items to read, in order; their files in a store are requested ahead, and must be those of the scan."""
    if not items or not any(map(has_scheme, reader.files_of(items[0]))):
        return iter(items)
    sizes, stamps = (None if column is None else column.tolist() for column in (items.nbytes, items.stamps))
    return read_ahead(items, reader.files_of, sizes=sizes, stamps=stamps)


def require_some(scan: Scan) -> None:
    """Raise if a scan found neither items nor problems: an empty build is not a success."""
    if scan.items.size or scan.problems:
        return
    others = ", ".join(f"{count} {name}" for name, count in scan.ignored.most_common(5))
    raise SourceError(
        f"nothing to build, looked for {scan.looked_for}" + (f", found other files only: {others}" if others else "")
    )


def fingerprint_file(path: str) -> tuple[str, int]:
    """Return a digest of a file's size and of samples from all over it, and its mtime (ns). Reads at most 1 MiB."""
    digest = hashlib.sha256()
    with open_to_read(copy_of(path)) as file:
        info = os.fstat(file.fileno())
        digest.update(info.st_size.to_bytes(8, "little"))
        for sample in range(_FINGERPRINT_SAMPLES):
            file.seek(max(0, info.st_size - _FINGERPRINT_NBYTES) * sample // (_FINGERPRINT_SAMPLES - 1))
            digest.update(file.read(_FINGERPRINT_NBYTES))
    return digest.hexdigest()[:32], stat_input(path)[1]
