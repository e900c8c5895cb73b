"""`tfr export KIND PATH... -o OUT`: export records to files for other programs, one sub-command per kind."""

from __future__ import annotations

from collections.abc import Callable

import typer

from tfrkit.cli.export_pictures import PICTURE_KINDS
from tfrkit.cli.export_tables import TABLE_KINDS
from tfrkit.cli.groups import Commands

HELP = """Write a dataset as images, tables or annotations.

\b
  tfr export images data/ -o pictures/
  tfr export parquet 'train-*' -o train.parquet
  tfr export jsonl data/ -o - | jq .label
  tfr export KIND --help             output of a kind

Reads every record twice: once to find features and damage, once to write. Memory is bounded.
Outputs appear whole or not at all. Exit code 1 if records were left out (--on-bad skip).

JSON: kind, output, records, files, nbytes, skipped (shard, record, offset, cause), renamed (stored, written),
num_renamed, notes.
"""


def make_export_app(guard: Callable[[Callable[..., int]], Callable[..., None]]) -> typer.Typer:
    """Make the group of sub-commands."""
    app = typer.Typer(name="export", cls=Commands, help=HELP, no_args_is_help=True, rich_markup_mode=None)
    for name, kind in {**PICTURE_KINDS, **TABLE_KINDS}.items():
        app.command(name, help=kind.HELP)(guard(kind.run))
    return app
