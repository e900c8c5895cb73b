"""`tfr merge`: merge several files into one."""

from __future__ import annotations

from tfrkit.cli.options import Output, Paths
from tfrkit.cli.reshape_options import JSON_HELP, Rewriting, run_reshape

HELP = f"""Write the records of several files into one.

\b
  tfr merge a.tfrecord b.tfrecord -o both.tfrecord
  tfr merge 'train-*' -o - | ssh host 'cat > train.tfrecord'

Records keep their order and their bytes, and every checksum is compared. Files may be compressed in different
ways. Class names that all of them share are written with the new file. Needs no index, and writes one.

{JSON_HELP}
"""


def run(paths: Paths, output: Output, how: Rewriting) -> int:
    """Merge, and print what was written."""
    from tfrkit.ops.reshape.merge import merge

    return run_reshape(merge, paths, output, how=how)
