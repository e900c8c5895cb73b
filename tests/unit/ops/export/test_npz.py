"""Arrays without pickles: dense ones, ragged ones, bytes of any kind, and back."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit
from tfrkit.errors import SchemaError, StorageError
from tfrkit.ops.export.npz import export_npz
from tfrkit.testing.reference import encode_example, encode_sequence_example, write_frames


def export(source: Path, **options: Any) -> dict[str, Any]:
    output = source.with_suffix(".npz")
    export_npz(source, output, force=True, **options)
    with np.load(output, allow_pickle=False) as arrays:
        return dict(arrays)


def write(path: Path, records: list[bytes]) -> Path:
    path.write_bytes(write_frames(records))
    return path


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    with tfrkit.Writer(str(path)) as writer:
        for row in rows:
            writer.write(row)
    return path


def test_numbers_of_one_shape_are_one_array(tmp_path: Path) -> None:
    rows = [{"n": number, "xy": np.array([number, 0.5], np.float32)} for number in range(5)]
    arrays = export(write_rows(tmp_path / "a", rows))
    assert arrays["n"].tolist() == list(range(5))
    assert (arrays["xy"].dtype, arrays["xy"].shape) == (np.float32, (5, 2))
    assert set(arrays) == {"n", "xy"}


def test_lists_have_values_and_splits_and_absent_ones_a_presence(tmp_path: Path) -> None:
    records = [
        encode_example({b"l": ("int64", [1, 2]), b"m": ("int64", [1])}),
        encode_example({b"l": ("int64", []), b"m": ("int64", [])}),
        encode_example({b"m": ("int64", [2, 3])}),
        encode_example({b"l": None, b"m": ("int64", [])}),
    ]
    arrays = export(write(tmp_path / "a", records))
    assert arrays["l/values"].tolist() == [1, 2]
    assert arrays["l/row_splits"].tolist() == [0, 2, 2, 2, 2]
    assert arrays["l/presence"].tolist() == [2, 2, 0, 1]
    assert arrays["m/row_splits"].tolist() == [0, 1, 1, 3, 3]
    assert "m/presence" not in arrays


def test_splits_count_on_over_batches_and_shards(tmp_path: Path) -> None:
    expected: list[list[int]] = []
    for shard in range(3):
        lists = [list(range(number % 5)) for number in range(shard, 3000)]
        expected += lists
        write(tmp_path / f"x-{shard}.tfrecord", [encode_example({b"l": ("int64", one)}) for one in lists])
    export_npz(tmp_path, tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz", allow_pickle=False) as arrays:
        values, splits = arrays["l/values"], arrays["l/row_splits"]
    assert [values[a:b].tolist() for a, b in pairwise(splits)] == expected


def test_short_bytes_are_fixed_width_unless_they_end_in_a_nul(tmp_path: Path) -> None:
    rows = [{"t": b"cat", "u": b"a"}, {"t": b"", "u": b"b\0"}]
    arrays = export(write_rows(tmp_path / "a", rows))
    assert arrays["t"].tolist() == [b"cat", b""]
    assert arrays["t"].dtype == "S3"
    assert (arrays["u/bytes"].tobytes(), arrays["u/offsets"].tolist()) == (b"ab\0", [0, 1, 3])
    assert "u" not in arrays


def test_long_bytes_and_lists_of_bytes_have_offsets(tmp_path: Path) -> None:
    records = [
        encode_example({b"x": ("bytes", [b"a" * 300]), b"l": ("bytes", [b"\0", b"bc"])}),
        encode_example({b"x": ("bytes", [b""]), b"l": ("bytes", [])}),
    ]
    arrays = export(write(tmp_path / "a", records))
    assert arrays["x/offsets"].tolist() == [0, 300, 300]
    assert arrays["l/row_splits"].tolist() == [0, 2, 2]
    assert arrays["l/values/bytes"].tobytes() == b"\0bc"
    assert arrays["l/values/offsets"].tolist() == [0, 1, 3]


def test_tensors_of_one_shape_are_stacked_and_others_have_shapes(tmp_path: Path) -> None:
    rows = [{"t": np.full((2, 3), n, np.uint8), "v": np.ones((n + 1, 2), np.float64)} for n in range(2)]
    arrays = export(write_rows(tmp_path / "a", rows))
    assert (arrays["t"].dtype, arrays["t"].shape) == (np.uint8, (2, 2, 3))
    assert arrays["v/shapes"].tolist() == [[1, 2], [2, 2]]
    assert arrays["v/row_splits"].tolist() == [0, 2, 6]
    assert arrays["v/values"].dtype == np.float64


def test_frames_are_lists_of_lists(tmp_path: Path) -> None:
    records = [
        encode_sequence_example({b"id": ("int64", [n])}, {b"x": [("int64", [n] * step) for step in range(n + 1)]})
        for n in range(3)
    ]
    arrays = export(write(tmp_path / "a", records))
    assert arrays["context/id"].tolist() == [0, 1, 2]
    assert arrays["feature_lists/x/row_splits"].tolist() == [0, 1, 3, 6]
    assert arrays["feature_lists/x/values/row_splits"].tolist() == [0, 0, 0, 1, 1, 2, 4]
    assert arrays["feature_lists/x/values/values"].tolist() == [1, 2, 2, 2]


def test_arrays_come_back_from_a_build(tmp_path: Path) -> None:
    arrays = {
        "i": np.array([1, -(2**63), 5]),
        "u8": np.array([0, 255, 7], np.uint8),
        "flag": np.array([True, False, True]),
        "f": np.array([0.5, np.inf, -1], np.float32),
        "f16": np.array([0.5, 1, 2], np.float16),
        "pixels": np.arange(24, dtype=np.uint8).reshape(3, 2, 4),
        "rows": np.arange(6, dtype=np.float32).reshape(3, 2),
        "doubles": np.arange(6, dtype=np.float64).reshape(3, 2) / 7,
        "text": np.array([b"a", b"", b"xyz"]),
    }
    np.savez(tmp_path / "in.npz", **arrays)
    source = tfrkit.sources.arrays(tmp_path / "in.npz", floats="float64")
    tfrkit.build(source, tmp_path / "x.tfrecord", jobs=1)
    export_npz(tmp_path / "x.tfrecord", tmp_path / "back.npz")
    with np.load(tmp_path / "back.npz", allow_pickle=False) as back:
        assert set(back) == set(arrays)
        for name, array in arrays.items():
            assert np.array_equal(back[name], array), name
            assert back[name].dtype == array.dtype, name
    # And again, from our own output.
    tfrkit.build(tfrkit.sources.arrays(tmp_path / "back.npz", floats="float64"), tmp_path / "y.tfrecord", jobs=1)
    assert (tmp_path / "y.tfrecord").read_bytes() == (tmp_path / "x.tfrecord").read_bytes()


def test_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "a", [{"n": 1, "t": b"x"}])
    export_npz(source, tmp_path / "1.npz")
    export_npz(source, tmp_path / "2.npz")
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "2.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.npz", "2.npz", "a"]


def test_what_no_array_holds_is_refused(tmp_path: Path) -> None:
    strings = np.array([b"a", b"b"], object)
    with pytest.raises(SchemaError, match="feature 't' holds tensors of text"):
        export(write_rows(tmp_path / "a", [{"t": strings.reshape(2, 1)}]))
    clash = [{"x": [1, 2], "x/values": 3}, {"x": [1], "x/values": 3}]
    with pytest.raises(SchemaError, match="features 'x' and 'x/values' would both be the array 'x/values'"):
        export(write_rows(tmp_path / "b", clash))
    with pytest.raises(SchemaError, match="has a NUL in its name"):
        export(write(tmp_path / "c", [encode_example({b"a\0b": ("int64", [1])})]))
    with pytest.raises(StorageError, match="cannot write npz to standard output"):
        export_npz(tmp_path / "a", "-")
