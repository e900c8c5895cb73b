"""`tfr split`: split records into train, validation and test files."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tfrkit.cli.build_options import parse_splits
from tfrkit.cli.options import Output, Paths
from tfrkit.cli.reshape_options import JSON_HELP, Rewriting, Seed, Shards, ShardSize, run_reshape

HELP = f"""Split records into train, validation and test files.

\b
  tfr split big.tfrecord -o out/ --split train=.8,test=.2
  tfr split data/ -o out/ --split train=rest,test=500 --stratify label --group patient --seed 0

Sizes are ratios (.8 or 80%), numbers of records (500) or "rest". The same file, sizes and seed give the same
parts as Dataset.split. With --stratify every part holds the values of a feature in the same
shares, with --group equal values of a feature stay in one part, with --hash-by a feature alone decides, so that
records added later do not move old ones. Within a part records keep their order; their bytes do not change.

{JSON_HELP}
"""

Sizes = Annotated[
    list[str],
    typer.Option("--split", metavar="NAME=SIZE,...", help="Name and size of each part.", show_default=False),
]
Stratify = Annotated[
    str | None, typer.Option("--stratify", metavar="FEATURE", help="Keep the shares of its values in every part.")
]
GroupBy = Annotated[
    str | None, typer.Option("--group", metavar="FEATURE", help="Keep records with equal values in one part.")
]
HashBy = Annotated[str | None, typer.Option("--hash-by", metavar="FEATURE", help="Assign parts by its hash alone.")]


def run(
    paths: Paths,
    output: Output,
    split: Sizes,
    stratify: Stratify = None,
    group: GroupBy = None,
    hash_by: HashBy = None,
    seed: Seed = 0,
    shards: Shards = None,
    shard_size: ShardSize = None,
    *,
    how: Rewriting,
) -> int:
    """Split, and print a summary."""
    from tfrkit.ops.reshape.split import split as split_files

    return run_reshape(
        split_files,
        paths,
        output,
        to_parts(split),
        seed=seed,
        stratify=stratify,
        group=group,
        hash_by=hash_by,
        shards=shards,
        shard_size=shard_size,
        how=how,
    )


def to_parts(texts: list[str]) -> dict[str, Any]:
    """Parse parts from `train=.8,test=.2`; lists of names, which `build` accepts, are refused."""
    parts = parse_splits(texts) or {}
    for name, size in parts.items():
        if isinstance(size, str):
            raise ValueError(f"--split expected a ratio, a number of records or rest for {name!r}, got {size!r}")
    return parts
