"""What the tests of tables share: scan a table, and read its rows back."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from tfrkit.codec.encode_columns import rows_of_columns
from tfrkit.sources.base import Scan
from tfrkit.sources.table import Table


def save(path: Path, text: str | bytes) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def scan_text(tmp_path: Path, text: str | bytes, name: str = "t.csv", **options: Any) -> Scan:
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    return Table(save(tmp_path / name, text), **options).scan(str(scratch))


def rows_of(scan: Scan, numbers: list[int] | None = None) -> list[dict[str, Any]]:
    reader: Any = pickle.loads(pickle.dumps(scan.reader))  # as it comes to a worker
    if hasattr(reader, "read"):
        return [reader.read(scan.items.item(number)) for number in range(scan.items.size)]
    picked = np.arange(scan.items.size) if numbers is None else np.array(numbers, np.int64)
    rows = list(rows_of_columns(reader.read_columns(picked)))
    return [{name: plain(value) for name, value in row.items()} for row in rows]


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value


def kinds_of(scan: Scan) -> dict[str, str]:
    assert scan.schema is not None
    return {name: spec.kind + "?" * spec.optional for name, spec in scan.schema.features.items()}
