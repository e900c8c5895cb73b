"""docs/contents.md and docs/zh/contents.md: every page with its headings, in the order of the sections."""

from __future__ import annotations

import re
from pathlib import Path

from writers.markdown import NOTE

DOCS = Path(__file__).parents[1]
SECTIONS = {"learn": "Learn", "do": "Do", "look-up": "Look up", "understand": "Understand", "design": "Design"}
SECTIONS_ZH = {"learn": "学习", "do": "动手", "look-up": "查阅", "understand": "理解"}


def make_pages() -> dict[str, str]:
    pages = {"contents.md": make_contents(DOCS, SECTIONS, "Everything on one page")}
    if (DOCS / "zh").exists():
        pages["zh/contents.md"] = make_contents(DOCS / "zh", SECTIONS_ZH, "全部页面")
    return pages


def make_contents(root: Path, sections: dict[str, str], title: str) -> str:
    lines = [NOTE, "", f"# {title}"]
    for folder, name in sections.items():
        found = sorted((root / folder).rglob("*.md"), key=lambda path: order_of(path, root))
        if not found:
            continue
        lines += ["", f"## {name}", ""]
        for path in found:
            where = path.relative_to(root).as_posix()
            headings = read_headings(path)
            lines.append(f"- [{headings[0][1]}]({where})")
            if folder != "look-up":  # the reference has thousands of them
                below = [f"[{text}]({where}#{slug(text)})" for level, text, _ in headings if level == 2]
                lines += [f"  {' · '.join(below)}"] if below else []
    return "\n".join(lines) + "\n"


def order_of(path: Path, root: Path) -> tuple[str, int, str]:
    """By folder, the first page of a folder first, then as that page links to them."""
    first = path.parent / "index.md"
    links = re.findall(r"\]\(([^)#]+\.md)", first.read_text(encoding="utf-8")) if first.exists() else []
    place = -1 if path.name == "index.md" else links.index(path.name) if path.name in links else len(links)
    return path.parent.relative_to(root).as_posix(), place, path.name


def read_headings(path: Path) -> list[tuple[int, str, int]]:
    """(level, text, line) of each heading outside of fences."""
    found = []
    is_code = False
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.startswith("```"):
            is_code = not is_code
        elif not is_code and (heading := re.match(r"(#+) (.*)$", line)):
            found.append((len(heading[1]), heading[2], number))
    return found


def slug(text: str) -> str:
    """The anchor of a heading, as forges and MyST make it."""
    text = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", text.lower().replace("`", ""))
    return re.sub(r"[^\w\u4e00-\u9fff\- ]", "", text).strip().replace(" ", "-")
