"""Unknown commands and kinds: the message names what there is."""

from __future__ import annotations

import pytest
from typer.main import get_command
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
        (["show"], "No such command 'show'.\n  here it is tfr info or tfr head or tfr view\n"),
        (["query"], "No such command 'query'.\n  here it is tfr sql\n"),
        (["stat"], "No such command 'stat'. Did you mean 'stats'"),
    ],
)
def test_unknown_command_names_those_that_there_are(arguments: list[str], message: str) -> None:
    ran = CliRunner().invoke(make_app(), arguments, prog_name="tfr")
    assert ran.exit_code == 2
    assert message in ran.output


def test_words_of_other_tools_name_commands_that_there_are() -> None:
    from tfrkit.cli.groups import _OTHER_WORDS

    commands = set(get_command(make_app()).commands)
    assert {word for words in _OTHER_WORDS.values() for word in words.split()} <= commands
    assert not commands & set(_OTHER_WORDS)
