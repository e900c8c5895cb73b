"""Columns of every form as Arrow reads them, with a consumer of our own; real libraries follow in the interop tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrkit import _native
from tfrkit.codec.columns import BytesColumn, Ragged
from tfrkit.codec.tensor_proto import encode_tensor
from tfrkit.errors import SchemaError, ShapeError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.feeds.arrow import ArrowStream, to_arrow, with_own_errors
from tfrkit.testing.arrow_consumer import open_stream, read_next, read_rows


def stream_of(spec: Spec, *columns: Any) -> ArrowStream:
    schema = Schema(feature_lists={"x": spec}) if spec.is_list else Schema({"x": spec})
    batches = [{"context": {}, "feature_lists": {"x": column}} if spec.is_list else {"x": column} for column in columns]
    return to_arrow(lambda: iter(batches), schema)


def read_column(spec: Spec, *columns: Any) -> list[Any]:
    return [(row["feature_lists"] if spec.is_list else row)["x"] for row in read_rows(stream_of(spec, *columns))]


def splits(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def presence(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.uint8)


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "bool"])
def test_values_integers_of_every_width_keep_their_ends(dtype: str) -> None:
    ends = [0, 1] if dtype == "bool" else [0, np.iinfo(dtype).min, np.iinfo(dtype).max]
    spec = Spec("bytes", encoding="raw", dtype=dtype)
    assert read_column(spec, np.array(ends, dtype)) == ends


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_values_floats_of_every_width_keep_their_bits(dtype: str) -> None:
    values = np.array([0.5, -0.0, np.inf, np.nan], dtype)
    read = np.array(read_column(Spec("bytes", encoding="raw", dtype=dtype), values), dtype)
    assert read.tobytes() == values.tobytes()


INTS = np.arange(6)
WORDS = BytesColumn.from_values([b"a", b"", b"\xff\0", b"bc", b"d", b"e"])
TEXT = BytesColumn.from_values(["é", "", "鍵"])
GAPS = presence(2, 0, 1)


@pytest.mark.parametrize(
    ("spec", "column", "values"),
    [
        pytest.param(Spec("int64"), INTS, [0, 1, 2, 3, 4, 5], id="int"),
        pytest.param(Spec("int64"), INTS[1:4], [1, 2, 3], id="slice"),
        pytest.param(Spec("int64"), INTS[::2], [0, 2, 4], id="strides"),
        pytest.param(Spec("int64"), INTS.astype(">i8"), [0, 1, 2, 3, 4, 5], id="other-byte-order"),
        pytest.param(Spec("int64"), INTS.astype(np.int32), [0, 1, 2, 3, 4, 5], id="narrower"),
        pytest.param(Spec("int64"), INTS[:0], [], id="no-rows"),
        pytest.param(Spec("bytes"), WORDS, [b"a", b"", b"\xff\0", b"bc", b"d", b"e"], id="bytes"),
        pytest.param(Spec("bytes"), WORDS[2:4], [b"\xff\0", b"bc"], id="bytes-slice"),
        pytest.param(Spec("bytes"), WORDS[2:2], [], id="bytes-no-rows"),
        pytest.param(Spec("bytes", logical="text"), TEXT, ["é", "", "鍵"], id="text"),
        pytest.param(Spec("bytes", logical="text"), TEXT[1:], ["", "鍵"], id="text-slice"),
        pytest.param(Spec("float", (2,)), np.ones((2, 2), np.float32), [[1, 1], [1, 1]], id="fixed"),
        pytest.param(Spec("float", (0,)), np.ones((2, 0), np.float32), [[], []], id="fixed-zero"),
        pytest.param(Spec("int64", (1, 3)), INTS.reshape(2, 1, 3), [[[0, 1, 2]], [[3, 4, 5]]], id="shape"),
        pytest.param(Spec("int64", (None,)), Ragged(INTS, splits(0, 2, 2, 6)), [[0, 1], [], [2, 3, 4, 5]], id="ragged"),
        pytest.param(Spec("int64", (None,)), Ragged(INTS, splits(0, 2, 2, 6))[1:], [[], [2, 3, 4, 5]], id="rows"),
        pytest.param(Spec("int64", (None,)), Ragged(INTS, splits(0, 2, 2, 6))[3:], [], id="ragged-no-rows"),
        pytest.param(Spec("int64", (None,)), INTS.reshape(2, 3), [[0, 1, 2], [3, 4, 5]], id="padded"),
        pytest.param(Spec("int64", (None,)), Ragged(INTS, splits(0, 2, 2, 2), GAPS), [[0, 1], None, None], id="gaps"),
        pytest.param(
            Spec("int64", (None, 2)),
            Ragged(INTS.reshape(3, 2), splits(0, 1, 3)),
            [[[0, 1]], [[2, 3], [4, 5]]],
            id="ragged-of-pairs",
        ),
        pytest.param(
            Spec("bytes", (None,), logical="text"),
            Ragged(TEXT, splits(0, 1, 1, 3)),
            [["é"], [], ["", "鍵"]],
            id="texts",
        ),
        pytest.param(
            Spec("bytes", (2,)), Ragged(WORDS[2:], splits(0, 2, 4)), [[b"\xff\0", b"bc"], [b"d", b"e"]], id="b2"
        ),
        pytest.param(
            Spec("bytes", (3, 1)),
            Ragged(WORDS, splits(0, 3, 6)),
            [[[b"a"], [b""], [b"\xff\0"]], [[b"bc"], [b"d"], [b"e"]]],
            id="bytes-shape",
        ),
        pytest.param(
            Spec("bytes", (None, 2)),
            Ragged(WORDS, splits(0, 2, 6))[1:],
            [[[b"\xff\0", b"bc"], [b"d", b"e"]]],
            id="bytes-pairs",
        ),
        pytest.param(
            Spec("int64", optional=True), Ragged(INTS[:1], splits(0, 1, 1, 1), GAPS), [0, None, None], id="opt"
        ),
        pytest.param(Spec("int64", optional=True), Ragged(INTS[:2], splits(0, 1, 2)), [0, 1], id="opt-all"),
        pytest.param(Spec("int64", optional=True), Ragged(INTS[:0], splits(0, 0), GAPS[1:2]), [None], id="opt-none"),
        pytest.param(
            Spec("bytes", optional=True), Ragged(WORDS, splits(3, 4, 4, 4), GAPS), [b"bc", None, None], id="opt-bytes"
        ),
        pytest.param(
            Spec("int64", dtype="bool", optional=True),
            Ragged(np.array([True]), splits(0, 1, 1, 1), GAPS),
            [True, None, None],
            id="opt-bool",
        ),
        pytest.param(
            Spec("int64", (2, 1), optional=True),
            Ragged(INTS[4:].reshape(2, 1), splits(0, 2, 2, 2), GAPS),
            [[[4], [5]], None, None],
            id="opt-shape",
        ),
        pytest.param(
            Spec("bytes", (2,), optional=True),
            Ragged(WORDS, splits(0, 0, 2), presence(1, 2)),
            [None, [b"a", b""]],
            id="opt-two-bytes",
        ),
        pytest.param(
            Spec("bytes", (None,), optional=True, encoding="tensor_proto", dtype="int32"),
            Ragged([np.array([7, 8], np.int32)], splits(0, 0, 1), presence(0, 2)),
            [None, [7, 8]],
            id="opt-tensor",
        ),
        pytest.param(
            Spec("bytes", (1, 2), optional=True, encoding="tensor_proto", dtype="int32"),
            Ragged([np.array([[7, 8]], np.int32)], splits(0, 0, 1), presence(0, 2)),
            [None, [[7, 8]]],
            id="opt-tensor-shape",
        ),
        pytest.param(
            Spec("bytes", (None, 2), encoding="tensor_proto", dtype="uint8"),
            [np.ones((1, 2), np.uint8), np.zeros((0, 2), np.uint8), np.full((2, 2), 3, np.uint8)],
            [[[1, 1]], [], [[3, 3], [3, 3]]],
            id="tensors",
        ),
        pytest.param(
            Spec("bytes", (None, None, 2), encoding="tensor_proto", dtype="uint8"),
            [np.arange(4, dtype=np.uint8).reshape(1, 2, 2), np.arange(4, dtype=np.uint8).reshape(2, 1, 2)],
            [[[[0, 1], [2, 3]]], [[[0, 1]], [[2, 3]]]],
            id="images-of-any-size",
        ),
        pytest.param(
            Spec("bytes", (2,), encoding="tensor_proto", dtype="string"),
            np.array([[b"a", b"b"], [b"", b"c"]], object),
            [[b"a", b"b"], [b"", b"c"]],
            id="strings",
        ),
        pytest.param(
            Spec("bytes", (None,), encoding="tensor_proto", dtype="string"),
            [np.array([b"a"], object), np.empty(0, object)],
            [[b"a"], []],
            id="strings-ragged",
        ),
        pytest.param(
            Spec("bytes", (2,), encoding="raw", dtype="complex64"),
            np.array([[1, 2j]], np.complex64),
            [np.array([1, 2j], np.complex64).tobytes()],
            id="complex-stays-bytes",
        ),
        pytest.param(
            Spec("bytes", (1,), encoding="tensor_proto", dtype="bfloat16"),
            np.array([[1.5]], np.float32),
            [[1.5]],
            id="bfloat16-is-float32",
        ),
        pytest.param(
            Spec("bytes", (1,), encoding="tensor_proto", dtype="complex64"), WORDS[:1], [b"a"], id="bytes-stay-bytes"
        ),
        pytest.param(
            Spec("bytes", (None,), optional=True, seen=()),
            Ragged(BytesColumn.from_values([]), splits(0, 0, 0), presence(1, 0)),
            [None, None],
            id="never-set",
        ),
        pytest.param(Spec("int64", is_list=True), Ragged(INTS, splits(0, 2, 6)), [[0, 1], [2, 3, 4, 5]], id="frames"),
        pytest.param(
            Spec("int64", (None,), is_list=True),
            Ragged(Ragged(INTS, splits(0, 2, 2, 6), presence(2, 1, 2)), splits(0, 2, 2, 3), presence(2, 0, 2)),
            [[[0, 1], None], None, [[2, 3, 4, 5]]],
            id="frames-with-gaps",
        ),
        pytest.param(
            Spec("bytes", (2,), is_list=True),
            Ragged(Ragged(WORDS[:4], splits(0, 2, 4)), splits(0, 0, 2)),
            [[], [[b"a", b""], [b"\xff\0", b"bc"]]],
            id="frames-of-bytes",
        ),
        pytest.param(
            Spec("bytes", (None,), is_list=True, seen=()),
            Ragged(Ragged(BytesColumn.from_values([]), splits(0, 0, 0), presence(1, 1)), splits(0, 2)),
            [[None, None]],
            id="frames-never-set",
        ),
        pytest.param(
            Spec("bytes", (None,), is_list=True, seen=()),
            Ragged(Ragged(BytesColumn.from_values([]), splits(0)), splits(0, 0)),
            [[]],
            id="no-frames-ever",
        ),
        pytest.param(
            Spec("bytes", (), is_list=True, encoding="tensor_proto", dtype="complex64"),
            Ragged([np.array(1, np.complex64)], splits(0, 1, 1)),
            [[bytes.fromhex("0808120022080000803f00000000")], []],
            id="frames-of-complex-tensors",
        ),
        pytest.param(
            Spec("bytes", (None,), encoding="tensor_proto"),
            [np.array([7], np.int64)],
            [encode_tensor(np.array([7], np.int64))],
            id="tensors-of-any-dtype",
        ),
    ],
)
def test_values_columns_read_back(spec: Spec, column: Any, values: list[Any]) -> None:
    assert read_column(spec, column) == values
    assert read_column(spec, column, column) == values * 2


def test_values_numbers_and_bytes_are_not_copied() -> None:
    numbers, words = np.arange(1000), BytesColumn.from_values([b"abc"] * 1000)
    ragged = Ragged(numbers, splits(*range(1001)))
    schema = Schema({"n": "int64", "m": ("int64", (10,)), "w": "bytes", "r": ("int64", (None,))})
    batch = {"n": numbers[:100], "m": numbers.reshape(100, 10), "w": words[:100], "r": ragged[:100]}
    capsule = to_arrow(lambda: iter([batch]), schema).__arrow_c_stream__()
    array = read_next(open_stream(capsule))
    assert array is not None
    n, m, w, r = (array.children[i].contents for i in range(4))
    address = numbers.ctypes.data
    assert [n.buffers[1], m.children[0].contents.buffers[1], r.children[0].contents.buffers[1]] == [address] * 3
    assert [w.buffers[1], w.buffers[2]] == [words.offsets.ctypes.data, words.data.ctypes.data]
    assert r.buffers[1] == ragged.row_splits.ctypes.data
    array.release(array)


def test_values_sequence_examples_are_two_structs() -> None:
    schema = Schema({"x": "int64"}, feature_lists={"x": ("float", ())})
    batch = {"context": {"x": INTS[:2]}, "feature_lists": {"x": Ragged(np.ones(3, np.float32), splits(0, 1, 3))}}
    assert read_rows(to_arrow(lambda: iter([batch]), schema)) == [
        {"context": {"x": 0}, "feature_lists": {"x": [1.0]}},
        {"context": {"x": 1}, "feature_lists": {"x": [1.0, 1.0]}},
    ]


def test_values_of_zero_batches_have_no_rows() -> None:
    assert read_rows(to_arrow(lambda: iter(()), Schema({"x": "int64"}))) == []
    assert read_rows(to_arrow(lambda: iter(()), Schema())) == []


# -- what does not fit -------------------------------------------------------------------------------------------------


def consume(stream: ArrowStream) -> None:
    """Read everything, with errors as they were raised."""
    with with_own_errors(stream) as own:
        read_rows(own)


BAD_TEXT = BytesColumn.from_values([b"ok", b"\xc3", b"\xa9"])


@pytest.mark.parametrize(
    ("spec", "column", "error", "message"),
    [
        pytest.param(
            Spec("bytes", logical="text"),
            BAD_TEXT,
            SchemaError,
            "feature 'x' expected text, got bytes that are not UTF-8 - at row 1\n  declare it as bytes",
            id="text",
        ),
        pytest.param(
            Spec("bytes", (None,), logical="text"),
            Ragged(BAD_TEXT, splits(0, 0, 1, 3)),
            SchemaError,
            "feature 'x' expected text, got bytes that are not UTF-8 - at row 2",
            id="text-in-a-list",
        ),
        pytest.param(
            Spec("bytes", (3,), logical="text"),
            Ragged(BytesColumn.from_values([b"a"] * 3 + [b"b", b"c", b"\xff"]), splits(0, 3, 6)),
            SchemaError,
            "feature 'x' expected text, got bytes that are not UTF-8 - at row 1",
            id="text-in-a-fixed-list",
        ),
        pytest.param(
            Spec("int64", optional=True),
            Ragged(INTS, splits(0, 1, 3)),
            ShapeError,
            "feature 'x' expected 1 value, got 2 - at row 1",
            id="two-values",
        ),
        pytest.param(
            Spec("int64", optional=True),
            Ragged(INTS, splits(0, 0), presence(2)),
            ShapeError,
            "feature 'x' expected 1 value, got 0 - at row 0",
            id="empty-is-not-absent",
        ),
        pytest.param(
            Spec("int64", (3,), optional=True),
            Ragged(INTS, splits(0, 3, 5)),
            ShapeError,
            "feature 'x' expected 3 values, got 2 - at row 1",
            id="too-short",
        ),
        pytest.param(
            Spec("bytes", (None, 2)),
            Ragged(WORDS, splits(0, 2, 5)),
            ShapeError,
            "feature 'x' expected a multiple of 2 values, got 3 - at row 1",
            id="odd-number",
        ),
        pytest.param(
            Spec("bytes", (None, None), encoding="tensor_proto", dtype="uint8"),
            [np.zeros((1, 1), np.uint8), np.zeros(2, np.uint8)],
            ShapeError,
            r"feature 'x' expected an array of rank 2, got shape \(2,\) - at row 1",
            id="rank",
        ),
        pytest.param(
            Spec("bytes", (None,), encoding="tensor_proto", dtype="uint8"),
            [np.zeros(2, np.float32)],
            SchemaError,
            "feature 'x' expected an array of uint8, got float32 - at row 0",
            id="dtype-of-an-array",
        ),
        pytest.param(
            Spec("bytes", (None, 2), encoding="tensor_proto", dtype="uint8"),
            [np.zeros((1, 2), np.uint8), np.zeros((1, 3), np.uint8)],
            ShapeError,
            "feature 'x' expected 2 values, got 3 - at row 1",
            id="size-of-an-array",
        ),
        pytest.param(
            Spec("int64"), np.ones(2, np.float32), SchemaError, "feature 'x' expected int64, got float32", id="dtype"
        ),
        pytest.param(
            Spec("int64", (2,)),
            np.ones((2, 3), np.int64),
            ShapeError,
            r"feature 'x' expected a column of lists of 2, got an array of int64, shape \(2, 3\)",
            id="shape",
        ),
        pytest.param(
            Spec("int64", (None,)), INTS, SchemaError, "feature 'x' expected a column of lists, got an array", id="flat"
        ),
        pytest.param(
            Spec("int64"), WORDS, SchemaError, "feature 'x' expected a column of int64, got a BytesColumn", id="bytes"
        ),
        pytest.param(
            Spec("bytes"), INTS, SchemaError, "feature 'x' expected a column of bytes, got an array of int64", id="ints"
        ),
        pytest.param(
            Spec("bytes"),
            np.array([b"a", 1], object),
            SchemaError,
            "feature 'x' expected bytes, got int - at row 1",
            id="objects",
        ),
        pytest.param(
            Spec("bytes", (None,), optional=True, seen=()),
            Ragged(WORDS, splits(0, 0, 1), presence(1, 2)),
            SchemaError,
            "feature 'x' expected no value in any record, got one - at row 1",
            id="set-after-all",
        ),
    ],
)
def test_misfit_column_raises(spec: Spec, column: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        consume(stream_of(spec, column))


def test_misfit_row_is_counted_from_the_start_of_the_stream() -> None:
    good = BytesColumn.from_values([b"a"] * 10)
    with pytest.raises(SchemaError, match="at row 11"):
        consume(stream_of(Spec("bytes", logical="text"), good, BAD_TEXT))


def test_misfit_columns_are_those_of_the_schema() -> None:
    schema = Schema({"a": "int64", "b": "int64"})
    with pytest.raises(SchemaError, match="feature 'b' expected in every batch, got none - at row 0"):
        consume(to_arrow(lambda: iter([{"a": INTS}]), schema))
    with pytest.raises(SchemaError, match="feature 'c' of a batch is not in the schema"):
        consume(to_arrow(lambda: iter([{"a": INTS, "b": INTS, "c": INTS}]), schema))
    with pytest.raises(ShapeError, match="columns of a batch differ in length, 6 of a, 5 of b"):
        consume(to_arrow(lambda: iter([{"a": INTS, "b": INTS[1:]}]), schema))


def test_misfit_rows_without_columns_raise() -> None:
    with pytest.raises(SchemaError, match="no record has a feature, and Arrow has no rows without columns"):
        consume(to_arrow(lambda: iter([{}]), Schema()))


@pytest.mark.parametrize(
    "row_splits", [splits(0, 4, 2), splits(0, 7), splits(-1, 2), splits(3, 2)], ids=["fall", "end", "start", "turned"]
)
def test_misfit_splits_that_point_outside_are_refused(row_splits: Any) -> None:
    with pytest.raises(OSError, match="offsets does not fit, column 'x'"):
        read_rows(stream_of(Spec("int64", (None,)), Ragged(INTS, row_splits)))


# A struct of one column whose nodes a consumer would read past the end.
def describe(form: bytes, *children: Any) -> Any:
    return b"+s", b"", b"", False, ((form, b"x", b"", True, children),)


ITEM = (b"l", b"item", b"", True, ())


@pytest.mark.parametrize(
    ("field", "node", "message"),
    [
        (describe(b"l"), (7, 0, (None, INTS), ()), "size of a buffer"),
        (describe(b"l"), (-1, 0, (None, INTS), ()), "length"),
        (describe(b"l"), (6, 7, (np.ones(1, np.uint8), INTS), ()), "length"),
        (describe(b"l"), (6, 1, (None, INTS), ()), "number of nulls"),
        (describe(b"l"), (6, 1, (np.ones(0, np.uint8), INTS), ()), "size of a buffer"),
        (describe(b"l"), (6, 0, (None,), ()), "number of buffers"),
        (describe(b"l"), (5, 0, (None, INTS.view(np.uint8)[1:41]), ()), "alignment of a buffer"),
        (describe(b"b"), (9, 0, (None, np.ones(1, np.uint8)), ()), "size of a buffer"),
        (describe(b"n"), (6, 6, (None,), ()), "number of buffers"),
        (describe(b"Z"), (6, 0, (None, INTS, b"abc"), ()), "size of a buffer"),
        (describe(b"Z"), (5, 0, (None, INTS, b"abcd"), ()), "offsets"),
        (describe(b"+L", ITEM), (5, 0, (None, INTS), ((4, 0, (None, INTS), ()),)), "offsets"),
        (describe(b"+w:2", ITEM), (3, 0, (None,), ((5, 0, (None, INTS), ()),)), "length of a child"),
        (describe(b"+s", ITEM), (3, 0, (None,), ((5, 0, (None, INTS), ()),)), "length of a child"),
        (describe(b"l"), (6, 0, (None, INTS), ((6, 0, (None, INTS), ()),)), "number of children"),
    ],
)
def test_native_check_refuses_what_would_be_read_past_the_end(field: Any, node: Any, message: str) -> None:
    capsule = _native.make_arrow_stream(field, iter([(max(0, node[0]), 0, (None,), (node,))]))
    with pytest.raises(OSError, match=f"{message} does not fit"):
        read_next(open_stream(capsule))


@pytest.mark.parametrize(
    ("values", "invalid"),
    [
        ([], -1),
        ([b"a", b"\xc3\xa9", b""], -1),
        ([b"\xc3", b"\xa9"], 0),
        ([b"a", b"\xe9\x8d\xb5", b"\xf0\x9f", b"\x94\x91"], 2),
        ([b"", b"\xed\xa0\x80"], 1),
        ([b"x" * 100, b"\xff"], 1),
    ],
)
def test_native_utf8_check_finds_the_first_bad_value(values: list[bytes], invalid: int) -> None:
    column = BytesColumn.from_values(values)
    assert _native.find_invalid_utf8(column.data, column.offsets) == invalid


def test_native_utf8_check_refuses_offsets_outside() -> None:
    with pytest.raises(IndexError, match="offsets lie outside the data"):
        _native.find_invalid_utf8(b"abc", splits(0, 4))
