"""Common first attempts: --json, unquoted globs, a CSV with NA."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tfrkit.testing.commands import find_commands


def test_every_command_with_a_format_has_json() -> None:
    with_format = {
        name for name, command in find_commands().items() if any(one.name == "format" for one in command.params)
    }
    with_json = {name for name, command in find_commands().items() if any(one.name == "json" for one in command.params)}
    assert with_format == with_json
    assert {"info", "verify", "build table", "export images", "sql"} <= with_json


@pytest.mark.parametrize("command", ["info", "count", "head", "tail", "schema", "verify", "stats"])
def test_json_is_format_json(tfr, sample: Path, command: str) -> None:
    assert tfr(command, sample, "--json").json == tfr(command, sample, "--format", "json").json


def test_json_of_a_build_is_its_report(tfr, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    report = json.loads(tfr("build", "table", "t.csv", "-o", "t.tfrecord", "--json").out)
    assert (report["found"], report["written"]) == (2, 2)


def test_json_with_another_format_is_wrong_usage(tfr, sample: Path) -> None:
    ran = tfr("count", sample, "--json", "--format", "csv", code=2)
    assert ran.err == "tfr: --json is --format json, got --format csv with it\n"


@pytest.mark.parametrize("command", ["head", "tail"])
def test_rows_of_several_files_come_in_their_order(tfr, tmp_path: Path, sample: Path, command: str) -> None:
    (tmp_path / "more.tfrecord").write_bytes(sample.read_bytes())
    rows = tfr(command, sample, "more.tfrecord", "-n", "12", "--json").json
    wanted = [*range(10), 0, 1] if command == "head" else [8, 9, *range(10)]
    assert [row["label"] for row in rows] == wanted


def test_schema_of_several_files_is_one(tfr, tmp_path: Path, sample: Path, shards: Path) -> None:
    names = [feature["name"] for feature in tfr("schema", sample, shards, "--json").json["schema"]["features"]]
    assert sorted(names) == ["image", "label", "text", "tokens", "weight"]


def test_cell_that_means_nothing_is_proposed_as_missing(tfr, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,n\n1,5\n2,NA\n3,7\n")
    ran = tfr("build", "table", "t.csv", "-o", "t.tfrecord", code=3)
    assert ran.err.startswith("tfr: 1 problem in 3 inputs, nothing was written\n")
    assert "'NA' at line 3\n    take them as missing: --missing NA    take all as text: --type n=text\n" in ran.err
    tfr("build", "table", "t.csv", "-o", "t.tfrecord", "--missing", "NA")
    (tmp_path / "t.csv").write_text("n\n5\nNA\n<null>\n")
    ran = tfr("build", "table", "t.csv", "-o", "u.tfrecord", code=3)
    assert "take them as missing: --missing '<null>' --missing NA    take" in ran.err


def test_text_cell_is_not_suggested_as_missing(tfr, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,n\n1,5\n2,many\n3,7\n")
    err = tfr("build", "table", "t.csv", "-o", "t.tfrecord", code=3).err
    assert "--type n=text" in err
    assert "--missing" not in err


def test_line_with_too_few_cells_is_one_input(tfr, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,n\n1,5\n2\n3,7\n")
    assert "1 of 3 inputs is bad" in tfr("build", "table", "t.csv", "-o", "t.tfrecord", code=3).err


def test_class_that_no_list_has_is_a_problem_among_the_rows(tfr, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,kind\n1,a\n2,b\n3,b\n")
    (tmp_path / "names.txt").write_text("a\n")
    arguments = ("build", "table", "t.csv", "-o", "t.tfrecord", "--label-column", "kind", "--classes", "names.txt")
    assert "tfr: 1 problem in 3 inputs, nothing was written" in tfr(*arguments, code=3).err
