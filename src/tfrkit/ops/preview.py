"""Convert values to short text for display, and to JSON.

`preview_row` returns one short line per feature. `row_to_json` is complete and reversible.

The JSON form of a value:

    int64, float        a number; NaN and infinities are {"float": "nan" | "inf" | "-inf"}
    bytes               a string if the bytes are UTF-8, otherwise {"base64": "..."}
    several values      an array of the above
    a serialized tensor {"tensor": {"dtype": "uint8", "shape": [2, 2], "values": [0, 1, 2, 3]}}
    a feature with no kind: null, an absent feature: no key
    a record that is not an Example: {"record": the bytes as above}
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfrkit.images.sniff import describe_image, sniff_image

MAX_VALUES = 8  # longer lists are cut
MAX_TEXT = 72  # characters; longer texts are cut
HEX_BYTES = 12  # shown of bytes that are neither an image nor text
# Enough for any image header, so that a 1 GB value costs no more than a small one.
HEAD_BYTES = 256 * 1024
_LIST_DTYPES = (np.dtype(np.int64), np.dtype(np.float32))  # of Int64List and FloatList

Row = Mapping[str, Any] | bytes


def preview_row(row: Row) -> dict[str, str]:
    """Return one short text per feature, in the order of the row.

    The parts of a SequenceExample are named `context.x` and `feature_lists.x`, as in SQL. Text from the data is not
    escaped: the caller removes control characters before printing.

    Example:
        >>> preview_row({"label": 3, "tokens": np.arange(100)})
        {'label': '3', 'tokens': '[0, 1, 2, 3, 4, 5, 6, 7, … 100 values]'}
    """
    if isinstance(row, (bytes, bytearray, memoryview)):
        return {"record": preview_value(bytes(row))}
    if is_sequence_row(row):
        context = {f"context.{name}": preview_value(value) for name, value in row["context"].items()}
        return context | {
            f"feature_lists.{name}": _preview_frames(value) for name, value in row["feature_lists"].items()
        }
    return {name: preview_value(value) for name, value in row.items()}


def preview_value(value: Any) -> str:
    """Show the value of a feature in at most about a hundred characters."""
    if value is None:
        return "no value"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return preview_bytes(bytes(value))
    if isinstance(value, str):
        return _quote(value, len(value.encode("utf-8", "surrogateescape")))
    if isinstance(value, np.ndarray) and not _is_plain_list(value):
        shape = "x".join(map(str, value.shape)) or "scalar"
        return f"{value.dtype} {shape} {_preview_list(value.reshape(-1))}"
    if isinstance(value, (np.ndarray, Sequence)):
        return _preview_list(value)
    if isinstance(value, (float, np.floating)):
        return _short_float(value)
    return str(value)


def preview_bytes(value: bytes) -> str:
    """Show an image by its format and size, text as text, other bytes by the first few in hex."""
    head = value[:HEAD_BYTES]
    image = sniff_image(head)
    if image is not None:
        return describe_image(image, len(value))
    text = _as_text(head, whole=len(head) == len(value))
    if text is not None:
        return _quote(text, len(value))
    return f"{value[:HEX_BYTES].hex(' ')}{' …' if len(value) > HEX_BYTES else ''} ({len(value):,} bytes)"


def row_to_json(row: Row) -> dict[str, Any]:
    """Convert the whole row to JSON values; see the top of this module for the form.

    Example:
        >>> row_to_json({"a": np.array([1, 2]), "b": b"x", "c": b"\\xff"})
        {'a': [1, 2], 'b': 'x', 'c': {'base64': '/w=='}}
    """
    if isinstance(row, (bytes, bytearray, memoryview)):
        return {"record": value_to_json(bytes(row))}
    if is_sequence_row(row):
        return {
            "context": {name: value_to_json(value) for name, value in row["context"].items()},
            "feature_lists": {name: _frames_to_json(value) for name, value in row["feature_lists"].items()},
        }
    return {name: value_to_json(value) for name, value in row.items()}


def value_to_json(value: Any) -> Any:
    """Convert the value of a feature to JSON values."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _bytes_to_json(bytes(value))
    if isinstance(value, (np.ndarray, np.generic)):
        return _array_to_json(np.asarray(value)) if isinstance(value, np.ndarray) else value_to_json(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, complex):
        return {"complex": [value_to_json(value.real), value_to_json(value.imag)]}
    if isinstance(value, Sequence):
        return [value_to_json(item) for item in value]
    return value


