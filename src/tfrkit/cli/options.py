"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

from tfrkit.cli.output import Format

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...",
        help="Files, folders or quoted globs; - is stdin.",
        show_default=False,
    ),
]

OnePath = Annotated[
    str,
    typer.Argument(
        metavar="PATH",
        help="A file, a folder or a quoted glob; - is stdin.",
        show_default=False,
    ),
]

FormatOption = Annotated[
    Format,
    typer.Option("--format", "-f", metavar="text|json|jsonl|csv", help="How to print the result."),
]
