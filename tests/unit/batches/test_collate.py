from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrkit.batches.collate import count_rows, size_batch, stack_rows
from tfrkit.codec.columns import BytesColumn, Ragged
from tfrkit.errors import MissingFeatureError, ShapeError


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


def test_size_counts_every_buffer() -> None:
    assert size_batch({"a": np.zeros(10), "r": ragged()}) == 80 + 56 + 32
    assert size_batch({"context": {"a": np.zeros(1)}, "feature_lists": {}}) == 8
    assert size_batch({"list": [np.zeros(2), np.zeros(3)]}) == 40


def test_rows_are_counted_by_any_column() -> None:
    assert count_rows({"r": ragged()}) == 3
    assert count_rows({"context": {}, "feature_lists": {"a": np.zeros((2, 1))}}) == 2
    assert count_rows({}) is None
