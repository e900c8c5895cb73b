from __future__ import annotations

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit.errors import SourceError
from tfrkit.sources.arrays import Arrays

IMAGES = np.arange(5 * 4 * 3, dtype=np.uint8).reshape(5, 4, 3)
LABELS = np.array([0, 1, 0, 1, 1])


def read_all(source, tmp_path):
    found = source.scan(str(tmp_path))
    return found, found.reader.read_columns(np.arange(found.items.size))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed], ids=["stored", "compressed"])
def test_npz_gives_one_feature_an_array(tmp_path, save):
    save(tmp_path / "d.npz", x=IMAGES, y=LABELS)
    found = Arrays(tmp_path / "d.npz").scan(str(tmp_path))
    tfr.build(Arrays(tmp_path / "d.npz"), tmp_path / "d.tfrecord", jobs=1)
    rows = list(tfr.open(tmp_path / "d.tfrecord"))
    np.testing.assert_array_equal([row["x"] for row in rows], IMAGES)
    np.testing.assert_array_equal([row["y"] for row in rows], LABELS)
    assert found.schema["x"].encoding == "tensor_proto"
    assert (found.schema["x"].dtype, found.schema["x"].shape) == ("uint8", (4, 3))
    assert found.schema["y"] == tfr.Spec("int64")


def test_npy_gives_the_feature_data(tmp_path):
    np.save(tmp_path / "d.npy", LABELS)
    _, columns = read_all(Arrays(tmp_path / "d.npy"), tmp_path)
    assert columns["data"].tolist() == LABELS.tolist()


