"""Rows and batches in a form that `==` compares: NaN equals NaN, -0.0 is not 0.0, dtypes count."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit import BytesColumn, Ragged

Plain = Callable[[Any], Any]


def to_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: to_plain(inner) for name, inner in value.items()}
    if isinstance(value, BytesColumn):
        return list(value)
    if isinstance(value, Ragged):
        return [to_plain(row) for row in value]
    if isinstance(value, (list, tuple)):
        return [to_plain(inner) for inner in value]
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return value.tolist()
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, float):
        return struct.pack("<d", value)
    return value


@pytest.fixture(scope="session")
def plain() -> Plain:
    return to_plain


@pytest.fixture(scope="session")
def batch_rows() -> Callable[[Iterable[dict[str, Any]]], list[Any]]:
    """The rows of some batches as plain tuples, whatever the size of the batches."""

    def unfold(batches: Iterable[dict[str, Any]]) -> list[Any]:
        rows: list[Any] = []
        for batch in batches:
            columns = [_unfold(column) for column in _flatten(batch).values()]
            rows += list(zip(*columns, strict=True))
        return rows

    return unfold


def _flatten(batch: dict[str, Any]) -> dict[Any, Any]:
    if set(batch) == {"context", "feature_lists"} and isinstance(batch["context"], dict):
        return {(part, name): column for part in batch for name, column in batch[part].items()}
    return batch


def _unfold(column: Any) -> list[Any]:
    if isinstance(column, Ragged) and column.presence is not None:
        return [(int(p), to_plain(row)) for p, row in zip(column.presence, column, strict=True)]
    if isinstance(column, Ragged):
        return [(2, to_plain(row)) for row in column]
    return [to_plain(row) for row in column]


@pytest.fixture
def write_rows(tmp_path: Path) -> Callable[..., str]:
    """Writes rows to one file, the same one each time."""

    def write(rows: Iterable[Any], *, name: str = "shard.tfrecord", **options: Any) -> str:
        path = str(tmp_path / name)
        with tfr.Writer(path, **options) as writer:
            for row in rows:
                writer.write(row)
        return path

    return write
