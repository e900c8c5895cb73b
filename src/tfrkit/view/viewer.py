"""The state of a running viewer: datasets, selections, tags, caches, and what the page needs to start."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tfrkit._threads import count_cores
from tfrkit._version import VERSION
from tfrkit.ops.diff.diff import Difference, RecordChange, diff
from tfrkit.view.describe import MAX_HEX, MAX_PAGE, describe_record
from tfrkit.view.figures import can_plot
from tfrkit.view.guesses import Guesses
from tfrkit.view.keep import Tags, check_name, export
from tfrkit.view.opened import Opened
from tfrkit.view.sample import Sample
from tfrkit.view.selection import Emit, Question, Selection, Selections, find_column
from tfrkit.view.tiles import MAX_SIDE, MAX_TILES, MIN_SIDE, Tile, TileCache, make_tile
from tfrkit.view.work import Pool, Streams

Json = dict[str, Any]

API = 1
_MAX_GUESSES = 64
_MAX_CHANGES = 10_000  # listed per kind
_MAX_TAGGED = 1_000_000
_COUNT_SECONDS = 0.25
_CLOSE_SECONDS = 10.0
_GROUP = 4  # tiles made by one job; a job for each tile takes a fifth more processor time
_MAX_SHOWN = 200  # characters of a changed value


class GoneError(LookupError):
    """A selection that is unknown, or was dropped from memory."""


class NotAllowedError(RuntimeError):
    """An action that this viewer was not started for."""


@dataclass(frozen=True)
class Options:
    """Options of a viewer: first state of the page, language, and the folder for exports and tags."""

    where: str | None = None
    record: int | None = None
    lang: str | None = None
    out: str | None = None


class Viewer:
    """Datasets and everything found in them. Safe to share between threads."""

    def __init__(self, sets: Sequence[Sequence[str]], options: Options = Options()) -> None:
        self.sets = [Opened(paths, number) for number, paths in enumerate(sets)]
        self.options = options
        self.samples = [Sample(opened) for opened in self.sets]
        self.selections = Selections()
        self.tags = Tags(options.out)
        self.pool = Pool(count_cores())
        self.streams = Streams()
        self._tiles = TileCache()
        self._guesses: dict[Any, Guesses] = {}
        self._lock = threading.Lock()

    # ---- what a request names ------------------------------------------------------------------------------------

    def open(self, query: Mapping[str, str]) -> Opened:
        """Return the dataset that a request names."""
        number = read_number(query, "d", 0)
        if not 0 <= number < len(self.sets):
            raise LookupError(f"dataset {number} of {len(self.sets)}")
        return self.sets[number]

    def select(self, query: Mapping[str, str]) -> Selection | None:
        """Return the selection that a request names, or None for all records."""
        id = query.get("sel")
        if not id:
            return None
        found = self.selections.get(id)
        if found is None or found.question.number != self.open(query).number:
            raise GoneError("the selection is no longer known")
        return found

    def guess(self, query: Mapping[str, str]) -> Guesses:
        """Return the guesses for a request; those of equal requests are shared."""
        guesses = Guesses.read(self.open(query), query)
        key = guesses.opened.number, guesses.given
        with self._lock:
            if len(self._guesses) > _MAX_GUESSES:
                self._guesses.clear()
            return self._guesses.setdefault(key, guesses)

    # ---- answers -------------------------------------------------------------------------------------------------

    def describe_start(self, query: Mapping[str, str]) -> Json:
        """Return everything the page needs to start."""
        options = self.options
        has_sql = importlib.util.find_spec("duckdb") is not None
        return {
            "api": API,
            "version": VERSION,
            "lang": options.lang,
            "start": {"where": options.where, "record": options.record},
            "can": {"sql": has_sql, "export": options.out, "tags": True, "compare": len(self.sets) > 1},
            "limits": {"tiles": MAX_TILES, "size": [MIN_SIDE, MAX_SIDE], "hex": MAX_HEX, "page_values": MAX_PAGE},
            "tags": self.tags.count(),
            "sets": [self._describe_set(self.guess({**query, "d": str(one.number)})) for one in self.sets],
        }

    def _describe_set(self, guesses: Guesses) -> Json:
        opened = guesses.opened
        splits = {name: sum(stop - start for start, stop in ranges) for name, ranges in opened.list_splits().items()}
        return {
            "d": opened.number,
            "name": opened.name,
            "stamp": opened.stamp,
            "kind": opened.kind,
            **self.count(opened),
            "files": opened.list_files(),
            "splits": splits,
            "features": _list_features(opened),
            "guesses": guesses.to_json(),
            "classes": guesses.list_classes(),
            "damage": len(opened.broken) + len(opened.flawed),
            "is_damaged": bool(opened.broken or opened.flawed),
            "notes": list(opened.sidecars.notes),
        }

    def count(self, opened: Opened) -> Json:
        """Return the numbers of places and records known so far."""
        is_complete = opened.is_complete
        return {"count": opened.num_items, "records": opened.num_records, "is_complete": is_complete}

    def report_count(self, opened: Opened, emit: Emit, stop: threading.Event) -> None:
        """Report the counts until all records are counted."""
        while not opened.wait(_COUNT_SECONDS) and not stop.is_set():
            emit("count", {"d": opened.number, **self.count(opened)})
            if opened.failure is not None:
                raise opened.failure
        emit("count", {"d": opened.number, **self.count(opened)})

    def report_damage(self, opened: Opened, emit: Emit, stop: threading.Event) -> None:
        """Report the damage of a whole check."""
        from tfrkit.view.opened import to_json_damage

        total = None

        def on_step(found: Any, num_done: int) -> None:
            for item, finding in found:
                emit("found", {**to_json_damage(opened, finding), "position": opened.position_of(item)})
            emit("progress", {"done": num_done, "total": total})

        opened.require_complete()
        total = opened.num_records
        items = opened.check(on_step, stop)
        emit("done", {"count": len(items)})

    def make_selection(self, opened: Opened, question: Question, emit: Emit, stop: threading.Event) -> None:
        """Make a selection and report its progress."""
        self.selections.make(
            opened,
            self.samples[opened.number],
            question,
            emit,
            stop,
            find_tagged=self.tags.find,
            find_changed=self.find_changed,
        )

    def list_items(self, query: Mapping[str, str]) -> tuple[int, int, bool, list[int]]:
        """Return first position, total and completeness of the shown items, and one page of them."""
        opened, selection = self.open(query), self.select(query)
        first, count = read_number(query, "first", 0), read_number(query, "count", MAX_TILES)
        total = opened.num_items if selection is None else len(selection)
        stop = min(total, first + min(count, MAX_TILES))
        find = opened.item_at if selection is None else selection.item_at
        is_complete = opened.is_complete if selection is None else selection.is_exact
        return first, total, is_complete, [find(position) for position in range(first, stop)]

    def group_items(
        self, guesses: Guesses, places: Sequence[tuple[int, int]], side: int, *, masks: bool
    ) -> list[list[tuple[int, int]]]:
        """Divide positions and items into jobs: tiles that are kept are one job, the others a few in each."""
        number, given = guesses.opened.number, guesses.given
        kept = [place for place in places if (number, place[1], side, masks, given) in self._tiles]
        ready = set(kept)
        others = [place for place in places if place not in ready]
        groups = [others[start : start + _GROUP] for start in range(0, len(others), _GROUP)]
        return [kept, *groups] if kept else groups

    def make_row(self, guesses: Guesses, position: int, item: int, side: int | None, *, masks: bool) -> Tile:
        """Return a tile with its position and tags."""
        opened = guesses.opened
        key = opened.number, item, side, masks, guesses.given
        tile = self._tiles.get(key)
        if tile is None:
            tile = make_tile(opened, guesses, item, side, masks=masks)
            self._tiles.put(key, tile)
        tags = self.tags.of(opened.number, item) if item >= 0 else []
        return {"position": position, **tile[0], "tags": tags}, tile[1]

    def describe_item(
        self, query: Mapping[str, str], *, record: int | None = None, position: int | None = None
    ) -> Json:
        """Describe a record, by its number or its position in the selection."""
        opened, selection = self.open(query), self.select(query)
        if position is not None:
            item = opened.item_at(position) if selection is None else selection.item_at(position)
        else:
            assert record is not None
            opened.require(record)
            item = record
            position = opened.position_of(item) if selection is None else selection.position_of(item)
        total = opened.num_items if selection is None else len(selection)
        described = describe_record(opened, self.guess(query), item)
        return {
            "position": position,
            "previous": position - 1 if position else None,
            "next": position + 1 if position is not None and position + 1 < total else None,
            **described,
            "tags": self.tags.of(opened.number, item) if item >= 0 else [],
        }

    # ---- comparison ----------------------------------------------------------------------------------------------

    @cached_property
    def difference(self) -> Difference:
        """The difference between the two datasets, computed once."""
        if len(self.sets) < 2:
            raise NotAllowedError("one dataset is open, start with --compare to compare two")
        return diff(self.sets[0].paths, self.sets[1].paths, max_listed=_MAX_CHANGES)

    def find_changed(self, number: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the listed records of a dataset that differ, ascending."""
        places = [change.a if number == 0 else change.b for change in self.difference.listed]
        return np.array(sorted(place.number for place in places if place is not None), np.int64)

    def compare(self, first: int, count: int) -> Json:
        """Return some rows of the comparison."""
        found = self.difference
        summary = {name: value for name, value in found.to_json().items() if name != "changes"}
        rows = found.listed[first : first + min(count, MAX_TILES)]
        total = {"total": len(found.listed), "first": first}
        return {"is_same": found.same, "summary": summary, **total, "rows": [_describe_change(row) for row in rows]}

    # ---- what is kept --------------------------------------------------------------------------------------------

    def export(self, body: Mapping[str, Any]) -> Json:
        """Write a selection into the folder of `--out`."""
        query = _to_query(body)
        opened, selection = self.open(query), self.select(query)
        if self.options.out is None:
            raise NotAllowedError("no folder for exports, start with --out DIR")
        opened.require_complete()
        if selection is not None and not selection.is_exact:
            raise NotAllowedError("the selection is not complete yet")
        kind, name = str(body.get("as")), check_name(body.get("name"))
        guesses, out = self.guess(query), self.options.out
        if selection is None:
            made = export(opened, guesses, range(opened.num_records), kind, out, name)
            return made | {"damaged": made["damaged"] + len(opened.broken)}
        made = export(opened, guesses, selection.items, kind, out, name, lists_damage=selection.question.damaged)
        return made | {"damaged": made["damaged"] + selection.num_damaged}

    def tag(self, body: Mapping[str, Any]) -> Json:
        """Add a tag to records, or remove it."""
        query = _to_query(body)
        opened, selection = self.open(query), self.select(query)
        records = body.get("records") if selection is None else [item for item in selection.items if item >= 0]
        if not isinstance(records, list) or not all(type(record) is int for record in records):
            raise ValueError("records expected a list of numbers")
        if len(records) > _MAX_TAGGED:
            raise ValueError(f"records expected at most {_MAX_TAGGED:,}, got {len(records):,}")
        for record in records:
            opened.require(record)
        self.tags.set(opened.number, check_name(body.get("name")), records, on=body.get("on", True) is True)
        return {"ok": True, "tags": self.tags.count()}

    def close(self) -> None:
        """End the threads and close the files."""
        self.streams.stop()
        self.pool.close()
        for opened in self.sets:
            opened.stop()
        self.streams.join(_CLOSE_SECONDS)
        for opened in self.sets:
            opened.close()


