"""One rule for floats of tables and arrays that float32 cannot represent.

They are stored as requested: rounded, or exactly as a serialized tensor. By default each column with such a float is
reported as a problem, with the row and the value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.codec.coerce import Floats
from tfrkit.errors import Hint, Step
from tfrkit.sources.base import Problem

_AS_TENSORS = Step("keep them as tensors: {floats}", floats="float64")


class RoundedFloats:
    """Count and first example of the floats of one column that float32 cannot represent."""

    def __init__(self, floats: Floats) -> None:
        self.count = 0
        self.row = 0
        self._value = 0.0
        self._is_too_large = False
        self._floats = floats

    def narrow(self, values: Any, first_row: int, lengths: Int64Array | None = None) -> Any:
        """Return floats as float32; those of row `first_row` and later rows are counted here if this changes them."""
        if values.dtype == np.float32:
            return values
        with np.errstate(over="ignore", invalid="ignore"):
            narrow = values.astype(np.float32)
        wrong = np.isinf(narrow) & ~np.isinf(values)
        if self._floats == "ask":
            wrong |= (narrow.astype(np.float64) != values) & ~np.isnan(values)
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            if not self.count:
                row = first if lengths is None else int(np.searchsorted(np.cumsum(lengths), first, "right"))
                self.row, self._value = first_row + row, float(values[first])
                self._is_too_large = bool(np.isinf(narrow[first]))
            self.count += int(wrong.sum())
        return narrow

    def problem(self, where: str) -> Problem:
        """Return the problem for a column that has such floats."""
        more = f", as would {self.count - 1:,} more" if self.count > 1 else ""
        if self._is_too_large:
            reason, hint = f"float32 cannot represent {self._value!r}{more}", Hint(_AS_TENSORS)
        else:
            reason = f"float32 would round {self._value!r} to {float(np.float32(self._value))!r}{more}"
            hint = Hint(Step("round them: {floats}", floats="float32"), _AS_TENSORS)
        return Problem(where, reason, blocking=True, input=None, hint=hint)
