"""Tables as they are printed."""

from __future__ import annotations

import io
import os

import pytest

from tfrkit.cli import output
from tfrkit.cli.output import print_table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def show(monkeypatch: pytest.MonkeyPatch, columns: list[str], rows: list[list[object]], **options: list[str]) -> str:
    """What a terminal of 24 columns gets."""
    file = Terminal()
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", file)
        patch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((24, 10)))
        patch.setenv("TERM", "xterm")
        print_table(columns, rows, **options)
    return file.getvalue()


def test_rows_are_one_line_each_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name", "n"], [["x" * 200, 5], ["y", 12]], right=["n"])
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["name" + " " * 198 + " n", "x" * 200 + "   5", "y" + " " * 199 + "  12"]


def test_long_cells_are_folded_to_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    shown = show(monkeypatch, ["name", "n"], [["abcdefghijklmnopqrstuvwxyz", 5]], right=["n"])
    assert shown.splitlines() == ["name                   n", "abcdefghijklmnopqrstu  5", "vwxyz"]


def test_wide_characters_take_two_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    shown = show(monkeypatch, ["name", "n"], [["苹果", 1], ["e\u0301clair", 2]])
    assert shown.splitlines() == ["name    n", "苹果    1", "e\u0301clair  2"]


def test_header_is_bold_where_colours_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert show(monkeypatch, ["a"], [["[red]\x1b[31m"]]) == "\x1b[1ma\x1b[0m\n[red]\\x1b[31m\n"


def test_table_without_rows_is_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["a", "b"], [])
    assert capsys.readouterr().out == "a  b\n"


def test_notes_are_not_printed_if_quiet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for is_quiet, shown in ((True, ""), (False, "a note\n")):
        monkeypatch.setattr(output, "is_quiet", lambda is_quiet=is_quiet: is_quiet)
        output.say("a note")
        assert capsys.readouterr().err == shown


def test_text_keeps_lines_and_tabs_and_no_other_control() -> None:
    assert output._UNSAFE.sub(output._escape_unless_space, "a\n\tb\x1b") == "a\n\tb\\x1b"
