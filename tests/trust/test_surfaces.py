"""A few hundred mutations of each surface with a fixed seed; `make fuzz-python` does millions with coverage."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from surfaces import SURFACES  # type: ignore[import-not-found]

TIMES = {"query": 40, "folder": 60, "checkpoints": 60}
WORDS = [
    b"0",
    b"-1",
    b"1e999",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
    b"\\ud800",
    b"\x00",
    b"\xff",
    b"[" * 3000,
    b"9" * 5000,
]


def mutate(seed: bytes, chooser: random.Random) -> bytes:
    data = bytearray(seed)
    for _ in range(chooser.choice((1, 1, 1, 2, 4))):
        at = chooser.randrange(len(data) + 1)
        size = chooser.choice((1, 1, 2, 8, 30))
        match chooser.randrange(5):
            case 0:
                data[at : at + size] = bytes(chooser.randrange(256) for _ in range(size))
            case 1:
                del data[at : at + size]
            case 2:
                data[at:at] = chooser.choice(WORDS)
            case 3:
                data[at : at + size] = chooser.choice(WORDS)
            case _:
                start = chooser.randrange(len(data) + 1)
                data[at:at] = data[start : start + size]
    return bytes(data)


def inputs(name: str) -> Iterator[bytes]:
    seeds = SURFACES[name].seeds()
    yield from (b"", b"\0")
    yield from seeds
    chooser = random.Random(7)
    for _ in range(TIMES.get(name, 400)):
        yield mutate(chooser.choice(seeds), chooser)


@pytest.mark.parametrize("name", SURFACES)
def test_valid_inputs_are_accepted(name: str) -> None:
    assert any(SURFACES[name].try_one(seed) for seed in SURFACES[name].seeds())


@pytest.mark.parametrize("name", SURFACES)
def test_any_bytes_are_accepted_or_refused_by_an_error_of_ours(name: str) -> None:
    for data in inputs(name):
        try:
            SURFACES[name].try_one(data)
        except BaseException:
            print(name, data[:2000])
            raise
