from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tfrkit
from tfrkit.testing.reference import encode_example, write_frames

pytest.importorskip("duckdb")


def test_sql_prints_a_table(tfr, sample: Path) -> None:
    done = tfr("sql", "select label % 2 odd, count(*) n, max(text) t from 'sample.tfrecord' group by 1 order by 1")
    assert done.lines == ["odd  n  t", "  0  5  grüße 8", "  1  5  grüße 9"]
    assert done.err == ""


def test_sql_names_of_columns_cannot_reach_the_terminal(tfr, tmp_path: Path) -> None:
    name = "\x1b[31mred\x1b[2J\u202e"
    (tmp_path / "e.tfrecord").write_bytes(write_frames([encode_example({name.encode(): ("int64", [7])})]))
    done = tfr("sql", "select * from 'e.tfrecord'")
    shown = "\\x1b[31mred\\x1b[2J\\u202e"
    assert done.lines == [shown, "7".rjust(len(shown))]
    for form in ("json", "jsonl", "csv"):
        assert not {"\x1b", "\u202e"} & set(tfr("sql", "select * from 'e.tfrecord'", "--format", form).out)


def test_sql_shortens_long_values_and_says_what_it_left_out(tfr, sample: Path) -> None:
    done = tfr("sql", "select image, text, tokens from 'sample.tfrecord' order by label", "-n", "5")
    assert done.lines[1].startswith("PNG 12x7, ")
    assert "  NULL  " in done.lines[5]
    assert done.lines[5].endswith("[0, 1, 2, 3, 4, 5, 6, 7, … 12 values]")
    assert done.err == "the first 5 rows, there are more: -n, --format jsonl, -o\n"
    assert tfr("sql", "select 1 a where false").lines == ["a"]


def test_sql_prints_json_jsonl_and_csv_of_the_same_rows(tfr, sample: Path) -> None:
    query = "select label, tokens, text from 'sample.tfrecord' where label in (1, 4) order by label"
    whole = tfr("sql", query, "--format", "json").json
    assert whole["columns"] == [
        {"name": "label", "type": "BIGINT"},
        {"name": "tokens", "type": "BIGINT[]"},
        {"name": "text", "type": "VARCHAR"},
    ]
    assert whole["rows"][0] == {"label": 1, "tokens": [0, 1, 2], "text": "grüße 1"}
    assert [__import__("json").loads(line) for line in tfr("sql", query, "-f", "jsonl").lines] == whole["rows"]
    assert tfr("sql", query, "-f", "csv").lines[:2] == ["label,tokens,text", '1,"[0, 1, 2]",grüße 1']


def test_sql_copies_matching_records_of_many_shards(tfr, sample: Path, shards: Path) -> None:
    done = tfr("sql", "select * from 'data' where weight >= 1 and text is not null", "-o", "out.tfrecord")
    assert done.lines == ["out.tfrecord: 5 records, copied byte for byte"]
    wanted = list(tfrkit.open(sample).records())
    assert list(tfrkit.open(sample.with_name("out.tfrecord")).records()) == wanted[5:]
    assert tfr("verify", "out.tfrecord").lines == ["ok, 5 records"]
    assert "replace it: --force" in tfr("sql", "select * from 'data'", "-o", "out.tfrecord", code=3).err
    result = tfr("sql", "select * from 'data'", "-o", "out.tfrecord", "--force", "--format", "json").json
    assert (result["records"], result["copied"], result["output"]) == (10, True, "out.tfrecord")


def test_sql_writes_other_files(tfr, sample: Path, tmp_path: Path) -> None:
    query = "select label, weight from 'sample.tfrecord' where label < 3"
    assert tfr("sql", query, "-o", "out.csv").lines == ["out.csv: 3 records"]
    assert (tmp_path / "out.csv").read_text() == "label,weight\n0,0.0\n1,0.25\n2,0.5\n"
    assert tfr("sql", query, "-o", "out.parquet").lines == ["out.parquet: 3 records"]
    assert tfr("sql", query, "-o", "new.tfrecord").lines == ["new.tfrecord: 3 records"]


def test_sql_makes_the_folders_above_its_output(tfr, sample: Path, tmp_path: Path) -> None:
    query = "select label, weight from 'sample.tfrecord'"
    for name in ("a/b/out.parquet", "c/out.csv", "d/out.jsonl", "e/f/new.tfrecord", "packed.gz"):
        assert tfr("sql", query, "-o", name).lines == [f"{name}: 10 records"]
        assert (tmp_path / name).is_file()
    assert tfr("sql", "select * from 'sample.tfrecord'", "-o", "g/copy.tfrecord").lines[0].startswith("g/copy.tfrecord")


def test_sql_options_that_do_not_fit_are_wrong_usage(tfr, sample: Path) -> None:
    query = "select label from 'sample.tfrecord'"
    assert "got 'out.xls'" in tfr("sql", query, "-o", "out.xls", code=2).err
    refused = tfr("sql", query, "-o", "out.csv", "--compression", "gzip", code=2)
    assert "compression applies to TFRecord output only" in refused.err
    assert "expected -o with it" in tfr("sql", query, "--compression", "gzip", code=2).err
    assert "no column lable" in tfr("sql", "select lable from 'sample.tfrecord'", code=3).err


def test_sql_errors_are_one_message(tfr, sample: Path, raw: Path) -> None:
    assert tfr("sql", "select lable from 'sample.tfrecord'", code=3).err.startswith(
        "tfr: no column lable, did you mean label - at character 8 of the query\n  columns: image, label, "
    )
    assert tfr("sql", "selct 1", code=3).err.startswith("tfr: syntax error at or near ")
    assert "no file matches" in tfr("sql", "select * from 'nope-*'", code=3).err
    assert "expected a SELECT" in tfr("sql", "drop table x", code=3).err
    assert "no feature 'labl'" in tfr("sql", "select label from 'sample.tfrecord'", "--binary", "labl", code=3).err
    assert tfr("sql", "select count(*) n from 'lines.tfrecord'", "-f", "csv").lines == ["n", "3"]


def test_sql_reads_stdin(tfr, sample: Path) -> None:
    done = tfr("sql", "select max(label) m from '-' where label < 5", "-f", "csv", stdin=sample.read_bytes())
    assert done.lines == ["m", "4"]


def test_sql_output_cannot_drive_the_terminal(tfr, tmp_path: Path) -> None:
    record = encode_example({b"t": ("bytes", [b"\x1b[31mred"])})
    (tmp_path / "x.tfrecord").write_bytes(write_frames([record]))
    assert tfr("sql", "select decode(t) t from 'x.tfrecord'").lines == ["t", "\\x1b[31mred"]


def test_sql_without_duckdb_says_what_to_install(sample: Path) -> None:
    code = (
        "import sys; sys.modules['duckdb'] = None\n"
        "from tfrkit.cli.main import main; sys.argv = ['tfr', 'sql', 'select 1']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == "tfr: duckdb is not installed\n  install it: pip install 'tfrkit[sql]'\n"
