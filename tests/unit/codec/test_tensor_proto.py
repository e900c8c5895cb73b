from __future__ import annotations

import numpy as np
import pytest

from tfrkit import _native
from tfrkit.codec.tensor_proto import decode_tensor, encode_tensor, encode_varint, tensor_dtype
from tfrkit.errors import CodecError

DTYPES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 bool complex64 complex128".split()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (2, 3), (2, 0, 3), (1, 1, 1, 1)])
def test_round_trip_keeps_dtype_shape_and_values(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    back = decode_tensor(encode_tensor(array))
    assert back.dtype == array.dtype
    assert back.shape == shape
    np.testing.assert_array_equal(back, array)


def test_extreme_bits_survive() -> None:
    for array in (
        np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324]),
        np.array([0x7FF8000000000001, 0xFFF0000000000123], np.uint64).view(np.float64),
        np.array([-(1 << 63), (1 << 63) - 1]),
        np.array([(1 << 64) - 1], np.uint64),
    ):
        assert decode_tensor(encode_tensor(array)).tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">u2"])
def test_big_endian_array_is_stored_little_endian(dtype: str) -> None:
    array = np.array([1, 2, 515], dtype)
    assert encode_tensor(array) == encode_tensor(array.astype(array.dtype.newbyteorder("<")))


def test_array_that_is_not_contiguous_is_stored_in_its_order() -> None:
    array = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(decode_tensor(encode_tensor(array.T)), array.T)
    np.testing.assert_array_equal(decode_tensor(encode_tensor(array[::-1, ::2])), array[::-1, ::2])


def test_known_bytes_of_two_doubles() -> None:
    assert encode_tensor(np.array([1.5, 2.5])).hex() == "08021204120208022210000000000000f83f0000000000000440"


def test_strings_come_back_as_bytes_with_nuls() -> None:
    array = np.array([[b"a\0", b""], ["\u00e9", b"\xff"]], object)
    back = decode_tensor(encode_tensor(array))
    assert back.dtype == object
    assert back.tolist() == [[b"a\0", b""], [b"\xc3\xa9", b"\xff"]]


@pytest.mark.parametrize("array", [np.array(["2020-01-01"], "M8[D]"), np.zeros(2, "i4,i4"), np.array([1], "m8[s]")])
def test_dtype_that_tensors_lack_raises(array: np.ndarray) -> None:
    with pytest.raises(TypeError, match="expected an array of numbers, booleans or strings, got dtype"):
        encode_tensor(array)


def test_object_that_is_no_string_raises() -> None:
    with pytest.raises(TypeError, match="strings, got int in it"):
        encode_tensor(np.array([b"a", 1], object))


def test_what_is_written_is_recognised_by_the_strict_check() -> None:
    for dtype in DTYPES:
        assert _native.read_strict_tensor(encode_tensor(np.zeros((2, 3), dtype))) is not None


@pytest.mark.parametrize(
    "data", [b"", b"abc", b"\x08\x02", b"\xff\xd8\xff\xe0", b"\x08\x02\x22\x03abc", b"\x89PNG\r\n"]
)
def test_other_bytes_are_not_taken_for_a_tensor(data: bytes) -> None:
    assert _native.read_strict_tensor(data) is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("08033805", np.int32(5)),  # int_val, not packed
        ("08031204120208033a020102", np.array([1, 2, 2], np.int32)),  # the last value repeats
        ("08012d0000803f", np.float32(1)),  # float_val, not packed
        ("08136a028078", np.float16(1)),  # half_val
        ("080e6a02807f", np.float32(1)),  # bfloat16 is there too
        ("0819120412020803" + "9201023840", np.array([1, 2, 2], np.float32)),  # float8_val
        ("080a1204120208025a020100", np.array([True, False])),
        ("081682010105", np.uint32(5)),
        ("08178a010105", np.uint64(5)),
        ("08084a08" + "0000803f00000040", np.complex64(1 + 2j)),
        ("0802", np.float64(0)),  # TensorFlow leaves out zeros
    ],
)
def test_values_outside_tensor_content_are_read(data: str, expected: np.ndarray) -> None:
    array = decode_tensor(bytes.fromhex(data))
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "dtype number 0"),
        ("ff", "does not end at byte 1"),
        ("0865", "dtype number 101"),
        ("0802220761626364656667", r"expected 8 bytes, got 7"),
        ("080222ff0161", "runs past its end"),
        ("0802120b120908ffffffffffffff7f", "larger than any record"),
        ("0802120d120b08ffffffffffffffffff01", "unknown size"),
        ("08021207120508ffffff7f", "repeats one value"),
        ("08071207120508ffffff7f", "repeats one string"),
        ("0803" + "3a03010203", r"expected 1 values, got 3"),
        ("0b", "wire type 3"),
        ("0809520b" + "ffffffffffffffffff01" + "05", r"expected 1 values, got 2"),
    ],
)
def test_bytes_that_are_no_tensor_raise(data: str, message: str) -> None:
    with pytest.raises(CodecError, match=message):
        decode_tensor(bytes.fromhex(data))


def test_values_of_another_type_are_ignored() -> None:
    assert decode_tensor(bytes.fromhex("08014a0400000000")) == 0


def test_half_a_complex_number_raises() -> None:
    with pytest.raises(CodecError, match="complex|values"):
        decode_tensor(bytes.fromhex("08084a0400000000"))


@pytest.mark.parametrize("number", [11, 12, 13, 15, 16, 20, 21, 24, 25, 26, 27, 28, 29, 30, 127])
def test_dtype_without_values_gives_an_array_or_a_codec_error(number: int) -> None:
    try:
        assert decode_tensor(bytes([8, number])).shape == ()
    except CodecError as error:
        assert "dtype" in str(error)


def test_bfloat16_is_read_as_float32_and_written_again() -> None:
    assert tensor_dtype(14) == np.float32
    stored = bytes.fromhex("080e1204120208012202803f")
    array = decode_tensor(stored)
    assert (array.dtype, array.tolist()) == (np.float32, [1.0])
    assert encode_tensor(array, dtype="bfloat16") == stored


@pytest.mark.parametrize("value", [0, 1, 127, 128, 255, 256, (1 << 14) - 1, 1 << 14, (1 << 63) - 1, (1 << 64) - 1])
def test_varint_is_as_short_as_protobuf_makes_it(value: int) -> None:
    encoded = encode_varint(value)
    assert len(encoded) == max(1, -(-value.bit_length() // 7))
    assert sum((byte & 0x7F) << 7 * i for i, byte in enumerate(encoded)) == value


def test_other_fields_of_a_dimension_are_not_its_size() -> None:
    """A dimension of 2 with a name, a later field of a newer format, and the size once more as bytes."""
    dimension = bytes([0x08, 2, 0x12, 1, 0x78, 0x18, 9, 0x0A, 1, 0x79])
    shape = bytes([0x12, len(dimension)]) + dimension
    data = bytes([0x08, 9, 0x12, len(shape)]) + shape + bytes([0x52, 2, 5, 6])
    assert decode_tensor(data).tolist() == [5, 6]


@pytest.mark.parametrize("number", [3, 4, 5, 6, 17], ids=["int32", "uint8", "int16", "int8", "uint16"])
def test_small_integers_are_in_the_field_of_int32(number: int) -> None:
    shape = bytes([0x12, 2, 0x08, 2])
    assert decode_tensor(bytes([0x08, number, 0x12, len(shape)]) + shape + bytes([0x3A, 2, 5, 6])).tolist() == [5, 6]
