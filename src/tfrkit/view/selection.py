"""Selections: the records that match a condition, a split, a tag or damage, sorted or in file order."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfrkit.errors import MissingFeatureError, QueryError, TfrkitError
from tfrkit.features.schema import describe_missing
from tfrkit.ops.edit.search import RecordSearch, compose_condition
from tfrkit.ops.query.errors import quote_name
from tfrkit.ops.query.scan import QueryPolicy, name_columns
from tfrkit.view.chosen import Bitmap, Chosen, Items, ListedItems, choose_form
from tfrkit.view.damage import query_sound, summarize_damage
from tfrkit.view.opened import Opened
from tfrkit.view.sample import Sample
from tfrkit.view.work import run_watched

Emit = Callable[[str, Any], None]

_MAX_KEPT = 16
_SAMPLED_SHOWN = 200
_STEP_SECONDS = 0.1
_TIMEOUT_SECONDS = 600.0


@dataclass(frozen=True)
class Question:
    """The conditions of a selection; records match all that are given."""

    number: int = 0
    where: str | None = None
    sort: str | None = None
    order: str = "asc"
    split: str | None = None
    damaged: bool = False
    tag: str | None = None
    diff: bool = False

    @classmethod
    def read(cls, number: int, query: Mapping[str, str]) -> Question:
        """Read the parameters of a request; a wrong one raises ValueError."""
        order = query.get("order") or "asc"
        if order not in ("asc", "desc"):
            raise ValueError(f"order expected asc or desc, got {order!r:.64}")
        where, sort, split, tag = (
            (query.get(name) or "").strip() or None for name in ("where", "sort", "split", "tag")
        )
        damaged, diff = (query.get(name) in ("1", "true") for name in ("damaged", "diff"))
        return cls(number, where, sort, order, split, damaged, tag, diff)

    @property
    def is_searched(self) -> bool:
        """Whether the values of records decide."""
        return self.where is not None or self.sort is not None

    @property
    def id(self) -> str:
        """A short id of this question."""
        return hashlib.sha256(json.dumps(vars(self), sort_keys=True).encode()).hexdigest()[:12]


class Selection:
    """Selected items of a dataset in order; items of a sample until the search has ended."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.id = question.id
        self.items: Chosen = ListedItems(np.empty(0, np.int64))
        self.is_exact = False
        self.num_damaged = 0
        """Damaged places of the dataset that a condition or an order left out."""

    def __len__(self) -> int:
        return len(self.items)

    def item_at(self, position: int) -> int:
        """Return the item at a position."""
        if not 0 <= position < len(self.items):
            raise IndexError(f"position expected below {len(self.items)}, got {position}")
        return self.items.item_at(position)

    def position_of(self, item: int) -> int | None:
        """Return the position of an item, or None."""
        return self.items.position_of(item)

    def finish(self, items: Chosen, num_damaged: int) -> None:
        """Set the exact items."""
        self.items, self.num_damaged, self.is_exact = items, num_damaged, True


