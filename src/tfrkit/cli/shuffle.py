"""`tfr shuffle`: write all records in a random order."""

from __future__ import annotations

from typing import Annotated

import typer

from tfrkit._limits import DEFAULT_SHUFFLE_MEMORY
from tfrkit.cli.options import OnCluster, Output, Paths
from tfrkit.cli.reshape_options import JSON_HELP, Rewriting, Seed, Shards, ShardSize, run_reshape

HELP = f"""Write all records in a random order, with bounded memory.

\b
  tfr shuffle 'in/*' -o out/ --seed 3
  tfr shuffle big.tfrecord -o mixed.tfrecord --memory 512MB

The whole dataset is shuffled, not a window: the order is that of Dataset.shuffle with the same seed, whatever
the memory. Records stay in their split. Data that does not fit into memory is written once next to the output, so
that everything is read and written in long runs. Bytes of records do not change.

{JSON_HELP}
"""

Memory = Annotated[str, typer.Option("--memory", metavar="SIZE", help="Approximate memory limit, from 64MB.")]


def run(
    paths: Paths,
    output: Output,
    memory: Memory = DEFAULT_SHUFFLE_MEMORY,
    seed: Seed = 0,
    shards: Shards = None,
    shard_size: ShardSize = None,
    *,
    how: Rewriting,
    on: OnCluster,
) -> int:
    """Shuffle, and print a summary."""
    from tfrkit.ops.reshape.shuffle import shuffle

    return run_reshape(
        shuffle, paths, output, seed=seed, memory=memory, shards=shards, shard_size=shard_size, how=how, on=on
    )
