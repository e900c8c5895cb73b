"""Chinese pages and the English pages they are translated from.

    python docs/twins.py            what is wrong, page by page
    python docs/twins.py --fences   copy the fences of the English pages into the Chinese ones
    python docs/twins.py --stamp PAGE...   the page has been translated from the English page as it is now

While a page is being written, a line `@@` stands for the next fence or fixture of the English page.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from pathlib import Path

from writers.pages import read_headings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GLOSSARY = DOCS / "zh" / "glossary.tsv"
STAMP = re.compile(r"^<!-- en: ([0-9a-f]{16}) -->\n")
_MARK = re.compile(r"^<!-- (data|needs|file|not run|outputs): .* -->$")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)]+)\)")
_HAN = "\u4e00-\u9fff"
# Sections that have a Chinese twin for each of their pages.
TRANSLATED = ("learn", "do", "understand/comparison.md", "understand/index.md", "index.md", "look-up/errors.md")


def find_twins() -> dict[Path, Path]:
    """English page by its Chinese page."""
    pages = [path for path in sorted((DOCS / "zh").rglob("*.md")) if path.name != "contents.md"]
    return {path: DOCS / path.relative_to(DOCS / "zh") for path in pages} | {ROOT / "README.zh.md": ROOT / "README.md"}


def find_untranslated() -> list[str]:
    """English pages that should have a twin and have none."""
    pages = [
        path for one in TRANSLATED for path in ([DOCS / one] if one.endswith(".md") else (DOCS / one).rglob("*.md"))
    ]
    return [path.relative_to(ROOT).as_posix() for path in pages if not (DOCS / "zh" / path.relative_to(DOCS)).exists()]


def is_introduction(english: Path) -> bool:
    """Of a generated page only the text before its first section is translated."""
    return english.read_text(encoding="utf-8").startswith("<!-- Written by ")


def read_english(english: Path) -> str:
    text = english.read_text(encoding="utf-8")
    return text.split("\n| error |")[0].split("\n", 2)[2] if is_introduction(english) else text


def hash_text(english: Path) -> str:
    """Of the words of a page; its fences are compared as they are."""
    return hashlib.sha256(remove_fences(read_english(english)).encode()).hexdigest()[:16]


def remove_fences(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def read_chunks(text: str) -> list[tuple[int, str]]:
    """(line, text) of each fence with its marks, and of each fixture."""
    chunks: list[tuple[int, str]] = []
    held: list[str] = []
    start = 0
    is_open = False
    for number, line in enumerate(text.split("\n"), 1):
        is_fence = line.startswith("```")
        if is_open or is_fence or _MARK.match(line):
            start = start or number
            held.append(line)
            is_open = is_open != is_fence
            if (is_fence and not is_open) or line.startswith(("<!-- data", "<!-- needs")):
                chunks.append((start, "\n".join(held)))
                held, start = [], 0
    return chunks


def list_problems(chinese: Path, english: Path) -> list[str]:
    """What makes a Chinese page differ from its English page: page, line and what."""
    text, original = chinese.read_text(encoding="utf-8"), read_english(english)
    name = chinese.relative_to(ROOT).as_posix()
    stamp = STAMP.match(text)
    found = []
    if stamp is None:
        found.append(f"{name}:1: expected a line <!-- en: {hash_text(english)} -->")
    elif stamp[1] != hash_text(english):
        found.append(f"{name}:1: {english.relative_to(ROOT)} has changed since this page was translated")
    ours = [(level, line) for level, _, line in read_headings(chinese)]
    levels = [line.split(" ")[0].count("#") for line in remove_fences(original).split("\n") if re.match(r"#+ ", line)]
    if [level for level, _ in ours] != levels:
        at = next((line for (level, line), other in zip(ours, levels, strict=False) if level != other), 1)
        found.append(f"{name}:{at}: {len(ours)} headings, the English page has {len(levels)}, or other levels")
    chunks, expected = read_chunks(text), read_chunks(original)
    for (line, chunk), (_, other) in zip(chunks, expected, strict=False):
        if normalize(chunk) != normalize(other):
            found.append(f"{name}:{line}: the block differs from the English one: python docs/twins.py --fences")
            break
    if len(chunks) != len(expected):
        found.append(f"{name}:1: {len(chunks)} blocks and fixtures, the English page has {len(expected)}")
    links = [resolve(chinese, target) for target in _LINK.findall(remove_fences(text))]
    targets = [resolve(english, target) for target in _LINK.findall(remove_fences(original))]
    for target in sorted(set(links) ^ set(targets)):
        side = "is only here" if target in links else "is missing here"
        found.append(f"{name}:1: link to {target} {side}")
    return found + check_words(name, text)


def normalize(chunk: str) -> str:
    """A block without its comments, which are translated in the READMEs."""
    return re.sub(r" +# .*", "", chunk)


def resolve(page: Path, target: str) -> str:
    """A link as the English page would have it, below the repository."""
    target = target.partition("#")[0]
    if "://" in target:
        return target
    where = os.path.relpath((page.parent / target).resolve(), ROOT)
    where = where.replace("README.zh.md", "README").replace("README.md", "README").replace("docs/zh/", "docs/")
    return re.sub(r"-(en|zh)(\.\w+)$", r"\2", where)


def read_glossary() -> list[tuple[str, str, list[str]]]:
    """(English, Chinese, words that are not used for it)."""
    rows = [line.split("\t") for line in GLOSSARY.read_text(encoding="utf-8").strip("\n").split("\n")[1:]]
    return [(english, chinese, [word for word in refused.split("、") if word]) for english, chinese, refused in rows]


def check_words(name: str, text: str) -> list[str]:
    """Words that the glossary refuses, spaces between Chinese and Latin, full-width punctuation."""
    found = []
    is_code = False
    refused = [(word, chinese) for _, chinese, words in read_glossary() for word in words]
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            is_code = not is_code
        if is_code or line.startswith(("```", "<!--")):
            continue
        words = re.sub(r"`[^`]*`", "`", line)
        words = re.sub(r"\]\([^)]*\)", "]", words)
        found += [f"{name}:{number}: {word}: say {better}" for word, better in refused if word in words]
        bare = words.replace("`", "x")
        if place := re.search(rf"[{_HAN}][A-Za-z0-9]|[A-Za-z0-9%×][{_HAN}]", re.sub(r"[\[\]]", "", bare)):
            found.append(f"{name}:{number}: a space between Chinese and Latin: {place[0]}")
        if place := re.search(rf"[{_HAN}] ?[,;:!?](?= |$|[{_HAN}])|[{_HAN}]\.(?= |$)", bare):
            found.append(f"{name}:{number}: full-width punctuation after Chinese: {place[0]}")
        if place := re.search(
            rf"[{_HAN}] [{_HAN}]| [，。；：！？、）]|[（，。；：、] ", re.sub(r"^\s*(\| |- |#+ )|\|", "", bare)
        ):
            found.append(f"{name}:{number}: a space too many: {place[0]}")
    return found


# ---- writing


def copy_fences(chinese: Path, english: Path) -> None:
    """Replace each block and fixture, or `@@`, by that of the English page."""
    text = chinese.read_text(encoding="utf-8")
    originals = [chunk for _, chunk in read_chunks(read_english(english))]
    if "\n@@\n" in text:
        for chunk in originals:
            text = text.replace("\n@@\n", f"\n{chunk}\n", 1)
    elif english.name != "README.md":  # its comments are translated
        for (_, old), new in zip(read_chunks(text), originals, strict=False):
            text = text.replace(old, new, 1)
    chinese.write_text(text, encoding="utf-8")


def write_stamp(chinese: Path, english: Path) -> None:
    text = STAMP.sub("", chinese.read_text(encoding="utf-8"))
    chinese.write_text(f"<!-- en: {hash_text(english)} -->\n{text}", encoding="utf-8")


def main() -> None:
    twins = find_twins()
    given = [Path(one).resolve() for one in sys.argv[1:] if not one.startswith("--")]
    for chinese, english in twins.items():
        if "--fences" in sys.argv:
            copy_fences(chinese, english)
        if "--stamp" in sys.argv and (not given or chinese.resolve() in given):
            write_stamp(chinese, english)
    problems = [problem for pair in twins.items() for problem in list_problems(*pair)]
    print("\n".join(problems + [f"{name}: no Chinese page" for name in find_untranslated()]))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
