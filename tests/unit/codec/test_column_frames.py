from __future__ import annotations

import numpy as np
import pytest

from tfrkit.codec.column_frames import ColumnFramer, PlainColumn, frame_columns
from tfrkit.codec.columns import ABSENT, PRESENT, BytesColumn, Ragged
from tfrkit.writer import Writer

TEXT = BytesColumn.from_values([b"a", b"", "ü".encode(), b"d" * 300])
INTS = np.array([1, -2, 1 << 40, 4], np.int64)
MISSING = np.array([0, 1, 0, 0], np.uint8)
SPLITS = np.array([0, 2, 2, 3, 4], np.int64)
PLAIN = {
    "text": PlainColumn("bytes", TEXT.data, TEXT.offsets),
    "ints": PlainColumn("int64", INTS),
    "maybe": PlainColumn("float", np.arange(4, dtype=np.float32), missing=MISSING),
    "lists": PlainColumn("int64", INTS, splits=SPLITS),
}
COLUMNS = {
    "text": TEXT,
    "ints": INTS,
    "maybe": Ragged(
        np.array([0, 2, 3], np.float32),
        np.array([0, 1, 1, 2, 3]),
        np.array([PRESENT, ABSENT, PRESENT, PRESENT], np.uint8),
    ),
    "lists": Ragged(INTS, SPLITS),
}


def write(path, columns) -> bytes:
    with Writer(path) as writer:
        writer.write_columns(columns)
    return path.read_bytes()


def test_rows_are_framed_as_the_writer_writes_them(tmp_path):
    frames, starts = ColumnFramer(PLAIN, 4).frame_rows(np.arange(4))
    assert frames.tobytes() == write(tmp_path / "a.tfrecord", COLUMNS)
    assert frame_columns(COLUMNS, floats="ask")[0].tobytes() == frames.tobytes()
    assert frame_columns(COLUMNS, floats="ask")[1].tolist() == starts.tolist()


def test_rows_can_be_requested_in_any_order():
    framer = ColumnFramer(PLAIN, 4)
    frames, starts = framer.frame_rows(np.array([3, 0, 3]))
    single = [framer.frame_rows(np.array([row]))[0].tobytes() for row in (3, 0, 3)]
    assert frames.tobytes() == b"".join(single)
    assert starts.tolist() == [0, len(single[0]), len(single[0]) + len(single[1])]


@pytest.mark.parametrize("rows", [[4], [-1], [0, 1 << 62]])
def test_row_that_is_not_there_raises(rows):
    with pytest.raises(IndexError, match="row number out of range"):
        ColumnFramer(PLAIN, 4).frame_rows(np.array(rows))


@pytest.mark.parametrize(
    "column",
    [
        PlainColumn("int64", INTS[:3]),
        PlainColumn("bytes", TEXT.data[:-1], TEXT.offsets),
        PlainColumn("bytes", TEXT.data, TEXT.offsets[:-1]),
        PlainColumn("bytes", TEXT.data),
        PlainColumn("int64", INTS, splits=SPLITS[::-1].copy()),
        PlainColumn("int64", INTS, missing=MISSING[:3]),
    ],
    ids=["values", "bytes", "offsets", "no offsets", "falling splits", "missing"],
)
def test_column_that_does_not_hold_its_rows_raises(column):
    with pytest.raises(ValueError, match="hold every row"):
        ColumnFramer({"a": column}, 4)
