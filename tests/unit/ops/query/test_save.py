from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

import tfrkit
from tfrkit.errors import CorruptRecordError, QueryError, StorageError
from tfrkit.ops.query.query import sql
from tfrkit.ops.query.save import find_kind
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import encode_example, encode_sequence_example, write_frames

duckdb = pytest.importorskip("duckdb")


def make_records(count: int) -> list[bytes]:
    return [
        encode_example(
            {
                b"label": ("int64", [number % 3]),
                b"name": ("bytes", [f"a,{number}\nü".encode()]),
                b"image": ("bytes", [b"\xff\xd8" + bytes([number])]),
                b"tokens": ("int64", list(range(number % 4))),
                **({b"x": ("float", [number / 2])} if number % 2 else {}),
            }
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("value", ["sum(big)", "list(big::hugeint * 2)", "9223372036854775808::ubigint"])
def test_integers_wider_than_int64_are_an_error_with_a_next_step(tmp_path: Path, value: str) -> None:
    with tfrkit.Writer(tmp_path / "t.tfrecord") as writer:
        writer.write({"big": 2**62})
        writer.write({"big": 2**62})
    where = f"from '{tmp_path}/t.tfrecord'"
    what = r"feature 'a b' expected a signed 64-bit integer, got 9223372036854775808 - at row 0\n  .*::float as a_b, or"
    with pytest.raises(QueryError, match=what):
        sql(f'select {value} as "a b" {where}').save(tmp_path / "out.tfrecord")
    assert not (tmp_path / "out.tfrecord").exists()
    sql(f"select ({value})::varchar as s {where} limit 1").save(tmp_path / "out.tfrecord")
    (row,) = tfrkit.open(tmp_path / "out.tfrecord")
    assert b"9223372036854775808" in row["s"]


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Three shards, the second one gzip."""
    monkeypatch.chdir(tmp_path)
    records = make_records(30)
    (tmp_path / "t-0.tfrecord").write_bytes(write_frames(records[:10]))
    (tmp_path / "t-1.tfrecord").write_bytes(gzip.compress(write_frames(records[10:20])))
    (tmp_path / "t-2.tfrecord").write_bytes(write_frames(records[20:]))
    return records


def stored(path: str) -> list[bytes]:
    return list(tfrkit.open(path).records())


def test_select_star_copies_matching_records_byte_for_byte(records: list[bytes]) -> None:
    answer = sql("select * from 't-*' where label = 1 and len(tokens) > 0")
    saved = answer.save("out.tfrecord")
    wanted = [record for number, record in enumerate(records) if number % 3 == 1 and number % 4]
    assert stored("out.tfrecord") == wanted
    assert saved.to_json() == {
        "output": "out.tfrecord",
        "records": len(wanted),
        "columns": answer.columns,
        "copied": True,
    }
    # Unused features are not decoded.
    assert [scan.features for scan in answer._session.scans] == [["label", "tokens"]]


@pytest.mark.parametrize("extra", ["", " and _record < 20"])
def test_a_star_of_another_table_has_no_numbers_of_records(tmp_path: Path, records: list[bytes], extra: str) -> None:
    labels = [encode_example({b"label": ("int64", [label])}) for label in (0, 2)]
    (tmp_path / "labels.tfrecord").write_bytes(write_frames(labels))
    query = f"select * from 't-*' where label in (select * from 'labels.tfrecord'){extra}"
    assert sql(query).save("out.tfrecord").copied
    stop = 20 if extra else 30
    assert stored("out.tfrecord") == [record for number, record in enumerate(records[:stop]) if number % 3 != 1]


def test_records_are_copied_in_the_order_requested(records: list[bytes]) -> None:
    assert sql("select * from 't-*' order by label desc, name limit 3").save("out.tfrecord").records == 3
    ordered = sorted(range(30), key=lambda number: (-(number % 3), f"a,{number}\nü"))
    assert stored("out.tfrecord") == [records[number] for number in ordered[:3]]


def test_copies_of_raw_records_and_sequences_are_those_records(tmp_path: Path, records: list[bytes]) -> None:
    (tmp_path / "raw.tfrecord").write_bytes(write_frames([b"one", b"\xfftwo", b"three"]))
    sql("select * from 'raw.tfrecord' where octet_length(record) > 3").save("raw_out.tfrecord")
    assert stored("raw_out.tfrecord") == [b"\xfftwo", b"three"]
    sequences = [encode_sequence_example({b"n": ("int64", [n])}, {b"f": [("int64", [n])] * n}) for n in range(1, 4)]
    (tmp_path / "seq.tfrecord").write_bytes(write_frames(sequences))
    sql("select * from 'seq.tfrecord' where context.n <> 2").save("seq_out.tfrecord")
    assert stored("seq_out.tfrecord") == [sequences[0], sequences[2]]


@pytest.mark.parametrize("order", ["", " order by id desc"])
def test_records_with_a_feature_named_like_their_number_are_copied_by_their_own_numbers(
    tmp_path: Path, records: list[bytes], order: str
) -> None:
    names = (b"_record", b"_file", b"_split")
    rows = [encode_example({b"id": ("int64", [i]), **{n: ("int64", [9 - i]) for n in names}}) for i in range(4)]
    (tmp_path / "rev.tfrecord").write_bytes(write_frames(rows))
    sql(f"select * from 'rev.tfrecord' where id < 2 and _record > 7{order}").save("out.tfrecord")
    assert stored("out.tfrecord") == (rows[1::-1] if order else rows[:2])
    assert [row["_record"] for row in sql("select _record from 'rev.tfrecord'")] == [9, 8, 7, 6]


def test_feature_named_like_our_own_number_is_refused_for_copies_only(tmp_path: Path, records: list[bytes]) -> None:
    row = encode_example({b"tfrkit_record_number": ("int64", [5])})
    (tmp_path / "own.tfrecord").write_bytes(write_frames([row]))
    answer = sql("select * from 'own.tfrecord'")
    assert list(answer) == [{"tfrkit_record_number": 5}]
    with pytest.raises(QueryError, match="features expected other names than tfrkit_record_number"):
        answer.save("out.tfrecord")


def test_copies_keep_the_compression_by_default(tmp_path: Path, records: list[bytes]) -> None:
    sql("select * from 't-1.tfrecord'").save("a.tfrecord")
    assert (tmp_path / "a.tfrecord").read_bytes()[:2] == b"\x1f\x8b"
    sql("select * from 't-1.tfrecord'").save("b.tfrecord", compression="none")
    assert (tmp_path / "b.tfrecord").read_bytes() == write_frames(records[10:20])
    sql("select * from 't-0.tfrecord'").save("c.tfrecord.gz")
    assert gzip.decompress((tmp_path / "c.tfrecord.gz").read_bytes()) == write_frames(records[:10])
    assert sql("select * from 't-*' where label = 7").save("none.tfrecord").records == 0
    assert (tmp_path / "none.tfrecord").read_bytes() == b""


def test_named_columns_become_new_examples(records: list[bytes]) -> None:
    answer = sql("select name, x, tokens, label::int = 1 as odd from 't-0.tfrecord' where _record < 4 order by _record")
    saved = answer.save("out.tfrecord")
    assert (saved.records, saved.copied) == (4, False)
    rows = list(tfrkit.open("out.tfrecord"))
    assert [row["name"].decode() for row in rows] == [f"a,{number}\nü" for number in range(4)]
    assert [row.get("x") for row in rows] == [None, 0.5, None, 1.5]
    assert [row["tokens"].tolist() for row in rows] == [[], [0], [0, 1], [0, 1, 2]]
    assert [row["odd"] for row in rows] == [0, 1, 0, 0]


def test_structs_become_sequence_examples(tmp_path: Path, records: list[bytes]) -> None:
    sequences = [encode_sequence_example({b"n": ("int64", [n])}, {b"f": [("int64", [n])] * n}) for n in range(1, 4)]
    (tmp_path / "seq.tfrecord").write_bytes(write_frames(sequences))
    assert not sql("select context, feature_lists from 'seq.tfrecord'").save("out.tfrecord").copied
    assert stored("out.tfrecord") == sequences


@pytest.mark.parametrize(
    ("select", "message"),
    [
        (
            "avg(label)",
            r"column 'avg\(\"?label\"?\)' expected a type that a TFRecord can .*, got DOUBLE\n  .*::float as avg_label",
        ),
        ("sum(0.5)", r"got DECIMAL.*\n  .*::float as sum_0_5"),
        ("date '2020-01-01' as d", r"column 'd' .* got DATE\n  .*::varchar as d"),
        ("{'a': 1} as s", r"got STRUCT"),
        ("[[1]] as l", r"got INTEGER\[\]\[\]"),
    ],
)
def test_types_that_an_example_lacks_are_refused(records: list[bytes], select: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        sql(f"select {select} from 't-*'").save("out.tfrecord")
    assert not Path("out.tfrecord").exists()


def test_parquet_holds_the_same_rows(records: list[bytes]) -> None:
    answer = sql("select * from 't-*' order by _record")
    assert answer.save("out.parquet").records == 30
    with duckdb.connect() as connection:
        found = connection.execute("select * from 'out.parquet'").fetchall()
    assert found == list(answer.tuples())


def test_csv_and_jsonl_hold_the_same_rows(records: list[bytes]) -> None:
    answer = sql("select name, x, tokens, image from 't-*' order by _record")
    assert answer.save("out.csv").records == answer.save("out.jsonl").records == 30
    rows = [json.loads(line) for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows == list(answer.json_rows())
    with open("out.csv", encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0] == ["name", "x", "tokens", "image"]
    assert lines[4] == ["a,3\nü", "1.5", "[0, 1, 2]", json.dumps(rows[3]["image"])]
    assert lines[1][1] == ""


def test_nothing_is_replaced_unasked_and_never_a_source(records: list[bytes]) -> None:
    answer = sql("select * from 't-*'")
    for name in ("out.tfrecord", "out.parquet", "out.csv"):
        answer.save(name)
        with pytest.raises(StorageError, match=f"the output exists already - at {name}\n  replace it: force=True"):
            answer.save(name)
        answer.save(name, force=True)
    with pytest.raises(StorageError, match="the output is one of the files to read"):
        answer.save("t-0.tfrecord", force=True)


@pytest.mark.parametrize("name", ["out.tfrecord", "out.parquet", "out.csv", "out.jsonl"])
def test_damage_leaves_nothing(tmp_path: Path, records: list[bytes], name: str) -> None:
    content = (tmp_path / "t-2.tfrecord").read_bytes()
    (tmp_path / "t-2.tfrecord").write_bytes(flip(content, frame_offsets(content)[4] + 20))
    with pytest.raises(CorruptRecordError, match="t-2.tfrecord, record 4"):
        sql("select * from 't-*' where label = 1").save(name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t-0.tfrecord", "t-1.tfrecord", "t-2.tfrecord"]


@pytest.mark.parametrize("name", ["out.tfrecord", "out.parquet", "out.csv", "out.jsonl"])
def test_folders_above_an_output_are_made_and_go_with_it(tmp_path: Path, records: list[bytes], name: str) -> None:
    (tmp_path / "kept").mkdir()
    sql("select label from 't-0.tfrecord'").save(f"kept/a/b/{name}")
    assert (tmp_path / "kept/a/b" / name).is_file()
    with pytest.raises(QueryError, match="(?i)conversion|convert"):
        sql("select (name::int)::float x from 't-0.tfrecord'").save(f"kept/c/d/{name}")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["a"]


def test_folder_that_cannot_be_made_is_reported(tmp_path: Path, records: list[bytes]) -> None:
    with pytest.raises(StorageError, match="cannot make a folder, it is a file - at .*t-0.tfrecord"):
        sql("select label from 't-2.tfrecord'").save("t-0.tfrecord/out.csv")


def test_file_format_follows_the_suffix(records: list[bytes]) -> None:
    kinds = {
        "a.parquet": "parquet",
        "a.CSV": "csv",
        "a.ndjson": "jsonl",
        "a.tfrecord": "tfrecord",
        "a.tfrecord.gz": "tfrecord",
        "a.tfrec": "tfrecord",
        "a.record": "tfrecord",
    }
    assert {name: find_kind(name) for name in kinds} == kinds
    assert find_kind("x/train-00000-of-00001") == "tfrecord"
    with pytest.raises(
        ValueError, match="output expected a name that ends in .tfrecord, .parquet, .csv or .jsonl, got 'a.txt'"
    ):
        sql("select 1").save("a.txt")
    with pytest.raises(ValueError, match="compression applies to TFRecord output only, got 'gzip'"):
        sql("select 1").save("a.csv", compression="gzip")
