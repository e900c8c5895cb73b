from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tfrkit.build.plan import BuildPlan, describe_inputs, digest_shards, make_shards
from tfrkit.build.splits import Assignment, assign_splits, group_by_pattern, order_split
from tfrkit.codec.columns import BytesColumn
from tfrkit.errors import SourceError
from tfrkit.outputs.sizes import ShardSizes
from tfrkit.outputs.target import name_dataset
from tfrkit.sources.base import Items, ItemsBuilder


def make_items(keys, labels=None, **options) -> Items:
    builder = ItemsBuilder(**options)
    for number, key in enumerate(keys):
        builder.add(key, nbytes=number + 1, label=-1 if labels is None else labels[number])
    return builder.build()


ITEMS = make_items([f"{n:03d}.png" for n in range(100)], [n % 4 for n in range(100)])


def cut(splits, sizes=None, **changes):
    options = {"name": "d", "single_file": None, "seed": 0, "order": "source", "estimate": {}, **changes}
    return make_shards(Assignment(splits), sizes or ShardSizes(), **options)


# --- splits


def sizes(assignment):
    return {name: len(numbers) for name, numbers in assignment.splits.items()}


def test_count_leaves_the_rest_to_train():
    assert sizes(assign_splits(ITEMS, {"test": 30}, seed=0)) == {"train": 70, "test": 30}


def test_ratio_leaves_the_rest_to_train():
    assert sizes(assign_splits(ITEMS, {"val": 0.1, "test": 0.2}, seed=0)) == {"train": 70, "val": 10, "test": 20}


def test_ratios_that_take_all_leave_no_train():
    assert sizes(assign_splits(ITEMS, {"a": 0.5, "b": 0.5}, seed=0)) == {"a": 50, "b": 50}


def test_splits_are_disjoint_exhaustive_and_ascending():
    parts = assign_splits(ITEMS, {"train": 0.6, "val": 0.2, "test": 0.2}, seed=3).splits
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(100))
    assert all((np.diff(numbers) > 0).all() for numbers in parts.values())


def test_seed_decides_the_split_of_each_record():
    parts = [assign_splits(ITEMS, {"test": 10}, seed=seed).splits["test"].tolist() for seed in (0, 0, 1)]
    assert parts[0] == parts[1] != parts[2]


PINNED_TEST = [2, 9, 19, 26, 40, 79]
PINNED_ORDER = [6, 2, 8, 1, 7, 5, 4, 3, 0, 9]


def test_membership_is_pinned():
    """Split membership is pinned: a change breaks existing datasets."""
    assert assign_splits(ITEMS, {"test": 6}, seed=0).splits["test"].tolist() == PINNED_TEST
    assert order_split("train", np.arange(10), 0).tolist() == PINNED_ORDER


def test_stratified_splits_hold_each_class_alike():
    parts = assign_splits(ITEMS, {"test": 0.2}, seed=0, stratify=True).splits
    assert np.bincount(ITEMS.labels[parts["test"]]).tolist() == [5, 5, 5, 5]


def test_stratify_without_classes_raises():
    with pytest.raises(ValueError, match="stratify expected a source with one class per record"):
        assign_splits(make_items("ab"), {"test": 1}, seed=0, stratify=True)


def test_groups_stay_together():
    items = make_items([f"p{n // 5}_{n}.png" for n in range(50)])
    groups, problems = group_by_pattern(items, r"^(p\d+)")
    assert problems == []
    parts = assign_splits(items, {"test": 0.2}, seed=0, groups=groups).splits
    assert set(groups[parts["train"]]) & set(groups[parts["test"]]) == set()


def test_group_that_does_not_match_is_a_problem_that_blocks():
    _, problems = group_by_pattern(make_items(["a1", "b"]), r"\d")
    assert [(p.key, p.blocking) for p in problems] == [("b", True)]


def test_group_that_is_no_regular_expression_raises():
    with pytest.raises(ValueError, match="group expected a regular expression"):
        group_by_pattern(ITEMS, "(")


def test_list_file_names_a_split_by_path_name_or_stem(tmp_path):
    (tmp_path / "test.txt").write_text("003.png\n007\n\n")
    found = assign_splits(ITEMS, {"test": str(tmp_path / "test.txt")}, seed=0)
    assert found.splits["test"].tolist() == [3, 7]
    assert len(found.splits["train"]) == 98


def test_lists_of_all_splits_leave_out_the_rest_with_a_note(tmp_path):
    (tmp_path / "a.txt").write_text("003\n")
    (tmp_path / "b.txt").write_text("004\n")
    found = assign_splits(ITEMS, {"train": str(tmp_path / "a.txt"), "test": str(tmp_path / "b.txt")}, seed=0)
    assert sizes(found) == {"train": 1, "test": 1}
    assert (found.num_left_out, found.notes) == (98, ["98 found files are in no list and were left out"])


def test_unmatched_names_in_a_list_are_all_problems(tmp_path):
    (tmp_path / "t.txt").write_text("nobody\n003\n003\nelse\n")
    found = assign_splits(ITEMS, {"test": str(tmp_path / "t.txt")}, seed=0)
    assert [(p.key, p.reason.split(" - ")[0]) for p in found.problems] == [
        ("nobody", "matches no file that was found"),
        ("003", "is in split 'test' and in 'test'"),
        ("else", "matches no file that was found"),
    ]
    assert all(p.blocking for p in found.problems)


def test_missing_list_raises():
    with pytest.raises(SourceError, match="expected a ratio, a count or a list of names, got 'nowhere.txt'"):
        assign_splits(ITEMS, {"test": "nowhere.txt"}, seed=0)


