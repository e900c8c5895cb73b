"""Texts, sizes, and accessibility of every page in both languages and both themes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WEB = Path(__file__).resolve().parents[3] / "src" / "tfrkit" / "view" / "web"
MOST = 150 * 1024


def load() -> dict[str, list[str]]:
    words, group = {}, ""
    for line in (WEB / "words.tsv").read_text("utf-8").splitlines():
        key, *texts = line.split("\t")
        if texts:
            words[group + key] = texts
        else:
            group = f"{key}."
    return words


def test_every_text_has_the_same_placeholders_in_both_languages() -> None:
    for key, texts in load().items():
        assert len({tuple(sorted(re.findall(r"\{\w+\}", text))) for text in texts}) == 1, key


def test_every_text_of_the_page_is_in_the_file_and_every_entry_is_used() -> None:
    code = "".join(path.read_text() for path in WEB.glob("*.js"))
    used = set(re.findall(r'\bt\("([\w.]+)"', code)) | set(re.findall(r'"((?:hex|detail)\.\w+)"', code))
    built = ("role.", "guess.", "kind.", "diff.", "key.", "overlay.", "export.", "stat.", "view.", "order.")
    built += ("stats.", "table.", "warn.", "fact.")
    known = load().keys()
    assert used <= known
    assert [key for key in known - used if not key.startswith(built)] == []


def test_files_of_the_page_are_small_and_need_nothing_else() -> None:
    files = list(WEB.iterdir())
    assert sum(path.stat().st_size for path in files) <= MOST
    for path in files:
        text = path.read_text().replace("http://www.w3.org/", "")
        assert not re.search(r"https?://|innerHTML|insertAdjacentHTML|eval\(|document\.write", text), path.name


PAGES = {
    "grid": ("", "grid"),
    "detail": ("record=3&hex=1", "detail"),
    "statistics": ("view=stats", "stats"),
    "filter": ("where=label+%3D+1", "selection"),
}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_have_no_accessibility_violations(fake_view: Callable[..., Any], theme: str, lang: str) -> None:
    view = fake_view(200)
    for name, (query, what) in PAGES.items():
        view.open(f"{query}&theme={theme}&lang={lang}", what)
        assert view.violations() == [], name
    view.page.keyboard.press("?")
    view.page.wait_for_selector("dialog[open]")
    assert view.violations() == []
