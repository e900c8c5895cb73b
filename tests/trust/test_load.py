"""Short forms of `make load`: opens do not grow, readers of one dataset see every row."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from load import is_flat, load_memory, load_readers, make_dataset  # type: ignore[import-not-found]


@pytest.mark.resources
def test_memory_is_flat_over_opens_and_readers_see_every_row(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path)
    assert load_memory(dataset, 300)
    assert load_readers(dataset, 4)


@pytest.mark.resources
def test_growth_is_noticed() -> None:
    kept: list[mmap.mmap] = []

    def keep(number: int) -> None:
        kept.append(mmap.mmap(-1, 200_000))  # not from the heap, which may have room for it
        kept[-1].write(bytes(200_000))

    assert not is_flat("blocks that stay", 100, keep)
