"""The `tfr` command: its subcommands, and the exit code and message of each error."""

from __future__ import annotations

import errno
import functools
import importlib
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from tfrkit._version import VERSION
from tfrkit.cli.endings import Terminated, raise_when_asked_to_end, remove_temporaries
from tfrkit.cli.exit_codes import ExitCode, code_of_error, list_codes
from tfrkit.cli.groups import Commands
from tfrkit.cli.hints import Flag, explain, read_flags
from tfrkit.cli.options import Json, Quiet, spread_groups
from tfrkit.cli.output import get_verdict, print_error, say
from tfrkit.cli.streams import prepare_streams
from tfrkit.errors import OtherPartsError, TfrkitError, TfrkitWarning, in_one_line

HELP = f"""Build, check, reshape and query TFRecord files, without TensorFlow.

\b
  tfr build class-folders photos/ -o out/    a dataset from a folder for each class
  tfr info train.tfrecord                    its contents, detected from the bytes
  tfr verify data/                           every checksum, every record

Exit codes: {list_codes(ExitCode.FAILED)}.
"""


# In the order of the help.
NAMES = (
    *("info", "stats", "head", "tail", "cat", "sample", "count", "schema", "verify", "repair", "sheet", "view"),
    *("split", "shuffle", "merge", "reshard", "convert", "edit", "append", "dedupe"),
    *("sql", "diff", "index", "bench", "run", "completion"),
)


# Commands for local files only.
_LOCAL = ("bench", "run", "completion")


def print_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        print(f"tfrkit {VERSION}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
]


def make_app(only: str | None = None, source: str | None = None) -> typer.Typer:
    """Make the application with all subcommands, or with the command `only`; `source` limits `build` to one source."""
    app = typer.Typer(
        name="tfr",
        cls=Commands,
        help=HELP,
        no_args_is_help=True,
        # Typer's own completion edits the start files of the shell; `tfr completion` prints a script.
        add_completion=False,
        # Plain help loads in a third of the time and is the same in a pipe, a log and the manual.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )

    @app.callback()
    def start(version: Version = False) -> None:
        pass

    if only in (None, "build"):
        from tfrkit.cli.build import make_build_app

        app.add_typer(make_build_app(guard, source), name="build")
    for name in NAMES if only is None else {only}.intersection(NAMES):
        # Each command is a module, which is imported only if it may run: start-up stays fast.
        command = importlib.import_module(f"tfrkit.cli.{name}")
        app.command(name, help=command.HELP, context_settings=getattr(command, "CONTEXT", None))(
            guard(command.run, reads_remote=name not in _LOCAL)
        )
    if only in (None, "export"):
        from tfrkit.cli.export import make_export_app

        app.add_typer(make_export_app(guard), name="export")
    return app


def guard(run: Callable[..., int], *, reads_remote: bool = True) -> Callable[..., None]:
    """Wrap a command so that every outcome has its exit code and at most one message.

    A command that reads remote addresses gets the options for them.
    """
    run = spread_groups(run, reads_remote=reads_remote)
    asked = inspect.signature(run)
    flags = read_flags(asked.parameters.values())

    @functools.wraps(run)
    def call(quiet: bool = False, json: bool = False, **given: Any) -> None:
        raise typer.Exit(run_guarded(lambda: run(**(choose_json(given) if json else given)), flags))

    # Every command has --quiet, handled by its callback; a command with --format also has --json.
    added: dict[str, Any] = {"json": Json, "quiet": Quiet} if "format" in asked.parameters else {"quiet": Quiet}
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
        for name, annotation in added.items()
    ]
    call.__signature__ = asked.replace(parameters=[*asked.parameters.values(), *options])  # type: ignore[attr-defined]
    call.__annotations__ = {name: parameter.annotation for name, parameter in asked.parameters.items()} | added
    return call


