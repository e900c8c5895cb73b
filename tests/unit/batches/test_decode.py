from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tfrkit.batches.decode import DecodeStage, take_rows
from tfrkit.codec.columns import BytesColumn, Ragged
from tfrkit.errors import CodecError, FeatureKindError, MissingFeatureError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.images.decode import decode_image
from tfrkit.images.mask import MaskOptions, decode_mask
from tfrkit.images.options import DecodeOptions


def encode(number: int, size: tuple[int, int] = (12, 16), kind: str = "JPEG") -> bytes:
    pixels = np.random.default_rng(number).integers(0, 256, (*size, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def encode_mask(number: int, size: tuple[int, int] = (12, 16)) -> bytes:
    indices = np.random.default_rng(number).integers(0, 9, size).astype(np.uint8)
    image = Image.fromarray(indices)
    image.putpalette(bytes(range(30)))
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def column(*values: bytes) -> BytesColumn:
    return BytesColumn.from_values(values)


def locate(row: int) -> tuple[str, int, int]:
    return "train.tfrecord", 100 + row, 1000 * row


@pytest.fixture(params=[0, 1, 3], ids=["calling thread", "1 thread", "3 threads"])
def executor(request: Any) -> Iterator[ThreadPoolExecutor | None]:
    if request.param == 0:
        yield None
        return
    with ThreadPoolExecutor(request.param) as threads:
        yield threads


# ---- images ----


def test_images_of_a_size_are_stacked(executor: Any) -> None:
    images = [encode(number, (12 + number, 16), kind) for number, kind in enumerate(["JPEG", "PNG", "JPEG", "BMP"])]
    batch, dropped = DecodeStage({"image": (8, 6)})({"image": column(*images), "label": np.arange(4)}, executor)
    assert dropped == []
    assert batch["image"].dtype == np.uint8
    assert batch["image"].shape == (4, 8, 6, 3)
    for found, image in zip(batch["image"], images, strict=True):
        assert np.array_equal(found, decode_image(image, size=(8, 6)))
    assert batch["label"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_images_of_one_size_are_stacked_without_a_size(kind: str, executor: Any) -> None:
    images = [encode(number, kind=kind) for number in range(5)]
    batch, _ = DecodeStage({"image": "image"})({"image": column(*images)}, executor)
    assert batch["image"].shape == (5, 12, 16, 3)
    assert np.array_equal(batch["image"][3], decode_image(images[3]))


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_images_of_several_sizes_are_a_list(kind: str, executor: Any) -> None:
    images = [encode(1, (5, 7), kind), encode(2, (6, 7), kind)]
    batch, _ = DecodeStage({"image": "image"})({"image": column(*images)}, executor)
    assert isinstance(batch["image"], list)
    assert [array.shape for array in batch["image"]] == [(5, 7, 3), (6, 7, 3)]


def test_images_of_one_size_stored_or_shown_are_stacked() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    file = io.BytesIO()
    Image.new("RGB", (12, 16)).save(file, "JPEG", exif=exif)
    batch, _ = DecodeStage({"image": {"exif": "apply"}})({"image": column(file.getvalue(), encode(1))})
    assert batch["image"].shape == (2, 12, 16, 3)
    batch, _ = DecodeStage({"image": "image"})({"image": column(file.getvalue(), file.getvalue())})
    assert batch["image"].shape == (2, 16, 12, 3)


def test_kept_channels_are_stacked_where_they_agree() -> None:
    gray = io.BytesIO()
    Image.new("L", (16, 12)).save(gray, "PNG")
    stage = DecodeStage({"image": {"channels": "keep"}})
    batch, _ = stage({"image": column(gray.getvalue(), gray.getvalue())})
    assert batch["image"].shape == (2, 12, 16, 1)
    batch, _ = stage({"image": column(gray.getvalue(), encode(1))})
    assert [array.shape for array in batch["image"]] == [(12, 16, 1), (12, 16, 3)]


def test_no_rows_keep_the_shape_of_one() -> None:
    empty = {"a": column(), "b": column(), "c": column(), "d": column(), "e": column()}
    stage = DecodeStage(
        {"a": (4, 5), "b": "image", "c": {"type": "mask", "size": (2, 3)}, "d": "text", "e": {"dtype": "uint8"}}
    )
    batch, dropped = stage(empty)
    assert dropped == []
    assert batch["a"].shape == (0, 4, 5, 3)
    assert batch["b"].shape == (0, 0, 0, 3)
    assert batch["c"].shape == (0, 2, 3)
    assert batch["d"].shape == (0,)
    assert batch["e"].shape == (0,)


def test_part_of_a_column_is_decoded_by_its_own_offsets() -> None:
    images = [encode(number) for number in range(6)]
    batch, _ = DecodeStage({"image": (8, 8)})({"image": column(*images)[2:5]})
    assert np.array_equal(batch["image"][0], decode_image(images[2], size=(8, 8)))
    assert len(batch["image"]) == 3


def test_given_batch_is_not_changed() -> None:
    given = {"image": column(encode(1)), "name": column(b"a")}
    DecodeStage({"image": (4, 4), "name": "text"})(given)
    assert isinstance(given["image"], BytesColumn)
    assert isinstance(given["name"], BytesColumn)


# ---- masks, raw arrays, text ----


def test_masks_are_stacked_indices(executor: Any) -> None:
    masks = [encode_mask(number) for number in range(3)]
    batch, _ = DecodeStage({"mask": "mask"})({"mask": column(*masks)}, executor)
    assert batch["mask"].shape == (3, 12, 16)
    assert batch["mask"].dtype == np.uint8
    assert np.array_equal(batch["mask"][2], decode_mask(masks[2]))
    batch, _ = DecodeStage({"mask": {"type": "mask", "size": (5, 4)}})({"mask": column(*masks)}, executor)
    assert batch["mask"].shape == (3, 5, 4)


def test_raw_bytes_become_arrays_without_a_copy() -> None:
    pixels = np.arange(2 * 3 * 4, dtype=np.uint8)
    values = column(pixels[:12].tobytes(), pixels[12:].tobytes())
    batch, _ = DecodeStage({"pixels": {"dtype": "uint8", "shape": (3, 4)}})({"pixels": values})
    assert np.array_equal(batch["pixels"], pixels.reshape(2, 3, 4))
    assert np.shares_memory(batch["pixels"], values.data)


@pytest.mark.parametrize("dtype", ["<i2", ">i2", "float32", "float64", "bool", "complex64"])
def test_raw_bytes_of_every_dtype_are_read_at_any_address(dtype: str) -> None:
    numbers = np.array([[1, 0], [0, 1], [1, 1]]).astype(dtype)
    values = column(b"x", *[row.tobytes() for row in numbers])[1:]
    batch, _ = DecodeStage({"x": {"dtype": dtype, "shape": (2,)}})({"x": values})
    assert np.array_equal(batch["x"], numbers)
    assert batch["x"].flags.aligned


def test_raw_bytes_of_varying_length_are_a_list_or_stacked() -> None:
    stage = DecodeStage({"x": {"dtype": "uint8", "shape": (None, 2)}})
    batch, _ = stage({"x": column(b"abcd", b"ef", b"")})
    assert [array.tolist() for array in batch["x"]] == [[[97, 98], [99, 100]], [[101, 102]], []]
    batch, _ = stage({"x": column(b"abcd", b"efgh")})
    assert batch["x"].shape == (2, 2, 2)


def test_raw_bytes_of_the_wrong_size_are_reported() -> None:
    stage = DecodeStage({"x": {"dtype": "int32", "shape": (2,)}})
    with pytest.raises(
        CodecError,
        match=r"^feature 'x' expected 8 bytes \(shape \(2,\), int32\), got 7 - at train.tfrecord, record 101",
    ):
        stage({"x": column(b"12345678", b"1234567")}, locate=locate)
    batch, dropped = stage({"x": column(b"12345678", b"1234567", b"abcdefgh")}, on_error="skip")
    assert [row for row, _ in dropped] == [1]
    assert batch["x"].shape == (2, 2)
    with pytest.raises(CodecError, match="expected a multiple of 8 bytes"):
        DecodeStage({"x": {"dtype": "int32", "shape": (None, 2)}})({"x": column(b"1234")})


def test_text_becomes_str() -> None:
    batch, _ = DecodeStage({"name": "text"})({"name": column("Grüße".encode(), b"", "字".encode())})
    assert batch["name"].dtype == object
    assert batch["name"].tolist() == ["Grüße", "", "字"]


def test_text_that_is_not_utf8_names_the_byte() -> None:
    with pytest.raises(
        CodecError, match="feature 'name' expected UTF-8 text, got byte 0xff at 2 of 3 - at row 1 of the batch"
    ):
        DecodeStage({"name": "text"})({"name": column(b"fine", b"ab\xff")})


# ---- ragged columns and sequences ----


def test_several_images_a_row_stay_ragged(executor: Any) -> None:
    images = [encode(number) for number in range(4)]
    ragged = Ragged(column(*images), np.array([0, 2, 2, 4]), np.array([2, 0, 2], np.uint8))
    batch, _ = DecodeStage({"image": (6, 6)})({"image": ragged}, executor)
    assert isinstance(batch["image"], Ragged)
    assert [len(row) for row in batch["image"]] == [2, 0, 2]
    assert batch["image"].presence.tolist() == [2, 0, 2]
    assert np.array_equal(batch["image"][2][1], decode_image(images[3], size=(6, 6)))


def test_frames_of_a_sequence_are_decoded_and_its_context_too() -> None:
    frames = [encode(number) for number in range(5)]
    given = {
        "context": {"thumbnail": column(encode(8), encode(9)), "id": np.arange(2)},
        "feature_lists": {"frames": Ragged(column(*frames), np.array([0, 3, 5]))},
    }
    batch, _ = DecodeStage({"thumbnail": (4, 4), "frames": (6, 8)})(given)
    assert batch["context"]["thumbnail"].shape == (2, 4, 4, 3)
    assert batch["feature_lists"]["frames"][0].shape == (3, 6, 8, 3)
    assert batch["feature_lists"]["frames"][1].shape == (2, 6, 8, 3)


def test_frames_of_lists_of_images_stay_nested() -> None:
    frames = Ragged(Ragged(column(*[encode(n) for n in range(3)]), np.array([0, 1, 3])), np.array([0, 1, 2]))
    batch, _ = DecodeStage({"views": (4, 4)})({"context": {}, "feature_lists": {"views": frames}})
    second = batch["feature_lists"]["views"][1]
    assert isinstance(second, Ragged)
    assert second[0].shape == (2, 4, 4, 3)


def test_bad_frame_drops_its_row_everywhere() -> None:
    given = {
        "context": {"id": np.arange(3)},
        "feature_lists": {
            "frames": Ragged(column(encode(0), encode(1), b"bad", encode(3)), np.array([0, 1, 3, 4])),
            "step": Ragged(np.arange(6), np.array([0, 2, 3, 6])),
        },
    }
    stage = DecodeStage({"frames": (4, 4)})
    with pytest.raises(CodecError, match=r"got 3 bytes that start with b'bad', value 1 of its row - at .*record 101"):
        stage(given, locate=locate)
    batch, dropped = stage(given, on_error="skip", locate=locate)
    assert [row for row, _ in dropped] == [1]
    assert batch["context"]["id"].tolist() == [0, 2]
    assert [len(row) for row in batch["feature_lists"]["frames"]] == [1, 1]
    assert [row.tolist() for row in batch["feature_lists"]["step"]] == [[0, 1], [3, 4, 5]]


# ---- what does not decode ----


def test_first_bad_image_of_the_batch_is_raised_with_its_place(executor: Any) -> None:
    images = [encode(number) for number in range(20)]
    images[7] = images[7][:-20]
    images[8] = b"hello"
    images[19] = b""
    with pytest.raises(CodecError) as caught:
        DecodeStage({"image": (8, 8)})({"image": column(*images)}, executor, locate=locate)
    assert str(caught.value).startswith("feature 'image' JPEG of 16x12 is truncated, its ")
    assert str(caught.value).endswith(" - at train.tfrecord, record 107, byte 7000")
    assert (caught.value.shard, caught.value.record, caught.value.offset) == ("train.tfrecord", 107, 7000)


@pytest.mark.parametrize("argument", [(8, 8), "image", {"channels": "keep"}])
def test_bad_images_are_left_out_of_every_column(argument: Any, executor: Any) -> None:
    images = [encode(0), b"hello", encode(2), encode(3)[:-30], encode(4)]
    given = {
        "image": column(*images),
        "label": np.arange(5),
        "name": column(b"a", b"b", b"c", b"d", b"e"),
        "tokens": Ragged(np.arange(9), np.array([0, 2, 4, 4, 6, 9])),
        "arrays": [np.zeros(number) for number in range(5)],
    }
    batch, dropped = DecodeStage({"image": argument})(given, executor, on_error="skip", locate=locate)
    assert [row for row, _ in dropped] == [1, 3]
    assert [error.record for _, error in dropped] == [101, 103]
    assert len(batch["image"]) == 3
    options = {"size": argument} if isinstance(argument, tuple) else {}
    for found, row in zip(batch["image"], [0, 2, 4], strict=True):
        assert np.array_equal(found, decode_image(images[row], **options))
    assert batch["label"].tolist() == [0, 2, 4]
    assert list(batch["name"]) == [b"a", b"c", b"e"]
    assert [row.tolist() for row in batch["tokens"]] == [[0, 1], [], [6, 7, 8]]
    assert [len(array) for array in batch["arrays"]] == [0, 2, 4]


def test_first_bad_row_is_raised_whatever_the_order_of_features() -> None:
    given = {"image": column(encode(0), encode(1), b"x"), "name": column(b"a", b"\xff", b"c")}
    stage = DecodeStage({"image": (4, 4), "name": "text"})
    with pytest.raises(CodecError, match=r"feature 'name' expected UTF-8 text, .* record 101"):
        stage(given, locate=locate)
    _, dropped = stage(given, on_error="skip")
    assert [row for row, _ in dropped] == [1, 2]


@pytest.mark.parametrize(("bad", "row", "place"), [(0, 0, 0), (1, 0, 1), (2, 3, 0), (3, 3, 1), (4, 4, 0)])
def test_bad_value_of_a_ragged_column_is_reported_with_its_row(bad: int, row: int, place: int) -> None:
    values = [b"x" if number == bad else encode(number) for number in range(5)]
    ragged = Ragged(column(*values), np.array([0, 2, 2, 2, 4, 5]))
    with pytest.raises(CodecError, match=f"value {place} of its row - at train.tfrecord, record {100 + row},"):
        DecodeStage({"image": (4, 4)})({"image": ragged}, locate=locate)


def test_bad_value_outside_every_row_is_ignored() -> None:
    ragged = Ragged(column(b"x", encode(1), b"y"), np.array([0, 1, 2, 3]))[1:2]
    batch, dropped = DecodeStage({"image": (4, 4)})({"image": ragged}, on_error="skip")
    assert dropped == []
    assert batch["image"][0].shape == (1, 4, 4, 3)


def test_row_that_fails_in_two_features_is_dropped_once() -> None:
    given = {"image": column(encode(0), b"x"), "name": column(b"a", b"\xff")}
    batch, dropped = DecodeStage({"image": (4, 4), "name": "text"})(given, on_error="skip")
    assert [row for row, _ in dropped] == [1]
    assert batch["name"].tolist() == ["a"]


def test_all_rows_may_be_left_out() -> None:
    batch, dropped = DecodeStage({"image": (4, 4)})({"image": column(b"x", b"y")}, on_error="skip")
    assert len(dropped) == 2
    assert batch["image"].shape == (0, 4, 4, 3)


def test_bomb_in_a_batch_takes_no_memory() -> None:
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x75\x30\0\0\x75\x30\x08\x02\0\0\0\0\0\0\0"
    with pytest.raises(CodecError, match="feature 'image' image expected at most 178956970 pixels, got 30000x30000"):
        DecodeStage({"image": "image"})({"image": column(header)})


def test_error_that_is_no_damage_comes_through(monkeypatch: pytest.MonkeyPatch, executor: Any) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("no more")

    monkeypatch.setattr("tfrkit.batches.decode.decode_into", fail)
    with pytest.raises(MemoryError, match="no more"):
        DecodeStage({"image": (4, 4)})({"image": column(encode(1), encode(2))}, executor, on_error="skip")


# ---- names ----


def test_unknown_feature_is_reported_with_the_nearest_name() -> None:
    with pytest.raises(MissingFeatureError, match="no feature 'imgae', did you mean 'image'") as caught:
        DecodeStage({"imgae": (4, 4)}).bind(Schema({"image": "image", "label": "int64"}))
    assert caught.value.hint is None


def test_feature_called_did_you_mean_is_still_listed_as_unknown() -> None:
    with pytest.raises(MissingFeatureError, match="no feature 'did you mean'\n  there are: label"):
        DecodeStage({"did you mean": "text"}).bind(Schema({"label": "int64"}))


def test_short_name_stands_for_the_encoded_feature() -> None:
    schema = Schema({"image/encoded": "image", "image/height": "int64"})
    stage = DecodeStage({"image": (4, 4)}).bind(schema)
    assert stage.features == ("image/encoded",)
    batch, _ = stage({"image/encoded": column(encode(1))})
    assert batch["image/encoded"].shape == (1, 4, 4, 3)


def test_full_name_wins_over_the_short_one() -> None:
    schema = Schema({"image": "image", "image/encoded": "image"})
    assert DecodeStage({"image": (4, 4)}).bind(schema).features == ("image",)


def test_feature_named_twice_is_refused() -> None:
    schema = Schema({"image/encoded": "image"})
    with pytest.raises(ValueError, match="decode names feature 'image/encoded' twice"):
        DecodeStage({"image": (4, 4), "image/encoded": (8, 8)}).bind(schema)


def test_feature_that_holds_no_bytes_is_refused() -> None:
    schema = Schema({"label": "int64", "tensor": "uint8"})
    with pytest.raises(FeatureKindError, match="decode of feature 'label' expected bytes, got int64"):
        DecodeStage({"label": (4, 4)}).bind(schema)
    with pytest.raises(FeatureKindError, match="decode of feature 'tensor' expected bytes, got a uint8 array already"):
        DecodeStage({"tensor": (4, 4)}).bind(schema)
    with pytest.raises(FeatureKindError, match="decode of feature 'label' expected bytes, got int64"):
        DecodeStage({"label": (4, 4)})({"label": np.arange(3)})


@pytest.mark.parametrize(
    "asked",
    [
        (4, 5),
        {"size": (4, 5)},
        {"size": (4, 5), "fit": "stretch", "exif": "keep"},
        {"type": "mask", "size": (4, 5)},
        DecodeOptions(size=(4, 5)),
        MaskOptions(size=(4, 5)),
        "image",
        "mask",
        True,
        {},
        {"exif": "apply", "max_pixels": 1000},
    ],
    ids=repr,
)
def test_schema_mask_is_decoded_as_a_mask_in_every_form_of_decode(asked: Any) -> None:
    numbers = np.random.default_rng(0).choice(np.array([0, 11, 255], np.uint8), (12, 16))
    file = io.BytesIO()
    Image.fromarray(numbers).save(file, "PNG")
    batch, _ = DecodeStage({"mask": asked}).bind(Schema({"mask": "mask"}))({"mask": column(file.getvalue())})
    size = getattr(DecodeStage({"mask": asked}).bind(Schema({"mask": "mask"}))._requests["mask"].spec, "size", None)
    assert np.array_equal(batch["mask"], decode_mask(file.getvalue(), size=size)[None])
    assert set(np.unique(batch["mask"]).tolist()) <= {0, 11, 255}


@pytest.mark.parametrize(
    ("option", "value"), [("filter", "nearest"), ("antialias", False), ("channels", "rgb"), ("reduced", False)]
)
def test_option_that_makes_no_sense_for_a_mask_is_an_error(option: str, value: object) -> None:
    stage = DecodeStage({"mask": {option: value}})
    with pytest.raises(
        TypeError, match=f"feature 'mask': option '{option}' is for images, but the schema calls this a"
    ):
        stage.bind(Schema({"mask": "mask"}))
    stage.bind(Schema({"mask": "image"}))


def test_mask_is_decoded_as_a_photo_where_a_dict_says_so() -> None:
    stage = DecodeStage({"mask": {"type": "image", "size": (4, 4)}}).bind(Schema({"mask": "mask"}))
    batch, _ = stage({"mask": column(encode_mask(2))})
    assert batch["mask"].shape == (1, 4, 4, 3)


def test_true_decodes_what_the_schema_says() -> None:
    schema = Schema({"image": "image", "mask": "mask", "name": "text"})
    stage = DecodeStage({"image": True, "mask": True, "name": True}).bind(schema)
    batch, _ = stage({"image": column(encode(1)), "mask": column(encode_mask(2)), "name": column(b"x")})
    assert (batch["image"].shape, batch["mask"].shape, batch["name"].tolist()) == ((1, 12, 16, 3), (1, 12, 16), ["x"])


def test_feature_that_was_not_selected_is_left_alone() -> None:
    batch, _ = DecodeStage({"image": (4, 4)})({"label": np.arange(2)})
    assert list(batch) == ["label"]


def test_feature_lists_are_found_by_name() -> None:
    schema = Schema({"id": "int64"}, feature_lists={"frames": Spec("bytes", logical="image")})
    assert DecodeStage({"frames": (4, 4)}).bind(schema).features == ("frames",)


def test_outputs_are_known_before_decoding() -> None:
    schema = Schema({"image/encoded": "image", "name": "text"})
    stage = DecodeStage({"image": (4, 5), "name": "text"}).bind(schema)
    assert stage.outputs() == {"image/encoded": ("uint8", (4, 5, 3)), "name": ("str", ())}


def test_stage_survives_pickling() -> None:
    stage = pickle.loads(pickle.dumps(DecodeStage({"image": (4, 5)})))
    batch, _ = stage({"image": column(encode(1))})
    assert batch["image"].shape == (1, 4, 5, 3)


def test_rows_are_taken_from_every_kind_of_column() -> None:
    rows = np.array([2, 0])
    assert take_rows(np.array([5, 6, 7]), rows).tolist() == [7, 5]
    presence = np.array([2, 1, 0], np.uint8)
    taken = take_rows(BytesColumn(*_parts(column(b"a", b"b", b"c")), presence), rows)
    assert list(taken) == [b"c", b"a"]
    assert taken.presence.tolist() == [0, 2]
    ragged = take_rows(Ragged(column(b"a", b"b", b"c"), np.array([0, 1, 1, 3]), presence), rows)
    assert [list(row) for row in ragged] == [[b"b", b"c"], [b"a"]]
    assert ragged.presence.tolist() == [0, 2]
    assert take_rows(["x", "y", "z"], rows) == ["z", "x"]


def _parts(values: BytesColumn) -> tuple[Any, Any]:
    return values.data, values.offsets
