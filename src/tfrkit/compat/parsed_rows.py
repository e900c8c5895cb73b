"""Rows of records that are parsed many at a time.

Between the steps of a dataset an element may be a record that is not a tensor yet (bytes), or a `ParsedRow`. Steps that
only change the order and number of elements pass them on; `to_value` makes the element itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tfrkit.compat.collate import batch_elements
from tfrkit.compat.feature_specs import FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, count_of, shape_of
from tfrkit.compat.op_errors import OpError
from tfrkit.compat.parse_columns import ParsedColumn, read_columns
from tfrkit.compat.parse_example import gather, wanted_columns
from tfrkit.compat.recognise import ParsedPart, find_parsing
from tfrkit.compat.structure import map_parts
from tfrkit.compat.tensor import SparseTensor, object_array, wrap
from tfrkit.errors import TfrkitError

_ERRORS = (OpError, TypeError, ValueError)  # of records and specs that do not fit
# Records parsed at a time: 1 at first, because many scripts take one element, then twice as many each time. A row that
# waits in a shuffle buffer keeps its run in memory, so a run of large records is short.
_MAX_RECORDS = 256
_MAX_NBYTES = 128 << 10
_take = np.ndarray.__getitem__  # a Tensor's own makes another tensor of each scalar


class _Plan:
    """The features that a recognised function parses, and the structure it returns."""

    def __init__(self, features: dict[str, Any], structure: Any) -> None:
        self._features = features
        self._wanted = wanted_columns(features)
        self.structure = _to_tuples(structure)
        self.text = repr((features, map_parts(lambda part: [part.key], self.structure)))

    def read(self, records: list[bytes]) -> dict[str, tuple[Any, ParsedColumn | None]]:
        """Parse records: by feature, the batch tensor, and for features of varying length the column, too."""
        columns = read_columns(records, "example", self._wanted)
        found = {}
        for key, spec in self._features.items():
            column = columns[key, False]
            found[key] = gather(key, spec, columns), None if isinstance(spec, FixedLenFeature) else column
        return found

    def row_shape(self, key: str) -> tuple[int, ...] | None:
        """Return the shape of an item of a padded feature, None of a sparse one."""
        spec = self._features[key]
        return shape_of(key, spec) if isinstance(spec, FixedLenSequenceFeature) else None


def _to_tuples(structure: Any) -> Any:
    if isinstance(structure, dict):
        return {name: _to_tuples(part) for name, part in structure.items()}
    return tuple(map(_to_tuples, structure)) if isinstance(structure, (list, tuple)) else structure


def _make_plan(function: Callable[..., Any], before: _Plan | None) -> _Plan | None:
    """Return the plan of a function, None if it is not recognised; `before` if the function has not changed."""
    found = find_parsing(function)
    if found is None:
        return None
    try:
        plan = _Plan(*found) if all(_is_simple(key, spec) for key, spec in found[0].items()) else None
    except _ERRORS:
        return None  # the specs are wrong: the function raises this for each record
    return before if plan is not None and before is not None and before.text == plan.text else plan


def _is_simple(key: str, spec: Any) -> bool:
    if isinstance(spec, FixedLenSequenceFeature):
        return bool(spec.allow_missing) and spec.default_value is None and count_of(shape_of(key, spec)) > 0
    return isinstance(spec, (FixedLenFeature, VarLenFeature))


class _Run:
    """Records that were parsed together."""

    __slots__ = ("_by_key", "_dense", "plan", "records")

    def __init__(self, plan: _Plan, records: list[bytes]) -> None:
        self.plan = plan
        self.records = records
        self._by_key = by_key = plan.read(records)
        structure = plan.structure
        # Most functions return a dict of tensors of fixed shape.
        is_dense = type(structure) is dict and all(
            type(part) is ParsedPart and by_key[part.key][1] is None for part in structure.values()
        )
        self._dense = [(name, by_key[part.key][0]) for name, part in structure.items()] if is_dense else None

    def element(self, number: int) -> Any:
        """Make the element of a record."""
        if self._dense is not None:
            place = (number, ...)
            return {name: _take(tensor, place) for name, tensor in self._dense}
        return map_parts(lambda part: self._part(part.key, number), self.plan.structure)

    def _part(self, key: str, number: int) -> Any:
        tensor, column = self._by_key[key]
        if column is None:
            return _take(tensor, (number, ...))
        values = column.values[column.splits[number] : column.splits[number + 1]]
        shape = self.plan.row_shape(key)
        if shape is None:
            return SparseTensor(np.arange(len(values)).reshape(-1, 1), values, [len(values)])
        return wrap(values.reshape(-1, *shape))


class ParsedRow:
    """One record of a run."""

    __slots__ = ("number", "run")

    def __init__(self, run: _Run, number: int) -> None:
        self.run = run
        self.number = number


def to_value(item: Any) -> Any:
    """Make the element from a record or parsed row that steps passed on."""
    if type(item) is ParsedRow:
        return item.run.element(item.number)
    return wrap(item) if type(item) is bytes else item


def batch_items(items: list[Any]) -> Any:
    """Stack elements as `batch_elements` does; parsed rows are parsed again, together."""
    if all(type(item) is bytes for item in items):
        return wrap(object_array(items))
    if all(type(item) is ParsedRow for item in items):
        plan = items[0].run.plan
        if all(item.run.plan is plan for item in items):
            by_key = plan.read([item.run.records[item.number] for item in items])
            if all(_is_even(plan, key, column) for key, (_, column) in by_key.items()):
                return map_parts(lambda part: by_key[part.key][0], plan.structure)
    return batch_elements([to_value(item) for item in items])


def _is_even(plan: _Plan, key: str, column: ParsedColumn | None) -> bool:
    """Whether rows can be stacked without padding; a sparse batch has no padding."""
    return column is None or plan.row_shape(key) is None or len(set(np.diff(column.splits).tolist())) == 1


class MapRecords(Iterator[Any]):
    """`map` over records. If its function only parses, runs of records are parsed at once, else one record each time.

    An error is raised in its place, and the element after it follows.
    """

    def __init__(self, items: Iterator[Any], function: Callable[..., Any], change: Callable[[Any], Any]) -> None:
        self._items = items
        self._function = function
        self._change = change
        self._plan: _Plan | None = _make_plan(function, None)
        self._limit = 1
        self._ready: Iterator[ParsedRow] = iter(())
        self._waiting: Iterator[Any] = iter(())  # records that are parsed one by one
        self._error: Exception | None = None

    def __next__(self) -> Any:
        for row in self._ready:
            return row
        for item in self._waiting:
            return self._change(to_value(item))
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if self._plan is None:
            return self._change(to_value(next(self._items)))
        self._read_run()
        return next(self)

    def _read_run(self) -> None:
        records: list[Any] = []
        nbytes = 0
        try:
            for item in self._items:
                records.append(item)
                nbytes += len(item) if type(item) is bytes else _MAX_NBYTES
                if len(records) == self._limit or nbytes >= _MAX_NBYTES:
                    break
            else:
                self._error = StopIteration()
        except (TfrkitError, OSError, TypeError, ValueError) as error:
            self._error = error  # raised after the records before it
        self._limit = min(self._limit * 2, _MAX_RECORDS)
        # What the function refers to may have changed since the run before.
        self._plan = _make_plan(self._function, self._plan)
        if self._plan is not None and records and all(type(item) is bytes for item in records):
            try:
                run = _Run(self._plan, records)
            except _ERRORS:
                pass  # a record that does not parse: the function is called for each, and raises for that one
            else:
                self._ready = map(ParsedRow, itertools.repeat(run), range(len(records)))
                return
        self._waiting = iter(records)
