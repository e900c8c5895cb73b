"""`tfr shuffle`: all records in a random order."""

from __future__ import annotations

from typing import Annotated

import typer

from tfrkit.cli.options import Output, Paths
from tfrkit.cli.reshape_options import JSON_HELP, Rewriting, Seed, Shards, ShardSize, run_reshape

HELP = f"""Write all records in a random order, within a bound of memory.

\b
  tfr shuffle 'in/*' -o out/ --seed 3
  tfr shuffle big.tfrecord -o mixed.tfrecord --memory 512MB

The whole dataset is mixed, not a window of it: the order is that of Dataset.shuffle with the same seed, whatever
the memory. Records of a split stay in it. What does not fit into memory is put down once beside the output, so
that everything is read and written in long runs. Bytes of records do not change.

{JSON_HELP}
"""

Memory = Annotated[str, typer.Option("--memory", metavar="SIZE", help="About how much memory may be used, from 64MiB.")]


def run(
    paths: Paths,
    output: Output,
    memory: Memory = "1GB",
    seed: Seed = 0,
    shards: Shards = None,
    shard_size: ShardSize = None,
    *,
    how: Rewriting,
) -> int:
    """Shuffle, and print what was written."""
    from tfrkit.ops.reshape.shuffle import shuffle

    return run_reshape(shuffle, paths, output, seed=seed, memory=memory, shards=shards, shard_size=shard_size, how=how)