def test_fortran_order_and_other_byte_order_are_read_as_they_mean(tmp_path):
    np.save(tmp_path / "d.npy", np.asfortranarray(np.arange(12, dtype=">i8").reshape(3, 4)))
    _, columns = read_all(Arrays(tmp_path / "d.npy"), tmp_path)
    assert columns["data"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_rows_come_in_the_requested_order(tmp_path):
    found = Arrays({"x": np.arange(10)}).scan(str(tmp_path))
    assert found.reader.read_columns(np.array([3, 1, 7]))["x"].tolist() == [3, 1, 7]
    assert found.order == "source"


def test_text_becomes_bytes(tmp_path):
    _, columns = read_all(Arrays({"t": np.array(["a", "ü"])}), tmp_path)
    assert columns["t"] == ["a", "ü"]


def test_lengths_that_differ_are_all_named(tmp_path):
    with pytest.raises(SourceError, match="arrays expected one length, got x 5, y 4"):
        Arrays({"x": IMAGES, "y": LABELS[:4]}).scan(str(tmp_path))


def test_single_value_raises(tmp_path):
    with pytest.raises(SourceError, match="array 'x' expected one row per record, got a single value"):
        Arrays({"x": np.int64(3)}).scan(str(tmp_path))


def test_python_objects_are_refused(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.array([{}, []], object))
    with pytest.raises(SourceError, match="array 'x' holds Python objects, which are not read from files"):
        Arrays(tmp_path / "d.npz").scan(str(tmp_path))


@pytest.mark.parametrize(
    ("content", "what"), [(b"hello", "starts with b'hello'"), (b"\x93NUMPY", "cannot read arrays")]
)
def test_file_that_holds_no_arrays_raises(tmp_path, content, what):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(SourceError, match=what):
        Arrays(tmp_path / "x.npy").scan(str(tmp_path))


def test_missing_file_raises(tmp_path):
    (tmp_path / "arrays.npy").touch()
    with pytest.raises(SourceError, match=r"no such file, expected a .npy or .npz file - at .*\n  did you mean"):
        Arrays(tmp_path / "array.npy").scan(str(tmp_path))


def test_ragged_layout_of_an_export_names_the_export_that_can_be_built(tmp_path):
    np.savez(
        tmp_path / "x.npz", **{"a": np.arange(3), "b/values": np.arange(2), "b/row_splits": np.array([0, 1, 1, 2])}
    )
    with pytest.raises(SourceError, match=r"b/row_splits 4 - at .*\n  tfr export npz stores .*tfr export parquet"):
        Arrays(tmp_path / "x.npz").scan(str(tmp_path))


def test_label_array_is_for_stratifying(tmp_path):
    assert Arrays({"x": IMAGES, "y": LABELS}, label="y").scan(str(tmp_path)).items.labels.tolist() == LABELS.tolist()
    with pytest.raises(SourceError, match="label expected one of x, y, got 'z'"):
        Arrays({"x": IMAGES, "y": LABELS}, label="z").scan(str(tmp_path))
    with pytest.raises(SourceError, match="label expected one integer per record, got uint8"):
        Arrays({"x": IMAGES, "y": LABELS}, label="x").scan(str(tmp_path))


def test_dtype_no_record_holds_raises(tmp_path):
    with pytest.raises(SourceError, match=r"array 'x' has dtype datetime64\[D\], which records cannot store"):
        Arrays({"x": np.array(["2020-01-01"], "datetime64[D]")}).scan(str(tmp_path))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(4, dtype=np.int8),
        np.array([True, False, True, True]),
        np.arange(4, dtype=np.float16),
        np.arange(4.0),
        np.arange(8, dtype=np.int64).reshape(4, 2),
        np.arange(8, dtype=np.float32).reshape(4, 2),
        np.arange(8.0).reshape(4, 2),
        np.arange(16, dtype=np.int16).reshape(4, 2, 2),
        np.array([b"a", b"b", b"c", b"d"]),
        np.array([0, 1, 2**63, 2**64 - 1], np.uint64),
        np.array([0, 1, 2, 2**63 - 1], np.uint64),
        np.zeros((4, 0), np.float32),
        np.zeros((4, 0), np.int64),
        np.zeros((4, 2, 0), np.float64),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}{array.max(initial=0) if array.dtype == np.uint64 else ''}",
)
def test_schema_is_that_of_the_records_written(tmp_path, array):
    """The declared schema and the inferred one must agree."""
    from tfrkit.features.schema import find_mismatches

    report = tfr.build(Arrays({"x": array}), tmp_path / "x.tfrecord", jobs=1)
    promised = Arrays({"x": array}).scan(str(tmp_path)).schema
    assert report.written == 4
    ds = tfr.open(tmp_path / "x.tfrecord")
    assert find_mismatches(promised, ds.schema) == []
    np.testing.assert_array_equal([row["x"] for row in ds], array)
    assert {found.kind for found in tfr.verify(tmp_path / "x.tfrecord", deep=True).findings} <= {"duplicate"}


def test_arrays_come_back_with_dtype_and_shape(tmp_path):
    tfr.build(Arrays({"x": IMAGES, "y": LABELS}), tmp_path / "x.tfrecord", jobs=1)
    rows = list(tfr.open(tmp_path / "x.tfrecord"))
    np.testing.assert_array_equal([row["x"] for row in rows], IMAGES)
    assert rows[0]["x"].dtype == np.uint8
    assert [row["y"] for row in rows] == LABELS.tolist()


@pytest.mark.parametrize(
    ("floats", "values", "said"),
    [
        (
            "ask",
            [0, 0.5, 0.1, 0.3],
            "row 2, array 'x': float32 would round 0.1 to 0.1000.*, as would 1 more",
        ),
        ("ask", [0, 0.5, 1e300], "row 2, array 'x': float32 cannot represent 1e\\+300"),
        ("float32", [[0, 0.1], [0, 0.5], [0.25, 1e300]], "row 2, array 'x': float32 cannot represent 1e\\+300"),
    ],
    ids=["rounded", "too large", "too large in a list"],
)
def test_float_that_does_not_fit_is_named_with_its_row(tmp_path, floats, values, said):
    with pytest.raises(SourceError, match=said) as caught:
        tfr.build(Arrays({"x": np.array(values)}, floats=floats), tmp_path / "x.tfrecord")
    assert 'floats="float64"' in str(caught.value)
    assert not (tmp_path / "x.tfrecord").exists()
