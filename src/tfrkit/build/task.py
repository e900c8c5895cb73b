"""Tasks: idempotent units of work, such as writing a shard or a part of one. Equal tasks write equal bytes.

A part is a range of a shard's frames. Frames follow each other without gaps, so the concatenated parts are the shard:
cutting a shard for more workers does not change its bytes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Literal

import numpy as np

from tfrkit._types import Row
from tfrkit.build.estimate import size_row
from tfrkit.build.journal import BadItem, ShardResult, drop_done, read_done, write_done
from tfrkit.codec.coerce import Floats
from tfrkit.codec.columns import BytesColumn, Column, Ragged
from tfrkit.container.compression import Compression, Level
from tfrkit.container.index import index_path
from tfrkit.container.locate import save_index
from tfrkit.engines.base import Tick
from tfrkit.errors import CodecError, SchemaError, SourceError, TfrkitError
from tfrkit.features.rename import rename_keys
from tfrkit.sources.base import (
    ColumnReader,
    FrameReader,
    Item,
    Reader,
    RecordReader,
    RowReader,
    TakenItems,
    read_items,
)
from tfrkit.sources.walk import describe_unreadable
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import describe_os_error
from tfrkit.storage.digest import hash_file
from tfrkit.storage.local import LocalWriter, open_to_read
from tfrkit.storage.options import StorageOptions, use_given
from tfrkit.writer import Writer

OnBad = Literal["fail", "skip"]

# Exceptions that a reader raises for a bad input; any other exception is a bug.
BAD_INPUT = (SourceError, CodecError, OSError)
# Columns and records are read in blocks of about this size; the first block is small, to learn the size of a row.
_BLOCK_NBYTES = 16 << 20
_FIRST_ROWS = 64
_MAX_ROWS = 1 << 14
_COPY_NBYTES = 8 << 20


@dataclass(frozen=True)
class ShardTask:
    """Everything needed to write one shard, or part `part` of `num_parts`."""

    path: str
    items: TakenItems
    reader: Reader
    compression: Compression = "none"
    level: Level = "default"
    floats: Floats = "ask"
    keys: Mapping[str, str] = field(default_factory=dict)
    on_bad: OnBad = "fail"
    part: int = 0
    num_parts: int = 1
    stores: Mapping[str, StorageOptions] = field(default_factory=dict)

    @property
    def output(self) -> str:
        """The file this task writes."""
        return self.path if self.num_parts == 1 else part_path(self.path, self.part, self.num_parts)

    @property
    def key(self) -> str:
        """The name of the file this task writes."""
        return os.path.basename(self.output)

    def cut(self, part: int, num_parts: int, start: int, stop: int) -> ShardTask:
        """Return the task of one part: items `start` to `stop`."""
        return replace(self, items=self.items[start:stop], part=part, num_parts=num_parts)

    def run(self, tick: Tick) -> ShardResult:
        """Write the shard, its index and its marker; write nothing if bad inputs fail the build.

        If another worker finished the same task meanwhile, its shard stays: the build may be reading it already.
        """
        use_given(self.stores)
        result = ShardResult(os.path.basename(self.path))
        is_whole = self.num_parts == 1
        is_first = read_done(self.output) is None
        digest = hashlib.sha256()
        writer = Writer(
            self.output,
            compression=self.compression,
            level=self.level,
            floats=self.floats,
            index=is_whole,
            # The checksum of a shard cannot be computed from the checksums of its parts.
            digest=digest if is_whole else None,
        )
        with writer:
            if self.reader.gives == "rows":
                is_sound = _write_rows(writer, self, self.reader, result, tick)
            else:
                is_sound = _write_blocks(writer, self, self.reader, tick)
            result.num_records = writer.num_records
            there = read_done(self.output) if is_first and is_sound else None
            if not is_sound or there is not None:
                writer.discard()
        if there is not None:
            return there
        result.facts = self.reader.take_facts() if self.reader.gives == "rows" else {}
        if is_sound:
            result.nbytes = os.path.getsize(self.output)
            result.sha256 = digest.hexdigest() if is_whole else ""
            write_done(self.output, result)
        return result


@dataclass(frozen=True)
class JoinTask:
    """Joins the written parts of a shard."""

    path: str
    num_parts: int

    @property
    def key(self) -> str:
        """The name of the shard."""
        return os.path.basename(self.path)

    def run(self, tick: Tick) -> ShardResult:
        """Copy the parts into the shard and remove them. Any number of workers may do this at the same time."""
        if (there := self._find_joined()) is not None:
            return there  # a worker joined them, and died before it could report that
        result = ShardResult(os.path.basename(self.path))
        parts = [part_path(self.path, part, self.num_parts) for part in range(self.num_parts)]
        for path in parts:
            marker = read_done(path)
            if marker is None:
                raise SourceError("a part of a shard is missing", shard=path)
            result.add(marker)
        digest = hashlib.sha256()
        with LocalWriter(self.path) as writer:
            for path in parts:
                with open_to_read(path) as part:
                    while piece := part.read(_COPY_NBYTES):
                        digest.update(piece)
                        writer.write(piece)
            if (there := self._find_joined()) is not None:
                return there  # another worker was faster; the build may be reading its shard already
            writer.commit()
        result.sha256 = digest.hexdigest()
        save_index(self.path)
        write_done(self.path, result)
        for path in parts:
            drop_done(path)
        return result

    def _find_joined(self) -> ShardResult | None:
        return read_done(self.path) if os.path.exists(index_path(self.path)) else None


@dataclass(frozen=True)
class ReadTask:
    """Reads items without writing them, to find the bad ones."""

    path: str
    items: TakenItems
    reader: RowReader
    stores: Mapping[str, StorageOptions] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The range of items."""
        return self.path

    def run(self, tick: Tick) -> ShardResult:
        """Return the bad items, and the approximate size of the records of the others."""
        use_given(self.stores)
        result = ShardResult(self.path)
        for item, nbytes in zip(read_items(self.items, self.reader), _sizes_of(self.items), strict=True):
            try:
                result.nbytes += size_row(self.reader.read(item))
                result.num_records += 1
                tick(1, nbytes, 0)
            except BAD_INPUT as error:
                result.bad.append(describe_bad(_place_of(item, self.reader), error))
                tick(1, nbytes, 1)
        result.facts = self.reader.take_facts()
        return result


