"""A report as one HTML file: the statistics page of the viewer, its words and style, and the figures as JSON.

The file needs nothing else. Its Content-Security-Policy allows exactly the script and the style in it, and embedded
pictures. Content of records is JSON, and becomes text nodes; without scripts there are tables.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

Json = dict[str, Any]

# In the order in which they need each other.
_MODULES = ("dom", "words", "histogram", "report", "file")
_STYLES = ("base", "report")
_MAX_TEXT = 300


def print_page(report: Json) -> str:
    """Return the HTML file of a report."""
    files = resources.files("tfrkit.view") / "web"
    modules = {name: (files / f"{name}.js").read_text("utf-8") for name in _MODULES}
    script = bundle(modules)
    style = "\n".join((files / f"{name}.css").read_text("utf-8") for name in _STYLES)
    words = _choose_words((files / "words.tsv").read_text("utf-8"), list(modules.values()))
    # In a script element only "<" could end the text.
    data = json.dumps({**report, "words": words}, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{to_html(report['title'])}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<noscript><h1>{to_html(report['title'])}</h1>{_print_tables(report)}</noscript>\n"
        f'<script type="application/json" id="report">{_replace_surrogates(data)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def bundle(modules: Mapping[str, str]) -> str:
    """Join modules into one script: each becomes a function that returns its exports; imports read them.

    Knows the forms that the page uses: named imports, and exports of const, let, function and async function.
    """
    joined = []
    for name, text in modules.items():
        exported = re.findall(r"^export (?:const|let|(?:async )?function) (\w+)", text, re.MULTILINE)
        body = re.sub(r"^export ", "", text, flags=re.MULTILINE)
        body = re.sub(r'^import (\{.*?\}) from "\./(\w+)\.js";$', r"const \1 = \2;", body, flags=re.MULTILINE)
        joined.append(f"const {name} = (() => {{\n{body}\nreturn {{ {', '.join(exported)} }};\n}})();\n")
    return '"use strict";\n' + "".join(joined)


def _choose_words(words: str, texts: Sequence[str]) -> str:
    """Return the groups of words that these modules use."""
    used = {group for text in texts for group in re.findall(r'["`](\w+)\.[\w$]', text)}
    # A group is a line with its name, then lines with tabs.
    groups = re.split(r"^(?=\w+$)", words, flags=re.MULTILINE)
    return "".join(group for group in groups if group.partition("\n")[0] in used)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def to_html(value: object) -> str:
    """Convert a value to HTML text: escaped and cut, with control characters as their codes."""
    text = str(value)
    text = text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
    return html.escape("".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text))


def _replace_surrogates(text: str) -> str:
    """Bytes of names that are not UTF-8 are lone surrogates, which cannot be written."""
    return re.sub("[\ud800-\udfff]", lambda found: f"\\\\u{ord(found[0]):04x}", text)


def _print_tables(report: Json) -> str:
    parts = []
    for table in report["tables"]:
        lines = [[to_html("" if cell is None else cell) for cell in row] for row in (table["heads"], *table["rows"])]
        rows = "".join(f"<tr><td>{'</td><td>'.join(line)}</td></tr>" for line in lines)
        parts.append(f"<table>{rows}</table>")
    return "".join(parts)
