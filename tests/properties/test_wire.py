"""The native record readers against their slow twin, on unusual bytes."""

from __future__ import annotations

import itertools
import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tfrkit import _native
from tfrkit.testing import reference, strategies
from tfrkit.testing.reference import Feature, FeatureLists, Features

PRESENCE = {"absent": 0, "unset": 1, "present": 2}
any_examples = st.one_of(
    strategies.odd_examples(),
    strategies.damaged(strategies.odd_examples()),
    strategies.examples().map(reference.encode_example),
)
any_sequences = st.one_of(
    strategies.odd_sequence_examples(),
    strategies.damaged(strategies.odd_sequence_examples()),
    strategies.sequence_examples().map(lambda parsed: reference.encode_sequence_example(*parsed)),
)


def bits(kind: str, values: list[Any]) -> list[Any]:
    """Values that can be compared: a NaN equals itself, -0.0 is not 0.0."""
    return [struct.pack("<f", value) for value in values] if kind == "float" else list(values)


def parse(kind: str, record: bytes) -> tuple[Features, FeatureLists] | None:
    try:
        return (reference.parse_example(record), {}) if kind == "example" else reference.parse_sequence_example(record)
    except reference.ReferenceFault:
        return None


def native_values(kind: str, values: Any) -> list[Any]:
    if kind == "bytes":
        data, offsets = values
        return [data[a:b].tobytes() for a, b in itertools.pairwise(offsets)]
    return bits(kind, values.tolist())


def read_column(kind: str, record_kind: str, name: bytes, records: list[bytes]) -> list[Any]:
    """A varying feature of some records, each as absent, None or its values."""
    builder = _native.ColumnBuilder(record_kind, [(name, kind, False, -1)])
    for record in records:
        fault = builder.append_record(record)
        assert fault is None, (fault.kind, record)
    ((values, splits, list_splits, presence, _),) = builder.finish()
    assert list_splits is None
    flat = native_values(kind, values)
    rows: list[Any] = [flat[a:b] for a, b in itertools.pairwise(splits)]
    if presence is not None:
        rows = [{0: "absent", 1: None, 2: row}[int(p)] for row, p in zip(rows, presence, strict=True)]
    return rows


def kinds_of(features: Features) -> dict[bytes, str]:
    return {name: feature[0] for name, feature in features.items() if feature is not None}


def check_columns(record_kind: str, record: bytes) -> None:
    parsed = parse(record_kind, record)
    if parsed is None:
        # A feature that is not requested is skipped; classification and survey read all of them.
        is_other = _native.classify_record(record) == "other"
        fault = _native.Survey(record_kind).add_record(record)
        assert is_other or (fault is not None and fault.kind == "wire")
        return
    features, lists = parsed
    for name in [*features, b"no such name"]:
        feature = features.get(name)
        wanted = "absent" if name not in features else None if feature is None else bits(*feature)
        kind = "int64" if feature is None else feature[0]
        # Twice, because the second record is read by prediction from the first.
        assert read_column(kind, record_kind, name, [record, record]) == [wanted, wanted]
        if feature is not None:
            check_other_kind(record_kind, record, name, feature)
            check_fixed_length(record_kind, record, name, feature)
    check_all_at_once(record_kind, record, features)
    for name, frames in lists.items():
        check_frames(record, name, frames)


def check_other_kind(record_kind: str, record: bytes, name: bytes, feature: tuple[str, list[Any]]) -> None:
    other = "float" if feature[0] == "int64" else "int64"
    fault = _native.ColumnBuilder(record_kind, [(name, other, False, -1)]).append_record(record)
    assert fault is not None
    assert (fault.kind, fault.column) == ("feature_kind", 0)


def check_fixed_length(record_kind: str, record: bytes, name: bytes, feature: tuple[str, list[Any]]) -> None:
    kind, values = feature
    builder = _native.ColumnBuilder(record_kind, [(name, kind, False, len(values))])
    assert builder.append_record(record) is None
    ((got, splits, *_),) = builder.finish()
    assert splits is None
    assert native_values(kind, got) == bits(kind, values)
    fault = _native.ColumnBuilder(record_kind, [(name, kind, False, len(values) + 1)]).append_record(record)
    assert fault is not None
    assert (fault.kind, fault.stored, fault.computed) == ("length", len(values), len(values) + 1)


