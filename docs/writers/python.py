"""docs/look-up/python: every public name with its signature and docstring, a page for each subject."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import tfrkit
from tfrkit import errors
from tfrkit.batches.access import Records
from tfrkit.batches.loop import BatchIterator
from tfrkit.dataset.batched import Batches
from tfrkit.dataset.dataset import Splits
from writers.markdown import NOTE, docstring_lines, first_line, format_signature, put_in_table, show_type


class Page(NamedTuple):
    name: str
    title: str
    about: str
    members: tuple[Any, ...]  # names of tfrkit, or types that methods return


PAGES = (
    Page("reading.md", "Reading", "Open files, choose rows, decode them.", ("open", "Dataset", "mix", Splits, Records)),
    Page(
        "batches.md",
        "Batches",
        "Rows to columns for training, and the columns.",
        (Batches, BatchIterator, "Ragged", "BytesColumn"),
    ),
    Page(
        "writing.md",
        "Writing",
        "Write files by hand, or build a dataset from a source.",
        ("Writer", "build", "sources"),
    ),
    Page("schemas.md", "Schemas", "What the features of a record are.", ("Schema", "Spec")),
    Page("tools.md", "Tools", "Questions, checks and changes to whole datasets.", ("sql", "verify", "tools")),
)
ELSEWHERE = {"errors": "../errors.md", "TfrkitError": "../errors.md"}

# For users of a type that methods return; other types show every public method.
ONLY: dict[type, tuple[str, ...]] = {
    Batches: (
        *("__iter__", "__len__", "num_rows", "set_epoch", "map", "make_batch"),
        *("to_torch", "to_torch_dataset", "to_jax", "to_tf"),
    ),
    BatchIterator: ("state_dict", "load_state_dict", "close"),
}
OPERATORS = {"__len__": "len({0})", "__getitem__": "{0}[...]", "__iter__": "for ... in {0}"}
SHORT = {"Dataset": "ds", "Batches": "batches", "Splits": "splits", "Records": "records", "Schema": "schema"}


def make_pages() -> dict[str, str]:
    pages = {f"look-up/python/{page.name}": make_page(page) for page in PAGES}
    pages["look-up/python/index.md"] = make_index()
    return pages


def make_index() -> str:
    lines = [NOTE, "", "# Python", "", "```python", "import tfrkit as tfr", "```"]
    for page in PAGES:
        lines += ["", f"## {page.title}", "", page.about, "", "| name | what it is |", "| --- | --- |"]
        for member in page.members:
            title = title_of(member)
            found = getattr(tfrkit, member) if isinstance(member, str) else member
            lines.append(f"| [`{title}`]({page.name}#{anchor(title)}) | {put_in_table(first_line(found))} |")
    lines += ["", "## Errors", "", f"[`tfr.errors`](../errors.md): {first_line(errors)}"]
    return "\n".join(lines) + "\n"


def make_page(page: Page) -> str:
    lines = [NOTE, "", f"# {page.title}", "", page.about]
    for member in page.members:
        lines += ["", f"## {title_of(member)}", ""]
        if isinstance(member, str):
            lines += describe_name(member, getattr(tfrkit, member))
        else:
            lines += ["Returned by methods; not to be made by hand.", "", *describe_class(member.__name__, member)]
    return squeeze(lines)


def title_of(member: Any) -> str:
    return f"tfr.{member}" if isinstance(member, str) else member.__name__


def anchor(title: str) -> str:
    return "".join(letter for letter in title.lower().replace(" ", "-") if letter.isalnum() or letter in "-_")


def describe_name(name: str, member: Any) -> list[str]:
    if inspect.ismodule(member):
        return describe_module(name, member)
    if inspect.isclass(member):
        return describe_class(name, member, is_public=True)
    return ["```python", format_signature(f"tfr.{name}", member), "```", "", *docstring_lines(member)]


def describe_module(name: str, module: Any) -> list[str]:
    lines = [*docstring_lines(module), ""]
    members = {one: getattr(module, one) for one in module.__all__}
    shown = {one: member for one, member in members.items() if inspect.isfunction(member) or name == "sources"}
    lines += ["| name | what it does |", "| --- | --- |"]
    for one, member in shown.items():
        lines.append(f"| [`{one}`](#{anchor(f'tfr.{name}.{one}')}) | {put_in_table(first_line(member))} |")
    for one, member in shown.items():
        full_name = f"tfr.{name}.{one}"
        lines += ["", f"### {full_name}", "", "```python", format_signature(full_name, member), "```", ""]
        lines += docstring_lines(member)
    return lines


def describe_class(name: str, kind: type, *, is_public: bool = False) -> list[str]:
    lines = []
    if (is_public and "__init__" in vars(kind)) or (is_public and hasattr(kind, "__dataclass_fields__")):
        lines += ["```python", format_signature(f"tfr.{name}", kind).removesuffix(" -> None"), "```", ""]
    lines += docstring_lines(kind)
    methods = [pair for pair in public_methods(kind) if kind not in ONLY or pair[0] in ONLY[kind]]
    short = SHORT.get(name, name.lower())
    plain = [(one, member) for one, member in methods if one in OPERATORS and not member.__doc__]
    attributes = [(one, member) for one, member in methods if isinstance(member, property)]
    rows = [(OPERATORS[one].format(short), result_of(member), "") for one, member in plain]
    rows += [(f"{short}.{one}", result_of(member.fget), summary(member)) for one, member in attributes]
    if rows:
        lines += ["", "| expression | type | gives |", "| --- | --- | --- |"]
        lines += [f"| `{what}` | `{put_in_table(kind_)}` | {put_in_table(text)} |" for what, kind_, text in rows]
    for one, member in methods:
        if isinstance(member, property) or (one, member) in plain:
            continue
        target = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        shown = OPERATORS[one].format(short) if one in OPERATORS else f"{name}.{one}"
        lines += ["", f"### {shown}", ""]
        if one not in OPERATORS:
            owner = name if isinstance(member, classmethod | staticmethod) else short
            lines += ["```python", format_signature(f"{owner}.{one}", target), "```", ""]
        lines += docstring_lines(target)
    return lines


def result_of(function: Any) -> str:
    annotation = inspect.signature(function).return_annotation
    return "" if annotation is inspect.Signature.empty else show_type(annotation)


def summary(member: Any) -> str:
    return " ".join(inspect.cleandoc(member.__doc__ or "").split())


def public_methods(kind: type) -> list[tuple[str, Any]]:
    found: dict[str, Any] = {}
    for base in kind.__mro__:
        for name, member in vars(base).items() if base.__module__.startswith("tfrkit") else ():
            is_ours = not name.startswith("_") or name in OPERATORS
            if is_ours and (inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod)):
                found.setdefault(name, member)
    return list(found.items())


def squeeze(lines: list[str]) -> str:
    """The lines with one empty line at a time."""
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    return "\n".join(kept).rstrip("\n") + "\n"
