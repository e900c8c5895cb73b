"""Write the reference pages from the code: `make docs`. The tests fail when a page is not current."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

import tfrkit
from tfrkit import errors
from tfrkit.batches.access import Records
from tfrkit.batches.loop import BatchIterator
from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.main import HELP, make_app
from tfrkit.compat import tensorflow as compat
from tfrkit.compat.names import NAMES, WITHOUT_EFFECT
from tfrkit.compat.namespace import Namespace
from tfrkit.dataset.batched import Batches
from tfrkit.dataset.dataset import Splits

FOLDER = Path(__file__).parent
NOTE = "<!-- Written by docs/generate.py; run `make docs` instead of editing this page. -->"

COMPLETION = {
    "install_completion": "Install completion of commands and options for the current shell.",
    "show_completion": "Print the completion script of the current shell.",
}

# What methods give, and which of their methods are for users.
GIVEN: dict[type, list[str]] = {
    Batches: [
        *("__iter__", "__len__", "num_rows", "set_epoch", "map", "make_batch"),
        *("to_torch", "to_torch_dataset", "to_jax", "to_tf"),
    ],
    BatchIterator: ["state_dict", "load_state_dict", "close"],
    Splits: ["__getitem__"],
    Records: ["__iter__", "__len__", "views", "pick"],
}


def make_cli_page() -> str:
    """Every command with its arguments, from the command objects: their help text differs between typer versions."""
    group: Any = typer.main.get_command(make_app())
    lines = [NOTE, "", "# Command line", "", *quote_help(HELP), "", "## Options of `tfr` itself", ""]
    lines += describe_parameters(group)
    for name, command in walk_commands(group, "tfr"):
        arguments = " ".join(parameter.metavar for parameter in command.params if is_argument(parameter))
        usage = "COMMAND" if hasattr(command, "commands") else arguments
        lines += ["", f"## {name}", "", "```", f"{name} [OPTIONS] {usage}".rstrip(), "```", ""]
        lines += [*quote_help(command.help), "", *describe_parameters(command)]
    lines += ["", "## Environment", "", "| variable | effect |", "| --- | --- |"]
    lines += ["| `NO_COLOR` | no colours, whatever the terminal can do |"]
    lines += ["| `TFR_DEBUG=1` | an error shows its Python trace as well |"]
    lines += ["", "## Exit codes", "", "| code | meaning |", "| --- | --- |"]
    lines += [f"| {code.value} | {code.meaning} |" for code in ExitCode]
    return "\n".join(lines) + "\n"


def walk_commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command with its full name, those of a group after the group."""
    for name, command in group.commands.items():
        yield f"{path} {name}", command
        if hasattr(command, "commands"):
            yield from walk_commands(command, f"{path} {name}")


