"""`tfr build SOURCE PATH -o OUT`: a dataset from files, one sub-command per source."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import typer

from tfrkit.cli import build_options as opt
from tfrkit.cli.build_report import print_report
from tfrkit.cli.build_sources import SOURCES
from tfrkit.cli.exits import ExitCode
from tfrkit.cli.hints import Flag, read_flags
from tfrkit.cli.output import say
from tfrkit.cli.progress import Progress

HELP = """Build a dataset from images, tables or arrays.

\b
  tfr build class-folders flowers/ -o flowers_tfr/ --split train=.8,val=.1,test=.1 --stratify
  tfr build file-names data/ -o fruit.tfrecord --label '^(?P<class>[a-z]+)'
  tfr build SOURCE --help            what a source reads and writes

Labels, splits and problems are settled before the first byte is written. The same inputs and options give the
same bytes, with any number of --jobs. Stopped half-way, the same command finishes the rest. Exit code 1 where
inputs were left out (--on-bad skip) or a --dry-run found problems.

JSON: out, source, found, written, skipped, skipped_by_reason, ignored, nbytes_in, nbytes_out, seconds, seed,
splits (records, shards, nbytes), counts, notes; with --dry-run also dry_run and problems (key, reason, blocking).
"""


def run_build(
    make_source: Callable[[], Any],
    flags: Mapping[str, Flag],
    out: opt.OutOption,
    split: opt.SplitOption = None,
    shards: opt.ShardsOption = None,
    shard_size: opt.ShardSizeOption = None,
    seed: opt.SeedOption = 0,
    order: opt.OrderOption = None,
    stratify: opt.StratifyOption = False,
    group: opt.GroupOption = None,
    compression: opt.CompressionOption = None,
    keys: opt.KeysOption = None,
    on_bad: opt.OnBadOption = "fail",
    jobs: opt.JobsOption = None,
    overwrite: opt.OverwriteOption = False,
    dry_run: opt.DryRunOption = False,
    progress: opt.ProgressOption = "auto",
    format: opt.ReportFormat = "text",
) -> int:
    """Build, and print the report."""
    from tfrkit.build.run import build

    compressing: Any = compression
    try:
        report = build(
            make_source(),
            out,
            splits=opt.parse_splits(split),
            shards=opt.parse_shards(shards),
            shard_size=shard_size,
            seed=seed,
            order=order,
            stratify=stratify,
            group=group,
            compression=compressing,
            keys=opt.parse_pairs(keys, "--keys"),
            on_bad=on_bad,
            jobs=jobs,
            overwrite=overwrite,
            dry_run=dry_run,
            progress=Progress(progress),
        )
    except KeyboardInterrupt:
        say("\ninterrupted; the same command goes on from here")
        raise
    print_report(report, format, flags)
    return ExitCode.DONE if report.ok else ExitCode.FOUND


def make_build_app(guard: Callable[[Callable[..., int]], Callable[..., None]]) -> typer.Typer:
    """The group of sub-commands; each source's own options come first, then those all share."""
    app = typer.Typer(name="build", help=HELP, no_args_is_help=True, rich_markup_mode=None)
    for name, source in SOURCES.items():
        app.command(name, help=source.HELP)(guard(make_command(source.make)))
    return app


def make_command(make: Callable[..., Any]) -> Callable[..., int]:
    """A command with the options of a source and the common ones.

    Typer reads a function's signature, so it is put together here: typing twenty options once per source would let them
    drift apart.
    """
    own = inspect.signature(make, eval_str=True).parameters
    shared = dict(inspect.signature(run_build, eval_str=True).parameters)
    for name in ("make_source", "flags"):
        del shared[name]
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in [*own.values(), *shared.values()]
    ]
    flags = read_flags(parameters)

    def run(**arguments: Any) -> int:
        mine = {name: arguments[name] for name in own}
        return run_build(lambda: make(**mine), flags, **{name: arguments[name] for name in shared})

    run.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
