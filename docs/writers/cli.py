"""docs/look-up/cli: a page for each command, from the command objects; docs/look-up/json.md."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import typer.main

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.main import HELP, make_app
from writers.markdown import NOTE, put_in_table, quote_help

# Options for remote addresses and for output mean the same in every command.
SHARED = ("endpoint", "profile", "anonymous", "cache", "json", "quiet")

GROUPS = {
    "Look inside": ("info", "stats", "head", "tail", "cat", "count", "schema", "sheet", "view", "sql", "diff"),
    "Check and mend": ("verify", "repair", "index", "bench"),
    "Build": ("build",),
    "Change": ("split", "shuffle", "merge", "reshard", "convert", "sample", "edit", "append", "dedupe"),
    "Give away": ("export",),
    "Other": (),
}


def make_pages() -> dict[str, str]:
    """Text of each page, by its name below docs."""
    group: Any = typer.main.get_command(make_app())
    commands = dict(walk_commands(group, "tfr"))
    pages = {"look-up/cli/index.md": make_index(group, commands), "look-up/json.md": make_json_page(commands)}
    for name, command in commands.items():
        pages[f"look-up/cli/{page_name(name)}"] = make_command_page(name, command, commands)
    return pages


def page_name(command: str) -> str:
    return command.replace(" ", "-") + ".md"


def make_index(group: Any, commands: dict[str, Any]) -> str:
    lines = [NOTE, "", "# Command line", "", *quote_help(HELP)]
    placed = {verb for verbs in GROUPS.values() for verb in verbs}
    for title, verbs in GROUPS.items():
        names = [f"tfr {verb}" for verb in verbs] or [
            name for name in commands if name.split()[1] not in placed and len(name.split()) == 2
        ]
        lines += ["", f"## {title}", "", "| command | what it does |", "| --- | --- |"]
        for name in names:
            below = [other for other in commands if other.startswith(f"{name} ")]
            for one in [name, *below]:
                lines.append(f"| [`{one}`]({page_name(one)}) | {put_in_table(first_sentence(commands[one]))} |")
    lines += ["", "## Options of `tfr` itself", "", *describe_parameters(group.params)]
    lines += ["", "## Environment", "", "| variable | effect |", "| --- | --- |"]
    lines += ["| `NO_COLOR` | no colours, whatever the terminal can do |"]
    lines += ["| `TFR_DEBUG=1` | an error shows its Python trace as well |"]
    lines += ["", "## Exit codes", "", "| code | meaning |", "| --- | --- |"]
    lines += [f"| {code.value} | {code.meaning} |" for code in ExitCode]
    return "\n".join(lines) + "\n"


def make_command_page(name: str, command: Any, commands: dict[str, Any]) -> str:
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    arguments = " ".join(parameter.metavar for parameter in shown if is_argument(parameter))
    below = {other: commands[other] for other in commands if other.startswith(f"{name} ")}
    usage = f"{name} [OPTIONS] {'COMMAND' if below else arguments}".rstrip()
    lines = [NOTE, "", f"# {name}", "", "```text", usage, "```", "", *quote_help(command.help), ""]
    if below:
        lines += ["## Commands", "", "| command | what it does |", "| --- | --- |"]
        lines += [f"| [`{one}`]({page_name(one)}) | {put_in_table(first_sentence(commands[one]))} |" for one in below]
        return "\n".join(lines) + "\n"
    siblings = find_shared(name, commands)
    own = [one for one in shown if one.name not in SHARED and one.name not in siblings]
    lines += ["## Arguments", "", *describe_parameters(own)]
    if siblings:
        kind = name.split()[1]
        lines += ["", f"## Arguments of every `tfr {kind}`", ""]
        lines += describe_parameters([one for one in shown if one.name in siblings and one.name not in SHARED])
    shared = [one for one in shown if one.name in SHARED]
    if shared:
        lines += ["", "## Arguments of most commands", "", *describe_parameters(shared)]
    return "\n".join(lines) + "\n"


def find_shared(name: str, commands: dict[str, Any]) -> set[str]:
    """Names of the arguments that every command of the same group has."""
    group = name.rpartition(" ")[0]
    if group == "tfr":
        return set()
    members = [one for other, one in commands.items() if other.rpartition(" ")[0] == group]
    names = [{parameter.name for parameter in one.params if not is_argument(parameter)} for one in members]
    return set.intersection(*names)


def make_json_page(commands: dict[str, Any]) -> str:
    lines = [NOTE, "", "# JSON outputs", ""]
    lines += [
        "`--json`, or `--format json`, prints one object with these keys; `--format jsonl` and `csv` print its rows."
    ]
    lines += ["Keys are stable: one that is removed or changes its meaning is a breaking change."]
    for name, command in commands.items():
        texts = [text for text in inspect.cleandoc(command.help).split("\n\n") if text.startswith("JSON")]
        if texts:
            lines += ["", f"## {name}", "", f"[All of its arguments](cli/{page_name(name)}).", ""]
            for text in texts:
                lines += [*text.split("\n"), ""]
            lines.pop()
    return "\n".join(lines) + "\n"


def walk_commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command with its full name, those of a group after the group."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        yield f"{path} {name}", command
        if hasattr(command, "commands"):
            yield from walk_commands(command, f"{path} {name}")


def first_sentence(command: Any) -> str:
    return inspect.cleandoc(command.help).split("\n\n")[0].replace("\n", " ")


def describe_parameters(parameters: list[Any]) -> list[str]:
    lines = ["| argument | meaning | default |", "| --- | --- | --- |"]
    for parameter in parameters:
        if is_argument(parameter):
            names = f"`{parameter.metavar}`"
        else:
            value = f" {parameter.metavar}" if parameter.metavar else ""
            names = put_in_table(", ".join(f"`{option}{value}`" for option in parameter.opts))
        default = parameter.default
        shown = f"`{default}`" if isinstance(default, int | str) and not isinstance(default, bool) else ""
        lines.append(f"| {names} | {parameter.help} | {shown} |")
    return lines


def is_argument(parameter: Any) -> bool:
    return parameter.param_type_name == "argument"
