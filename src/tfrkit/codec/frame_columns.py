"""Columns of pandas and polars that an Arrow stream cannot represent, detected by their own types.

Neither library is imported: DataFrames and Series are recognised by attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tfrkit.errors import SourceError

IN_MEMORY = "a table in memory"
"""Location of a table in memory, for messages."""


def refuse_lost_types(data: Any) -> None:
    """Raise for columns of a DataFrame that an Arrow stream cannot represent.

    polars exports Python objects as their addresses in memory; pandas cannot export sparse columns.
    """
    for name, dtype in _list_dtypes(data):
        refuse_lost_type(name, dtype)


def refuse_lost_type(name: str, dtype: Any) -> None:
    """Raise if an Arrow stream cannot represent one column; dtype None means another library."""
    if _holds_objects(dtype):
        raise SourceError(
            f"column {name!r} holds Python objects, which records cannot store",
            shard=IN_MEMORY,
            hint="convert it to numbers, text, or lists of these, or leave it out",
        )
    if type(dtype).__name__ == "SparseDtype":
        raise SourceError(
            f"column {name!r} is sparse, which Arrow cannot represent",
            shard=IN_MEMORY,
            hint="make it dense: column.sparse.to_dense()",
        )


def refuse_large_integers(data: Any) -> None:
    """Raise for the first integer beyond 64 bits in the object columns of a pandas DataFrame."""
    if not hasattr(data, "items"):
        return
    for name, column in data.items():
        cells = list_cells(column)
        if cells is not None:
            refuse_large_integer(str(name), cells)


def refuse_large_integer(name: str, cells: Any) -> None:
    """Raise for the first integer beyond 64 bits in one column, whose cells may be lists."""
    for row, cell in enumerate(cells):
        for value in cell if isinstance(cell, (list, tuple)) else (cell,):
            if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
                raise SourceError(
                    f"column {name!r} expected signed 64-bit integers, got {_shorten(value)}",
                    shard=f"{IN_MEMORY}, row {row}",
                    hint="make it text or float",
                )


def restore_nan(array: Any, cells: Any, arrow: Any) -> Any:
    """Restore NaN in a column of lists of floats from its cells, because pandas exports NaN as null."""
    if cells is None or not _is_float_list(array.type, arrow):
        return array
    if isinstance(array, arrow.ChunkedArray):
        array = array.combine_chunks()
    if not array.flatten().null_count:
        return array
    lists = [cell if isinstance(cell, (list, tuple, np.ndarray)) else None for cell in cells]
    return arrow.array(lists, array.type, from_pandas=False)


def find_cells(data: Any, index: int) -> Any | None:
    """Return the cells of an object column of a pandas DataFrame, by its number; None for other columns."""
    if not hasattr(data, "iloc") or index >= len(data.columns):
        return None
    return list_cells(data.iloc[:, index])


def list_cells(column: Any) -> Any | None:
    """Return the cells of a pandas Series of objects; None for other columns."""
    return column.to_numpy() if hasattr(column, "iloc") and column.dtype == object else None


def _list_dtypes(data: Any) -> Iterator[tuple[str, Any]]:
    names, dtypes = getattr(data, "columns", None), getattr(data, "dtypes", None)
    if names is None or dtypes is None:
        return
    for name, dtype in zip(names, dtypes, strict=False):
        yield str(name), dtype


def _holds_objects(dtype: Any) -> bool:
    """Whether this is polars' Object type, or a list or struct of it. The object dtype of pandas has another name."""
    if type(dtype).__name__ == "Object":
        return True
    if type(dtype).__name__ == "Struct":
        return any(_holds_objects(field.dtype) for field in dtype.fields)
    return type(dtype).__name__ in ("List", "Array") and _holds_objects(dtype.inner)


def _is_float_list(kind: Any, arrow: Any) -> bool:
    types = arrow.types
    return bool((types.is_list(kind) or types.is_large_list(kind)) and types.is_floating(kind.value_type))


def _shorten(value: int) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:20]}… of {len(text)} digits"
