"""JSON lines of SequenceExamples, as `tfr export jsonl` writes them: {"context": {...}, "feature_lists": {...}}.

Unlike rows of a table they have no columns: each line becomes a row of `Writer`, which is spooled as a record.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tfrkit._types import Row
from tfrkit.codec.coerce import Floats
from tfrkit.codec.tensor_proto import encode_tensor
from tfrkit.errors import SourceError, TfrkitError
from tfrkit.sources.base import Items, Problem, Scan, fingerprint_file
from tfrkit.sources.iterable import SpoolReader, SpoolWriter
from tfrkit.sources.json_lines import JsonLines, is_sequence


def holds_sequences(path: str, encoding: str) -> bool:
    """Return whether the first line is a SequenceExample."""
    try:
        return any(is_sequence(row) for row in JsonLines(path, encoding).first_row())
    except ValueError:
        return False


def scan_sequences(path: str, encoding: str, scratch: str, *, floats: Floats) -> Scan:
    """Spool every line as a record; a line that is no SequenceExample is a problem."""
    spool = os.path.join(scratch, "rows.tfrecord")
    problems: list[Problem] = []
    with SpoolWriter(spool, floats=floats, index=True) as writer:
        for line, row in JsonLines(path, encoding).sequences():
            where = f"{path}, line {line}"
            if isinstance(row, ValueError):
                problems.append(Problem(where, str(row)))
                continue
            try:
                writer.write(to_row(row))
            except (TfrkitError, TypeError, ValueError, OverflowError) as error:
                # Later lines are not read: each of them may have the same fault.
                what, hint = getattr(error, "what", str(error)), getattr(error, "hint", None)
                raise SourceError(what, shard=where, hint=hint) from None
        num_rows = writer.num_records
    fingerprint, stamp = fingerprint_file(path)
    return Scan(
        looked_for=f"rows in {path}",
        items=Items(num_rows),
        reader=SpoolReader(spool),
        schema=None,
        problems=problems,
        notes=list(writer.notes),
        order="source",
        floats=floats,
        fingerprint=fingerprint,
        stamp=stamp,
        found=num_rows + len(problems) or None,
    )


def to_row(row: dict[str, dict[str, Any]]) -> Row:
    """Return a row of `Writer`: tensors become their bytes, one for each frame in a feature list.

    Example:
        >>> to_row({"context": {"a": 1}, "feature_lists": {"b": [[1], [2, 3]]}})
        {'context': {'a': 1}, 'feature_lists': {'b': [[1], [2, 3]]}}
    """
    return {
        "context": {name: _store(value) for name, value in row["context"].items()},
        "feature_lists": {name: [_store(one) for one in value] for name, value in row["feature_lists"].items()},
    }


def _store(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return encode_tensor(value)
    return [_store(one) for one in value] if isinstance(value, list) else value
