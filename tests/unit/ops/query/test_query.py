from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit
from tfrkit.batches import engine
from tfrkit.batches.byte_ranges import read_ranges
from tfrkit.errors import CorruptRecordError, NotATFRecordError, QueryError, SchemaError, StorageError
from tfrkit.ops.query.query import Answer, sql
from tfrkit.ops.query.scan import QueryTable
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import encode_example, encode_sequence_example, write_frames

pytest.importorskip("duckdb")

JPEG = b"\xff\xd8\xff\xe0"


def row(number: int) -> dict[bytes, tuple[str, list[object]]]:
    return {
        b"label": ("int64", [number % 3]),
        b"name": ("bytes", [f"näme {number}".encode()]),
        b"image/height": ("float", [number / 2]),
        b"image": ("bytes", [JPEG + bytes([number])]),
        b"tokens": ("int64", list(range(number))),
        **({b"note": ("bytes", [b"odd"])} if number % 2 else {}),
    }


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two shards of ten records together, in the current folder."""
    monkeypatch.chdir(tmp_path)
    records = [encode_example(row(number)) for number in range(10)]
    (tmp_path / "train-0.tfrecord").write_bytes(write_frames(records[:4]))
    (tmp_path / "train-1.tfrecord").write_bytes(write_frames(records[4:]))
    return tmp_path


def decoded(answer: Answer) -> list[list[str]]:
    return [sorted(scan.features) for scan in answer._session.scans]


def test_threads_is_a_deprecated_alias_of_jobs(data: Path) -> None:
    with pytest.warns(DeprecationWarning, match="threads is deprecated, use jobs") as caught:
        answer = sql("select label from 'train-*'", threads=3)
    assert caught[0].filename == __file__
    assert answer._session._threads == sql("select label from 'train-*'", jobs=3)._session._threads == 3


@pytest.mark.parametrize("at", [None, 3_000_000])
def test_a_large_file_is_read_by_several_threads_with_the_same_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int | None
) -> None:
    records = [encode_example({**row(number % 50), b"id": ("int64", [number])}) for number in range(24_000)]
    frames = write_frames(records)
    path = tmp_path / "large.tfrecord"
    path.write_bytes(frames if at is None else flip(frames, at))
    called: list[int] = []

    def read(shards: Any, decoder: Any, *, threads: int) -> Any:
        called.append(threads)
        return read_ranges(shards, decoder, threads=threads, range_nbytes=1 << 16)

    monkeypatch.setattr(engine, "read_ranges", read)
    answers = []
    for jobs in (1, 3):
        rows: list[object] = []
        try:
            rows += sql(f"select id, name, note, len(tokens) n, _record from '{path}'", jobs=jobs).tuples()
        except CorruptRecordError as error:
            rows = [(error.record, error.offset, error.what)]  # rows before it may have come
        answers.append(rows)
    assert answers[0] == answers[1]
    assert len(answers[0]) == (len(records) if at is None else 1)
    assert called == [3]


def test_glob_is_a_table(data: Path) -> None:
    answer = sql(
        "select label, count(*) n, avg(\"image/height\") h from 'train-*' group by label order by n desc, label"
    )
    assert list(answer) == [
        {"label": 0, "n": 4, "h": 2.25},
        {"label": 1, "n": 3, "h": 2.0},
        {"label": 2, "n": 3, "h": 2.5},
    ]
    assert answer.columns == ["label", "n", "h"]
    assert answer.types == ["BIGINT", "BIGINT", "DOUBLE"]
    assert decoded(answer) == [["image/height", "label"]]


@pytest.mark.parametrize(
    ("query", "features"),
    [
        ("select count(*) from 'train-*'", []),
        ("select max(_record) from 'train-*'", []),
        ("select _file, _split, count(*) from 'train-*' group by all", []),
        ("select name from 'train-*' where label = 1", ["label", "name"]),
        ("with t as (select * from 'train-*') select count(*) from t where note is null", ["note"]),
        ("select NAME from 'train-*'", ["name"]),
        ("select len(tokens) from 'train-*' order by \"IMAGE/height\"", ["image/height", "tokens"]),
        ("select * from 'train-*'", ["image", "image/height", "label", "name", "note", "tokens"]),
    ],
)
def test_only_named_features_are_decoded(data: Path, query: str, features: list[str]) -> None:
    assert decoded(sql(query)) == [features]


QUERIES = [
    "select count(*) from 'train-*'",
    "select count(note), count(*) from 'train-*'",
    "select label, list(name order by name) from 'train-*' group by all order by all",
    "select * from 'train-*' order by name",
    "select * exclude (image) from 'train-*' where len(tokens) > 3 order by name",
    "select unnest(tokens) t, count(*) from 'train-*' group by 1 order by 1",
    "select a.name, b.name from 'train-*' a join 'train-*' b on a.label = b._record order by 1, 2",
    "select count(*) from (select distinct * from 'train-*')",
    "select count(*) from (select * from 'train-0.tfrecord' union select * from 'train-*')",
    "select count(*) from (select * from 'train-*' except all select * from 'train-0.tfrecord')",
    "with t as (select * from 'train-*' where label = 1) select max(name), min(\"image/height\") from t",
    "select name from 'train-*' where label in (select label from 'train-0.tfrecord' where note = 'odd') order by 1",
    "select t from 'train-0.tfrecord' t order by t.name",
    "select #1 from 'train-*' order by 1",
    "select columns('^n') from 'train-*' order by 1",
    "select count(*) from 'train-0.tfrecord' natural join 'train-*'",
    "select row_number() over (order by name desc) r, label from 'train-*' order by r",
    "select a, c from 'train-*' t(a, b, c) order by a, c",
    "select max(octet_length(image)) from 'train-*' where exists (select * from 'train-0.tfrecord' u where label = 2)",
    "select label from 'train-*' where name like '%7' or tokens = [0, 1]",
    "select image = '\\xFF\\xD8\\xFF\\xE0\\x03'::blob x from 'train-*' order by name",
]


@pytest.mark.parametrize("query", QUERIES)
def test_answer_is_that_of_decoding_everything(data: Path, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    quick = list(sql(query))
    scan = QueryTable.scan
    monkeypatch.setattr(
        QueryTable, "scan", lambda *arguments, **options: scan(*arguments, **{**options, "everything": True})
    )
    assert list(sql(query)) == quick
    assert quick


def test_answer_equals_our_rows(data: Path) -> None:
    found = list(sql("select * from 'train-*'"))
    rows = list(tfrkit.open("train-*"))
    assert len(found) == len(rows) == 10
    for got, wanted in zip(found, rows, strict=True):
        assert got["name"] == wanted["name"].decode()
        assert got["image"] == wanted["image"]
        assert got["note"] == (wanted["note"].decode() if "note" in wanted else None)
        np.testing.assert_array_equal(got["tokens"], wanted["tokens"])


def test_text_compares_with_a_string_and_bytes_do_too(data: Path) -> None:
    assert list(sql("select label from 'train-*' where name = 'näme 5'")) == [{"label": 2}]
    assert sql("select name, image from 'train-*'").types == ["VARCHAR", "BLOB"]
    assert list(sql(r"select label from 'train-*' where image = '\xFF\xD8\xFF\xE0\x05'::blob")) == [{"label": 2}]
    as_bytes = sql("select name from 'train-*' limit 1", binary=["name"])
    assert (as_bytes.types, list(as_bytes)) == (["BLOB"], [{"name": "näme 0".encode()}])


def test_unknown_columns_are_reported_with_the_nearest(data: Path) -> None:
    with pytest.raises(
        QueryError, match=r"no column lable, did you mean label - at character 8 of the query\n  columns: "
    ) as caught:
        sql("select lable from 'train-*'")
    assert caught.value.position == 7
    with pytest.raises(QueryError, match='did you mean "image/height" - at character 12'):
        sql("select avg(height) from 'train-*'")
    with pytest.raises(QueryError, match='no column image, did you mean "image/height"'):
        sql("select image/height from (select * exclude (image) from 'train-*')")
    with pytest.raises(QueryError, match="no feature 'nmae', did you mean 'name'"):
        sql("select name from 'train-*'", binary=["nmae"])


def test_type_and_function_errors_are_reported_with_their_position(data: Path) -> None:
    with pytest.raises(QueryError, match=r"could not convert string 'cat' to INT64 - at character \d+ of the query"):
        list(sql("select name from 'train-*' where label = 'cat'"))
    with pytest.raises(QueryError, match=r"no function matches .*BLOB.*\n  bytes that are text: decode\(column\)"):
        sql("select name from 'train-*' where image like 'a%'")
    with pytest.raises(QueryError, match="scalar Function with name nofunc does not exist"):
        sql("select nofunc(label) from 'train-*'")


def test_query_reaches_no_file_but_its_tables(data: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with pytest.raises(NotATFRecordError, match="expected a TFRecord"):
        sql("select * from 'secret.csv'")
    for query in (
        "select * from read_text('secret.csv')",
        "select * from glob('*')",
        "select * from sniff_csv('secret.csv')",
    ):
        with pytest.raises(QueryError, match="tables are TFRecord files, got the function"):
            sql(query)
    secret = [1]  # noqa: F841  (a variable that a query must not see)
    with pytest.raises(StorageError, match="no such file"):
        sql("select * from secret")
    connection = sql("select 1")._session.connection
    for statement in ("install httpfs", "load httpfs", "set enable_external_access = true", "attach 'x.db'"):
        with pytest.raises(Exception, match="disabled by configuration|locked|[Pp]ermission"):
            connection.execute(statement)
    assert sorted(os.listdir(tmp_path)) == ["secret.csv", "train-0.tfrecord", "train-1.tfrecord"]


def test_missing_file_and_empty_glob_are_reported(data: Path) -> None:
    with pytest.raises(StorageError, match="no file matches - at test-"):
        sql("select * from 'test-*'")
    with pytest.raises(StorageError, match="no such file or directory - at train-0.tfrecrd\n  did you mean train-0"):
        sql("select * from 'train-0.tfrecrd'")


def test_damage_is_raised_and_not_seen_by_header_counts(data: Path) -> None:
    path = data / "train-1.tfrecord"
    content = path.read_bytes()
    path.write_bytes(flip(content, frame_offsets(content)[2] + 20))
    with pytest.raises(
        CorruptRecordError, match=r"payload checksum mismatch, .* - at train-1.tfrecord, record 2, byte"
    ):
        list(sql("select label from 'train-*'"))
    assert list(sql("select count(*) n from 'train-*'")) == [{"n": 10}]


def test_sequence_examples_are_two_structs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    records = [
        encode_sequence_example(
            {b"name": ("bytes", [f"clip {number}".encode()]), b"size": ("int64", [number])},
            {b"frame": [("int64", [number, step]) for step in range(number + 1)], b"name": [("bytes", [b"\xff"])]},
        )
        for number in range(3)
    ]
    (tmp_path / "s.tfrecord").write_bytes(write_frames(records))
    answer = sql("select context.name, len(feature_lists.frame) n from 's.tfrecord' where context.size > 0")
    assert list(answer) == [{"name": "clip 1", "n": 2}, {"name": "clip 2", "n": 3}]
    assert decoded(answer) == [["frame", "name", "name", "size"]]
    assert next(iter(sql("select feature_lists.frame f from 's.tfrecord' where context.size = 1")))["f"] in (
        [(1, 0), (1, 1)],
        [[1, 0], [1, 1]],
    )
    assert list(sql("select context from 's.tfrecord' limit 1")) == [{"context": {"name": "clip 0", "size": 0}}]
    assert decoded(sql("select count(*) from 's.tfrecord'")) == [[]]
    with pytest.raises(QueryError, match="nam"):
        sql("select context.nam from 's.tfrecord'")
    with pytest.raises(QueryError, match=r"no column name, did you mean .*context.name"):
        sql("select name from 's.tfrecord'")


def test_float16_is_float32_in_a_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with tfrkit.Writer("half.tfrecord") as writer:
        for number in range(3):
            half = np.full(number + 1, 0.5, np.float16)
            writer.write({"fixed": np.full((2, 1), number, np.float16), "ragged": half})
    answer = sql("select * from 'half.tfrecord' limit 2")
    assert [np.array(one["fixed"]).tolist() for one in answer] == [[[0.0], [0.0]], [[1.0], [1.0]]]
    assert [list(one["ragged"]) for one in answer] == [[0.5], [0.5, 0.5]]
    assert answer.types == ["FLOAT[1][2]", "FLOAT[]"]


def test_raw_records_are_one_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.tfrecord").write_bytes(write_frames([b"first line", b"second line"]))
    (tmp_path / "b.tfrecord").write_bytes(write_frames([b"\xff\x00\x01", b"abc\xfe"]))
    assert list(sql("select record from 't.tfrecord' where record like 'second%'")) == [{"record": "second line"}]
    assert list(sql("select * from 'b.tfrecord'")) == [{"record": b"\xff\x00\x01"}, {"record": b"abc\xfe"}]
    assert list(sql("select count(*) n from 'b.tfrecord'")) == [{"n": 2}]


def test_text_column_with_binary_values_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [b"line"] * 6000
    (tmp_path / "t.tfrecord").write_bytes(write_frames([*lines, b"\xff"]))
    with pytest.raises(
        SchemaError, match=r"expected text, got bytes that are not UTF-8 - at row 6000\n  take it as bytes: binary="
    ):
        list(sql("select max(record) from 't.tfrecord'"))
    assert list(sql("select count(distinct record) n from 't.tfrecord'", binary=["record"])) == [{"n": 2}]


def test_features_whose_names_differ_in_case_are_both_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    record = encode_example({b"Label": ("int64", [1]), b"label": ("int64", [2]), b"label_1": ("int64", [3])})
    (tmp_path / "x.tfrecord").write_bytes(write_frames([record]))
    (found,) = sql("select * from 'x.tfrecord'")
    assert sorted(found.values()) == [1, 2, 3]
    second = next(name for name, value in found.items() if value == 2)
    assert list(sql(f"select {second} v from 'x.tfrecord'")) == [{"v": 2}]


CASES = {b"label": ("int64", [20]), b"Label": ("int64", [2])}


@pytest.mark.parametrize(
    "query",
    [
        "select label from 'x.tfrecord'",
        "select 1 from 'x.tfrecord' where \"Label\" = 2",
        "select t.LABEL from 'x.tfrecord' t",
        "select * exclude (label) from 'x.tfrecord'",
        "select label from 'x.tfrecord' x join 'y.tfrecord' y on x.label_2 = y.label",
        "select 1 from 'x.tfrecord' join 'y.tfrecord' using (label)",
        "select label from 'x.tfrecord' label",
    ],
)
def test_name_that_several_features_share_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.tfrecord").write_bytes(write_frames([encode_example(CASES)]))
    (tmp_path / "y.tfrecord").write_bytes(write_frames([encode_example({b"label": ("int64", [20])})]))
    message = (
        r"column 'label' expected one feature, got 'Label' and 'label', which SQL does not tell apart.*"
        r"\n  write Label_1 for 'Label', label_2 for 'label'"
    )
    with pytest.raises(QueryError, match=message):
        sql(query)


def test_features_that_share_a_name_have_numbered_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.tfrecord").write_bytes(write_frames([encode_example(CASES)]))
    (tmp_path / "y.tfrecord").write_bytes(write_frames([encode_example({b"label": ("int64", [20])})]))
    (found,) = sql("select * from 'x.tfrecord'")
    assert found == {"Label_1": 2, "label_2": 20}
    assert list(sql("select label_2 as label from 'x.tfrecord' order by label")) == [{"label": 20}]
    joined = sql("select y.label from 'x.tfrecord' x join 'y.tfrecord' y on x.label_2 = y.label")
    assert list(joined) == [{"label": 20}]
    record = encode_sequence_example({b"ID": ("int64", [1]), b"id": ("int64", [2])}, {b"f": [("int64", [1])]})
    (tmp_path / "s.tfrecord").write_bytes(write_frames([record]))
    assert list(sql("select context.id_2 v from 's.tfrecord'")) == [{"v": 2}]
    with pytest.raises(QueryError, match=r"got 'ID' and 'id'.*\n  write context.ID_1 for 'ID', context.id_2 for 'id'"):
        sql("select context.id from 's.tfrecord'")


def test_feature_with_an_empty_name_has_a_column_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    record = encode_example({b"": ("int64", [1]), b"v0": ("int64", [2])})
    (tmp_path / "x.tfrecord").write_bytes(write_frames([record]))
    (found,) = sql("select * from 'x.tfrecord'")
    assert found == {"_empty": 1, "v0": 2}
    assert list(sql("select v0, _empty from 'x.tfrecord'")) == [{"v0": 2, "_empty": 1}]


def test_feature_of_several_kinds_is_refused_only_when_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    records = [encode_example({b"a": ("int64", [1]), b"m": kind}) for kind in (("int64", [1]), ("bytes", [b"x"]))]
    (tmp_path / "x.tfrecord").write_bytes(write_frames(records))
    assert list(sql("select sum(a) s from 'x.tfrecord'")) == [{"s": 2}]
    for query in ("select * from 'x.tfrecord'", "select m from 'x.tfrecord'"):
        with pytest.raises(
            QueryError, match="column 'm' expected one kind, got .*\n  leave 'm' out: name the other columns"
        ):
            sql(query)
    with pytest.raises(
        QueryError, match="no column b - at character 8 of the query\n  columns: a, m, _record, _file, _split$"
    ):
        sql("select b from 'x.tfrecord'")


def test_class_names_are_a_column_of_their_own(data: Path) -> None:
    (data / "classes.txt").write_text("0:cat\n1:dog's\n")
    found = list(sql("select label, label_name, count(*) n from 'train-*' group by all order by 1"))
    assert [(row["label"], row["label_name"]) for row in found] == [(0, "cat"), (1, "dog's"), (2, None)]
    assert "label_name" not in sql("select * from 'train-*'").columns
    with pytest.raises(QueryError, match="\n  names of classes are in label_name"):
        list(sql("select name from 'train-*' where label = 'cat'"))
    (data / "classes.txt").unlink()
    with pytest.raises(QueryError, match="no column label_name, did you mean label"):
        sql("select label_name from 'train-*'")


def test_numbers_of_records_are_no_part_of_a_star(data: Path) -> None:
    names = sql("select * from 'train-*'").columns
    for query in (
        "select * from 'train-*' where _record = 7",
        "select t.* from 'train-*' t where t._record = 7",
        "select * from (select * from 'train-*' where _record = 7)",
        "from 'train-*' where _RECORD = 7",
    ):
        answer = sql(query)
        assert answer.columns == names
        assert [row["name"] for row in answer] == ["näme 7"]
    assert sql("select _record, * from 'train-*' limit 1").columns == ["_record", *names]
    assert len(sql("select * from 'train-*' a join 'train-*' b on a._record = b._record").columns) == 2 * len(names)
    with pytest.raises(QueryError, match="no column _record"):
        sql("select * from (select * from 'train-*') where _record = 7")
    with pytest.raises(QueryError, match="could not convert string 'x' to INT64$"):
        list(sql("select * from 'train-*' where _record = 7 and label = 'x'"))


def test_file_and_split_of_each_record_are_columns(data: Path) -> None:
    found = list(sql("select _record r, _file f, _split s, name from 'train-*' order by r").tuples())
    assert found == [(number, f"train-{int(number >= 4)}.tfrecord", "train", f"näme {number}") for number in range(10)]
    names = sql("select * from 'train-*'").columns
    assert sql("select * from 'train-*' where _file like '%1.tfrecord' and _split = 'train'").columns == names
    assert sql("select _split, *, _FILE from 'train-*'").columns == ["_split", *names, "_file"]
    with pytest.raises(QueryError, match="no column _files, did you mean _file"):
        sql("select _files from 'train-*'")


def test_counts_by_file_and_split_read_no_feature(data: Path) -> None:
    (data / "test-0.tfrecord").write_bytes((data / "train-0.tfrecord").read_bytes())
    (data / "other.tfrecord").write_bytes((data / "train-1.tfrecord").read_bytes())
    query = "select _split, _file, count(*) from '*.tfrecord' group by all order by 2"
    assert list(sql(query).tuples()) == [
        (None, "other.tfrecord", 6),
        ("test", "test-0.tfrecord", 4),
        ("train", "train-0.tfrecord", 4),
        ("train", "train-1.tfrecord", 6),
    ]
    assert list(sql("select count(*), count(_split) from '*.tfrecord'").tuples()) == [(20, 14)]
    assert list(sql("select _split, _file from 'other.tfrecord' limit 1").tuples()) == [(None, "other.tfrecord")]


def test_empty_files_move_no_file_names(data: Path) -> None:
    for name in ("a", "train-00", "z"):
        (data / f"{name}.tfrecord").write_bytes(b"")
    found = list(sql("select _file, min(name), count(*) from '*.tfrecord' group by 1 order by 1").tuples())
    assert found == [("train-0.tfrecord", "näme 0", 4), ("train-1.tfrecord", "näme 4", 6)]


def test_file_of_a_pipe_is_a_dash(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(data / "train-0.tfrecord", "rb") as file:
        monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": file, "fileno": file.fileno})())
        assert list(sql("select distinct _file, _split from '-'").tuples()) == [("-", None)]


def test_features_that_are_called_as_our_columns_are_the_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = {b"_file": ("bytes", [b"f"]), b"_split": ("int64", [5])}
    (tmp_path / "x.tfrecord").write_bytes(write_frames([encode_example(mine)]))
    assert list(sql("select *, _record r from 'x.tfrecord' where _split = 5")) == [{"_file": "f", "_split": 5, "r": 0}]


def test_feature_that_is_called_as_our_numbers_is_the_feature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.tfrecord").write_bytes(write_frames([encode_example({b"_record": ("int64", [40])})]))
    assert list(sql("select * from 'x.tfrecord' where _record = 40")) == [{"_record": 40}]


def test_tables_may_be_given_by_name(data: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    names = pyarrow.table({"id": [0, 1, 2], "word": ["a", "b", "c"]})
    found = sql(
        "select word, count(*) n from t join names on id = label group by 1 order by 1",
        tables={"T": ["train-0.tfrecord", "train-1.tfrecord"], "names": names},
    )
    assert list(found) == [{"word": "a", "n": 4}, {"word": "b", "n": 3}, {"word": "c", "n": 3}]
    ds = tfrkit.open("train-*")
    assert list(sql("select sum(label) s from ds", tables={"ds": ds})) == [{"s": 9}]
    with pytest.raises(ValueError, match="differ by more than case"):
        sql("select 1", tables={"a": "x", "A": "y"})


def test_answer_is_an_arrow_stream(data: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(sql("select label, name from 'train-*' where label = 2 order by name"))
    assert table.to_pylist() == [{"label": 2, "name": f"näme {number}"} for number in (2, 5, 8)]


def test_answer_can_be_read_again_and_left_in_the_middle(data: Path) -> None:
    answer = sql("select name from 'train-*'")
    for _ in range(3):
        assert next(iter(answer)) == {"name": "näme 0"}
    assert len(list(answer)) == len(list(answer)) == 10
    answer.close()


def test_empty_dataset_has_no_rows_and_no_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.tfrecord").write_bytes(b"")
    assert list(sql("select count(*) n from 'x.tfrecord'")) == [{"n": 0}]
    with pytest.raises(
        QueryError, match="no column label - at character 8 of the query\n  these tables have no columns"
    ):
        sql("select label from 'x.tfrecord'")


def test_compressed_shards_give_the_same(data: Path) -> None:
    import gzip

    wanted = list(sql("select label, name from 'train-*' order by name"))
    path = data / "train-1.tfrecord"
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert list(sql("select label, name from 'train-*' order by name")) == wanted


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="query expected a str, got bytes"):
        sql(b"select 1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="binary expected a list of names"):
        sql("select 1", binary="name")


def test_describe_and_json_form(data: Path) -> None:
    answer = sql("select label, label, {'a': image} s from 'train-*' limit 1")
    assert answer.to_json() == {
        "columns": [
            {"name": "label", "type": "BIGINT"},
            {"name": "label_1", "type": "BIGINT"},
            {"name": "s", "type": "STRUCT(a BLOB)"},
        ],
        "rows": [{"label": 0, "label_1": 0, "s": {"a": {"base64": "/9j/4AA="}}}],
    }
    described = {row["column_name"]: row["column_type"] for row in sql("describe select * from 'train-*'")}
    assert described["tokens"] == "BIGINT[]"


def test_answer_shows_its_columns() -> None:
    assert repr(sql("select 1 a, 'x' b")) == "Answer(a INTEGER, b VARCHAR)"
    wide = sql(f"select {', '.join(f'{number} c{number}' for number in range(20))}")
    assert repr(wide).endswith("c7 INTEGER, … 20 columns)")
