"""The file of `tfr stats --html` in a real browser, opened from the disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrkit as tfr


@pytest.fixture
def open_report(open_view: Callable[..., Any], datasets_folder: Path, tmp_path: Path) -> Callable[..., Any]:
    """Writes the report of a dataset and opens it; only the file itself and pictures inside it may be requested."""

    def make(name: str, choices: str = "lang=en", **options: Any) -> Any:
        path = tmp_path / f"{name}.html"
        tfr.tools.stats(str(datasets_folder / name), html=path, force=True, on_error="skip", **options)
        view = open_view(path.as_uri())
        view.expected = [path.as_uri(), "data:image/"]
        view.page.goto(f"{path.as_uri()}#{choices}")
        view.wait(0, what="report")
        return view

    return make


@pytest.mark.parametrize("choices", ["lang=en&theme=light", "lang=zh&theme=dark"])
def test_report_has_everything_and_no_violations(open_report: Callable[..., Any], choices: str) -> None:
    view = open_report("copies", choices, deep=True)
    heads = " ".join(view.texts("h2"))
    for word in ("Splits", "Classes", "Rarest classes", "Copies", "Distributions", "Features", "Files"):
        assert word in heads or "zh" in choices, word
    assert view.page.locator("img").evaluate_all("list => list.every((one) => one.naturalWidth > 0)")
    assert view.page.locator(".pair img").count() == 4
    assert view.page.locator(".stat-card svg").count() > 4
    assert view.violations() == []
    view.shot(f"report-{choices[5:7]}")


def test_many_classes_are_folded_and_both_tables_have_heads(open_view: Callable[..., Any], tmp_path: Path) -> None:
    for split in ("train", "test"):
        with tfr.Writer(str(tmp_path / f"a-{split}.tfrecord")) as writer:
            for number in range(120):
                writer.write({"label": number % 40 % 30})
    tfr.tools.stats(str(tmp_path), html=tmp_path / "a.html")
    view = open_view((tmp_path / "a.html").as_uri())
    view.expected = [view.url]
    view.page.goto(f"{view.url}#lang=en")
    view.wait(0, what="report")
    tables = view.page.locator(".classes")
    rows = tables.evaluate_all("list => list.map((one) => one.tBodies[0].rows.length)")
    assert rows == [12, 18]
    assert "18 more" in view.page.locator(".fold summary").inner_text()
    heads = tables.evaluate_all(
        "list => list.map((one) => [...one.tHead.rows[0].cells].map((cell) => cell.textContent))"
    )
    assert sorted(heads[0]) == sorted(heads[1]) == ["class", "count", "test", "train"]
    widths = view.page.locator(".classes .value-fill").evaluate_all("list => list.map((one) => one.style.width)")
    assert widths[0] == "100%"


def test_first_warning_of_the_report_is_the_worst(open_report: Callable[..., Any]) -> None:
    view = open_report("damaged")
    assert view.texts(".alert")[0] == "Damaged places, left out: 2"
    assert "payload checksum mismatch" in view.page.locator(".finding-list").inner_text()


def test_language_and_theme_change_without_a_server(open_report: Callable[..., Any]) -> None:
    view = open_report("scenes")
    view.after(lambda: view.page.get_by_role("button", name="中文").click(), "report", lang="zh")
    assert "类别" in " ".join(view.texts("h2"))
    before = view.page.evaluate("getComputedStyle(document.body).backgroundColor")
    view.page.get_by_role("button", name="浅色或深色").click()
    assert view.page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_constant_feature_is_a_sentence_and_hostile_text_stays_text(open_report: Callable[..., Any]) -> None:
    view = open_report("mixed")
    assert view.texts("[data-feature=constant] .constant") == ["7 in every record"]
    assert view.page.locator("[data-feature=constant] svg").count() == 0
    assert view.page.locator("[data-feature=tokens] svg").count() == 2  # values and lengths
    assert view.page.locator("main script, main [onerror]").count() == 0


def test_report_without_scripts_has_tables(browser: Any, open_report: Callable[..., Any]) -> None:
    url = open_report("scenes").url
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(url)
    assert "image/height" in page.locator("noscript").inner_text()
