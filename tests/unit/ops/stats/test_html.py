from __future__ import annotations

import base64
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tfrkit.ops.stats.features import NUM_SAMPLES
from tfrkit.ops.stats.html import make_thumbnail, show
from tfrkit.ops.stats.plots import draw_histogram
from tfrkit.ops.stats.stats import stats
from tfrkit.testing.reference import encode_example, write_frames

HOSTILE = b"<script>alert(1)</script>\"'&"
VOID = {"meta", "img", "rect"}


class Page(HTMLParser):
    """Elements and text of a page; fails where an element is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID or tag == "rect":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def jpeg(color: tuple[int, int, int], size: tuple[int, int] = (300, 200)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, color).save(file, format="JPEG")
    return file.getvalue()


def report(tmp_path: Path, records: list[dict[bytes, Any]], name: str = "a.tfrecord") -> str:
    (tmp_path / name).write_bytes(write_frames([encode_example(record) for record in records]))
    stats(tmp_path / name, html=tmp_path / "report.html")
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_page_has_features_plots_and_pictures(tmp_path: Path) -> None:
    records = [
        {
            b"image": ("bytes", [jpeg((number * 20, 0, 0))]),
            b"label": ("int64", [number % 2]),
            b"x": ("float", [number / 7]),
        }
        for number in range(10)
    ]
    page = Page(report(tmp_path, records))
    text = " ".join(page.texts)
    assert "a.tfrecord: 10 records" in text
    assert all(word in text for word in ("image", "label", "JPEG 300x200", "Classes", "Some records"))
    assert page.tags.count("svg") > 4
    assert page.tags.count("figure") == page.tags.count("img") == 10


def test_page_needs_nothing_else(tmp_path: Path) -> None:
    text = report(tmp_path, [{b"image": ("bytes", [jpeg((0, 0, 255))])}])
    page = Page(text)
    assert not {"script", "link", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    outside = [
        (tag, name, value) for tag, name, value in page.attributes if name in ("src", "href", "srcset", "action")
    ]
    assert [value[:11] for _, _, value in outside if value] == ["data:image/"]
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert "url(" not in text
    assert "default-src &#x27;none&#x27;" in text


@pytest.mark.parametrize("where", ["name", "value", "class", "file"])
def test_content_of_records_cannot_become_part_of_the_page(tmp_path: Path, where: str) -> None:
    name = HOSTILE if where == "name" else b"label"
    value = HOSTILE if where == "value" else b"plain"
    if where == "class":
        (tmp_path / "classes.txt").write_bytes(b"0:" + HOSTILE + b"\n")
    records = [{name: ("bytes", [value]), b"y": ("int64", [0]), b"image": ("bytes", [jpeg((0, 0, 0))])}] * 4
    text = report(tmp_path, records, "<b>&.tfrecord" if where == "file" else "a.tfrecord")
    assert "<script" not in text
    assert "<b>" not in text
    page = Page(text)
    assert "script" not in page.tags
    if where != "file":
        assert HOSTILE.decode() in "".join(page.texts)


def test_text_is_escaped_and_isolated() -> None:
    assert show("<b>&\"'") == "<bdi>&lt;b&gt;&amp;&quot;&#x27;</bdi>"
    assert show("a\x00\u202eb\ud800", isolated=False) == "a\\u0000\\u202eb\\ud800"
    assert len(show("x" * 1000, isolated=False)) == 300


def test_pictures_are_small_copies_made_from_pixels() -> None:
    kind, data = make_thumbnail(jpeg((200, 10, 10), (1600, 400))) or ("", b"")
    with Image.open(io.BytesIO(data)) as image:
        assert (kind, image.format, image.size) == ("png", "PNG", (128, 32))
        assert np.abs(np.array(image)[10, 10].astype(int) - (200, 10, 10)).max() < 6
    assert len(data) < 20_000
    assert make_thumbnail(jpeg((0, 0, 0))[:300]) is None


def test_number_of_pictures_is_bounded_and_the_same_on_any_number_of_threads(tmp_path: Path) -> None:
    data = write_frames([encode_example({b"image": ("bytes", [jpeg((n, n, n), (8, 8))])}) for n in range(100)])
    (tmp_path / "a.tfrecord").write_bytes(data)
    pages = []
    for jobs in (1, 2):
        stats(tmp_path / "a.tfrecord", html=tmp_path / f"{jobs}.html", jobs=jobs)
        pages.append((tmp_path / f"{jobs}.html").read_text())
    assert pages[0] == pages[1]
    pictures = re.findall('src="data:image/png;base64,([^"]*)"', pages[0])
    assert len(pictures) == NUM_SAMPLES
    shades = set()
    for picture in pictures:
        with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
            shades.add(image.getpixel((4, 4)))
    levels = [shade[0] for shade in shades]
    assert (min(levels), max(levels)) == (pytest.approx(0, abs=25), pytest.approx(99, abs=25))  # from all over the file


def test_image_that_does_not_decode_is_noted(tmp_path: Path) -> None:
    text = report(tmp_path, [{b"image": ("bytes", [jpeg((0, 0, 0))[:400]])}])
    assert "does not decode" in text


def test_histogram_shows_every_bin_that_is_not_empty() -> None:
    svg = draw_histogram([{"start": 0, "stop": 1, "count": 1_000_000}, {"start": 1, "stop": 2, "count": 1}])
    assert svg.count("<rect") == 2
    assert 'height="1.0"' in svg
    assert draw_histogram([]) == ""
