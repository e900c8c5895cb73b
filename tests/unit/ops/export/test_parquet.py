"""Parquet: the same rows and values, null apart from empty, and back."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit
from tfrkit._limits import LIMITS
from tfrkit.errors import MissingFeatureError, SchemaError
from tfrkit.ops.export.parquet import export_parquet
from tfrkit.testing.reference import encode_example, encode_sequence_example, write_frames

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write(path: Path, records: list[bytes]) -> Path:
    path.write_bytes(write_frames(records))
    return path


def export(source: Path, **options: Any) -> Any:
    output = source.with_suffix(".parquet")
    export_parquet(source, output, force=True, **options)
    return pq.read_table(output)


def show_type(arrow_type: Any) -> str:
    return str(arrow_type).replace("element:", "item:")  # the item name of a list depends on the pyarrow version


def test_values_are_those_of_the_records_with_null_apart_from_empty(tmp_path: Path) -> None:
    records = [
        encode_example(
            {b"n": ("int64", [1]), b"l": ("float", [0.5, 1.5]), b"t": ("bytes", [b"x"]), b"b": ("bytes", [b"\xff"])}
        ),
        encode_example({b"n": ("int64", [2]), b"l": ("float", []), b"b": ("bytes", [b""])}),
        encode_example({b"n": ("int64", [3]), b"b": ("bytes", [b"\0"])}),
    ]
    table = export(write(tmp_path / "a", records))
    assert table.to_pylist() == [
        {"n": 1, "l": [0.5, 1.5], "t": "x", "b": b"\xff"},
        {"n": 2, "l": [], "t": None, "b": b""},
        {"n": 3, "l": None, "t": None, "b": b"\0"},
    ]
    assert {field.name: show_type(field.type) for field in table.schema} == {
        "n": "int64",
        "l": "large_list<item: float>",
        "t": "large_string",
        "b": "large_binary",
    }


def test_sequence_examples_are_structs(tmp_path: Path) -> None:
    record = encode_sequence_example({b"id": ("int64", [7])}, {b"x": [("int64", [1, 2]), ("int64", [3])]})
    table = export(write(tmp_path / "a", [record]))
    assert table.to_pylist() == [{"context": {"id": 7}, "feature_lists": {"x": [[1, 2], [3]]}}]


def test_compression_is_zstd_unless_another_is_requested(tmp_path: Path) -> None:
    source = write(tmp_path / "a", [encode_example({b"n": ("int64", [1])})])
    for options, expected in (
        ({}, "ZSTD"),
        ({"compression": "snappy"}, "SNAPPY"),
        ({"compression": "none"}, "UNCOMPRESSED"),
    ):
        export(source, **options)
        column = pq.ParquetFile(source.with_suffix(".parquet")).metadata.row_group(0).column(0)
        assert column.compression == expected


def test_row_groups_are_bounded_and_small_shards_share_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "parquet_group_nbytes", 15_000)
    monkeypatch.setattr(LIMITS, "parquet_batch_nbytes", 1000)
    for shard in range(20):
        records = [encode_example({b"b": ("bytes", [bytes(100)]), b"n": ("int64", [n])}) for n in range(50)]
        write(tmp_path / f"x-{shard:02d}.tfrecord", records)
    report = export_parquet(tmp_path, tmp_path / "x.parquet")
    metadata = pq.ParquetFile(tmp_path / "x.parquet").metadata
    groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert (sum(groups), report.records) == (1000, 1000)
    assert max(groups) <= 100
    assert len(groups) < 20


def test_select_takes_only_some(tmp_path: Path) -> None:
    source = write(tmp_path / "a", [encode_example({b"a": ("int64", [1]), b"b": ("int64", [2])})])
    assert export(source, select=["b"]).to_pylist() == [{"b": 2}]
    with pytest.raises(MissingFeatureError, match="no feature 'c'"):
        export(source, select=["c"])


def test_what_no_column_holds_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"expected records that are Examples, got none.*\n.*tfr export jsonl"):
        export(write(tmp_path / "raw", [b"text"]))
    differ = [encode_example({b"x": ("int64", [1])}), encode_example({b"x": ("float", [1])})]
    with pytest.raises(SchemaError, match="feature 'x' expected one kind, got"):
        export(write(tmp_path / "differ", differ))
    with pytest.raises(SchemaError, match="expected records with features, got none"):
        export(write(tmp_path / "none", [encode_example({})]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["differ", "none", "raw"]


# --- Parquet → TFRecord → Parquet

COLUMNS = {
    "i64": pa.array([1, -(2**63), None], pa.int64()),
    "i32": pa.array([1, -(2**31), 3], pa.int32()),
    "u8": pa.array([0, 255, 7], pa.uint8()),
    "flag": pa.array([True, False, True]),
    "f32": pa.array([0.5, float("inf"), None], pa.float32()),
    "text": pa.array(["", "grüße", None]),
    "bytes": pa.array([b"\xff\0", b"", b"x"], pa.binary()),
    "ints": pa.array([[1, 2], [], None], pa.list_(pa.int64())),
    "texts": pa.array([["a"], [], ["b", ""]], pa.list_(pa.string())),
    "a/b": pa.array([1.5, 2.5, 3.5], pa.float32()),
}


@pytest.mark.parametrize("out", ["out", "out.tfrecord"])
def test_parquet_comes_back_with_equal_values_and_types(tmp_path: Path, out: str) -> None:
    table = pa.table(COLUMNS)
    pq.write_table(table, tmp_path / "in.parquet")
    tfrkit.build(tfrkit.sources.table(tmp_path / "in.parquet"), tmp_path / out, jobs=1)
    export_parquet(tmp_path / out, tmp_path / "back.parquet")
    back = pq.read_table(tmp_path / "back.parquet")
    assert back.select(table.column_names).to_pylist() == table.to_pylist()
    # Lists and texts have offsets of 64 bits in what we write; an Example has integers of one kind.
    large = {"string": "large_string", "binary": "large_binary", "list<item: int64>": "large_list<item: int64>"}
    large |= {"list<item: string>": "large_list<item: large_string>"}
    large |= {"int32": "int64", "uint8": "int64", "bool": "int64"}
    for field in table.schema:
        expected = large.get(show_type(field.type), show_type(field.type))
        assert show_type(back.schema.field(field.name).type) == expected, field.name


def test_tensors_have_the_type_of_what_is_inside(tmp_path: Path) -> None:
    with tfrkit.Writer(str(tmp_path / "a")) as writer:
        writer.write({"t": np.array([[1, 2], [3, 4]], np.uint8)})
    assert export(tmp_path / "a").to_pylist() == [{"t": [[1, 2], [3, 4]]}]


def test_ctrl_c_while_the_file_is_ended_says_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path / "a", [encode_example({b"n": ("int64", [1])})])
    close = pq.ParquetWriter.close
    monkeypatch.setattr(pq.ParquetWriter, "close", lambda self: interrupt(close, self))
    deleted: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", deleted.append)
    with pytest.raises(KeyboardInterrupt):
        export(source)
    gc.collect()
    assert deleted == []


def interrupt(close: Any, writer: Any) -> None:
    """Raise `KeyboardInterrupt` in the first call, as Ctrl-C may before the writer knows that it is closed."""
    pq.ParquetWriter.close = close
    raise KeyboardInterrupt
