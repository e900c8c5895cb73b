"""`tfr stats`: statistics of a dataset, and the report of them as a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from tfrkit._types import OnError
from tfrkit.container.shards import find_shards
from tfrkit.errors import Step, misuse
from tfrkit.ops.stats.stats import Stats, collect_stats
from tfrkit.ops.verify.verify import verify
from tfrkit.outputs.target import require_output
from tfrkit.passes.shard_tasks import VerbEngine
from tfrkit.progress import Progress
from tfrkit.storage.resolve import Address, expand_home
from tfrkit.storage.text_files import write_text
from tfrkit.view.page import print_page
from tfrkit.view.report import make_report


def stats(
    address: Address | Iterable[Address],
    *,
    html: str | os.PathLike[str] | None = None,
    deep: bool = False,
    features: Sequence[str] | None = None,
    jobs: int | None = None,
    on_error: OnError = "raise",
    force: bool = False,
    engine: VerbEngine = "local",
    engine_address: str | None = None,
    progress: Progress | None = None,
) -> Stats:
    """Read every record once and compute the statistics of every feature.

    Memory is bounded for any number of records: about 1 MB per feature and split. The numbers do not depend on
    `jobs`. Counts, ranges, means and deviations are exact. Quantiles, histograms, the number of distinct values and
    the most frequent values are exact up to 4096 distinct values; beyond that they are marked as estimates.

    Args:
        address: Path, glob, folder, or a list of these.
        html: A file to write a self-contained report to: the statistics page of the viewer, with pictures.
        deep: Also run the deep check of `verify`, and show copies and leaks between splits in the report. Cost: every
            image is decoded.
        features: Names of the features to read; default all.
        jobs: Number of threads; default one per core.
        on_error: With "skip", damage and records that are not Examples are left out and listed in `findings`.
        force: Replace an existing report.
        engine: With "ray" or "dask", workers of a cluster read, each a shard at a time; see `build`. The report is
            written by this process.
        engine_address: Address of the cluster.
        progress: Progress callback.

    Example:
        >>> [feature["name"] for feature in stats("train-*.tfrecord").features]
        ['image', 'label']
    """
    paths = find_shards(address)
    target = None if html is None else expand_home(html)
    if deep and target is None:
        raise misuse("deep is for a report", Step("write one: {html}", html="report.html"))
    if target is not None:
        require_output(target, sources=paths, force=force)
    found = collect_stats(
        paths,
        features=features,
        jobs=jobs,
        on_error=on_error,
        progress=progress,
        has_picks=target is not None,
        engine=engine,
        engine_address=engine_address,
    )
    if target is not None:
        checked = None
        if deep:
            checked = verify(
                paths, deep=True, jobs=jobs, engine=engine, engine_address=engine_address, progress=progress
            )
        write_text(target, print_page(make_report(found, checked)))
        found.result.html = target
    return found.result
