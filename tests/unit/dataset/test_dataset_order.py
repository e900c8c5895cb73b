"""Rows and their order: methods that return a new Dataset."""

from __future__ import annotations

import functools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit
from tfrkit.errors import FeatureKindError, QueryError, SchemaError, ShapeError

NUM_ROWS = 120


def write(path: Path, numbers: Any, compression: Any = "none") -> None:
    with tfrkit.Writer(path, compression=compression) as writer:
        for number in numbers:
            labels = {"label": f"class {number % 3}", "patient": number // 4}
            writer.write({"id": number, **labels, "tokens": np.arange(number % 6)})


@pytest.fixture
def ds(tmp_path: Path) -> tfrkit.Dataset:
    write(tmp_path / "a.tfrecord", range(50))
    write(tmp_path / "b.tfrecord.gz", range(50, NUM_ROWS), "gzip")
    return tfrkit.open(tmp_path)


def ids(rows: Any) -> list[int]:
    return [row["id"] for row in rows]


def test_split_is_disjoint_exhaustive_exact_and_repeatable(ds: tfrkit.Dataset) -> None:
    parts = ds.split({"train": 0.6, "val": 0.2, "test": 0.2}, seed=0)
    assert [len(part) for part in parts] == [72, 24, 24]
    assert sorted(sum(map(ids, parts), [])) == list(range(NUM_ROWS))
    again = ds.split({"train": 0.6, "val": 0.2, "test": 0.2}, seed=0)
    assert [ids(part) for part in again] == [ids(part) for part in parts]
    other = ds.split({"train": 0.6, "val": 0.2, "test": 0.2}, seed=1)
    assert ids(other[0]) != ids(parts[0])


def test_split_of_a_split_stays_inside_it(ds: tfrkit.Dataset) -> None:
    train, _ = ds.split({"train": 0.5, "test": 0.5})
    inner, rest = train.split({"inner": 10, "rest": None})
    assert sorted(ids(inner) + ids(rest)) == sorted(ids(train))


def test_split_by_a_feature_keeps_shares_and_groups(ds: tfrkit.Dataset) -> None:
    train, test = ds.split({"train": 0.9, "test": 0.1}, stratify="label")
    assert [sum(row["label"] == b"class %d" % c for row in test) for c in range(3)] == [4, 4, 4]
    parts = ds.split({"train": 0.9, "test": 0.1}, group="patient")
    train, test = parts
    assert parts.notes[0] == "no patient is in two parts: train 27, test 3"
    assert parts["test"] is test
    assert not {row["patient"] for row in train} & {row["patient"] for row in test}
    assert len(test) == 12
    train, test = ds.split({"train": 0.9, "test": 0.1}, stratify="label", group="patient", seed=0)
    assert not {row["patient"] for row in train} & {row["patient"] for row in test}


def test_hashed_split_keeps_old_rows_where_they_are(tmp_path: Path) -> None:
    write(tmp_path / "s.tfrecord", range(60))
    before = ids(tfrkit.open(tmp_path).split({"train": 0.5, "test": 0.5}, hash_by="id")[1])
    write(tmp_path / "t.tfrecord", range(60, 100))
    after = ids(tfrkit.open(tmp_path).split({"train": 0.5, "test": 0.5}, hash_by="id")[1])
    assert [number for number in after if number < 60] == before
    assert len(after) > len(before)


def test_hash_by_with_another_rule_raises(ds: tfrkit.Dataset) -> None:
    with pytest.raises(ValueError, match="a split by hash cannot be stratified or keep groups together"):
        ds.split({"a": 0.5, "b": 0.5}, hash_by="id", stratify="label")


def test_split_by_a_feature_that_is_missing_or_a_float_is_explained(tmp_path: Path) -> None:
    with tfrkit.Writer(tmp_path / "x.tfrecord") as writer:
        for number in range(20):
            row: Any = {"id": number, "weight": number / 2}
            writer.write(row if number in (7, 9) else row | {"rare": number, "name": b"x"})
    ds = tfrkit.open(tmp_path / "x.tfrecord")
    parts = {"a": 0.5, "b": 0.5}
    for name in ("rare", "name"):
        missing = rf"feature '{name}' expected one value in every record, it is missing in 2 of 20 - at record 7\n"
        with pytest.raises(ShapeError, match=missing):
            ds.split(parts, stratify=name)
        with pytest.raises(ShapeError, match=missing):
            ds.split(parts, group=name)
        with pytest.raises(ShapeError, match=missing):
            ds.by(name, 3)
    for option in ("stratify", "group", "hash_by"):
        with pytest.raises(FeatureKindError, match="^feature 'weight' expected integers or bytes, got floats - at "):
            ds.split(parts, **{option: "weight"})  # type: ignore[arg-type]
    for option in ("stratify", "group"):
        with pytest.raises(FeatureKindError, match="^feature 'weight' expected integers or bytes, got floats - at "):
            ds.folds(2, **{option: "weight"})  # type: ignore[arg-type]  # the name is known only at run time


def test_feature_with_several_values_cannot_decide_a_split(ds: tfrkit.Dataset) -> None:
    with pytest.raises(ShapeError, match="feature 'tokens' expected one value in every record"):
        ds.split({"a": 0.5, "b": 0.5}, stratify="tokens")
    with pytest.raises(SchemaError, match="no feature 'lable', did you mean 'label'"):
        ds.split({"a": 0.5, "b": 0.5}, stratify="lable")


def test_folds_hold_out_every_row_once(ds: tfrkit.Dataset) -> None:
    folds = ds.folds(5, seed=0)
    assert sorted(sum((ids(fold.test) for fold in folds), [])) == list(range(NUM_ROWS))
    for train, test in folds:
        assert sorted(ids(train) + ids(test)) == list(range(NUM_ROWS))
    by_patient = ds.folds(3, group="patient")
    assert not {row["patient"] for row in by_patient[0].train} & {row["patient"] for row in by_patient[0].test}


def test_named_splits_are_sliced_as_tfds_does(tmp_path: Path) -> None:
    write(tmp_path / "captcha-train.tfrecord-00000-of-00002", range(30))
    write(tmp_path / "captcha-train.tfrecord-00001-of-00002", range(30, 40))
    write(tmp_path / "captcha-test.tfrecord-00000-of-00001", range(40, 50))
    ds = tfrkit.open(tmp_path)
    assert ds.splits == {"train": 40, "test": 10}
    assert ids(ds["train[:75%]"]) == list(range(30))
    assert ids(ds["train[10:12]+test[-1:]"]) == [10, 11, 49]
    assert sorted(ids(ds["all"])) == list(range(50))
    assert ids(ds["train"].shuffle(seed=1).take(40)) != list(range(40))
    with pytest.raises(QueryError, match="unknown split 'trian', there are 'test', 'train'"):
        ds["trian"]
    with pytest.raises(
        TypeError, match="splits are of whole files, got 'train' for a dataset that was cut or shuffled"
    ):
        ds.shuffle()["train"]


def test_shards_of_a_split_that_stand_side_by_side_are_one_slice(tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path / f"d-test.tfrecord-{number:05d}-of-00004", range(10 * number, 10 * number + 10))
    write(tmp_path / "e-train.tfrecord", range(40, 45))
    write(tmp_path / "f-test.tfrecord", range(45, 50))
    ds = tfrkit.open(tmp_path)
    assert ids(ds["test"]) == [*range(40), *range(45, 50)]
    assert ids(ds["train"]) == list(range(40, 45))
    assert str(ds["test"]._get_order().describe()).count("'whole'") == 2


def test_files_without_splits_raise(tmp_path: Path) -> None:
    write(tmp_path / "photos.tfrecord", range(3))
    ds = tfrkit.open(tmp_path / "photos.tfrecord")
    assert ds.splits == {}
    with pytest.raises(
        QueryError, match=r"the files have no splits, got 'train' - at .*\n  split the dataset instead: ds"
    ):
        ds["train"]


def test_take_skip_and_repeat(ds: tfrkit.Dataset) -> None:
    assert ids(ds.take(3)) == [0, 1, 2]
    assert ids(ds.skip(117)) == [117, 118, 119]
    assert (len(ds.take(1000)), len(ds.skip(1000)), len(ds.take(0))) == (NUM_ROWS, 0, 0)
    assert ids(ds.skip(3).take(2)) == [3, 4]
    assert ids(ds.take(2).repeat(3)) == [0, 1] * 3
    shuffled = ds.shuffle(seed=1).repeat(2)
    assert ids(shuffled)[:NUM_ROWS] == ids(ds.shuffle(seed=1))
    assert ids(shuffled)[NUM_ROWS:] == ids(ds.shuffle(seed=1, epoch=1))


def test_endless_repeat_has_no_length_and_can_be_taken_from(ds: tfrkit.Dataset) -> None:
    endless = ds.take(7).shuffle(seed=1).repeat()
    with pytest.raises(TypeError, match="a dataset that repeats without end has no length"):
        len(endless)
    assert sorted(ids(endless.take(21))) == sorted(list(range(7)) * 3)
    assert len(endless.take(21)) == 21
    batches = iter(endless.batch(5))
    assert sorted(sum((next(batches)["id"].tolist() for _ in range(7)), [])) == sorted(list(range(7)) * 5)
    with pytest.raises(ValueError, match="no rows to repeat without end"):
        ds.take(0).repeat()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ds: ds.take(-1), "expected a number of rows of 0 or more, got -1"),
        (lambda ds: ds.repeat(0), "times expected at least 1, got 0"),
        (lambda ds: ds.shuffle(window=0), "window expected at least 1, got 0"),
        (lambda ds: ds.shuffle(window=9, block=0), "block expected at least 1, got 0"),
        (lambda ds: ds.shuffle(block=3), "block goes with window"),
        (lambda ds: ds.map(dict).select(["id"]), "select comes before decode and map"),
    ],
)
def test_wrong_arguments_raise(ds: tfrkit.Dataset, call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(ds)


def test_rows_of_an_order_are_picked_by_position(ds: tfrkit.Dataset) -> None:
    shuffled = ds.shuffle(seed=5)
    order = ids(shuffled)
    assert shuffled[3]["id"] == order[3]
    assert shuffled[-1]["id"] == order[-1]
    assert ids(shuffled[10:20:3]) == order[10:20:3]
    assert ids(shuffled[[5, -2, 0]]) == [order[5], order[-2], order[0]]
    with pytest.raises(IndexError, match="record 120 of 120"):
        shuffled[120]
    with pytest.raises(IndexError, match="record -121 of 120"):
        shuffled[[0, -121]]


def test_rows_are_found_by_key(ds: tfrkit.Dataset) -> None:
    assert ds.by("id", 77)["id"] == 77
    assert ds.shuffle(seed=1).by("id", 77)["id"] == 77
    with pytest.raises(KeyError, match="no record with id = 500 among 120"):
        ds.by("id", 500)
    with pytest.raises(KeyError, match="4 records with patient = 3, expected one: 12, 13, 14, …"):
        ds.by("patient", 3)
    with pytest.raises(KeyError, match="40 records with label = 'class 1', expected one"):
        ds.by("label", "class 1")
    part = ds.take(10)
    with pytest.raises(KeyError, match="no record with id = 77 among 10"):
        part.by("id", 77)


def test_filter_keeps_positions_only(ds: tfrkit.Dataset) -> None:
    kept = ds.filter(lambda row: row["id"] % 10 == 3)
    assert ids(kept) == list(range(3, NUM_ROWS, 10))
    assert ids(ds.filter(lambda row: set(row) == {"label"} and row["label"] == b"class 0", features=["label"])) == list(
        range(0, NUM_ROWS, 3)
    )
    assert len(kept.filter(lambda row: row["id"] > 50)) == 7
    assert next(iter(kept.batch(5)))["id"].tolist() == [3, 13, 23, 33, 43]


def test_filter_takes_what_counts_as_true(ds: tfrkit.Dataset) -> None:
    assert ids(ds.filter(lambda row: row["id"] % 2)) == list(range(1, NUM_ROWS, 2))
    assert ids(ds.filter(lambda row: np.array([row["id"] < 2]))) == [0, 1]
    assert len(ds.filter(lambda row: row["label"])) == NUM_ROWS
    said = r"filter expected to return True or False, got None - at .*, record 7, .*\n  is a return statement missing\?"
    with pytest.raises(tfrkit.TfrkitError, match=said):
        ds.filter(lambda row: None if row["id"] == 7 else True)
    with pytest.raises(tfrkit.TfrkitError, match=r"expected to return True or False, got an array of shape \(2,\)"):
        ds.filter(lambda row: np.array([True, False]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ds: ds.batch("a"), "size expected a whole number, got 'a'"),
        (lambda ds: ds.batch(4.0), "size expected a whole number, got 4.0"),
        (lambda ds: ds.batch(True), "size expected a whole number, got True"),
        (lambda ds: ds.batch(4, threads="2"), "threads expected a whole number, got '2'"),
        (lambda ds: ds.batch(max_tokens=1.5, bucket="id"), "max_tokens expected a whole number, got 1.5"),
        (lambda ds: ds.take("3"), "count expected a whole number, got '3'"),
        (lambda ds: ds.shuffle("a"), "seed expected a whole number, got 'a'"),
        (lambda ds: ds.shuffle(0, window=1.5), "window expected a whole number, got 1.5"),
        (lambda ds: ds.repeat(2.0), "times expected a whole number, got 2.0"),
        (lambda ds: ds.map(3), "map expected a function, got 3"),
        (lambda ds: ds.batch(4).map(3), "map expected a function, got 3"),
        (lambda ds: ds.filter("id"), "filter expected a function, got 'id'"),
    ],
)
def test_argument_of_a_wrong_type_is_named_at_the_call(ds: tfrkit.Dataset, call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call(ds)


def test_map_changes_rows_everywhere(ds: tfrkit.Dataset) -> None:
    mapped = ds.map(lambda row: {"double": row["id"] * 2, "length": len(row["tokens"])})
    assert mapped[4] == {"double": 8, "length": 4}
    assert next(iter(mapped)) == {"double": 0, "length": 0}
    assert mapped.shuffle(seed=1)[0] == mapped[ds.shuffle(seed=1)[0]["id"]]
    batch = next(iter(mapped.map(lambda row: {"half": row["double"] / 4}).batch(3)))
    assert batch["half"].tolist() == [0, 0.5, 1]
    with pytest.raises(TypeError, match="a function of map expected to return a dict, got int"):
        ds.map(lambda row: row["id"])[0]  # type: ignore[arg-type, return-value]


def test_batches_are_mapped_whole(ds: tfrkit.Dataset) -> None:
    batches = ds.batch(10).map(lambda batch: {"sum": batch["id"].sum()})
    assert [int(batch["sum"]) for batch in batches][:2] == [45, 145]


def scale(row: dict[str, Any], by: int) -> dict[str, Any]:
    return {"id": row["id"] * by}


def double(row: dict[str, Any]) -> dict[str, Any]:
    return {"id": row["id"] * 2}


def is_even(row: dict[str, Any]) -> bool:
    return bool(row["id"] % 2 == 0)


def test_functions_run_in_processes(ds: tfrkit.Dataset) -> None:
    half = functools.partial(scale, by=2)
    assert ids(ds.take(3).map(half, processes=1)) == [0, 2, 4]
    assert ids(ds.filter(is_even, processes=1)) == ids(ds.filter(is_even))
    with pytest.raises(TypeError, match="processes need a function of a module, got .*lambda"):
        ds.map(lambda row: row, processes=2)
    with pytest.raises(ValueError, match="processes expected at least 1, got 0"):
        ds.filter(is_even, processes=0)


def test_padding_and_bucketing(ds: tfrkit.Dataset) -> None:
    batch = next(iter(ds.select(["tokens"]).batch(6, pad=-1)))
    assert batch["tokens"].shape == (6, 5)
    assert batch["tokens/length"].tolist() == [0, 1, 2, 3, 4, 5]
    widths = [
        len(set(batch["tokens/length"].tolist())) for batch in ds.shuffle(seed=1).batch(10, bucket="tokens", pad=0)
    ]
    assert np.mean(widths) < 1.5
    with pytest.raises(SchemaError, match="no feature 'token', did you mean 'tokens'"):
        ds.batch(3, bucket="token")


def test_window_of_blocks_of_one_is_a_shuffle(ds: tfrkit.Dataset) -> None:
    assert sorted(ids(ds.shuffle(1, window=9, block=1))) == list(range(NUM_ROWS))


def test_mix_draws_from_both(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", range(100))
    write(tmp_path / "b.tfrecord", range(1000, 1100))
    mixed = tfrkit.mix({tmp_path / "a.tfrecord": 0.7, tmp_path / "b.tfrecord": 0.3}, seed=1)
    drawn = ids(mixed)
    sources = {tmp_path / "a.tfrecord": 0.7, tmp_path / "b.tfrecord": 0.3}
    assert drawn != ids(tfrkit.mix(sources)) == ids(tfrkit.mix(sources, seed=0))
    assert 100 < len(drawn) <= 160
    assert len(set(drawn)) == len(drawn)
    long = tfrkit.mix(
        [(tfrkit.open(tmp_path / "a.tfrecord").shuffle(seed=2), 1), (tmp_path / "b.tfrecord", 1)], size=600
    )
    assert sorted(ids(long)).count(1000) == 3
    assert sorted(long.shuffle(seed=1).batch(600).make_batch(0)["id"].tolist()) == sorted(ids(long))


def test_mix_of_what_does_not_fit_raises(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", range(10))
    with tfrkit.Writer(tmp_path / "b.tfrecord") as writer:
        writer.write({"id": b"text"})
    with pytest.raises(SchemaError, match="'id'"):
        tfrkit.mix({tmp_path / "a.tfrecord": 1, tmp_path / "b.tfrecord": 1})
    with pytest.raises(ValueError, match="mix expected at least one source, got none"):
        tfrkit.mix({})
    a = tfrkit.open(tmp_path / "a.tfrecord")
    with pytest.raises(ValueError, match="mix comes before decode, map and repeat, source 0 has one of them"):
        tfrkit.mix([(a.repeat(), 1)])
    with pytest.raises(ValueError, match="mix expected sources with rows, source 0 has none"):
        tfrkit.mix([(a.take(0), 1)])


def test_derived_datasets_go_to_another_process(ds: tfrkit.Dataset) -> None:
    for made in (ds.split({"a": 0.5, "b": 0.5})[1], ds.shuffle(seed=2).map(double), ds.filter(is_even)):
        assert ids(pickle.loads(pickle.dumps(made))) == ids(made)


def test_repr_names_what_is_known_without_reading_records(ds: tfrkit.Dataset) -> None:
    fresh = tfrkit.open(ds.files)
    assert repr(fresh.take(3)).startswith("Dataset(a.tfrecord; 3 rows; features id, ")
    assert len(fresh) == NUM_ROWS and fresh.schema
    assert repr(fresh).startswith(f"Dataset(a.tfrecord, b.tfrecord.gz; {NUM_ROWS} rows; features id, ")
    assert repr(fresh.select(["id"]).shuffle(1)).endswith("rows; shuffled; features id)")
    assert "endless" in repr(fresh.repeat())
    assert "shuffled in windows, mixed 1.00 where 1 is perfect" in repr(fresh.shuffle(1, window=10))


def test_repr_names_at_most_eight_features(tmp_path: Path) -> None:
    for number in (8, 9):
        with tfrkit.Writer(tmp_path / f"{number}.tfrecord") as writer:
            writer.write({f"f{name}": name for name in range(number)})
    eight, nine = (tfrkit.open(tmp_path / f"{number}.tfrecord") for number in (8, 9))
    assert eight.schema and repr(eight).endswith("f6, f7)")
    assert nine.schema and repr(nine).endswith("f6, f7, … 9 in all)")