def quote_help(text: str) -> list[str]:
    """Help text as Markdown: paragraphs stay, blocks that must keep their lines become code blocks."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b\n"):
            shown = textwrap.dedent(paragraph[2:]).split("\n")
            is_command = shown[0].startswith("tfr ")
            # A line that is set in goes on with the one above.
            shown = [f"$ {line}" if is_command and not line.startswith(" ") else line for line in shown]
            lines += ["```console" if is_command else "```", *shown, "```", ""]
        else:
            lines += [*paragraph.split("\n"), ""]
    return lines[:-1]


def describe_parameters(command: Any) -> list[str]:
    lines = ["| argument | meaning | default |", "| --- | --- | --- |"]
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        if parameter.name in COMPLETION:
            # Typer adds these two by itself, in words that change with its version.
            lines.append(f"| `{parameter.opts[0]}` | {COMPLETION[parameter.name]} | |")
            continue
        if is_argument(parameter):
            names = f"`{parameter.metavar}`"
        else:
            value = f" {parameter.metavar}" if parameter.metavar else ""
            names = ", ".join(f"`{option}{value}`" for option in parameter.opts).replace("|", "\\|")
        default = parameter.default
        shown = f"`{default}`" if isinstance(default, int | str) and not isinstance(default, bool) else ""
        lines.append(f"| {names} | {parameter.help} | {shown} |")
    return lines


def is_argument(parameter: Any) -> bool:
    return parameter.param_type_name == "argument"


def make_errors_page() -> str:
    """The tree of exceptions and what each means."""
    lines = [NOTE, "", "# Errors", ""]
    lines += ["Every error tfrkit raises on purpose is a `tfrkit.TfrkitError`. A message reads"]
    lines += ["*what, stored against expected - at where*; a second line, where there is one, is the next step."]
    lines += [
        "The same facts are attributes: `shard`, `record` (ordinal in the shard) and `offset` (byte in the shard,"
    ]
    lines += ["after inflating). A wrong argument is a `TypeError` or a `ValueError`, a missing optional package an"]
    lines += ["`ImportError` with the install command.", "", "| error | is a | raised for |", "| --- | --- | --- |"]
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.TfrkitError):
            parent = kind.__mro__[1].__name__
            lines.append(f"| `{name}` | `{parent}` | {first_line(kind)} |")
    lines += ["", "Warnings of `tfrkit.errors` are shown unless a filter hides them.", ""]
    lines += ["| warning | is a | given for |", "| --- | --- | --- |"]
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.TfrkitWarning):
            lines.append(f"| `{name}` | `{kind.__mro__[1].__name__}` | {first_line(kind)} |")
    return "\n".join(lines) + "\n"


def make_python_page() -> str:
    """Every public name with its signature and docstring."""
    lines = [NOTE, "", "# Python", "", "```python", "import tfrkit as tfr", "```"]
    for name in tfrkit.__all__:
        member = getattr(tfrkit, name)
        if inspect.ismodule(member):
            lines += ["", f"## tfr.{name}", "", *docstring_lines(member)]
            for function_name in getattr(member, "__all__", ()):
                function = getattr(member, function_name)
                if inspect.isfunction(function):
                    full_name = f"tfr.{name}.{function_name}"
                    lines += ["", f"### {full_name}", "", *describe_callable(full_name, function)]
        elif inspect.isclass(member) and not issubclass(member, Exception):
            lines += ["", f"## tfr.{name}", "", *docstring_lines(member)]
            for method_name, method in public_methods(member):
                lines += ["", f"### {name}.{method_name}", "", *describe_callable(method_name, method)]
        elif inspect.isclass(member):
            lines += ["", f"## tfr.{name}", "", first_line(member), "", "See [errors](errors.md)."]
        elif callable(member):
            lines += ["", f"## tfr.{name}", "", *describe_callable(f"tfr.{name}", member)]
        elif name != "__version__":
            lines += ["", f"## tfr.{name}", ""]
    lines += ["", "# What these give", "", "Not to be made by hand, only to be used."]
    for kind, names in GIVEN.items():
        lines += ["", f"## {kind.__name__}", "", *docstring_lines(kind)]
        methods = dict(public_methods(kind))
        for method_name in names:
            method = methods[method_name]
            lines += ["", f"### {kind.__name__}.{method_name}", "", *describe_callable(method_name, method)]
    return "\n".join(lines).rstrip("\n") + "\n"


def make_compat_page() -> str:
    """Every name of `tfrkit.compat`, by where it is found."""
    lines = [NOTE, "", "# TensorFlow's names", "", *docstring_lines(compat), ""]
    lines += ["The names of TensorFlow 1 and 2, all of them also under `tf.compat.v1` and `tf.compat.v2`."]
    seen: dict[int, str] = {}
    for path, names in sorted(walk_namespaces("tf", NAMES), key=lambda found: found[0] == "tf"):
        lines += ["", f"## {path}", "", "| name | what it does |", "| --- | --- |"]
        lines += [f"| `{name}` | {what} |" for name, what in describe_names(path, names, seen)]
        if path == "tf.data":
            methods = {name: getattr(NAMES["data"].Dataset, name) for name, _ in public_methods(NAMES["data"].Dataset)}
            shown = describe_names(f"{path}.Dataset", methods, seen)
            lines += [f"| `Dataset.{name}` | {what} |" for name, what in shown if name[0] != "_"]
    return "\n".join(lines) + "\n"


def walk_namespaces(path: str, names: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every dotted name with the names under it; those of TensorFlow's versions are the same again."""
    shown = {name: member for name, member in names.items() if not name.startswith("_") and name not in ("v1", "v2")}
    yield path, {name: member for name, member in shown.items() if not isinstance(member, Namespace)}
    for name, member in shown.items():
        if isinstance(member, Namespace):
            yield from walk_namespaces(f"{path}.{name}", vars(member))


def describe_names(path: str, names: dict[str, Any], seen: dict[int, str]) -> Iterator[tuple[str, str]]:
    """(name, what it does); a name for what is on the page already points there."""
    for name, member in sorted(names.items(), key=lambda pair: pair[0].lower()):
        if any(member is one for one in WITHOUT_EFFECT):
            yield name, "accepted, and does nothing"
        elif not callable(member):
            yield name, "a type of values" if isinstance(member, NAMES["DType"]) else f"`{member!r}`"
        elif id(member) in seen:
            yield name, f"as `{seen[id(member)]}`"
        else:
            seen[id(member)] = f"{path}.{name}"
            yield name, first_line(member).replace("|", "\\|")


def public_methods(kind: type) -> list[tuple[str, Any]]:
    found: dict[str, Any] = {}
    for base in kind.__mro__:
        for name, member in vars(base).items() if base.__module__.startswith("tfrkit") else ():
            is_ours = not name.startswith("_") or name in ("__getitem__", "__len__", "__iter__")
            if is_ours and (inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod)):
                found.setdefault(name, member)
    return list(found.items())


def describe_callable(name: str, member: Any) -> list[str]:
    if isinstance(member, property):
        return docstring_lines(member)
    target = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    signature = str(inspect.signature(target)).replace("(self, ", "(").replace("(self)", "()")
    return ["```python", f"{name}{signature}", "```", "", *docstring_lines(target)]


def docstring_lines(member: Any) -> list[str]:
    """The docstring with its example as a code block."""
    lines: list[str] = []
    in_example = False
    for line in inspect.cleandoc(member.__doc__ or "").split("\n"):
        if line.startswith("Example"):
            in_example = True
            lines += ["```python"]
        elif in_example and line and not line.startswith(" "):
            in_example = False
            lines += ["```", line]
        else:
            lines.append(line[4:] if in_example else line)
    return [*lines, "```"] if in_example else lines


def first_line(member: Any) -> str:
    return inspect.cleandoc(member.__doc__ or "").split("\n")[0]


PAGES = {
    "cli.md": make_cli_page,
    "compat.md": make_compat_page,
    "errors.md": make_errors_page,
    "python.md": make_python_page,
}


def main() -> None:
    for name, make_page in PAGES.items():
        (FOLDER / name).write_text(make_page(), encoding="utf-8")
        print(f"docs/{name}", file=sys.stderr)


if __name__ == "__main__":
    main()
