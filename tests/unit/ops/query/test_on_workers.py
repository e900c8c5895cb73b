"""Queries on an engine give the answers of one machine; worker processes stand in for a cluster."""

from __future__ import annotations

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit._limits import LIMITS
from tfrkit.errors import CorruptRecordError, QueryError, SchemaError, StorageError
from tfrkit.ops.query import on_workers
from tfrkit.testing.corruption import flip


@pytest.fixture(autouse=True)
def _cluster(use_processes):
    """Tasks run in this process, one after the other: DuckDB's threads do not survive a fork."""
    use_processes(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sql") / "rows"
    rows = [
        {
            "x": number * 3,
            "y": np.float32(number) / 8,
            "name": f"n{number % 7}",
            "label": number % 3,
            "many": list(range(number % 4)),
            **({"rare": number} if number % 5 == 0 else {}),
        }
        for number in range(1000)
    ]
    tfr.build(rows, place, shards=4, splits={"test": 0.25}, jobs=1)
    return place


AGGREGATES = [
    "select count(*) from '{0}'",
    "select count(*), count(rare), sum(x), min(name), max(y), avg(x), sum(y), avg(y) from '{0}'",
    "select count(*), sum(x), avg(x), min(x) from '{0}' where x < 0",
    "select label, count(*) n, avg(x) from '{0}' group by label order by n desc, label",
    "select label, name, sum(x) / count(*) as mean from '{0}' t where t.x % 2 = 0 group by 1, 2 order by 1, 2",
    "select label + 1 as next, max(x) from '{0}' group by next having count(*) > 2 order by next desc limit 2",
    "select upper(name), count(*) filter (where x > 30) from '{0}' group by upper(name) order by count(*), 1",
    "select distinct count(*) from '{0}' group by name order by 1",
    "select T.label, count(*) from '{0}' as t group by LABEL order by t.label",
    "select len(many) as l, sum(len(many)) from '{0}' group by l order by l",
    "select max(_record), sum(_record), count(*) from '{0}' where label = 1",
    "select _split, _file, count(*), min(_record) from '{0}' group by 1, _file order by 2",
    "select _split, count(*) from '{0}' group by _split order by 1",
]
ROWS = [
    "select * from '{0}' where x between 30 and 90",
    "select x, name from '{0}' limit 5",
    "select x, name from '{0}' order by x desc limit 5",
    "select count(distinct name), median(x), stddev(x) from '{0}'",
    "select x, sum(x) over (order by x) as s from '{0}' where label = 1",
    "select label, list(name order by x) from '{0}' group by label order by label",
    "select a.x, b.y from '{0}' a join '{0}' b on a.x = b.x + 3 order by a.x limit 20",
    "select _record, x from '{0}' where _record > 990",
    "select _split, _file, x from '{0}' where _split = 'test' and x < 300",
    "select * from '{0}' where _split = 'test' and _file like '%00001-of%' and x < 300",
    "select label, count(*) from '{0}' group by rollup(label) order by all",
    "select name from (select name, x from '{0}' where x > 100) where x < 200",
    "with t as (select * from '{0}' where label = 2) select count(*) from t",
    "select label, count(*) from '{0}' group by all order by all",
]


@pytest.mark.parametrize("query", [*AGGREGATES, *ROWS])
def test_answers_are_those_of_one_machine(folder, query):
    text = query.format(folder)
    with tfr.sql(text) as here, tfr.sql(text, engine="ray") as there:
        assert (there.columns, there.types) == (here.columns, here.types)
        expected = list(here.tuples())
        assert expected
        assert list(there.tuples()) == expected
        assert list(there.tuples()) == expected  # a second pass asks the workers again


@pytest.mark.parametrize("query", AGGREGATES)
def test_aggregates_are_computed_by_the_workers(folder, query, monkeypatch):
    monkeypatch.setattr(LIMITS, "gathered_nbytes", 6000)
    with tfr.sql(query.format(folder), engine="ray") as answer:
        assert list(answer.tuples())


def test_merged_partial_results_give_the_same_answer(folder, monkeypatch):
    text = f"select name, label, count(*), avg(x), min(y) from '{folder}' group by name, label order by all"
    expected = list(tfr.sql(text).tuples())
    merged = []
    original = on_workers._merge
    monkeypatch.setattr(on_workers, "_merge", lambda *given: merged.append(original(*given)))
    monkeypatch.setattr(LIMITS, "gathered_nbytes", 2000)
    assert list(tfr.sql(text, engine="ray").tuples()) == expected
    assert merged


def test_rows_above_the_limit_are_refused(folder, monkeypatch):
    monkeypatch.setattr(LIMITS, "gathered_nbytes", 6000)
    with (
        tfr.sql(f"select x, name from '{folder}' order by x", engine="ray") as answer,
        pytest.raises(QueryError, match=r"brings more than 0 MB from the workers[^\n]*\n.*count, sum, min"),
    ):
        list(answer.tuples())


def test_arrow_stream_has_the_names_and_values_of_one_machine(folder):
    import pyarrow

    text = f"select label, count(*), avg(x) as mean from '{folder}' group by label order by label"
    here, there = pyarrow.table(tfr.sql(text)), pyarrow.table(tfr.sql(text, engine="ray"))
    assert there.equals(here)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "tfrecord"])
