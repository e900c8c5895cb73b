"""Hints name Python arguments in the library and command options in the shell."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrkit
from tfrkit import tools
from tfrkit.cli.hints import Flag, say_steps
from tfrkit.errors import StorageError

FLAGS = {
    "force": Flag("--force", "VALUE"),
    "on_error": Flag("--on-error", "fail|skip"),
    "output": Flag("-o", "PATH"),
    "drop": Flag("--drop", "FEATURE"),
    "map": Flag("--map", "N=M,..."),
    "jobs": Flag("--jobs", "N"),
}


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        ("replace it: force=True", "replace it: --force"),
        ('read on: on_error="skip"', "read on: --on-error skip"),
        ('name a folder: output="out/"', "name a folder: -o out/"),
        ("leave it out: drop=[...]", "leave it out: --drop FEATURE"),
        ("fewer workers: jobs=1    what is finished is kept", "fewer workers: --jobs 1    what is finished is kept"),
        ("replace it: overwrite=True    choose another", "choose another"),
        ("replace it: overwrite=True", ""),
        ("  first\n  replace it: overwrite=True\n  last", "  first\n  last"),
        ("if it is a class: map={200: 1}", "if it is a class: --map 200=1"),
        # Paths and queries are not options.
        ("check: tfr verify data/jobs=3/x jobs=3/y", "check: tfr verify data/jobs=3/x jobs=3/y"),
        ("  select a    from b\n           ^", "  select a    from b\n           ^"),
    ],
)
def test_hints_use_the_options_of_the_command(hint: str, said: str) -> None:
    assert say_steps(hint, FLAGS) == said


def test_python_names_arguments_where_the_shell_names_options(tfr, sample: Path, tmp_path: Path) -> None:
    (tmp_path / "there.tfrecord").write_bytes(b"precious")
    with pytest.raises(StorageError, match=r"there already - at .*\n  replace it: force=True$"):
        tools.merge(sample, tmp_path / "there.tfrecord")
    assert tfr("merge", sample, "-o", "there.tfrecord", code=3).err.endswith("\n  replace it: --force\n")
    with pytest.raises(ValueError, match='shards=8 or shard_size="200MB"$'):
        tools.reshard(sample, tmp_path / "out")
    assert tfr("reshard", sample, "-o", "out", code=2).err.endswith("--shards 8 or --shard-size 200MB\n")


def test_advice_in_python_is_left_out() -> None:
    assert say_steps("leave it out: features=[...]    read the bytes: ds.records()", {}) == ""
    assert say_steps("look: tfr info x    fewer: ds.select(['a'])", {}) == "look: tfr info x"


def test_feature_of_two_kinds_hint_uses_command_options(tfr, tmp_path: Path) -> None:
    for name, value in (("k-0.tfrecord", 1), ("k-1.tfrecord", b"x")):
        with tfrkit.Writer(tmp_path / name) as writer:
            writer.write({"v": value, "id": 1})
    err = tfr("head", "k-0.tfrecord", "k-1.tfrecord", code=3).err
    assert "expected one kind" in err and "ds." not in err
    err = tfr("sql", "select v from 'k-*'", code=3).err
    assert "expected one kind" in err and "*\n" not in err and "leave 'v' out: name the other columns" in err
