from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrkit.codec.coerce import Floats
from tfrkit.codec.conform import SchemaCoercer
from tfrkit.codec.tensor_proto import decode_tensor
from tfrkit.errors import FeatureKindError, MissingFeatureError, SchemaError, ShapeError
from tfrkit.features.spec import Spec

INT = Spec("int64")
CLASSES = Spec("int64", logical="class_label", classes=("cat", "dog"))


def conform(value: Any, spec: Spec, *, floats: Floats = "ask") -> Any:
    stored = SchemaCoercer(floats).conform_value("x", value, spec, 5)
    return stored.tolist() if isinstance(stored, np.ndarray) else stored


def conform_row(row: dict[str, Any], **specs: Spec) -> dict[str, Any]:
    return SchemaCoercer().conform(row, specs, 5)


# --- lists --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool", "int32", "uint64", "int64"])
def test_array_of_integers_is_kept_as_a_plain_list_where_requested(dtype: str) -> None:
    assert conform(np.array([1, 0, 1], dtype), Spec("int64", (3,))) == [1, 0, 1]
    assert conform(np.array([[1, 0], [1, 1]], dtype), Spec("int64", (2, 2), dtype=dtype)) == [1, 0, 1, 1]


def test_scalar_may_be_given_as_a_list_of_one() -> None:
    assert conform([5], INT) == [5]
    assert conform(np.array([5]), INT) == [5]
    assert conform(5, INT) == [5]


@pytest.mark.parametrize(
    ("value", "spec"), [([], Spec("int64", (None,))), ([], Spec("float", (None,))), ([], Spec("int64", (0,)))]
)
def test_empty_list_takes_the_kind_of_the_schema(value: list[Any], spec: Spec) -> None:
    assert conform(value, spec) == []


def test_integers_and_booleans_fit_a_float_feature() -> None:
    assert conform(3, Spec("float")) == [3.0]
    assert conform([True, 2], Spec("float", (2,))) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("value", "shape"), [([1, 2], (3,)), ([[1, 2]], (2,)), ([1, 2], ()), (5, (2,)), ([], (1,)), ([[1], [2]], (None, 3))]
)
def test_other_shape_raises_with_wanted_and_found(value: Any, shape: tuple[int | None, ...]) -> None:
    with pytest.raises(ShapeError, match=r"feature 'x' expected shape \(.*\), got \(.*\) - at row 5"):
        conform(value, Spec("int64", shape))


@pytest.mark.parametrize(
    ("value", "kind"), [("a", "int64"), (1.0, "int64"), (b"a", "float"), (1, "bytes"), ([1, 2], "bytes"), (1j, "float")]
)
def test_other_kind_raises(value: Any, kind: Any) -> None:
    with pytest.raises(FeatureKindError, match=f"feature 'x' expected {kind}, got .* - at row 5"):
        conform(value, Spec(kind, (2,) if isinstance(value, list) else ()))


@pytest.mark.parametrize("value", [(1 << 64) - 1, -(1 << 63) - 1, 1 << 70])
def test_integer_beyond_int64_raises(value: int) -> None:
    with pytest.raises(OverflowError, match="feature 'x' expected .*64-bit integer.* - at row 5"):
        conform(value, INT)


def test_float_that_would_round_asks() -> None:
    with pytest.raises(ValueError, match="feature 'x' would round 0.1 .* - at row 5"):
        conform(0.1, Spec("float"))
    assert conform(0.1, Spec("float"), floats="float32") == [float(np.float32(0.1))]


@pytest.mark.parametrize("value", [(1 << 53) + 1, [(1 << 53) + 1], np.int64((1 << 62) + 1)])
def test_integer_that_a_float_list_would_change_asks(value: Any) -> None:
    with pytest.raises((ValueError, OverflowError), match="feature 'x' .* - at row 5"):
        conform(value, Spec("float", (1,) if isinstance(value, list) else ()))


def test_bytes_features_take_text_and_bytes() -> None:
    assert conform("\u00e9", Spec("bytes", logical="text")) == [b"\xc3\xa9"]
    assert conform([b"a", "b"], Spec("bytes", (None,))) == [b"a", b"b"]
    assert conform([b"a", "b"], Spec("bytes", (2,))) == [b"a", b"b"]
    assert conform([], Spec("bytes", (None,))) == []


@pytest.mark.parametrize(("value", "shape"), [([b"a", b"b"], ()), ([], ()), ([b"a"], (2,)), (np.array([], object), ())])
def test_bytes_of_another_count_raise(value: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"feature 'x' expected shape .* - at row 5"):
        conform(value, Spec("bytes", shape))


def test_array_for_a_bytes_feature_raises_instead_of_becoming_a_tensor() -> None:
    with pytest.raises(FeatureKindError, match="feature 'x' expected bytes, got .* - at row 5"):
        conform(np.array([1, 2], np.uint8), Spec("bytes"))


# --- arrays kept as bytes -----------------------------------------------------------------------------


def test_tensor_takes_the_dtype_of_the_schema() -> None:
    spec = Spec("bytes", (2,), encoding="tensor_proto", dtype="float64")
    (stored,) = conform([1, 2], spec)
    back = decode_tensor(stored)
    assert back.dtype == np.float64
    assert back.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([300], "uint8"),
        ([-1], "uint8"),
        ([1.5], "uint8"),
        ([float("nan")], "uint8"),
        ([float("inf")], "int32"),
        ([0.1], "float32"),
        ([1e300], "float32"),
        ([1 + 1j], "float64"),
        ([2], "bool"),
        ([(1 << 53) + 1], "float64"),
        (["1"], "float64"),
        (["x"], "float64"),
        ([b"x"], "int64"),
        ([1], "string"),
    ],
)
def test_values_that_do_not_fit_the_dtype_raise(value: list[Any], dtype: str) -> None:
    with pytest.raises((FeatureKindError, TypeError), match="feature 'x' expected .*, got .* - at row 5"):
        conform(value, Spec("bytes", (1,), encoding="tensor_proto", dtype=dtype))


