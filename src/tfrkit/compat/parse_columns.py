"""Read the features that a parse function requests from records, with the core's column builder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from tfrkit import _native
from tfrkit.codec.columns import PRESENT, BytesColumn
from tfrkit.compat.op_errors import InvalidArgumentError
from tfrkit.compat.tensor import object_array
from tfrkit.container.faults import describe_fault

_Array = np.ndarray[Any, np.dtype[Any]]
Key = tuple[str, bool]
"""Name of a feature, and whether it is a feature list."""


class ParsedColumn(NamedTuple):
    """The values of one feature in all records, concatenated.

    Record `i` has `values[splits[i]:splits[i + 1]]`; of a feature list, `splits` divides values into steps and
    `list_splits` divides steps into records. `is_present` distinguishes an empty list from a missing one.
    """

    values: _Array
    splits: _Array
    list_splits: _Array | None
    is_present: _Array


def read_columns(
    records: Sequence[bytes], kind: Literal["example", "sequence_example"], wanted: dict[Key, str]
) -> dict[Key, ParsedColumn]:
    """Read the columns in `wanted`, a dict of features to kinds. A feature of another kind raises."""
    specs = [(name.encode(), value_kind, is_list, -1) for (name, is_list), value_kind in wanted.items()]
    builder = _native.ColumnBuilder(kind, specs)
    append = builder.append_record
    for number, record in enumerate(records):
        fault = append(record)
        if fault is not None:
            what = describe_fault(fault, [name for name, _ in wanted])
            where = f" - at record {number} of the batch" if len(records) > 1 else ""
            raise InvalidArgumentError(None, None, what + where)
    found = {}
    for key, (values, splits, list_splits, presence, _) in zip(wanted, builder.finish(), strict=True):
        if isinstance(values, tuple):
            values = object_array(list(BytesColumn(*values)))
        elif values.dtype.kind == "i":
            values = values.view(np.int64)  # the core's is C's long long: it prints the same, but is another type
        is_present = np.ones(len(records), bool) if presence is None else presence == PRESENT
        found[key] = ParsedColumn(values, splits, list_splits, is_present)
    return found


def zero_of(kind: str) -> Any:
    """Return the fill value of a kind: 0 or the empty string."""
    return b"" if kind == "bytes" else 0
