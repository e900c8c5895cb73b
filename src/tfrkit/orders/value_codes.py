"""Values of a feature as integer codes, for classes, groups and keys of splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.codec.columns import PRESENT

Values = Sequence[Any] | np.ndarray[Any, Any]
"""One value per record: integers, bytes or str, as an array, a list or a `BytesColumn`."""


def code_values(values: Values, what: str, size: int) -> tuple[Int64Array, list[Any]]:
    """Return a code for each value, and the value of each code. Codes are numbered by first appearance.

    Renaming the values therefore does not change codes. `what` ("label", "group", "key") is used in messages.
    """
    if len(values) != size:
        raise ValueError(f"expected one {what} per record, got {len(values)} for {size} records")
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(f"expected one {what} per record, got an array of shape {values.shape}")
        if values.dtype.kind in "iub":
            return _code_integers(values)
        if values.dtype.kind not in "OSU":
            raise TypeError(f"{what} expected integers, bytes or str, got an array of {values.dtype}")
        listed = values.tolist()
    else:
        presence = getattr(values, "presence", None)
        if presence is not None and (presence != PRESENT).any():
            missing = np.flatnonzero(presence != PRESENT)
            raise ValueError(f"{what} is missing in {len(missing)} of {size} records - at record {missing[0]}")
        listed = list(values)
    _check_kinds(listed, what)
    codes = {value: code for code, value in enumerate(dict.fromkeys(listed))}
    return np.fromiter(map(codes.__getitem__, listed), np.int64, size), list(codes)


def encode_value(value: Any) -> bytes:
    """Encode one value: str as UTF-8, an integer as decimal text. 5, "5" and b"5" are the same key."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return b"%d" % value


def _code_integers(values: np.ndarray[Any, Any]) -> tuple[Int64Array, list[Any]]:
    distinct, first_at, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first_at, kind="stable")
    code_of = np.empty(len(distinct), np.int64)
    code_of[order] = np.arange(len(distinct))
    return code_of[inverse], distinct[order].tolist()


def _check_kinds(values: list[Any], what: str) -> None:
    """Raise for missing values, lists, floats, and mixed types, in which 5 and "5" would be two classes."""
    kinds = set()
    for kind in set(map(type, values)):
        if issubclass(kind, (bytes, str)):
            kinds.add("bytes" if issubclass(kind, bytes) else "str")
        elif issubclass(kind, (int, np.integer, np.bool_)):
            kinds.add("integers")
        else:
            at = next(at for at, value in enumerate(values) if type(value) is kind)
            raise TypeError(f"{what} expected integers, bytes or str, got {kind.__name__} - at record {at}")
    if len(kinds) > 1:
        raise TypeError(f"{what} expected values of one kind, got {' and '.join(sorted(kinds))}")