def choose_json(options: Mapping[str, Any]) -> dict[str, Any]:
    """Replace --json by --format json; raise if another format was given."""
    if options["format"] not in ("text", "json"):
        raise ValueError(f"--json is --format json, got --format {options['format']} with it")
    return {**options, "format": "json"}


def run_guarded(run: Callable[[], int], flags: Mapping[str, Flag]) -> int:
    """Run a command and turn every error into an exit code; hints name the options of the command."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("once", TfrkitWarning)
            warnings.showwarning = functools.partial(show_warning, warnings.showwarning)
            code = run()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader closed the pipe: `tfr head x | head -1` is not a failure.
        mute_stdout()
        return get_verdict()
    except (KeyboardInterrupt, Terminated) as end:
        return leave(end)
    except OtherPartsError as done:
        say(explain(done, flags))
        return ExitCode.DONE
    except (TfrkitError, OSError, ImportError, ValueError, MemoryError) as error:
        if (interrupt := find_interrupt(error)) is not None:
            return leave(interrupt)
        show_trace_if_asked()
        print_error(f"tfr: {describe_error(error, flags)}")
        return code_of_error(error)
    except Exception as error:  # noqa: BLE001  (a bug: its trace is needed, but Python's exit code 1 means "found something")
        if (interrupt := find_interrupt(error)) is not None:
            return leave(interrupt)
        # Python has no class of its own for this one.
        if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
            print_error("tfr: the system does not allow another thread\n  raise the limit of processes: ulimit -u")
        else:
            import traceback

            traceback.print_exc()
        return code_of_error(error)


def leave(end: BaseException) -> int:
    """Clean up after Ctrl-C or SIGTERM; return the exit code."""
    remove_temporaries()
    return code_of_error(end)


def find_interrupt(error: BaseException) -> BaseException | None:
    """Return the Ctrl-C or SIGTERM that Python 3.11 turned into this error."""
    # While a module makes its classes, it becomes a RuntimeError.
    if isinstance(error.__cause__, (KeyboardInterrupt, Terminated)):
        return error.__cause__
    # While shutil.rmtree closes a folder, it becomes the error of closing it again.
    found: BaseException | None = error
    while found is not None:
        is_closed = isinstance(found, OSError) and found.errno == errno.EBADF
        if is_closed and isinstance(found.__context__, (KeyboardInterrupt, Terminated)):
            return found.__context__
        found = found.__context__
    return None


def show_warning(show: Callable[..., None], message: Warning | str, category: type[Warning], *where: Any) -> None:
    """Print our warnings as notes on stderr, without the code line; show other warnings as usual."""
    if issubclass(category, TfrkitWarning):
        say(f"note: {message}")
    else:
        show(message, category, *where)


def describe_error(error: Exception, flags: Mapping[str, Flag]) -> str:
    """Return one clear message for an error that is not a bug."""
    if isinstance(error, OSError) and error.strerror:
        where = f" - at {error.filename}" if error.filename else ""
        return in_one_line(error.strerror.lower() + where)
    if isinstance(error, MemoryError):
        # Errors of NumPy and Arrow, which are subclasses, name an allocation; those of Python may have no text.
        is_ours = type(error) is MemoryError and error.args
        return str(error) if is_ours else ", ".join(filter(None, ["out of memory", str(error)]))
    return explain(error, flags)


def show_trace_if_asked() -> None:
    """Print the traceback if TFR_DEBUG is set."""
    if os.environ.get("TFR_DEBUG", "") not in ("", "0"):
        import traceback

        traceback.print_exc()


def mute_stdout() -> None:
    """Redirect stdout to /dev/null, so that the interpreter's last flush does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def main() -> None:
    """Run `tfr`: the entry point."""
    prepare_streams()
    asked = sys.argv[1] if len(sys.argv) > 1 else None
    try:
        app = make_app(asked if asked in (*NAMES, "build", "export") else None, (*sys.argv[2:3], None)[0])
        raise_when_asked_to_end()
        app(prog_name="tfr")
    except (KeyboardInterrupt, Terminated) as end:
        sys.exit(leave(end))
