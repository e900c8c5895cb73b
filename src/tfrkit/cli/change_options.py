"""Options and report of the commands that change a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfrkit.cli.options import Force, FormatOption, Incomplete, Jobs
from tfrkit.cli.output import Format, count_noun, print_line, print_result, say
from tfrkit.cli.progress import watch_on_terminal

if TYPE_CHECKING:
    from tfrkit.ops.edit.change import Changed

COLUMNS = ("path", "split", "records", "changed", "dropped", "added")
JSON_HELP = (
    "JSON: output, written, records, changed, dropped, added, splits, files (path, split, records, changed,\n"
    "dropped, added), notes."
)
PLACE_HELP = """\
The result is a copy (-o), or replaces the old files (--in-place): new files are read back first,
then all of them are swapped together. After a kill during the swap, the next edit, append or dedupe, or
tfr edit PATH --restore, puts the old files back. Only changed shards are rewritten. Class
names, splits and compression stay; counts in tfrkit.json, dataset_info.json and indexes are updated."""

_MAX_FILES = 20


@dataclass
class Changing:
    """Options for the place of a changed dataset, and for the report."""

    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="PATH", help="File or folder for a changed copy.")
    ] = None
    in_place: Annotated[bool, typer.Option("--in-place", help="Change the files themselves.")] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing, show what would change.")] = False
    force: Force = False
    incomplete: Incomplete = False
    jobs: Jobs = None
    format: FormatOption = "text"

    def arguments(self) -> dict[str, Any]:
        """Return the options as the functions of `ops.edit` accept them."""
        given = {**vars(self), "progress": watch_on_terminal()}
        del given["format"]
        return given


def print_changed(made: Changed, format: Format, *, verdict: str, rows_of: Sequence[str] = ()) -> None:
    """Print the changes per file, then the total; notes go to stderr."""
    result = made.to_json()

    def text() -> None:
        for note in made.notes:
            say(note)
        touched = [file for file in made.files if file.changed or file.dropped or file.added]
        for file in touched[:_MAX_FILES] if len(made.files) > 1 else ():
            print_line(f"{file.path}: {_describe(file.changed, file.dropped, file.added, file.records)}")
        if len(touched) > _MAX_FILES:
            print_line(f"... and {count_noun(len(touched) - _MAX_FILES, 'more file')}")
        for line in [*rows_of, verdict]:
            print_line(line)

    print_result(format, document=lambda: result, rows=lambda: result["files"], columns=COLUMNS, text=text)


def name_place(made: Changed, paths: Sequence[str]) -> str:
    """Name the changed dataset, by the user's path if that is clearer than the folder."""
    if made.output != ".":
        return made.output
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1:,} more"


def sum_up(made: Changed, paths: Sequence[str]) -> str:
    """Return the last line: totals of the dataset."""
    touched = sum(bool(file.changed or file.dropped or file.added) for file in made.files)
    what = _describe(made.changed, made.dropped, made.added, made.records)
    files = f" in {touched:,} of {count_noun(len(made.files), 'file')}" if len(made.files) > 1 else ""
    end = "" if made.is_written else ", nothing was written"
    return f"{name_place(made, paths)}: {what}{files}{end}"


def _describe(changed: int, dropped: int, added: int, left: int) -> str:
    if dropped:
        return f"{count_noun(dropped, 'record')} dropped, {left:,} left"
    if added:
        return f"{count_noun(added, 'record')} added, {left:,} now"
    return f"{changed:,} of {count_noun(left, 'record')} changed"
