"""Damage in queries of the viewer: damaged records are left out, and the others keep their numbers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.batches.shard_set import ShardSet
from tfrkit.container.records import Finding
from tfrkit.errors import CodecError, ContainerError, SchemaError, TfrkitError
from tfrkit.ops.query.scan import QueryPolicy
from tfrkit.view.opened import Opened, to_json_damage

T = TypeVar("T")

_MAX_LISTED = 5


@dataclass
class SkipDamage(QueryPolicy):
    """Leaves the known damage of a dataset out of a query, and raises any other error."""

    opened: Opened | None = None
    _left_out: list[int] = field(default_factory=list)  # records, ascending, of this pass

    def for_one_pass(self) -> Self:
        return replace(self, _num_taken=0, _left_out=[])

    def take(self, finding: Finding, error: TfrkitError) -> None:
        assert self.opened is not None
        item = self.opened.find_item(finding.shard, finding.record, finding.offset)
        if item is not None and item >= 0:
            if item not in self.opened.flawed:
                raise error
            self._left_out.append(item)
        super().take(finding, error)

    def number_rows(self, first_row: int, num_rows: int) -> Int64Array:
        rows = np.arange(first_row, first_row + num_rows, dtype=np.int64)
        rows_before = np.array(self._left_out, np.int64) - np.arange(len(self._left_out))
        return rows + np.searchsorted(rows_before, rows, side="right")

    def numbered(self, shard_set: ShardSet) -> ShardSet:
        assert self.opened is not None
        return self.opened.shard_set


def query_sound(
    opened: Opened, query: Callable[[QueryPolicy], T], on_step: Callable[[Any, int], None], stop: threading.Event
) -> T:
    """Call `query` without the damaged records. After its first error all records are checked, then it is repeated."""

    def choose() -> QueryPolicy:
        is_sound = not (opened.broken or opened.flawed)
        return QueryPolicy() if is_sound else SkipDamage("all", "skip", opened=opened)

    try:
        return query(choose())
    except (ContainerError, CodecError, SchemaError):
        num_known = len(opened.flawed)
        opened.check(on_step, stop)
        if len(opened.flawed) == num_known:
            raise
        return query(choose())


def summarize_damage(opened: Opened) -> dict[str, Any]:
    """Return the number of damaged items known so far, and the first of them, for the page."""
    items = opened.list_damage()
    first = [opened.find_damage(int(item)) for item in items[:_MAX_LISTED]]
    return {
        "damaged": len(items),
        "damage": [to_json_damage(opened, finding) for finding in first if finding is not None],
    }
