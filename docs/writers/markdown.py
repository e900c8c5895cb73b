"""Signatures, docstrings and help texts as Markdown."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

NOTE = "<!-- Written by docs/generate.py; run `make docs` instead of editing this page. -->"
LINE = 100

_SECTION = re.compile(r"^([A-Z][^.`]*):$")
_ENTRY = re.compile(r"^    (\w+): (.*)$")


def first_line(member: Any) -> str:
    return inspect.cleandoc(member.__doc__ or "").split("\n")[0]


def quote_help(text: str) -> list[str]:
    """Help text as Markdown: paragraphs stay, blocks that must keep their lines become code blocks."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b\n"):
            shown = textwrap.dedent(paragraph[2:]).split("\n")
            is_command = shown[0].startswith("tfr ")
            # A line that is set in goes on with the one above.
            shown = [f"$ {line}" if is_command and not line.startswith(" ") else line for line in shown]
            lines += ["```console" if is_command else "```text", *shown, "```", ""]
        else:
            lines += [*escape(paragraph).split("\n"), ""]
    return lines[:-1]


def escape(text: str) -> str:
    """Prose as it is shown: a star or a bracket is no markup."""
    return re.sub(r"(?<![`\w])\*(?=\w)|(?<=\w)\*(?![`\w])|(?<= )\*(?= )", r"\\*", text)


def format_signature(name: str, member: Any) -> str:
    """`name(arguments) -> type` without `self` and without quotes; a line for each argument if it is long."""
    signature = inspect.signature(member)
    parameters = [one for one in signature.parameters.values() if one.name not in ("self", "cls")]
    shown: list[str] = []
    is_keyword_only = False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword_only:
            if not any(one.kind is one.VAR_POSITIONAL for one in parameters):
                shown.append("*")
            is_keyword_only = True
        shown.append(format_parameter(parameter))
    result = "" if signature.return_annotation is signature.empty else f" -> {show_type(signature.return_annotation)}"
    line = f"{name}({', '.join(shown)}){result}"
    if len(line) <= LINE:
        return line
    return "\n".join([f"{name}(", *(f"    {one}," for one in shown), f"){result}"])


def format_parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = f"{stars}{parameter.name}"
    if parameter.annotation is not parameter.empty:
        text += f": {show_type(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        text += (
            f" = {parameter.default!r}" if parameter.annotation is not parameter.empty else f"={parameter.default!r}"
        )
    return text


def show_type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def docstring_lines(member: Any) -> list[str]:
    """The docstring: lists of arguments as lists, the example as a code block."""
    return convert_docstring(inspect.cleandoc(member.__doc__ or ""))


def convert_docstring(text: str) -> list[str]:
    lines: list[str] = []
    section = ""
    for line in text.split("\n"):
        if line.startswith("Example"):
            section = "example"
            lines += ["```pycon"]
        elif section == "example":
            if line and not line.startswith(" "):
                lines, section = close_example(lines), ""
                lines.append(line)
            else:
                lines.append(line[4:])
        elif re.match(r"^[├└│]", line) and section != "tree":
            lines[-1:] = ["```text", lines[-1], line]
            section = "tree"
        elif section == "tree":
            if not line:
                lines.append("```")
                section = ""
            lines.append(line)
        elif line.startswith(">>> ") and section != "doctest":
            section = "doctest"
            lines += ["```pycon", line]
        elif section == "doctest":
            lines.append(line)
        elif found := _SECTION.match(line.rstrip()):
            section = "list"
            lines += [f"**{'Arguments' if found[1] == 'Args' else found[1]}**", ""]
        elif section == "list" and line.startswith("    "):
            entry = _ENTRY.match(line)
            lines.append(f"- `{entry[1]}`: {entry[2]}" if entry else f"  {line.strip()}")
        elif line.endswith(":") and not line.startswith(" "):
            section = "list"
            lines += [line, ""]
        else:
            section = "" if line and section == "list" else section
            lines.append(line)
    if section in ("example", "doctest"):
        lines = close_example(lines)
    if section == "tree":
        lines.append("```")
    return [line.replace("``", "`") if not line.startswith("```") else line for line in lines]


def close_example(lines: list[str]) -> list[str]:
    while not lines[-1]:
        lines.pop()
    return [*lines, "```", ""]


def put_in_table(text: str) -> str:
    return text.replace("|", "\\|")
