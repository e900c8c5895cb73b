"""Behaviour shared by all commands. Commands are listed from the application, so new ones are tested, too."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tfrkit.cli.main import NAMES
from tfrkit.container.shards import Shard, find_shards
from tfrkit.storage.local import StdinReader
from tfrkit.testing.commands import find_commands, get_group, run_command
from tfrkit.testing.corruption import flip, frame_offsets, truncate
from tfrkit.testing.reference import encode_example, write_frames

COMMAND = [sys.executable, "-c", "from tfrkit.cli.main import main; main()"]

# Required arguments other than input and output.
MORE: dict[str, list[str]] = {
    "reshard": ["--shards", "2"],
    "sample": ["-n", "2"],
    "split": ["--split", "train=.5,test=.5"],
    "bench": ["--megabytes", "1"],
    "edit": ["--where", "label = 1", "--drop", "--dry-run"],
    "append": ["--dry-run"],
    "dedupe": ["--dry-run"],
    "view": ["--no-browser", "--idle", "0.001"],
}
# Required suffix of the output.
OUTPUTS = {"sheet": "made.png", "export npz": "made.npz", "export parquet": "made.parquet", "export csv": "made.csv"}
BOX = {"xmin": 0.25, "ymin": 0.25, "xmax": 0.5, "ymax": 0.75}
# These also read a pipe.
STDIN = ["head", "count", "verify", "repair", "info"]


ALL = find_commands()
# `run` takes a script and behaves as the script does, `completion` reads no data.
OTHERS = ("run", "completion")
VERBS = {name: command for name, command in ALL.items() if not name.startswith("build") and name not in OTHERS}


def option_names(command: Any) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}


def make_arguments(name: str, source: str, folder: Path) -> list[str]:
    """A valid call: every required argument and output."""
    command = VERBS[name]
    arguments: list[str] = name.split()
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            text = (parameter.metavar or parameter.name or "").upper()
            if (name, parameter.name) == ("append", "new"):
                arguments.append("more.tfrecord")
            else:
                arguments.append(f"select * from '{source}'" if "QUERY" in text or "SQL" in text else source)
        elif parameter.required and "--output" in parameter.opts:
            arguments += ["--output", str(folder / OUTPUTS.get(name, "made"))]
    return arguments + [word for word in MORE.get(name, []) if MORE[name][0] in option_names(command)]


def skip_if_not_installed(message: str) -> None:
    if "pip install 'tfrkit[" in message:
        pytest.skip(message.splitlines()[0])


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Examples with an image, in an empty working folder."""
    from PIL import Image

    records = []
    for number in range(12):
        file = io.BytesIO()
        Image.new("RGB", (8, 6), (number * 20, 90, 200 - number)).save(file, "PNG")
        box = {f"image/object/bbox/{side}".encode(): ("float", [at]) for side, at in BOX.items()}
        records.append(
            encode_example(
                {
                    b"image/encoded": ("bytes", [file.getvalue()]),
                    b"image/filename": ("bytes", [b"%d.png" % number]),
                    b"image/object/class/label": ("int64", [number % 3]),
                    b"image/object/class/text": ("bytes", [b"abc"[number % 3 : number % 3 + 1]]),
                    b"label": ("int64", [number % 3]),
                    b"weight": ("float", [number / 4]),
                    **box,
                }
            )
        )
    (tmp_path / "sample.tfrecord").write_bytes(write_frames(records))
    (tmp_path / "more.tfrecord").write_bytes(write_frames(records[:1]))
    monkeypatch.chdir(tmp_path)
    return "sample.tfrecord"


# --- help


def test_every_registered_command_is_reachable() -> None:
    assert {name.split()[0] for name in ALL} >= {*NAMES, "build"}


def test_help_fits_one_screen() -> None:
    lines = run_command(["--help"]).stdout.splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= 100
    for name in NAMES:
        (line,) = [line for line in lines if line.startswith(f"  {name} ") and f"tfr {name}" not in line]
        assert not line.rstrip().endswith("..."), f"the first line of the help of {name} is cut off"


@pytest.mark.parametrize("name", ALL)
def test_help_has_an_example_and_fits(name: str) -> None:
    ran = run_command([*name.split(), "--help"])
    assert ran.exit_code == 0
    lines = ran.stdout.splitlines()
    assert any(line.strip().startswith(f"tfr {name} ") for line in lines[1:]), "no example"
    assert max(map(len, lines)) <= 100, max(lines, key=len)


@pytest.mark.parametrize("name", ALL)
def test_help_documents_json_where_there_is_a_format(name: str) -> None:
    """In the command's help or in that of its group."""
    group = get_group().commands[name.split()[0]]
    if "--format" in option_names(ALL[name]):
        assert re.search("JSON|json", f"{ALL[name].help} {group.help}")


