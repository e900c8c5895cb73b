"""Empty lists whose kind is not known yet.

A row such as {"boxes": []} is encoded at once, without that feature, and a copy is kept. Before the frames are written,
the kind is usually known from other rows, and the row is encoded again with a typed empty list.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from tfrkit import _native
from tfrkit._types import Row

FeatureName = tuple[str, bool]
"""A name, and whether it is the name of a feature list."""


def is_empty_list(value: object) -> bool:
    """Whether this is an empty list without a dtype."""
    return isinstance(value, (list, tuple)) and not value


def is_untyped_column(column: object) -> bool:
    """Whether the first value of a column that is not None is an empty list."""
    if not isinstance(column, (list, tuple)):
        return False
    return is_empty_list(next((value for value in column if value is not None), None))


class UntypedLists:
    """Rows with untyped empty lists whose kinds are not known yet."""

    def __init__(self, encoder: _native.RowEncoder) -> None:
        self._encoder = encoder
        self._rows: dict[int, Row] = {}
        self._names: set[FeatureName] = set()
        self.guessed: list[str] = []
        """Features without a value in all rows passed on; they are lists of bytes now."""

    def __len__(self) -> int:
        return len(self._rows)

    def keep(self, number: int, row: Row, names: Sequence[str], is_sequence: bool) -> None:
        """Keep row `number`, just written, in which the features with these names are untyped."""
        self._rows[number] = copy.deepcopy(row)
        lists: Any = (row.get("feature_lists") or {}) if is_sequence else {}
        context: Any = (row.get("context") or {}) if is_sequence else row
        for name in names:
            if is_empty_list(context.get(name)):
                self._names.add((name, False))
            if any(is_empty_list(frame) for frame in lists.get(name, ())):
                self._names.add((name, True))

    def forget(self, first: int) -> None:
        """Drop the rows from number `first` on, which were rolled back."""
        self._rows = {number: row for number, row in self._rows.items() if number < first}

    @property
    def is_settled(self) -> bool:
        """Whether the kinds of all untyped features are known by now."""
        self._names = {name for name in self._names if self._encoder.kind_of(name[0], is_list=name[1]) is None}
        return not self._names

    def retype(self, frames: Any, first: int, encode: Callable[[Row], object]) -> bytes:
        """Return the frames of the rows from number `first` on, with empty lists of the known kinds.

        `encode` passes a row to the encoder in its stored form. A kind that is still unknown becomes bytes. REQUIRES:
        the encoder has no frames.
        """
        if not self.is_settled:
            for name, is_list in sorted(self._names):
                self._encoder.kind_of(name, "bytes", is_list=is_list)
                self.guessed.append(name)
        num_records = self._encoder.num_records
        starts = _native.index_frames(frames, 0, len(frames), 1 << 62, "none")[0].tolist()
        view, pieces, done = memoryview(frames), [], 0
        for number, row in sorted(self._rows.items()):
            at = number - first
            encode(row)
            pieces += [view[done : starts[at]], self._encoder.take().data]
            done = starts[at + 1] if at + 1 < len(starts) else len(frames)
        self._encoder.rollback(num_records, 0)
        self._rows, self._names = {}, set()
        return b"".join([*pieces, view[done:]])
