"""Columns on disk, read back in any order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tables import scan_text

import tfrkit as tfr
from tfrkit.codec.columns import BytesColumn, Ragged
from tfrkit.sources.column_spool import ColumnSpool, ColumnWriter

# --- the spool


def test_column_spool_gives_rows_in_any_order(tmp_path: Path) -> None:
    writer = ColumnWriter(str(tmp_path), 0, "n", "int64")
    writer.append(np.arange(4))
    writer.append(np.arange(4, 10), missing=np.arange(4, 10) == 7)
    texts = ColumnWriter(str(tmp_path), 1, "t", "bytes", is_list=True)
    values = [[f"{i}-{j}".encode() for j in range(i % 3)] for i in range(10)]
    flat = BytesColumn.from_values([one for value in values for one in value])
    texts.append(flat, lengths=np.array([len(value) for value in values]))
    spool = ColumnSpool(str(tmp_path), [writer.close(), texts.close()], 10)
    for numbers in ([], [3], [2, 3, 4, 5], [9, 0, 7, 7, 1]):
        columns = spool.read_columns(np.array(numbers, np.int64))
        assert [list(row) for row in columns["t"]] == [values[number] for number in numbers]
        assert isinstance(columns["n"], Ragged)
        assert [row.tolist() for row in columns["n"]] == [[number] if number != 7 else [] for number in numbers]


def test_column_spool_columns_are_written_as_their_rows_are(tmp_path: Path) -> None:
    scan = scan_text(tmp_path, "a,x,s\n1,0.5,p\n,1.5,\n3,2.5,r\n")
    order = np.array([2, 0, 1])
    columns = scan.reader.read_columns(order)  # type: ignore[union-attr]
    with tfr.Writer(tmp_path / "c.tfrecord") as writer:
        writer.write_columns(columns)
    with tfr.Writer(tmp_path / "r.tfrecord") as writer:
        for row in ({"a": 3, "x": 2.5, "s": b"r"}, {"a": 1, "x": 0.5, "s": b"p"}, {"x": 1.5}):
            writer.write(row)
    assert (tmp_path / "c.tfrecord").read_bytes() == (tmp_path / "r.tfrecord").read_bytes()
