"""docs/look-up/compat.md: every name of `tfrkit.compat`, by where it is found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfrkit.compat import tensorflow as compat
from tfrkit.compat.names import NAMES, WITHOUT_EFFECT
from tfrkit.compat.namespace import Namespace
from writers.markdown import NOTE, docstring_lines, first_line, put_in_table
from writers.python import public_methods


def make_pages() -> dict[str, str]:
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
    return {"look-up/compat.md": "\n".join(lines) + "\n"}


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
            yield name, put_in_table(first_line(member))
