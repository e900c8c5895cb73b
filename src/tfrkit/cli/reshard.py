"""`tfr reshard`: the same records in other files."""

from __future__ import annotations

from tfrkit.cli.options import CompressionOption, Force, FormatOption, Incomplete, Jobs, Output, Paths
from tfrkit.cli.progress import watch_on_terminal
from tfrkit.cli.reshape_options import JSON_HELP, LevelOption, Shards, ShardSize, run_reshape, to_level

HELP = f"""Write the same records into fewer, more, or evenly sized files.

\b
  tfr reshard data/ -o out/ --shard-size 200MB
  tfr reshard 'train-*' -o out/ --shards 16

Records keep their order and their bytes; those of a split (train, test, as the names of the files say) stay in
it. Files are called name-split.tfrecord-00000-of-00016, with an index, class names and TFDS's metadata. Reads
everything once and, without an index, the headers before.

{JSON_HELP}
"""


def run(
    paths: Paths,
    output: Output,
    shards: Shards = None,
    shard_size: ShardSize = None,
    compression: CompressionOption = None,
    level: LevelOption = "default",
    force: Force = False,
    incomplete: Incomplete = False,
    jobs: Jobs = None,
    format: FormatOption = "text",
) -> int:
    """Reshard, and print what was written."""
    from tfrkit.ops.reshape.reshard import reshard

    return run_reshape(
        lambda: reshard(
            paths,
            output,
            shards=shards,
            shard_size=shard_size,
            compression=compression,
            level=to_level(level),
            force=force,
            incomplete=incomplete,
            jobs=jobs,
            progress=watch_on_terminal(),
        ),
        format,
    )
