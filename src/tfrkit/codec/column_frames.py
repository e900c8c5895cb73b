"""Rows of whole columns encoded as frames, on any number of threads.

The bytes are those that `Writer.write_columns` writes for the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from tfrkit import _native
from tfrkit._types import Int64Array, UInt8Array, UInt64Array
from tfrkit.codec.coerce import Coercer, Floats
from tfrkit.codec.encode_columns import encode_columns, encode_written_name

Frames = tuple[UInt8Array, UInt64Array]
"""Concatenated frames, and the start of each."""


class PlainColumn(NamedTuple):
    """One feature of all rows, in arrays that the core reads without copying.

    `values` are int64, float32 or bytes; `offsets` are the starts of bytes values; `splits` are the starts of each
    row's values, None if each row has one value; `missing` marks rows without the feature.
    """

    kind: Literal["int64", "float", "bytes"]
    values: Any
    offsets: Any = None
    splits: Any = None
    missing: Any = None


class ColumnFramer:
    """Encodes rows of columns as frames. The columns must not change meanwhile. Safe to share between threads.

    Raises ValueError for offsets or splits that do not fit `num_rows` rows.
    """

    def __init__(self, columns: Mapping[str, PlainColumn], num_rows: int) -> None:
        ordered = sorted((encode_written_name(name), column) for name, column in columns.items())
        self._frames = _native.ColumnFrames([(name, *column) for name, column in ordered], num_rows)

    def frame_rows(self, numbers: Int64Array) -> Frames:
        """Encode these rows, in this order."""
        return self._frames.take(np.ascontiguousarray(numbers, np.int64))


def frame_columns(columns: Mapping[str, Any], *, floats: Floats) -> Frames:
    """Encode all rows of columns in the form of `Writer.write_columns`."""
    coercer = Coercer(floats)
    encoded, num_rows = encode_columns(columns, coercer=coercer, floats=floats)
    encoder = _native.RowEncoder(floats, coercer)
    encoder.write_columns([(name, kind or "int64", *rest) for name, kind, *rest in encoded], num_rows)
    frames = encoder.take()
    starts, _, _ = _native.index_frames(frames, 0, len(frames), num_rows, "none")
    return frames, starts
