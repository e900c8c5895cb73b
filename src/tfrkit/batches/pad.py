"""Padding of ragged columns to arrays, to the longest row of a batch or a given length. Also pads feature lists."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.codec.columns import BytesColumn, Column, Ragged
from tfrkit.codec.decode import Batch
from tfrkit.errors import Hint, MissingFeatureError, ShapeError, Step

Pad = Mapping[str, Any]
"""Feature: fill value, or (fill value, length); for a ragged feature list, (fill value, (steps, values))."""

Locate = Callable[[int], tuple[str, int, int] | None]
"""Maps a row of the batch to (shard, record, byte), or None if unknown."""

Array = np.ndarray[Any, np.dtype[Any]]

_PARTS = {"context", "feature_lists"}


class Choice(NamedTuple):
    """Fill value and lengths of one feature; None is the longest of the batch."""

    value: Any
    length: int | None = None
    frame_length: int | None = None


def choose_pad(pad: Pad | float | None, name: str) -> Choice | None:
    """Return the padding of a feature; None if it is not in `pad`."""
    if not isinstance(pad, Mapping):
        return None if pad is None else Choice(pad)
    if name not in pad:
        return None
    choice = pad[name]
    if not isinstance(choice, tuple):
        return Choice(choice)
    if len(choice) != 2:
        raise ValueError(f"pad of {name!r} expected a value or (value, length), got {choice!r:.64}")
    value, length = choice
    if length == 0 and not isinstance(length, bool):
        raise ValueError(
            f"pad of {name!r} expected a length from 1 up, got 0\n"
            f"  the order is (value, length): pad={{{name!r}: (0, 128)}}"
        )
    lengths = length if isinstance(length, tuple) else (length,)
    if not 1 <= len(lengths) <= 2 or not all(map(_is_length, lengths)):
        raise ValueError(
            f"pad of {name!r} expected a length from 1 up, or (frames, values) of frames of varying length, "
            f"got {length!r:.64}"
        )
    return Choice(value, *(None if item is None else operator.index(item) for item in lengths))


def _is_length(length: Any) -> bool:
    return length is None or (hasattr(length, "__index__") and not isinstance(length, bool) and length >= 1)


def check_pad(pad: Pad | float | None, *, truncate: bool) -> None:
    """Raise if the padding is invalid, before anything is read."""
    choices = []
    if isinstance(pad, Mapping):
        choices = [choose_pad(pad, name) for name in pad]
        for name, choice in zip(pad, choices, strict=True):
            if choice is not None and not isinstance(choice.value, str):  # decoded text is padded with text
                _require_numbers(f"pad of {name!r}", choice.value)
    elif pad is not None:
        _require_numbers("pad", pad)
    if truncate and not any(choice and choice[1:] != (None, None) for choice in choices):
        raise ValueError(
            "truncate cuts rows to the length in pad, and pad has no length\n"
            "  say which: batch(64, pad={'tokens': (0, 128)}, truncate=True)"
        )


def _require_numbers(what: str, value: Any) -> None:
    # NumPy makes object arrays of integers above 64 bits, of None and of dicts.
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise ValueError(f"{what} expected a 64-bit number, got {value!r:.64}")
    is_number = isinstance(value, (int, float, np.number, np.bool_, np.ndarray, list))
    if not is_number or np.asarray(value).dtype.kind not in "biuf":
        raise TypeError(f"{what} expected a number, got {value!r:.64}")


def _fit_value(name: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """Convert the fill value to the dtype of a column; ValueError if that changes it, such as 1.5 to an integer."""
    if dtype.kind not in "biuf":
        return value
    _require_numbers(f"pad of {name!r}", value)
    given = np.asarray(value)
    with np.errstate(all="ignore"):
        made = given.astype(dtype)
        fits = np.isfinite(made) == np.isfinite(given) if dtype.kind == "f" else made == given
    if not np.all(fits):
        article = "an" if dtype.name[0] in "iu" else "a"
        raise ValueError(f"pad of {name!r} expected {article} {dtype.name}, got {value!r:.64}")
    return made


def pad_batch(batch: Batch, pad: Pad | float, *, truncate: bool = False, locate: Locate = lambda _: None) -> Batch:
    """Pad ragged columns to arrays; the length of each row is in `name/length`.

    `pad` is one value for every ragged column of numbers, or a value or (value, length) for each named feature. A
    longer row raises, or is cut with `truncate`. Feature lists of a SequenceExample are padded like lists. If the steps
    of a feature list vary in length, the result has the shape (rows, steps, values), and `name/frame_length` has the
    number of values of each step.
    """
    is_sequence = set(batch) == _PARTS
    parts = batch.values() if is_sequence else (batch,)
    if isinstance(pad, Mapping):
        for name in pad:
            if not any(name in part for part in parts):
                known = ", ".join(name for part in parts for name in part)
                raise MissingFeatureError(f"pad names feature {name!r}, the batch has {known}")
    if is_sequence:
        return {part: _pad_columns(columns, pad, truncate, locate) for part, columns in batch.items()}
    return _pad_columns(batch, pad, truncate, locate)


def _pad_columns(columns: Batch, pad: Pad | float, truncate: bool, locate: Locate) -> Batch:
    padded: Batch = {}
    for name, column in columns.items():
        choice = choose_pad(pad, name) if isinstance(pad, Mapping) or _is_paddable(column) else None
        if choice is None:
            padded[name] = column
        elif isinstance(column, Ragged) and isinstance(column.values, Ragged):
            padded.update(_pad_frames(name, column, choice, truncate, locate))
        else:
            values, lengths = _split_rows(name, column)
            made = _fill(name, values, lengths, choice.value, choice.length, truncate, locate)
            padded[name], padded[f"{name}/length"] = made
    return padded


def _is_paddable(column: Column) -> bool:
    if isinstance(column, Ragged) and isinstance(column.values, Ragged):
        return _is_paddable(column.values)
    return isinstance(column, Ragged) and isinstance(column.values, np.ndarray) and column.values.dtype != object


def _split_rows(name: str, column: Column) -> tuple[Array, Int64Array]:
    """Return the values of all rows concatenated, and the number of values in each row."""
    if isinstance(column, np.ndarray) and column.dtype != object:
        column = column.reshape(len(column), 1) if column.ndim == 1 else column
        return column.reshape(-1, *column.shape[2:]), np.full(len(column), column.shape[1], np.int64)
    if isinstance(column, Ragged) and isinstance(column.values, np.ndarray):
        return column.values[int(column.row_splits[0]) : int(column.row_splits[-1])], column.lengths
    inner = column.values if isinstance(column, Ragged) else column
    got = "bytes" if isinstance(inner, BytesColumn) else "text" if isinstance(inner, np.ndarray) else "arrays"
    raise ShapeError(f"feature {name!r} expected lists of numbers to pad, got {got}")


def _pad_frames(name: str, column: Ragged, choice: Choice, truncate: bool, locate: Locate) -> Batch:
    """Pad a ragged feature list: first every step to one width, then every row to one number of steps."""
    num_frames = column.lengths
    row_of_frame = np.repeat(np.arange(len(num_frames)), num_frames)
    frames = column.values[int(column.row_splits[0]) : int(column.row_splits[-1])]
    values, lengths = _split_rows(name, frames)
    wide, lengths = _fill(
        name,
        values,
        lengths,
        choice.value,
        choice.frame_length,
        truncate,
        lambda frame: locate(int(row_of_frame[frame])),
        unit="values in a frame",
        item="frame",
    )
    made, num_frames_kept = _fill(name, wide, num_frames, choice.value, choice.length, truncate, locate, unit="frames")
    kept, _ = _fill(name, lengths, num_frames, 0, choice.length, truncate, locate)
    return {name: made, f"{name}/length": num_frames_kept, f"{name}/frame_length": kept}


def _fill(
    name: str,
    values: Array,
    lengths: Int64Array,
    value: Any,
    length: int | None,
    truncate: bool,
    locate: Locate,
    *,
    unit: str = "values",
    item: str = "row",
) -> tuple[Array, Int64Array]:
    """Pad rows of values to one width; return the array and the number of values of each row."""
    longest = int(lengths.max(initial=0))
    if length is None:
        length = longest
    elif longest > length and truncate:
        starts = np.cumsum(lengths) - lengths
        values = values[np.arange(len(values)) - np.repeat(starts, lengths) < length]
        lengths = np.minimum(lengths, length)
    elif longest > length:
        row = int(lengths.argmax())
        shard, record, offset = locate(row) or (None, None, None)
        place = "" if shard is not None else f" in {item} {row} of the batch"
        raise ShapeError(
            f"feature {name!r} is padded to {length} {unit}, got {longest}{place}",
            shard=shard,
            record=record,
            offset=offset,
            hint=Hint(Step("truncate longer ones: {truncate}", truncate=True)),
        )
    fill = _fit_value(name, value, values.dtype)
    array = np.full((len(lengths), length, *values.shape[1:]), fill, values.dtype)
    array[np.arange(length) < lengths[:, None]] = values
    return array, lengths
