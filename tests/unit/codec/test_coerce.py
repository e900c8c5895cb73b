from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import pathlib
from typing import Any

import numpy as np
import pytest

from tfrkit.codec.coerce import Coercer, Floats
from tfrkit.codec.tensor_proto import decode_tensor
from tfrkit.errors import FeatureKindError, ShapeError


class Colour(enum.IntEnum):
    RED = 3


def coerce(value: object, *, expected: str | None = None, floats: Floats = "ask") -> tuple[str, Any]:
    """The kind, and the values as a plain list."""
    kind, values = Coercer(floats)("x", value, expected)
    if kind == "int64":
        assert values.dtype == "<i8"
    if kind == "float":
        assert values.dtype == "<f4"
    return kind, values if kind == "bytes" else values.tolist()


def coerce_tensor(value: object, *, floats: Floats = "ask") -> np.ndarray:
    kind, values = coerce(value, floats=floats)
    assert kind == "bytes"
    assert len(values) == 1
    return decode_tensor(values[0])


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (0, [0]),
        (-(1 << 63), [-(1 << 63)]),
        ((1 << 63) - 1, [(1 << 63) - 1]),
        (True, [1]),
        (np.bool_(True), [1]),
        (np.int8(-3), [-3]),
        (np.uint8(200), [200]),
        (np.uint64(7), [7]),
        (Colour.RED, [3]),
        (np.array(5), [5]),
        ([1, 2], [1, 2]),
        ((1,), [1]),
        (range(3), [0, 1, 2]),
        ([True, False], [1, 0]),
        ([True, 2], [1, 2]),
        ([np.uint8(1), np.int64(-1)], [1, -1]),
        (np.arange(3), [0, 1, 2]),
        (np.arange(10)[::3], [0, 3, 6, 9]),
        (np.arange(3, dtype=">i8"), [0, 1, 2]),
        (np.array([], np.int64), []),
    ],
)
def test_integers_become_an_int64_list(value: object, stored: list[int]) -> None:
    assert coerce(value) == ("int64", stored)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (0.5, [0.5]),
        (-0.0, [-0.0]),
        (float("inf"), [float("inf")]),
        (np.float16(1.5), [1.5]),
        (np.float32(0.1), [float(np.float32(0.1))]),
        (np.longdouble(1.5), [1.5]),
        ([1, 0.5], [1.0, 0.5]),
        ([np.float32(0.1)], [float(np.float32(0.1))]),
        (np.array([0.5, 2], np.float32), [0.5, 2.0]),
        (np.array([], np.float32), []),
    ],
)
def test_floats_that_float32_holds_become_a_float_list(value: object, stored: list[float]) -> None:
    kind, values = coerce(value)
    assert kind == "float"
    assert repr(values) == repr(stored)


def test_nan_is_no_rounding() -> None:
    kind, values = coerce([float("nan"), 1.0])
    assert kind == "float"
    assert np.isnan(values[0])


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (b"", [b""]),
        (b"a\0", [b"a\0"]),
        ("\u00e9", [b"\xc3\xa9"]),
        (np.str_("a"), [b"a"]),
        (np.bytes_(b"a\0b"), [b"a\0b"]),
        (bytearray(b"x"), [b"x"]),
        (memoryview(b"xyz")[1:], [b"yz"]),
        ([b"a\0", "b", bytearray(b"c"), memoryview(b"d")], [b"a\0", b"b", b"c", b"d"]),
        ((b"a",), [b"a"]),
        (np.array([b"ab", b"c"]), [b"ab", b"c"]),
        (np.array(["\u00e9"]), [b"\xc3\xa9"]),
        (np.array([b"a\0", "b"], object), [b"a\0", b"b"]),
        (np.array([], object), []),
        (np.array([], "S1"), []),
    ],
)
def test_bytes_and_text_become_a_bytes_list(value: object, stored: list[bytes]) -> None:
    assert coerce(value) == ("bytes", stored)


