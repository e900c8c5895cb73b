"""Every error tfrkit raises on purpose, and every warning it gives.

TfrkitError
├── StorageError          address, permission, a file that shrank
│   ├── RemoteAddressError
│   └── UnfinishedChangeError
├── ContainerError        damage or a foreign format
│   ├── CorruptRecordError
│   ├── TruncatedShardError
│   ├── NotATFRecordError
│   ├── StaleIndexError
│   └── CompressionError
├── CodecError            a record that is not the expected message
│   ├── WireError
│   └── FeatureKindError
├── SchemaError           a feature that does not fit the schema
│   ├── MissingFeatureError
│   ├── UnknownFeatureError
│   └── ShapeError
├── LimitError            a limit of tfrkit; the data may be sound
├── OtherPartsError       one of several parts is done, the result is not here
├── SourceError           a sample that cannot become a row
└── QueryError            an expression that cannot be evaluated

TfrkitWarning             a UserWarning: shown unless filtered
├── StaleIndexWarning     an index that does not fit its shard
├── SidecarWarning        a sidecar that cannot be used
├── LostRowsWarning       a writer that was never closed
├── GuessedKindWarning    a feature that is an empty list in every row
├── IncompleteSetWarning  missing shards of a numbered set
├── EmptyShardWarning     an empty shard among others
├── UnlistedShardWarning  a shard that the manifest of its folder does not list
├── SkippedRecordsWarning damage skipped by a pass
├── RankBatchWarning      a batch size shared between ranks without `per_rank`
└── CpuImagesWarning      images decoded on the CPU instead of the requested device

A message reads "what, stored against expected - at where"; a second line, if present, is a hint. The same facts are
attributes: `shard`, `record` (ordinal in the shard), `offset` (byte in the shard, after inflating; for a
CompressionError, in the stored file), `row` (of a batch whose records are not known) and `fault`, if one class covers
several faults: "payload_checksum", "length_checksum".
"""

from __future__ import annotations

import copy
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

E = TypeVar("E", bound=Exception)


@dataclass(frozen=True, init=False)
class Step:
    """One next step. `{name}` in `text` is an argument of the call, with its value in `arguments`.

    The value ... is a placeholder for the user's own. A step in Python (`ds.records()`) is not shown by a command.

    Example:
        >>> str(Step("read on: {on_error}", on_error="skip")), str(Step("leave it out: {select}", select=[...]))
        ('read on: on_error="skip"', 'leave it out: select=[...]')
    """

    text: str
    arguments: dict[str, Any]
    in_python: bool

    def __init__(self, text: str, /, *, in_python: bool = False, **arguments: Any) -> None:
        for name, value in (("text", text), ("arguments", arguments), ("in_python", in_python)):
            object.__setattr__(self, name, value)

    def say(self, show: Callable[[str, Any], str]) -> str:
        """Return the text with each argument formatted by `show`."""
        text = self.text
        for name, value in self.arguments.items():
            text = text.replace(f"{{{name}}}", show(name, value))
        return text

    def __str__(self) -> str:
        return self.say(lambda name, value: f"{name}={_show_value(value)}")


def _show_value(value: Any) -> str:
    if value is ...:
        return "..."
    if isinstance(value, list):
        return f"[{', '.join(map(_show_value, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_show_value(key)}: {_show_value(item)}" for key, item in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else repr(value)


class Hint(str):
    """Next steps, or a note with arguments, in Python syntax; a command prints its `steps` with its own options."""

    steps: tuple[Step | str, ...]
    gap: str

    def __new__(cls, *steps: Step | str, gap: str = "    ") -> Hint:
        hint = super().__new__(cls, gap.join(map(str, steps)))
        hint.steps, hint.gap = steps, gap
        return hint


def in_one_line(text: str) -> str:
    """Escape the line breaks of a text: names of files and features may have them, and a new line begins a hint.

    Example:
        >>> print(in_one_line("no images - at cat/new\\nline.png"))
        no images - at cat/new\\nline.png
    """
    return text.replace("\r", "\\r").replace("\n", "\\n")


def misuse(what: str, *steps: Step | str) -> ValueError:
    """Make a ValueError for a wrong argument; message and hint are attributes, as in a `TfrkitError`."""
    hint = Hint(*steps)
    error: Any = ValueError(f"{in_one_line(what)}\n  {hint}")
    error.what, error.hint = what, hint
    return error  # type: ignore[no-any-return]


def at_row(kind: type[E], what: str, row: int, hint: str | None = None) -> E:
    """Make an error about a row that cannot be written; `what`, without the place, and `hint` are attributes."""
    if issubclass(kind, TfrkitError):
        return kind(what, shard=f"row {row}", hint=hint)
    error: Any = kind(f"{what} - at row {row}" + (f"\n  {hint}" if hint else ""))
    error.what, error.hint = what, hint
    return error  # type: ignore[no-any-return]