@dataclass(frozen=True)
class CheckTask:
    """Compares a shard of an earlier run with its marker."""

    path: str

    @property
    def key(self) -> str:
        """The name of the shard."""
        return os.path.basename(self.path)

    def run(self, tick: Tick) -> ShardResult | None:
        """Return the marker; if the shard does not match it or has no index, remove the shard and return None."""
        result = read_done(self.path)
        if result is not None and hash_file(self.path) == result.sha256 and os.path.exists(index_path(self.path)):
            return result
        drop_done(self.path)
        return None


def part_path(path: str, part: int, num_parts: int) -> str:
    """Return the path of a part of a shard."""
    return f"{path}.part-{part:05d}-of-{num_parts:05d}"


def _place_of(item: Item, reader: RowReader) -> str:
    """Return the place of an item for messages: its address if it is read from a store, else its key."""
    return next(filter(has_scheme, reader.files_of(item)), item.key)


def describe_bad(key: str, error: Exception) -> BadItem:
    """Describe the problem of an input, with a hint."""
    if isinstance(error, TfrkitError):
        return BadItem(key, error.what, error.hint or "")
    if isinstance(error, OSError) and error.strerror:
        reason = f"cannot read, {describe_os_error(error)}" if has_scheme(key) else describe_unreadable(error)
        return BadItem(key, reason)
    return BadItem(key, str(error))


def _write_rows(writer: Writer, task: ShardTask, reader: RowReader, result: ShardResult, tick: Tick) -> bool:
    """Write row by row. After a bad input that fails the build, read on, so that all bad inputs are reported."""
    is_sound = True
    for item, nbytes in zip(read_items(task.items, reader), _sizes_of(task.items), strict=True):
        try:
            row = reader.read(item)
            num_bad = 0
        except BAD_INPUT as error:
            result.bad.append(describe_bad(_place_of(item, reader), error))
            is_sound = is_sound and task.on_bad == "skip"
            num_bad = 1
        else:
            if is_sound:
                row = row if not task.keys else rename_row(row, task.keys)
                try:
                    writer.write(row)
                except (CodecError, SchemaError, ValueError, TypeError) as error:
                    raise SourceError(getattr(error, "what", str(error)), shard=item.key) from error
        result.nbytes_in += nbytes
        tick(1, nbytes, num_bad)
    return is_sound


def _sizes_of(items: TakenItems) -> Iterable[int]:
    return repeat(0, len(items)) if items.nbytes is None else items.nbytes.tolist()


def _write_blocks(
    writer: Writer, task: ShardTask, reader: ColumnReader | FrameReader | RecordReader, tick: Tick
) -> bool:
    numbers = task.items.numbers
    start, num_rows = 0, _FIRST_ROWS
    while start < len(numbers):
        block = np.ascontiguousarray(numbers[start : start + num_rows])
        if reader.gives == "records":
            records = reader.read_records(block)
            for record in records:
                writer.write_record(record)
            nbytes = sum(map(len, records))
        else:
            columns = reader.read_columns(block)
            writer.write_columns(rename_keys(columns, task.keys) if task.keys else columns)
            nbytes = sum(map(_size_column, columns.values()))
        tick(len(block), 0, 0)
        start += len(block)
        num_rows = max(1, min(_MAX_ROWS, _BLOCK_NBYTES * len(block) // max(1, nbytes)))
    return True


def _size_column(column: Column) -> int:
    if isinstance(column, np.ndarray):
        return column.nbytes
    if isinstance(column, BytesColumn):
        return column.data.nbytes
    return _size_column(column.values) if isinstance(column, Ragged) else 64 * len(column)


def rename_row(row: Row, keys: Mapping[str, str]) -> Row:
    """Rename features of a row, also in the context and feature lists of a SequenceExample."""
    if row.keys() <= {"context", "feature_lists"} and all(isinstance(value, dict) for value in row.values()):
        return {part: rename_keys(features, keys) for part, features in row.items()}
    return rename_keys(row, keys)
