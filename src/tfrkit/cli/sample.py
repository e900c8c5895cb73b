"""`tfr sample`: choose records at random."""

from __future__ import annotations

from typing import Annotated

import typer

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import Paths
from tfrkit.cli.output import say
from tfrkit.cli.reshape_options import JSON_HELP, Rewriting, Seed, run_reshape
from tfrkit.cli.rows import print_rows

HELP = f"""Choose records at random, and print or write them.

\b
  tfr sample data/ -n 3
  tfr sample 'train-*' -n 1000 --seed 1 -o some.tfrecord

Exactly N records, each equally likely, in file order; without -o they are
printed as rows, like head. Bytes of records do not change. Reads the chosen records and, without an index, the
headers of all; compressed files are inflated.

With -o, {JSON_HELP}
"""

Count = Annotated[int, typer.Option("-n", "--count", min=0, metavar="N", help="Number of records.")]
OptionalOutput = Annotated[
    str | None, typer.Option("-o", "--output", metavar="PATH", help="File to write; - is stdout.", show_default=False)
]


def run(paths: Paths, n: Count = 5, output: OptionalOutput = None, seed: Seed = 0, *, how: Rewriting) -> int:
    """Print rows, or write a file and print what was written."""
    from tfrkit.ops.reshape.sample_records import sample, sample_rows

    if output is None:
        print_rows(how.format, sample_rows(paths, n, seed=seed))
        say(f"seed {seed}")
        return ExitCode.DONE
    return run_reshape(sample, paths, output, n, seed=seed, how=how)
