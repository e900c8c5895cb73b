"""What the site adds to plain pages: its tree, two languages, search, and texts for language models."""

from __future__ import annotations

import gettext
import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from writers.pages import read_headings, slug

LINK = re.compile(r"\]\((?!https?:)([^)#]+)\.md(?:#[^)]*)?\)")
# What other pages lead to; the tree has them in their own places.
APART = ("contents", "zh/contents")
# For language models: the pages that say how to use it, and not how it is built.
FULL = ("learn", "do", "look-up", "understand")
NOT_FULL = ("look-up/compat", "understand/documentation", *(f"{folder}/index" for folder in FULL))
SUMMARY = "Build, read, check and train from TFRecord files, without TensorFlow and many times faster."


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", leave_search_out)
    app.connect("source-read", add_tree)
    app.connect("html-page-context", add_language)
    app.connect("build-finished", write_texts)
    return {"parallel_read_safe": True}


def leave_search_out(app: Sphinx) -> None:
    """Search is ours, see search.js."""
    app.builder.search = False


def add_tree(app: Sphinx, name: str, source: list[str]) -> None:
    """The pages that the first page of a folder links to are its part of the tree."""
    if name.split("/")[-1] != "index":
        return
    folder = Path(app.srcdir, name).parent
    seen = []
    for link in LINK.findall(source[0]):
        target = (folder / link).resolve().relative_to(app.srcdir).as_posix()
        is_below = target.startswith(f"{Path(name).parent.as_posix()}/") or name in ("index", "understand/index")
        is_elsewhere = name == "index" and "/" in target and not target.endswith("/index")  # in the tree of its folder
        if is_below and not is_elsewhere and target not in seen:
            seen.append(target)
    if seen:
        lines = "\n".join(f"/{one}" for one in seen)
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:maxdepth: 2\n\n{lines}\n```\n"


def add_language(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """The language of the page for browsers and search, and the address of its twin."""
    is_chinese = name.startswith("zh/")
    twin = name.removeprefix("zh/") if is_chinese else f"zh/{name}"
    context["page_language"] = "zh" if is_chinese else "en"
    context["twin"] = context["pathto"](twin) if twin in app.env.found_docs else None
    if is_chinese:
        context["language"] = "zh-CN"
        words = gettext.translation("sphinx", _find_locale(), ["zh_CN"], fallback=True)
        context["_"] = context["gettext"] = lambda text: WORDS.get(text, words.gettext(text))


# What the theme says, where Sphinx has no Chinese for it.
WORDS = {
    "Contents": "目录",
    "Expand": "展开",
    "Menu": "菜单",
    "On this page": "本页内容",
    "Next": "下一页",
    "Previous": "上一页",
    "Home": "首页",
    "Skip to content": "跳到正文",
    "Back to top": "回到顶部",
    "Toggle site navigation sidebar": "显示或隐藏导航",
    "Toggle table of contents sidebar": "显示或隐藏目录",
    "Toggle Light / Dark / Auto color theme": "切换明暗",
    "Made with": "由",
    "Search": "搜索",
}


def _find_locale() -> str:
    import sphinx

    return str(Path(sphinx.__file__).parent / "locale")


# ---- texts


def write_texts(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    pages = sorted(app.env.found_docs)
    sections = [section for name in pages for section in read_sections(Path(app.srcdir), name)]
    text = json.dumps(sections, ensure_ascii=False, separators=(",", ":"))
    (out / "_static" / "sections.js").write_text(f"const SECTIONS={text};\n", encoding="utf-8")
    for name in pages:
        copy = out / f"{name}.md"
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(Path(app.srcdir, f"{name}.md").read_text(encoding="utf-8"), encoding="utf-8")
    (out / "llms.txt").write_text(make_llms(Path(app.srcdir), pages), encoding="utf-8")
    for path in out.rglob("*.html"):
        path.write_text(mend_html(path.read_text(encoding="utf-8")), encoding="utf-8")
    (out / "llms-full.txt").write_text(make_llms_full(Path(app.srcdir), pages), encoding="utf-8")


def mend_html(text: str) -> str:
    """What axe finds in the theme: landmarks without names, boxes that scroll but cannot be focused, empty headers."""
    is_chinese = '<html class="no-js" lang="zh-CN"' in text or 'lang="zh-CN" data-content_root' in text
    pages, here = ("全部页面", "本页") if is_chinese else ("All pages", "This page")
    text = text.replace('<aside class="sidebar-drawer">', f'<aside class="sidebar-drawer" aria-label="{pages}">')
    text = re.sub(r'<aside class="toc-drawer([^"]*)">', rf'<aside class="toc-drawer\1" aria-label="{here}">', text)
    text = text.replace("<pre>", '<pre tabindex="0">')
    text = re.sub(r'<div class="table-wrapper([^"]*)">', r'<div class="table-wrapper\1" tabindex="0">', text)
    return re.sub(r'<th class="head([^"]*)"><p></p></th>', r'<td class="head\1"></td>', text)


def read_sections(root: Path, name: str) -> list[dict[str, str]]:
    """The sections of a page: address, title, heading, text, language."""
    path = root / f"{name}.md"
    lines = path.read_text(encoding="utf-8").split("\n")
    headings = read_headings(path)
    title = plain(headings[0][1])
    found = []
    for number, (level, heading, line) in enumerate(headings):
        stop = headings[number + 1][2] - 1 if number + 1 < len(headings) else len(lines)
        found.append(
            {
                "u": f"{name}.html" + ("" if level == 1 else f"#{slug(heading)}"),
                "t": title,
                "h": plain(heading),
                "x": plain("\n".join(lines[line:stop])),
                "l": "zh" if name.startswith("zh/") else "en",
            }
        )
    return found


def plain(text: str) -> str:
    text = re.sub(r"<!--.*?-->|^```.*$|^\|[ :|-]+\|$", "", text, flags=re.MULTILINE)
    text = re.sub(r"!?\[(.*?)\]\(.*?\)", r"\1", text)
    return " ".join(re.sub(r"[`|*]|^#+ ", " ", text, flags=re.MULTILINE).split())


def make_llms(root: Path, pages: list[str]) -> str:
    lines = ["# tfrkit", "", f"> {SUMMARY}", "", "Every block of these pages is run; what it prints is compared."]
    for folder, title in (
        ("learn", "Tutorials"),
        ("do", "How-tos"),
        ("look-up", "Reference"),
        ("understand", "Explanation"),
    ):
        lines += ["", f"## {title}", ""]
        for name in pages:
            if name.startswith(f"{folder}/"):
                lines.append(f"- [{plain(read_headings(root / f'{name}.md')[0][1])}]({name}.md)")
    return "\n".join(lines) + "\n"


def make_llms_full(root: Path, pages: list[str]) -> str:
    """All pages in one text; arguments that several commands share are in it once for each list of them."""
    parts = [f"# tfrkit\n\n{SUMMARY}\n"]
    shared: set[str] = set()
    for folder in FULL:
        for name in pages:
            if name.startswith(f"{folder}/") and name not in NOT_FULL:
                text = (root / f"{name}.md").read_text(encoding="utf-8")
                sections = re.split(
                    r"^(?=## )", re.sub(r"<!--.*?-->\n*", "", text, flags=re.DOTALL), flags=re.MULTILINE
                )
                parts.append("".join(one for one in sections if one.strip() not in shared))
                shared.update(one.strip() for one in sections if one.startswith("## Arguments of "))
    return "\n".join(parts)
