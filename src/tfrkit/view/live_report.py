"""The report for the statistics page: of the sample at once, then of all records, with progress."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tfrkit.errors import TfrkitError
from tfrkit.ops.stats.stats import collect_stats
from tfrkit.ops.verify.verify import verify
from tfrkit.view.opened import Opened
from tfrkit.view.report import make_report
from tfrkit.view.sample import Sample
from tfrkit.view.thumbnails import Spot

Emit = Callable[[str, Any], None]
Json = dict[str, Any]


def report_live(
    opened: Opened, sample: Sample, given: Mapping[str, str], emit: Emit, stop: threading.Event, *, deep: bool
) -> None:
    """Emit `sample`, `progress` and `exact` with the report of a dataset; with `deep`, all images are decoded."""
    is_all = opened.is_complete and len(sample.numbers) == opened.num_records
    if not is_all and not deep:
        # The pass over all records reports errors with their real place.
        with contextlib.suppress(TfrkitError):
            found = collect_stats([sample.path], has_picks=True)
            report = make_report(found, given=given, find=lambda place: _find_sampled(opened, sample, place))
            # The file of the sample is not one of the dataset.
            tables = [table for table in report["tables"] if table["name"] != "file_list"]
            emit("sample", report | {"title": opened.name, "num_files": len(opened.paths), "tables": tables})
    opened.require_complete()
    watch = _Watch(emit, stop)
    try:
        found = collect_stats(opened.paths, on_error="skip", progress=watch, has_picks=True)
        checked = verify(opened.paths, deep=True, progress=watch) if deep else None
    except _StoppedError:
        return
    for finding in found.result.findings:
        item = opened.find_item(finding.shard, finding.record, finding.offset)
        if item is not None and item >= 0:
            opened.flawed.setdefault(item, finding)
    emit("exact", make_report(found, checked, given=given, find=lambda place: _find(opened, place)))


def _find_sampled(opened: Opened, sample: Sample, spot: Spot) -> Json:
    number = int(sample.numbers[spot.record])
    place = opened.locate(number)
    file = os.path.basename(opened.paths[place.shard])
    return {"file": file, "record": place.ordinal, "split": opened.find_split(number), "number": number}


def _find(opened: Opened, place: Spot) -> Json:
    item = None if place.record is None else opened.find_item(place.shard, place.record, place.offset)
    if item is None:
        return {}
    return {"number": item} if item >= 0 else {"position": opened.position_of(item)}


class _StoppedError(TfrkitError):
    """The page does not wait for the report any more."""


class _Watch:
    """Emits progress; raises if the page has gone."""

    def __init__(self, emit: Emit, stop: threading.Event) -> None:
        self._emit = emit
        self._stop = stop
        self._total = self._done = 0

    def begin(self, num_items: int, nbytes: int | None) -> None:
        self._total, self._done = nbytes or 0, 0

    def advance(self, num_items: int, nbytes: int, num_bad: int) -> None:
        if self._stop.is_set():
            raise _StoppedError("stopped")
        self._done += nbytes
        self._emit("progress", {"done": self._done, "total": max(self._total, self._done)})

    def end(self) -> None:
        pass
