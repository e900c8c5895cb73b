from __future__ import annotations

from typing import Any

from tfrkit.sidecars.manifest import ShardChange, update_manifest
from tfrkit.sidecars.update import update_info

A, B, T = "d-train.tfrecord-00000-of-00002", "d-train.tfrecord-00001-of-00002", "d-test.tfrecord-00000-of-00001"


def change(
    old: str | None, name: str, records: int, nbytes: int, *, split: str = "train", old_nbytes: int = 100
) -> Any:
    is_changed = old is None or nbytes != old_nbytes
    return ShardChange(old, name, split, records, nbytes, old_nbytes, is_changed, "f" * 64 if is_changed else None)


def row(name: str, split: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "split": split, "records": 10, "nbytes": 100, "sha256": "0" * 64, **more}


MANIFEST = {"plan": "abc", "name": "d", "shards": [row(A, "train", extra=1), row(B, "train"), row(T, "test")]}
INFO = {
    "name": "d",
    "splits": [
        {"name": "train", "numBytes": "200", "shardLengths": ["10", "10"], "statistics": {}},
        {"name": "test", "numBytes": 100, "shardLengths": [10]},
    ],
}


def test_only_shards_that_changed_have_other_facts() -> None:
    updated = update_manifest(MANIFEST, [change(A, A, 9, 90), change(B, B, 10, 100)], {"verb": "edit"})
    assert updated["shards"] == [
        row(A, "train", extra=1, records=9, nbytes=90, sha256="f" * 64),
        row(B, "train"),
        row(T, "test"),
    ]
    assert updated["splits"] == {
        "train": {"records": 19, "shards": 2, "nbytes": 190},
        "test": {"records": 10, "shards": 1, "nbytes": 100},
    }
    assert (updated["name"], updated["changes"][0]["verb"]) == ("d", "edit")
    again = update_manifest(updated, [change(A, A, 8, 80)], {"verb": "dedupe"})
    assert [entry["verb"] for entry in again["changes"]] == ["edit", "dedupe"]
    assert len({MANIFEST["plan"], updated["plan"], again["plan"]}) == 3


def test_new_shards_come_after_the_others_of_their_split() -> None:
    names = [f"d-train.tfrecord-0000{number}-of-00003" for number in range(3)]
    changes = [change(A, names[0], 10, 100), change(B, names[1], 10, 100), change(None, names[2], 5, 50, old_nbytes=0)]
    updated = update_manifest(MANIFEST, changes, {})
    assert [one["name"] for one in updated["shards"]] == [*names, T]
    assert updated["shards"][2] == {
        "name": names[2],
        "split": "train",
        "sha256": "f" * 64,
        "records": 5,
        "nbytes": 50,
    }
    info = update_info(INFO, changes)
    assert info is not None
    assert info["splits"][0] == {
        "name": "train",
        "numBytes": "250",
        "shardLengths": ["10", "10", "5"],
        "statistics": {},
    }
    assert info["splits"][1] == INFO["splits"][1]


def test_copy_of_a_part_lists_that_part() -> None:
    changes = [change(T, T, 4, 40, split="test")]
    assert [one["name"] for one in update_manifest(MANIFEST, changes, {}, only=True)["shards"]] == [T]
    info = update_info(INFO, changes, only=True)
    assert info is not None
    assert info["splits"] == [{"name": "test", "numBytes": 40, "shardLengths": [4]}]
    # TFDS cannot read half a split.
    assert update_info(INFO, [change(A, A, 9, 90)], only=True) is None


def test_info_that_does_not_fit_the_names_is_not_used() -> None:
    assert update_info(INFO, [change("x-00000-of-00007", "x-00000-of-00007", 9, 90)]) is None
    assert update_info(INFO, [change("train.tfrecord", "train.tfrecord", 9, 90)]) is None
    one = {"splits": [{"name": "train", "shardLengths": ["10"]}]}
    info = update_info(one, [change("train.tfrecord", "train.tfrecord", 9, 90)])
    assert info == {"splits": [{"name": "train", "shardLengths": ["9"]}]}


def test_shard_without_a_known_count_adds_none_to_its_split() -> None:
    unknown = {"name": T, "split": "test", "nbytes": 100}
    updated = update_manifest({**MANIFEST, "shards": [row(A, "test"), unknown]}, [change(A, A, 9, 90)], {})
    assert updated["splits"] == {"test": {"records": 9, "shards": 2, "nbytes": 190}}
