"""JSON lines: one object per line, whose keys are the columns. Keys of inner objects are columns ``outer/inner``.

Bytes and arrays in the form that `tfr export jsonl` writes are converted back; see `sources.json_values`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tfrkit.codec.columns import BytesColumn
from tfrkit.codec.tensor_proto import encode_tensor
from tfrkit.errors import SourceError
from tfrkit.sources.json_values import Constant, TensorForm, thaw_value
from tfrkit.sources.walk import describe_unreadable
from tfrkit.storage.inputs import copy_of

JsonKind = Literal["int64", "float", "text", "bytes", "tensor"]

_BLOCK_ROWS = 1 << 13
_MAX_PLACES = 5
_MAX_DEPTH = 16
_SAFE_INT = 1 << 53
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_FROM_LIST = "jq -c '.[]' makes lines of the objects of a list"
_WORDS: dict[str, str] = {
    "int64": "integers", "float": "numbers", "text": "text", "bytes": "bytes", "tensor": "tensors"
}  # fmt: skip
LISTS_EVERYWHERE = "write a list in every line, [1] for 1"
"""The hint for a column with lists in some lines only."""
_NO_TEXT = {(kind, is_list) for kind in ("bytes", "tensor") for is_list in (False, True)}


@dataclass
class JsonColumn:
    """The kinds of the values of one key in all lines, with their counts and the first lines in which they occur."""

    kinds: dict[tuple[JsonKind, bool], list[int]] = field(default_factory=dict)
    counts: dict[tuple[JsonKind, bool], int] = field(default_factory=dict)
    wide: list[int] = field(default_factory=list)
    inexact: list[int] = field(default_factory=list)
    tensors: TensorForm = field(default_factory=TensorForm)

    def add(self, kind: JsonKind, is_list: bool, line: int) -> None:
        """Count one value."""
        key = (kind, is_list)
        self.counts[key] = self.counts.get(key, 0) + 1
        lines = self.kinds.setdefault(key, [])
        if len(lines) < _MAX_PLACES:
            lines.append(line)

    @property
    def can_be_text(self) -> bool:
        """Whether all values can be stored as text: none are bytes or tensors, and all or none are lists."""
        return bool(self.kinds) and not self.mixes_lists and not self.kinds.keys() & _NO_TEXT

    @property
    def mixes_lists(self) -> bool:
        """Whether some values are lists and others are not."""
        return len({is_list for _, is_list in self.kinds}) > 1

    @property
    def _rare(self) -> tuple[JsonKind, bool]:
        """The kind of the fewest values; of kinds with equal counts, the one that occurs last."""
        return min(self.counts, key=lambda key: (self.counts[key], -self.kinds[key][0]))

    def decide(self, wanted: str | None = None) -> tuple[JsonKind, bool] | None:
        """Return (kind, is a list), or None if no line has a value; raises ValueError(reason, lines) if lines differ.

        If text is `wanted`, numbers are accepted, too, and become their JSON text.
        """
        if not self.kinds:
            return None
        rare = self._rare
        if self.mixes_lists:
            what = "lists" if rare[1] else "single values"
            raise ValueError(f"expected lists or single values in all lines, got both; {what}", self.kinds[rare])
        is_list = next(iter(self.kinds))[1]
        names: set[JsonKind] = {kind for kind, _ in self.kinds}
        if wanted == "text" and self.can_be_text:
            return "text", is_list
        if wanted is not None:
            fitting = {"text": {"text"}, "float": {"int64", "float"}, "int64": {"int64"}}[wanted]
            for kind in names - fitting:
                raise ValueError(f"expected {_WORDS[wanted]}, got {_WORDS[kind]}", self.kinds[kind, is_list])
            names = {"float"} if wanted == "float" else names
        if names == {"int64", "float"}:
            names = {"float"}
        if names == {"text", "bytes"}:
            names = {"bytes"}
        if len(names) > 1:
            others = " and ".join(sorted(_WORDS[kind] for kind in names))
            raise ValueError(f"expected values of the same type, got {others}; {_WORDS[rare[0]]}", self.kinds[rare])
        if self.inexact and names == {"float"}:
            raise ValueError("expected numbers that fit in float64, got integers that it would round", self.inexact)
        if self.wide:
            raise ValueError("expected signed 64-bit integers, got larger ones", self.wide)
        return names.pop(), is_list


class JsonLines:
    """A file of JSON lines. `survey` reads all of them; bad lines are skipped afterwards."""

    def __init__(self, path: str, encoding: str = "utf-8") -> None:
        self.path = path
        self._encoding = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
        self._bad: set[int] = set()

    def survey(self) -> tuple[dict[str, JsonColumn], int, list[tuple[int, str]]]:
        """Return the columns, the number of good rows, and (line, reason) of each bad line."""
        columns: dict[str, JsonColumn] = {}
        problems: list[tuple[int, str]] = []
        num_rows = 0
        for line, text in self._lines():
            try:
                row = parse_line(text, thaws=True)
                look_at_row(columns, row, line)
            except SourceError as error:
                raise error.replace(shard=f"{self.path}, line {line}") from None
            except ValueError as error:
                problems.append((line, str(error)))
                self._bad.add(line)
            else:
                num_rows += 1
        return columns, num_rows, problems

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield (line, values by name) of every good line."""
        for line, text in self._lines():
            if line not in self._bad:
                yield line, parse_line(text, thaws=True)

    def first_row(self) -> Iterator[Any]:
        """Yield the first line that is not empty, as JSON; raises ValueError if it is not valid."""
        for _, text in self._lines():
            yield _load(text)
            return

    def sequences(self) -> Iterator[tuple[int, dict[str, Any] | ValueError]]:
        """Yield (line, SequenceExample) of every line, with the error of a line that is none."""
        for line, text in self._lines():
            try:
                row = _load(text)
                if not is_sequence(row):
                    raise ValueError("expected a SequenceExample with context and feature_lists, as in the first line")
                parts = {
                    part: {name: _thaw(name, value) for name, value in values.items()} for part, values in row.items()
                }
                for name, frames in parts["feature_lists"].items():
                    if not isinstance(frames, list) and np.ndim(frames) == 0:
                        raise ValueError(f"feature list {name!r:.64} expected a list of frames, got {frames!r:.40}")
                yield line, parts
            except RecursionError:
                yield line, ValueError("JSON is nested too deeply")
            except ValueError as error:
                yield line, error

    def blocks(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the rows in blocks."""
        rows: list[dict[str, Any]] = []
        for _, row in self.rows():
            rows.append(row)
            if len(rows) == _BLOCK_ROWS:
                yield rows
                rows = []
        if rows:
            yield rows

    def lines_of(self, rows: Iterable[int]) -> dict[int, int]:
        """Return the line of each of these rows."""
        wanted = set(rows)
        return {row: line for row, (line, _) in enumerate(self.rows()) if row in wanted}

    def _lines(self) -> Iterator[tuple[int, str]]:
        try:
            with open(copy_of(self.path), encoding=self._encoding) as file:
                for number, line in enumerate(file, 1):
                    if line.strip():
                        yield number, line
        except UnicodeDecodeError as error:
            raise SourceError(f"expected text, got byte {error.object[error.start]:#04x}", shard=self.path) from None
        except OSError as error:
            raise SourceError(describe_unreadable(error, "open"), shard=self.path) from None


def parse_line(line: str, *, thaws: bool = False) -> dict[str, Any]:
    """Parse one line to values by name; raises ValueError if it is invalid.

    With `thaws`, objects that represent bytes, a number or an array are converted to it.

    Example:
        >>> parse_line('{"a": 1, "b": {"c": [2, 3]}}')
        {'a': 1, 'b/c': [2, 3]}
    """
    value = _load(line)
    try:
        if thaws and isinstance(value, dict):
            _refuse_sequence(value)
            value = {name: _thaw(name, one) for name, one in value.items()}
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None
    if not isinstance(value, dict):
        more = f"; {_FROM_LIST}" if isinstance(value, list) and value and isinstance(value[0], dict) else ""
        raise ValueError(f"expected one object per line, got {type(value).__name__}{more}")
    return value if not any(isinstance(one, dict) for one in value.values()) else _flatten(value)


def _load(line: str) -> Any:
    """Parse one line; raises ValueError if it is not valid JSON."""
    try:
        return json.loads(line, parse_constant=Constant, object_pairs_hook=_collect)
    except json.JSONDecodeError as error:
        more = f"; one object per line is expected, {_FROM_LIST}" if line[:1] == "[" else ""
        raise ValueError(f"not valid JSON, {error.msg.lower()}{more}") from None
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None


def is_sequence(value: Any) -> bool:
    """Return whether a line is a SequenceExample: context and feature_lists, both objects, and nothing else."""
    return (
        isinstance(value, dict)
        and value.keys() == {"context", "feature_lists"}
        and all(isinstance(part, dict) for part in value.values())
    )


def _refuse_sequence(value: dict[str, Any]) -> None:
    """Raise `SourceError` for a SequenceExample among rows: as columns, its frames would be features of an Example."""
    if is_sequence(value):
        raise SourceError(
            "a line with context and feature_lists is a SequenceExample, expected a row of columns",
            hint="tfr build table makes SequenceExamples of a file in which every line is one",
        )


def _thaw(name: str, value: Any) -> Any:
    try:
        return thaw_value(value)
    except ValueError as error:
        raise ValueError(f"column {name!r:.64} {error}") from None


def _collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a dict from a JSON object; raises ValueError for a duplicate key, which would lose a value."""
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {max(names, key=names.count)!r:.64} is present twice")
    return values


def _flatten(value: dict[str, Any], depth: int = 0) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, inner in value.items():
        if isinstance(inner, dict):
            if depth == _MAX_DEPTH:
                raise ValueError(f"expected at most {_MAX_DEPTH} levels of objects, got more")
            for key, one in _flatten(inner, depth + 1).items():
                _add(flat, f"{name}/{key}", one)
        else:
            _add(flat, name, inner)
    return flat


def _add(values: dict[str, Any], name: str, value: Any) -> None:
    if name in values:
        raise ValueError(f"key {name!r:.64} is present twice, as a key and as an inner one")
    values[name] = value


def _kind_of(value: object) -> JsonKind:
    if isinstance(value, (bool, int)):
        return "int64"
    if isinstance(value, float):
        if math.isinf(value) and not isinstance(value, Constant):
            raise ValueError("expected a number that fits in float64, got a larger one")
        return "float"
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise ValueError("expected text that UTF-8 can encode, got half of a character")
        return "text"
    if isinstance(value, bytes):
        return "bytes"
    name = "null" if value is None else "a list" if isinstance(value, list) else "an object"
    raise ValueError(f"expected numbers or text, got {name} inside a list")


def look_at_row(columns: dict[str, JsonColumn], row: dict[str, Any], line: int) -> None:
    """Add the kinds of a row's values to `columns`; raises ValueError and adds nothing if no feature can store one."""
    found = []
    for name, value in row.items():
        values = value if isinstance(value, list) else [] if value is None else [value]
        try:
            kinds: set[JsonKind] = {"tensor"} if isinstance(value, np.ndarray) else {_kind_of(one) for one in values}
            found.append((name, value, values, kinds))
        except ValueError as error:
            raise ValueError(f"column {name!r:.64} {error}") from None
    for name, value, values, kinds in found:
        column = columns.setdefault(name, JsonColumn())
        for kind in kinds:
            column.add(kind, isinstance(value, list), line)
            if kind == "tensor":
                column.tensors.add(value)
        for one in values:
            if isinstance(one, int) and abs(one) > _SAFE_INT:
                _note_large(column, one, line)


def _note_large(column: JsonColumn, value: int, line: int) -> None:
    if not _INT64_MIN <= value <= _INT64_MAX and len(column.wide) < _MAX_PLACES:
        column.wide.append(line)
    is_inexact = abs(value) > 1 << 1000 or float(value) != value
    if is_inexact and len(column.inexact) < _MAX_PLACES:
        column.inexact.append(line)


def convert_values(rows: list[dict[str, Any]], name: str, kind: JsonKind, is_list: bool) -> tuple[Any, Any, Any]:
    """Return (values, lengths of lists, missing rows) of one column of these rows, as the spool takes them."""
    found = [row.get(name) for row in rows]
    is_missing = np.array([value is None for value in found], np.uint8)
    missing = is_missing if is_missing.any() else None
    if not is_list:
        filler: Any = b"" if kind in ("bytes", "tensor") else "" if kind == "text" else 0
        return _pack([filler if value is None else value for value in found], kind), None, missing
    lists = [[] if value is None else value for value in found]
    lengths = np.array([len(value) for value in lists], np.int64)
    return _pack([one for value in lists for one in value], kind), lengths, missing


def _pack(values: list[Any], kind: JsonKind) -> Any:
    if kind == "text":
        texts = (value if isinstance(value, str) else json.dumps(value) for value in values)
        return BytesColumn.from_values([text.encode() for text in texts])
    if kind == "bytes":
        return BytesColumn.from_values([value.encode() if isinstance(value, str) else value for value in values])
    if kind == "tensor":
        tensors = (value if isinstance(value, bytes) else encode_tensor(value) for value in values)
        return BytesColumn.from_values(list(tensors))
    return np.array(values, np.int64 if kind == "int64" else np.float64)
