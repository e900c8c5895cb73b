"""`tfr edit`: change values and drop records."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from tfrkit.cli.change_options import JSON_HELP, PLACE_HELP, Changing, print_changed, sum_up
from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import FilePaths
from tfrkit.cli.output import print_line, set_verdict

HELP = f"""Change or drop records for which a condition is true.

\b
  tfr edit data/ --where 'label = 7' --set 'label = 3' -o fixed/
  tfr edit data/ --set 'label = label - 1' --set 'name = upper(name)' --in-place
  tfr edit data/ --drop --where 'width < 16' --dry-run

Conditions and values are DuckDB's SQL over the features of a record, as in tfr sql; names that are more than
letters, digits and _ go in double quotes ("image/height"). --set takes a class by its name: label = 'cat'; in a
condition its name is in another column: label_name = 'cat'. A value has to fit the feature: its kind, its number of
values, its classes. A number that float32 would round, such as 0.1, is refused until a cast says so:
'score = 0.1::float'. Without --where all records match. Unchanged records keep their bytes, and in changed ones only
the set features change.

{PLACE_HELP}

Exit code 1: no record matches, or every value is already set; nothing was written.

{JSON_HELP}
"""

_ASSIGNMENT = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^="]+?))\s*=(?!=)\s*(.*\S)\s*', re.DOTALL)

Where = Annotated[
    str | None,
    typer.Option(
        "--where", metavar="SQL", help="Condition for the records to change; all by default.", show_default=False
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FEATURE=SQL", help="New value of a feature; may be repeated.", show_default=False),
]
Drop = Annotated[bool, typer.Option("--drop", help="Drop the records.")]
Binary = Annotated[
    list[str] | None,
    typer.Option("--binary", metavar="FEATURE", help="Take a text feature as bytes; may be repeated."),
]
Restore = Annotated[bool, typer.Option("--restore", help="Roll back an interrupted change.")]


def run(
    paths: FilePaths,
    where: Where = None,
    set: Set = None,
    drop: Drop = False,
    restore: Restore = False,
    binary: Binary = None,
    *,
    how: Changing,
) -> int:
    """Edit, and print a summary."""
    if restore:
        from tfrkit.ops.edit.change import restore_change

        print_line("the old files are back" if restore_change(paths) else "no unfinished change was found")
        return ExitCode.DONE
    from tfrkit.ops.edit.edit import edit

    made = edit(
        paths[0] if len(paths) == 1 else paths,
        where=where,
        set=parse_assignments(set),
        drop=drop,
        binary=binary or (),
        **how.arguments(),
    )
    code = set_verdict(ExitCode.DONE if made.changed or made.dropped else ExitCode.FOUND)
    print_changed(made, how.format, verdict=sum_up(made, paths))
    return code


def parse_assignments(texts: list[str] | None) -> dict[str, str]:
    """Parse assignments into features and expressions; a name in double quotes may contain any character."""
    found: dict[str, str] = {}
    for text in texts or ():
        match = _ASSIGNMENT.fullmatch(text)
        if match is None:
            raise ValueError(f"--set expected FEATURE = VALUE, got {text!r}")
        name = match[1].replace('""', '"') if match[1] else match[2]
        if name in found:
            raise ValueError(f"--set expected a feature once, got {name!r} twice")
        found[name] = match[3]
    return found
