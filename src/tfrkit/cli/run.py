"""`tfr run`: run an old script without TensorFlow."""

from __future__ import annotations

import os
import signal
from typing import Annotated

import typer

from tfrkit.cli.exit_codes import ExitCode

HELP = """Run an old TensorFlow script, unchanged, without TensorFlow.

\b
  tfr run generate_tfrecord.py --csv_input=train.csv --output_path=train.record
  tfr run convert.py data/ | tee log.txt

Runs the script as Python does, but import tensorflow, tensorflow.compat.v1, object_detection.utils and slim's
datasets.dataset_utils mean tfrkit.compat, even if TensorFlow is installed. Arguments after SCRIPT are the
script's; its stdin, stdout and working folder are those of the command. Covers the usual work with TFRecord
files: messages, writers, parsing, tf.data, input queues, flags. Training needs a framework.

Exit code: the script's own; 1 for an uncaught error, shown as Python shows it; 3 if it cannot run: no
script, a name that tfrkit.compat does not have, a module that is not installed.
"""

# Options after the script belong to the script, even --help.
CONTEXT = {"allow_interspersed_args": False}

Script = Annotated[str, typer.Argument(metavar="SCRIPT", help="The Python file to run.", show_default=False)]
Arguments = Annotated[
    list[str] | None, typer.Argument(metavar="[ARGUMENT]...", help="Arguments of the script.", show_default=False)
]


def run(script: Script, arguments: Arguments = None) -> int:
    """Run the script, which may exit by itself."""
    from tfrkit.compat.run_script import run_script

    leave_children_alone()
    run_script(script, arguments or [])
    return ExitCode.DONE


def leave_children_alone() -> None:
    """Restore Python's SIGTERM handling in processes that the script forks, e.g. a pool of workers."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
