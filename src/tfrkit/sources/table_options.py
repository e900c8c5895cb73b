"""Options for reading a table, and their checks."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from tfrkit.codec.coerce import Floats
from tfrkit.errors import SourceError
from tfrkit.sources.cell_types import CELL_KINDS

TABLE_FORMATS = ("auto", "csv", "jsonl", "parquet", "arrow")


@dataclass(frozen=True)
class TableOptions:
    """Options for reading a table, as in `Table`."""

    format: str = "auto"
    separator: str | None = None
    encoding: str = "utf-8"
    columns: Sequence[str] | None = None
    missing: Sequence[str] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    floats: Floats = "ask"

    def __post_init__(self) -> None:
        if self.format not in TABLE_FORMATS:
            raise ValueError(f"format expected one of {', '.join(TABLE_FORMATS)}, got {self.format!r:.64}")
        if self.floats not in get_args(Floats):
            raise ValueError(f"floats expected one of {', '.join(get_args(Floats))}, got {self.floats!r:.64}")
        for name, kind in self.types.items():
            if kind not in CELL_KINDS:
                raise ValueError(f"type of {name!r} expected one of {', '.join(CELL_KINDS)}, got {kind!r:.64}")

    def check_names(self, names: Iterable[str], where: str) -> None:
        """Raise if `types` names an unknown column."""
        known = list(names)
        for name in self.types:
            require_column(name, known, where)


def require_column(name: str, names: Sequence[str], where: str) -> None:
    """Raise unless there is a column of this name."""
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        meant = f", did you mean {close[0]!r}" if close else f", there are {', '.join(map(repr, names[:20]))}"
        raise SourceError(f"no column {name!r}{meant}", shard=where)
