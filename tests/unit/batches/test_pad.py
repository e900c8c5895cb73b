from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit.batches.pad import check_pad, choose_pad, pad_batch
from tfrkit.codec.columns import BytesColumn, Ragged
from tfrkit.errors import MissingFeatureError, ShapeError
from tfrkit.feeds.tensorflow_layout import find_leaves
from tfrkit.testing.corruption import flip


def ragged() -> Ragged:
    return Ragged(np.array([9, 1, 2, 3, 4, 5, 6], np.int64), np.array([1, 3, 3, 6]))


# ---- lists -----------------------------------------------------------------------------------------------------------


def test_padding_fills_up_to_the_longest() -> None:
    batch = pad_batch({"t": ragged(), "n": np.arange(3)}, -1)
    assert batch["t"].tolist() == [[1, 2, -1], [-1, -1, -1], [3, 4, 5]]
    assert batch["t/length"].tolist() == [2, 0, 3]
    assert list(batch) == ["t", "t/length", "n"]


def test_padding_to_a_length_makes_every_batch_as_wide() -> None:
    batch = pad_batch({"t": ragged()}, {"t": (0, 4)})
    assert batch["t"].shape == (3, 4)
    fixed = pad_batch({"t": np.ones((2, 3), np.float32)}, {"t": (0, 5)})
    assert fixed["t"].tolist() == [[1, 1, 1, 0, 0]] * 2
    assert fixed["t/length"].tolist() == [3, 3]


def test_padding_keeps_inner_shapes() -> None:
    boxes = Ragged(np.arange(12, dtype=np.float32).reshape(3, 4), np.array([0, 1, 3]))
    batch = pad_batch({"boxes": boxes}, 0)
    assert batch["boxes"].shape == (2, 2, 4)
    assert batch["boxes"][0, 1].tolist() == [0, 0, 0, 0]


def test_row_longer_than_the_length_names_both_and_the_way_out() -> None:
    with pytest.raises(ShapeError, match="feature 't' is padded to 2 values, got 3 in row 2 of the batch\n.*truncate"):
        pad_batch({"t": ragged()}, {"t": (0, 2)})


def test_truncate_cuts_longer_rows_and_fills_up_shorter_ones() -> None:
    batch = pad_batch({"t": ragged()}, {"t": (0, 2)}, truncate=True)
    assert batch["t"].tolist() == [[1, 2], [0, 0], [3, 4]]
    assert batch["t/length"].tolist() == [2, 0, 2]
    fixed = pad_batch({"t": np.arange(6).reshape(2, 3)}, {"t": (0, 1)}, truncate=True)
    assert fixed["t"].tolist() == [[0], [3]]


def test_padding_of_what_cannot_be_padded_raises() -> None:
    with pytest.raises(MissingFeatureError, match="pad names feature 'x', the batch has t"):
        pad_batch({"t": ragged()}, {"x": 0})
    with pytest.raises(ShapeError, match="feature 'b' expected lists of numbers to pad, got bytes"):
        pad_batch({"b": BytesColumn.from_values([b"a"])}, {"b": 0})
    with pytest.raises(ShapeError, match="feature 'a' expected lists of numbers to pad, got arrays"):
        pad_batch({"a": Ragged([np.zeros(1)], np.array([0, 1]))}, {"a": 0})


def test_bytes_and_text_are_left_alone_by_one_value_for_all() -> None:
    text = Ragged(np.array(["a"], object), np.array([0, 1]))
    batch = {"b": Ragged(BytesColumn.from_values([b"a"]), np.array([0, 1])), "t": text}
    assert pad_batch(batch, 0) == batch
    assert pad_batch({"t": text}, {"t": ("", 2)})["t"].tolist() == [["a", ""]]


@pytest.mark.parametrize(
    ("pad", "message"),
    [
        ({"t": (0, -1)}, "pad of 't' expected a length from 1 up, or .*, got -1"),
        ({"t": (0, "4")}, "expected a length from 1 up, or .*, got '4'"),
        ({"t": (0, True)}, "got True"),
        ({"t": (100, 0)}, r"pad of 't' expected a length from 1 up, got 0\n  the order is \(value, length\)"),
        ({"t": 2**70}, f"pad of 't' expected a 64-bit number, got {2**70}"),
        ({"t": (0, (1, 2, 3))}, r"got \(1, 2, 3\)"),
        ({"t": (0, 1, 2)}, r"pad of 't' expected a value or \(value, length\), got \(0, 1, 2\)"),
    ],
)
def test_length_that_cannot_be_is_refused_before_reading(pad: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_pad(pad, truncate=False)


@pytest.mark.parametrize(
    ("pad", "message"),
    [
        ("x", "pad expected a number, got 'x'"),
        ({"t": {"a": 1}}, "pad of 't' expected a number, got {'a': 1}"),
        ({"t": (None, 4)}, "pad of 't' expected a number, got None"),
    ],
)
def test_value_that_is_no_number_is_refused_before_reading(pad: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        check_pad(pad, truncate=False)


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        (1.5, np.int64, "pad of 't' expected an int64, got 1.5"),
        (float("nan"), np.int64, "pad of 't' expected an int64, got nan"),
        (1 << 63, np.int64, "pad of 't' expected an int64, got 9223372036854775808"),
        (-1, np.uint8, "pad of 't' expected an uint8, got -1"),
        (1e300, np.float32, "pad of 't' expected a float32, got 1e"),
    ],
)
@pytest.mark.parametrize("is_named", [False, True])
def test_value_that_the_column_cannot_hold_is_refused(value: Any, dtype: Any, message: str, is_named: bool) -> None:
    column = Ragged(np.array([1, 2, 3], dtype), np.array([0, 1, 3]))
    with pytest.raises(ValueError, match=message):
        pad_batch({"t": column}, {"t": value} if is_named else value)


