"""Types shared by all layers."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

Record = bytes
"""The payload bytes of one frame."""

Row = dict[str, Any]
"""The values of one record by feature name, conforming to the schema."""

Verify = Literal["all", "lengths", "none"]
"""Which checksums are verified: both, only that of the length, or none."""

OnError = Literal["raise", "skip"]
"""What a reader does on damage."""

Infer = Literal["sample", "all"]
"""The records a schema is inferred from: "auto" is all of a small dataset and a sample of a large one."""

Int64Array = np.ndarray[Any, np.dtype[np.int64]]
UInt64Array = np.ndarray[Any, np.dtype[np.uint64]]
UInt8Array = np.ndarray[Any, np.dtype[np.uint8]]
