"""`tfr build SOURCE PATH -o OUT`: build a dataset from files, one sub-command per source."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import typer

from tfrkit.cli import build_options as opt
from tfrkit.cli.build_report import print_report
from tfrkit.cli.build_sources import SOURCES
from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.groups import Commands
from tfrkit.cli.hints import read_flags
from tfrkit.cli.options import spread_groups
from tfrkit.cli.output import print_json, print_line, say

HELP = """Build a dataset from images, tables or arrays.

\b
  tfr build class-folders flowers/ -o flowers_tfr/ --split train=.8,val=.1,test=.1 --stratify
  tfr build file-names data/ -o fruit.tfrecord --label '^(?P<class>[a-z]+)'
  tfr build SOURCE --help            what a source reads and writes

Labels, splits and problems are known before anything is written. The same inputs and options give the
same bytes, with any number of --jobs. After an interruption, the same command resumes. Exit code 1 if
inputs were left out (--on-bad skip) or a --dry-run found problems.

JSON: out, source, found, written, skipped, skipped_by_reason, ignored, nbytes_in, nbytes_out, seconds, seed,
splits (records, shards, nbytes), counts, notes; with --dry-run also dry_run and problems (key, reason, blocking).
"""


def make_build_app(guard: Callable[[Callable[..., int]], Callable[..., None]], only: str | None = None) -> typer.Typer:
    """Make the group of sub-commands, or of the one called `only`; a source's own options precede the shared ones."""
    app = typer.Typer(name="build", cls=Commands, help=HELP, no_args_is_help=True, rich_markup_mode=None)
    named = {source.__name__.replace("_", "-"): source for source in SOURCES}
    for name in [only] if only in named else list(named):
        app.command(name, help=named[name].__doc__)(guard(make_command(named[name])))
    return app


def make_command(source: Callable[..., Any]) -> Callable[..., int]:
    """Make a command with the options of a source, then the shared options."""
    own = inspect.signature(source, eval_str=True)
    building = inspect.Parameter("building", inspect.Parameter.KEYWORD_ONLY, annotation=opt.Building)

    def run(*, building: opt.Building, **given: Any) -> int:
        from tfrkit.build.run import build

        if building.clean:
            return clean(building.out, building.format)
        try:
            report = build(make_source(source, given), **building.arguments())
        except KeyboardInterrupt:
            say("\ninterrupted; the same command resumes")
            raise
        flags = read_flags(inspect.signature(spread_groups(run)).parameters.values())
        print_report(report, building.format, flags)
        return ExitCode.DONE if report.ok else ExitCode.FOUND

    run.__signature__ = own.replace(parameters=[*own.parameters.values(), building])  # type: ignore[attr-defined]
    return run


def clean(out: str, format: str) -> int:
    """Remove what an interrupted build left, and print what that was."""
    from tfrkit.build.clean import clean_build
    from tfrkit.outputs.target import Target
    from tfrkit.storage.resolve import show_address

    target = Target(show_address(out))
    removed = clean_build(target)
    if format == "json":
        print_json({"out": target.out, "removed": removed})
    else:
        print_line(f"{target.out}: " + ("removed " + ", ".join(removed) if removed else "nothing to remove"))
    return ExitCode.DONE


def make_source(source: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Make the source that a function describes; see `build_sources`."""
    from tfrkit import sources

    made = source(**given)
    if made is not None:
        return made
    if "images" in given:
        given["images"] = given["images"].make()
    return getattr(sources, source.__name__)(given.pop("path"), **given)
