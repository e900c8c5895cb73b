"""Next steps in the words of the command at hand.

The library says them as Python does: `replace it: force=True    read on: on_error="skip"`. A command says `--force`,
and leaves out a step that it has no option for.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

# A keyword argument by itself: part of no path, no call and no longer value.
_ARGUMENT = re.compile(
    r"""(?<!\S)([a-z][a-z_]*)=(True|"[^"\n]*"|'[^'\n]*'|\d+|\{\d+: \d+\}|\[\.\.\.\]|\.\.\.)(?=[\s,;.)]|$)""",
    re.MULTILINE,
)
# A step in Python, which a command cannot take.
_METHOD = re.compile(r"(?<![\w.])ds\.[a-z_]+[(\[]|(?<![\w.])ds\.[a-z_]+$", re.MULTILINE)
_GAP = " " * 4  # between two steps of one line


class Flag(NamedTuple):
    """How a command calls an argument: `--force`, and `FEATURE` for a value that is not told."""

    name: str
    metavar: str


def read_flags(parameters: Iterable[inspect.Parameter]) -> dict[str, Flag]:
    """The options of a command, by the names of the arguments they become."""
    flags = {}
    for parameter in parameters:
        for info in getattr(parameter.annotation, "__metadata__", ()):
            # Typer keeps the first name of an option where a default would stand.
            given = [getattr(info, "default", None), *(getattr(info, "param_decls", None) or ())]
            names = [name for name in given if isinstance(name, str) and name.startswith("-")]
            if names:
                name = "-o" if "-o" in names else max(names, key=len).partition("/")[0]
                flags[parameter.name] = Flag(name, info.metavar or "VALUE")
    return flags


def say_steps(hint: str, flags: Mapping[str, Flag]) -> str:
    """The steps that a command with these options can take, in its words; empty where it can take none.

    Example:
        >>> say_steps('check: tfr verify x    read on: on_error="skip"', {"on_error": Flag("--on-error", "skip")})
        'check: tfr verify x    read on: --on-error skip'
    """
    lines = []
    for line in hint.split("\n"):
        if _ARGUMENT.search(line) or _METHOD.search(line):
            steps = [_say_step(step, flags) for step in line.strip().split(_GAP) if _can_take(step, flags)]
            line = line[: len(line) - len(line.lstrip())] + _GAP.join(steps)
        if line.strip():
            lines.append(line)
    return "\n".join(lines)


def _can_take(step: str, flags: Mapping[str, Flag]) -> bool:
    return not _METHOD.search(step) and all(match[1] in flags for match in _ARGUMENT.finditer(step))


def _say_step(step: str, flags: Mapping[str, Flag]) -> str:
    return _ARGUMENT.sub(lambda match: _say_option(flags[match[1]], match[2]), step)


def _say_option(flag: Flag, value: str) -> str:
    if value == "True":
        return flag.name
    if value.startswith("{"):
        return f"{flag.name} {value.strip('{}').replace(': ', '=')}"
    told = flag.metavar if "..." in value else value.strip("\"'")
    return f"{flag.name} {told}"


def say_arguments(text: str, flags: Mapping[str, Flag]) -> str:
    """A sentence with its arguments in the words of a command; those that are no options of it stay.

    Example:
        >>> say_arguments('upright with exif="apply"', {"exif": Flag("--exif", "keep|apply|fail")})
        'upright with --exif apply'
    """
    return _ARGUMENT.sub(lambda found: _say_option(flags[found[1]], found[2]) if found[1] in flags else found[0], text)


def explain(error: Exception, flags: Mapping[str, Flag]) -> str:
    """The message of an error, its steps in the words of the command."""
    problems: Any = getattr(error, "problems", ())
    what, _, hint = str(error).partition("\n")
    if problems:
        from tfrkit.build.problem_groups import SKIP_ADVICE

        # The message has room for the first bad inputs only; its last line may be what to do about all of them.
        hint = f"  {SKIP_ADVICE}" if hint.endswith(SKIP_ADVICE) else ""
    listed = [f"  {line}" for line in describe_problems(problems, flags)]
    return "\n".join(line for line in (what, *listed, say_steps(hint, flags)) if line)


def describe_problems(problems: Iterable[Any], flags: Mapping[str, Flag]) -> list[str]:
    """Lines about all bad inputs of a build: one for each kind, with the options that help below it."""
    from tfrkit.build.problem_groups import group_problems

    lines: list[str] = []
    is_cut = False
    for group in group_problems(problems):
        lines += [say_arguments(line, flags) for line in group.describe()]
        steps = say_steps(group.hint, flags)
        lines += [f"  {steps}"] if steps else []
        is_cut = is_cut or len(group.describe()) < len(group.problems)
    if is_cut:
        lines += filter(None, [say_steps('list every one: dry_run=True format="json"', flags)])
    return lines
