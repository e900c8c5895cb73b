"""`tfr index`: index files, so that random access and counting need no scan."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import FormatOption, Paths
from tfrkit.cli.output import print_result, print_table

HELP = """Write an index next to each file.

\b
  tfr index 'train-*'
  tfr index train.tfrecord --dali

The index is _index/NAME.tfidx, where globs for the data do not match it: eight bytes per record, and for a
compressed file the checkpoints that let a reader start in the middle. An existing index that fits is
kept; one that does not fit its file is written again. Reads the header of each frame; a compressed file
is inflated once.

With --dali the text index of NVIDIA DALI is written instead (NAME.idx: offset and length of each frame).

JSON: files (path, records, index).
"""

COLUMNS = ("path", "records", "index")

Dali = Annotated[bool, typer.Option("--dali", help="Write NVIDIA DALI's text index instead.")]


def run(paths: Paths, dali: Dali = False, format: FormatOption = "text") -> int:
    """Print one line per index."""
    from tfrkit.ops.index import make_index

    rows = [to_row(*made) for made in make_index(paths, dali=dali)]
    print_result(
        format,
        document=lambda: {"files": rows},
        rows=lambda: rows,
        columns=COLUMNS,
        text=lambda: print_table(COLUMNS, [tuple(row.values()) for row in rows], right=("records",)),
    )
    return ExitCode.DONE


def to_row(path: str, records: int, index: str) -> dict[str, Any]:
    """Return one index as a row."""
    return {"path": path, "records": records, "index": index}
