from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated

import typer

from tfrkit.cli.options import spread_groups

Number = Annotated[int, typer.Option("--number")]


@dataclass
class Group:
    needed: Annotated[str, typer.Option("--needed")]
    sign: Annotated[str, typer.Option("--sign"), lambda text: {"plus": 1, "minus": -1}[text]] = "plus"


def plain(number: Number = 5, *, group: Group) -> int:
    return number * int(group.needed) * int(group.sign)


def test_fields_of_a_group_become_options_in_its_place() -> None:
    parameters = inspect.signature(spread_groups(plain)).parameters
    assert list(parameters) == ["number", "needed", "sign"]
    assert parameters["needed"].default is inspect.Parameter.empty
    assert (parameters["number"].default, parameters["sign"].default) == (5, "plus")


def test_command_gets_the_group_whole_and_its_values_converted() -> None:
    assert spread_groups(plain)(number=2, needed="3", sign="minus") == -6
