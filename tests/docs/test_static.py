"""What running a page does not show: links, headings, options, Chinese twins, words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from runner import checks, twins

ROOT = Path(__file__).parents[2]


def test_links_lead_to_files_and_headings() -> None:
    pages = checks.find_all_pages()
    assert len(pages) > 100
    assert [problem for page in pages for problem in checks.check_links(page)] == []


def test_headings_are_those_of_the_list() -> None:
    assert [problem for page in checks.find_all_pages() for problem in checks.check_headings(page)] == []


def test_commands_and_options_in_the_text_exist() -> None:
    assert [problem for page in checks.find_all_pages() for problem in checks.check_options(page)] == []


def test_every_page_is_three_clicks_away() -> None:
    assert checks.find_lonely() == []


def test_chinese_pages_have_the_structure_of_the_english_ones() -> None:
    pairs = twins.find_twins()
    assert len(pairs) > 30
    assert [problem for pair in pairs.items() for problem in twins.list_problems(*pair)] == []


def test_every_page_that_people_read_has_a_chinese_twin() -> None:
    assert twins.find_untranslated() == []


def test_workflows_call_make_targets_that_exist() -> None:
    makefiles = [ROOT / "Makefile", ROOT / "release/release.mk", ROOT / "tests/trust/targets.mk"]
    phony = {
        name
        for file in makefiles
        for line in re.findall(r"^\.PHONY: (.*)", file.read_text("utf-8"), re.M)
        for name in line.split()
    }
    called = set()
    for file in [ROOT / ".ci/run", *ROOT.glob(".github/workflows/*.yml")]:
        text = file.read_text(encoding="utf-8")
        called.update(re.findall(r"^(?: *- run: )?make ([a-z][a-z0-9-]*)", text, re.M))
        called.update(
            one.split()[0] for line in re.findall(r"^ *target: \[(.*)\]", text, re.M) for one in line.split(",")
        )
    assert {"test", "fuzz", "release-check"} <= called
    assert called - phony == set()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("一条条目", "条目: say 记录"),
        ("打开tfrkit", "a space between Chinese and Latin: 开t"),
        ("有 3个", "a space between Chinese and Latin: 3个"),
        ("好的, 继续", "full-width punctuation after Chinese: 的,"),
        ("你 好", "a space too many: 你 好"),
        ("好 ，是", "a space too many:  ，"),
    ],
)
def test_words_and_spaces_are_checked(text: str, what: str) -> None:
    assert twins.check_words("page", text) == [f"page:1: {what}"]


@pytest.mark.parametrize(
    "text", ["`您`", "```text\n您\n```", "用 `tfr info` 看 3 条。", "[链接](a,b.md)，好", "- 列表 tfr"]
)
def test_code_and_good_text_pass(text: str) -> None:
    assert twins.check_words("page", text) == []


ENGLISH = "# Title\n\nSome text, [a link](../index.md).\n\n```console\n$ tfr info x\n```\n\n## More\n"
CHINESE = "# 标题\n\n一些文字，[链接](../../index.md)。\n\n```console\n$ tfr info x\n```\n\n## 更多\n"


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.setattr(twins, "ROOT", tmp_path)
    english, chinese = tmp_path / "docs" / "do" / "x.md", tmp_path / "docs" / "zh" / "do" / "x.md"
    for path, text in ((english, ENGLISH), (chinese, CHINESE)):
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    twins.write_stamp(chinese, english)
    return chinese, english


def test_true_twin_passes(pair: tuple[Path, Path]) -> None:
    assert twins.list_problems(*pair) == []


@pytest.mark.parametrize(
    ("side", "old", "new", "what"),
    [
        (1, "Some text", "Some other text", "docs/do/x.md has changed since this page was translated"),
        (0, "## 更多", "### 更多", "headings"),
        (0, "tfr info x", "tfr info y", "the block differs from the English one"),
        (0, "```console\n$ tfr info x\n```\n", "", "0 blocks and fixtures, the English page has 1"),
        (0, "../../index.md", "../../other.md", "link to docs/index.md is missing here"),
        (0, "<!-- en: ", "<!-- no: ", "expected a line <!-- en: "),
    ],
)
def test_twin_that_differs_is_reported(pair: tuple[Path, Path], side: int, old: str, new: str, what: str) -> None:
    path = pair[side]
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    problems = twins.list_problems(*pair)
    assert any(problem.startswith("docs/zh/do/x.md:") and what in problem for problem in problems)


def test_placeholders_become_the_fences_of_the_english_page(pair: tuple[Path, Path]) -> None:
    chinese, english = pair
    chinese.write_text("# 标题\n\n@@\n", encoding="utf-8")
    twins.copy_fences(chinese, english)
    assert chinese.read_text(encoding="utf-8") == "# 标题\n\n```console\n$ tfr info x\n```\n"
