"""Write the reference pages from the code: `make docs`. The tests fail when a page is not current."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))

from writers import benchmarks, cli, compat, errors, pages, python, share  # noqa: E402

# Folders in which every page is generated, so that a page of a command that is gone does not stay.
WHOLE = ("look-up/cli", "look-up/python")
# The last one lists the headings of the pages that the others write.
WRITERS = (cli, compat, errors, python, share, benchmarks, pages)


def make_pages() -> dict[str, str]:
    """Text of every generated page, by its path below docs."""
    return {name: text for writer in WRITERS for name, text in writer.make_pages().items()}


def find_stale(pages: dict[str, str]) -> list[Path]:
    """Pages of generated folders that nothing writes any more."""
    found = [path for folder in WHOLE for path in (FOLDER / folder).glob("*.md")]
    return [path for path in found if path.relative_to(FOLDER).as_posix() not in pages]


def main() -> None:
    for writer in WRITERS:
        for name, text in writer.make_pages().items():
            path = FOLDER / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
                print(f"docs/{name}", file=sys.stderr)
    for path in find_stale(make_pages()):
        path.unlink()
        print(f"docs/{path.relative_to(FOLDER)} removed", file=sys.stderr)


if __name__ == "__main__":
    main()
