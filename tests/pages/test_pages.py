"""Every block of every page runs, in order, in an empty folder, and prints what the page shows: `make docs-test`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from runner.run import TIMEOUT, find_missing, find_pages, run_page

ROOT = Path(__file__).parents[2]

# `make docs-test` sets it: there a page that cannot run fails.
MUST_RUN = os.environ.get("TFRKIT_PAGES") == "all"
# `make test` runs the pages that need no framework; the READMEs are in tests/docs there.
PAGES = [page for page in find_pages() if MUST_RUN or not page.startswith("README")]


# A page that takes too long is named by its runner; pytest's limit would end the whole worker first.
@pytest.mark.timeout(TIMEOUT + 60)
@pytest.mark.parametrize("page", PAGES)
def test_page_runs_and_prints_what_it_shows(page: str) -> None:
    missing = find_missing(ROOT / page)
    if missing and not MUST_RUN:
        pytest.skip(f"{page} needs {', '.join(missing)}: make docs-test")
    result = run_page(ROOT / page)
    assert not result.failures, result.describe(page)
