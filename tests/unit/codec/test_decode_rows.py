"""Rows made by the core against the way through columns, which is their slow twin."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrkit import _native
from tfrkit.codec.decode import Decoder
from tfrkit.errors import TfrkitError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.testing import reference, strategies
from tfrkit.testing.reference import Feature, encode_example, encode_sequence_example, encode_tensor, write_frames

_SHAPES: list[tuple[int | None, ...]] = [(), (1,), (2,), (None,), (2, 1), (None, 2), (0,)]
_DTYPES = {"int64": [None, "bool", "uint8", "int32", "int64"], "float": [None, "float32", "float64"], "bytes": [None]}


@st.composite
def specs(draw: st.DrawFn, *, is_list: bool = False) -> Spec:
    kind = draw(st.sampled_from(["int64", "float", "bytes"]))
    encoding = draw(st.sampled_from(["list", "list", "list", "tensor_proto", "raw"])) if kind == "bytes" else "list"
    dtype = "uint8" if encoding == "raw" else draw(st.sampled_from(_DTYPES[kind]))
    return Spec(
        kind,  # type: ignore[arg-type]
        draw(st.sampled_from(_SHAPES)),
        optional=draw(st.booleans()),
        dtype=dtype,
        encoding=encoding,  # type: ignore[arg-type]
        is_list=is_list,
    )


@st.composite
def fitting(draw: st.DrawFn, spec: Spec) -> Feature | str:
    """A Feature that a spec mostly accepts."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.one_of(strategies.features(), st.just("absent")))
    if spec.optional and not spec.is_list and draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from([None, "absent", (spec.kind, [])]))
    if spec.encoding == "tensor_proto":
        values: Any = st.sampled_from([encode_tensor(3, (2,), bytes(8)), encode_tensor(3, (), bytes(4))])
    else:
        values = {"int64": strategies.int64s, "float": strategies.float32s, "bytes": strategies.small_bytes}[spec.kind]
    count = spec.num_values if spec.num_values >= 0 else draw(st.sampled_from([0, 1, 2, 4]))
    return spec.kind, draw(st.lists(values, min_size=count, max_size=count))


def keep(features: dict[str, Feature | str]) -> dict[bytes, Feature]:
    return {name.encode(): feature for name, feature in features.items() if not isinstance(feature, str)}


@st.composite
def example_sets(draw: st.DrawFn) -> tuple[Schema, list[bytes]]:
    chosen = draw(st.dictionaries(st.sampled_from("abcd"), specs(), max_size=4))
    rows = draw(st.lists(st.fixed_dictionaries({name: fitting(spec) for name, spec in chosen.items()}), max_size=6))
    return Schema(chosen), [encode_example(keep(row)) for row in rows]


@st.composite
def sequence_sets(draw: st.DrawFn) -> tuple[Schema, list[bytes]]:
    chosen = draw(st.dictionaries(st.sampled_from("ab"), specs(), max_size=2))
    lists = draw(st.dictionaries(st.sampled_from("bcd"), specs(is_list=True), max_size=3))
    records = []
    for _ in range(draw(st.integers(0, 5))):
        context = draw(st.fixed_dictionaries({name: fitting(spec) for name, spec in chosen.items()}))
        frames = {name: draw(st.lists(fitting(spec), max_size=3)) for name, spec in lists.items()}
        kept = {
            name.encode(): [frame for frame in some if not isinstance(frame, str)]
            for name, some in frames.items()
            if draw(st.integers(0, 4))
        }
        records.append(encode_sequence_example(keep(context), kept))
    return Schema(chosen, feature_lists=lists, kind="sequence_example"), records


def show(value: Any) -> Any:
    """A value with its type and all its bits, for comparing."""
    if isinstance(value, dict):
        return [(name, show(inner)) for name, inner in value.items()]
    if isinstance(value, list):
        return ["list", *map(show, value)]
    if isinstance(value, np.ndarray):
        assert value.dtype != object
        return "array", value.dtype.str, value.shape, value.tobytes()
    return type(value), struct.pack("<d", value) if isinstance(value, float) else value


def show_fault(fault: _native.Fault | None) -> Any:
    return None if fault is None else (fault.kind, fault.offset, fault.stored, fault.computed, fault.column, fault.name)


def outcome(make: Any) -> Any:
    try:
        return show(make())
    except TfrkitError as error:
        return type(error), str(error)


def slow_rows(decoder: Decoder, frames: bytes, num_rows: int) -> Any:
    builder = decoder.new_builder()
    assert builder.append_frames(frames, 0, len(frames), 1 << 40, "all")[0] == num_rows
    return decoder.rows(decoder.take_batch(builder), num_rows)


def fast_rows(decoder: Decoder, frames: bytes, num_rows: int) -> Any:
    builder = decoder.new_row_builder()
    assert builder.append_frames(frames, 0, len(frames), 1 << 40, "all")[0] == num_rows
    return builder.finish()