def test_saved_files_are_those_of_one_machine(folder, tmp_path, suffix):
    for engine in ("local", "ray"):
        with tfr.sql(f"select * from '{folder}' where x % 2 = 0", engine=engine) as answer:
            answer.save(tmp_path / f"{engine}.{suffix}")
    assert (tmp_path / f"ray.{suffix}").read_bytes() == (tmp_path / f"local.{suffix}").read_bytes()


def test_table_of_another_program_is_joined(folder):
    import pyarrow

    table = pyarrow.table({"label": [0, 2], "title": ["zero", "two"]})
    text = f"select title, count(*) from '{folder}' f join titles on f.label = titles.label group by title order by 1"
    expected = list(tfr.sql(text, tables={"titles": table}).tuples())
    assert list(tfr.sql(text, tables={"titles": table}, engine="ray").tuples()) == expected


def test_damage_is_reported_as_on_one_machine(folder, tmp_path):
    import shutil

    shutil.copytree(folder, tmp_path / "bad", ignore=shutil.ignore_patterns("_index"))
    path = sorted((tmp_path / "bad").glob("*.tfrecord-*"))[2]
    path.write_bytes(flip(path.read_bytes(), path.stat().st_size // 2))
    errors = []
    for engine in ("local", "ray"):
        with pytest.raises(CorruptRecordError, match="checksum") as caught:
            list(tfr.sql(f"select sum(x) from '{tmp_path / 'bad'}'", engine=engine))
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_text_that_is_not_utf8_names_the_record_of_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(LIMITS, "schema_nbytes", 0)
    monkeypatch.setattr(LIMITS, "schema_records", 1)
    for number in range(3):
        with tfr.Writer(tmp_path / f"t-{number:05d}-of-00003.tfrecord") as writer:
            for index in range(5000):
                writer.write({"t": b"\xff" if (number, index) == (2, 3001) else b"text", "x": index})
    errors = []
    for engine in ("local", "ray"):
        with pytest.raises(SchemaError, match="13001") as caught:
            list(tfr.sql(f"select t, x from '{tmp_path}' where x >= 0", engine=engine))
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_error_in_an_expression_is_reported(folder):
    for engine in ("local", "ray"):
        with pytest.raises(QueryError, match="could not convert string 'n"):
            list(tfr.sql(f"select sum(name::int) from '{folder}'", engine=engine))


def test_pipe_is_refused():
    with pytest.raises(StorageError, match="expected a file, got a pipe"):
        tfr.sql("select count(*) from '-'", engine="ray")
