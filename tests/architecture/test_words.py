"""Plain words: see the glossary in CONTRIBUTING.md. The worst words are in no docstring, comment, message or page."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORDS = re.compile(
    r"\b(told|whoever|so many|strangers?|papers|anew|what lies|speaks? of|of another make"
    r"|let(s|ting)? (it )?go|go(es)? on with)\b",
    re.IGNORECASE,
)
CPP_TEXT = re.compile(r'//.*|"(?:[^"\\]|\\.)*"')
FILES = {
    "src/tfrkit": ("*.py", "*.pyi"),
    "native": ("*.h", "*.cc"),
    "docs": ("*.md",),
}


def find_words(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """(line, word) of each refused word in comments and strings, or in all of a page."""
    if path.suffix in (".py", ".pyi"):
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        # f-strings are split into pieces from Python 3.12 on.
        kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
        pieces = [(token.start[0], token.string) for token in tokens if token.type in kinds]
    elif path.suffix == ".md":
        pieces = [(1, text)]
    else:
        pieces = [
            (number, found) for number, line in enumerate(text.split("\n"), 1) for found in CPP_TEXT.findall(line)
        ]
    for line, piece in pieces:
        for match in WORDS.finditer(piece):
            yield line + piece.count("\n", 0, match.start()), match[0]


@pytest.mark.parametrize("folder", FILES)
def test_worst_words_are_not_used(folder: str) -> None:
    paths = [path for pattern in FILES[folder] for path in sorted((ROOT / folder).rglob(pattern))]
    assert paths
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word}"
        for path in paths
        for line, word in find_words(path, path.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.py", '"""Fine.\n\nWhoever reads."""\n'),
        ("x.py", "x = 1\n\n# it is told\n"),
        ("x.py", 'x = 1\n\nprint("so many")\n'),
        ("x.h", "\n\n// papers\n"),
        ("x.h", "\n\n// Lets go of the lock.\n"),
        ("x.cc", '\n\ndef("a stranger");\n'),
        ("x.md", "a\n\nTold once.\n"),
    ],
)
def test_each_kind_of_text_is_searched(name: str, text: str) -> None:
    assert [line for line, _ in find_words(Path(name), text)] == [3]


def test_names_in_code_are_not_text() -> None:
    assert list(find_words(Path("x.py"), "told = 1\n")) == []
