"""The built site in a real Chromium, from its folder: search, languages, accessibility, no request elsewhere."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
AXE = ROOT / "build" / "view" / "axe.min.js"

# A word, and a page that its first results have to contain.
SEARCHES = [
    ("en", "palette", "do/palette-masks.html"),
    ("en", "resume", "do/resume.html"),
    ("en", "corrupted record", "do/corrupt-record.html"),
    ("en", "--stratify", "do/class-folders.html"),
    ("en", "CorruptRecordError", "look-up/errors.html#corruptrecorderror"),
    ("zh", "验证码", "zh/learn/captchas.html"),
    ("zh", "掩膜", "zh/do/palette-masks.html"),
    ("zh", "按病人", "zh/do/split-by-group.html"),
    ("zh", "存储桶", "zh/do/remote.html"),
    ("zh", "恢复", "zh/do/resume.html"),
]
PAGES = ["index", "zh/index", "learn/captchas", "zh/do/verify", "look-up/cli/tfr-build-class-folders", "look-up/errors"]
PAGES += ["look-up/python/reading", "understand/benchmarks", "contents", "search"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    assert program, "Chromium is not here: apt-get install chromium, or set CHROMIUM to its path"
    flags = ["--allow-file-access-from-files=false", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as tool:
        yield tool.chromium.launch(executable_path=program, args=flags)


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page that fails its test by an error in the console or by any request that leaves the folder."""
    page = browser.new_page()
    page.set_default_timeout(120_000)
    problems: list[str] = []
    page.on("console", lambda one: problems.append(one.text) if one.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda one: None if one.url.startswith(("file:", "data:")) else problems.append(one.url))
    yield page
    page.close()
    assert problems == []


@pytest.mark.parametrize(("lang", "query", "expected"), SEARCHES)
def test_search_finds_its_page(page: Any, lang: str, query: str, expected: str) -> None:
    start = "zh/do/index.html" if lang == "zh" else "do/index.html"
    page.goto((SITE / start).as_uri())
    page.fill(".sidebar-search", query)
    page.press(".sidebar-search", "Enter")
    page.wait_for_selector("#search-results li")
    found = page.eval_on_selector_all("#search-results a", "links => links.slice(0, 5).map(link => link.href)")
    assert any(link.endswith(expected) for link in found), found
    assert page.eval_on_selector("html", "html => html.lang") == ("zh-CN" if lang == "zh" else "en")
    page.click("#search-results li a")
    page.wait_for_selector("article h1")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_is_accessible(page: Any, name: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto((SITE / f"{name}.html").as_uri())
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    shown = [f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in found]
    assert shown == []


def test_languages_lead_to_each_other(page: Any) -> None:
    page.goto((SITE / "do" / "verify.html").as_uri())
    page.click(".twin a")
    assert page.url.endswith("/zh/do/verify.html")
    assert page.eval_on_selector("html", "html => html.lang") == "zh-CN"
    page.click(".twin a")
    assert page.url.endswith("/site/do/verify.html")


def test_every_link_between_pages_leads_somewhere() -> None:
    pages = [path for path in SITE.rglob("*.html") if "_static" not in path.parts]
    assert len(pages) > 100
    ids = {path: set(re.findall(r'\bid="([^"]+)"', path.read_text(encoding="utf-8"))) for path in pages}
    lost = []
    for path in pages:
        for link in re.findall(r'\bhref="([^"]+)"', path.read_text(encoding="utf-8")):
            where, _, anchor = link.partition("#")
            target = (path.parent / where.partition("?")[0]).resolve() if where else path
            if "://" in link or link.startswith("mailto:"):
                continue
            if not target.exists() or (anchor and target in ids and anchor not in ids[target]):
                lost.append(f"{path.relative_to(SITE)}: {link}")
    assert lost == []


def test_texts_for_language_models_are_there_and_small() -> None:
    full = (SITE / "llms-full.txt").read_text(encoding="utf-8")
    assert len(full) / 3 < 120_000  # a token of such text has more than three characters
    assert "# Captchas: from files to a model that reads them" in full
    links = re.findall(r"\]\(([^)]+)\)", (SITE / "llms.txt").read_text(encoding="utf-8"))
    assert len(links) > 80
    assert [link for link in links if not (SITE / link).exists()] == []