def test_value_of_another_type_that_fits_is_taken() -> None:
    assert pad_batch({"t": ragged()}, -1.0)["t"].tolist()[0] == [1, 2, -1]
    floats = Ragged(np.ones(3, np.float32), np.array([0, 1, 3]))
    assert np.isnan(pad_batch({"t": floats}, float("nan"))["t"][0, 1])
    with pytest.raises(TypeError, match="pad of 't' expected a number, got 'x'"):
        pad_batch({"t": floats}, {"t": "x"})


@pytest.mark.parametrize("pad", [None, 0, {}, {"t": 0}, {"t": (0, None)}])
def test_truncate_without_a_length_is_refused(pad: Any) -> None:
    with pytest.raises(ValueError, match="truncate cuts rows to the length in pad, and pad has no length"):
        check_pad(pad, truncate=True)


def test_choice_of_a_feature() -> None:
    assert choose_pad({"t": (0, (3, None))}, "t") == (0, 3, None)
    assert choose_pad({"t": -1}, "t") == (-1, None, None)
    assert choose_pad({"t": -1}, "u") is None
    assert choose_pad(0.5, "u") == (0.5, None, None)
    assert choose_pad(None, "u") is None


# ---- frames ----------------------------------------------------------------------------------------------------------

SEQUENCES = tfr.Schema(
    {"id": "int64", "tags": ("int64", (None,))},
    feature_lists={"frame": ("float", (2,)), "words": ("int64", (None,)), "name": "bytes"},
)


@pytest.fixture
def sequences(tmp_path: Path) -> tfr.Dataset:
    path = str(tmp_path / "s.tfrecord")
    with tfr.Writer(path, schema=SEQUENCES) as writer:
        for number in range(4):
            lists = {
                "frame": [np.full(2, frame + 10 * number, np.float32) for frame in range(number)],
                "words": [np.arange(1, frame + 2) for frame in range(number)],
                "name": [b"%d" % frame for frame in range(number)],
            }
            writer.write({"context": {"id": number, "tags": np.arange(number)}, "feature_lists": lists})
    return tfr.open(path, schema=SEQUENCES)


@pytest.mark.parametrize("threads", [1, 2])
def test_frames_are_filled_up_to_the_longest(sequences: tfr.Dataset, threads: int) -> None:
    for dataset in (sequences, sequences.shuffle(seed=0).take(4)):
        [batch] = list(dataset.batch(4, pad=-1, threads=threads))
        ids = batch["context"]["id"].tolist()
        lists = batch["feature_lists"]
        assert lists["frame"].shape == (4, 3, 2)
        assert lists["frame/length"].tolist() == ids
        assert lists["words"].shape == (4, 3, 3)
        assert lists["words/length"].tolist() == ids
        assert batch["context"]["tags/length"].tolist() == ids
        assert batch["context"]["tags"].shape == (4, 3)
        assert isinstance(lists["name"], Ragged)
        row = ids.index(2)
        assert lists["frame"][row].tolist() == [[20, 20], [21, 21], [-1, -1]]
        assert lists["words"][row].tolist() == [[1, -1, -1], [1, 2, -1], [-1, -1, -1]]
        assert lists["words/frame_length"][row].tolist() == [1, 2, 0]


def test_frames_are_filled_up_to_given_lengths(sequences: tfr.Dataset) -> None:
    pad = {"frame": (0, 5), "words": (7, (4, 6))}
    for batch in sequences.batch(2, pad=pad):
        lists = batch["feature_lists"]
        assert lists["frame"].shape == (2, 5, 2)
        assert lists["words"].shape == (2, 4, 6)
        assert lists["words/frame_length"].shape == (2, 4)
        assert isinstance(batch["context"]["tags"], Ragged)  # not named, so not padded


def test_frames_are_cut_by_truncate(sequences: tfr.Dataset) -> None:
    [batch] = list(sequences.batch(4, pad={"frame": (0, 2), "words": (0, (2, 1))}, truncate=True))
    lists = batch["feature_lists"]
    assert lists["frame"].shape == (4, 2, 2)
    assert lists["frame/length"].tolist() == [0, 1, 2, 2]
    assert lists["words"][3].tolist() == [[1], [1]]
    assert lists["words/frame_length"].tolist() == [[0, 0], [1, 0], [1, 1], [1, 1]]


