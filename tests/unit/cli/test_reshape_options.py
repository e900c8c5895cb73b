from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tfrkit.cli import reshape_options


@pytest.mark.parametrize(("number", "files"), [(1, ""), (2, " in 2 files"), (3, " in 3 files")])
def test_output_of_several_files_says_how_many(number: int, files: str) -> None:
    made: Any = SimpleNamespace(splits={}, files=[None] * number, seed=None, output="out", records=5, nbytes=70)
    assert reshape_options.describe_output(made) == [f"out: 5 records{files}, 70 bytes"]
