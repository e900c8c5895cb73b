"""The report of a build, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfrkit.cli.hints import Flag, describe_problems, say_hint, say_note
from tfrkit.cli.output import count_noun, print_json, print_line, print_table, say, show_nbytes

_SHOWN_COUNTS = 40
_SHOWN_SKIPPED = 20


def print_report(report: Any, format: str, flags: Mapping[str, Flag]) -> None:
    """Print what a build found, wrote and left out; `flags` are the command's options."""
    if format == "json":
        print_json(report.to_json(), indent=2)
        return
    for note in report.notes:
        say(say_note(note, flags))
    if report.is_dry:
        _print_counts(report.counts)
    _print_head(report)
    _print_splits(report)
    if report.ignored:
        print_line("ignored: " + ", ".join(f"{count:,} {name}" for name, count in report.ignored.items()))
    _print_left_out(report, flags)


def _print_head(report: Any) -> None:
    if report.already_there:
        print_line(f"{report.out}: already there, made from the same inputs with the same options; nothing to do")
        return
    verb = "to write" if report.is_dry else "written"
    num_records = sum(split["records"] for split in report.splits.values())
    if report.missing_shards:
        verb = f"written by part {report.part}"
    found = f"{report.found:,} found, {num_records:,} {verb}, {report.num_skipped:,} skipped"
    print_line(f"{report.out}: {found}")
    about = "about " if report.is_dry else ""
    sizes = [f"{about}{show_nbytes(report.nbytes_out)} out"]
    if report.nbytes_in:
        ratio = f" ({report.nbytes_out / report.nbytes_in:.2f} x)" if report.nbytes_out else ""
        sizes = [f"{show_nbytes(report.nbytes_in)} in", sizes[0] + ratio]
    if not report.is_dry:
        rate = report.found / report.seconds if report.seconds else 0
        sizes.append(f"{report.seconds:.1f} s, {rate:,.0f} items/s")
    if report.resumed:
        sizes.append(f"{count_noun(report.resumed, 'shard')} from an earlier run")
    print_line(", ".join(sizes))


def _print_splits(report: Any) -> None:
    rows = [
        (name, f"{split['records']:,}", f"{split['shards']:,}", show_nbytes(split["nbytes"]))
        for name, split in report.splits.items()
    ]
    if rows:
        print_table(("split", "records", "shards", "size"), rows, right=("records", "shards", "size"))


def _print_counts(counts: dict[str, dict[str, int]]) -> None:
    for title, names in counts.items():
        shown = (
            sorted(names.items(), key=lambda pair: (-pair[1], pair[0])) if len(names) > _SHOWN_COUNTS else names.items()
        )
        text = ", ".join(f"{name} {count:,}" for name, count in list(shown)[:_SHOWN_COUNTS])
        more = f" and {len(names) - _SHOWN_COUNTS} more" if len(names) > _SHOWN_COUNTS else ""
        print_line(f"{title} ({len(names)}): {text}{more}")


def _print_left_out(report: Any, flags: Mapping[str, Flag]) -> None:
    from tfrkit.build.problem_groups import group_problems

    if report.is_dry:
        for line in describe_problems(report.problems, flags):
            print_line(f"bad: {line}" if not line.startswith(" ") else line)
        print_line("dry run, nothing was written")
        return
    groups = group_problems(entry.to_problem() for entry in report.skipped)
    groups.sort(key=lambda group: -len(group.problems))
    for group in groups[:_SHOWN_SKIPPED]:
        print_line(f"skipped {len(group.problems):,}: {group.describe_reason()}")
        steps = say_hint(group.hint, flags)
        if steps:
            print_line(f"  {steps}")
    if report.skipped:
        print_line("all of them are in skipped.jsonl")
