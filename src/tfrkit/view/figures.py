"""Histograms of features: first from the sample, then exact; each bar has the condition that selects its records."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfrkit._threads import choose_threads
from tfrkit.errors import TfrkitError
from tfrkit.features.spec import Spec
from tfrkit.ops.edit.search import compose_condition
from tfrkit.ops.query.query import QuerySession
from tfrkit.ops.query.scan import QueryPolicy
from tfrkit.view.damage import query_sound, summarize_damage
from tfrkit.view.opened import Opened
from tfrkit.view.sample import Sample
from tfrkit.view.selection import find_column
from tfrkit.view.work import run_watched

Emit = Callable[[str, Any], None]
Json = dict[str, Any]

NUM_BINS = 24
_MAX_BARS = 50
_MAX_VALUES = 64  # integers with more distinct values are binned
_MAX_FEATURES = 40
_TABLE = "tfrkit_dataset"
_STEP_SECONDS = 0.2
_TIMEOUT_SECONDS = 600.0
_MAX_TEXT = 200


def can_plot(spec: Spec) -> bool:
    """Whether a feature has one number or text per record."""
    if spec.seen is not None or spec.is_list or spec.encoding != "list" or spec.shape not in ((), (1,)):
        return False
    return spec.shape == () and (spec.kind != "bytes" or spec.logical == "text")


def list_plotted(opened: Opened) -> list[str]:
    """Return the features that can be plotted, labels first."""
    if opened.kind == "raw":
        return []
    names = [name for name, spec in opened.schema.features.items() if can_plot(spec)]
    return sorted(names, key=lambda name: opened.schema.features[name].logical != "class_label")[:_MAX_FEATURES]


def make_figures(
    opened: Opened, sample: Sample, features: Sequence[str], where: str | None, emit: Emit, stop: threading.Event
) -> None:
    """Report figures of the sample, then of all records; `where` adds the share of a selection."""
    columns = [_Column.of(opened, name) for name in features]
    if where is not None:
        compose_condition(where)  # raises unless it is one condition
    if not columns:
        emit("exact", {"is_exact": True, "of": opened.num_records, "total": opened.num_records, "figures": []})
        return
    shown = None
    # The pass over all records reports errors with their real place.
    with contextlib.suppress(TfrkitError):
        shown = _Figures([sample.path], columns, where, opened, sample.new_policy()).make()
    is_all = opened.is_complete and len(sample.numbers) == opened.num_records
    if shown is not None and not is_all:
        emit("sample", {"is_exact": False, "of": len(sample.numbers), "total": opened.num_records, "figures": shown})
    if shown is None or not is_all:
        opened.require_complete()
        shown = _make_exact(opened, columns, where, emit, stop)
    if not stop.is_set():
        total, damage = opened.num_records, summarize_damage(opened)
        of = total - len(opened.flawed)
        emit("exact", {"is_exact": True, "of": of, "total": total, "figures": shown, **damage})


def _make_exact(
    opened: Opened, columns: Sequence[_Column], where: str | None, emit: Emit, stop: threading.Event
) -> list[Json]:
    def make(policy: QueryPolicy) -> list[Json]:
        figures = _Figures(opened.paths, columns, where, opened, policy)

        def report() -> None:
            emit("progress", {"done": figures.num_read, "total": 2 * opened.num_records})

        made = run_watched(figures.make, stop, interrupt=figures.stop, report=report, step_seconds=_STEP_SECONDS)
        return [] if made is None else made

    return query_sound(opened, make, lambda _, num_done: emit("progress", {"done": num_done, "total": num_done}), stop)


@dataclass(frozen=True)
class _Column:
    feature: str
    sql: str
    spec: Spec

    @classmethod
    def of(cls, opened: Opened, name: str) -> _Column:
        sql = find_column(opened, name)
        spec = opened.schema[name]
        if not can_plot(spec):
            raise ValueError(f"feature {name!r:.64} has more than one number or text per record")
        return cls(name, sql, spec)


class _Figures:
    """Two passes over some files: the first finds ranges and numbers of values, the second counts the bars."""

    def __init__(
        self,
        paths: Sequence[str],
        columns: Sequence[_Column],
        where: str | None,
        opened: Opened,
        policy: QueryPolicy,
    ) -> None:
        self._paths = list(paths)
        self._columns = columns
        self._where = where
        self._opened = opened
        self._policy = policy
        self._session: QuerySession | None = None
        self._num_before = 0

    @property
    def num_read(self) -> int:
        """Records read so far, in both passes."""
        session = self._session
        return self._num_before + max((scan.num_read for scan in session.scans), default=0) if session else 0

    def stop(self) -> None:
        """End `make` with an error, from another thread."""
        if self._session is not None:
            self._session.connection.interrupt()

    def make(self) -> list[Json]:
        ranges = []
        for column in self._columns:
            finite = f"filter (where isfinite({column.sql}))" if column.spec.kind == "float" else ""
            numbers = column.spec.kind != "bytes"
            ranges.append(f"count({column.sql})")
            ranges.append(f"min({column.sql}) {finite}" if numbers else "null")
            ranges.append(f"max({column.sql}) {finite}" if numbers else "null")
            ranges.append(f"avg({column.sql}) {finite}" if numbers else "null")
            ranges.append(f"approx_count_distinct({column.sql})")
        answer = self._ask(f"select count(*), {', '.join(ranges)} from {_TABLE}")[0]
        total, facts = answer[0], [answer[1 + 5 * at : 6 + 5 * at] for at in range(len(self._columns))]
        plans = [_Plan(column, *fact) for column, fact in zip(self._columns, facts, strict=True)]
        counts = []
        chosen = f" filter (where ({self._where}\n))" if self._where is not None else ""
        for plan in plans:
            counts.append(f"histogram({plan.bucket})")
            counts.append(f"histogram({plan.bucket}){chosen}" if chosen else "null")
        self._num_before = total
        maps = self._ask(f"select {', '.join(counts)} from {_TABLE}")[0]
        figures = []
        for at, plan in enumerate(plans):
            whole = maps[2 * at] or {}
            part = whole if self._where is None else maps[2 * at + 1] or {}
            figures.append(plan.to_json(total, whole, part, self._opened))
        return figures

    def _ask(self, text: str) -> list[tuple[Any, ...]]:
        self._session = session = QuerySession(
            text,
            {_TABLE: self._paths},
            threads=choose_threads(None),
            policy=self._policy,
            timeout=_TIMEOUT_SECONDS,
        )
        with contextlib.closing(session):
            session.describe()
            return list(session.run(1024))


@dataclass(frozen=True)
class _Plan:
    """How one feature is counted: in bins of equal width, or by value."""

    column: _Column
    count: int
    low: Any
    high: Any
    mean: Any
    num_values: int

    @property
    def is_binned(self) -> bool:
        spec = self.column.spec
        if spec.kind == "bytes" or self.low is None:
            return False
        return spec.kind == "float" or (self.num_values > _MAX_VALUES and spec.logical != "class_label")

    @property
    def width(self) -> float:
        return (float(self.high) - float(self.low)) / NUM_BINS if self.high > self.low else 1.0

    @property
    def bucket(self) -> str:
        sql = self.column.sql
        if not self.is_binned:
            return f"left({sql}, {_MAX_TEXT})" if self.column.spec.kind == "bytes" else sql
        low = f"{float(self.low)!r}::double"
        place = f"floor(({sql}::double - {low}) / {self.width!r}::double)"
        is_number = f"isfinite({sql}::double)"
        return f"case when {is_number} then greatest(0, least({place}, {NUM_BINS - 1}))::bigint end"

    def to_json(self, total: int, whole: Mapping[Any, int], part: Mapping[Any, int], opened: Opened) -> Json:
        column = self.column
        result: Json = {"feature": column.feature, "column": column.sql, "count": self.count}
        result["missing"] = total - self.count
        if self.is_binned:
            bins = [self._make_bin(at, whole.get(at, 0), part.get(at, 0)) for at in range(NUM_BINS)]
            if self.high == self.low:
                bins = bins[:1]
            facts = {"min": self.low, "max": self.high, "mean": self.mean}
            return result | {"type": "numbers", **facts, "bins": bins}
        ranked = sorted(whole.items(), key=lambda pair: (-pair[1], str(pair[0])))
        shown = [
            {
                "value": value,
                "text": self._show(value, opened),
                "count": count,
                "chosen": part.get(value, 0),
                "where": f"{column.sql} = {_write_value(value)}",
            }
            for value, count in ranked[:_MAX_BARS]
        ]
        left = ranked[_MAX_BARS:]
        rest = {
            "num_values": len(left),
            "count": sum(count for _, count in left),
            "chosen": sum(part.get(value, 0) for value, _ in left),
        }
        return result | {"type": "values", "num_values": len(whole), "values": shown, "rest": rest}

    def _make_bin(self, at: int, count: int, chosen: int) -> Json:
        low, high = float(self.low) + at * self.width, float(self.low) + (at + 1) * self.width
        is_last = at == NUM_BINS - 1 or self.high == self.low
        if is_last:
            high = float(self.high)
        if self.column.spec.kind == "int64":
            low, high = math.ceil(low), math.floor(high) if is_last else math.ceil(high)
        sql = self.column.sql
        where = f"{sql} >= {low!r} and {sql} {'<=' if is_last else '<'} {high!r}"
        return {"from": low, "to": high, "count": count, "chosen": chosen, "where": where}

    def _show(self, value: Any, opened: Opened) -> str:
        return opened.names.name_of(self.column.feature, value) or str(value)


def _write_value(value: Any) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)
