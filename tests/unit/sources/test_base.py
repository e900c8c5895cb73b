from __future__ import annotations

import multiprocessing.reduction

import numpy as np
import pytest

from tfrkit.errors import SourceError
from tfrkit.features.schema import Schema
from tfrkit.sources.base import Items, ItemsBuilder, Problem, Scan, fingerprint_file, require_some


def build_three() -> Items:
    builder = ItemsBuilder(split_names=("train", "test"))
    builder.add("b", data=b"2", nbytes=20, label=1, split=0)
    builder.add("a", data=b"1", nbytes=10, label=0, split=1)
    builder.add("c", data=b"3", nbytes=30, label=1, split=0)
    return builder.build()


def test_items_are_sorted_by_key_with_all_their_columns():
    items = build_three()
    assert [items.key(i) for i in range(3)] == ["a", "b", "c"]
    assert items.nbytes.tolist() == [10, 20, 30]
    assert items.labels.tolist() == [0, 1, 1]
    assert items.splits.tolist() == [1, 0, 0]
    assert items.item(1) == (1, "b", b"2")


def test_columns_without_values_are_left_out():
    items = build_three()
    assert items.groups is None
    assert items.stamps is None


def test_items_in_their_own_order_are_not_sorted():
    builder = ItemsBuilder()
    for key in "cab":
        builder.add(key)
    assert [builder.build(sort=False).key(i) for i in range(3)] == ["c", "a", "b"]


def test_taken_items_keep_the_requested_order_and_their_numbers():
    taken = build_three().take(np.array([2, 0]))
    assert [tuple(item) for item in taken] == [(2, "c", b"3"), (0, "a", b"1")]
    assert [item.key for item in taken[1:]] == ["a"]
    assert taken.nbytes.tolist() == [30, 10]


def test_taken_items_survive_being_sent_to_a_worker():
    pickler = multiprocessing.reduction.ForkingPickler
    taken = build_three().take(np.array([1, 2]))
    assert list(pickler.loads(pickler.dumps(taken))) == list(taken)


def test_key_that_is_not_utf8_keeps_its_bytes():
    builder = ItemsBuilder()
    builder.add("a\udcff")
    assert builder.build().key(0) == "a\udcff"


def test_items_without_keys_are_called_by_their_row():
    assert Items(5).key(3) == "row 3"
    assert Items(5).take(np.array([4]))[0] == (4, "row 4", b"")


def test_no_items_at_all_builds_nothing():
    assert ItemsBuilder().build().size == 0


def make_scan(**changes) -> Scan:
    return Scan(**{"looked_for": "images in x", "items": Items(0), "reader": None, "schema": Schema({}), **changes})


def test_empty_scan_names_the_searched_folder():
    scan = make_scan()
    scan.ignored[".txt"] = 3
    with pytest.raises(SourceError, match="nothing to build, looked for images in x, found other files only: 3 .txt"):
        require_some(scan)


def test_scan_with_bad_inputs_only_is_not_empty():
    require_some(make_scan(problems=[Problem("a", "bad")]))


def test_schema_after_reading_is_refined_by_facts():
    refined = Schema({"x": "int64"})
    assert make_scan(refine=lambda facts: refined).schema_after({}) is refined


def test_fingerprint_changes_with_content_and_size(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"a" * 100)
    first, _ = fingerprint_file(str(path))
    path.write_bytes(b"a" * 99 + b"b")
    second, _ = fingerprint_file(str(path))
    path.write_bytes(b"a" * 101)
    third, _ = fingerprint_file(str(path))
    assert len({first, second, third}) == 3


def test_fingerprint_of_an_empty_file_exists(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"")
    assert fingerprint_file(str(path))[0]