@pytest.mark.parametrize("name", ALL)
def test_every_command_has_quiet_and_every_option_a_help(name: str) -> None:
    assert "--quiet" in option_names(ALL[name])
    for parameter in ALL[name].params:
        assert getattr(parameter, "help", None), f"{parameter.name} has no help"


# --- forms


@pytest.mark.parametrize("form", ["json", "jsonl", "csv"])
@pytest.mark.parametrize("name", VERBS)
def test_format_gives_what_can_be_parsed(name: str, form: str, source: str, tmp_path: Path) -> None:
    if "--format" not in option_names(VERBS[name]):
        pytest.skip("has no --format")
    ran = run_command([*make_arguments(name, source, tmp_path), "--format", form])
    skip_if_not_installed(ran.stderr)
    assert ran.exit_code in (0, 1), ran.stderr
    if form == "json":
        assert isinstance(json.loads(ran.stdout), (dict, list))
    elif form == "jsonl":
        for line in ran.stdout.splitlines():
            json.loads(line)
    else:
        header, *rows = csv.reader(io.StringIO(ran.stdout))
        assert len(set(header)) == len(header) > 0
        assert all(len(row) == len(header) for row in rows)


@pytest.mark.parametrize("name", VERBS)
def test_unknown_format_is_wrong_usage(name: str, source: str, tmp_path: Path) -> None:
    if "--format" not in option_names(VERBS[name]):
        pytest.skip("has no --format")
    assert run_command([*make_arguments(name, source, tmp_path), "--format", "xml"]).exit_code == 2


# --- streams


@pytest.mark.parametrize("name", VERBS)
def test_quiet_keeps_stderr_empty(name: str, source: str, tmp_path: Path) -> None:
    ran = run_command([*make_arguments(name, source, tmp_path), "--quiet"])
    skip_if_not_installed(ran.stderr)
    assert ran.exit_code in (0, 1), ran.stderr
    assert ran.stderr == ""


@pytest.mark.parametrize("name", VERBS)
def test_no_progress_where_stderr_is_no_terminal(name: str, source: str, tmp_path: Path) -> None:
    ran = run_command(make_arguments(name, source, tmp_path))
    skip_if_not_installed(ran.stderr)
    assert "\r" not in ran.stderr
    assert "\x1b" not in ran.stderr + ran.stdout


