from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tfrkit.container.locate import save_index
from tfrkit.ops.verify.result import Verification
from tfrkit.ops.verify.verify import verify
from tfrkit.sidecars.manifest import write_manifest
from tfrkit.testing.corruption import flip
from tfrkit.testing.reference import encode_example, write_frames


def frames(count: int) -> bytes:
    return write_frames([encode_example({b"x": ("int64", [number])}) for number in range(count)])


def write_shards(folder: Path, numbers: list[int], total: int, name: str = "train", count: int = 3) -> list[Path]:
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{name}-{number:05d}-of-{total:05d}.tfrecord" for number in numbers]
    for path in paths:
        path.write_bytes(frames(count))
    return paths


def write_manifest_of(folder: Path, paths: list[Path], **changes: Any) -> None:
    shards = []
    for path in paths:
        data = path.read_bytes()
        shards.append(
            {
                "name": path.name,
                "split": path.name.split("-")[0],
                "records": 3,
                "nbytes": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
            }
        )
    shards[0].update(changes)
    write_manifest(str(folder / "tfrkit.json"), {"shards": shards})


def causes(result: Verification, kind: str = "set") -> list[tuple[str, str]]:
    return [(Path(found.shard).name, found.cause) for found in result.findings if found.kind == kind]


# --- shards of -of-N


def test_missing_shard_of_a_folder_or_glob_is_a_finding(tmp_path: Path) -> None:
    write_shards(tmp_path / "d", [0, 2], 4)
    for address in (tmp_path / "d", f"{tmp_path}/d/train-*"):
        result = verify(address)
        missing = "missing train-00001-of-00004.tfrecord, train-00003-of-00004.tfrecord"
        assert causes(result) == [("train-*-of-00004.tfrecord", f"2 of 4 shards are there, {missing}")]
        assert not result.ok
        assert result.records == 6
        (finding,) = result.findings
        assert (finding.record, finding.offset) == (None, None)


def test_missing_shard_is_a_note_for_a_file_named_alone(tmp_path: Path) -> None:
    (path,) = write_shards(tmp_path, [1], 4)
    result = verify(path)
    assert result.ok
    assert result.notes == [
        "1 of 4 shards, missing train-00000-of-00004.tfrecord, train-00002-of-00004.tfrecord, "
        f"train-00003-of-00004.tfrecord - at {tmp_path}/train-*-of-00004.tfrecord"
    ]


def test_shard_outside_the_selection_is_not_missing(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, [0, 1, 2], 3)
    for address in (paths[0], paths[:2], tmp_path):
        result = verify(address)
        assert result.ok
        assert result.notes == []


def test_other_set_in_the_folder_is_ignored(tmp_path: Path) -> None:
    write_shards(tmp_path, [0, 1], 2)
    write_shards(tmp_path, [0], 9, name="test")
    assert verify(f"{tmp_path}/train-*").ok
    assert not verify(tmp_path).ok


# --- the manifest


def test_dataset_as_its_manifest_says_is_ok(tmp_path: Path) -> None:
    write_manifest_of(tmp_path, write_shards(tmp_path, [0, 1], 2))
    result = verify(tmp_path, sha256=True)
    assert (result.findings, result.notes) == ([], [])


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"records": 4}, "expected 4 records as tfrkit.json says, got 3"),
        ({"nbytes": 17}, "expected 17 bytes as tfrkit.json says, got "),
        ({"records": "four", "nbytes": None}, None),
    ],
)
def test_counts_and_sizes_are_held_against_the_manifest(
    tmp_path: Path, change: dict[str, Any], cause: str | None
) -> None:
    paths = write_shards(tmp_path, [0, 1], 2)
    write_manifest_of(tmp_path, paths, **change)
    for address in (tmp_path, paths[0]):
        found = causes(verify(address))
        assert len(found) == (cause is not None)
        assert cause is None or (found[0][0] == paths[0].name and found[0][1].startswith(cause))


def test_file_cut_between_two_records_is_found_by_the_manifest_alone(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, [0, 1], 2)
    write_manifest_of(tmp_path, paths)
    paths[1].write_bytes(frames(2))
    assert [cause.split(",")[0] for _, cause in causes(verify(tmp_path))] == [
        f"expected {len(frames(3))} bytes as tfrkit.json says",
        "expected 3 records as tfrkit.json says",
    ]


def test_damaged_shard_is_not_counted_against_the_manifest_too(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, [0, 1], 2)
    write_manifest_of(tmp_path, paths)
    paths[0].write_bytes(flip(paths[0].read_bytes(), 14))
    result = verify(tmp_path, sha256=True)
    assert [finding.kind for finding in result.findings] == ["checksum"]


