"""Shared options and the report of `tfr export`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import typer

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.hints import Flag, say_note
from tfrkit.cli.options import Force, FormatOption, Incomplete
from tfrkit.cli.output import count_noun, print_document, print_line, say
from tfrkit.cli.progress import watch_on_terminal

COLUMNS = ("shard", "record", "offset", "cause")
_MAX_SHOWN = 20

OutputFolder = Annotated[
    str, typer.Option("-o", "--output", metavar="FOLDER", help="The folder to create.", show_default=False)
]
OnBad = Annotated[
    Literal["fail", "skip"],
    typer.Option("--on-bad", metavar="fail|skip", help="Records that do not fit: stop, or skip and exit 1."),
]
ImageFeature = Annotated[
    str | None, typer.Option("--image", metavar="FEATURE", help="The feature with the images; found by default.")
]
LabelFeature = Annotated[
    str | None, typer.Option("--label", metavar="FEATURE", help="The feature with the class; found by default.")
]
NameFeature = Annotated[
    str | None, typer.Option("--name", metavar="FEATURE", help="The feature with the names; found by default.")
]


@dataclass
class Exporting:
    """Options shared by all kinds."""

    force: Force = False
    incomplete: Incomplete = False
    format: FormatOption = "text"


class ExportCommand(NamedTuple):
    """One sub-command."""

    HELP: str
    run: Callable[..., int]


def run_export(export: Callable[..., Any], paths: list[str], output: str, how: Exporting, **options: Any) -> int:
    """Export, print the report and return the exit code."""
    options |= vars(how)
    format = options.pop("format")
    made = export(paths, output, **options, progress=watch_on_terminal())
    result = made.to_json()
    if made.output == "-":
        # The result is on stdout already.
        _print_text(result, say)
    else:
        print_document(format, result, result["skipped"], COLUMNS, lambda result: _print_text(result, print_line))
    return ExitCode.DONE if made.ok else ExitCode.FOUND


def _print_text(result: dict[str, Any], show: Callable[[str], None]) -> None:
    for finding in result["skipped"]:
        where = f"{finding['shard']}, record {finding['record']}, byte {finding['offset']}"
        show(f"skipped: {where}: {finding['cause']}")
    for name in result["renamed"][:_MAX_SHOWN]:
        show(f"renamed: {name['stored']} -> {name['written']}")
    if result["num_renamed"] > _MAX_SHOWN:
        show(f"renamed: {result['num_renamed'] - _MAX_SHOWN:,} more; the first 10,000 are in --format json")
    for note in result["notes"]:
        say(say_note(note, {"names": Flag("--names", "FEATURE")}))
    counts = _count_files(result)
    left_out = f", {len(result['skipped']):,} skipped" if result["skipped"] else ""
    output = "standard output" if result["output"] == "-" else result["output"]
    show(f"{output}: {counts}, {count_noun(result['nbytes'], 'byte')}{left_out}")


def _count_files(result: dict[str, Any]) -> str:
    records = count_noun(result["records"], "record")
    if "images" not in result:
        return f"{records}, {count_noun(result['files'], 'file')}"
    if result["available"] is not None:
        records = f"{result['records']:,} of {count_noun(result['available'], 'record')}"
    masks = [count_noun(result["masks"], "mask")] if result["masks"] else []
    return ", ".join([records, count_noun(result["images"], "image"), *masks, *result["tables"]])
