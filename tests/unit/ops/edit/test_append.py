from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

import tfrkit
from tfrkit.errors import SchemaError, StorageError
from tfrkit.ops.edit.append import append
from tfrkit.ops.verify.verify import verify
from tfrkit.testing.reference import encode_example, write_frames


def example(number: int) -> bytes:
    return encode_example({b"label": ("int64", [number % 3]), b"name": ("bytes", [b"n%d" % number])})


def write(path: Path, numbers: range, *, pack: Any = bytes) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pack(write_frames([example(number) for number in numbers])))
    return path


def read(path: Path | str) -> list[bytes]:
    return list(map(bytes, tfrkit.open(path).records()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"label": number % 3, "name": f"n{number}"} for number in range(20)]
    tfrkit.build(rows, tmp_path / "d", splits={"test": 4}, seed=0, shards={"train": 2, "test": 1})
    return tmp_path / "d"


@pytest.mark.parametrize("in_place", [False, True])
def test_numbered_shards_are_one_larger_set(folder: Path, tmp_path: Path, in_place: bool) -> None:
    new = write(tmp_path / "new.tfrecord", range(100, 110), pack=gzip.compress)
    out = folder if in_place else tmp_path / "out"
    old = {path.name: path.read_bytes() for path in folder.glob("d-*")}
    made = append(folder, new, None if in_place else out, split="train", in_place=in_place)
    assert (made.added, made.records, made.splits) == (10, 30, {"test": 4, "train": 26})
    names = sorted(path.name for path in out.glob("d-*"))
    assert names == ["d-test.tfrecord-00000-of-00001", *(f"d-train.tfrecord-0000{n}-of-00003" for n in range(3))]
    assert [(out / name).read_bytes() for name in names[:3]] == list(dict(sorted(old.items())).values())
    assert read(out / names[3]) == [example(number) for number in range(100, 110)]
    result = verify(out, sha256=True)
    assert (result.findings, result.notes) == ([], [])
    assert sorted(path.name for path in (out / "_index").glob("*.tfidx")) == [f"{name}.tfidx" for name in names]
    assert tfrkit.open(out).splits == {"train": 26, "test": 4}
    [train, test] = json.loads((out / "dataset_info.json").read_text())["splits"]
    assert (train["shardLengths"], test["shardLengths"]) == (["8", "8", "10"], ["4"])
    manifest = json.loads((out / "tfrkit.json").read_text())
    assert [row["name"] for row in manifest["shards"]] == [*names[1:], names[0]]
    assert int(train["numBytes"]) == manifest["splits"]["train"]["nbytes"]
    assert manifest["changes"][0]["options"] == {"new": ["new.tfrecord"], "split": "train"}


def test_one_file_grows(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tfrecord", range(5), pack=gzip.compress)
    new = write(tmp_path / "new.tfrecord", range(5, 7))
    append(path, new, tmp_path / "y.tfrecord.gz")
    append(path, [new], in_place=True)
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert read(path) == read(tmp_path / "y.tfrecord.gz") == [example(number) for number in range(7)]
    assert not (tmp_path / "_index" / "x.tfrecord.tfidx").exists()


def test_files_without_numbers_keep_their_names(tmp_path: Path) -> None:
    folder = write(tmp_path / "d" / "a.tfrecord", range(5)).parent
    write(folder / "b.tfrecord", range(5, 6))
    new = write(tmp_path / "c.tfrecord", range(6, 9))
    append(folder, new, in_place=True)
    assert read(folder) == [example(number) for number in range(9)]
    with pytest.raises(StorageError, match=r"a file named c.tfrecord is in the dataset already"):
        append(folder, new, in_place=True)


def test_split_of_one_file_grows_and_others_stay(tmp_path: Path) -> None:
    folder = write(tmp_path / "d" / "train.tfrecord", range(5)).parent
    write(folder / "test.tfrecord", range(5, 6))
    append(folder, write(tmp_path / "n.tfrecord", range(6, 9)), split="test", in_place=True)
    assert tfrkit.open(folder).splits == {"train": 5, "test": 4}


def test_name_that_says_another_split_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "d" / "train_a.tfrecord", range(5)).parent
    write(folder / "train_b.tfrecord", range(5, 6))
    with pytest.raises(StorageError, match=r"expected split 'train', got 'test' - at test_c.tfrecord"):
        append(folder, write(tmp_path / "test_c.tfrecord", range(3)), in_place=True)