def test_nan_fits_another_float_dtype() -> None:
    (stored,) = conform([float("nan"), 0.5], Spec("bytes", (2,), encoding="tensor_proto", dtype="float16"))
    assert np.isnan(decode_tensor(stored)[0])


def test_string_tensor_keeps_nuls() -> None:
    (stored,) = conform(["a\0", b"b"], Spec("bytes", (2,), encoding="tensor_proto", dtype="string"))
    assert decode_tensor(stored).tolist() == [b"a\0", b"b"]


@pytest.mark.parametrize(
    ("encoding", "stored"), [("tensor_proto", "080e1204120208022204c03f0080"), ("raw", "c03f0080")]
)
def test_bfloat16_is_written_from_numbers_it_holds(encoding: Any, stored: str) -> None:
    spec = Spec("bytes", (2,), encoding=encoding, dtype="bfloat16")
    assert conform([1.5, -0.0], spec) == [bytes.fromhex(stored)]
    assert conform(np.array([1.5, -0.0]), spec) == [bytes.fromhex(stored)]


@pytest.mark.parametrize("value", [[0.1], [1e39], [257], np.array([1 + 2**-8])])
def test_bfloat16_that_would_round_is_an_error(value: Any) -> None:
    with pytest.raises(FeatureKindError, match="feature 'x' expected numbers that bfloat16 holds, got"):
        conform(value, Spec("bytes", (1,), encoding="tensor_proto", dtype="bfloat16"))


def test_bfloat16_of_text_is_an_error() -> None:
    with pytest.raises(FeatureKindError, match="feature 'x' expected bfloat16"):
        conform(["a"], Spec("bytes", (1,), encoding="tensor_proto", dtype="bfloat16"))


@pytest.mark.parametrize("order", ["<", ">"])
def test_raw_bytes_are_little_endian_and_in_c_order(order: str) -> None:
    array = np.asfortranarray(np.array([[1, 2], [3, 4]], f"{order}u2"))
    assert conform(array, Spec("bytes", (2, 2), encoding="raw", dtype="uint16")) == [bytes([1, 0, 2, 0, 3, 0, 4, 0])]


def test_raw_of_another_shape_raises() -> None:
    with pytest.raises(ShapeError, match=r"feature 'x' expected shape \(2, 2\), got \(3,\) - at row 5"):
        conform([1, 2, 3], Spec("bytes", (2, 2), encoding="raw", dtype="uint8"))


def test_encoding_that_is_only_read_says_so() -> None:
    with pytest.raises(SchemaError, match="feature 'x' expected a list, tensor or raw bytes, got 'zlib'"):
        conform([1, 2], Spec("bytes", (2,), encoding="zlib", dtype="uint8"))


# --- class names --------------------------------------------------------------------------------------


def test_class_may_be_given_by_name_or_id() -> None:
    assert conform("dog", CLASSES) == [1]
    assert conform(0, CLASSES) == [0]
    assert conform(np.str_("cat"), CLASSES) == [0]


def test_list_of_class_names_becomes_ids() -> None:
    assert conform(["dog", "cat"], CLASSES.replace(shape=(None,))) == [1, 0]


def test_class_name_that_does_not_exist_names_the_nearest() -> None:
    with pytest.raises(SchemaError, match="feature 'x' has no class 'dgo', did you mean 'dog' - at row 5"):
        conform("dgo", CLASSES)


@pytest.mark.parametrize("value", [2, -1])
def test_class_id_that_does_not_exist_raises(value: int) -> None:
    with pytest.raises(SchemaError, match=f"feature 'x' expected class ids 0..1, got {value} - at row 5"):
        conform(value, CLASSES)


def test_ignore_value_is_a_class_id() -> None:
    assert conform(255, CLASSES.replace(ignore=255)) == [255]


def test_class_name_of_a_bytes_feature_stays_text() -> None:
    assert conform("dog", Spec("bytes", logical="class_label", classes=("cat", "dog"))) == [b"dog"]


# --- rows ---------------------------------------------------------------------------------------------


def test_row_comes_back_with_every_feature_stored() -> None:
    stored = conform_row({"b": b"x", "a": 1}, a=INT, b=Spec("bytes"))
    assert stored["a"].tolist() == [1]
    assert stored["b"] == [b"x"]


def test_optional_feature_may_be_absent_or_none() -> None:
    assert conform_row({}, a=INT.replace(optional=True)) == {}
    assert conform_row({"a": None}, a=INT.replace(optional=True)) == {"a": None}


def test_wrong_name_raises_with_the_nearest() -> None:
    with pytest.raises(MissingFeatureError, match="no feature 'lable', did you mean 'label' .* - at row 5"):
        conform_row({"lable": 1}, label=INT)


def test_missing_feature_raises() -> None:
    with pytest.raises(MissingFeatureError, match="feature 'label' expected in every row, got none - at row 5"):
        conform_row({}, label=INT)


def test_none_for_a_required_feature_raises() -> None:
    with pytest.raises(MissingFeatureError, match="feature 'label' expected a value, got None - at row 5"):
        conform_row({"label": None}, label=INT)
