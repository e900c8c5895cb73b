"""`tfr reshard`: distribute the same records over other files."""

from __future__ import annotations

from tfrkit.cli.options import OnCluster, Output, Paths
from tfrkit.cli.reshape_options import JSON_HELP, Rewriting, Shards, ShardSize, run_reshape

HELP = f"""Write the same records into another number of files.

\b
  tfr reshard data/ -o out/ --shard-size 200MB
  tfr reshard 'train-*' -o out/ --shards 16

Records keep their order, bytes and split (train, test, from sidecars or file names).
Files are called name-split.tfrecord-00000-of-00016, with an index, class names and TFDS's metadata. Reads
everything once and, without an index, the headers first.

{JSON_HELP}
"""


def run(
    paths: Paths, output: Output, shards: Shards = None, shard_size: ShardSize = None, *, how: Rewriting, on: OnCluster
) -> int:
    """Reshard, and print what was written."""
    from tfrkit.ops.reshape.reshard import reshard

    return run_reshape(reshard, paths, output, shards=shards, shard_size=shard_size, how=how, on=on)
