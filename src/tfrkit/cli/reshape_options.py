"""Shared options of the commands that rewrite datasets, and their report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import CompressionOption, Force, FormatOption, Incomplete, Jobs, OnCluster
from tfrkit.cli.output import count_noun, print_document, print_line, say, show_nbytes
from tfrkit.cli.progress import watch_on_terminal

if TYPE_CHECKING:
    from tfrkit.ops.reshape.rewrite import Rewritten

COLUMNS = ("path", "split", "records", "nbytes")
JSON_HELP = "JSON: output, records, nbytes, compression, seed, splits, files (path, split, records, nbytes), notes."

Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of every random choice.")]
Shards = Annotated[
    int | None,
    typer.Option("--shards", min=1, metavar="N", help="Files per split, at most one per record."),
]
ShardSize = Annotated[
    str | None,
    typer.Option("--shard-size", metavar="SIZE", help="Approximate size of a file before compression: 200MB."),
]


def _rename_level(level: str) -> str:
    if level != "best":
        return level
    say("note: --level best is deprecated, use --level small")
    return "small"


@dataclass
class Rewriting:
    """Options for rewriting records, and for the report."""

    compression: CompressionOption = None
    level: Annotated[
        Literal["fast", "default", "small", "best"],
        typer.Option("--level", metavar="fast|default|small", help="How hard to compress."),
        _rename_level,
    ] = "default"
    force: Force = False
    incomplete: Incomplete = False
    jobs: Jobs = None
    format: FormatOption = "text"


def run_reshape(
    work: Callable[..., Rewritten],
    paths: list[str],
    *arguments: Any,
    how: Rewriting,
    on: OnCluster | None = None,
    **options: Any,
) -> int:
    """Rewrite the records and print a summary."""
    options |= vars(how) | (on.choose() if on is not None else {})
    format = options.pop("format")
    made = work(paths, *arguments, **options, progress=watch_on_terminal())
    if made.output == "-":
        # The records are on stdout.
        for line in describe_output(made):
            say(line)
        return ExitCode.DONE
    result = made.to_json()
    print_document(format, result, result["files"], COLUMNS, lambda _: print_text(made))
    return ExitCode.DONE


def print_text(made: Rewritten) -> None:
    """Print one line per split, then the total; notes go to stderr."""
    for note in made.notes:
        say(note)
    for line in describe_output(made):
        print_line(line)


def describe_output(made: Rewritten) -> Sequence[str]:
    """Return the lines that describe the output."""
    lines = []
    if len(made.splits) > 1 or (made.splits and len(made.files) > 1):
        for split, records in made.splits.items():
            num_files = sum(file.split == split for file in made.files)
            lines.append(f"{split}: {count_noun(records, 'record')} in {count_noun(num_files, 'file')}")
    files = "" if len(made.files) == 1 else f" in {count_noun(len(made.files), 'file')}"
    seed = "" if made.seed is None else f", seed {made.seed}"
    name = "stdout" if made.output == "-" else made.output
    lines.append(f"{name}: {count_noun(made.records, 'record')}{files}, {show_nbytes(made.nbytes)}{seed}")
    return lines
