"""Functions that only parse are recognised; any other is called for each record, and sees what it always saw."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import pytest

from tfrkit.compat import tensorflow as tf
from tfrkit.compat.recognise import find_parsing, opens_files

SPEC = {"data": tf.io.FixedLenFeature([], tf.int64), "name": tf.io.FixedLenFeature([2], tf.string, [b"", b""])}
NAMES = ["data"]
SEEN: list[int] = []
COUNTS = {"calls": 0}
IS_TRAINING = True
BIG = list(range(5000))
total = 0


def keys(structure: Any) -> Any:
    if isinstance(structure, dict):
        return {name: keys(part) for name, part in structure.items()}
    return [keys(part) for part in structure] if isinstance(structure, (list, tuple)) else structure.key


def parse(record: Any) -> Any:
    return tf.io.parse_single_example(record, SPEC)


def parse_inside(record: Any) -> Any:
    features = {"data": tf.FixedLenFeature([], tf.int64)}
    parsed = tf.parse_single_example(serialized=record, features=features)
    return parsed["data"], {"again": parsed["data"]}


def pop_label(record: Any) -> Any:
    parsed = parse(record)
    label = parsed.pop("data")
    return parsed, label


def choose(record: Any, names: Any = NAMES) -> Any:
    parsed = tf.compat.v1.io.parse_single_example(record, SPEC)
    return {name: parsed[name] for name in names} if IS_TRAINING else parsed


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (parse, {"data": "data", "name": "name"}),
        (parse_inside, ["data", {"again": "data"}]),
        (pop_label, [{"name": "name"}, "data"]),
        (choose, {"data": "data"}),
        (functools.partial(choose, names=["name"]), {"name": "name"}),
        (lambda record: parse(record)["name"], "name"),
        (lambda record: tf.io.parse_example(record, SPEC)["name"], "name"),
    ],
)
def test_function_that_only_parses_is_recognised(function: Callable[..., Any], expected: Any) -> None:
    found = find_parsing(function)
    assert found is not None
    assert keys(found[1]) == expected
    assert "data" in found[0]


def _print(record: Any) -> Any:
    print("called")
    return parse(record)


def _append(record: Any) -> Any:
    SEEN.append(1)
    return parse(record)


def _count(record: Any) -> Any:
    COUNTS["calls"] += 1
    return parse(record)


def _count_global(record: Any) -> Any:
    global total
    total += 1
    return parse(record)


def _draw(record: Any) -> Any:
    return parse(record) if random.random() < 2 else None


def _change_specs(record: Any) -> Any:
    SPEC.pop("name")
    return parse(record)


def _mark(record: Any) -> Any:
    _mark.calls = 1  # type: ignore[attr-defined]
    return parse(record)


def _branch(record: Any) -> Any:
    parsed = parse(record)
    return parsed if parsed["data"] else parsed["name"]


def _compare(record: Any) -> Any:
    parsed = parse(record)
    return parsed if parsed["data"] == 3 else parsed["name"]


def _compare_record(record: Any) -> Any:
    return parse(record)["data" if record == b"" else "name"]


def _compute(record: Any) -> Any:
    return parse(record)["data"] + 1


def _handle_errors(record: Any) -> Any:
    parsed = parse(record)
    try:
        print(parsed["data"])
    except Exception:  # noqa: BLE001 - the error of the attempt would be hidden here
        return parsed["name"]
    return parsed["data"]


def _hide_errors(record: Any) -> Any:
    parsed = parse(record)
    try:
        return parsed["data"] if parsed["data"] else parsed["name"]
    except:  # noqa: E722 - no name that could be refused
        return parsed["name"]


def _import(record: Any) -> Any:
    import sys

    sys.stdout.write("called")
    return parse(record)


def _parse_twice(record: Any) -> Any:
    return parse(record)["data"], parse(record)["name"]


def _parse_another(record: Any) -> Any:
    return tf.io.parse_single_example(b"", SPEC)


def _add_constant(record: Any) -> Any:
    return parse(record)["data"], 1


def _cast(record: Any) -> Any:
    return tf.cast(parse(record)["data"], tf.int32)


def _fail(record: Any) -> Any:
    return tf.io.parse_single_example(record, {})


def _refer_to_much(record: Any) -> Any:
    return parse(record)["data" if len(BIG) else "name"]


def _yield(record: Any) -> Any:
    yield parse(record)


class _Parser:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, record: Any) -> Any:
        self.calls += 1
        return parse(record)

    method = __call__


def _keep_in_closure() -> Callable[..., Any]:
    calls = 0

    def function(record: Any) -> Any:
        nonlocal calls
        calls += 1
        return parse(record)

    return function


def _take_from_iterator() -> Callable[..., Any]:
    numbers = iter(range(9))
    return lambda record: parse(record)["data" if next(numbers) else "name"]


@pytest.mark.parametrize(
    "function",
    [
        *(_print, _append, _count, _count_global, _draw, _change_specs, _mark, _branch, _compare, _compare_record),
        *(
            _compute,
            _handle_errors,
            _hide_errors,
            _import,
            _parse_twice,
            _parse_another,
            _add_constant,
            _cast,
            _fail,
            _yield,
        ),
        *(_refer_to_much, _Parser(), _Parser().method, _keep_in_closure(), _take_from_iterator(), print, dict),
        *(lambda record: {}, lambda record: record, lambda record: f"{parse(record)['data']}"),
        *(lambda record: {parse(record)["data"]: 1}, lambda record, more: parse(record)),
    ],
)
def test_function_that_does_more_is_not_recognised(function: Callable[..., Any], capsys: Any) -> None:
    before = random.getstate()
    assert find_parsing(function) is None
    assert random.getstate() == before
    assert capsys.readouterr().out == ""
    # The attempt changed nothing.
    assert (SEEN, COUNTS, total, list(SPEC)) == ([], {"calls": 0}, 0, ["data", "name"])
    assert getattr(function, "calls", 0) == 0


def _open(path: Any) -> Any:
    return tf.data.TFRecordDataset(path, compression_type="GZIP")


def _open_and_print(path: Any) -> Any:
    print(path)
    return tf.data.TFRecordDataset(path)


def test_function_that_opens_its_file_is_recognised() -> None:
    kind = tf.data.TFRecordDataset
    assert opens_files(kind, kind)
    assert opens_files(_open, kind)
    assert not opens_files(_open_and_print, kind)
    assert not opens_files(lambda path: tf.data.TFRecordDataset(path).map(parse), kind)
    assert not opens_files(lambda path: tf.data.TFRecordDataset("another"), kind)
    assert not opens_files(lambda path: path, kind)
