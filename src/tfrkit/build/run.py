"""`build` builds a whole dataset from a source in one call."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from tfrkit._familiar import refuse_arguments

if TYPE_CHECKING:
    from tfrkit.build.report import Report
    from tfrkit.build.splits import SplitSize
    from tfrkit.build.task import OnBad
    from tfrkit.codec.coerce import Floats
    from tfrkit.container.codecs import CompressionWord, Level
    from tfrkit.engines.base import EngineName
    from tfrkit.features.schema import Schema
    from tfrkit.progress import Progress
    from tfrkit.sources.base import RecordOrder, Source

    class SupportsArrowStream(Protocol):
        """A table of pandas, polars, pyarrow, DuckDB or any other library that supports Arrow's stream interface."""

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


_SPLITS = 'splits by ratio or number: tfrkit.build(source, out, splits={"train": 0.8, "test": 0.2})'


@refuse_arguments("build", **dict.fromkeys(("split", "train", "test", "val", "test_size", "train_size"), _SPLITS))
def build(
    source: Source | Iterable[Any] | SupportsArrowStream,
    out: str | os.PathLike[str],
    *,
    splits: Mapping[str, SplitSize] | None = None,
    shards: int | Mapping[str, int] | None = None,
    shard_size: int | str | None = None,
    seed: int = 0,
    order: RecordOrder | None = None,
    stratify: bool = False,
    group: str | None = None,
    compression: CompressionWord | None = None,
    level: Level = "default",
    keys: Mapping[str, str] | None = None,
    on_bad: OnBad = "fail",
    jobs: int | None = None,
    force: bool = False,
    engine: EngineName = "local",
    engine_address: str | None = None,
    part: str | None = None,
    dry_run: bool = False,
    schema: Schema | Mapping[str, Any] | None = None,
    floats: Floats = "ask",
    progress: Progress | None = None,
    overwrite: bool | None = None,
) -> Report:
    """Build a dataset folder, or one file, from a source, from any iterable of rows, or from a table in memory.

    The same inputs and options give the same bytes, whatever the number of jobs. An interrupted build resumes when it
    is called again. No partial dataset ever appears: shards are moved into place when all of them are written.

    Args:
        source: One of `tfr.sources`; an iterable of rows as `Writer.write` takes them; or a table: a DataFrame of
            pandas or polars, a table of pyarrow, anything with Arrow's stream interface, or a dict of columns. A
            missing value of a table is left out of its record: None, and in pandas also NaN, which means the same
            there. NaN of polars and pyarrow is stored, and so is NaN in a list of floats of any library. Dates and
            decimals need ``tfr.sources.table(df, types={"when": "text"})``. An index becomes a column if it has a
            name, else it is left out. A dict with an array of several dimensions is read as `tfr.sources.arrays`.
        out: A folder; or a name that ends in .tfrecord, for one file. Also an address of s3://, gs:// or az://.
        splits: Split names with a ratio (0.1), a count (500), the path of a list of names, or None for the rest. The
            remainder goes to "train".
        shards: Number of files of each split: a number, or a dict by split. Never more than the split has records.
        shard_size: Alternative to `shards`: approximate size of a file, such as 256_000_000 or "256MB". Default 256MiB.
        seed: Seed of the splits and of the order.
        order: "seeded" shuffles the records of each split, "source" keeps their order. By default folders of files
            and all splits are shuffled; arrays, tables and rows that are not split keep their order.
        stratify: Give every split the same share of each class.
        group: A regular expression; inputs with the same match in their names stay in one split.
        compression: "none", "gzip", "zlib", "xz" or "zstd"; by default taken from the suffix of a single file.
        level: As in `Writer`.
        keys: Features to rename, old names to new ones.
        on_bad: "fail" names every bad input and stops; "skip" leaves bad inputs out and lists them in the report.
        jobs: Number of worker processes; by default one per processor. On a cluster: at most this many tasks at a time.
        force: Replace existing files. The old dataset stays until the new one is complete.
        engine: What runs the work: "local" processes, or the workers of a "ray" or "dask" cluster. They need the
            same tfrkit, and see the inputs and `out` at the same paths, or in a store. The bytes are the same.
        engine_address: Address of the cluster, such as "auto" or "tcp://scheduler:8786"; by default the one that this
            process is connected to, or a new one on this machine.
        part: "0/4" makes the shards of the first of four parts, which a scheduler starts in any order, on machines that
            share a disk, or the store of `out`. The part that makes the last shard finishes the dataset; so does
            "finish".
        dry_run: Read everything and write nothing; problems are in the report.
        schema: Schema to check each row of an iterable or a table against. Other sources have their own.
        floats: For rows or a table: what to do with floats that float32 cannot represent, as in `Writer`.
        progress: Progress callback.
        overwrite: Deprecated name of `force`.

    Example:
        >>> rows = [{"x": i, "label": i % 2} for i in range(100)]
        >>> report = build(rows, "numbers/", splits={"test": 0.1}, seed=0)
        >>> report.written, report.splits["test"]["records"]
        (100, 10)
    """
    given = locals()
    # Imported here, because `import tfrkit` imports this module, and reading a dataset needs none of these modules.
    from dataclasses import fields

    from tfrkit.build.parts import carry_out_part
    from tfrkit.build.prepare import BuildOptions
    from tfrkit.build.session import carry_out, preview
    from tfrkit.codec.arrow_streams import is_table
    from tfrkit.container.codecs import read_compression
    from tfrkit.outputs.target import Target
    from tfrkit.progress import Quiet
    from tfrkit.sources import base
    from tfrkit.sources.arrays import Arrays
    from tfrkit.sources.iterable import Rows
    from tfrkit.sources.table import Table
    from tfrkit.storage.addresses import has_scheme
    from tfrkit.storage.resolve import show_address

    if overwrite is not None:
        warnings.warn("overwrite is deprecated, use force", DeprecationWarning, stacklevel=3)
        force = force or overwrite
    given |= {"compression": read_compression(compression), "keys": keys or {}, "force": force}
    options = BuildOptions(**{field.name: given[field.name] for field in fields(BuildOptions)})
    chosen: Any = source
    if not isinstance(chosen, base.Source):
        if schema is None and isinstance(chosen, Mapping) and any(getattr(x, "ndim", 1) > 1 for x in chosen.values()):
            chosen = Arrays(chosen, floats=floats)
        elif schema is None and is_table(chosen):
            chosen = Table(chosen, floats=floats)
        else:
            chosen = Rows(chosen, schema=schema, floats=floats)
    elif schema is not None:
        raise ValueError(f"schema is only for an iterable of rows, the source {chosen.kind!r} has its own")
    target = Target(show_address(out))
    run = preview if dry_run else carry_out if part is None else carry_out_part
    if has_scheme(target.out) and not dry_run:
        from tfrkit.build.store_parts import carry_out_part_in_store
        from tfrkit.build.store_session import carry_out_in_store

        run = carry_out_in_store if part is None else carry_out_part_in_store
    return run(chosen, target, options, progress or Quiet())
