"""`tfr tail`: print the last rows."""

from __future__ import annotations

from typing import Annotated

import typer

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import FormatOption, Paths
from tfrkit.cli.rows import ROWS_HELP, print_rows

HELP = f"""Print the last rows.

\b
  tfr tail train.tfrecord -n 3
  tfr tail train-* --format jsonl

{ROWS_HELP}

Reads the printed rows and, without an index, the headers of all; compressed files are inflated, a pipe is read
to its end.
"""

Count = Annotated[int, typer.Option("-n", min=0, metavar="N", help="Number of rows.")]


def run(paths: Paths, n: Count = 5, format: FormatOption = "text") -> int:
    """Print rows with their record numbers."""
    from tfrkit.ops.reshape.sample import tail_rows

    print_rows(format, tail_rows(paths, n))
    return ExitCode.DONE
