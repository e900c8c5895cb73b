"""Measurements that are kept in the cache folder, so that some rows can be measured again without the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bars import ROWS
from report import Measured
from timing import Timing


def save_row(folder: Path, measured: Measured) -> None:
    """Keep a row, in place of what it was before."""
    content = {
        "nbytes": measured.nbytes,
        "output_sizes": measured.output_sizes,
        "notes": measured.notes,
        "timings": {side: vars(timing) for side, timing in measured.timings.items()},
    }
    write(folder / f"{measured.row.name}.json", content)


def load_rows(folder: Path) -> list[Measured]:
    """Return every row that was ever measured and is still one, in the order of the report."""
    rows = []
    for row in ROWS:
        content = read(folder / f"{row.name}.json")
        if content is not None:
            timings = {side: Timing(**timing) for side, timing in content["timings"].items()}
            rows.append(Measured(row, timings, content["nbytes"], content["output_sizes"], content["notes"]))
    return rows


def save_costs(folder: Path, costs: dict[str, Any]) -> None:
    """Keep what tfrkit costs."""
    write(folder / "costs.json", costs)


def load_costs(folder: Path) -> dict[str, Any] | None:
    """Return what tfrkit costs, if that was ever measured."""
    return read(folder / "costs.json")


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


def read(path: Path) -> dict[str, Any] | None:
    """Read a JSON file, if there is one."""
    if not path.exists():
        return None
    content: dict[str, Any] = json.loads(path.read_text())
    return content