def check_all_at_once(record_kind: str, record: bytes, features: Features) -> None:
    kinds = kinds_of(features)
    builder = _native.ColumnBuilder(record_kind, [(name, kind, False, -1) for name, kind in kinds.items()])
    for _ in range(3):
        assert builder.append_record(record) is None
    for (name, kind), (values, splits, _, presence, _) in zip(kinds.items(), builder.finish(), strict=True):
        feature = features[name]
        assert feature is not None
        assert native_values(kind, values) == bits(*feature) * 3
        assert splits.tolist() == [len(feature[1]) * i for i in range(4)]
        assert presence is None


def check_frames(record: bytes, name: bytes, frames: list[Feature]) -> None:
    kinds = {frame[0] for frame in frames if frame is not None}
    kind = min(kinds, default="int64")
    builder = _native.ColumnBuilder("sequence_example", [(name, kind, True, -1)])
    fault = builder.append_record(record)
    if len(kinds) > 1:
        assert fault is not None
        assert fault.kind == "feature_kind"
        return
    assert fault is None
    ((values, splits, list_splits, presence, frame_presence),) = builder.finish()
    assert presence is None or presence.tolist() == [2]
    states = [2] * len(frames) if frame_presence is None else frame_presence.tolist()
    assert states == [1 if frame is None else 2 for frame in frames]
    assert list_splits.tolist() == [0, len(frames)]
    lengths = [0 if frame is None else len(frame[1]) for frame in frames]
    assert np.diff(splits).tolist() == lengths
    assert native_values(kind, values) == [v for frame in frames if frame is not None for v in bits(*frame)]


@settings(max_examples=150)
@given(any_examples)
@example(b"")
@example(b"\x0a\x00")
@example(b"\x0b\x0c")
def test_example_columns_equal_reference(record: bytes) -> None:
    check_columns("example", record)


@settings(max_examples=150)
@given(any_sequences)
def test_sequence_columns_equal_reference(record: bytes) -> None:
    check_columns("sequence_example", record)


@settings(max_examples=300)
@given(st.one_of(any_examples, any_sequences, st.binary(max_size=30)))
def test_classification_equals_reference(record: bytes) -> None:
    assert _native.classify_record(record) == reference.classify_record(record)


@pytest.mark.parametrize("depth", [1, 2, 50, 99, 100, 101, 102, 1000, 100_000])
def test_nested_groups_are_skipped_or_refused_as_reference(depth: int) -> None:
    record = b"\x23" * depth + b"\x24" * depth
    fault = _native.ColumnBuilder("example", []).append_record(record)
    assert (fault is None) == (depth <= reference.MAX_DEPTH)
    if depth < 500:
        assert (parse("example", record) is None) == (fault is not None)


# --- survey ----------------------------------------------------------------------------------------


def expected_stats(kind: str, parsed: list[tuple[Features, FeatureLists]]) -> dict[tuple[bool, bytes], dict[str, Any]]:
    """The expected survey, computed the slow way."""
    rows: dict[tuple[bool, bytes], list[list[Feature]]] = {}
    for features, lists in parsed:
        for name, feature in features.items():
            rows.setdefault((False, name), []).append([feature])
        for name, frames in lists.items():
            rows.setdefault((True, name), []).append(frames)
    stats = {}
    for key, per_row in rows.items():
        frames = [frame for row in per_row for frame in row]
        there = [frame for frame in frames if frame is not None]
        ints = [v for k, values in there if k == "int64" for v in values]
        floats = [v for k, values in there if k == "float" for v in values]
        strings = [v for k, values in there if k == "bytes" for v in values]
        lengths = [len(values) for _, values in there]
        stats[key] = {
            "present": len(per_row),
            "num_unset": len(frames) - len(there),
            "kinds": [sum(k == name for k, _ in there) for name in ("bytes", "float", "int64")],
            "lengths": (min(lengths), max(lengths)) if lengths else (0, 0),
            "frames": (min(map(len, per_row)), max(map(len, per_row))) if key[0] else (0, 0),
            "ints": (min(ints), max(ints)) if ints else None,
            "num_values": sum(lengths),
            "num_nan": sum(math.isnan(v) for v in floats),
            "bytes": (min(map(len, strings)), max(map(len, strings))) if strings else None,
            "num_tensors": sum(reference.read_strict_tensor(v) is not None for v in strings),
            "heads": strings[:3],
        }
    return stats


