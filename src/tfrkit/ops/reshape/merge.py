"""Merge several files into one."""

from __future__ import annotations

import os
from collections.abc import Iterable

from tfrkit.batches.survey import note_kinds
from tfrkit.container.codecs import CompressionWord, Level, read_compression
from tfrkit.ops.reshape.outputs import Outputs, OutShard
from tfrkit.ops.reshape.rewrite import STDOUT, Rewrite, Rewritten, WriteOptions
from tfrkit.outputs.shard import Tally
from tfrkit.outputs.target import Target
from tfrkit.passes.frame_sources import deal_frames, open_sources
from tfrkit.progress import Progress, Quiet
from tfrkit.sidecars.carry import collect_carried
from tfrkit.storage.resolve import Address, show_address


def merge(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    *,
    compression: CompressionWord | None = None,
    level: Level = "default",
    force: bool = False,
    incomplete: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Rewritten:
    """Copy all records byte for byte into one file, in the order of the files.

    The files may differ in compression and in the kind of their records: records are not parsed.

    Args:
        address: Path, glob, folder, or a list of these; - is standard input.
        output: The file to write; - is standard output.
        compression: Compression of the new file; default: by its suffix, else that of the sources, none if they differ.
        level: "default", "fast", "small", or a level number of the codec.
        force: Replace existing files.
        incomplete: Continue if shards of a set are missing.
        jobs: Compression threads.
        progress: Progress callback.
    """
    options = WriteOptions(read_compression(compression), level, force, jobs, progress or Quiet())
    path = show_address(output)
    with open_sources(address, incomplete=incomplete) as sources:
        carried = collect_carried(sources.sidecars)
        notes = [] if sources.is_pipe else note_kinds(sources.paths)
        job = Rewrite("merge", sources, carried, options, {}, notes=notes)
        sources.begin(options.progress)

        def feed(outputs: Outputs) -> Tally:
            return deal_frames(sources, None, 1, outputs.put, options.progress)

        if path == STDOUT:
            return job.run_to_stdout(feed)
        target = Target(path, as_file=True)
        return job.run(target, target.name, [OutShard(os.path.basename(path))], feed)
