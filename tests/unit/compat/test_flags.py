"""Options of scripts, by TensorFlow 1's rules."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tfrkit.compat import tensorflow as tf
from tfrkit.compat.flag_values import FlagValues

flags = tf.app.flags


@pytest.fixture
def values() -> FlagValues:
    made = FlagValues()
    flags.DEFINE_string("path", None, "where it is", flag_values=made)
    flags.DEFINE_integer("num", 5, "how many", lower_bound=0, flag_values=made)
    flags.DEFINE_float("ratio", 0.5, "share", flag_values=made)
    flags.DEFINE_boolean("shuffle", False, "in random order", flag_values=made)
    flags.DEFINE_enum("set", "train", ["train", "val"], "which part", flag_values=made)
    flags.DEFINE_list("names", "a,b", "several", flag_values=made)
    flags.DEFINE_multi_string("input", ["x"], "again and again", flag_values=made)
    return made


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--path=a=b"], "path", "a=b"),
        (["--path", "a"], "path", "a"),
        (["-path", "a"], "path", "a"),
        (["--path="], "path", ""),
        (["--path", "--num"], "path", "--num"),
        (["--num=0x10"], "num", 16),
        (["--num", "7"], "num", 7),
        (["--ratio", "1e-3"], "ratio", 0.001),
        (["--shuffle"], "shuffle", True),
        (["--shuffle=false"], "shuffle", False),
        (["--shuffle=T"], "shuffle", True),
        (["--shuffle", "--noshuffle"], "shuffle", False),
        (["--set", "val"], "set", "val"),
        (["--names=c, d"], "names", ["c", "d"]),
        (["--names="], "names", []),
        (["--input=1", "--input", "2"], "input", ["1", "2"]),
        ([], "input", ["x"]),
        ([], "names", ["a", "b"]),
        ([], "path", None),
        (["word", "--num=7"], "num", 7),
        (["--", "--num=7"], "num", 5),
    ],
)
def test_command_line_is_read(values: FlagValues, words: list[str], name: str, value: Any) -> None:
    values(["script.py", *words])
    assert getattr(values, name) == value
    assert values.flag_values_dict()[name] == value


def test_what_is_no_flag_is_given_back(values: FlagValues) -> None:
    assert values(["script.py", "--num=1", "a", "--num=2"]) == ["script.py", "a"]
    assert values(["script.py", "--num=1", "--", "--num=2"]) == ["script.py", "--num=2"]
    assert values.num == 1
    assert values(["script.py", "--other=1", "--num=3", "-", "b"], known_only=True) == [
        "script.py",
        "--other=1",
        "-",
        "b",
    ]
    assert values.num == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--num=x"], "flag --num expected an integer, got 'x'"),
        (["--num=-1"], "flag --num expected a number from 0 to any, got -1"),
        (["--ratio=x"], "flag --ratio expected a number, got 'x'"),
        (["--shuffle=maybe"], "flag --shuffle expected true or false, got 'maybe'"),
        (["--noshuffle=1"], "flag --noshuffle expected no value, got '1'"),
        (["--set=test"], "flag --set expected one of train, val, got 'test'"),
        (["--path"], "flag --path expected a value, got none"),
        (["--pth=a"], "unknown flag --pth, closest is --path"),
        (["--nopath"], "unknown flag --nopath, closest is --path"),
    ],
)
def test_wrong_flag_is_refused(values: FlagValues, words: list[str], message: str) -> None:
    with pytest.raises(flags.Error, match=f"^{message}$"):
        values(["script.py", *words])


def test_required_and_checked_flags_are_refused_without_their_value(values: FlagValues) -> None:
    flags.mark_flag_as_required("path", flag_values=values)
    with pytest.raises(flags.IllegalFlagValueError, match="flag --path expected a value, got none"):
        values(["script.py"])
    flags.register_validator("num", lambda value: value % 2 == 0, "must be even", flag_values=values)
    with pytest.raises(flags.IllegalFlagValueError, match="flag --num=3: must be even"):
        values(["script.py", "--path=x", "--num=3"])


def test_names_of_old_arguments_and_holders_work() -> None:
    values = FlagValues()
    holder = flags.DEFINE_string(flag_name="a", default_value="b", docstring="c", flag_values=values)
    values(["script.py", "--a=d"])
    assert (holder.value, holder.default, holder.present, holder.name) == ("d", "b", True, "a")
    assert values["a"].help == "c"


def test_same_definition_again_is_one_flag_and_another_is_refused() -> None:
    values = FlagValues()
    flags.DEFINE_integer("a", 1, "x", flag_values=values)
    flags.DEFINE_integer("a", 1, "x", flag_values=values)
    with pytest.raises(flags.DuplicateFlagError, match="flag 'a' is defined twice"):
        flags.DEFINE_integer("a", 2, "x", flag_values=values)


def test_first_use_reads_the_command_line(values: FlagValues, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["script.py", "--num=9"])
    assert not values.is_parsed()
    assert values.num == 9
    assert values.is_parsed()
    values.num = 11
    assert (values.num, values.__dict__["_flags"]["num"].value) == (11, 11)
    with pytest.raises(AttributeError, match="flag 'nom' is not defined, closest is --num"):
        values.nom  # noqa: B018
    with pytest.raises(AttributeError, match="flag 'nom' is not defined"):
        values.nom = 3


def test_wrong_command_line_ends_the_script_with_one_message(
    values: FlagValues, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["dir/script.py", "--num=many"])
    with pytest.raises(SystemExit, match="2"):
        values.path  # noqa: B018
    assert capsys.readouterr().err == (
        "script.py: flag --num expected an integer, got 'many'\n  list the flags: script.py --help\n"
    )


def test_help_lists_every_flag(
    values: FlagValues, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["script.py", "--help"])
    with pytest.raises(SystemExit, match="0"):
        values.path  # noqa: B018
    shown = capsys.readouterr().out
    assert "--[no]shuffle: in random order\n    (default: False)" in shown
    assert "--input: again and again\n    (default: ['x']; may be given several times)" in shown


def test_run_calls_main_with_what_is_left_and_ends_with_what_it_returns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tf.app, "run", tf.app.run)
    for returned, code in ((None, "None"), (5, "5")):
        seen: list[Any] = []
        with pytest.raises(SystemExit) as ended:
            tf.app.run(lambda argv, seen=seen, returned=returned: seen.append(argv) or returned, ["script.py", "a"])
        assert (str(ended.value.code), seen) == (code, [["script.py", "a"]])
    monkeypatch.setattr(sys.modules["__main__"], "main", lambda _: 3, raising=False)
    with pytest.raises(SystemExit, match="3"):
        tf.compat.v1.app.run(argv=["script.py"])
    monkeypatch.delattr(sys.modules["__main__"], "main")
    with pytest.raises(ValueError, match="tf.app.run expected a function main in the script"):
        tf.app.run(argv=["script.py"])


def test_unknown_flag_close_to_a_known_one_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    from tfrkit.compat.flag_values import parse_or_exit

    values = FlagValues()
    flags.DEFINE_string("csv_input", "", "", flag_values=values)
    assert parse_or_exit(values, ["s.py", "--csv_inptu=x", "--zzz"]) == ["s.py", "--csv_inptu=x", "--zzz"]
    assert capsys.readouterr().err == "s.py: note: unknown flag --csv_inptu, not used, closest is --csv_input\n"