def native_stats(survey: _native.Survey) -> dict[tuple[bool, bytes], dict[str, Any]]:
    stats = {}
    for got in survey.features():
        has_ints, has_bytes = got["kind_counts"][3], got["num_values"] and got["heads"]
        stats[got["is_list"], got["name"]] = {
            "present": got["present"],
            "num_unset": got["num_unset"],
            "kinds": got["kind_counts"][1:],
            "lengths": (got["min_length"], got["max_length"]),
            "frames": (got["min_frames"], got["max_frames"]),
            "ints": (got["min_int"], got["max_int"]) if has_ints else None,
            "num_values": got["num_values"],
            "num_nan": got["num_nan"],
            "bytes": (got["min_bytes"], got["max_bytes"]) if has_bytes else None,
            "num_tensors": got["num_tensors"],
            "heads": got["heads"],
        }
    return stats


def check_survey(kind: str, records: list[bytes]) -> None:
    survey = _native.Survey(kind)
    parsed = []
    for record in records:
        expected = parse(kind, record)
        is_other = reference.classify_record(record) == "other"  # only counted, not parsed
        fault = survey.add_record(record)
        assert (fault is None) == (is_other or expected is not None), record
        if expected is not None and not is_other:
            parsed.append(expected)
    assert survey.num_records == len(parsed)
    wanted, got = expected_stats(kind, parsed), native_stats(survey)
    for stats in (*wanted.values(), *got.values()):
        if not stats["kinds"][2] or stats["ints"] is None:
            stats["ints"] = None
    for key, stats in wanted.items():
        if stats["ints"] is None and key in got:
            got[key]["ints"] = None  # undefined in this case, see the header
    assert got == wanted
    assert list(got) == sorted(got)


@given(st.lists(any_examples, max_size=4))
def test_survey_of_examples_equals_reference(records: list[bytes]) -> None:
    check_survey("example", records)


@given(st.lists(any_sequences, max_size=4))
def test_survey_of_sequences_equals_reference(records: list[bytes]) -> None:
    check_survey("sequence_example", records)


@given(st.lists(any_examples, max_size=4))
def test_faulty_record_leaves_columns_as_they_were(records: list[bytes]) -> None:
    """A refused row does not affect the rows before and after it."""
    sound = [record for record in records if parse("example", record) is not None]
    kinds: dict[bytes, str] = {}
    for record in sound:
        parsed = parse("example", record)
        assert parsed is not None
        kinds |= {name: kind for name, kind in kinds_of(parsed[0]).items() if name not in kinds}
    specs = [(name, kind, False, -1) for name, kind in kinds.items()]
    mixed, clean = _native.ColumnBuilder("example", specs), _native.ColumnBuilder("example", specs)
    for record in records:
        if mixed.append_record(record) is None:
            assert clean.append_record(record) is None
    assert mixed.num_rows == clean.num_rows
    assert repr(mixed.finish()) == repr(clean.finish())


# --- serialized tensors ----------------------------------------------------------------------------


@settings(max_examples=300)
@given(st.one_of(strategies.tensors(), strategies.damaged(strategies.tensors()), strategies.odd_examples()))
@example(b"")
@example(b"\x08\x01\x12\x02\x12\x00")
@example(b"\x08\x01\x12\x04\x12\x02\x08\x00")
def test_strict_tensor_equals_reference(data: bytes) -> None:
    found = _native.read_strict_tensor(data)
    if found is not None:
        dtype, shape, start, nbytes = found
        found = (dtype, tuple(shape), data[start : start + nbytes])
    assert found == reference.read_strict_tensor(data)


def test_strict_tensor_huge_shape_is_refused() -> None:
    for size in (2**31, 2**62, 2**63 - 1):
        data = reference.encode_tensor(1, (size, size, size), b"abcd")
        assert _native.read_strict_tensor(data) is None
        assert reference.read_strict_tensor(data) is None
