"""The storage suite at a place of a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from places import Place

from tfrkit.storage.base import ByteReader
from tfrkit.storage.resolve import open_reader


class AtPlace:
    """Stores and opens objects at the place that a test names."""

    @pytest.fixture(autouse=True)
    def place(self, request: pytest.FixtureRequest, make_place: Callable[[str], Place]) -> Iterator[Place]:
        self.where = make_place(request.param)
        with self.where.used():
            yield self.where

    def store(self, name: str, data: bytes) -> None:
        self.where.put(name, data)

    def open_reader(self, name: str) -> ByteReader:
        return open_reader(f"{self.where.address}/{name}")