class TfrkitError(Exception):
    """Base of every error that tfrkit raises on purpose."""

    def __init__(
        self,
        what: str,
        *,
        shard: str | None = None,
        record: int | None = None,
        offset: int | None = None,
        hint: str | None = None,
        row: int | None = None,
        fault: str | None = None,
    ) -> None:
        self.what = what
        self.shard = shard
        self.record = record
        self.offset = offset
        self.hint = hint
        self.row = row
        self.fault = fault
        super().__init__(what, shard, record, offset, hint)

    def __str__(self) -> str:
        where = []
        if self.shard is not None:
            where.append(self.shard)
        if self.record is not None:
            where.append(f"record {self.record}")
        if self.offset is not None:
            where.append(f"byte {self.offset}")
        if self.row is not None:
            where.append(f"row {self.row} of the batch")
        text = in_one_line(f"{self.what} - at {', '.join(where)}" if where else self.what)
        return f"{text}\n  {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.what,), self.__dict__

    def replace(self, **changes: Any) -> Self:
        """Return the same error with another message, place or hint."""
        other = copy.copy(self)
        vars(other).update(changes)
        return other


class StorageError(TfrkitError):
    """An address that cannot be read or written."""


class RemoteAddressError(StorageError):
    """A remote address, such as s3://bucket/x, where a local path is needed."""


class UnfinishedChangeError(StorageError):
    """A folder whose files are being replaced, or whose replacement was interrupted: some files are old, some new."""


class ContainerError(TfrkitError):
    """A shard whose bytes are not a sound TFRecord."""


class CorruptRecordError(ContainerError):
    """A checksum mismatch."""


class TruncatedShardError(ContainerError):
    """A shard that ends inside a frame."""


class NotATFRecordError(ContainerError):
    """A file in another format."""


class StaleIndexError(ContainerError):
    """An index that does not fit its shard."""


class CompressionError(ContainerError):
    """A compressed stream that does not inflate."""


class CodecError(TfrkitError):
    """A record that is not the expected message."""


class WireError(CodecError):
    """Bytes that are not a well-formed protobuf message."""


class FeatureKindError(CodecError):
    """A feature of an unexpected kind."""


class SchemaError(TfrkitError):
    """A feature that does not fit the schema."""


class MissingFeatureError(SchemaError):
    """A missing feature."""


class UnknownFeatureError(SchemaError):
    """A feature that is missing from a schema inferred from a sample."""


class ShapeError(SchemaError):
    """A feature of an unexpected length or shape."""


class LimitError(TfrkitError):
    """Data that exceeds a limit of tfrkit. The data may be sound, so it is never skipped."""


class OtherPartsError(TfrkitError):
    """This part of a verb is done, and the result is not here: other parts are missing, or one has written it."""


class SourceError(TfrkitError):
    """A sample that cannot become a row.

    If a build reports several, `problems` has one entry each, with `key` and `reason`, and `advice` is what to do about
    all of them.
    """

    problems: tuple[Any, ...] = ()
    advice: str = ""


class QueryError(TfrkitError):
    """An expression that cannot be evaluated.

    `position` is the character of the query, from 0, and `missing_column` the unknown name, if that is the cause.
    """

    position: int | None = None
    missing_column: str | None = None


class TfrkitWarning(UserWarning):
    """Base of all warnings; the work continues."""


class StaleIndexWarning(TfrkitWarning):
    """An index does not fit its shard and is not used: frames are found by reading the shard."""


class SidecarWarning(TfrkitWarning):
    """A sidecar that cannot be used, or does not fit the shards."""


class LostRowsWarning(TfrkitWarning):
    """Rows were written, but the writer was never closed: its file does not appear."""


class GuessedKindWarning(TfrkitWarning):
    """A feature was an empty list in every row, so its kind is unknown; bytes were assumed."""


class IncompleteSetWarning(TfrkitWarning):
    """Shards of a set named -00000-of-00012 are missing; `missing` names them."""

    def __init__(self, message: str, missing: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.missing = missing


class EmptyShardWarning(TfrkitWarning):
    """Some of several shards are empty, and no manifest lists them as empty; `shards` names them."""

    def __init__(self, message: str, shards: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.shards = shards


class UnlistedShardWarning(TfrkitWarning):
    """Shards that the manifest of their folder does not list; `shards` names them."""

    def __init__(self, message: str, shards: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.shards = shards


class SkippedRecordsWarning(TfrkitWarning):
    """A pass with on_error="skip" skipped damaged records. `Dataset.errors` lists them."""


class RankBatchWarning(TfrkitWarning):
    """A batch is shared between ranks, and `batch` was called without `per_rank`."""


class CpuImagesWarning(TfrkitWarning):
    """The CPU decoded images because the decoder of the requested device does not support them."""


def warn_caller(warning: TfrkitWarning) -> None:
    """Warn at the line of the user's program that called tfrkit, at any depth inside tfrkit."""
    ours = os.path.dirname(__file__) + os.sep
    frame, level = sys._getframe(0), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ours):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)
