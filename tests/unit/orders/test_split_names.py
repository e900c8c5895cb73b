"""Splits by the names of shards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tfrkit.orders.split_names import find_nearest_split, find_splits, read_split_lengths

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], {}),
        (["data.tfrecord"], {}),
        (["train.tfrecord"], {"train": [0]}),
        (["captcha_train.tfrecords", "captcha_test.tfrecords"], {"train": [0], "test": [1]}),
        (["train_0001.tfrecord", "train_0002.tfrecord", "val_0001.tfrecord"], {"train": [0, 1], "val": [2]}),
        (
            ["train-00000-of-00002", "validation-00000-of-00001", "train-00001-of-00002"],
            {"train": [0, 2], "validation": [1]},
        ),
        (["a-test.tfrecord-00000-of-00001", "a-train.tfrecord-00000-of-00001"], {"test": [0], "train": [1]}),
        (["train-test.tfrecord-00000-of-00001"], {"test": [0]}),  # TFDS: the dataset is called "train"
        (["my-own-train.tfrecord-00000-of-00001"], {"train": [0]}),
        (["/data/x/train/part-0.tfrecord", "/data/x/test/part-0.tfrecord"], {"train": [0], "test": [1]}),
        (["x/train/2024/a.tfrecord", "x/dev/2024/a.tfrecord"], {"train": [0], "dev": [1]}),
        (["s3://bucket/train/a.tfrecord", "s3://bucket/train/b.tfrecord"], {"train": [0, 1]}),
        (["C:\\data\\VAL\\a.tfrecord", "C:\\data\\Train\\a.tfrecord"], {"val": [0], "train": [1]}),
        (["x/Split-eval/data_tfrecord-00000-of-00012.gz"], {"eval": [0]}),  # as TFX names folders
        (["coco_train2017.record", "coco_val2017.record"], {"train": [0], "val": [1]}),
        (["train2017/a.record", "val2017/a.record"], {"train": [0], "val": [1]}),
        (["TRAIN.tfrecord", "Test.TFRECORD"], {"train": [0], "test": [1]}),
        (["training.tfr", "testing.tfr", "valid.tfr"], {"training": [0], "testing": [1], "valid": [2]}),
        (["train.tfrecord", "discarded-00000-of-00001"], {"train": [0]}),
        # Only whole words count.
        (["pretrain.tfrecord", "latest.tfrecord", "contest.tfrecord", "evaluation.tfrecord"], {}),
        # Folders above the dataset do not name splits.
        (["/home/test/data/a.tfrecord", "/home/test/data/b.tfrecord"], {}),
        (["/home/me/my_test_data/a.tfrecord"], {}),
        (["x/bal_train/a.tfrecord", "x/unbal_train/a.tfrecord"], {}),
        # Two words: the one that differs between shards.
        (["test_train.tfrecord", "test_val.tfrecord"], {"train": [0], "val": [1]}),
        (["train_test.tfrecord"], {}),
        (["train_val.tfrecord", "test.tfrecord"], {"test": [1]}),
        # The file name comes before the folder.
        (["train/test.tfrecord", "train/train.tfrecord"], {"test": [0], "train": [1]}),
    ],
)
def test_splits_are_derived_from_names(names: list[str], expected: dict[str, list[int]]) -> None:
    found = find_splits(names)
    assert found == expected
    assert list(found) == list(expected)


@pytest.mark.parametrize(
    ("names", "known", "expected"),
    [
        (["d-full.tfrecord-00000-of-00001"], ["full"], {"full": [0]}),
        (["d-train.tfrecord-00000-of-00001", "d-train_extra.tfrecord-00000-of-00001"], ["train"], {"train": [0]}),
        (
            ["d-train_extra.tfrecord-00000-of-00001", "d-train.tfrecord-00000-of-00001"],
            ["train", "train_extra"],
            {"train": [1], "train_extra": [0]},
        ),
        (["own-data-train.tfrecord-00000-of-00001"], ["train"], {"train": [0]}),
        (["d-train-extra.tfrecord-00000-of-00001"], ["train-extra", "extra"], {"train-extra": [0]}),
        (["run_test_iid.tfrecords", "run_test.tfrecords"], ["test", "test_iid"], {"test": [1], "test_iid": [0]}),
        (["full/a.tfrecord", "Split-rest/a.tfrecord"], ["rest", "full"], {"rest": [1], "full": [0]}),
        (["train.tfrecord"], ["full"], {}),
    ],
)
def test_known_names_are_the_only_ones_and_give_the_order(
    names: list[str], known: list[str], expected: dict[str, list[int]]
) -> None:
    found = find_splits(names, known)
    assert found == expected
    assert list(found) == list(expected)


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"splits": [{"name": "train", "shardLengths": ["3", "4"]}, {"name": "test"}]}, {"train": [3, 4], "test": []}),
        ({"splits": [{"name": "train", "shardLengths": ["3", "many"]}]}, {"train": []}),
        ({"splits": [{"name": "train", "shardLengths": {"0": 3}}]}, {"train": []}),
        ({"splits": []}, {}),
        ({}, {}),
        ({"splits": "train"}, {}),
        ({"splits": ["train", {"name": 5}, {"name": "a", "shardLengths": [1]}]}, {"a": [1]}),
    ],
)
def test_dataset_info_gives_lengths_of_shards(info: dict[str, Any], expected: dict[str, list[int]]) -> None:
    assert read_split_lengths(info) == expected


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("trian", ["test", "train"], "train"),
        ("validation", ["train", "val"], "val"),
        ("dev", ["train", "validation"], "validation"),
        ("Train", ["test", "train"], "train"),
        ("train", ["TRAIN"], "TRAIN"),
        ("zebra", ["train", "val"], None),
        ("train", [], None),
    ],
)
def test_nearest_name_is_the_one_meant(name: str, known: list[str], expected: str | None) -> None:
    assert find_nearest_split(name, known) == expected


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus beside the checkout")
@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("google+tensorflow-recorder/tfrecorder/test_data/sample_tfrecords", {"test": 1, "train": 1, "validation": 1}),
        ("google+trax/trax/data/testdata/c4/en/2.3.0", {"train": 1, "validation": 1}),
        ("octo-models+octo/tests/debug_dataset/bridge_dataset/1.0.0", {"val": 1}),
        ("spotify+spotify-tensorflow/tests/resources/tf-test-resource/tf-records-iris", {"train": 3}),
        ("openvinotoolkit+datumaro/tests/assets/roboflow_dataset/tfrecord", {"train": 1, "val": 1}),
        ("evopen+captcha_recognize/@4cefdd9d/data", {"train": 1, "valid": 1}),
        ("tensorflow+tfx/tfx/components/testdata/penguin/data", {"train": 1}),
        ("pwnall+tfrecord", {}),
    ],
)
def test_corpus_folder_says_these_splits(folder: str, expected: dict[str, int]) -> None:
    files = sorted(path for path in (CORPUS / folder).rglob("*") if path.is_file())
    shards = [str(path) for path in files if ".record" in path.name or "tfrecord" in path.name]
    found = find_splits(shards)
    assert {name: len(numbers) for name, numbers in found.items()} == expected
    info = CORPUS / folder / "dataset_info.json"
    if info.exists():
        lengths = read_split_lengths(json.loads(info.read_text()))
        assert find_splits(shards, list(lengths)) == found


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["train-00000-of-00001", "train_extra-00000-of-00001"], {"train": [0], "train_extra": [1]}),
        (
            ["x-train.tfrecord", "x-train_hard.tfrecord", "x-test.tfrecord"],
            {"train": [0], "train_hard": [1], "test": [2]},
        ),
        (["train_flowers.tfrecord", "test_flowers.tfrecord"], {"train": [0], "test": [1]}),
        (["train.tfrecord", "train_1.tfrecord"], {"train": [0, 1]}),
        (["my_train.tfrecord", "train.tfrecord"], {"train": [0, 1]}),
    ],
)
def test_suffixed_split_is_separate_only_next_to_the_plain_one(names: list[str], splits: dict[str, list[int]]) -> None:
    assert find_splits(names) == splits