def test_frames_through_map_are_padded_too(sequences: tfr.Dataset) -> None:
    [plain] = list(sequences.batch(4, pad=0))
    [mapped] = list(sequences.map(lambda row: row).batch(4, pad=0))
    for part in ("context", "feature_lists"):
        assert plain[part].keys() == mapped[part].keys()
        for name, column in plain[part].items():
            if isinstance(column, np.ndarray):
                assert np.array_equal(column, mapped[part][name]), name


def test_batch_without_frames_is_padded_to_nothing() -> None:
    empty = Ragged(np.zeros((0, 2), np.float32), np.array([0, 0, 0]))
    nested = Ragged(Ragged(np.zeros(0, np.int64), np.array([0])), np.array([0, 0, 0]))
    lists = pad_batch({"context": {}, "feature_lists": {"f": empty, "w": nested}}, 0)["feature_lists"]
    assert lists["f"].shape == (2, 0, 2)
    assert lists["w"].shape == (2, 0, 0)
    assert lists["w/frame_length"].shape == (2, 0)


def test_slice_of_frames_is_padded_as_its_rows() -> None:
    inner = Ragged(np.arange(6), np.array([0, 1, 3, 6]))
    column = Ragged(inner, np.array([0, 1, 3]))[1:]
    lists = pad_batch({"context": {}, "feature_lists": {"w": column}}, -1)["feature_lists"]
    assert lists["w"].tolist() == [[[1, 2, -1], [3, 4, 5]]]


def test_layout_of_padded_frames_has_the_sizes_that_are_given(sequences: tfr.Dataset) -> None:
    pad = {"frame": 0, "words": (0, (3, None))}
    [batch] = list(sequences.batch(4, pad=pad))
    shapes = {leaf.name: leaf.shape for leaf in find_leaves(batch, num_rows=4, pad=pad)}
    assert shapes["frame"] == (None, 2)
    assert shapes["words"] == (3, None)
    assert shapes["words/frame_length"] == (3,)
    assert shapes["words/length"] == ()


# ---- what is too long, and where -------------------------------------------------------------------------------------


@pytest.fixture
def lists(tmp_path: Path) -> str:
    for shard in range(2):
        with tfr.Writer(str(tmp_path / f"x-{shard:05}-of-00002")) as writer:
            for number in range(10):
                writer.write({"id": number, "t": np.arange(9 if (shard, number) == (1, 4) else number % 3)})
    return str(tmp_path / "x-*")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("changed", [False, True])
def test_row_that_is_too_long_is_named_by_file_and_record(lists: str, threads: int, changed: bool) -> None:
    dataset = tfr.open(lists)
    if changed:
        dataset = dataset.map(lambda row: row)
    message = r"feature 't' is padded to 4 values, got 9 - at .*x-00001-of-00002, record 4, byte \d+\n"
    for chosen in (dataset, dataset.shuffle(seed=2)):
        with pytest.raises(ShapeError, match=message):
            list(chosen.batch(5, pad={"t": (0, 4)}, threads=threads))


def test_frame_that_is_too_long_is_named_by_its_record(sequences: tfr.Dataset) -> None:
    with pytest.raises(ShapeError, match="'frame' is padded to 2 values, got 3 - at .*s.tfrecord, record 3"):
        list(sequences.batch(4, pad={"frame": (0, 2)}))
    with pytest.raises(ShapeError, match="'words' is padded to 2 values in a frame, got 3 - at .*s.tfrecord, record 3"):
        list(sequences.batch(4, pad={"words": (0, (None, 2))}))
    with pytest.raises(ShapeError, match="'words' is padded to 2 frames, got 3 - at .*s.tfrecord, record 3"):
        list(sequences.batch(4, pad={"words": (0, 2)}))


def test_row_that_is_too_long_after_skipped_damage_is_named_by_its_record(tmp_path: Path) -> None:
    path = tmp_path / "d.tfrecord"
    with tfr.Writer(str(path)) as writer:
        for number in range(10):
            writer.write({"t": np.arange(9 if number == 8 else 2)})
    path.write_bytes(flip(path.read_bytes(), 20, 3))
    start = 8 * (path.stat().st_size - 7) // 10  # seven bytes more for the longer one
    ds = tfr.open(str(path), on_error="skip")
    for chosen in (ds, ds.shuffle(seed=0)):
        with pytest.raises(ShapeError, match=rf"padded to 4 values, got 9 - at .*d.tfrecord, record 8, byte {start}"):
            list(chosen.batch(10, pad={"t": (0, 4)}))


def test_row_that_a_function_of_batches_made_is_named_by_its_row(lists: str) -> None:
    def halve(batch: dict[str, Any]) -> dict[str, Any]:
        return {"t": batch["t"][:2]}

    with pytest.raises(ShapeError, match="in row 0 of the batch"):
        list(tfr.open(lists).batch(3, pad={"t": (0, 1)}).map(halve))
