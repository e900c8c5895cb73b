"""Columns for frameworks that have no type for them."""

from __future__ import annotations

from itertools import pairwise

from tfrkit.codec.columns import BytesColumn

# Values up to this size are cut from one bytes object.
_SMALL_NBYTES = 4096


def list_bytes(column: BytesColumn) -> list[bytes]:
    """The values of a column, each a copy."""
    offsets = column.offsets.tolist()
    if len(offsets) < 2 or offsets[-1] - offsets[0] > _SMALL_NBYTES * len(offsets):
        return list(column)
    whole = column.data.tobytes()  # one more copy, but slicing bytes takes a third of the time of slicing views
    return [whole[start:stop] for start, stop in pairwise(offsets)]