def test_splits_of_the_source_are_taken():
    builder = ItemsBuilder(split_names=("train", "val"))
    for key, split in (("a", 0), ("b", 1), ("c", -1)):
        builder.add(key, split=split)
    found = assign_splits(builder.build(), None, seed=0)
    assert {name: numbers.tolist() for name, numbers in found.splits.items()} == {"train": [0], "val": [1]}
    assert found.notes == ["1 found files are in no split and were left out"]
    with pytest.raises(ValueError, match="splits expected from one place, got test in addition to those of the source"):
        assign_splits(builder.build(), {"test": 1}, seed=0)


def test_split_name_that_no_file_name_holds_raises():
    with pytest.raises(ValueError, match="split name expected letters, digits and _, got 'a/b'"):
        assign_splits(ITEMS, {"a/b": 1}, seed=0)


def test_requesting_too_many_records_raises():
    with pytest.raises(ValueError, match="parts ask for 500 records, there are 100"):
        assign_splits(ITEMS, {"test": 500}, seed=0)


# --- shards


def test_shards_are_named_as_tfds_names_them_and_near_equal():
    shards = cut({"train": np.arange(10), "test": np.arange(10, 12)}, ShardSizes(3))
    assert [(shard.name, len(shard.numbers)) for shard in shards] == [
        ("d-train.tfrecord-00000-of-00003", 3),
        ("d-train.tfrecord-00001-of-00003", 3),
        ("d-train.tfrecord-00002-of-00003", 4),
        ("d-test.tfrecord-00000-of-00002", 1),
        ("d-test.tfrecord-00001-of-00002", 1),
    ]


def test_shards_a_split_each_its_own_number():
    shards = cut({"train": np.arange(10), "test": np.arange(10)}, ShardSizes({"train": 2, "test": 1}))
    assert [shard.split for shard in shards] == ["train", "train", "test"]


def test_shard_size_decides_the_number_by_the_estimate():
    shards = cut({"train": np.arange(100)}, ShardSizes(nbytes=1000), estimate={"train": 3500.0})
    assert len(shards) == 4


def test_small_splits_are_one_shard_by_default():
    assert len(cut({"train": np.arange(100)}, estimate={"train": 5e6})) == 1
    assert len(cut({"train": np.arange(100)}, estimate={"train": 1e9})) == 4


def test_seeded_order_mixes_and_loses_nothing():
    (shard,) = cut({"train": np.arange(50)}, order="seeded")
    assert shard.numbers.tolist() != list(range(50))
    assert sorted(shard.numbers.tolist()) == list(range(50))


def test_single_file_has_one_shard_of_its_name():
    (shard,) = cut({"train": np.arange(5)}, single_file="x.tfrecord")
    assert shard.name == "x.tfrecord"


def test_single_file_with_two_splits_raises():
    with pytest.raises(ValueError, match="one output file has one split, got train, test"):
        cut({"train": np.arange(5), "test": np.arange(5)}, single_file="x.tfrecord")


def test_single_file_with_many_shards_raises():
    with pytest.raises(ValueError, match="one output file is one shard, got 3"):
        cut({"train": np.arange(5)}, ShardSizes(3), single_file="x.tfrecord")


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (ShardSizes(0), "shards expected a number from 1 up, got 0"),
        (ShardSizes({"tset": 1}), "shards expected one of the splits train, got 'tset'"),
        (ShardSizes(2, 100), "shards expected a number or a size, got both"),
        (ShardSizes(nbytes=0), "shard size expected from 1 byte up, got 0"),
    ],
)
def test_invalid_shard_options_raise(sizes, message):
    with pytest.raises(ValueError, match=message):
        cut({"train": np.arange(5)}, sizes)


# --- descriptions


def test_hash_depends_on_the_description_and_not_on_its_order():
    assert (
        BuildPlan((), {"a": 1, "b": 2}).hash
        == BuildPlan((), {"b": 2, "a": 1}).hash
        != BuildPlan((), {"a": 1, "b": 3}).hash
    )


def test_inputs_are_described_by_name_and_size_not_by_time():
    first, second = ItemsBuilder(), ItemsBuilder()
    first.add("a", nbytes=1, stamp=5)
    second.add("a", nbytes=1, stamp=6)
    assert describe_inputs(first.build()) == describe_inputs(second.build())
    second.add("b", nbytes=1)
    assert describe_inputs(first.build()) != describe_inputs(second.build())


def test_data_counts_as_an_input_unless_it_follows_from_the_names():
    named, data = make_items(["a", "b"]), BytesColumn.from_values([b"x", b"y"])
    assert describe_inputs(replace(named, data=data)) != describe_inputs(named)
    assert describe_inputs(replace(named, data=data, is_data_derived=True)) == describe_inputs(named)


def test_digest_of_shards_depends_on_their_order():
    assert digest_shards(cut({"a": np.array([0, 1])})) != digest_shards(cut({"a": np.array([1, 0])}))


@pytest.mark.parametrize(
    ("out", "name"),
    [("captcha", "captcha"), ("a/b-c.d/", "b_c_d"), ("2007", "data_2007"), ("验证码", "data"), ("_x_", "x")],
)
def test_dataset_is_named_by_its_folder_as_tfds_allows(out, name):
    assert name_dataset(out) == name


def test_more_shards_than_five_digits_can_name_have_six():
    shards = cut({"train": np.arange(100_000)}, ShardSizes(100_000))
    assert shards[0].name == "d-train.tfrecord-000000-of-100000"
    assert shards[-1].name == "d-train.tfrecord-099999-of-100000"