@pytest.mark.parametrize("name", VERBS)
def test_closed_pipe_ends_quietly(name: str, source: str, tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = subprocess.run(
            [*COMMAND, *make_arguments(name, source, tmp_path), "--quiet"],
            stdout=write_end,
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
        )
    finally:
        os.close(write_end)
    skip_if_not_installed(done.stderr.decode())
    assert done.returncode in (0, 1)
    assert done.stderr == b""


@pytest.mark.parametrize("name", VERBS)
def test_no_color_is_honoured_on_a_terminal(
    name: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Terminal(io.BytesIO(), encoding="utf-8")
    err = io.StringIO()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", err)
    for key, value in {"TERM": "xterm-256color", "NO_COLOR": "1", "COLUMNS": "100"}.items():
        monkeypatch.setenv(key, value)
    with pytest.raises(SystemExit) as ended:
        get_group().main([*make_arguments(name, source, tmp_path), "--quiet"], prog_name="tfr")
    skip_if_not_installed(err.getvalue())
    assert ended.value.code in (0, 1), err.getvalue()
    screen.flush()
    out = screen.buffer.getvalue()  # type: ignore[attr-defined]
    assert not re.search(rb"\x1b\[[0-9;]*(3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]", out)


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


# --- wrong paths


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize("path", ["nowhere.tfrecord", "nowhere-*", "a\x1b[2Jb"])
def test_wrong_path_exits_3_with_one_message(name: str, path: str, source: str, tmp_path: Path) -> None:
    ran = run_command(make_arguments(name, path, tmp_path))
    skip_if_not_installed(ran.stderr)
    assert ran.exit_code == 3, ran.output
    assert ran.stdout == ""
    check_message(ran.stderr)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("name", VERBS)
def test_tilde_is_the_home_folder_for_input_and_output(
    name: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell does not expand it in quotes or after --output=."""
    home = tmp_path / "home"
    home.mkdir()
    os.rename(source, home / "in.tfrecord")
    monkeypatch.setenv("HOME", str(home))
    arguments = make_arguments(name, "~/in.tfrecord", Path("~"))
    done = run_command(arguments)
    skip_if_not_installed(done.stderr)
    assert done.exit_code in (0, 1), done.stderr
    assert not os.path.lexists("~")
    if "--output" in arguments:
        assert os.path.exists(home / OUTPUTS.get(name, "made"))


@pytest.mark.parametrize("word", ["GZIP", "Gz"])
@pytest.mark.parametrize("name", [name for name in VERBS if "--compression" in option_names(VERBS[name])])
def test_compression_name_is_case_insensitive(name: str, word: str, source: str, tmp_path: Path) -> None:
    output = "made.tfrecord" if name == "sql" else OUTPUTS.get(name, "made")
    arguments = make_arguments(name, source, tmp_path)
    arguments += ["-o", output] if "--output" not in arguments else []
    if name == "export parquet":
        done = run_command([*arguments, "--compression", "GZIP"])
        assert done.exit_code == 0, done.stderr
        return
    done = run_command([*arguments, "--compression", word])
    skip_if_not_installed(done.stderr)
    assert done.exit_code == 0, done.stderr
    assert {Shard.open(path).compression for path in find_shards(output)} == {"gzip"}


@pytest.mark.parametrize("name", VERBS)
def test_foreign_file_exits_3_with_one_message(name: str, source: str, tmp_path: Path) -> None:
    Path("page.tfrecord").write_text("<!DOCTYPE html><html><body>404</body></html>")
    ran = run_command(make_arguments(name, "page.tfrecord", tmp_path))
    skip_if_not_installed(ran.stderr)
    # `verify` reports it as a finding, so that the other files are still checked.
    assert ran.exit_code == (1 if name == "verify" else 3), ran.output
    assert "HTML" in ran.output
    if name != "verify":
        check_message(ran.stderr)


@pytest.mark.parametrize("name", VERBS)
def test_empty_folder_exits_3_with_one_message(name: str, source: str, tmp_path: Path) -> None:
    Path("folder").mkdir()
    ran = run_command(make_arguments(name, "folder", tmp_path))
    skip_if_not_installed(ran.stderr)
    assert ran.exit_code == 3, ran.output
    check_message(ran.stderr)


@pytest.mark.parametrize("name", VERBS)
def test_nothing_is_overwritten_unasked(name: str, source: str, tmp_path: Path) -> None:
    arguments = make_arguments(name, source, tmp_path)
    if "--output" not in arguments:
        pytest.skip("writes nothing unless asked to")
    target = Path(arguments[arguments.index("--output") + 1])
    target.write_bytes(b"precious")
    ran = run_command(arguments)
    skip_if_not_installed(ran.stderr)
    assert ran.exit_code == 3, ran.output
    check_message(ran.stderr)
    assert target.read_bytes() == b"precious"


@pytest.mark.parametrize("damage", ["flipped", "cut", "torn"])
@pytest.mark.parametrize("name", VERBS)
def test_damage_is_met_with_steps_that_the_command_has(name: str, damage: str, source: str, tmp_path: Path) -> None:
    sound = Path(source).read_bytes()
    made = {
        "flipped": flip(sound, frame_offsets(sound)[3] + 40),
        "cut": truncate(sound, len(sound) - 30),
        "torn": truncate(gzip.compress(sound), 300),
    }
    Path("bad file.tfrecord").write_bytes(made[damage])
    ran = run_command(make_arguments(name, "bad file.tfrecord", tmp_path))
    skip_if_not_installed(ran.stderr)
    assert ran.exit_code in (0, 1, 3)
    assert not re.search(r"\b[a-z_]+=", ran.stderr), "a word of Python's"
    assert option_names(VERBS[name]) | {"-o"} >= set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", ran.stderr))
    if ran.exit_code == 3:
        check_message(ran.stderr)
        assert "tfr repair 'bad file.tfrecord' -o " in ran.stderr


def check_message(err: str) -> None:
    """One line with what and where, optionally a hint line, no traceback."""
    lines = err.splitlines()
    assert "Traceback" not in err
    assert lines[0].startswith("tfr: "), err
    assert len(lines) <= 2, err
    assert all(line.startswith("  ") for line in lines[1:])
    assert "\x1b" not in err


# --- stdin


@pytest.mark.parametrize("name", VERBS)
def test_stdin_is_read_or_refused_in_one_message(
    name: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, Path(source).read_bytes())
    os.close(write_end)
    monkeypatch.setattr(
        StdinReader, "__init__", lambda self: setattr(self, "_file", io.FileIO(read_end, "rb", closefd=False))
    )
    try:
        ran = run_command(make_arguments(name, "-", tmp_path))
    finally:
        os.close(read_end)
    skip_if_not_installed(ran.stderr)
    assert ran.exit_code in (0, 1, 3)
    if ran.exit_code == 3:
        check_message(ran.stderr)
    if name in STDIN:
        assert ran.exit_code == 0, ran.stderr


def test_exit_code_of_a_finding_survives_a_closed_pipe(tmp_path: Path) -> None:
    """A reader that stops after the first line still gets the exit code of a finding."""
    for number in range(2):
        records = [encode_example({b"f%d" % i: ("int64", [i * number]) for i in range(40)}) for _ in range(3000)]
        (tmp_path / f"{number}.tfrecord").write_bytes(write_frames(records))
    command = [sys.executable, "-c", "from tfrkit.cli.main import main; main()"]
    command += ["diff", "0.tfrecord", "1.tfrecord", "--max", "3000"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 1
