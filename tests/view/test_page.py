"""The file of `tfr stats --html`: one file, a strict policy, and content of records that stays content."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tfrkit.errors import StorageError
from tfrkit.testing.reference import encode_example, write_frames
from tfrkit.view.page import bundle, print_page, to_html
from tfrkit.view.stats import stats

HOSTILE = b"</script><script>alert(1)</script><!--\"'&"
VOID = {"meta", "img"}


class Page(HTMLParser):
    """Elements, attributes and texts of a page; fails if an element is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: dict[str, str] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            name = tag + str(dict(attrs).get("type") or "")
            self._open.append(name)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().startswith(tag)

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open[-1]] = self.texts.get(self._open[-1], "") + data


def make(tmp_path: Path, records: list[dict[bytes, Any]], name: str = "a.tfrecord", **options: Any) -> str:
    (tmp_path / name).write_bytes(write_frames([encode_example(record) for record in records]))
    stats(tmp_path / name, html=tmp_path / "report.html", **options)
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_policy_allows_exactly_the_script_and_style_of_the_file(tmp_path: Path) -> None:
    page = Page(make(tmp_path, [{b"x": ("int64", [1])}]))
    (policy,) = [value for tag, name, value in page.attributes if name == "content" and "default-src" in (value or "")]
    assert policy is not None
    for tag in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.texts[tag].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")


def test_file_needs_nothing_else(tmp_path: Path) -> None:
    text = make(tmp_path, [{b"x": ("int64", [1])}])
    page = Page(text)
    assert not {"link", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert not [
        one for one in page.attributes if one[1] in ("src", "href", "srcset", "action") or one[1].startswith("on")
    ]
    assert not re.search(r"https?://(?!www\.w3\.org/)|url\(", text)
    assert not re.search(r"^(?:import|export) ", page.texts["script"], re.MULTILINE)


@pytest.mark.parametrize("where", ["name", "value", "class", "file"])
def test_content_of_records_cannot_become_part_of_the_page(tmp_path: Path, where: str) -> None:
    name = HOSTILE if where == "name" else b"label"
    value = HOSTILE if where == "value" else b"plain"
    if where == "class":
        (tmp_path / "classes.txt").write_bytes(b"0:" + HOSTILE + b"\n")
    records = [{name: ("bytes", [value]), b"y": ("int64", [0])}] * 4
    text = make(tmp_path, records, "<b><!--&.tfrecord" if where == "file" else "a.tfrecord")
    page = Page(text)
    assert page.tags.count("script") == 2
    assert "b" not in page.tags
    report = json.loads(page.texts["scriptapplication/json"])
    if where != "file":
        assert HOSTILE.decode() in json.dumps(report, ensure_ascii=False).replace('\\"', '"')


def test_names_that_are_no_text_do_not_stop_the_report(tmp_path: Path) -> None:
    page = Page(make(tmp_path, [{b"x": ("int64", [1])}], "a\udcff.tfrecord"))
    assert json.loads(page.texts["scriptapplication/json"])["title"] == "a\\udcff.tfrecord"


def test_tables_are_there_without_scripts(tmp_path: Path) -> None:
    text = make(tmp_path, [{b"height": ("int64", [7])}, {b"height": ("int64", [9])}])
    without = text[text.index("<noscript>") : text.index("</noscript>")]
    assert "<td>height</td>" in without
    assert all(f"<td>{number}</td>" in without for number in (7, 8.0, 9))


def test_only_words_of_the_page_are_in_the_file(tmp_path: Path) -> None:
    words = json.loads(Page(make(tmp_path, [{b"x": ("int64", [1])}])).texts["scriptapplication/json"])["words"]
    assert "\nrecords\trecords\t记录\n" in words
    assert "export\n" not in words


def test_text_is_escaped_and_cut() -> None:
    assert to_html("<b>&\"'") == "&lt;b&gt;&amp;&quot;&#x27;"
    assert to_html("a\x00\u202eb\ud800") == "a\\u0000\\u202eb\\ud800"
    assert len(to_html("x" * 1000)) == 300


def test_modules_become_one_script() -> None:
    one = "export const a = 1;\nexport let b;\nexport async function c() {}\nconst own = 2;\n"
    two = 'import { a, c } from "./one.js";\nexport function d() { return a; }\n'
    script = bundle({"one": one, "two": two})
    assert "return { a, b, c };" in script
    assert "const { a, c } = one;" in script
    assert not re.search(r"^(?:import|export)", script, re.MULTILINE)


def test_report_is_not_replaced_by_accident_and_deep_needs_one(tmp_path: Path) -> None:
    make(tmp_path, [{b"x": ("int64", [1])}])
    with pytest.raises(StorageError, match="the output exists already"):
        make(tmp_path, [{b"x": ("int64", [1])}])
    with pytest.raises(ValueError, match="deep is for a report"):
        stats(tmp_path / "a.tfrecord", deep=True)


def test_page_of_nothing_is_a_page() -> None:
    assert print_page({"title": "x", "tables": []}).startswith("<!doctype html>")
