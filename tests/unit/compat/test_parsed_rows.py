"""`map` that parses runs of records gives what it gives record by record: values, types, errors and their places."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfrkit.compat import parsed_rows
from tfrkit.compat import tensorflow as tf

NUM_RECORDS = 700
SPECS: dict[str, Any] = {
    "number": tf.io.FixedLenFeature([], tf.int64),
    "pair": tf.io.FixedLenFeature([2], tf.float32),
    "grid": tf.io.FixedLenFeature([2, 1], tf.int64, [[5], [6]]),
    "name": tf.io.FixedLenFeature([], tf.string, ""),
    "words": tf.io.VarLenFeature(tf.string),
    "items": tf.io.FixedLenSequenceFeature([2], tf.int64, allow_missing=True),
}


def record_of(number: int) -> bytes:
    features: dict[str, Any] = {
        "number": {"int64_list": {"value": [number]}},
        "pair": {"float_list": {"value": [number, -number]}},
        "words": {"bytes_list": {"value": [b"w%d" % word for word in range(number % 3)]}},
        "items": {"int64_list": {"value": list(range(number % 4 * 2))}},
    }
    if number % 5:
        features["name"] = {"bytes_list": {"value": [b"n%d" % number]}}
    if number % 7 == 0:
        features["grid"] = {"int64_list": {"value": [number, 1]}}
    bytes_of: bytes = tf.train.Example(features={"feature": features}).SerializeToString()
    return bytes_of


BAD = {
    3: b"\xff",
    40: tf.train.Example().SerializeToString(),
    41: tf.train.Example(features={"feature": {"number": {"float_list": {"value": [1]}}}}).SerializeToString(),
    300: record_of(300).replace(b"pair", b"peer"),
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A good file, and one with records that do not parse and a damaged end."""
    folder = tmp_path_factory.mktemp("rows")
    for name in ("good", "bad"):
        with tf.io.TFRecordWriter(folder / name) as writer:
            for number in range(NUM_RECORDS):
                writer.write(BAD.get(number) or record_of(number) if name == "bad" else record_of(number))
    data = bytearray((folder / "bad").read_bytes())
    data[-100] ^= 0xFF
    (folder / "bad").write_bytes(data)
    return {name: str(folder / name) for name in ("good", "bad")}


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(plain(part) for part in value)
    if isinstance(value, tf.SparseTensor):
        return ("sparse", plain(value.indices), plain(value.values), plain(value.dense_shape))
    assert type(value) is tf.Tensor
    return (value.dtype.str, tuple(value.shape), value.tolist())


def walk(dataset: Any) -> list[Any]:
    seen: list[Any] = []
    iterator = iter(dataset)
    while True:
        try:
            seen.append(plain(next(iterator)))
        except StopIteration:
            return seen
        except Exception as error:  # noqa: BLE001 - compared
            seen.append(f"{type(error).__name__}: {error}")


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda record: tf.io.parse_single_example(
        record, {"number": SPECS["number"], "pair": SPECS["pair"], "grid": SPECS["grid"], "name": SPECS["name"]}
    ),
    "all": lambda record: tf.io.parse_single_example(record, SPECS),
    "tuple": lambda record: [tf.io.parse_single_example(record, SPECS)["words"]],
    "wrong": lambda record: tf.io.parse_single_example(record, {"number": tf.io.FixedLenFeature([None], tf.int64)}),
    "kind": lambda record: tf.io.parse_single_example(record, {"number": tf.io.FixedLenFeature([], tf.int32)}),
}
STEPS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda data: data,
    "batch": lambda data: data.batch(32),
    "batch of equal length": lambda data: data.shard(4, 1).batch(9),
    "whole batches": lambda data: data.batch(64, drop_remainder=True),
    "shuffle": lambda data: data.shuffle(100, seed=1).batch(16),
    "repeat": lambda data: data.repeat(2).skip(600).take(300),
    "ignore": lambda data: data.ignore_errors().batch(50),
    "cache": lambda data: data.ignore_errors().cache().repeat(2),
    "enumerate": lambda data: data.enumerate(),
    "zip": lambda data: tf.data.Dataset.zip((data, data.skip(1))),
    "concatenate": lambda data: data.take(5).concatenate(data.skip(690)).batch(3),
    "map again": lambda data: data.map(lambda *element: element[0]),
    "filter": lambda data: data.filter(lambda *element: True).batch(8),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", ["good", "bad"])