def test_sha256_is_compared_when_requested(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, [0, 1], 2)
    write_manifest_of(tmp_path, paths, sha256="0" * 64)
    assert verify(tmp_path).ok
    found = causes(verify(tmp_path, sha256=True))
    assert [name for name, _ in found] == [paths[0].name]
    assert found[0][1].startswith("sha256 expected 0000000000000000... as tfrkit.json says, got ")
    assert found == causes(verify(tmp_path, deep=True, ignore=["duplicate", "near_duplicate", "leak"]))


def test_shards_without_a_known_sha256_are_noted(tmp_path: Path) -> None:
    write_shards(tmp_path, [0], 1)
    assert verify(tmp_path, sha256=True).notes == ["no sha256 is known of 1 of 1 shards"]


def test_listed_shard_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    paths = [*write_shards(tmp_path, [0, 1], 2), *write_shards(tmp_path, [0], 1, name="test")]
    write_manifest_of(tmp_path, paths)
    paths[1].unlink()
    paths[2].unlink()
    missing = "listed in tfrkit.json but missing"
    assert causes(verify(tmp_path)) == [(paths[1].name, missing), (paths[2].name, missing)]
    assert causes(verify(f"{tmp_path}/train-*")) == [(paths[1].name, missing)]
    assert verify(paths[0]).ok


def test_damaged_manifest_is_a_finding(tmp_path: Path) -> None:
    write_shards(tmp_path, [0, 1], 2)
    (tmp_path / "tfrkit.json").write_text("{")
    assert causes(verify(tmp_path)) == [("tfrkit.json", "manifest cannot be used, it is not JSON: line 1 column 2")]


def test_manifest_of_strange_content_ends_nothing(tmp_path: Path) -> None:
    write_shards(tmp_path, [0], 1)
    for shards in (None, 7, [None, {"name": 3}, {"name": "../../etc/passwd"}], {"a": 1}):
        write_manifest(str(tmp_path / "tfrkit.json"), {"shards": shards})
        verify(tmp_path, sha256=True)


def test_shard_missing_from_its_manifest_is_noted(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, [0, 1], 2)
    write_manifest_of(tmp_path, paths)
    (tmp_path / "more.tfrecord").write_bytes(frames(1))
    result = verify(tmp_path)
    assert result.ok
    assert result.notes == [f"not listed in tfrkit.json next to it - at {tmp_path}/more.tfrecord"]


def test_manifest_of_a_single_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    path.write_bytes(frames(3))
    (tmp_path / "_index").mkdir()
    write_manifest(str(tmp_path / "_index" / "x.tfrecord.tfrkit.json"), {"shards": [{"name": path.name, "records": 5}]})
    assert causes(verify(path)) == [("x.tfrecord", "expected 5 records as x.tfrecord.tfrkit.json says, got 3")]


# --- TFDS


def write_tfds(folder: Path, lengths: list[int]) -> None:
    info = {"name": "d", "splits": [{"name": "train", "shardLengths": [str(length) for length in lengths]}]}
    (folder / "dataset_info.json").write_text(json.dumps(info))


@pytest.mark.parametrize(
    ("lengths", "cause"),
    [
        ([3, 3], None),
        ([3, 4], "expected 4 records as dataset_info.json says, got 3"),
        ([3, 3, 3], "expected one of 3 shards as dataset_info.json says, got one of 2"),
        ([], None),
    ],
)
def test_counts_are_held_against_tfds(tmp_path: Path, lengths: list[int], cause: str | None) -> None:
    for number in range(2):
        (tmp_path / f"d-train.tfrecord-{number:05d}-of-00002").write_bytes(frames(3))
    write_tfds(tmp_path, lengths)
    assert {text for _, text in causes(verify(tmp_path))} == ({cause} if cause else set())


# --- the index


def test_index_that_fits_is_ok(tmp_path: Path) -> None:
    (path,) = write_shards(tmp_path, [0], 1)
    save_index(str(path))
    assert verify(path).ok


def test_stale_index_is_a_finding(tmp_path: Path) -> None:
    (path,) = write_shards(tmp_path, [0], 1)
    save_index(str(path))
    path.write_bytes(frames(4))
    ((name, cause),) = causes(verify(path), "index")
    assert name == path.name
    assert cause.startswith("index does not fit its shard, ")
    assert verify(path, ignore=["index"]).ok


def test_damaged_index_is_a_finding(tmp_path: Path) -> None:
    (path,) = write_shards(tmp_path, [0], 1)
    _, index = save_index(str(path))
    Path(index).write_bytes(b"junk")
    assert causes(verify(path), "index")[0][1].startswith("not an index")
