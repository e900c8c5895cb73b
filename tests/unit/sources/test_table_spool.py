"""Columns of a table on their way to a build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfrkit.sources.table_spool import SpoolColumn


@pytest.mark.parametrize(
    ("lengths", "missing", "shape"),
    [([2, 2], None, (2,)), ([2, 0, 2], [0, 1, 0], (2,)), ([2, 0, 2], None, (None,)), ([2, 3], [0, 0], (None,))],
)
def test_length_of_lists_is_that_of_rows_that_have_one(
    tmp_path: Path, lengths: list[int], missing: Any, shape: tuple[int | None]
) -> None:
    column = SpoolColumn(str(tmp_path), 0, "x", "int64", is_list=True, floats="ask")
    column.append(np.arange(sum(lengths)), np.array(lengths), missing and np.array(missing, np.uint8))
    column.writer.close()
    assert column.spec(missing is not None).shape == shape
