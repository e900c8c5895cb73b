from __future__ import annotations

import multiprocessing
import os
from collections import Counter

import pytest

from tfrkit._limits import LIMITS
from tfrkit.build.journal import (
    BadItem,
    Journal,
    ShardResult,
    _join_lines,
    add_facts,
    drop_done,
    read_done,
    read_inputs,
    read_marker,
    write_done,
    write_inputs,
)
from tfrkit.codec.columns import BytesColumn
from tfrkit.errors import StorageError
from tfrkit.images.encode import ImageFact
from tfrkit.sources.base import Items, ItemsBuilder

PNG = ImageFact("png", 3, 8, 4, None)
JPEG = ImageFact("jpeg", 1, 8, 4, 5, "turned", is_cmyk=True)


def test_second_build_in_the_same_process_is_refused(tmp_path):
    folder = str(tmp_path / "_build")
    with (
        Journal(folder).locked(),
        pytest.raises(StorageError, match="another build into this folder is running"),
        Journal(folder).locked(),
    ):
        pass


def hold(folder, ready, end):
    with Journal(folder).locked():
        ready.set()
        end.wait(30)


def test_second_build_in_another_process_is_refused_until_the_first_ends(tmp_path):
    folder = str(tmp_path / "_build")
    context = multiprocessing.get_context("spawn")
    ready, end = context.Event(), context.Event()
    other = context.Process(target=hold, args=(folder, ready, end))
    other.start()
    try:
        assert ready.wait(30)
        refusal = rf"another build into this folder is running, process {other.pid}"
        with pytest.raises(StorageError, match=refusal), Journal(folder).locked():
            pass
    finally:
        end.set()
        other.join()
    with Journal(folder).locked():
        pass


def test_lock_of_a_killed_build_is_free(tmp_path):
    folder = str(tmp_path / "_build")
    context = multiprocessing.get_context("spawn")
    ready, end = context.Event(), context.Event()
    other = context.Process(target=hold, args=(folder, ready, end))
    other.start()
    assert ready.wait(30)
    other.kill()
    other.join()
    with Journal(folder).locked():
        pass


def test_lock_in_a_place_that_cannot_be_written_raises(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"), Journal(str(tmp_path / "file" / "x")).locked():
        pass


def test_plan_and_inputs_are_remembered(tmp_path):
    journal = Journal(str(tmp_path))
    assert journal.load_plan() is None
    builder = ItemsBuilder()
    builder.add("a\nb\\n", nbytes=3, stamp=9)
    journal.save_plan({"hash": "x"}, builder.build())
    assert journal.load_plan() == {"hash": "x"}
    assert journal.load_inputs() == {"a\nb\\n": (3, 9)}


def test_saving_a_plan_forgets_the_one_before(tmp_path):
    journal = Journal(str(tmp_path))
    folder = journal.shards_folder("old")
    journal.save_plan({"hash": "new"}, Items(0))
    assert not os.path.exists(folder)


def test_plan_that_is_damaged_counts_as_none(tmp_path):
    (tmp_path / "plan.json").write_text("{half")
    assert Journal(str(tmp_path)).load_plan() is None


def test_scratch_is_empty_each_time(tmp_path):
    journal = Journal(str(tmp_path))
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "old").write_text("x")
    assert os.listdir(journal.scratch) == []


def test_sweep_removes_what_killed_runs_left(tmp_path):
    journal = Journal(str(tmp_path))
    folder = journal.shards_folder("h")
    for name in (".s.123-ab.tmp", "s"):
        (tmp_path / "shards-h" / name).write_text("x")
    (tmp_path / "shards-h" / "_index" / ".i.tmp").write_text("x")
    journal.sweep("h")
    assert sorted(os.listdir(folder)) == ["_index", "s"]
    assert os.listdir(os.path.join(folder, "_index")) == []


def test_marker_is_read_back_with_facts_and_bad(tmp_path):
    path = str(tmp_path / "s")
    bad = [BadItem("x\udcff", "broken", "mend it")]
    result = ShardResult("s", 3, 4, 5, "abc", bad, {"image": Counter({PNG: 2})})
    write_done(path, result)
    assert read_marker(path) == result


def test_marker_counts_where_the_shard_has_its_size(tmp_path):
    path = tmp_path / "s"
    write_done(str(path), ShardResult("s", nbytes=4))
    assert read_done(str(path)) is None
    path.write_bytes(b"1234")
    assert read_done(str(path)) is not None
    drop_done(str(path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"name": 1, "nonsense": 2}',
        '{"name": "s", "facts": {"image": {"png 3 8": 2}}}',
        '{"name": "s"}',
        "[" * 100_000,
    ],
)
def test_marker_that_is_damaged_counts_as_none(tmp_path, content):
    (tmp_path / "s.done.json").write_text(content)
    assert read_marker(str(tmp_path / "s")) is None


def test_list_of_inputs_has_no_times_where_none_are_wanted(tmp_path):
    builder = ItemsBuilder()
    builder.add("a", nbytes=3, stamp=9)
    list(write_inputs(str(tmp_path / "i"), builder.build(), stamps=False))
    assert read_inputs(str(tmp_path / "i")) == {"a": (3, 0)}
    assert read_inputs(str(tmp_path / "none")) == {}


@pytest.mark.parametrize("level", [1, 6])
def test_list_of_many_inputs_is_read_back_with_odd_names(tmp_path, level):
    expected = {f"{number:05d} \\n\n\t": (number, 2 * number) for number in range(5000)}
    builder = ItemsBuilder()
    for key, (nbytes, stamp) in expected.items():
        builder.add(key, nbytes=nbytes, stamp=stamp)
    list(write_inputs(str(tmp_path / "i"), builder.build(), level=level))
    assert read_inputs(str(tmp_path / "i")) == expected


def test_list_of_too_many_inputs_counts_as_none(tmp_path, monkeypatch):
    builder = ItemsBuilder()
    for number in range(30):
        builder.add(f"name {number:02}", nbytes=number)
    list(write_inputs(str(tmp_path / "i"), builder.build()))
    monkeypatch.setattr(LIMITS, "max_named_inputs", 30)
    assert len(read_inputs(str(tmp_path / "i"))) == 30
    monkeypatch.setattr(LIMITS, "max_named_inputs", 29)
    assert read_inputs(str(tmp_path / "i")) == {}


@pytest.mark.parametrize("place", range(0, 40, 3))
def test_list_of_inputs_that_is_damaged_counts_as_none(tmp_path, place):
    builder = ItemsBuilder()
    for number in range(30):
        builder.add(f"name {number}", nbytes=number * 977, stamp=number * 31)
    path = tmp_path / "i"
    list(write_inputs(str(path), builder.build()))
    data = bytearray(path.read_bytes())
    data[10 + place] ^= 0xFF  # after the header of the gzip: some of these no longer inflate
    path.write_bytes(data)
    assert read_inputs(str(path)) == {}


def test_facts_of_workers_are_added_up():
    total = {"image": Counter({PNG: 1})}
    add_facts(total, {"image": Counter({PNG: 2, JPEG: 1}), "mask": Counter({PNG: 1})})
    assert total == {"image": {PNG: 3, JPEG: 1}, "mask": {PNG: 1}}


def test_inputs_of_unknown_size_are_listed_with_none() -> None:
    items = Items(2, keys=BytesColumn.from_values([b"a", b"b\nc"]))
    assert _join_lines(items, 0, stamps=True) == b"0\t0\ta\n0\t0\tb\\nc\n"
