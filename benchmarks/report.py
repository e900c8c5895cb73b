"""RESULTS.md: one table of works, times, ratios and bars, and what each is limited by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bars import NAMES, Bar, Row
from timing import Timing

MET = {True: "met", False: "**not met**", None: ""}


@dataclass(frozen=True)
class Measured:
    """A row and the times of every side that did it."""

    row: Row
    timings: dict[str, Timing]
    nbytes: int
    output_sizes: dict[str, int]  # of works that write
    notes: dict[str, str]  # what a side says of its result

    def ratio(self, side: str) -> float | None:
        """Return tfrkit's speed divided by a side's, of the shortest times."""
        ours, theirs = self.timings.get("tfrkit"), self.timings.get(side)
        return ours.rate / theirs.rate if ours and theirs else None


def to_markdown(measured: list[Measured], costs: dict[str, Any] | None, facts: dict[str, Any], *, command: str) -> str:
    """Return the whole report."""
    absent = [name for name, version in facts["versions"].items() if version is None]
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items() if version)
    lines = [
        "# Results",
        "",
        f"Made by `{command}`; the last rows on {facts['date']}.",
        "",
        f"- Machine: {facts['machine']}.",
        f"- Versions: {versions}." + (f" Not installed: {', '.join(absent)}." if absent else ""),
        "- Every row was checked for equal values on all sides before it was timed. Sides took turns in one run;",
        "  speeds and ratios are of the shortest time of each. Page cache warm, checksums on where a side has them,",
        "  one core each unless the row says 2 threads. TensorFlow is timed in the fastest of its ways.",
        "",
        "| work | tfrkit | TensorFlow | others | ratio | bar | met | limited by |",
        "| --- | ---: | ---: | ---: | ---: | --- | --- | --- |",
    ]
    lines += [table_row(one) for one in measured]
    lines += ["", "Ways that were timed:", ""]
    lines += [f"- {one.row.name}: {ways_text(one)}" for one in measured]
    notes = [one for one in measured if one.notes]
    if notes:
        lines += ["", "Results that are not the same on all sides:", ""]
        lines += [f"- {one.row.name}: {notes_text(one)}" for one in notes]
    builds = [one for one in measured if "_build" in one.row.work and "tfrkit" in one.timings]
    if builds:
        lines += ["", "Share of the cores that a build keeps busy, from its start to its end:", ""]
        lines += [f"- {one.row.name}: {one.timings['tfrkit'].cores / one.row.threads:.0%}" for one in builds]
    sizes = [one for one in measured if len(one.output_sizes) > 1]
    if sizes:
        lines += ["", "Sizes of written files:", ""]
        lines += [f"- {one.row.name}: {sizes_text(one.output_sizes)}" for one in sizes]
    if costs:
        lines += ["", "## Cost", "", *cost_lines(costs)]
    return "\n".join(lines) + "\n"


def table_row(one: Measured) -> str:
    """Return one line of the table."""
    others = [
        f"{NAMES[side]} {speed_text(one, timing)}"
        for side, timing in one.timings.items()
        if side not in ("tfrkit", "tensorflow")
    ]
    cells = [one.row.title]
    cells += [speed_text(one, one.timings[side]) if side in one.timings else "" for side in ("tfrkit", "tensorflow")]
    cells.append("<br>".join(others))
    cells.append("<br>".join(ratio_text(one, side) for side in one.timings if side != "tfrkit"))
    cells.append("<br>".join(str(bar) for bar in one.row.bars))
    cells.append("<br>".join(verdict(one, bar) for bar in one.row.bars))
    cells.append(one.row.limit)
    return "| " + " | ".join(cells) + " |"


def speed_text(one: Measured, timing: Timing) -> str:
    """Return a speed in records and, where it says something, bytes a second."""
    per_record = one.nbytes / max(one.timings[next(iter(one.timings))].records, 1)
    rate = f"{timing.rate / 1e6:.2f} M/s" if timing.rate >= 1e6 else f"{timing.rate / 1e3:.1f} k/s"
    if timing.rate < 10_000:
        rate = f"{timing.rate:,.0f} /s"
    if "random" in one.row.work or not per_record:
        return rate
    nbytes = one.nbytes / timing.best
    return f"{rate}, {nbytes / 1e9:.2f} GB/s" if nbytes >= 1e8 else f"{rate}, {nbytes / 1e6:.0f} MB/s"


def ratio_text(one: Measured, side: str) -> str:
    """Return how many times faster than a side tfrkit is."""
    ratio = one.ratio(side)
    return f"{ratio:.2f} × {NAMES[side]}" if ratio is not None else ""


def verdict(one: Measured, bar: Bar) -> str:
    """Say whether a bar is met."""
    ratio = one.ratio(bar.side)
    if ratio is None:
        return "not measured"
    return MET[ratio >= bar.at_least]


def ways_text(one: Measured) -> str:
    """Return which way of each side was timed."""
    return "; ".join(f"{NAMES[side]} `{timing.way}`" for side, timing in one.timings.items())


def notes_text(one: Measured) -> str:
    """Return what sides said of their results."""
    return "; ".join(f"{NAMES[side]} {note}" for side, note in one.notes.items())


def sizes_text(sizes: dict[str, int]) -> str:
    """Return the written sizes and their relation to TensorFlow's."""
    text = ", ".join(f"{NAMES[side]} {nbytes:,} bytes" for side, nbytes in sizes.items())
    if {"tfrkit", "tensorflow"} <= sizes.keys():
        text += f" ({sizes['tfrkit'] / sizes['tensorflow'] - 1:+.2%})"
    return text


def cost_lines(costs: dict[str, Any]) -> list[str]:
    """Return memory and disk figures."""
    lines = [
        "Peak memory of a process that passes over a file once. Linux counts pages of a mapped file as memory of the",
        "process, although it can take them back at any time; own memory leaves them out.",
        "",
        "| pass | file | after import | peak | own memory |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for one in costs["memory"]:
        megabytes = " | ".join(f"{one[key]:,.0f} MB" for key in ("file_mb", "import_mb", "peak_mb", "own_mb"))
        lines.append(f"| `{one['title']}` | {megabytes} |")
    built = ", ".join(f"{one['items']:,} pictures {one['peak_mb']:,.0f} MB" for one in costs["build_memory"])
    lines += ["", f"Peak memory of the largest process of `tfr build file-names`, 2 jobs: {built}."]
    lines += ["", "| start, in a fresh process, imports not counted | | bar | met |", "| --- | ---: | --- | --- |"]
    lines += [f"| {one['title']} | {one['value']} | {one['bar']} | {MET[one['is_met']]} |" for one in costs["start"]]
    lines += ["", "| installed size | |", "| --- | ---: |"]
    lines += [f"| {title} | {megabytes:,.1f} MB |" for title, megabytes in costs["installed"].items()]
    lines += ["", f"Index: {costs['index']}"] if costs.get("index") else []
    return lines
