"""Words shared by the layers: what flows along the two one-way streets."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Record = bytes
"""Payload bytes of one frame."""

Row = dict[str, Any]
"""Schema-conforming values of one record, by feature name."""

Verify = Literal["all", "lengths", "none"]
"""Which checksums are compared: both, that of the length only, or none."""

OnError = Literal["raise", "skip"]
"""What a reader does at damage."""

Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]
UInt8Array = npt.NDArray[np.uint8]
