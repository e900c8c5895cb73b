"""Completion scripts and manual pages: every option of every command is in them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import typer.main

from tfrkit.cli.main import make_app
from tfrkit.cli.shells import Verb, make_script, read_verbs

SHARE = Path(__file__).parents[3] / "share"
VERBS = read_verbs(typer.main.get_command(make_app()))


def list_help_options(verb: Verb) -> set[str]:
    """The options that `--help` prints."""
    command = typer.main.get_command(make_app())
    import click

    context = click.Context(command, info_name="tfr")
    for word in verb.words:
        command = command.commands[word]  # type: ignore[attr-defined]
        context = click.Context(command, info_name=word, parent=context)
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", command.get_help(context).split("\nOptions:")[1]))


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.place or "tfr")
def test_every_option_of_help_is_completed_and_in_the_manual(verb):
    listed = {name for option in verb.options for name in option.names}
    manual = (SHARE / "man" / "man1" / f"{'-'.join(['tfr', *verb.words])}.1").read_text(encoding="utf-8")
    words = set(re.findall(r"--[a-z][a-z0-9-]+", manual.replace("\\-", "-")))
    assert listed >= list_help_options(verb)
    assert words >= list_help_options(verb)


@pytest.mark.parametrize(
    ("shell", "path"),
    [
        ("bash", "bash-completion/completions/tfr"),
        ("zsh", "zsh/site-functions/_tfr"),
        ("fish", "fish/vendor_completions.d/tfr.fish"),
    ],
)
def test_installed_script_is_the_printed_one(shell, path):
    assert (SHARE / path).read_text(encoding="utf-8") == make_script(shell, VERBS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_has_the_syntax_of_its_shell(shell, tmp_path: Path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(make_script(shell, VERBS), encoding="utf-8")
    done = subprocess.run([shell, "-n", str(tmp_path / "script")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif("TFRKIT_SANITIZE" in os.environ, reason="it would check groff")
def test_manual_pages_render_without_a_warning():
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    for page in sorted((SHARE / "man" / "man1").glob("*.1")):
        done = subprocess.run(
            ["groff", "-Kutf8", "-man", "-Tutf8", "-ww", "-z", str(page)], capture_output=True, text=True, check=False
        )
        assert (page.name, done.returncode, done.stderr) == (page.name, 0, "")
