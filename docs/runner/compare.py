"""Whether a page shows what was printed: equal but for `...` and what differs between runs."""

from __future__ import annotations

import difflib
import re

# What differs between runs and machines, declared once. The shape is compared, the value is not.
VOLATILE = {
    "time": r"\b\d+(?:[.,]\d+)* (?:ms|s|seconds)\b",
    "rate": r"\b\d+(?:[.,]\d+)* (?:items|rows|records|MB|kB|GB)/s",
    "address": r"127\.0\.0\.1:\d{4,5}/[0-9a-f]{32}\b",
    "port": r"127\.0\.0\.1:\d{4,5}\b",
}
VOLATILE_TEXT = re.compile("|".join(VOLATILE.values()))
ANY = "..."


def make_pattern(shown: str) -> re.Pattern[str]:
    """The pattern of what a page shows. A line `...` stands for any lines, `...` in a line for any text in it."""
    lines = shown.rstrip("\n").split("\n")
    rest = ""
    if lines[-1].strip() == ANY:
        lines.pop()
        rest = r"(?:\n.*)*" if lines else r"(?s:.*)"
    pieces = []
    for number, line in enumerate(lines):
        end = "" if number == len(lines) - 1 else r"\n"
        if line.strip() == ANY:
            pieces.append(r"(?:.*\n)*?")
        else:
            pieces.append(make_line_pattern(line.rstrip()) + r" *" + end)
    return re.compile("".join(pieces) + rest)


def make_line_pattern(line: str) -> str:
    pattern, position = "", 0
    for found in VOLATILE_TEXT.finditer(line):
        kind = next(one for one in VOLATILE.values() if re.compile(one).match(line, found.start()))
        pattern += re.escape(line[position : found.start()]) + f"(?:{kind})"
        position = found.end()
    pattern += re.escape(line[position:])
    return pattern.replace(r"\.\.\.", ".*?")


def is_shown(shown: str, printed: str) -> bool:
    return make_pattern(shown).fullmatch(printed.rstrip("\n")) is not None


def show_difference(shown: str, printed: str) -> str:
    lines = difflib.unified_diff(
        shown.rstrip("\n").split("\n"), printed.rstrip("\n").split("\n"), "the page shows", "printed", lineterm="", n=1
    )
    return "\n".join(lines)