def json_to_cell(value: Any) -> Any:
    """Return a JSON value for a CSV cell: a special float or a scalar tensor becomes its number.

    Example:
        >>> json_to_cell({"float": "nan"}), json_to_cell({"tensor": {"dtype": "float64", "shape": [], "values": [0.1]}})
        (nan, 0.1)
    """
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    tensor, number = value.get("tensor"), value.get("float")
    if isinstance(tensor, Mapping) and set(tensor) == {"dtype", "shape", "values"} and tensor["shape"] == []:
        return json_to_cell(tensor["values"][0])
    return float(number) if number in ("nan", "inf", "-inf") else value


def is_sequence_row(row: Mapping[str, Any]) -> bool:
    """Whether a row is that of a SequenceExample: exactly the keys context and feature_lists, both mappings."""
    return set(row) == {"context", "feature_lists"} and all(isinstance(part, Mapping) for part in row.values())


def _frames_to_json(frames: Any) -> Any:
    # Lists of equal length are decoded as one array with a row per list; in JSON they are still lists.
    if isinstance(frames, np.ndarray) and frames.dtype in _LIST_DTYPES:
        return [
            _frames_to_json(frame) if frame.ndim else value_to_json(frame.item()) for frame in map(np.asarray, frames)
        ]
    return value_to_json(frames)


def _preview_list(values: Any) -> str:
    shown = [preview_value(value) for value in values[:MAX_VALUES]]
    if len(values) <= MAX_VALUES:
        return f"[{', '.join(shown)}]"
    return f"[{', '.join(shown)}, … {len(values):,} values]"


def _preview_frames(frames: Any) -> str:
    is_listed = isinstance(frames, np.ndarray) and frames.dtype in _LIST_DTYPES
    return preview_value(list(frames) if is_listed else frames)


def _is_plain_list(value: np.ndarray[Any, Any]) -> bool:
    # An array with another dtype than the lists of an Example was a serialized tensor.
    return value.ndim == 1 and value.dtype in (*_LIST_DTYPES, np.dtype(object))


def _short_float(value: float | np.floating[Any]) -> str:
    # 0.1 stored as float32 reads back as 0.10000000149011612: correct but hard to read.
    with np.errstate(over="ignore"):
        narrow = np.float32(value)
    return str(narrow) if float(narrow) == float(value) else str(float(value))


def _as_text(head: bytes, *, whole: bool) -> str | None:
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        # A cut may have split the last character; anything else means this is not text.
        if whole or error.start < len(head) - 3:
            return None
        text = head[: error.start].decode("utf-8")
    unprintable = sum(not (character.isprintable() or character in "\n\r\t") for character in text[:1024])
    return None if unprintable * 8 > len(text[:1024]) else text


def _quote(text: str, nbytes: int) -> str:
    if len(text) <= MAX_TEXT:
        return f'"{text}"'
    return f'"{text[:MAX_TEXT]}…" ({nbytes:,} bytes)'


def _bytes_to_json(value: bytes) -> str | dict[str, str]:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode("ascii")}


def _array_to_json(array: np.ndarray[Any, Any]) -> Any:
    values = list(_flat_to_json(array))
    if _is_plain_list(array):
        return values
    return {"tensor": {"dtype": str(array.dtype), "shape": list(array.shape), "values": values}}


def _flat_to_json(array: np.ndarray[Any, Any]) -> Iterator[Any]:
    if array.dtype.kind in "biufcSO":
        yield from map(value_to_json, array.reshape(-1).tolist())
    else:
        # bfloat16 and similar types are not NumPy's own; as float64 they lose nothing.
        yield from map(value_to_json, array.reshape(-1).astype(np.float64).tolist())