def check_same(schema: Schema, records: list[bytes], known: Schema | None = None) -> None:
    decoder = Decoder(schema, known=known)
    columns, rows = decoder.new_builder(), decoder.new_row_builder()
    sound = []
    for record in records:
        fault = columns.append_record(record)
        if fault is None:
            sound.append(record)
            alone = decoder.new_builder()
            assert alone.append_record(record) is None
            assert outcome(lambda record=record: append_alone(rows, record)) == outcome(
                lambda alone=alone: decoder.rows(decoder.take_batch(alone), 1)
            )
        else:
            assert show_fault(rows.append_record(record)) == show_fault(fault)
            assert rows.finish() == []
    frames = write_frames(sound)
    assert outcome(lambda: fast_rows(decoder, frames, len(sound))) == outcome(
        lambda: slow_rows(decoder, frames, len(sound))
    )


def append_alone(rows: _native.RowBuilder, record: bytes) -> Any:
    assert rows.append_record(record) is None
    return rows.finish()


@given(example_sets())
@settings(max_examples=300, deadline=None)
def test_examples_give_the_rows_of_the_slow_twin(given_set: tuple[Schema, list[bytes]]) -> None:
    check_same(*given_set)


@given(sequence_sets())
@settings(max_examples=300, deadline=None)
def test_sequences_give_the_rows_of_the_slow_twin(given_set: tuple[Schema, list[bytes]]) -> None:
    check_same(*given_set)


@given(
    st.dictionaries(st.sampled_from(["a", "b", "label", "image/encoded", "é"]), specs(), max_size=4),
    st.lists(st.one_of(strategies.odd_examples(), strategies.damaged(strategies.odd_examples())), max_size=6),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_odd_and_damaged_records_and_unknown_names_give_the_faults_of_the_slow_twin(
    chosen: dict[str, Spec], records: list[bytes], is_strict: bool
) -> None:
    check_same(Schema(chosen), records, Schema(chosen) if is_strict else None)


@given(
    st.dictionaries(st.sampled_from(["a", "b", "label"]), specs(is_list=True), max_size=3),
    st.lists(st.one_of(strategies.odd_sequence_examples(), strategies.damaged(strategies.odd_sequence_examples()))),
)
@settings(max_examples=100, deadline=None)
def test_odd_sequences_give_the_faults_of_the_slow_twin(lists: dict[str, Spec], records: list[bytes]) -> None:
    check_same(Schema({}, feature_lists=lists, kind="sequence_example"), records)


def test_rows_before_a_fault_are_kept_and_its_place_is_reported() -> None:
    decoder = Decoder(Schema({"x": Spec("int64")}))
    builder = decoder.new_row_builder()
    frames = write_frames([encode_example({b"x": ("int64", [1])}), encode_example({b"x": ("float", [1.0])})])
    num_rows, next_start, fault = builder.append_frames(frames, 0, len(frames), 64, "all")
    assert (num_rows, next_start, fault and fault.kind) == (
        1,
        len(write_frames(reference.read_frames(frames)[:1])),
        "feature_kind",
    )
    assert builder.finish() == [{"x": 1}]
    assert builder.finish() == []


def test_a_run_ends_after_some_bytes() -> None:
    records = [encode_example({b"x": ("bytes", [bytes(100_000)])})] * 8
    frames = write_frames(records)
    builder = Decoder(Schema({"x": Spec("bytes")})).new_row_builder()
    num_rows, _, fault = builder.append_frames(frames, 0, len(frames), 64, "all")
    assert 1 <= num_rows < 8 and fault is None
    assert builder.num_rows == num_rows


def test_a_value_that_python_cannot_make_leaves_no_rows() -> None:
    builder = Decoder(Schema({"x": Spec("bytes", encoding="tensor_proto")})).new_row_builder()
    with pytest.raises(TfrkitError, match="row 0 of the batch"):
        builder.append_record(encode_example({b"x": ("bytes", [b"\xff"])}))
    assert builder.finish() == []


def test_picks_are_checked_against_the_table() -> None:
    frames = write_frames([encode_example({b"x": ("int64", [number])}) for number in range(3)])
    table = _native.FrameTable(frames, np.array(reference.index_frames(frames), np.uint64), "all")
    builder = Decoder(Schema({"x": Spec("int64")})).new_row_builder()
    assert builder.append_pick(table, 2, "all") is None
    assert builder.append_picks([table], np.zeros(2, np.uint32), np.array([1, 0], np.uint64), "all") == (2, None)
    with pytest.raises(IndexError, match="out of range"):
        builder.append_pick(table, 3, "all")
    assert builder.finish() == [{"x": 2}, {"x": 1}, {"x": 0}]
