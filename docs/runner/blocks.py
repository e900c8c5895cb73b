"""The fenced blocks of a page, with the comments that say what a page needs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(r"^```(\S*)$")
# <!-- data: captchas 100 -->, <!-- needs: torch -->, <!-- file: boxes.csv -->, <!-- not run: gpu -->
COMMENT = re.compile(r"^<!-- (data|needs|file|not run|outputs): (.*?) -->$")


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is that of its first fence, from 1, `marks` the comments right before it."""

    kind: str
    line: int
    text: str
    marks: dict[str, str] = field(default_factory=dict)
    follows: bool = False  # only empty lines lie between it and the block before

    @property
    def num_lines(self) -> int:
        return self.text.count("\n")


@dataclass(frozen=True)
class Data:
    """Set-up that the reader of a page does not see: a fixture of `runner.data`."""

    line: int
    words: list[str]


class PageError(Exception):
    """A page that cannot be read: the place and what is wrong."""


def read_page(path: Path) -> list[Block | Data]:
    return parse_page(path.read_text(encoding="utf-8"), path.as_posix())


def parse_page(text: str, name: str = "page") -> list[Block | Data]:
    """The blocks and fixtures of a page, in order."""
    steps: list[Block | Data] = []
    marks: dict[str, str] = {}
    opened: tuple[str, int] | None = None
    inside: list[str] = []
    follows = False
    for number, line in enumerate(text.split("\n"), 1):
        fence = FENCE.match(line)
        if opened is not None:
            if line == "```":
                kind, start = opened
                steps.append(Block(kind, start, "".join(f"{one}\n" for one in inside), marks, follows))
                opened, inside, marks, follows = None, [], {}, True
            else:
                inside.append(line)
        elif fence:
            opened = fence[1], number
        elif line.lstrip().startswith("```"):
            raise PageError(f"{name}:{number}: a fence starts at the left edge and has one word, got {line!r}")
        elif comment := COMMENT.match(line):
            if comment[1] == "data":
                steps.append(Data(number, comment[2].split()))
                follows = False
            else:
                marks[comment[1]] = comment[2]
        elif line.strip():
            follows = False
            if "file" in marks or "not run" in marks:
                raise PageError(f"{name}:{number}: a fence was expected after {marks}")
    if opened is not None:
        raise PageError(f"{name}:{opened[1]}: the fence is not closed")
    return steps


def read_needs(text: str) -> list[str]:
    """Modules that the blocks of a page import, besides those of tfrkit."""
    return [word for one in re.findall(r"^<!-- needs: (.*?) -->$", text, re.MULTILINE) for word in one.split()]
