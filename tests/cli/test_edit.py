"""`tfr edit`: values changed, records dropped, in a copy or in place."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import tfrkit
from tfrkit.cli.edit import parse_assignments
from tfrkit.storage.transaction import PENDING
from tfrkit.testing.reference import encode_example, write_frames

pytest.importorskip("duckdb")


def test_edit_a_copy(tfr, sample: Path) -> None:
    done = tfr("edit", "sample.tfrecord", "--where", "label > 7", "--set", "label = label - 1", "-o", "out.tfrecord")
    assert done.out == "out.tfrecord: 2 of 10 records changed\n"
    rows = tfr("cat", "out.tfrecord", "--format", "json").json
    assert [row["label"] for row in rows] == [0, 1, 2, 3, 4, 5, 6, 7, 7, 8]
    assert tfr("diff", "sample.tfrecord", "out.tfrecord", code=1).lines[-1] == "features: label 2"


def test_edit_a_folder_in_place(tfr, shards: Path) -> None:
    before = {path.name: path.read_bytes() for path in shards.iterdir()}
    done = tfr(
        "edit", "data", "--where", "label = 8", "--set", "text = upper(text)", "--set", "weight=0.5", "--in-place"
    )
    assert done.lines == [
        "data/train-00001-of-00003.tfrecord: 1 of 4 records changed",
        "data: 1 of 10 records changed in 1 of 3 files",
    ]
    assert {name for name, data in before.items() if (shards / name).read_bytes() != data} == {
        "train-00001-of-00003.tfrecord"
    }
    assert sorted(path.name for path in shards.iterdir()) == sorted(before)
    row = tfr("cat", "data", "--format", "json").json[8]
    assert (row["text"][:3], row["weight"], row["label"]) == ("GRÜ", 0.5, 8)
    assert tfr("verify", "data").out.startswith("ok, 10 records")


def test_dry_run_says_what_would_change(tfr, shards: Path) -> None:
    before = {path: path.read_bytes() for path in shards.iterdir()}
    done = tfr("edit", "data", "--drop", "--where", "label in (1, 2, 8)", "--dry-run")
    assert done.lines == [
        "data/train-00000-of-00003.tfrecord: 2 records dropped, 4 left",
        "data/train-00001-of-00003.tfrecord: 1 record dropped, 3 left",
        "data: 3 records dropped, 7 left in 2 of 3 files, nothing was written",
    ]
    result = tfr("edit", "data", "--drop", "--where", "label in (1, 2, 8)", "--dry-run", "--format", "json").json
    assert (result["written"], result["dropped"], result["records"], result["splits"]) == (False, 3, 7, {"train": 7})
    assert result["files"][0] == {
        "path": "data/train-00000-of-00003.tfrecord",
        "split": "train",
        "records": 4,
        "changed": 0,
        "dropped": 2,
        "added": 0,
    }
    assert {path: path.read_bytes() for path in shards.iterdir()} == before


def test_nothing_to_change_is_exit_code_1(tfr, sample: Path) -> None:
    done = tfr("edit", "sample.tfrecord", "--where", "label = 99", "--set", "label=1", "-o", "out.tfrecord", code=1)
    assert done.err == "the condition is true for no record\n"
    assert done.out == "sample.tfrecord: 0 of 10 records changed, nothing was written\n"
    done = tfr("edit", "sample.tfrecord", "--where", "label = 9", "--set", "label=9", "--in-place", code=1)
    assert done.err == "1 record matches, and has these values already\n"
    assert sorted(path.name for path in sample.parent.iterdir() if path.name != "cache") == ["sample.tfrecord"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ("--set", "label=1"),
            2,
            "-o PATH    change the files themselves: --in-place    see what would change: --dry-run",
        ),
        (("--set", "label", "--in-place"), 2, "--set expected FEATURE = VALUE, got 'label'"),
        (("--set", "label==1", "--in-place"), 2, "--set expected FEATURE = VALUE"),
        (("--set", "label=1", "--set", "label=2", "--in-place"), 2, "got 'label' twice"),
        (("--in-place",), 2, "expected values to set, or drop, got neither"),
        (
            ("--drop", "--in-place"),
            2,
            "expected a condition for records to drop, got none\n  say which records: --where SQL",
        ),
        (("--set", "lable=1", "--in-place"), 3, "no feature 'lable', did you mean 'label'"),
        (("--set", "label='x'", "--in-place"), 3, "feature 'label' expected int64, got VARCHAR"),
        (
            ("--set", "label=1", "--where", "label = = 1", "--in-place"),
            3,
            "at character 9 of the condition\n  label = = 1\n",
        ),
        (("--set", "label=1", "-o", "sample.tfrecord"), 3, "the output is one of the files to read"),
    ],
)
def test_wrong_usage_is_one_message(tfr, sample: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    before = sample.read_bytes()
    assert message in tfr("edit", "sample.tfrecord", *arguments, code=code).err
    assert sample.read_bytes() == before


def test_restore_puts_the_old_files_back(tfr, sample: Path) -> None:
    assert tfr("edit", "sample.tfrecord", "--restore").out == "no unfinished change was found\n"
    old = sample.read_bytes()
    pending = sample.parent / PENDING
    (pending / "old").mkdir(parents=True)
    (pending / "journal.json").write_text('{"steps": [{"path": "sample.tfrecord", "was_there": true}]}')
    sample.rename(pending / "old" / "0")
    sample.write_bytes(b"")
    failed = tfr("count", "sample.tfrecord", code=3).err
    assert failed == (
        "tfr: a change of this folder was interrupted, some files are old and some are new - at .\n"
        "  put the old files back: tfr edit . --restore\n"
    )
    assert tfr("edit", ".", "--restore").out == "the old files are back\n"
    assert (sample.read_bytes(), pending.exists()) == (old, False)


def test_names_of_features() -> None:
    assert parse_assignments(['"image/height" = 3', "a.b=x == y", ' "q""=" = 1 = 2 ', "image/width='a=b'"]) == {
        "image/height": "3",
        "a.b": "x == y",
        'q"=': "1 = 2",
        "image/width": "'a=b'",
    }


def test_info_says_ranges_of_the_records_as_they_are_now(tfr, tmp_path: Path) -> None:
    tfrkit.build([{"id": n, "label": n % 3} for n in range(9)], tmp_path / "set")
    assert tfr("edit", tmp_path / "set", "--where", "id >= 6", "--set", "label = 7", "--in-place").code == 0
    out = tfr("info", tmp_path / "set").out
    assert "class id 0..7" in out
    assert "0..2" not in str(tfrkit.open(tmp_path / "set").schema)


def test_sign_of_zero_is_kept(tfr, sample: Path) -> None:
    tfr(
        "edit",
        "sample.tfrecord",
        "--set",
        "weight = case when label % 2 = 0 then 0.0 else -0.0::float end",
        "--in-place",
    )
    signs = [math.copysign(1, row["weight"]) for row in tfrkit.open(sample)]
    assert signs == [1, -1] * 5


def test_list_may_become_empty(tfr, sample: Path) -> None:
    tfr("edit", "sample.tfrecord", "--where", "label = 3", "--set", "tokens = []", "--in-place")
    assert [len(row["tokens"]) for row in tfrkit.open(sample)] == [0, 3, 6, 0, 12, 15, 18, 21, 24, 27]
    done = tfr("edit", "sample.tfrecord", "--set", "tokens = [null]", "--in-place", code=3)
    assert "feature 'tokens' expected values, got NULL in a list" in done.err


@pytest.mark.parametrize("command", ["edit", "dedupe", "append"])
def test_help_names_no_stdin_where_it_is_refused(tfr, command: str) -> None:
    assert "stdin" not in tfr(command, "-h").out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--where", "", "--set", "label = 1"), 2, "the condition is empty\n  say which records: --where SQL"),
        (("--where", " \n", "--drop"), 2, "the condition is empty"),
        (
            ("--where", "true) limit (2", "--drop"),
            3,
            "a bracket is closed that was not opened - at character 5 of the condition\n  true) limit (2\n      ^",
        ),
        (("--where", "1=1) or (1=1", "--drop"), 3, "at character 4 of the condition"),
        (("--where", "true, false", "--drop"), 3, "the condition expected one expression, got several"),
        (("--set", "label = unnest([1, 2])"), 3, "expected one value for each record, got unnest()"),
        (("--set", "label = 1 + UNNEST(tokens)"), 3, "expected one value for each record, got unnest()"),
        (
            ("--set", "label = 3, text = 'x'"),
            3,
            "got several, \"3, text = 'x'\"\n  one for each feature: --set FEATURE=SQL",
        ),
        (("--set", "label = 'abc'"), 3, "got VARCHAR\n  the names of its classes are not known, give a number"),
    ],
)
def test_text_that_is_no_single_expression_is_refused(
    tfr, sample: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    before = sample.read_bytes()
    assert message in tfr("edit", "sample.tfrecord", *arguments, "--in-place", code=code).err
    assert sample.read_bytes() == before


def test_brackets_in_strings_comments_and_subqueries_are_fine(tfr, sample: Path) -> None:
    where = """text <> ')' and ((label) = 3) /* ) */ and (select max(x) > 2 from unnest(tokens) t(x)) -- )"""
    assert tfr("edit", "sample.tfrecord", "--where", where, "--set", "label=1", "--dry-run").out.startswith(
        "sample.tfrecord: 1 of 10 records changed"
    )


def test_last_line_names_what_was_given(tfr, shards: Path) -> None:
    options = ("--where", "label = 99", "--set", "label = 1", "--dry-run")
    end = "0 of 10 records changed in 0 of 3 files, nothing was written"
    names = sorted(path.name for path in shards.iterdir())
    for name in names:
        (shards / name).rename(shards.parent / name)
    assert tfr("edit", "train-*", *options, code=1).lines[-1] == f"train-*: {end}"
    assert tfr("edit", *names, *options, code=1).lines[-1] == f"{names[0]} and 2 more: {end}"


def test_class_text_that_stays_is_noted(tfr, tmp_path: Path) -> None:
    records = [
        encode_example({b"image/class/label": ("int64", [number]), b"image/class/text": ("bytes", [b"c%d" % number])})
        for number in range(3)
    ]
    (tmp_path / "x.tfrecord").write_bytes(write_frames(records))
    where = ("--where", '"image/class/label" = 2')
    done = tfr("edit", "x.tfrecord", *where, "--set", "image/class/label = 1", "--dry-run")
    assert done.err == (
        "'image/class/text' holds the name of the class in 'image/class/label' and stays as it was; "
        """set it too: --set "image/class/text = '...'"\n"""
    )
    both = ("--set", "image/class/label = 1", "--set", "image/class/text = 'c1'")
    assert tfr("edit", "x.tfrecord", *where, *both, "--dry-run").err == ""
