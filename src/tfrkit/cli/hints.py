"""Next steps as a command prints them.

The library writes `replace it: force=True`, a command `replace it: --force`; a command leaves out steps for which it
has no option. The steps are attached where the error is raised; those for damage are made in container/faults.py.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tfrkit.errors import Hint, Step, TfrkitError


class Flag(NamedTuple):
    """The name of an option, `--force`, and the placeholder for a user's own value, `FEATURE`."""

    name: str
    metavar: str


def read_flags(parameters: Iterable[inspect.Parameter]) -> dict[str, Flag]:
    """Return the options of a command, by the names of their arguments."""
    flags = {}
    for parameter in parameters:
        for info in getattr(parameter.annotation, "__metadata__", ()):
            # Typer stores the first name of an option in place of its default.
            given = [getattr(info, "default", None), *(getattr(info, "param_decls", None) or ())]
            names = [name for name in given if isinstance(name, str) and name.startswith("-")]
            if names:
                name = "-o" if "-o" in names else max(names, key=len).partition("/")[0]
                flags[parameter.name] = Flag(name, info.metavar or "VALUE")
    return flags


def say_hint(hint: str, flags: Mapping[str, Flag]) -> str:
    """Return the steps that a command with these options supports, with its options; empty if it supports none.

    Example:
        >>> steps = Hint("check: tfr verify x", Step("read on: {on_error}", on_error="skip"))
        >>> say_hint(steps, {"on_error": Flag("--on-error", "skip")}), say_hint(steps, {})
        ('check: tfr verify x    read on: --on-error skip', 'check: tfr verify x')
    """
    if not isinstance(hint, Hint):
        return hint
    said = []
    for step in hint.steps:
        if isinstance(step, str):
            said.append(say_hint(step, flags))
        elif not step.in_python and step.arguments.keys() <= flags.keys():
            said.append(_say_step(step, flags))
    return hint.gap.join(filter(None, said))


def say_note(note: str, flags: Mapping[str, Flag]) -> str:
    """Return a note with arguments as options of the command; other arguments stay in Python syntax.

    Example:
        >>> say_note(Hint(Step("upright with {exif}", exif="apply")), {"exif": Flag("--exif", "keep|apply|fail")})
        'upright with --exif apply'
    """
    if not isinstance(note, Hint):
        return note
    can_say = all(isinstance(step, str) or step.arguments.keys() <= flags.keys() for step in note.steps)
    return say_hint(note, flags) if can_say else note


def _say_step(step: Step, flags: Mapping[str, Flag]) -> str:
    def show(name: str, value: Any) -> str:
        flag = flags[name]
        if value is True:
            return flag.name
        if isinstance(value, dict):
            return f"{flag.name} {','.join(f'{key}={item}' for key, item in value.items())}"
        if isinstance(value, list) and ... not in value:
            return " ".join(f"{flag.name} {shlex.quote(str(item))}" for item in value)
        return f"{flag.name} {flag.metavar if value is ... or isinstance(value, list) else value}"

    return step.say(show)


def explain(error: Exception, flags: Mapping[str, Flag]) -> str:
    """Return the message of an error, with its steps as options of the command."""
    problems: Any = getattr(error, "problems", ())
    hint: Any = getattr(error, "hint", None)
    if not isinstance(hint, str) or not hint:
        return str(error)
    what = str(error.replace(hint=None)) if isinstance(error, TfrkitError) else str(error).removesuffix(f"\n  {hint}")
    listed = describe_problems(problems, flags)
    # The message itself lists only the first bad inputs.
    steps = say_hint(getattr(error, "advice", "") if problems else hint, flags)
    return "\n".join([what, *(f"  {line}" for line in [*listed, steps] if line)])


def describe_problems(problems: Iterable[Any], flags: Mapping[str, Flag]) -> list[str]:
    """Return lines about all bad inputs of a build: a group for each kind, with the options that help."""
    from tfrkit.build.problem_groups import group_problems

    lines: list[str] = []
    is_cut = False
    for group in group_problems(problems):
        lines += group.describe()
        steps = say_hint(group.hint, flags)
        lines += [f"  {steps}"] if steps else []
        is_cut = is_cut or len(group.describe()) < len(group.problems)
    if is_cut:
        every = Hint(Step("list every one: {dry_run} {format}", dry_run=True, format="json"))
        lines += filter(None, [say_hint(every, flags)])
    return lines
