from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfrkit.features.schema import Schema
from tfrkit.features.schema_json import to_json
from tfrkit.features.spec import Spec
from tfrkit.ops.stats.numbers import summarize_floats, summarize_ints
from tfrkit.ops.stats.splits import find_ks, find_total_variation
from tfrkit.ops.stats.stats import Stats
from tfrkit.sidecars.manifest import write_manifest
from tfrkit.testing.reference import encode_example, write_frames
from tfrkit.view.stats import stats


def write(path: Path, rows: list[dict[str, tuple[str, list[Any]]]]) -> None:
    records = [encode_example({name.encode(): value for name, value in row.items()}) for row in rows]
    path.write_bytes(write_frames(records))


def label_rows(counts: dict[int, int]) -> list[dict[str, tuple[str, list[Any]]]]:
    return [{"label": ("int64", [value])} for value, count in counts.items() for _ in range(count)]


def compare(found: Stats, feature: str, split: str) -> dict[str, Any]:
    assert found.comparison is not None
    chosen = next(one for one in found.comparison["features"] if one["name"] == feature)
    return next(one for one in chosen["splits"] if one["split"] == split)


# --- distances


def test_total_variation_is_half_of_what_shares_differ_by() -> None:
    assert find_total_variation({1: 10}, {1: 3})[0] == 0
    assert find_total_variation({1: 10}, {2: 3})[0] == 1
    assert find_total_variation({1: 6, 2: 2}, {1: 1, 3: 1})[0] == pytest.approx(0.5)


def test_chance_shrinks_with_the_number_of_values() -> None:
    few, many = (
        find_total_variation({1: 5, 2: 5}, {1: 5, 2: 5})[1],
        find_total_variation({1: 500, 2: 500}, {1: 500, 2: 500})[1],
    )
    assert many == pytest.approx(few / 10)


def test_ks_is_the_most_that_shares_up_to_a_point_differ() -> None:
    one, other = summarize_ints(np.array([1, 2, 3, 4])), summarize_ints(np.array([3, 4, 5, 6]))
    assert find_ks(one, one)[0] == 0
    assert find_ks(one, other)[0] == find_ks(other, one)[0] == 0.5


def test_ks_of_samples_of_one_distribution_is_within_chance() -> None:
    random = np.random.default_rng(0)
    parts = [summarize_floats(random.normal(size=20_000).astype(np.float32)) for _ in range(2)]
    distance, chance = find_ks(*parts)
    assert distance < chance < 0.02


# --- splits


def test_classes_are_counted_in_each_split_with_their_names(tmp_path: Path) -> None:
    write(tmp_path / "train.tfrecord", label_rows({0: 6, 1: 2}))
    write(tmp_path / "test.tfrecord", label_rows({0: 1, 2: 1}))
    (tmp_path / "classes.txt").write_text("0:cat\n1:dog\n2:cow\n3:elk\n")
    found = stats(tmp_path)
    assert [(split["name"], split["files"], split["records"]) for split in found.splits] == [
        ("test", 1, 2),
        ("train", 1, 8),
    ]
    (classes,) = found.classes
    assert (classes["feature"], classes["num_classes"], classes["largest_to_smallest"]) == ("label", 3, 7)
    assert classes["unused"] == [{"value": 3, "name": "elk"}]
    cat, dog, cow = classes["classes"]
    assert (cat["name"], cat["count"], cat["share"]) == ("cat", 7, 0.7)
    assert cat["splits"] == {"test": {"count": 1, "share": 0.5}, "train": {"count": 6, "share": 0.75}}
    assert (dog["name"], dog["splits"]["test"]["count"]) == ("dog", 0)
    assert (cow["value"], cow["name"]) == (2, "cow")


def test_class_names_of_features_json_are_used_for_their_feature_only(tmp_path: Path) -> None:
    write(
        tmp_path / "d-train.tfrecord-00000-of-00001",
        [{"a": ("int64", [n % 2]), "y": ("int64", [n % 2])} for n in range(4)],
    )
    core = "tensorflow_datasets.core.features"
    label = {"pythonClassName": f"{core}.class_label_feature.ClassLabel", "classLabel": {"numClasses": "2"}}
    other = {
        "pythonClassName": f"{core}.tensor_feature.Tensor",
        "tensor": {"shape": {}, "dtype": "int64", "encoding": "none"},
    }
    content = {
        "pythonClassName": f"{core}.features_dict.FeaturesDict",
        "featuresDict": {"features": {"a": label, "y": other}},
    }
    (tmp_path / "features.json").write_text(json.dumps(content))
    (tmp_path / "a.labels.txt").write_text("no\nyes\n")
    a, y = stats(tmp_path).classes
    assert [one["name"] for one in a["classes"]] == ["no", "yes"]
    assert [one["name"] for one in y["classes"]] == [None, None]


