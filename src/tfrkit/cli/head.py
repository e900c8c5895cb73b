"""`tfr head`: print the first rows."""

from __future__ import annotations

from typing import Annotated

import typer

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import FormatOption, Paths
from tfrkit.cli.rows import ROWS_HELP, print_rows

HELP = f"""Print the first rows.

\b
  tfr head train.tfrecord -n 3
  tfr head train-* --format jsonl

{ROWS_HELP}

Reads only the printed rows.
"""

Count = Annotated[int, typer.Option("-n", min=0, metavar="N", help="Number of rows.")]


def run(paths: Paths, n: Count = 5, format: FormatOption = "text") -> int:
    """Print rows as they are read, so that rows before a damaged record are shown."""
    from tfrkit.ops.reshape.sample import head_rows

    print_rows(format, enumerate(head_rows(paths, n)))
    return ExitCode.DONE
