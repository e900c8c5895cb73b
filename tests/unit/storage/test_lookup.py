"""Files and folders, local or remote."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrkit.errors import StorageError
from tfrkit.storage.lookup import (
    expand_remote_glob,
    glob_names,
    is_file,
    is_folder,
    list_names,
    measure_file,
    read_file,
    walk_remote,
)
from tfrkit.testing.fake_store import FakeStore

NAMES = ["a/x.tfrecord", "a/y.tfrecord", "a/b/z.tfrecord", "a/_index/x.tfrecord.tfidx", "a/.hidden", "c.txt"]


@pytest.fixture
def both(store: FakeStore, tmp_path: Path) -> dict[str, str]:
    """The same files in a store and on disk."""
    for name in NAMES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    store.add_folder(str(tmp_path))
    return {"s3://b": "s3://b", "disk": str(tmp_path)}


@pytest.mark.parametrize("where", ["s3://b", "disk"])
def test_questions_have_the_same_answers_on_disk_and_in_a_store(both: dict[str, str], where: str) -> None:
    root = both[where]
    assert is_file(f"{root}/c.txt") and not is_file(f"{root}/a") and not is_file(f"{root}/nope")
    assert is_folder(f"{root}/a") and not is_folder(f"{root}/nope")
    assert measure_file(f"{root}/c.txt") == 5
    assert read_file(f"{root}/c.txt") == b"c.txt" and read_file(f"{root}/nope") is None
    assert glob_names(f"{root}/a", "*.tfrecord") == ["x.tfrecord", "y.tfrecord"]
    assert {"x.tfrecord", "y.tfrecord"} <= set(list_names(f"{root}/a"))
    with pytest.raises((OSError, StorageError), match="(?i)no such"):
        measure_file(f"{root}/nope")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a/*.tfrecord", ["a/x.tfrecord", "a/y.tfrecord"]),
        ("a/[x]*", ["a/x.tfrecord"]),
        ("a/?.tfrecord", ["a/x.tfrecord", "a/y.tfrecord"]),
        ("*/x.tfrecord", ["a/x.tfrecord"]),
        ("**/*.tfrecord", ["a/b/z.tfrecord", "a/x.tfrecord", "a/y.tfrecord"]),
        ("*.txt", ["c.txt"]),
        ("a/*.nope", []),
    ],
)
def test_glob_of_keys(both: dict[str, str], pattern: str, found: list[str]) -> None:
    assert expand_remote_glob(f"s3://b/{pattern}") == [f"s3://b/{name}" for name in found]


def test_folder_is_walked_without_hidden_names(both: dict[str, str], store: FakeStore) -> None:
    store.log.clear()
    assert walk_remote("s3://b/a/") == ["s3://b/a/b/z.tfrecord", "s3://b/a/x.tfrecord", "s3://b/a/y.tfrecord"]
    assert [row[:2] for row in store.log] == [("list", "a/"), ("list", "a/b/")]


def test_file_whose_name_no_folder_takes_is_missing(tmp_path: Path) -> None:
    assert read_file(str(tmp_path / ("x" * 300))) is None
