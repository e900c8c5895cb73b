"""`tfr completion`: completion of commands and options in a shell."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.shells import Shell, make_script, read_verbs

HELP = """Print a script for completion with the Tab key.

\b
  source <(tfr completion bash)                                  # in ~/.bashrc
  source <(tfr completion zsh)                                   # in ~/.zshrc, after compinit
  tfr completion fish > ~/.config/fish/completions/tfr.fish

The wheel contains the same scripts and manual pages. They lie below share/ of the environment, where shells look by
themselves if it is the system's.
"""

ShellName = Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell.")]


def run(shell: ShellName) -> int:
    """Print the script."""
    import typer.main

    from tfrkit.cli.main import make_app

    sys.stdout.write(make_script(shell, read_verbs(typer.main.get_command(make_app()))))
    return ExitCode.DONE
