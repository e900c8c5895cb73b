"""A feature missing from all records of the schema sample."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import tfrkit as tfr
from tfrkit._limits import LIMITS
from tfrkit.errors import QueryError, UnknownFeatureError
from tfrkit.testing.reference import encode_example, encode_sequence_example, write_frames

NUM_ROWS = 2000
RARE = 33  # far from every sampled place
ERROR = rf"feature 'rare' is not in the schema - at .*rare\.tfrecord, record {RARE}, byte \d+\n.*infer=\"all\""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A dataset with a sampled schema, and one unsampled record with another feature."""
    monkeypatch.setattr(LIMITS, "schema_nbytes", 0)
    monkeypatch.setattr(LIMITS, "schema_records", 64)
    file = tmp_path / "rare.tfrecord"
    with tfr.Writer(file) as writer:
        for number in range(NUM_ROWS):
            writer.write({"id": number, "text": b"x" * 20, **({"rare": 7} if number == RARE else {})})
    return str(file)


WAYS: dict[str, Callable[[Any], object]] = {
    "rows": lambda ds: list(ds),
    "one row": lambda ds: ds[RARE],
    "some rows": lambda ds: ds[10:100],
    "batches": lambda ds: list(ds.batch(64)),
    "batches on threads": lambda ds: list(ds.batch(64, threads=2)),
    "shuffled": lambda ds: list(ds.shuffle(seed=1).batch(64)),
    "in another process": lambda ds: pickle.loads(pickle.dumps(ds))[RARE],
}


@pytest.mark.parametrize("read", WAYS.values(), ids=list(WAYS))
def test_record_with_a_feature_beyond_the_schema_raises(path: str, read: Callable[[Any], object]) -> None:
    with pytest.raises(UnknownFeatureError, match=ERROR) as raised:
        read(tfr.open(path))
    assert raised.value.record == RARE
    assert raised.value.shard == path


def test_arrow_consumer_gets_the_message(path: str) -> None:
    with pytest.raises((pyarrow.ArrowException, OSError), match="feature 'rare' is not in the schema - at"):
        pyarrow.table(tfr.open(path))


def test_schema_that_is_known_is_kept_by_another_process(path: str) -> None:
    ds = tfr.open(path)
    assert list(ds.schema.names) == ["id", "text"]
    with pytest.raises(UnknownFeatureError, match=ERROR):
        pickle.loads(pickle.dumps(ds))[RARE]


def test_all_records_give_all_features(path: str) -> None:
    ds = tfr.open(path, infer="all")
    assert ds[RARE] == {"id": RARE, "text": b"x" * 20, "rare": 7}
    assert "rare" not in ds[0]
    assert pickle.loads(pickle.dumps(ds))[RARE]["rare"] == 7


def test_other_records_are_read(path: str) -> None:
    assert tfr.open(path)[RARE + 1]["id"] == RARE + 1


def test_chosen_features_are_read_from_every_record(path: str) -> None:
    assert tfr.open(path, features=["id"])[RARE] == {"id": RARE}
    assert [row["id"] for row in tfr.open(path).select(["id"])] == list(range(NUM_ROWS))


def test_given_schema_is_a_choice(path: str) -> None:
    given = {"id": tfr.open(path).schema["id"]}
    assert tfr.open(path, schema=given)[RARE] == {"id": RARE}


def test_skipped_record_is_listed(path: str) -> None:
    ds = tfr.open(path, on_error="skip")
    assert sum(1 for _ in ds) == NUM_ROWS - 1
    assert [(found.record, found.cause) for found in ds.errors] == [(RARE, "feature 'rare' is not in the schema")]


def test_infer_is_one_of_two(path: str) -> None:
    with pytest.raises(ValueError, match="infer expected 'sample' or 'all', got 'most'"):
        tfr.open(path, infer="most")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="infer expected 'sample' or 'all', got 'most'"):
        tfr.sql(f"select * from '{path}'", infer="most")  # type: ignore[arg-type]


def test_lists_of_a_sequence_among_examples_are_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "schema_nbytes", 0)
    monkeypatch.setattr(LIMITS, "schema_records", 64)
    records = [encode_example({b"id": ("int64", [number])}) for number in range(NUM_ROWS)]
    records[RARE] = encode_sequence_example({b"id": ("int64", [RARE])}, {b"steps": [("int64", [1])]})
    file = tmp_path / "mixed.tfrecord"
    file.write_bytes(write_frames(records))
    with pytest.raises(UnknownFeatureError, match=rf"feature list 'steps' is not in the schema - at .*record {RARE}"):
        list(tfr.open(str(file)))
    assert list(tfr.open(str(file), infer="all")[RARE]["feature_lists"]["steps"]) == [1]


def test_long_name_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "schema_nbytes", 0)
    monkeypatch.setattr(LIMITS, "schema_records", 64)
    file = tmp_path / "long.tfrecord"
    with tfr.Writer(file) as writer:
        for number in range(NUM_ROWS):
            writer.write({"id": number, **({"n" * 1000: 7} if number == RARE else {})})
    with pytest.raises(UnknownFeatureError, match=r"feature 'n{61}\.\.\.' is not in the schema"):
        list(tfr.open(str(file)))


class TestSql:
    def test_star_raises(self, path: str) -> None:
        with pytest.raises(UnknownFeatureError, match=ERROR):
            list(tfr.sql(f"select * from '{path}'"))

    def test_star_over_all_records_has_the_column(self, path: str) -> None:
        answer = tfr.sql(f"select * from '{path}' where rare is not null", infer="all")
        assert list(answer) == [{"id": RARE, "rare": 7, "text": "x" * 20}]

    def test_named_columns_are_read(self, path: str) -> None:
        assert list(tfr.sql(f"select count(*) n, max(id) top from '{path}'")) == [{"n": NUM_ROWS, "top": NUM_ROWS - 1}]

    def test_column_that_the_sample_lacks_is_found(self, path: str) -> None:
        assert list(tfr.sql(f"select sum(rare) total from '{path}'")) == [{"total": 7}]

    def test_column_that_no_record_has_is_missed_with_all_that_are_there(self, path: str) -> None:
        with pytest.raises(QueryError, match=r"no column nope.*\n.*id, rare, text"):
            tfr.sql(f"select nope from '{path}'")