@pytest.mark.parametrize(
    "value",
    [
        np.array([1, 2], np.uint8),
        np.array([1.5], np.float16),
        np.array([0.1]),
        np.array([True, False]),
        np.array([(1 << 64) - 1], np.uint64),
        np.array([1, 2], np.int32),
        np.array([1 + 2j], np.complex64),
        np.arange(6).reshape(2, 3),
        np.zeros((2, 2), np.float32),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.empty((0, 3)),
        np.array([]),
        np.array([[b"a\0", b"b"]], object),
    ],
)
def test_what_three_lists_cannot_hold_becomes_a_tensor(value: np.ndarray) -> None:
    back = coerce_tensor(value)
    assert back.dtype == value.dtype
    assert back.shape == value.shape
    assert back.tolist() == value.tolist()


def test_complex_number_becomes_a_scalar_tensor() -> None:
    back = coerce_tensor(1 + 2j)
    assert back.shape == ()
    assert back == 1 + 2j


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([[1, 2], [3, 4]], "int64"),
        ([[0.1, 2.0]], "float64"),
        ([[True]], "bool"),
        ([[1j]], "complex128"),
        ([1j, 2], "complex128"),
    ],
)
def test_nested_list_becomes_a_tensor(value: list[Any], dtype: str) -> None:
    back = coerce_tensor(value)
    assert back.dtype == dtype
    assert back.tolist() == value


@pytest.mark.parametrize("value", [[[b"a\0", b"b"]], [["a\0", "b"]], [[b"\0"], [b""]]])
def test_nested_strings_keep_their_nuls(value: list[Any]) -> None:
    wanted = [[item.encode() if isinstance(item, str) else item for item in row] for row in value]
    assert coerce_tensor(value).tolist() == wanted


# --- what must be asked for ---------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.1, [0.5, 0.1], np.float64(0.1), (1 / 3,), np.array(0.1)])
def test_float_that_would_round_raises_unless_chosen(value: object) -> None:
    with pytest.raises(ValueError, match=r"(?s)feature 'x' would round 0\.\d+ to 0\.\d+ .* row 0\n.*floats="):
        coerce(value)
    kind, values = coerce(value, floats="float32")
    assert kind == "float"
    assert values[-1] == float(np.float32(np.asarray(value).reshape(-1)[-1]))
    back = coerce_tensor(value, floats="float64")
    assert back.dtype == np.float64
    assert back.tolist() == np.asarray(value).tolist()


@pytest.mark.parametrize("floats", ["ask", "float32"])
@pytest.mark.parametrize("value", [1e300, -1e39, [1.0, 1e39]])
def test_float_beyond_float32_raises_even_when_rounding_is_chosen(value: object, floats: Floats) -> None:
    with pytest.raises(
        OverflowError,
        match=r'(?s)feature \'x\' expected a number that fits in float32, got -?1e\+\d+ .*floats="float64"',
    ):
        coerce(value, floats=floats)
    assert coerce_tensor(value, floats="float64").tolist() == value


def test_float64_array_follows_the_choice() -> None:
    array = np.array([0.1, 0.5])
    assert coerce_tensor(array).tolist() == [0.1, 0.5]
    assert coerce_tensor(array, floats="float64").tolist() == [0.1, 0.5]
    assert coerce(array, floats="float32") == ("float", [float(np.float32(0.1)), 0.5])


@pytest.mark.parametrize("value", [[(1 << 53) + 1, 0.5], [[(1 << 53) + 1, 0.5]], [1 << 63, -1], [[(1 << 63) + 1, -1]]])
def test_integer_that_a_float_would_change_raises(value: list[Any]) -> None:
    with pytest.raises((ValueError, OverflowError), match="feature 'x'"):
        coerce(value)


@pytest.mark.parametrize("value", [(1 << 53) + 1, (1 << 24) + 1, [1, (1 << 53) + 1], (1 << 62) + 1])
def test_integer_among_floats_that_would_change_raises(value: object) -> None:
    with pytest.raises((ValueError, OverflowError), match="feature 'x'"):
        coerce(value, expected="float")


def test_integer_among_floats_becomes_a_float() -> None:
    assert coerce(3, expected="float") == ("float", [3.0])
    assert coerce([1, 1 << 24], expected="float") == ("float", [1.0, float(1 << 24)])