def test_splits_are_chosen(folder: Path, tmp_path: Path) -> None:
    new = write(tmp_path / "new.tfrecord", range(3))
    with pytest.raises(ValueError, match='the dataset has train, test\n  name it: split="train"'):
        append(folder, new, in_place=True)
    with pytest.raises(StorageError, match=r"no split 'trian', did you mean 'train' - at .*\n  splits: train, test"):
        append(folder, new, split="trian", in_place=True)
    with pytest.raises(StorageError, match="the file to append is one of the dataset"):
        append(folder, folder / "d-test.tfrecord-00000-of-00001", split="train", in_place=True)
    with pytest.raises(StorageError, match=r"one whole set of 2 numbered shards, got 1"):
        append(folder / "d-train.tfrecord-00001-of-00002", new, in_place=True)
    made = append(folder, folder.parent / "new.tfrecord", split="test", dry_run=True)
    assert (made.added, made.is_written, made.files[1].path) == (3, False, f"{folder}/d-test.tfrecord-00001-of-00002")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"label": 1.5, "name": "x"}], "feature 'label' expected int64, got float"),
        ([{"label": 1}], "no feature 'name'"),
        ([{"label": 1, "name": "x", "more": 2}], r"feature 'more' \(int64\) is not in the dataset"),
        ([{"label": [1, 2], "name": "x"}], "feature 'label' expected 1 value, got 2 values"),
        ([{"label": 1, "name": "x"}, {"label": 1}], "feature 'name' expected in every record, got it in some only"),
    ],
)
def test_records_with_another_schema_are_refused(folder: Path, tmp_path: Path, rows: Any, message: str) -> None:
    with tfrkit.Writer(tmp_path / "new.tfrecord") as writer:
        for row in rows:
            writer.write(row)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(SchemaError, match=rf"do not fit the dataset: {message}.* - at .*new.tfrecord\n  see both"):
        append(folder, tmp_path / "new.tfrecord", split="train", in_place=True)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_records_that_are_no_examples_and_none_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "raw.tfrecord").write_bytes(write_frames([b"\xff\xfe raw"]))
    with pytest.raises(SchemaError, match="records expected example, got raw"):
        append(folder, tmp_path / "raw.tfrecord", split="train", in_place=True)
    (tmp_path / "empty.tfrecord").write_bytes(b"")
    with pytest.raises(StorageError, match="expected records to append, got none"):
        append(folder, tmp_path / "empty.tfrecord", split="train", in_place=True)


def test_classes_have_to_be_the_same(tmp_path: Path) -> None:
    def build(name: str, labels: list[int], classes: tuple[str, ...]) -> Path:
        schema = tfrkit.Schema({"label": tfrkit.Spec("int64", logical="class_label", classes=classes)})
        tfrkit.build([{"label": label} for label in labels], tmp_path / name, schema=schema)
        return tmp_path / name

    dataset = build("d", [0, 1], ("cat", "dog"))
    assert append(dataset, build("same", [1, 0], ("cat", "dog")), tmp_path / "both").added == 2
    with pytest.raises(SchemaError, match="class 0 of feature 'label' is 'dog' here and 'cat' in the other files"):
        append(dataset, build("other", [1, 0], ("dog", "cat")), in_place=True)
    with tfrkit.Writer(tmp_path / "out.tfrecord") as writer:
        writer.write({"label": 0})
        writer.write({"label": 2})
    with pytest.raises(SchemaError, match="expected a class id from 0 to 1, got 2 - at .*out.tfrecord, record 1"):
        append(dataset, tmp_path / "out.tfrecord", in_place=True)


def test_new_files_of_another_split_are_noted(folder: Path, tmp_path: Path) -> None:
    made = append(folder, write(tmp_path / "test.tfrecord", range(3)), tmp_path / "out", split="train")
    assert made.notes == ["records of split 'test' of the new files go to split 'train'"]
    assert os.path.exists(tmp_path / "out" / "d-train.tfrecord-00002-of-00003")
