from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from tfrkit.codec.columns import BytesColumn, Ragged
from tfrkit.codec.decode import Decoder
from tfrkit.codec.tensor_proto import encode_tensor
from tfrkit.errors import CodecError, SchemaError, ShapeError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.testing.reference import Feature, FeatureLists, encode_example, encode_sequence_example

EMPTY: Feature = ("int64", [])


def ints(*values: int) -> Feature:
    return "int64", list(values)


def texts(*values: bytes) -> Feature:
    return "bytes", list(values)


def tensor(array: Any) -> Feature:
    return texts(encode_tensor(np.asarray(array)))


def decode(schema: Schema, records: list[bytes]) -> tuple[dict[str, Any], list[Any]]:
    """The batch of some records, and the rows made of it."""
    decoder = Decoder(schema)
    builder = decoder.new_builder()
    for record in records:
        assert builder.append_record(record) is None
    batch = decoder.take_batch(builder)
    return batch, decoder.rows(batch, len(records))


def decode_one(spec: Spec, *features: Feature | str) -> tuple[Any, list[Any]]:
    """The column and rows of one feature named x; "absent" leaves it out of a record."""
    records = [encode_example({} if isinstance(f, str) else {b"x": f}) for f in features]
    batch, rows = decode(Schema({"x": spec}), records)
    return batch["x"], rows


def decode_lists(spec: Spec, *records: FeatureLists) -> tuple[Any, list[Any]]:
    schema = Schema({}, feature_lists={"f": spec})
    batch, rows = decode(schema, [encode_sequence_example({}, lists) for lists in records])
    return batch["feature_lists"]["f"], [row["feature_lists"] for row in rows]


