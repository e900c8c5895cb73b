"""`tfr dedupe`: drop duplicate records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tfrkit.cli.change_options import JSON_HELP, PLACE_HELP, Changing, name_place, print_changed, sum_up
from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import FilePaths, split_names
from tfrkit.cli.output import count_noun, set_verdict

if TYPE_CHECKING:
    from tfrkit.ops.edit.dedupe import Deduped

HELP = f"""Drop records that equal an earlier one.

\b
  tfr dedupe data/ --dry-run
  tfr dedupe data/ -o clean/
  tfr dedupe data/ --by image/encoded --in-place

Records are equal if all their bytes are, or with --by if these features have the same values; a record
that lacks one of them equals none. The first one in the order of the shards is kept, whatever its split.
Records in two splits (a leak: test data was trained on) are listed. With --per-split one copy is kept
in each split. Compares bytes only; tfr verify --deep finds images that look alike.

{PLACE_HELP}

Exit code 1: with --dry-run, there are duplicates or leaks.

{JSON_HELP[:-1]}, num_leaks, leaks (shard, record, split, other_shard, other_record, other_split).
"""

_MAX_LEAKS = 10

By = Annotated[
    list[str] | None,
    typer.Option(
        "--by", metavar="FEATURE", help="Compare a feature, not all bytes; may be repeated.", show_default=False
    ),
]
PerSplit = Annotated[bool, typer.Option("--per-split", help="Keep one copy in each split.")]


def run(paths: FilePaths, by: By = None, per_split: PerSplit = False, *, how: Changing) -> int:
    """Dedupe, and print what was dropped."""
    from tfrkit.ops.edit.dedupe import dedupe

    address = paths[0] if len(paths) == 1 else paths
    made = dedupe(address, by=split_names(by), per_split=per_split, **how.arguments())
    code = set_verdict(ExitCode.FOUND if how.dry_run and (made.dropped or made.num_leaks) else ExitCode.DONE)
    print_changed(
        made, how.format, verdict=describe_result(made, paths), rows_of=[*describe_splits(made), *describe_leaks(made)]
    )
    return code


def describe_result(made: Deduped, paths: list[str]) -> str:
    """Return the last line of the report."""
    if made.dropped:
        return sum_up(made, paths)
    end = "" if made.is_written else ", nothing was written"
    return f"{name_place(made, paths)}: no duplicates among {count_noun(made.records, 'record')}{end}"


def describe_splits(made: Deduped) -> list[str]:
    """Return a line per split if there are several."""
    dropped: dict[str, int] = {}
    for file in made.files:
        if file.split is not None:
            dropped[file.split] = dropped.get(file.split, 0) + file.dropped
    if len(dropped) < 2 or not made.dropped:
        return []
    return [
        f"{split}: {count_noun(count, 'record')} dropped, {made.splits[split]:,} left"
        for split, count in dropped.items()
    ]


def describe_leaks(made: Deduped) -> list[str]:
    """List the first few records that are in two splits."""
    lines = [
        f"leak: record {leak.record} of {leak.shard} ({leak.split or 'no split'}) equals record {leak.other_record} "
        f"of {leak.other_shard} ({leak.other_split or 'no split'})"
        for leak in made.leaks[:_MAX_LEAKS]
    ]
    if made.num_leaks > _MAX_LEAKS:
        lines.append(f"leak: ... and {made.num_leaks - _MAX_LEAKS:,} more")
    return lines
