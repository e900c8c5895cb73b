from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest

from tfrkit import errors
from tfrkit.errors import CorruptRecordError, FeatureKindError, StorageError, TfrkitError, at_row, misuse

ALL = [item for _, item in inspect.getmembers(errors, inspect.isclass) if issubclass(item, TfrkitError)]


def test_tree_is_the_documented_one() -> None:
    parents = {item.__name__: item.__base__.__name__ for item in ALL if item is not TfrkitError}
    assert parents == {
        "StorageError": "TfrkitError",
        "RemoteAddressError": "StorageError",
        "UnfinishedChangeError": "StorageError",
        "ContainerError": "TfrkitError",
        "CorruptRecordError": "ContainerError",
        "TruncatedShardError": "ContainerError",
        "NotATFRecordError": "ContainerError",
        "StaleIndexError": "ContainerError",
        "CompressionError": "ContainerError",
        "CodecError": "TfrkitError",
        "WireError": "CodecError",
        "FeatureKindError": "CodecError",
        "SchemaError": "TfrkitError",
        "MissingFeatureError": "SchemaError",
        "UnknownFeatureError": "SchemaError",
        "ShapeError": "SchemaError",
        "LimitError": "TfrkitError",
        "OtherPartsError": "TfrkitError",
        "SourceError": "TfrkitError",
        "QueryError": "TfrkitError",
    }
    assert all(name in (errors.__doc__ or "") for name in parents)


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({}, "what"),
        ({"shard": "s"}, "what - at s"),
        ({"shard": "s", "record": 0}, "what - at s, record 0"),
        ({"shard": "s", "record": 3, "offset": 0}, "what - at s, record 3, byte 0"),
        ({"offset": 7}, "what - at byte 7"),
        ({"row": 0}, "what - at row 0 of the batch"),
        ({"fault": "payload_checksum"}, "what"),
        ({"shard": "s", "hint": "do this"}, "what - at s\n  do this"),
        ({"hint": "do this"}, "what\n  do this"),
    ],
)
def test_message_reads_what_where_next_step(facts: dict[str, object], text: str) -> None:
    assert str(TfrkitError("what", **facts)) == text  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ALL)
def test_error_survives_pickle_and_copy(kind: type[TfrkitError]) -> None:
    error = kind("what", shard="s", record=1, offset=2, hint="do this", row=3, fault="not_text")
    error.more = "also"  # type: ignore[attr-defined]
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is kind
        assert str(again) == str(error)
        assert vars(again) == vars(error)


def test_replaced_fact_leaves_the_others_and_the_first_error() -> None:
    error = CorruptRecordError("what", shard="s", record=1, fault="payload_checksum")
    other = error.replace(record=2, hint="do this")
    assert (str(other), other.fault) == ("what - at s, record 2\n  do this", "payload_checksum")
    assert (type(other), str(error)) == (CorruptRecordError, "what - at s, record 1")


def test_line_breaks_in_names_do_not_begin_a_line() -> None:
    error = StorageError("only a\nb.png", shard="new\r\nline", hint="first\n  second")
    assert str(error) == "only a\\nb.png - at new\\r\\nline\n  first\n  second"
    assert (error.what, error.shard) == ("only a\nb.png", "new\r\nline")
    assert str(misuse("no column 'a\nb'", "see columns")) == "no column 'a\\nb'\n  see columns"


def test_fact_set_later_is_in_the_message() -> None:
    error = CorruptRecordError("what", shard="s")
    error.record = 5
    assert str(error) == "what - at s, record 5"


@pytest.mark.parametrize("kind", [ValueError, FeatureKindError])
def test_error_about_a_row_has_its_message_without_the_place(kind: type[Exception]) -> None:
    error: Any = at_row(kind, "what", 3, "do this")
    assert (type(error), str(error), error.what) == (kind, "what - at row 3\n  do this", "what")
    assert str(at_row(kind, "what", 3)) == "what - at row 3"
