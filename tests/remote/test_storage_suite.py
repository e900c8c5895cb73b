"""The suite of all storage, on each server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from at_place import AtPlace
from places import NAMES

from tfrkit.testing.storage_suite import ReaderTests


@pytest.mark.parametrize("place", NAMES, indirect=True)
class TestRemoteReader(AtPlace, ReaderTests):
    pass


def test_all_names_of_places_are_known(make_place: Callable[[str], Any]) -> None:
    assert [make_place(name).name for name in NAMES] == list(NAMES)