class Selections:
    """The newest selections by their id. Safe to share between threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Selection] = OrderedDict()
        self._lock = threading.Lock()
        # One query at a time: each uses all cores.
        self._turn = threading.Lock()

    def get(self, id: str) -> Selection | None:
        with self._lock:
            found = self._kept.get(id)
            if found is not None:
                self._kept.move_to_end(id)
            return found

    def make(
        self,
        opened: Opened,
        sample: Sample,
        question: Question,
        emit: Emit,
        stop: threading.Event,
        *,
        find_tagged: Callable[[int, str], Items],
        find_changed: Callable[[int], Items],
    ) -> None:
        """Make a selection and report begin, sample, progress, exact. Nothing is stored if `stop` is set meanwhile."""
        with self._lock:
            if question.tag is not None:
                self._kept.pop(question.id, None)  # tags change
            selection = self._kept.setdefault(question.id, Selection(question))
            self._kept.move_to_end(question.id)
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        started = time.monotonic()
        if question.where is not None:
            compose_condition(question.where)  # a wrong one fails before anything is read
        emit("begin", {"sel": selection.id, "total": opened.num_records})
        if not selection.is_exact:
            _answer_from_sample(opened, sample, selection, emit)
            opened.require_complete()
            with self._turn:
                maker = _Maker(opened, selection, emit, stop, find_tagged, find_changed)
                items = selection.items if selection.is_exact else maker.make()
            if items is None:
                return
            selection.finish(items, len(opened.list_damage()) if question.is_searched else 0)
        seconds = round(time.monotonic() - started, 3)
        damage = summarize_damage(opened) if selection.num_damaged else {"damaged": 0, "damage": []}
        emit("exact", {"sel": selection.id, "count": len(selection), "seconds": seconds, **damage})


@dataclass
class _Maker:
    opened: Opened
    selection: Selection
    emit: Emit
    stop: threading.Event
    find_tagged: Callable[[int, str], Items]
    find_changed: Callable[[int], Items]

    def make(self) -> Chosen | None:
        """Return the items, or None if it was stopped."""
        question, opened = self.selection.question, self.opened
        items: Items | None = None
        if question.is_searched:
            items = self._search(question)
        if question.damaged and not self.stop.is_set():
            items = _intersect(items, opened.check(self._report_checked, self.stop))
        if self.stop.is_set():
            return None
        if question.tag is not None:
            items = _intersect(items, self.find_tagged(opened.number, question.tag))
        if question.diff:
            items = _intersect(items, self.find_changed(opened.number))
        total = opened.num_records
        if items is None:
            ranges = [(0, total)] if question.split is None else _find_split(opened, question.split)
            return Bitmap.of_ranges(ranges, total)
        return choose_form(items if question.split is None else _cut_split(opened, question.split, items), total)

    def _report_checked(self, found: Any, num_done: int) -> None:
        total = self.opened.num_records
        self.emit("progress", {"sel": self.selection.id, "done": num_done, "total": total, "count": len(found)})

    def _search(self, question: Question) -> Items:
        opened = self.opened
        reads_records = False

        def search(policy: QueryPolicy) -> Items:
            nonlocal reads_records
            search = _new_search(opened, question, policy)
            found = self._run(search)
            reads_records = search.reads_records
            return found

        found = query_sound(opened, search, self._report_checked, self.stop)
        if not reads_records and not self.stop.is_set():
            opened.check(self._report_checked, self.stop)
        # A record that is no Example may still decode, with every feature missing.
        return found[~np.isin(found.astype(np.int64), list(opened.flawed))] if opened.flawed else found

    def _run(self, search: RecordSearch) -> Items:
        def report() -> None:
            done = {"sel": self.selection.id, "done": search.num_read, "total": self.opened.num_records}
            self.emit("progress", {**done, "count": None})

        try:
            found = run_watched(search.run, self.stop, interrupt=search.stop, report=report, step_seconds=_STEP_SECONDS)
        finally:
            search.close()
        return np.empty(0, np.int64) if found is None else found


def _new_search(opened: Opened, question: Question, policy: QueryPolicy) -> RecordSearch:
    order_by = None
    if question.sort is not None:
        order_by = f"{find_column(opened, question.sort)} {question.order} nulls last"
    return RecordSearch(opened.paths, question.where, order_by=order_by, policy=policy, timeout=_TIMEOUT_SECONDS)


def find_column(opened: Opened, feature: str) -> str:
    """Return a feature as a column in SQL; raise `MissingFeatureError` if there is none."""
    schema = opened.schema
    for (part, name), column in name_columns(schema).items():
        if name == feature:
            return f"{part}." * bool(part) + quote_name(column)
    raise MissingFeatureError(describe_missing(feature, schema.names))


def _answer_from_sample(opened: Opened, sample: Sample, selection: Selection, emit: Emit) -> None:
    question = selection.question
    if question.where is None or question.damaged or question.tag or question.diff:
        return
    try:
        found = sample.search(question.where)
    except TfrkitError:
        return  # the sample may lack a column; the search of all records reports errors with their real place
    items = found if question.split is None else _cut_split(opened, question.split, found)
    if not selection.is_exact:
        selection.items = ListedItems(items)
    of, total = max(1, len(sample.numbers)), opened.num_records
    counts = {"sel": selection.id, "of": len(sample.numbers), "total": total, "matched": len(items)}
    estimate = round(len(items) * total / of)
    emit("sample", {**counts, "estimate": estimate, "records": items[:_SAMPLED_SHOWN].tolist()})


def _find_split(opened: Opened, split: str) -> list[tuple[int, int]]:
    splits = opened.list_splits()
    if split not in splits:
        raise QueryError(f"no split {split!r:.64}, there is {', '.join(splits) or 'none'}")
    return splits[split]


def _cut_split(opened: Opened, split: str, items: Items) -> Items:
    inside = np.zeros(len(items), np.bool_)
    for start, stop in _find_split(opened, split):
        inside |= (items >= start) & (items < stop)
    return items[inside]


def _intersect(items: Items | None, others: Items) -> Items:
    """Return the items that are also in `others`, in their order."""
    return others if items is None else items[np.isin(items.astype(np.int64), others)]
