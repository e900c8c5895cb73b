"""docs/understand/benchmarks.md and the charts of the READMEs, from benchmarks/RESULTS.md."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import NamedTuple

from writers.markdown import NOTE

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "RESULTS.md"

# Rows of the chart: the start of the row in RESULTS.md, its name in English and in Chinese.
CHART = (
    ("1M records of 200 bytes → Python bytes", "read 1M small records", "读 100 万条小记录"),
    ("1M Examples of 22 scalars → NumPy columns", "parse 1M Examples into columns", "解析 100 万个 Example 成列"),
    ("1M Examples of 22 scalars, shuffled", "the same, shuffled, 2 threads", "同上，打乱，2 线程"),
    ("5k JPEGs 500x375: shuffle, decode", "shuffle, decode, resize 5k JPEGs", "打乱、解码、缩放 5 千张 JPEG"),
    ("gzip, 200k Examples: read and parse", "read and parse gzip", "读取并解析 gzip"),
    ("write 200k tabular Examples from dicts", "write 200k Examples from dicts", "用字典写 20 万个 Example"),
    ("the same, every JPEG decoded once", "build from 20k JPEGs", "用 2 万张 JPEG 构建"),
    ("build 1M rows of CSV", "build from 1M rows of CSV", "用 100 万行 CSV 构建"),
    ("stats: all figures", "statistics of 1M Examples", "100 万个 Example 的统计"),
)


class Row(NamedTuple):
    work: str
    ours: str
    theirs: str
    others: str
    ratio: str
    bar: str
    met: str
    limit: str


def make_pages() -> dict[str, str]:
    rows = read_rows()
    return {
        "understand/benchmarks.md": make_page(rows),
        "pictures/speed-en.svg": draw_chart(rows, 1, "times as fast as TensorFlow 2.21 at the same work"),
        "pictures/speed-zh.svg": draw_chart(rows, 2, "做同样的工作，是 TensorFlow 2.21 的多少倍"),
    }


def read_rows() -> list[Row]:
    lines = RESULTS.read_text(encoding="utf-8").split("\n")
    start = lines.index(next(line for line in lines if line.startswith("| work |")))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(Row(*(cell.strip() for cell in line.strip("|").split("|"))))
    return rows


def read_ratio(row: Row) -> float:
    found = re.search(r"([\d.]+) × TensorFlow", row.ratio)
    assert found is not None, row.work
    return float(found[1])


def make_page(rows: list[Row]) -> str:
    text = RESULTS.read_text(encoding="utf-8")
    facts = re.findall(r"^- (Machine: .*|Versions: .*)$", text, re.MULTILINE)
    missed = [row for row in rows if "not met" in row.met]
    behind = [row for row in rows if re.search(r"\b0\.\d+ ×", row.ratio)]
    lines = [NOTE, "", "# Benchmarks", ""]
    lines += ["![Times as fast as TensorFlow](../pictures/speed-en.svg)", ""]
    lines += ["Every row was checked for equal results on all sides before it was timed. Sides took turns in one run,"]
    lines += [
        "with TensorFlow in the fastest of its ways, checksums on, the page cache warm. `make bench` makes the table"
    ]
    lines += ["again on your machine.", "", *(f"- {fact}" for fact in facts)]
    lines += ["", "## All rows", "", "| work | tfrkit | TensorFlow | others | ratio | limited by |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | --- |"]
    lines += [f"| {row.work} | {row.ours} | {row.theirs} | {row.others} | {row.ratio} | {row.limit} |" for row in rows]
    lines += ["", "## What is not as fast as we want", "", "Bars that we set and did not reach:", ""]
    lines += [
        f"- {row.work}: {row.ratio.replace('<br>', ', ')}; the bar was {row.bar.replace('<br>', ', ')}"
        for row in missed
    ]
    lines += ["", "Rows in which somebody else is faster:", ""]
    lines += [f"- {row.work}: {row.ratio.replace('<br>', ', ')}" for row in behind]
    lines += ["", "## Cost", "", *text.split("## Cost\n")[1].strip("\n").split("\n")]
    return "\n".join(lines) + "\n"


def draw_chart(rows: list[Row], language: int, title: str) -> str:
    """Bars on a logarithmic scale from 1 to 100, legible in light and dark."""
    width, left, top, step = 760, 290, 44, 26
    scale = (width - left - 70) / math.log10(100)
    height = top + step * len(CHART) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'width="{width}" height="{height}">',
        f"<title>{title}</title>",
        "<style>text{font:14px system-ui,sans-serif;fill:#24292f}.n{font-weight:600}"
        ".g{stroke:#8c959f;stroke-opacity:.4}"
        ".b{fill:#1f6feb}@media(prefers-color-scheme:dark){text{fill:#e6edf3}.b{fill:#4493f8}}</style>",
        f'<text x="0" y="18" class="n">{title}</text>',
    ]
    bottom = top + step * len(CHART)
    for value in (1, 3, 10, 30, 100):
        x = left + scale * math.log10(value)
        parts.append(f'<line class="g" x1="{x:.1f}" y1="{top - 8}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{value}×</text>')
    for number, (start, *names) in enumerate(CHART):
        ratio = read_ratio(next(row for row in rows if row.work.startswith(start)))
        y, length = top + step * number, scale * math.log10(ratio)
        shown = f"{ratio:.0f}×" if ratio >= 20 else f"{ratio:.1f}×"
        parts.append(f'<text x="{left - 10}" y="{y + 14}" text-anchor="end">{names[language - 1]}</text>')
        parts.append(f'<rect class="b" x="{left}" y="{y}" width="{length:.1f}" height="18" rx="2"/>')
        parts.append(f'<text x="{left + length + 8:.1f}" y="{y + 14}" class="n">{shown}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
