"""`tf.compat.v1.flags` of real TensorFlow and ours: equal values, equal leftovers, both refuse the same."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as real

from tfrkit.compat import tensorflow as ours

LINES = [
    "",
    "--path=a=b --num=3",
    "--path a --num 0x1f",
    "-path a",
    "--path=",
    "--path --num",
    "--num=0o17",
    "--num=010",
    "--num= 7",
    "--num=1.0",
    "--num=x",
    "--num=-1",
    "--ratio=1e3",
    "--ratio=nan",
    "--ratio=x",
    "--shuffle",
    "--noshuffle",
    "--shuffle=True",
    "--shuffle=F",
    "--shuffle=yes",
    "--shuffle=1",
    "--noshuffle=1",
    "--shuffle word",
    "--set=val",
    "--set=VAL",
    "--set=nothing",
    "--names=c,d",
    "--names=",
    "--names c,,d",
    '--names=c,"d,e"',
    "--input=1 --input 2",
    "--many=1 --many=2",
    "--many=x",
    "--unknown=1 --num=3",
    "--unknown --num=3 word --num=4",
    "--nopath",
    "--path",
    "word --num=3",
    "-- --num=3",
    "- --num=3",
    "---num=3",
    "--",
    "--num=3 --num=4",
]


def define(tf: Any) -> Any:
    flags = tf.compat.v1.flags
    values = flags.FlagValues() if tf is ours else __import__("absl.flags", fromlist=["flags"]).FlagValues()
    flags.DEFINE_string("path", None, "where it is", flag_values=values)
    flags.DEFINE_integer("num", 5, "how many", flag_values=values)
    flags.DEFINE_float("ratio", 1, "share", flag_values=values)
    flags.DEFINE_boolean("shuffle", False, "in random order", flag_values=values)
    flags.DEFINE_enum("set", "train", ["train", "val"], "which part", flag_values=values)
    flags.DEFINE_list("names", "a,b", "several", flag_values=values)
    flags.DEFINE_multi_string("input", "x", "again", flag_values=values)
    flags.DEFINE_multi_integer("many", None, "again", flag_values=values)
    return values


def outcome(tf: Any, words: list[str], known_only: bool) -> Any:
    values = define(tf)
    try:
        rest = values(["script.py", *words], known_only=known_only)
    except Exception as error:  # noqa: BLE001 - that there is one is compared
        return isinstance(error, (tf.compat.v1.flags.Error, ValueError))
    names = ("path", "num", "ratio", "shuffle", "set", "names", "input", "many")
    return rest, [(type(getattr(values, name)).__name__, repr(getattr(values, name))) for name in names]


@pytest.mark.parametrize("known_only", [False, True])
@pytest.mark.parametrize("line", LINES)
def test_command_line_gives_what_tensorflow_gives(line: str, known_only: bool) -> None:
    assert outcome(ours, line.split(" ") if line else [], known_only) == outcome(
        real, line.split(" ") if line else [], known_only
    )


@pytest.mark.parametrize(
    ("kind", "default"),
    [("integer", "5"), ("integer", 1.5), ("integer", True), ("float", "2"), ("boolean", "t"), ("boolean", 1),
     ("boolean", 2), ("string", 3), ("list", []), ("multi_string", None), ("multi_integer", 3)],
)  # fmt: skip
def test_defaults_are_read_as_tensorflow_reads_them(kind: str, default: Any) -> None:
    def attempt(tf: Any) -> Any:
        values = define(tf)
        try:
            getattr(tf.compat.v1.flags, f"DEFINE_{kind}")("new", default, "", flag_values=values)
        except Exception:  # noqa: BLE001 - that there is one is compared
            return "refused"
        values(["script.py"])
        return repr(values.new)

    assert attempt(ours) == attempt(real)
