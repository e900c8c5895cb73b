"""share/: manual pages and completion scripts, from the command objects of docs/look-up/cli. CMake installs them."""

from __future__ import annotations

import inspect
import re
from typing import Any

import typer.main

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.main import HELP, make_app
from tfrkit.cli.shells import make_script, read_verbs
from writers.cli import first_sentence, is_argument, walk_commands

SHARE = "../share"
SCRIPTS = {
    "bash": "bash-completion/completions/tfr",
    "zsh": "zsh/site-functions/_tfr",
    "fish": "fish/vendor_completions.d/tfr.fish",
}


def make_pages() -> dict[str, str]:
    """Text of each file, by its name below docs."""
    group: Any = typer.main.get_command(make_app())
    verbs = read_verbs(group)
    files = {f"{SHARE}/{path}": make_script(shell, verbs) for shell, path in SCRIPTS.items()}
    commands = dict(walk_commands(group, "tfr"))
    files[f"{SHARE}/man/man1/tfr.1"] = make_overview(group, commands)
    for name, command in commands.items():
        files[f"{SHARE}/man/man1/{name.replace(' ', '-')}.1"] = make_manual(name, command, commands)
    return files


def make_overview(group: Any, commands: dict[str, Any]) -> str:
    lines = [*start_page("tfr", "work with TFRecord files"), ".SH SYNOPSIS", ".B tfr", "[OPTIONS] COMMAND [ARGS]..."]
    lines += [".SH DESCRIPTION", *write_text(HELP), ".SH COMMANDS"]
    for name, command in commands.items():
        lines += [".TP", rf".BR {name.replace(' ', '-')} (1)".replace("-", r"\-"), escape(first_sentence(command))]
    lines += [".SH OPTIONS", *write_options(group.params), *write_codes()]
    lines += [".SH ENVIRONMENT", ".TP", ".B NO_COLOR", "No colours, whatever the terminal can do."]
    lines += [".TP", ".B TFR_DEBUG=1", "An error shows its Python trace as well."]
    return "\n".join(lines) + "\n"


def make_manual(name: str, command: Any, commands: dict[str, Any]) -> str:
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    below = [other for other in commands if other.startswith(f"{name} ")]
    operands = "COMMAND [ARGS]..." if below else " ".join(one.metavar for one in shown if is_argument(one))
    lines = [*start_page(name, first_sentence(command)), ".SH SYNOPSIS", rf".B {escape(name)}"]
    lines += [f"[OPTIONS] {escape(operands)}".rstrip(), ".SH DESCRIPTION", *write_text(command.help)]
    lines += [".SH OPTIONS", *write_options(shown), *write_codes(), ".SH SEE ALSO"]
    others = [other.replace(" ", "-").replace("-", r"\-") for other in ("tfr", *below)]
    return "\n".join([*lines, ", ".join(f"{other}(1)" for other in others)]) + "\n"


def start_page(name: str, summary: str) -> list[str]:
    page = name.replace(" ", "-")
    # Without a date and a version, so that a page changes only with its command.
    return [
        r".\" Written by docs/generate.py from the command objects.",
        rf'.TH "{page.upper()}" 1 "" tfrkit "TFRecord tools"',
        ".SH NAME",
        rf"{escape(page)} \- {escape(summary.rstrip('.'))}",
    ]


def write_options(parameters: list[Any]) -> list[str]:
    lines: list[str] = []
    for parameter in parameters:
        value = f" {parameter.metavar}" if parameter.metavar else ""
        if is_argument(parameter):
            names = escape(parameter.metavar)
        else:
            options = [*parameter.opts, *parameter.secondary_opts]
            names = ", ".join(rf"\fB{escape(option)}\fR{escape(value)}" for option in options)
        default = parameter.default
        is_shown = isinstance(default, int | str) and not isinstance(default, bool) and default != ""
        lines += [".TP", names, escape(parameter.help or "") + (escape(f" Default: {default}.") if is_shown else "")]
    return [*lines, ".TP", r"\fB\-h\fR, \fB\-\-help\fR", "Show this message and exit."]


def write_codes() -> list[str]:
    lines = [".SH EXIT STATUS"]
    for code in ExitCode:
        lines += [".TP", f".B {code.value}", escape(code.meaning)]
    return lines


def write_text(text: str) -> list[str]:
    """Paragraphs; those after a line with \\b keep their line ends."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            lines += [".PP", ".nf", *map(escape, paragraph.split("\n")[1:]), ".fi"]
        else:
            lines += [".PP", *map(escape, paragraph.split("\n"))]
    return lines


def escape(text: str) -> str:
    text = re.sub(r"\s*\n\s*", " ", text).replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text[:1] in (".", "'") else text
