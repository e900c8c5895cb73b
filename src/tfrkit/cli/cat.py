"""`tfr cat`: print every row."""

from __future__ import annotations

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import FormatOption, Paths
from tfrkit.cli.rows import ROWS_HELP, print_rows

HELP = f"""Print every row.

\b
  tfr cat train.tfrecord --format jsonl > train.jsonl
  tfr cat a.tfrecord b.tfrecord --format csv
  tfr merge a.tfrecord b.tfrecord -o -          (the records themselves)

{ROWS_HELP}

Files are scanned once before the first row, so that a feature has the same form in all rows; a pipe is
streamed. As json and csv, all rows are held in memory; as text and jsonl, a few.
"""


def run(paths: Paths, format: FormatOption = "text") -> int:
    """Print rows as they are read."""
    from tfrkit.ops.reshape.sample import cat_rows

    print_rows(format, enumerate(cat_rows(paths)))
    return ExitCode.DONE
