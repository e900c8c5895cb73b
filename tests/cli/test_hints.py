"""Hints name Python arguments in the library and command options in the shell."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import tfrkit
from tfrkit import tools
from tfrkit.cli.hints import Flag, explain, say_hint, say_note
from tfrkit.errors import Hint, Step, StorageError, misuse

FLAGS = {
    "force": Flag("--force", "VALUE"),
    "on_error": Flag("--on-error", "fail|skip"),
    "output": Flag("-o", "PATH"),
    "drop": Flag("--drop", "FEATURE"),
    "map": Flag("--map", "N=M,..."),
    "jobs": Flag("--jobs", "N"),
}


@pytest.mark.parametrize(
    ("hint", "python", "command"),
    [
        (Hint(Step("replace it: {force}", force=True)), "replace it: force=True", "replace it: --force"),
        (Hint(Step("go on: {on_error}", on_error="skip")), 'go on: on_error="skip"', "go on: --on-error skip"),
        (Hint(Step("a folder: {output}", output="out/")), 'a folder: output="out/"', "a folder: -o out/"),
        (Hint(Step("leave it out: {drop}", drop=[...])), "leave it out: drop=[...]", "leave it out: --drop FEATURE"),
        (Hint(Step("a copy: {output}", output=...)), "a copy: output=...", "a copy: -o PATH"),
        (
            Hint(Step("fewer: {jobs}", jobs=1), "it is kept"),
            "fewer: jobs=1    it is kept",
            "fewer: --jobs 1    it is kept",
        ),
        (Hint(Step("a class: {map}", map={200: 1})), "a class: map={200: 1}", "a class: --map 200=1"),
        # A command leaves out what it has no option for.
        (
            Hint(Step("anew: {infer}", infer="all"), "choose another"),
            'anew: infer="all"    choose another',
            "choose another",
        ),
        (Hint(Step("anew: {infer}", infer="all")), 'anew: infer="all"', ""),
        (Hint("a", Step("b: {infer}", infer="all"), "c", gap="\n  "), 'a\n  b: infer="all"\n  c', "a\n  c"),
        (
            Hint("look: tfr info x", Step("ds.errors", in_python=True)),
            "look: tfr info x    ds.errors",
            "look: tfr info x",
        ),
        (
            Hint(Hint(Step("go on: {force}", force=True)), "or not"),
            "go on: force=True    or not",
            "go on: --force    or not",
        ),
        # Plain text is not read: paths and queries are not options.
        ("check: tfr verify jobs=3", "check: tfr verify jobs=3", "check: tfr verify jobs=3"),
    ],
)
def test_hint_names_arguments_in_python_and_options_in_a_command(hint: str, python: str, command: str) -> None:
    assert hint == python
    assert say_hint(hint, FLAGS) == command
    again = pickle.loads(pickle.dumps(hint))
    assert (again, say_hint(again, FLAGS)) == (python, command)


def test_note_keeps_arguments_that_are_no_options() -> None:
    note = Hint(Step("use {exif}", exif="apply"), Step("{encode}", encode="png"), gap=" or ")
    both = {"exif": Flag("--exif", "keep|apply"), "encode": Flag("--encode", "raw|png")}
    assert say_note(note, both) == "use --exif apply or --encode png"
    assert say_note(note, {}) == 'use exif="apply" or encode="png"'


def test_wrong_argument_has_what_and_hint() -> None:
    error: Any = misuse("shards expected", Step("say how many: {jobs}", jobs=8))
    assert str(error) == "shards expected\n  say how many: jobs=8"
    assert explain(error, FLAGS) == "shards expected\n  say how many: --jobs 8"
    assert explain(error, {}) == "shards expected"


def test_python_names_arguments_where_the_shell_names_options(tfr, sample: Path, tmp_path: Path) -> None:
    (tmp_path / "there.tfrecord").write_bytes(b"precious")
    with pytest.raises(StorageError, match=r"exists already - at .*\n  replace it: force=True$"):
        tools.merge(sample, tmp_path / "there.tfrecord")
    assert tfr("merge", sample, "-o", "there.tfrecord", code=3).err.endswith("\n  replace it: --force\n")
    with pytest.raises(ValueError, match='shards=8 or shard_size="200MB"$'):
        tools.reshard(sample, tmp_path / "out")
    assert tfr("reshard", sample, "-o", "out", code=2).err.endswith("--shards 8 or --shard-size 200MB\n")


def test_feature_of_two_kinds_hint_uses_command_options(tfr, tmp_path: Path) -> None:
    for name, value in (("k-0.tfrecord", 1), ("k-1.tfrecord", b"x")):
        with tfrkit.Writer(tmp_path / name) as writer:
            writer.write({"v": value, "id": 1})
    err = tfr("head", "k-0.tfrecord", "k-1.tfrecord", code=3).err
    assert "expected one kind" in err and "ds." not in err
    err = tfr("sql", "select v from 'k-*'", code=3).err
    assert "expected one kind" in err and "*\n" not in err and "leave 'v' out: name the other columns" in err
