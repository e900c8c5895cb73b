"""The suite of all storage, on each server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from places import NAMES, Place

from tfrkit.storage.base import ByteReader
from tfrkit.storage.resolve import open_reader
from tfrkit.testing.storage_suite import ReaderTests


@pytest.mark.parametrize("place", NAMES, indirect=True)
class TestRemoteReader(ReaderTests):
    @pytest.fixture(autouse=True)
    def place(self, request: pytest.FixtureRequest, make_place: Callable[[str], Place]) -> Iterator[Place]:
        self.where = make_place(request.param)
        with self.where.used():
            yield self.where

    def store(self, name: str, data: bytes) -> None:
        self.where.put(name, data)

    def open_reader(self, name: str) -> ByteReader:
        return open_reader(f"{self.where.address}/{name}")


def test_all_names_of_places_are_known(make_place: Callable[[str], Any]) -> None:
    assert [make_place(name).name for name in NAMES] == list(NAMES)
