"""docs/look-up/errors.md: every error and warning with its cause, its cure and a real message."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path

from tfrkit import errors
from writers.error_examples import show_message
from writers.markdown import NOTE, first_line

CAUSES = tomllib.loads(Path(__file__).with_name("error_causes.toml").read_text(encoding="utf-8"))

INTRODUCTION = """
Every error tfrkit raises on purpose is a `tfr.TfrkitError`. A message reads *what, stored against expected - at where*;
a second line is the next step. The command `tfr` prints the same text, without a trace.

The same facts are attributes: `shard`, `record` (its number in the shard, from 0), `offset` (byte in the shard, after
inflating; for a `CompressionError`, in the stored file), `row` (of a batch whose records are not known), `hint`, and
`fault` if one class covers several faults: `"payload_checksum"`, `"length_checksum"`.

A wrong argument is a `TypeError` or a `ValueError`. A missing optional package is an `ImportError` with the install
command.
"""


def make_pages() -> dict[str, str]:
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind)]
    raised = [kind for kind in kinds if issubclass(kind, errors.TfrkitError)]
    warned = [kind for kind in kinds if issubclass(kind, errors.TfrkitWarning)]
    lines = [NOTE, "", "# Errors", *INTRODUCTION.rstrip().split("\n"), ""]
    lines += ["| error | is a | raised for |", "| --- | --- | --- |"]
    lines += [list_kind(kind) for kind in raised]
    lines += ["", "Warnings are in `tfr.errors`; they are shown unless a filter hides them.", ""]
    lines += ["| warning | is a | given for |", "| --- | --- | --- |"]
    lines += [list_kind(kind) for kind in warned]
    for kind in [*raised, *warned]:
        if kind not in (errors.TfrkitError, errors.TfrkitWarning):
            lines += describe_kind(kind)
    return {"look-up/errors.md": "\n".join(lines) + "\n"}


def list_kind(kind: type) -> str:
    name, parent = kind.__name__, kind.__mro__[1].__name__
    is_root = kind in (errors.TfrkitError, errors.TfrkitWarning)
    shown = f"`{name}`" if is_root else f"[`{name}`](#{name.lower()})"
    return f"| {shown} | `{parent}` | {first_line(kind)} |"


def describe_kind(kind: type) -> list[str]:
    cause = CAUSES[kind.__name__]
    lines = ["", f"## {kind.__name__}", "", f"**Cause.** {cause['cause']}", "", f"**Cure.** {cause['cure']}"]
    message = show_message(kind)
    if message is not None:
        lines += ["", "```text", *message.split("\n"), "```"]
    return lines