def test_class_names_of_the_manifest_are_used(tmp_path: Path) -> None:
    write(tmp_path / "x.tfrecord", label_rows({0: 1, 1: 1}))
    schema = to_json(Schema({"label": Spec("int64", logical="class_label", classes=("cat", "dog"))}))
    write_manifest(str(tmp_path / "tfrkit.json"), {"shards": [{"name": "x.tfrecord"}], "schema": schema})
    (classes,) = stats(tmp_path).classes
    assert [one["name"] for one in classes["classes"]] == ["cat", "dog"]


def test_damaged_class_names_are_noted_and_not_used(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", label_rows({0: 2}))
    (tmp_path / "classes.txt").write_text("0:a\n5:b\n")
    found = stats(tmp_path)
    assert found.classes[0]["classes"][0]["name"] is None
    assert "class names were not used, class ids expected without gaps" in found.notes[0]


def test_text_labels_are_classes_and_ids_are_not(tmp_path: Path) -> None:
    rows = [
        {
            "label": ("bytes", [[b"cat", b"dog"][number % 2]]),
            "label/id": ("bytes", [b"%d" % number]),
            "caption": ("bytes", [b"same"]),
        }
        for number in range(10)
    ]
    write(tmp_path / "a.tfrecord", rows)
    (classes,) = stats(tmp_path).classes
    assert classes["feature"] == "label"
    assert [(one["value"], one["count"]) for one in classes["classes"]] == [("cat", 5), ("dog", 5)]


def test_split_with_other_classes_is_flagged(tmp_path: Path) -> None:
    write(tmp_path / "train.tfrecord", label_rows({0: 500, 1: 500}))
    write(tmp_path / "test.tfrecord", label_rows({0: 90, 1: 10}))
    write(tmp_path / "val.tfrecord", label_rows({0: 52, 1: 48}))
    found = stats(tmp_path)
    assert (found.comparison["reference"], found.comparison["flagged"]) == ("train", 1)
    test, val = compare(found, "label", "test"), compare(found, "label", "val")
    assert (test["flagged"], test["distance"], test["mean"]) == (True, pytest.approx(0.4), pytest.approx(0.1))
    assert test["why"] == "total variation 0.40"
    assert (val["flagged"], val["why"]) == (False, None)


def test_small_split_is_not_flagged_for_what_chance_explains(tmp_path: Path) -> None:
    write(tmp_path / "train.tfrecord", label_rows(dict.fromkeys(range(10), 100)))
    write(tmp_path / "test.tfrecord", label_rows(dict.fromkeys(range(5), 1)))
    assert compare(stats(tmp_path), "label", "test")["distance"] == pytest.approx(0.5)
    assert stats(tmp_path).comparison["flagged"] == 0


def test_numbers_that_moved_are_flagged(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for name, mean in (("train", 0.0), ("test", 1.0)):
        write(tmp_path / f"{name}.tfrecord", [{"x": ("float", [float(random.normal(mean))])} for _ in range(500)])
    found = compare(stats(tmp_path), "x", "test")
    assert found["flagged"]
    assert found["why"].startswith("Kolmogorov-Smirnov 0.")
    assert found["distance"] == pytest.approx(0.38, abs=0.06)


def test_feature_that_a_split_lacks_is_flagged(tmp_path: Path) -> None:
    write(tmp_path / "train.tfrecord", [{"a": ("int64", [1]), "b": ("int64", [1])}] * 50)
    write(tmp_path / "test.tfrecord", [{"a": ("int64", [1])}] * 50)
    found = compare(stats(tmp_path), "b", "test")
    assert (found["share"], found["flagged"]) == (0.0, True)
    assert found["why"] == "type none, int64 in train; present in 0%, 100% in train"


def test_one_split_is_compared_with_nothing(tmp_path: Path) -> None:
    write(tmp_path / "train.tfrecord", label_rows({0: 3}))
    (tmp_path / "test.tfrecord").write_bytes(b"")
    assert stats(tmp_path).comparison is None
