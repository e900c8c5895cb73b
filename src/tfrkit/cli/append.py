"""`tfr append`: add records to a dataset."""

from __future__ import annotations

from typing import Annotated

import typer

from tfrkit.cli.change_options import JSON_HELP, PLACE_HELP, Changing, print_changed, sum_up
from tfrkit.cli.exit_codes import ExitCode

HELP = f"""Add the records of other files to a dataset.

\b
  tfr append data/ monday.tfrecord --split train -o larger/
  tfr append data/ 'new/*.tfrecord' --split train --in-place
  tfr append data.tfrecord more.tfrecord -o all.tfrecord

Each new file becomes a shard at the end of a split, compressed like the others; its records keep their bytes.
Shards named x-00000-of-00005 are renamed to x-00000-of-00006, so that the set is complete for every reader; a
split that is one file without a number stays one file, which grows. --split is required if there is more than
one. New records have to fit the dataset: the same features of the same kinds, the same classes. Unchanged shards
are not read, so damage in them is not found: tfr verify.

{PLACE_HELP}

{JSON_HELP}
"""

Dataset = Annotated[
    str,
    typer.Argument(metavar="DATASET", help="A file, a folder or a quoted glob.", show_default=False),
]
New = Annotated[
    list[str],
    typer.Argument(metavar="NEW...", help="Files, folders or quoted globs to add.", show_default=False),
]
Split = Annotated[str | None, typer.Option("--split", metavar="NAME", help="The split to add to.", show_default=False)]


def run(dataset: Dataset, new: New, split: Split = None, *, how: Changing) -> int:
    """Append, and print what was added."""
    from tfrkit.ops.edit.append import append

    made = append(dataset, new, split=split, **how.arguments())
    print_changed(made, how.format, verdict=sum_up(made, [dataset]))
    return ExitCode.DONE
