from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

import tfrkit as tfr
from tfrkit.errors import SourceError
from tfrkit.storage import inputs
from tfrkit.storage.inputs import join_stamps, list_tree, open_input, read_ahead, read_input, stat_input
from tfrkit.testing.fake_store import FakeStore, use_fake_store

ROOT = "s3://bucket/in"


@pytest.fixture
def store() -> Iterator[FakeStore]:
    with use_fake_store() as store:
        yield store


def make_png(shade: int) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (8, 6), (shade, 0, 0)).save(data, "PNG")
    return data.getvalue()


def fill(store: FakeStore, number: int = 30) -> None:
    for i in range(number):
        store.put(f"in/{'ab'[i % 2]}/{i:02d}.png", make_png(i), "anything")


def build(tmp_path: Path, **options: object) -> tfr.build:
    return tfr.build(tfr.sources.class_folders(ROOT), tmp_path / "out", jobs=1, **options)


def test_folder_is_listed_once_and_each_object_is_requested_once(store: FakeStore, tmp_path: Path) -> None:
    fill(store, 200)
    store.log.clear()
    assert build(tmp_path).written == 200
    verbs = [entry[0] for entry in store.log]
    # 24 of them are read to estimate sizes; the folder itself is looked for, listed, and its classes are listed.
    assert verbs.count("get") == 200 + 24
    assert verbs.count("list") <= 3 + 2


def test_object_that_is_gone_after_the_listing_is_a_bad_input_with_its_address(
    store: FakeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    original = inputs.list_tree

    def list_and_delete(*arguments: object) -> object:
        tree = original(*arguments)
        del store.objects["in/a/04.png"]
        return tree

    monkeypatch.setattr("tfrkit.sources.walk.list_tree", list_and_delete)
    with pytest.raises(SourceError, match=r"1 of 30 inputs is bad") as caught:
        build(tmp_path)
    assert "s3://bucket/in/a/04.png: cannot read, no such object" in str(caught.value)


def test_object_that_is_replaced_after_the_listing_is_a_bad_input(
    store: FakeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    original = inputs.list_tree

    def list_and_replace(*arguments: object) -> object:
        tree = original(*arguments)
        store.put("in/b/05.png", make_png(99), "anything")
        return tree

    monkeypatch.setattr("tfrkit.sources.walk.list_tree", list_and_replace)
    report = build(tmp_path, on_bad="skip")
    assert (report.written, [skipped.key for skipped in report.skipped]) == (29, ["s3://bucket/in/b/05.png"])
    assert report.skipped[0].reason == "cannot read, the object was replaced since it was listed"


def test_inputs_changed_in_the_store_are_named_by_the_next_build(store: FakeStore, tmp_path: Path) -> None:
    fill(store)
    build(tmp_path)
    assert build(tmp_path).already_there
    store.put("in/a/31.png", make_png(31), "anything")
    with pytest.raises(tfr.errors.StorageError, match=r"1 input added: a/31\.png"):
        build(tmp_path)


def test_missing_folder_and_missing_table_are_named(store: FakeStore, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such folder, expected one of class folders .* - at s3://bucket/in"):
        build(tmp_path)
    with pytest.raises(SourceError, match=r"cannot open, no such object - at s3://bucket/t\.csv"):
        tfr.build(tfr.sources.table("s3://bucket/t.csv"), tmp_path / "out")


def test_bad_line_of_a_table_is_named_by_its_address(store: FakeStore, tmp_path: Path) -> None:
    store.put("t.csv", b"a,b\n1,2\n3\n", "anything")
    with pytest.raises(SourceError, match=r"s3://bucket/t\.csv, line 3"):
        tfr.build(tfr.sources.table("s3://bucket/t.csv"), tmp_path / "out")


def test_store_that_cannot_list_refuses_folders_and_reads_tables(store: FakeStore, tmp_path: Path) -> None:
    fill(store)
    store.can_list = False
    with pytest.raises(
        SourceError, match="in a store that lists its objects, this server does not - at s3://bucket/in"
    ):
        build(tmp_path)
    store.put("t.csv", b"a,b\n1,2\n3,4\n", "anything")
    assert tfr.build(tfr.sources.table("s3://bucket/t.csv"), tmp_path / "out").written == 2


def test_parts_of_an_object_are_those_of_its_bytes(store: FakeStore) -> None:
    data = bytes(range(256)) * 400
    store.put("in/x", data, "anything")
    for path in read_ahead([f"{ROOT}/x"], lambda path: [path], head_nbytes=1000):
        with open_input(path) as file:
            assert (file.read(10), file.seek(990), file.read(20)) == (data[:10], 990, data[990:1010])
            assert (file.seek(-5, 2), file.read(), file.read()) == (len(data) - 5, data[-5:], b"")
        assert stat_input(path)[0] == len(data)
        assert read_input(path) == data


@pytest.mark.parametrize(("head_nbytes", "stop"), [(1000, 1000), (None, -1)])
def test_head_or_whole_object_is_requested_ahead(store: FakeStore, head_nbytes: int | None, stop: int) -> None:
    store.put("in/x", bytes(5000), "anything")
    steps = read_ahead([f"{ROOT}/x"], lambda path: [path], head_nbytes=head_nbytes)
    with open_input(next(steps)) as file:
        file.read(10)
    steps.close()
    assert [entry[3] for entry in store.log if entry[0] == "get"] == [stop]  # -1: to its end


def test_window_is_bounded_by_files_and_bytes(store: FakeStore) -> None:
    for i in range(300):
        store.put(f"in/{i}", b"x", "anything")
    store.log.clear()
    steps = read_ahead(range(300), lambda i: [f"{ROOT}/{i}"])
    next(steps)
    steps.close()
    assert len(store.log) <= 64
    store.log.clear()
    steps = read_ahead(range(300), lambda i: [f"{ROOT}/{i}"], sizes=[40 << 20] * 300)
    next(steps)
    steps.close()
    assert len(store.log) <= 2
    assert not inputs._ahead


def test_file_that_two_things_use_is_there_for_both(store: FakeStore) -> None:
    store.put("in/x", b"abc", "anything")
    assert [read_input(f"{ROOT}/x") for _ in read_ahead([1, 2], lambda _: [f"{ROOT}/x"])] == [b"abc", b"abc"]
    assert not inputs._ahead


def test_tree_has_every_folder_and_no_marker_of_a_folder(store: FakeStore) -> None:
    for key in ("in/", "in/a/", "in/a/1", "in/b/c/2", "in/3", "in/.x/4"):
        store.put(key, b"", "anything")
    tree = list_tree(ROOT, lambda name: not name.startswith("."))
    assert {folder: listed.names for folder, listed in tree.items()} == {
        "": [b".x/", b"3", b"a/", b"b/"],
        "a/": [b"1"],
        "b/": [b"c/"],
        "b/c/": [b"2"],
    }


def test_stamp_of_several_objects_changes_with_each_of_them() -> None:
    assert join_stamps("folder", [3, 7]) == 7
    assert join_stamps(ROOT, [5 * 10**9 + 3, 2 * 10**9 + 4]) == 5 * 10**9 + 7
