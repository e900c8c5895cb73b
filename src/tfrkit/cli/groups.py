"""Groups of commands: an unknown name gets the names that there are."""

from __future__ import annotations

import os
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperGroup

# Typer may have its own copy of click, from which the errors then come.
UsageError: Any = typer.BadParameter.__bases__[0]
_POINTERS = {
    "help": "help: tfr -h    of a command: tfr COMMAND -h",
    "version": "version: tfr --version",
}
# Words of other tools for these commands.
_OTHER_WORDS = {
    "show": "info head view",
    "print": "head cat",
    "dump": "cat export",
    "inspect": "info head",
    "ls": "info count",
    "list": "info count",
    "describe": "info stats",
    "validate": "verify",
    "check": "verify",
    "fsck": "verify",
    "fix": "repair",
    "query": "sql",
    "select": "sql",
    "filter": "sql edit",
    "where": "sql edit",
    "delete": "edit",
    "rename": "convert",
    "compress": "convert",
    "decompress": "convert",
    "concat": "merge append",
    "join": "merge sql",
    "create": "build",
    "make": "build",
    "write": "build",
    "import": "build",
    "compare": "diff",
    "browse": "view",
    "serve": "view",
    "plot": "sheet view",
    "benchmark": "bench",
}


class Commands(TyperGroup):
    """The commands of `tfr`, or the kinds of `tfr build` and `tfr export`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name."""
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:
            hint = self._advise(ctx, args[0])
            # Without a hint, Typer's own message, which may suggest a similar name.
            error.message = f"No such command {args[0]!r}.\n  {hint}" if hint else error.message
            raise

    def _advise(self, ctx: Any, name: str) -> str:
        if ctx.parent is None:
            if name in _OTHER_WORDS:
                return "here it is " + " or ".join(f"tfr {word}" for word in _OTHER_WORDS[name].split())
            return _POINTERS.get(name, "")
        kinds = list(self.commands)
        if get_close_matches(name, kinds):
            return ""
        listed = f"kinds: {', '.join(kinds)}"
        is_path = "/" in name or os.path.exists(name)
        return f"name the kind first: {ctx.command_path} {kinds[0]} {name}\n  {listed}" if is_path else listed