def test_integer_among_floats_rounds_where_that_is_chosen() -> None:
    assert coerce((1 << 24) + 1, expected="float", floats="float32") == ("float", [float(1 << 24)])


@pytest.mark.parametrize(("expected", "empty"), [("int64", []), ("float", []), ("bytes", [])])
def test_empty_list_takes_the_kind_of_rows_before(expected: str, empty: list[Any]) -> None:
    assert coerce([], expected=expected) == (expected, empty)
    assert coerce((), expected=expected) == (expected, empty)


@pytest.mark.parametrize("value", [[], (), [[]], [[], []]])
def test_empty_list_of_no_known_kind_raises(value: object) -> None:
    with pytest.raises(
        ValueError, match=r"(?s)feature 'x' expected a typed empty list, got [\[(].*[\])] - at row 0\n  pass np"
    ):
        coerce(value)


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1 << 63, -(1 << 63) - 1, 1 << 70, np.uint64((1 << 64) - 1), [1 << 63], [-(1 << 70)]])
def test_integer_beyond_int64_raises_overflow(value: object) -> None:
    with pytest.raises(OverflowError, match="feature 'x' expected .*64-bit integer.* - at row 0"):
        coerce(value)


@pytest.mark.parametrize(
    "value",
    [
        {1},
        object(),
        (item for item in [1]),
        decimal.Decimal("1.5"),
        fractions.Fraction(1, 2),
        pathlib.Path("x"),
        datetime.date(2020, 1, 1),
        np.datetime64("2020-01-01"),
        np.array(["2020-01-01"], "M8[D]"),
        np.timedelta64(3, "s"),
        np.zeros(2, "i4,i4"),
        np.array([1.5], np.longdouble),
        np.array([b"a", None], object),
        np.array([1, b"a"], object),
        [None],
        [b"a", None],
        {"y": 1},
    ],
)
def test_value_of_another_type_raises(value: object) -> None:
    with pytest.raises(TypeError, match="feature 'x' expected .* - at row 0"):
        coerce(value)


@pytest.mark.parametrize(
    "value", [[1, b"a"], [b"a", 1], ["a", 1], [1.5, "a"], [[1, "a"]], [[1, b"a"]], [1, None], [[True, "a"]]]
)
def test_list_of_mixed_types_raises(value: list[Any]) -> None:
    with pytest.raises(TypeError, match="feature 'x' expected .* - at row 0"):
        coerce(value)


def test_masked_array_raises_where_a_value_is_masked() -> None:
    with pytest.raises((TypeError, ValueError), match="feature 'x' .*mask"):
        coerce(np.ma.array([1, 2], mask=[False, True]))


@pytest.mark.parametrize("value", ["\udc80", ["a", "\ud800"], [["\udc80"]], np.array(["\udc80"])])
def test_text_that_utf8_does_not_hold_raises(value: object) -> None:
    with pytest.raises(ValueError, match="feature 'x' expected text that UTF-8 can encode, got .* - at row 0"):
        coerce(value)


def test_ragged_nested_list_raises() -> None:
    with pytest.raises(ShapeError, match="feature 'x' expected rows of equal length, got a nested list that is ragged"):
        coerce([[1], [1, 2]])


@pytest.mark.parametrize(
    ("value", "expected", "found"),
    [(b"a", "int64", "bytes"), (1, "bytes", "int64"), (1.5, "int64", "float"), ("a", "float", "bytes")],
)
def test_other_kind_than_rows_before_raises(value: object, expected: str, found: str) -> None:
    with pytest.raises(
        FeatureKindError, match=f"feature 'x' expected {expected} as in rows before, got {found} - at row 0"
    ):
        coerce(value, expected=expected)


def test_choice_of_floats_that_does_not_exist_raises() -> None:
    with pytest.raises(ValueError, match="floats expected 'ask', 'float32' or 'float64', got 'double'"):
        Coercer("double")  # type: ignore[arg-type]


def test_long_names_and_values_are_shortened_in_messages() -> None:
    with pytest.raises(TypeError, match="^.{1,300}$"):
        Coercer()("n" * 5000, object(), None)
