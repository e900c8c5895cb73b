"""Edits touch what they name and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrkit.codec.edit_record import CastKind, RecordEditor
from tfrkit.errors import CodecError, FeatureKindError, SchemaError
from tfrkit.testing.reference import (
    encode_example,
    encode_sequence_example,
    parse_example,
    parse_sequence_example,
    write_field,
)
from tfrkit.testing.strategies import examples, sequence_examples

RECORD = encode_example({b"a": ("int64", [1, -2]), b"b": ("float", [0.5]), b"c": ("bytes", [b"x", b"12"]), b"d": None})


@given(examples())
def test_no_edit_changes_no_byte(features: dict[bytes, object]) -> None:
    record = encode_example(features)  # type: ignore[arg-type]
    assert RecordEditor(drop={"not there"}).edit(record) == record


@given(examples())
def test_names_are_swapped_and_nothing_else(features: dict[bytes, object]) -> None:
    record = encode_example(features)  # type: ignore[arg-type]
    parsed = parse_example(record)
    names = list(parsed)[:1]
    rename = {name.decode("utf-8", "surrogateescape"): "new name" for name in names}
    if b"new name" in parsed:
        return
    edited = parse_example(RecordEditor(rename=rename).edit(record))
    assert repr({b"new name" if name in names else name: value for name, value in parsed.items()}) == repr(edited)


def test_dropped_and_kept_features() -> None:
    assert parse_example(RecordEditor(drop={"a", "d"}).edit(RECORD)) == {
        b"b": ("float", [0.5]),
        b"c": ("bytes", [b"x", b"12"]),
    }
    assert parse_example(RecordEditor(keep={"a"}).edit(RECORD)) == {b"a": ("int64", [1, -2])}
    editor = RecordEditor(keep=set())
    assert parse_example(editor.edit(RECORD)) == {}
    assert editor.seen == {"a", "b", "c", "d"}


def test_dropping_all_features_leaves_an_example() -> None:
    assert RecordEditor(keep=set()).edit(RECORD) == b"\x0a\x00"
    assert RecordEditor(keep=set()).edit(b"") == b""


@pytest.mark.parametrize(
    ("before", "kind", "after"),
    [
        (("int64", [1, -2]), "float", ("float", [1.0, -2.0])),
        (("int64", [1, -(2**63)]), "bytes", ("bytes", [b"1", b"-9223372036854775808"])),
        (("float", [3.0, -1.0]), "int64", ("int64", [3, -1])),
        (("float", [0.10000000149011612]), "bytes", ("bytes", [b"0.1"])),
        (("bytes", [b"12", b"-7"]), "int64", ("int64", [12, -7])),
        (("bytes", [b"0.5", b"1e3", b"inf"]), "float", ("float", [0.5, 1000.0, math.inf])),
        (("int64", []), "float", ("float", [])),
        (("int64", [5]), "int64", ("int64", [5])),
        (None, "int64", None),
    ],
)
def test_cast_values(before: object, kind: str, after: object) -> None:
    record = encode_example({b"x": before, b"y": ("int64", [9])})  # type: ignore[dict-item]
    edited = RecordEditor(cast={"x": kind}).edit(record)  # type: ignore[dict-item]
    assert parse_example(edited) == {b"x": after, b"y": ("int64", [9])}


@pytest.mark.parametrize(
    ("before", "kind", "match"),
    [
        (("int64", [2**24 + 1]), "float", "16777217 does not fit in float"),
        (("float", [0.5]), "int64", "0.5 is not a whole number"),
        (("float", [math.nan]), "int64", "nan is not a whole number"),
        (("float", [1e30]), "int64", "does not fit in int64"),
        (("bytes", [b"cat"]), "int64", r"b'cat' is not a 64-bit integer"),
        (("bytes", [b"1_0"]), "int64", r"b'1_0' is not a 64-bit integer"),
        (("bytes", [b"\xff"]), "float", "is not a number"),
        (("bytes", [b"9223372036854775808"]), "int64", "is not a 64-bit integer"),
    ],
)
def test_lossy_cast_raises(before: object, kind: str, match: str) -> None:
    record = encode_example({b"x": before})  # type: ignore[dict-item]
    with pytest.raises(FeatureKindError, match=f"feature 'x' cannot be cast.*{match}"):
        RecordEditor(cast={"x": kind}).edit(record)  # type: ignore[dict-item]


def test_cast_and_rename_at_once() -> None:
    edited = RecordEditor(rename={"a": "z"}, cast={"a": "float"}).edit(RECORD)
    assert parse_example(edited)[b"z"] == ("float", [1.0, -2.0])


@given(sequence_examples())
def test_sequence_examples_keep_their_frames(parts: tuple[dict[bytes, object], dict[bytes, object]]) -> None:
    record = encode_sequence_example(*parts)  # type: ignore[arg-type]
    assert RecordEditor(drop={"not there"}).edit(record) == record


def test_sequence_lists_are_edited() -> None:
    record = encode_sequence_example(
        {b"name": ("bytes", [b"n"])}, {b"frame": [("int64", [1]), ("int64", [2])], b"other": [("float", [1.0])]}
    )
    editor = RecordEditor(drop={"other"}, rename={"frame": "step", "name": "clip"}, cast={"frame": "float"})
    context, lists = parse_sequence_example(editor.edit(record))
    assert context == {b"clip": ("bytes", [b"n"])}
    assert lists == {b"step": [("float", [1.0]), ("float", [2.0])]}


def test_feature_in_two_pieces_is_cast_as_one() -> None:
    packed = [write_field(3, write_field(1, bytes([number]))) for number in (1, 2)]
    entry = write_field(1, b"x") + write_field(2, packed[0]) + write_field(2, packed[1])
    whole = write_field(1, b"y") + write_field(2, packed[0])
    record = write_field(1, write_field(1, entry) + write_field(1, whole))
    edited = RecordEditor(cast={"x": "bytes"}).edit(record)
    assert parse_example(edited) == {b"x": ("bytes", [b"1", b"2"]), b"y": ("int64", [1])}


def test_unknown_fields_stay() -> None:
    record = RECORD + write_field(9, b"extra")
    assert RecordEditor(drop={"a"}).edit(record).endswith(write_field(9, b"extra"))


def test_two_features_of_one_name_raise() -> None:
    with pytest.raises(SchemaError, match="two features would be called 'b': 'a' and 'b'"):
        RecordEditor(rename={"a": "b"}).edit(RECORD)


def test_two_features_of_one_name_in_two_maps_raise() -> None:
    one, other = (encode_example({name: ("int64", [1])}) for name in (b"a", b"b"))
    for record in (one + other, other + one):
        with pytest.raises(SchemaError, match="two features would be called 'b'"):
            RecordEditor(rename={"a": "b"}).edit(record)


def test_names_may_change_places() -> None:
    edited = parse_example(RecordEditor(rename={"a": "b", "b": "a"}).edit(RECORD))
    assert (edited[b"a"], edited[b"b"]) == (("float", [0.5]), ("int64", [1, -2]))


def test_record_that_is_no_example_raises() -> None:
    with pytest.raises(CodecError, match="expected an Example"):
        RecordEditor(drop={"a"}).edit(b"just some text")


def test_name_that_is_not_utf8_is_refused() -> None:
    """No Example writer produces one: such a record is another message."""
    with pytest.raises(CodecError, match="expected an Example"):
        RecordEditor(drop={"a"}).edit(encode_example({b"\xff": ("int64", [1])}))


@given(st.binary(max_size=60))
def test_any_bytes_are_edited_or_refused(data: bytes) -> None:
    try:
        RecordEditor(drop={"x"}, rename={"a": "b"}, cast={"c": "int64"}).edit(data)
    except (CodecError, SchemaError):
        pass


def edit_slowly(record: bytes, **edits: object) -> bytes:
    """Every field is parsed, as for unusual records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RecordEditor, "_edit_plain_map", lambda self, message, is_list: None)
        return RecordEditor(**edits).edit(record)  # type: ignore[arg-type]


def outcome(run: Callable[[], bytes]) -> object:
    try:
        return run()
    except (CodecError, SchemaError) as error:
        return str(error)


@given(examples(), st.sampled_from(["bytes", "float", "int64"]), st.data())
def test_quick_edit_equals_the_slow_one(features: dict[bytes, object], kind: CastKind, data: st.DataObject) -> None:
    record = encode_example(features)  # type: ignore[arg-type]
    names = [name.decode("utf-8", "surrogateescape") for name in features]
    chosen = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    edits = {"cast": dict.fromkeys(chosen[::2], kind), "drop": frozenset(chosen[1::2])}
    assert outcome(lambda: RecordEditor(**edits).edit(record)) == outcome(lambda: edit_slowly(record, **edits))


@given(st.binary(max_size=60), st.integers(0, len(RECORD)))
def test_quick_edit_of_any_bytes_equals_the_slow_one(data: bytes, at: int) -> None:
    record = RECORD[:at] + data + RECORD[at:]
    edits = {"cast": {"a": "float"}, "keep": frozenset({"a", "c"})}
    assert outcome(lambda: RecordEditor(**edits).edit(record)) == outcome(lambda: edit_slowly(record, **edits))
