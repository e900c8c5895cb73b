from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrkit.batches.collate import pad_batch, size_batch, stack_rows
from tfrkit.codec.columns import BytesColumn, Ragged
from tfrkit.errors import MissingFeatureError, ShapeError, TfrkitError


def test_rows_become_columns() -> None:
    rows: list[dict[str, Any]] = [
        {"n": 1, "x": 0.5, "b": b"a", "s": "α", "v": [1, 2], "m": np.zeros((2, 3)), "bs": [b"x"], "flag": True},
        {"n": 2, "x": 1.5, "b": b"", "s": "", "v": [3], "m": np.ones((2, 3)), "bs": [], "flag": False},
    ]
    batch = stack_rows(rows)
    assert batch["n"].tolist() == [1, 2]
    assert batch["x"].dtype == np.float64
    assert isinstance(batch["b"], BytesColumn)
    assert isinstance(batch["v"], Ragged)
    assert batch["m"].shape == (2, 2, 3)
    assert batch["flag"].dtype == bool


def test_parts_of_a_sequence_are_stacked_each() -> None:
    rows = [{"context": {"id": n}, "feature_lists": {"f": np.arange(n)}} for n in range(3)]
    batch = stack_rows(rows)
    assert batch["context"]["id"].tolist() == [0, 1, 2]
    assert batch["feature_lists"]["f"].lengths.tolist() == [0, 1, 2]


def test_nothing_to_stack_is_an_empty_batch() -> None:
    assert stack_rows([]) == {}


def test_shapes_that_differ_name_the_feature_and_both() -> None:
    rows = [{"image": np.zeros((2, 3))}, {"image": np.zeros((2, 4))}]
    with pytest.raises(ShapeError, match=r"'image' cannot be stacked, shape \(2, 3\) in row 0 .*, \(2, 4\) in row 1"):
        stack_rows(rows)


def test_rows_with_other_features_raise() -> None:
    with pytest.raises(MissingFeatureError, match="feature 'b' is in row 1 of the batch but not in row 0"):
        stack_rows([{"a": 1}, {"a": 1, "b": 2}])


def ragged() -> Ragged:
    return Ragged(np.array([9, 1, 2, 3, 4, 5, 6], np.int64), np.array([1, 3, 3, 6]))


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


def test_row_longer_than_the_length_names_both() -> None:
    with pytest.raises(ShapeError, match="feature 't' is padded to 2 values, got 3 in row 2 of the batch"):
        pad_batch({"t": ragged()}, {"t": (0, 2)})


def test_padding_of_what_cannot_be_padded_raises() -> None:
    with pytest.raises(MissingFeatureError, match="pad names feature 'x', the batch has t"):
        pad_batch({"t": ragged()}, {"x": 0})
    with pytest.raises(ShapeError, match="feature 'b' expected lists of numbers to pad, got BytesColumn"):
        pad_batch({"b": BytesColumn.from_values([b"a"])}, {"b": 0})
    with pytest.raises(TfrkitError, match="pad expected batches of Examples, got SequenceExamples"):
        pad_batch({"context": {}, "feature_lists": {}}, 0)


def test_bytes_are_left_alone_by_one_value_for_all() -> None:
    batch = {"b": Ragged(BytesColumn.from_values([b"a"]), np.array([0, 1]))}
    assert pad_batch(batch, 0) == batch


def test_size_counts_every_buffer() -> None:
    assert size_batch({"a": np.zeros(10), "r": ragged()}) == 80 + 56 + 32
    assert size_batch({"context": {"a": np.zeros(1)}, "feature_lists": {}}) == 8
    assert size_batch({"list": [np.zeros(2), np.zeros(3)]}) == 40
