"""README and tour: every block runs, in order, and prints the documented output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from runner.blocks import Block, read_page
from runner.run import run_page

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "README.zh.md"]


def read_blocks(page: str) -> list[tuple[str, str]]:
    blocks = [block for block in read_page(ROOT / page) if isinstance(block, Block)]
    return [(block.kind, block.text) for block in blocks if block.kind in ("python", "console")]


@pytest.mark.parametrize("page", PAGES)
def test_readme_blocks_run_in_order(page: str) -> None:
    assert {kind for kind, _ in read_blocks(page)} == {"python", "console"}
    result = run_page(ROOT / page)
    assert not result.failures, result.describe(page)


def test_readme_code_is_the_same_in_both_languages() -> None:
    def code_of(page: str) -> list[str]:
        return [re.sub(r"\s+#.*", "", source) for _, source in read_blocks(page)]

    assert code_of("README.md") == code_of("README.zh.md")


@pytest.mark.parametrize("page", PAGES)
def test_readme_names_the_two_commands_to_start_with(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text


def test_readme_tour_is_short() -> None:
    tour = next(source for kind, source in read_blocks("README.md") if kind == "python")
    assert len(tour.splitlines()) <= 25