def test_rows_are_those_of_the_function_called_for_each_record(
    paths: dict[str, str], name: str, function: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> list[Any]:
        return walk(STEPS[step](tf.data.TFRecordDataset(paths[name]).map(FUNCTIONS[function])))

    found = read()
    monkeypatch.setattr(parsed_rows, "find_parsing", lambda function: None)
    assert found == read()


def test_runs_of_records_are_parsed_at_once(paths: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    read = parsed_rows.read_columns

    def count(records: Any, *values: Any) -> Any:
        sizes.append(len(records))
        return read(records, *values)

    monkeypatch.setattr(parsed_rows, "read_columns", count)
    assert len(list(tf.data.TFRecordDataset(paths["good"]).map(FUNCTIONS["all"]))) == NUM_RECORDS
    assert sizes == [1, 2, 4, 8, 16, 32, 64, 128, 256, 189]


def test_a_run_of_large_records_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tf.io.TFRecordWriter(tmp_path / "large") as writer:
        for _ in range(20):
            feature = {"name": {"bytes_list": {"value": [bytes(50_000)]}}}
            writer.write(tf.train.Example(features={"feature": feature}).SerializeToString())
    rows = iter(tf.data.TFRecordDataset(tmp_path / "large").map(FUNCTIONS["all"]).shuffle(20))
    with pytest.raises(tf.errors.InvalidArgumentError, match="'number' expected in every record"):
        next(rows)
    data = tf.data.TFRecordDataset(tmp_path / "large").map(
        lambda record: tf.io.parse_single_example(record, {"name": SPECS["name"]})
    )
    runs = {id(row.run): len(row.run.records) for row in list(data._open_items())}
    assert max(runs.values()) == 3


def test_a_change_of_the_specs_is_seen(paths: dict[str, str]) -> None:
    chosen = ["number"]

    def parse(record: Any) -> Any:
        return {name: part for name, part in tf.io.parse_single_example(record, SPECS).items() if name in chosen}

    data = tf.data.TFRecordDataset(paths["good"]).map(parse)
    assert [list(row) for row in data.take(2)] == [["number"], ["number"]]
    chosen.append("name")
    assert [list(row) for row in data.take(2)] == [["number", "name"], ["number", "name"]]
    rows = iter(data)
    next(rows)
    chosen.remove("number")
    assert [list(next(rows)) for _ in range(300)][-1] == ["name"]


def test_function_with_an_effect_is_called_when_its_element_is_due(paths: dict[str, str]) -> None:
    calls = []

    def parse(record: Any) -> Any:
        calls.append(1)
        return tf.io.parse_single_example(record, SPECS)

    rows = iter(tf.data.TFRecordDataset(paths["good"]).map(parse))
    for count in range(1, 20):
        next(rows)
        assert len(calls) == count


def test_records_of_interleaved_files_are_parsed_at_once(paths: dict[str, str]) -> None:
    files = tf.data.Dataset.from_tensor_slices([paths["good"], paths["good"]])
    opened = []

    def open_and_count(path: Any) -> Any:
        opened.append(path)
        return tf.data.TFRecordDataset(path)

    fast, slow = (
        files.interleave(function, cycle_length=2).map(FUNCTIONS["all"])
        for function in (lambda path: tf.data.TFRecordDataset(path), open_and_count)
    )
    assert walk(fast) == walk(slow)
    assert (fast._has_records, slow._has_records) == (True, False)
    assert len(opened) == 2


def test_rows_do_not_share_memory(paths: dict[str, str]) -> None:
    rows = list(tf.data.TFRecordDataset(paths["good"]).map(FUNCTIONS["dense"]).take(20))
    rows[5]["pair"][...] = np.float32(7)
    assert [row["pair"].tolist() for row in rows[4:7]] == [[4, -4], [7, 7], [6, -6]]
