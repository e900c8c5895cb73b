"""Run the `tfr` command in this process, built once: start-up would dominate many calls."""

from __future__ import annotations

import functools
import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ran:
    """Exit code and output of a command."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


@functools.cache
def get_group() -> Any:
    """Return the `tfr` command with all its subcommands."""
    import typer.main

    from tfrkit.cli.main import make_app

    return typer.main.get_command(make_app())


def find_commands() -> dict[str, Any]:
    """Return every command except groups, by full name: "count", "export images"."""
    return _find_below(get_group(), ())


def run_command(arguments: list[str]) -> Ran:
    """Run `tfr` with these arguments and capture its output."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        try:
            get_group().main(arguments, prog_name="tfr")
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
    texts = []
    for stream in streams:
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8", "backslashreplace"))
    return Ran(code, *texts)


def _find_below(group: Any, path: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        here = (*path, name)
        found |= _find_below(command, here) if hasattr(command, "commands") else {" ".join(here): command}
    return found
