"""`tfr merge`: several files as one."""

from __future__ import annotations

from tfrkit.cli.options import CompressionOption, Force, FormatOption, Incomplete, Jobs, Output, Paths
from tfrkit.cli.progress import watch_on_terminal
from tfrkit.cli.reshape_options import JSON_HELP, LevelOption, run_reshape, to_level

HELP = f"""Write the records of several files into one.

\b
  tfr merge a.tfrecord b.tfrecord -o both.tfrecord
  tfr merge 'train-*' -o - | ssh host 'cat > train.tfrecord'

Records keep their order and their bytes, and every checksum is compared. Files may be compressed in different
ways. Names of classes that all of them have beside them go with the new file. Needs no index, and writes one.

{JSON_HELP}
"""


def run(
    paths: Paths,
    output: Output,
    compression: CompressionOption = None,
    level: LevelOption = "default",
    force: Force = False,
    incomplete: Incomplete = False,
    jobs: Jobs = None,
    format: FormatOption = "text",
) -> int:
    """Merge, and print what was written."""
    from tfrkit.ops.reshape.merge import merge

    return run_reshape(
        lambda: merge(
            paths,
            output,
            compression=compression,
            level=to_level(level),
            force=force,
            incomplete=incomplete,
            jobs=jobs,
            progress=watch_on_terminal(),
        ),
        format,
    )
