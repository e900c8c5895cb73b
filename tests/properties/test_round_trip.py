"""What goes in comes out, as the same values and from the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrkit as tfr
from tfrkit.testing import reference, strategies

COMPRESSIONS = ["none", "gzip", "zlib", "xz", "zstd"]


def as_read(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows as read without a schema: a column with one value in every row is scalar."""
    singles = set()
    for name in {name for row in rows for name in row}:
        there = [row[name] for row in rows if row.get(name) is not None]
        if there and all(_is_flat(value) and len(value) == 1 for value in there):
            singles.add(name)
    return [{name: _read_value(value, name in singles) for name, value in row.items()} for row in rows]


def _is_flat(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1
    return isinstance(value, list)


def _read_value(value: Any, is_single: bool) -> Any:
    if value is None or not is_single:
        return value.tolist() if isinstance(value, np.ndarray) and value.dtype == object else value
    only = value[0]
    return only.item() if isinstance(only, np.generic) else only


def to_feature(value: Any) -> reference.Feature:
    """The writer's choice of kind for values of `strategies.tables`."""
    if value is None:
        return None
    if isinstance(value, int):
        return "int64", [value]
    if isinstance(value, float):
        return "float", [value]
    if isinstance(value, bytes):
        return "bytes", [value]
    if isinstance(value, list) or value.dtype == object:
        return "bytes", list(value)
    if value.ndim == 1:
        return ("int64" if value.dtype == np.int64 else "float"), value.tolist()
    dtypes = {"f4": 1, "f8": 2, "i4": 3, "u1": 4, "i2": 5, "i1": 6, "c8": 8, "i8": 9, "b1": 10, "u2": 17, "f2": 19}
    number = (dtypes | {"u4": 22, "u8": 23})[value.dtype.str[1:]]
    return "bytes", [reference.encode_tensor(number, value.shape, value.tobytes())]


@given(rows=strategies.tables())
def test_example_rows_come_back(
    rows: list[dict[str, Any]], write_rows: Callable[..., str], plain: Callable[[Any], Any]
) -> None:
    with tfr.open(write_rows(rows)) as ds:
        assert plain(list(ds)) == plain(as_read(rows))
        assert len(ds) == len(rows)


@given(rows=strategies.tables())
def test_example_bytes_are_the_canonical_ones(rows: list[dict[str, Any]], write_rows: Callable[..., str]) -> None:
    records = [reference.encode_example({k.encode(): to_feature(v) for k, v in row.items()}) for row in rows]
    assert Path(write_rows(rows)).read_bytes() == reference.write_frames(records)


@given(rows=strategies.tables(), random=st.randoms(use_true_random=False))
def test_equal_rows_in_any_key_order_are_equal_bytes(
    rows: list[dict[str, Any]], random: Any, write_rows: Callable[..., str]
) -> None:
    first = Path(write_rows(rows)).read_bytes()
    shuffled = [dict(random.sample(list(row.items()), len(row))) for row in rows]
    assert Path(write_rows(shuffled)).read_bytes() == first


# --- SequenceExample


def frame_lists() -> st.SearchStrategy[list[Any]]:
    """A feature list: frames of one kind, one value each or several."""
    return st.one_of(
        st.lists(strategies.int64s, max_size=4),
        st.lists(strategies.small_bytes, max_size=4),
        st.lists(strategies.float32s.map(np.float32), max_size=4),
        st.lists(st.lists(strategies.int64s, max_size=3).map(lambda v: np.array(v, np.int64)), max_size=4),
        st.lists(st.lists(strategies.float32s, max_size=3).map(lambda v: np.array(v, np.float32)), max_size=4),
    )


@st.composite
def sequence_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    contexts = draw(strategies.tables(min_rows=1, max_rows=4, max_columns=2))
    names = draw(st.lists(strategies.names.map(bytes.decode), max_size=2, unique=True))
    kinds = {name: draw(st.sampled_from(range(5))) for name in names}
    frames = [
        strategies.int64s,
        strategies.small_bytes,
        strategies.float32s,
        st.lists(strategies.int64s, max_size=3).map(lambda v: np.array(v, np.int64)),
        st.lists(strategies.float32s, max_size=3).map(lambda v: np.array(v, np.float32)),
    ]
    return [
        {
            "context": context,
            "feature_lists": {
                name: draw(st.lists(frames[kinds[name]], max_size=4)) for name in names if draw(st.integers(0, 5))
            },
        }
        for context in contexts
    ]


def flat_frames(value: Any) -> list[Any]:
    """Frames as lists of values."""
    frames = []
    for frame in value:
        if isinstance(frame, bytes):
            frames.append([frame])
        elif isinstance(frame, list):
            frames.append(frame)
        else:
            frames.append(
                [np.float32(v).tobytes() if isinstance(v, float) else v for v in np.atleast_1d(frame).tolist()]
            )
    return frames


@given(rows=sequence_rows())
def test_sequence_rows_come_back(
    rows: list[dict[str, Any]], write_rows: Callable[..., str], plain: Callable[[Any], Any]
) -> None:
    with tfr.open(write_rows(rows)) as ds:
        assert ds.kind == "sequence_example"
        got = list(ds)
    assert plain([row["context"] for row in got]) == plain(as_read([row["context"] for row in rows]))
    for row, wanted in zip(got, rows, strict=True):
        lists = {name: flat_frames(frames) for name, frames in row["feature_lists"].items()}
        assert lists == {name: flat_frames(frames) for name, frames in wanted["feature_lists"].items()}


@given(rows=sequence_rows())
def test_sequence_bytes_are_the_canonical_ones(rows: list[dict[str, Any]], write_rows: Callable[..., str]) -> None:
    data = Path(write_rows(rows)).read_bytes()
    for row, record in zip(rows, reference.read_frames(data), strict=True):
        context, lists = reference.parse_sequence_example(record)
        assert set(context) == {name.encode() for name in row["context"]}
        assert {name: len(frames) for name, frames in lists.items()} == {
            name.encode(): len(frames) for name, frames in row["feature_lists"].items()
        }
        assert reference.encode_sequence_example(context, lists) == record


# --- columns and compression


@st.composite
def column_tables(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Columns, and the same as rows."""
    num_rows = draw(st.integers(1, 9))
    columns: dict[str, Any] = {}
    cells: dict[str, list[Any]] = {}
    for name in draw(st.lists(strategies.names.map(bytes.decode), min_size=1, max_size=4, unique=True)):
        form = draw(st.sampled_from(["ints", "floats", "matrix", "strings", "bytes", "ragged", "tensor", "text"]))
        many = {"min_size": num_rows, "max_size": num_rows}
        if form == "ints":
            columns[name] = np.array(draw(st.lists(strategies.int64s, **many)), np.int64)
            cells[name] = columns[name].tolist()
        elif form == "floats":
            columns[name] = np.array(draw(st.lists(strategies.float32s, **many)), np.float32)
            cells[name] = columns[name].tolist()
        elif form == "matrix":
            columns[name] = draw(strategies.arrays("int64", (num_rows, 3)))
            cells[name] = list(columns[name])
        elif form == "tensor":
            columns[name] = draw(strategies.arrays("uint8", (num_rows, 2, 2)))
            cells[name] = list(columns[name])
        elif form == "strings":
            cells[name] = columns[name] = draw(st.lists(strategies.small_bytes, **many))
        elif form == "text":
            cells[name] = columns[name] = draw(st.lists(st.sampled_from(["", "é", "abc"]), **many))
        elif form == "bytes":
            cells[name] = draw(st.lists(strategies.small_bytes, **many))
            columns[name] = tfr.BytesColumn.from_values(cells[name])
        else:
            cells[name] = [
                np.array(row, np.int64) for row in draw(st.lists(st.lists(strategies.int64s, max_size=3), **many))
            ]
            columns[name] = tfr.Ragged.from_rows(cells[name])
    return columns, [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]


@given(table=column_tables())
def test_columns_write_the_bytes_of_their_rows(
    table: tuple[dict[str, Any], list[dict[str, Any]]], write_rows: Callable[..., str], tmp_path: Path
) -> None:
    columns, rows = table
    path = tmp_path / "columns.tfrecord"
    with tfr.Writer(path) as writer:
        writer.write_columns(columns)
        assert writer.num_records == len(rows)
    assert path.read_bytes() == Path(write_rows(rows)).read_bytes()


@pytest.mark.parametrize("compression", COMPRESSIONS)
@settings(max_examples=15)
@given(rows=strategies.tables())
def test_compressed_rows_equal_uncompressed(
    compression: str, rows: list[dict[str, Any]], write_rows: Callable[..., str], plain: Callable[[Any], Any]
) -> None:
    path = write_rows(rows, name="packed", compression=compression)
    with tfr.open(path) as packed, tfr.open(write_rows(rows)) as loose:
        assert list(packed.records()) == list(loose.records())
        assert plain(list(packed)) == plain(list(loose))
        assert len(packed) == len(loose)
        assert plain([packed[i] for i in range(len(rows))]) == plain(list(loose))


@pytest.mark.parametrize("level", ["default", "fast", "small", 1, 6])
@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_every_level_gives_the_same_records(compression: str, level: Any, write_rows: Callable[..., str]) -> None:
    rows = [{"a": i, "b": b"x" * (i % 50)} for i in range(500)]
    with tfr.open(write_rows(rows, compression=compression, level=level)) as ds:
        assert list(ds) == rows
