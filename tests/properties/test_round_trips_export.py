"""JSON lines keep every value of the records; arrays and Parquet keep what a column can hold."""

from __future__ import annotations

import base64
import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfrkit.ops.export.npz import export_npz
from tfrkit.ops.export.rows import export_jsonl
from tfrkit.testing import reference, strategies


def from_json(value: Any) -> Any:
    """The value that the JSON form stands for; several values as a list."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and "base64" in value:
        return base64.b64decode(value["base64"])
    if isinstance(value, dict) and "float" in value:
        return float(value["float"])
    return value


def as_list(value: Any) -> Any:
    return value if value is None or isinstance(value, list) else [value]


def is_same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and bool(one == other)


@given(records=st.lists(strategies.examples(), min_size=1, max_size=6))
def test_jsonl_holds_every_value_of_every_record(tmp_path: Path, records: list[Any]) -> None:
    source = tmp_path / "x.tfrecord"
    source.write_bytes(reference.write_frames([reference.encode_example(record) for record in records]))
    export_jsonl(source, tmp_path / "x.jsonl", force=True)
    lines = (tmp_path / "x.jsonl").read_text().split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(records)
    for line, record in zip(lines, records, strict=True):
        document = json.loads(line)
        assert set(document) == {name.decode("utf-8", "surrogateescape") for name in record}
        for name, feature in record.items():
            value = document[name.decode("utf-8", "surrogateescape")]
            if isinstance(value, dict) and "tensor" in value:
                continue  # bytes that happen to be a serialized tensor are written as a tensor
            expected = None if feature is None else list(feature[1])
            assert is_same(as_list(from_json(value)), expected), (name, value, feature)


LISTS = st.one_of(st.none(), st.lists(strategies.int64s, max_size=4))


@given(rows=st.lists(LISTS, min_size=1, max_size=20), blobs=st.lists(strategies.small_bytes, min_size=20, max_size=20))
def test_npz_holds_lists_and_bytes_to_the_last_bit(tmp_path: Path, rows: list[Any], blobs: list[bytes]) -> None:
    records = [
        reference.encode_example({b"b": ("bytes", [blob]), **({} if row is None else {b"l": ("int64", row)})})
        for row, blob in zip(rows, blobs, strict=False)
    ]
    source = tmp_path / "x.tfrecord"
    source.write_bytes(reference.write_frames(records))
    export_npz(source, tmp_path / "x.npz", force=True)
    with np.load(tmp_path / "x.npz", allow_pickle=False) as arrays:
        found = dict(arrays)
    if "b" in found:
        assert found["b"].tolist() == blobs[: len(rows)]
    else:
        data, offsets = found["b/bytes"].tobytes(), found["b/offsets"].tolist()
        assert [data[a:b] for a, b in pairwise(offsets)] == blobs[: len(rows)]
    if all(row is None for row in rows):
        return
    if "l" in found:
        assert found["l"].reshape(len(rows), -1).tolist() == rows
        return
    values, splits = found["l/values"].tolist(), found["l/row_splits"].tolist()
    presence = found.get("l/presence", np.full(len(rows), 2)).tolist()
    lists = [values[a:b] for a, b in pairwise(splits)]
    assert [row if there == 2 else None for row, there in zip(lists, presence, strict=True)] == rows