def plain(value: Any) -> Any:
    """Arrays as lists, so that rows can be compared."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


# --- scalars and lists --------------------------------------------------------------------------------


def test_scalars_are_dense_columns_and_python_values() -> None:
    column, rows = decode_one(Spec("int64"), ints(1), ints(-(1 << 63)))
    assert column.dtype == np.int64
    assert column.tolist() == [1, -(1 << 63)]
    assert rows == [{"x": 1}, {"x": -(1 << 63)}]
    assert type(rows[0]["x"]) is int


def test_float_scalars_keep_nan_inf_and_minus_zero() -> None:
    column, rows = decode_one(Spec("float"), *[("float", [v]) for v in (float("nan"), float("inf"), -0.0)])
    assert column.dtype == np.float32
    assert repr([row["x"] for row in rows]) == "[nan, inf, -0.0]"


def test_bytes_scalars_are_a_bytes_column() -> None:
    column, rows = decode_one(Spec("bytes"), texts(b"a\0"), texts(b""))
    assert isinstance(column, BytesColumn)
    assert rows == [{"x": b"a\0"}, {"x": b""}]


def test_length_one_is_an_array_where_the_schema_says_so() -> None:
    column, rows = decode_one(Spec("int64", (1,)), ints(1), ints(2))
    assert column.shape == (2, 1)
    assert plain(rows) == [{"x": [1]}, {"x": [2]}]


def test_fixed_lists_are_stacked_in_their_shape() -> None:
    column, rows = decode_one(Spec("int64", (2, 2)), ints(1, 2, 3, 4), ints(5, 6, 7, 8))
    assert column.shape == (2, 2, 2)
    assert plain(rows[1]) == {"x": [[5, 6], [7, 8]]}


def test_fixed_lists_of_bytes_are_ragged_of_one_length() -> None:
    column, rows = decode_one(Spec("bytes", (2,)), texts(b"a", b"b"), texts(b"c", b"d"))
    assert isinstance(column, Ragged)
    assert column.row_splits.tolist() == [0, 2, 4]
    assert rows == [{"x": [b"a", b"b"]}, {"x": [b"c", b"d"]}]


def test_variable_lists_are_ragged() -> None:
    column, rows = decode_one(Spec("int64", (None,)), ints(1, 2), EMPTY, ints(3))
    assert isinstance(column, Ragged)
    assert column.row_splits.tolist() == [0, 2, 2, 3]
    assert column.presence is None
    assert plain(rows) == [{"x": [1, 2]}, {"x": []}, {"x": [3]}]


def test_list_of_length_zero_is_an_empty_array() -> None:
    column, rows = decode_one(Spec("int64", (0,)), EMPTY, EMPTY)
    assert column.shape == (2, 0)
    assert plain(rows) == [{"x": []}, {"x": []}]


def test_variable_outer_size_keeps_the_inner_shape() -> None:
    _, rows = decode_one(Spec("int64", (None, 2)), ints(1, 2, 3, 4), ints(5, 6), EMPTY)
    assert plain(rows) == [{"x": [[1, 2], [3, 4]]}, {"x": [[5, 6]]}, {"x": []}]
    assert rows[2]["x"].shape == (0, 2)


def test_variable_list_that_is_no_multiple_of_its_inner_shape_raises() -> None:
    with pytest.raises(ShapeError, match="feature 'x' expected .*2.*, got 3"):
        decode_one(Spec("int64", (None, 2)), ints(1, 2, 3))


@pytest.mark.parametrize(("dtype", "feature"), [("bool", ints(1)), ("uint8", ints(200)), ("float64", ("float", [0.5]))])
def test_lists_are_cast_to_the_dtype_of_the_schema(dtype: str, feature: Feature) -> None:
    assert feature is not None
    column, _ = decode_one(Spec(feature[0], dtype=dtype), feature)
    assert column.dtype == dtype


def test_no_rows_give_empty_columns_of_the_right_type() -> None:
    schema = Schema(
        {
            "i": "int64",
            "f": ("float", (3,)),
            "b": "bytes",
            "r": ("int64", (None,)),
            "t": ("uint8", (2, 2)),
            "w": Spec("bytes", (2,), encoding="raw", dtype="uint16"),
        }
    )
    batch, rows = decode(schema, [])
    assert rows == []
    assert [len(column) for column in batch.values()] == [0] * 6
    assert batch["f"].shape == (0, 3)
    assert batch["t"].shape == (0, 2, 2)
    assert batch["t"].dtype == np.uint8
    assert batch["w"].shape == (0, 2)


def test_no_features_give_empty_rows() -> None:
    batch, rows = decode(Schema({}), [b"", encode_example({b"x": ints(1)})])
    assert batch == {}
    assert rows == [{}, {}]


# --- absent, unset, empty -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "one", "value"), [("int64", ints(7), 7), ("float", ("float", [0.5]), 0.5), ("bytes", texts(b""), b"")]
)
def test_optional_scalar_is_a_value_none_or_not_there(kind: Any, one: Feature, value: object) -> None:
    column, rows = decode_one(Spec(kind, optional=True), one, "absent", None)
    assert column.presence.tolist() == [2, 0, 1]
    assert rows == [{"x": value}, {}, {"x": None}]
    assert type(rows[0]["x"]) is type(value)


@pytest.mark.parametrize("kind", ["int64", "float", "bytes"])
def test_optional_list_keeps_absent_unset_and_empty_apart(kind: Any) -> None:
    column, rows = decode_one(Spec(kind, (None,), optional=True), (kind, []), "absent", None)
    assert column.presence.tolist() == [2, 0, 1]
    assert plain(rows) == [{"x": []}, {}, {"x": None}]


@pytest.mark.parametrize("encoding", ["tensor_proto", "raw", "zlib"])
def test_optional_array_keeps_absent_and_unset_apart(encoding: Any) -> None:
    array = np.array([1, 2], np.uint8)
    stored = {"tensor_proto": encode_tensor(array), "raw": array.tobytes(), "zlib": zlib.compress(array.tobytes())}
    spec = Spec("bytes", (2,), encoding=encoding, dtype="uint8", optional=True)
    _, rows = decode_one(spec, texts(stored[encoding]), "absent", None)
    assert plain(rows) == [{"x": [1, 2]}, {}, {"x": None}]


# --- arrays kept as bytes -----------------------------------------------------------------------------


def test_tensors_of_one_shape_are_stacked() -> None:
    column, rows = decode_one(
        Spec("bytes", (1, 2), encoding="tensor_proto", dtype="float64"), *[tensor([[0.1, i]]) for i in (1, 2)]
    )
    assert column.shape == (2, 1, 2)
    assert plain(rows) == [{"x": [[0.1, 1]]}, {"x": [[0.1, 2]]}]


@pytest.mark.parametrize(("shape", "dtype"), [((None, 2), "float64"), ((1, 2), None), ((None, None), None)])
def test_tensors_that_vary_are_a_list_of_arrays(shape: Any, dtype: str | None) -> None:
    column, rows = decode_one(Spec("bytes", shape, encoding="tensor_proto", dtype=dtype), tensor([[0.1, 2.0]]))
    assert isinstance(column, list)
    assert column[0].dtype == np.float64
    assert plain(rows) == [{"x": [[0.1, 2.0]]}]


def test_scalar_tensor_is_a_python_value() -> None:
    _, rows = decode_one(Spec("bytes", (), encoding="tensor_proto", dtype="float64"), tensor(0.1))
    assert rows == [{"x": 0.1}]


def test_string_tensors_are_object_arrays() -> None:
    column, _ = decode_one(
        Spec("bytes", (2,), encoding="tensor_proto", dtype="string"), tensor(np.array([b"a\0", b""], object))
    )
    assert column.dtype == object
    assert column.tolist() == [[b"a\0", b""]]


@pytest.mark.parametrize(
    "stored",
    [tensor(np.zeros(3)), tensor(np.zeros((2, 2))), tensor(np.zeros(2, np.float32)), tensor(np.zeros(2, ">i8"))],
)
def test_tensor_of_another_shape_or_dtype_raises(stored: Feature) -> None:
    with pytest.raises(ShapeError, match=r"feature 'x' expected shape \(2,\), float64, got .* row [01] of the batch"):
        decode_one(Spec("bytes", (2,), encoding="tensor_proto", dtype="float64"), tensor(np.zeros(2)), stored)


def test_single_tensor_of_another_dtype_raises() -> None:
    with pytest.raises(ShapeError, match=r"feature 'x' expected shape \(2,\), float64, got \(2,\), int8"):
        decode_one(Spec("bytes", (2,), encoding="tensor_proto", dtype="float64"), tensor(np.zeros(2, np.int8)))


def test_bytes_that_are_no_tensor_raise_with_the_name() -> None:
    with pytest.raises(CodecError, match="feature 'x' .*tensor"):
        decode_one(Spec("bytes", (2,), encoding="tensor_proto", dtype="float64"), texts(b"\xff"))


def test_raw_bytes_become_an_array() -> None:
    spec = Spec("bytes", (2,), encoding="raw", dtype="uint16")
    column, rows = decode_one(spec, texts(b"\1\0\2\0"), texts(b"\0\1\0\2"))
    assert column.tolist() == [[1, 2], [256, 512]]
    assert plain(rows[0]) == {"x": [1, 2]}


def test_raw_bytes_of_one_unknown_size_find_it() -> None:
    _, rows = decode_one(Spec("bytes", (None, 2), encoding="raw", dtype="uint8"), texts(b"\1\2\3\4"), texts(b""))
    assert plain(rows) == [{"x": [[1, 2], [3, 4]]}, {"x": []}]


@pytest.mark.parametrize(("shape", "stored"), [((2,), b"abc"), ((None,), b"abc"), ((None, 3), b"abcd"), ((2,), b"")])
def test_raw_bytes_of_another_size_raise(shape: Any, stored: bytes) -> None:
    with pytest.raises(ShapeError, match="feature 'x' expected .*, got [0-9]"):
        decode_one(Spec("bytes", shape, encoding="raw", dtype="uint16"), texts(stored))


def test_deflated_bytes_become_an_array() -> None:
    spec = Spec("bytes", (2,), encoding="zlib", dtype="uint16")
    assert plain(decode_one(spec, texts(zlib.compress(b"\1\0\2\0")))[1]) == [{"x": [1, 2]}]


@pytest.mark.parametrize("stored", [b"", b"x", b"xyz", zlib.compress(b"\1\0\2\0")[:-6]])
def test_bytes_that_do_not_inflate_raise_with_the_name(stored: bytes) -> None:
    with pytest.raises((CodecError, ShapeError), match="feature 'x'"):
        decode_one(Spec("bytes", (2,), encoding="zlib", dtype="uint16"), texts(stored))


# --- feature lists ------------------------------------------------------------------------------------


def test_scalar_frames_are_one_array_a_row() -> None:
    column, rows = decode_lists(Spec("int64"), {b"f": [ints(1), ints(2)]}, {b"f": []})
    assert isinstance(column, Ragged)
    assert column.row_splits.tolist() == [0, 2, 2]
    assert plain(rows) == [{"f": [1, 2]}, {"f": []}]


def test_fixed_frames_are_stacked() -> None:
    _, rows = decode_lists(Spec("int64", (2,)), {b"f": [ints(1, 2), ints(3, 4)]}, {b"f": []})
    assert plain(rows) == [{"f": [[1, 2], [3, 4]]}, {"f": []}]
    assert rows[1]["f"].shape == (0, 2)


def test_ragged_frames_are_lists_of_arrays() -> None:
    column, rows = decode_lists(Spec("int64", (None,)), {b"f": [ints(1, 2), EMPTY]}, {b"f": []}, {b"f": [ints(3)]})
    assert isinstance(column.values, Ragged)
    assert plain(rows) == [{"f": [[1, 2], []]}, {"f": []}, {"f": [[3]]}]


@pytest.mark.parametrize(
    ("shape", "wanted"), [((), [b"a", b"b"]), ((1,), [[b"a"], [b"b"]]), ((None,), [[b"a"], [b"b"]])]
)
def test_bytes_frames_follow_their_shape(shape: Any, wanted: list[Any]) -> None:
    _, rows = decode_lists(Spec("bytes", shape), {b"f": [texts(b"a"), texts(b"b")]}, {b"f": []})
    assert rows == [{"f": wanted}, {"f": []}]


def test_tensor_frames_are_decoded() -> None:
    spec = Spec("bytes", (2,), encoding="tensor_proto", dtype="uint8")
    frame = tensor(np.array([1, 2], np.uint8))
    _, rows = decode_lists(spec, {b"f": [frame, frame]}, {b"f": []})
    assert plain(rows) == [{"f": [[1, 2], [1, 2]]}, {"f": []}]


def test_optional_list_keeps_absent_and_empty_apart() -> None:
    column, rows = decode_lists(Spec("int64", optional=True), {b"f": [ints(1)]}, {}, {b"f": []})
    assert column.presence.tolist() == [2, 0, 2]
    assert plain(rows) == [{"f": [1]}, {}, {"f": []}]


def test_frame_with_no_kind_is_none_and_not_empty() -> None:
    _, rows = decode_lists(Spec("int64", (None,)), {b"f": [ints(1), None, EMPTY]})
    assert plain(rows) == [{"f": [[1], None, []]}]


def test_name_in_context_and_in_lists_stays_two() -> None:
    schema = Schema({"a": "int64"}, feature_lists={"a": "int64"})
    _, rows = decode(schema, [encode_sequence_example({b"a": ints(1)}, {b"a": [ints(2), ints(3)]})])
    assert plain(rows) == [{"context": {"a": 1}, "feature_lists": {"a": [2, 3]}}]


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["raw", "mixed"])
def test_records_that_are_no_examples_raise(kind: Any) -> None:
    with pytest.raises(CodecError, match=rf"expected records that are Examples, got {kind} records\n.*records\(\)"):
        Decoder(Schema(kind=kind))


def test_feature_of_two_kinds_raises() -> None:
    schema = Schema({"x": Spec("bytes", (None,), seen=("bytes", "int64"))})
    with pytest.raises(SchemaError, match="feature 'x' expected one kind, got bytes and int64 in different records"):
        Decoder(schema)


@pytest.mark.parametrize("name", ["", "\0", "a\0b", "\u00e9"])
def test_any_text_may_be_a_name(name: str) -> None:
    raw = name.encode("utf-8", "surrogateescape")
    batch, rows = decode(Schema({name: "int64"}), [encode_example({raw: ints(3), b"other": ints(1)})])
    assert rows == [{name: 3}]
    assert list(batch) == [name]


def test_builder_is_empty_after_its_batch_was_taken() -> None:
    decoder = Decoder(Schema({"x": "int64"}))
    builder = decoder.new_builder()
    builder.append_record(encode_example({b"x": ints(1)}))
    first = decoder.take_batch(builder)
    builder.append_record(encode_example({b"x": ints(2)}))
    second = decoder.take_batch(builder)
    assert (first["x"].tolist(), second["x"].tolist()) == ([1], [2])
