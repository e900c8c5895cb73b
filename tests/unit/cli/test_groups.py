"""Unknown commands and kinds: the message names what there is."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tfrkit.cli.main import make_app


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "captcha", "x"], "No such command 'captcha'.\n  kinds: class-folders, file-names, "),
        (
            ["build", "../pics"],
            "No such command '../pics'.\n  name the kind first: tfr build class-folders ../pics\n  kinds: ",
        ),
        (["build", "tabel"], "No such command 'tabel'. Did you mean 'table'"),
        (["export", "excel"], "No such command 'excel'.\n  kinds: images, "),
        (["help"], "No such command 'help'.\n  help: tfr -h    of a command: tfr COMMAND -h\n"),
        (["version"], "No such command 'version'.\n  version: tfr --version\n"),
        (["stat"], "No such command 'stat'. Did you mean 'stats'"),
    ],
)
def test_unknown_command_names_those_that_there_are(arguments: list[str], message: str) -> None:
    ran = CliRunner().invoke(make_app(), arguments, prog_name="tfr")
    assert ran.exit_code == 2
    assert message in ran.output