def read_number(query: Mapping[str, str], name: str, default: int | None) -> int:
    """Read a number of 0 or more from the parameters of a request; ValueError otherwise."""
    text = query.get(name)
    if text is None or text == "":
        if default is None:
            raise ValueError(f"{name} expected a number, got nothing")
        return default
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise ValueError(f"{name} expected a number, got {text!r:.64}")
    return int(text)


def _to_query(body: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in body.items() if isinstance(value, (str, int)) and value is not None}


def _list_features(opened: Opened) -> list[Json]:
    if opened.kind == "raw":
        return []
    is_sequence = opened.kind == "sequence_example"
    parts = [("context" if is_sequence else "", opened.schema.features)]
    if is_sequence:
        parts.append(("feature_lists", opened.schema.feature_lists))
    return [
        {
            "name": name,
            "part": part,
            "kind": spec.kind,
            "shape": list(spec.shape),
            "dtype": spec.dtype,
            "logical": spec.logical,
            "meaning": spec.meaning,
            "classes": list(spec.classes) if spec.classes is not None else None,
            "column": find_column(opened, name),
            "can_sort": can_plot(spec),
            "can_plot": can_plot(spec),
        }
        for part, specs in parts
        for name, spec in specs.items()
    ]


def _describe_change(change: RecordChange) -> Json:
    shown = [feature.to_json() for feature in change.features]
    return {
        "kind": change.change,
        "left": None if change.a is None else change.a.number,
        "right": None if change.b is None else change.b.number,
        "key": change.key,
        "features": [str(feature.get("feature")) for feature in shown],
        "text": "; ".join(_show_change(feature) for feature in shown)[: 4 * _MAX_SHOWN],
    }


def _show_change(feature: Mapping[str, Any]) -> str:
    sides = [f"{feature.get(side)!s:.{_MAX_SHOWN}}" for side in ("a", "b")]
    return f"{feature.get('feature')}: {sides[0]} → {sides[1]}"


def name_folder(path: str | None) -> str | None:
    """Return the absolute path of the folder for exports, or None."""
    return None if path is None else os.path.abspath(os.path.expanduser(path))
