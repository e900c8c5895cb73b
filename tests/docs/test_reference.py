"""The generated pages are current, and everything public is documented."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import tfrkit
from tfrkit import errors

ROOT = Path(__file__).parents[2]


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = load_generator()


@cache
def make_pages() -> dict[str, str]:
    return GENERATOR.make_pages()


def read(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_generated_pages_are_current() -> None:
    pages = make_pages()
    if sys.version_info[:2] != (3, 11):  # how types and defaults print differs between versions of Python
        pages = {name: text for name, text in pages.items() if not name.startswith("look-up/python/")}
    assert len(pages) > 50
    assert [f"docs/{name}" for name, text in pages.items() if read(name) != text] == [], "run `make docs`"


def test_no_page_of_a_removed_command_is_left() -> None:
    assert GENERATOR.find_stale(make_pages()) == []


def test_every_command_and_option_is_documented() -> None:
    from tfrkit.cli.main import NAMES
    from tfrkit.cli.options import spread_groups

    overview = read("look-up/cli/index.md")
    for name in NAMES:
        command = importlib.import_module(f"tfrkit.cli.{name}")
        assert f"| [`tfr {name}`](tfr-{name}.md) |" in overview
        section = read(f"look-up/cli/tfr-{name}.md")
        for parameter in inspect.signature(spread_groups(command.run)).parameters.values():
            declared = parameter.annotation.__metadata__[0]
            # In an annotation, typer stores the first option name as the default.
            names = [declared.default, *(getattr(declared, "param_decls", None) or ())]
            options = [name for name in names if isinstance(name, str)] or [declared.metavar]
            for option in options:
                assert f"`{option}" in section, f"{option} of tfr {name}"
            assert declared.help in section


@pytest.mark.parametrize("name", tfrkit.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    assert getattr(tfrkit, name).__doc__ or name == "__version__"
    elsewhere = {"errors", "TfrkitError", "__version__"}
    pages = [text for page, text in make_pages().items() if page.startswith("look-up/python/")]
    assert sum(f"\n## tfr.{name}\n" in text for text in pages) == (name not in elsewhere)


def test_python_reference_is_readable() -> None:
    pages = {name: text for name, text in make_pages().items() if name.startswith("look-up/python/")}
    for name, text in pages.items():
        assert "\n### __" not in text and ".__" not in text, f"{name} has a section for a method that users never call"
        assert not re.search(r"^\w[^`]*: '[A-Z]", text, re.MULTILINE), f"{name} has annotations in quotes"
        assert not re.search(r"^#+ .*\n\n(#|\Z)", text, re.MULTILINE), f"{name} has an empty section"
        assert "```\n```" not in text


def test_options_that_all_sources_share_are_listed_apart() -> None:
    page = read("look-up/cli/tfr-build-class-folders.md")
    own, shared = page.split("## Arguments of every `tfr build`")
    assert "--split-folders" in own
    assert "`--out OUT`" in shared
    assert "--out" not in own.split("## Arguments")[1]


def test_every_name_of_compat_is_described() -> None:
    page = read("look-up/compat.md")
    rows = [line.split(" | ") for line in page.split("\n") if line.startswith("| `")]
    assert [row[0] for row in rows if not row[1].strip(" |")] == []
    for path, names in GENERATOR.compat.walk_namespaces("tf", GENERATOR.compat.NAMES):
        section = page.split(f"\n## {path}\n")[1].split("\n## ")[0]
        assert [name for name in names if f"| `{name}` |" not in section] == []
    assert "| `Dataset.prefetch` | accepted, and does nothing |" in page


def test_every_error_is_documented() -> None:
    page = read("look-up/errors.md")
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.TfrkitError | errors.TfrkitWarning):
            is_root = kind in (errors.TfrkitError, errors.TfrkitWarning)
            assert is_root or f"\n## {name}\n\n**Cause.** " in page
            assert f"`{name}`" in page
            assert f"── {name}" in (errors.__doc__ or "") or is_root
