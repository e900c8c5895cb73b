"""`tfr convert`: change compression, or drop, rename, convert and renumber features."""

from __future__ import annotations

from typing import Annotated

import typer

from tfrkit.cli.build_options import parse_pairs
from tfrkit.cli.options import OnCluster, Output, Paths, split_names
from tfrkit.cli.reshape_options import JSON_HELP, Rewriting, run_reshape

HELP = f"""Rewrite files with another compression or other features.

\b
  tfr convert in.tfrecord -o out.tfrecord --compression gzip
  tfr convert data/ -o small/ --drop image --rename lable=label --cast label=int64
  tfr convert data/ -o renumbered/ --classes label=all-names.txt

One file goes to a file, several into a folder under their own names. Without edits the bytes of records do not
change. With edits, the other features are copied unchanged; --cast turns numbers into text (bytes) and
back, and refuses a value that does not fit the new kind. --classes gives every class the id that its name has in the
file, so that datasets with different class lists can be put together; ids without names get them. gzip and zlib are
compressed on all cores, as one stream that TensorFlow reads; it does not read xz and zstd.

{JSON_HELP}
"""

Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="FEATURE", help="Drop a feature; may be repeated.", show_default=False),
]
Keep = Annotated[
    list[str] | None,
    typer.Option("--keep", metavar="FEATURE", help="Keep only this feature; may be repeated.", show_default=False),
]
Rename = Annotated[
    list[str] | None,
    typer.Option("--rename", metavar="OLD=NEW,...", help="Rename features.", show_default=False),
]
Cast = Annotated[
    list[str] | None,
    typer.Option("--cast", metavar="FEATURE=KIND,...", help="Kinds are bytes, float, int64.", show_default=False),
]

ClassFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--classes",
        metavar="FEATURE=FILE,...",
        help="New class names in the order of their ids, or a label map .pbtxt.",
        show_default=False,
    ),
]


def run(
    paths: Paths,
    output: Output,
    drop: Drop = None,
    keep: Keep = None,
    rename: Rename = None,
    cast: Cast = None,
    classes: ClassFiles = None,
    *,
    how: Rewriting,
    on: OnCluster,
) -> int:
    """Convert, and print a summary."""
    from tfrkit.ops.reshape.convert import convert

    return run_reshape(
        convert,
        paths,
        output,
        drop=split_names(drop),
        keep=split_names(keep) if keep else None,
        rename=parse_pairs(rename, "--rename"),
        cast=parse_pairs(cast, "--cast"),
        classes=parse_pairs(classes, "--classes"),
        how=how,
        on=on,
    )
