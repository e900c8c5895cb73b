"""Rows whose first value of a feature is an empty list of unknown kind."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit
from tfrkit._limits import LIMITS
from tfrkit.errors import FeatureKindError, GuessedKindWarning
from tfrkit.writer import Writer

EMPTY = {"int64": np.empty(0, np.int64), "float": np.empty(0, np.float32), "bytes": np.empty(0, "S1")}
VALUES: dict[str, list[Any]] = {"int64": [1, 2], "float": [0.5], "bytes": [b"a", "b"]}


def store(path: Path, rows: Any, **options: Any) -> bytes:
    with Writer(path, **options) as writer:
        for row in rows:
            writer.write(row)
    return path.read_bytes()


@pytest.mark.parametrize("kind", EMPTY)
@pytest.mark.parametrize("before", [1, 3])
def test_empty_lists_take_the_kind_of_a_later_row(tmp_path: Path, kind: str, before: int) -> None:
    """The bytes equal those of rows whose empty lists have a dtype."""
    path = tmp_path / "x.tfrecord"
    last = [{"x": VALUES[kind], "i": 7}, {"x": [], "i": 8}]
    typed = store(path, [*({"x": EMPTY[kind], "i": i} for i in range(before)), *last], index=True)
    assert store(path, [*({"x": [], "i": i} for i in range(before)), *last], index=True) == typed
    assert len(tfrkit.open(path)[0]["x"]) == 0 and tfrkit.open(path)[before]["i"] == 7


def test_rows_between_keep_their_place(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    rows = [{"i": 0}, {"i": 1, "x": (), "y": []}, {"i": 2, "y": [b"t"]}, {"i": 3, "x": [], "y": []}, {"i": 4, "x": 5}]
    store(path, rows)
    back = [dict(row) for row in tfrkit.open(path)]
    assert [row["i"] for row in back] == [0, 1, 2, 3, 4]
    assert [None if row.get("x") is None else np.atleast_1d(row["x"]).tolist() for row in back] == [
        *(None, [], None, [], [5]),
    ]


def test_row_is_taken_as_it_was_when_it_was_written(tmp_path: Path) -> None:
    path, shared = tmp_path / "x.tfrecord", np.zeros(2, np.int64)
    with Writer(path) as writer:
        for number in range(3):
            shared[:] = number
            writer.write({"x": [] if number < 2 else [1], "shared": shared})
    assert [row["shared"].tolist() for row in tfrkit.open(path)] == [[0, 0], [1, 1], [2, 2]]


def test_sequence_examples_wait_for_context_and_frames_apart(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"

    def make(empty_context: Any, empty_frame: Any) -> list[Any]:
        return [
            {"context": {"a": empty_context}, "feature_lists": {"a": [empty_frame, empty_frame]}},
            {"context": {"a": [1, 2]}, "feature_lists": {"a": [[b"x"], []]}},
        ]

    assert store(path, make([], [])) == store(path, make(EMPTY["int64"], EMPTY["bytes"]))


def test_frames_are_passed_on_once_the_kind_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "flush_nbytes", 100)
    path = tmp_path / "x.tfrecord"
    rows: list[dict[str, Any]] = [{"i": i, "x": [] if i % 3 else [i]} for i in range(1, 50)]
    typed = [{**row, "x": np.array(row["x"], np.int64)} for row in rows]
    assert store(path, rows) == store(path, typed)


def test_feature_that_no_row_fills_is_bytes_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    with pytest.warns(
        GuessedKindWarning, match=r"feature 'x' had only empty lists, .* of bytes - at .*\n  .*schema="
    ) as w:
        store(path, [{"x": []}, {"x": []}])
    assert w[0].filename == __file__
    assert list(tfrkit.open(path)) == [{"x": []}, {"x": []}]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store(path, tfrkit.open(path), schema=tfrkit.open(path).schema)


def test_kind_is_decided_when_too_many_rows_are_pending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "flush_nbytes", 100)
    monkeypatch.setattr(LIMITS, "unsettled_nbytes", 200)
    with Writer(tmp_path / "x.tfrecord") as writer:
        for _ in range(20):
            writer.write({"x": []})
        with pytest.raises(
            FeatureKindError, match="feature 'x' expected bytes as in rows before, got int64 - at row 20"
        ):
            writer.write({"x": [1]})
        writer.discard()


def test_columns_that_begin_with_an_empty_list(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    with Writer(path) as writer:
        writer.write_columns({"x": [None, [], [3, 4]], "i": np.arange(3)})
        writer.write_columns({"x": [[], [5]], "i": np.arange(2)})
    assert [None if row["x"] is None else row["x"].tolist() for row in tfrkit.open(path)] == [None, [], [3, 4], [], [5]]


def test_columns_that_fail_take_their_empty_lists_back(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    with Writer(path) as writer:
        writer.write({"i": 9})
        with pytest.raises(TypeError, match="feature 'y' expected numbers"):
            writer.write_columns({"x": [[], [1]], "y": [1, object()]})
        writer.write({"i": 10})
    assert [row["i"] for row in tfrkit.open(path)] == [9, 10]


def test_build_notes_what_it_assumed(tmp_path: Path) -> None:
    report = tfrkit.build([{"x": [], "y": []}, {"x": [], "y": [1]}], tmp_path / "out")
    assert any("empty in every row, stored as empty lists of bytes: 'x'" in note for note in report.notes)
    assert [row["y"].tolist() for row in tfrkit.open(tmp_path / "out")] == [[], [1]]


def test_nested_empty_list_still_asks(tmp_path: Path) -> None:
    with Writer(tmp_path / "x") as writer:
        with pytest.raises(
            ValueError, match=r"expected a typed empty list, got \[\[\]\] - at row 0\n  .*schema=ds.schema"
        ):
            writer.write({"x": [[]]})
        writer.discard()
