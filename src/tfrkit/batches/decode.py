"""The step that turns encoded values of a batch into arrays: images, masks, raw arrays, text."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrkit import _native
from tfrkit._types import Int64Array, OnError
from tfrkit.batches.collate import count_rows
from tfrkit.batches.decode_specs import (
    DecodeRequest,
    DecodeSpec,
    RawOptions,
    TextOptions,
    describe_output,
    read_request,
)
from tfrkit.batches.device_images import EncodedImages, require_device_options, split_images
from tfrkit.batches.raw_images import RawShapes, find_size_features, read_shapes, stack_raw
from tfrkit.codec.columns import BytesColumn, Column, Ragged, to_splits
from tfrkit.codec.decode import Batch
from tfrkit.errors import CodecError, FeatureKindError, Hint, MissingFeatureError, Step
from tfrkit.features.schema import Schema, describe_missing, find_nearest_name, show_name
from tfrkit.features.size_features import SizeFeatures
from tfrkit.images.decode import NUM_CHANNELS, Scratch, decode_into, decode_pixels, decode_with, measure_image
from tfrkit.images.mask import MaskOptions, decode_mask_pixels, decode_mask_with
from tfrkit.images.options import DecodeOptions

if TYPE_CHECKING:
    from concurrent.futures import Executor

Locate = Callable[[int], tuple[str, int, int]]
"""Maps a row of the batch to (shard, record in the shard, byte in the shard)."""

Dropped = list[tuple[int, CodecError]]
"""Rows left out of a batch, by number, each with its error."""

Failures = dict[int, CodecError]
"""Errors of values that did not decode, by index."""

# Suffixes of encoded images in TFDS, slim and the object detection API.
_SHORT_NAME_ENDS = ("/encoded",)
_MAX_NAMED = 8  # features listed in a message


class DecodeStage:
    """Decodes some features of every batch. Immutable, picklable, safe to share between threads.

    Example:
        >>> stage = DecodeStage({"image": (224, 224), "name": "text"}).bind(schema)
        >>> batch, dropped = stage(batch)
        >>> batch["image"].shape
        (64, 224, 224, 3)
    """

    def __init__(self, arguments: Mapping[str, Any], *, device: str | None = None) -> None:
        self.device = device
        self._requests = {name: read_request(name, argument) for name, argument in arguments.items()}
        # Size features of raw pixels; set by `bind`.
        self._sizes: dict[str, SizeFeatures] = {}

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the decoded features."""
        return tuple(self._requests)

    def bind(self, schema: Schema) -> DecodeStage:
        """Return this step bound to the features of a schema.

        A short name selects the feature that other programs write with a suffix: "image" selects
        "image/encoded". A mask of the schema is decoded as a mask unless a dict names another type. An unknown
        feature, a feature that is not bytes, and an invalid option raise here.
        """
        bound: dict[str, DecodeRequest] = {}
        for given, request in self._requests.items():
            name = _resolve_name(given, schema)
            if name in bound:
                raise ValueError(f"decode names feature {show_name(name)} twice")
            specs = [specs[name] for specs in (schema.features, schema.feature_lists) if name in specs]
            for spec in specs:
                if spec.kind != "bytes" or spec.encoding != "list":
                    held = spec.kind if spec.kind != "bytes" else f"a {spec.dtype or 'serialized'} array already"
                    raise FeatureKindError(f"decode of feature {show_name(name)} expected bytes, got {held}")
            bound[name] = request.for_feature(name, specs[0].logical)
        if self.device is not None:
            for name, request in bound.items():
                if isinstance(request.spec, DecodeOptions):
                    require_device_options(name, request.spec)
        stage = DecodeStage({}, device=self.device)
        stage._requests = bound
        stage._sizes = {name: find_size_features(name, schema) for name in bound}
        return stage

    def outputs(self) -> dict[str, tuple[str | None, tuple[int | None, ...]]]:
        """Return the dtype and shape of one decoded value of each feature; None marks a part that varies by record."""
        return {name: describe_output(request.spec) for name, request in self._requests.items()}

    def __call__(
        self,
        batch: Batch,
        executor: Executor | None = None,
        *,
        on_error: OnError = "raise",
        locate: Locate | None = None,
        leaves_images: bool = False,
    ) -> tuple[Batch, Dropped]:
        """Decode the features of a batch; return the batch and the rows left out of it.

        Images become one array if a size is given or all have the same size, else a list of arrays; ragged columns
        stay ragged. The first value of the batch that does not decode raises `CodecError` with the shard, record
        and byte; with `on_error="skip"` its row is left out of every column.

        With `leaves_images`, features with one image per row become `EncodedImages` for a device to decode.

        With an executor, its threads share the values of the batch. Never pass the executor that this call runs
        on: the call would wait for itself.
        """
        failed: dict[int, CodecError] = {}
        decoded = self._decode_columns(batch, executor, on_error, failed, leaves_images)
        if not failed:
            return decoded, []
        dropped = [(row, _say_where(failed[row], row, locate)) for row in sorted(failed)]
        if on_error == "raise":
            raise dropped[0][1]
        num_rows = count_rows(decoded) or 0
        kept = np.delete(np.arange(num_rows), [row for row, _ in dropped])
        return _take_rows_of_batch(decoded, kept), dropped

    def _decode_columns(
        self,
        batch: Batch,
        executor: Executor | None,
        on_error: OnError,
        failed: dict[int, CodecError],
        leaves_images: bool,
    ) -> Batch:
        if _is_sequence(batch):
            return {
                part: self._decode_columns(columns, executor, on_error, failed, leaves_images=False)
                for part, columns in batch.items()
            }
        decoded = dict(batch)
        for name, request in self._requests.items():
            column = batch.get(name)
            if column is None:
                continue
            values, rows = _find_values(name, column)
            size = getattr(request.spec, "size", None)
            sizes = self._sizes.get(name, SizeFeatures()) if rows is None else SizeFeatures()
            has_alpha = getattr(request.spec, "channels", None) == "rgba"
            shapes = read_shapes(size, sizes, batch, len(values), has_alpha=has_alpha)
            if leaves_images and rows is None and isinstance(request.spec, DecodeOptions):
                made, failures = split_images(values, request.spec, shapes)
            else:
                made, failures = decode_values(values, request.spec, executor, shapes, stop_early=on_error == "raise")
            decoded[name] = _wrap_like(column, made)
            for value in sorted(failures):
                row = _find_row(value, rows, len(column))
                if row is None or row in failed:
                    continue
                error = failures[value]
                which = "" if rows is None else f", value {value - int(rows[row])} of its row"
                hint = _name_feature(error.hint, name)
                failed[row] = CodecError(f"feature {show_name(name)} {error.what}{which}", hint=hint)
        return decoded


def decode_values(
    values: BytesColumn,
    spec: DecodeSpec,
    executor: Executor | None = None,
    shapes: RawShapes | None = None,
    *,
    stop_early: bool = False,
) -> tuple[Any, Failures]:
    """Decode all values of a column; return them and the errors. The content of a failed value is undefined.

    A value that is not an image is read as raw pixels if `shapes` has a shape for it.

    With `stop_early` no value is started after a failure; the lowest index in the errors is still the first failure.
    """
    if isinstance(spec, RawOptions):
        return _decode_raw(values, spec)
    if isinstance(spec, TextOptions):
        return _decode_text(values)
    return _decode_pictures(values, spec, executor, shapes or RawShapes(spec.size), stop_early)


# ---- images and masks --------------------------------------------------------------------------------------------


def _decode_pictures(
    values: BytesColumn,
    spec: DecodeOptions | MaskOptions,
    executor: Executor | None,
    shapes: RawShapes,
    stop_early: bool,
) -> tuple[Any, Failures]:
    stacked = stack_raw(values, shapes, spec) if isinstance(spec, DecodeOptions) else None
    if stacked is not None:
        return stacked, {}
    data, offsets = values.data.data, values.offsets.tolist()
    failures: Failures = {}
    target: Any = None
    if isinstance(spec, DecodeOptions) and spec.channels != "keep":
        size = spec.size or _find_common_size(data, offsets, spec, shapes, failures)
        if size is not None:
            shape = (len(values), *size, NUM_CHANNELS[spec.channels])
            target = _native.allocate_bytes(math.prod(shape)).reshape(shape)
    arrays: list[Any] = [] if target is not None else [None] * len(values)

    def decode(index: int, scratch: Scratch) -> None:
        encoded = data[offsets[index] : offsets[index + 1]]
        try:
            if target is not None:
                assert isinstance(spec, DecodeOptions)
                decode_into(encoded, spec, target[index], scratch)
            elif isinstance(spec, DecodeOptions):
                arrays[index] = decode_with(encoded, spec, scratch)
            else:
                arrays[index] = decode_mask_with(encoded, spec)
        except CodecError as error:
            shape = shapes.find(index, encoded)
            if shape is None:
                raise shapes.explain(error, index, encoded) from None
            if isinstance(spec, MaskOptions):
                arrays[index] = decode_mask_pixels(encoded, shape, spec)
            elif target is not None:
                decode_pixels(encoded, shape, spec, target[index])
            else:
                arrays[index] = decode_pixels(encoded, shape, spec)

    if not (stop_early and failures):
        _run(decode, len(values), executor, failures, stop_early)
    return target if target is not None else _stack(arrays, spec), failures


def _find_common_size(
    data: memoryview, offsets: Sequence[int], spec: DecodeOptions, shapes: RawShapes, failures: Failures
) -> tuple[int, int] | None:
    """Read the common size of all images from their headers; None if sizes differ or one is unknown."""
    common: tuple[int, int] | None = None
    for index, (start, stop) in enumerate(itertools.pairwise(offsets)):
        size: tuple[int, int] | None
        try:
            size = measure_image(data[start:stop], spec)
        except CodecError as error:
            shape = shapes.find(index, data[start:stop])
            if shape is None:
                failures[index] = shapes.explain(error, index, data[start:stop])
                continue
            size = shape[:2]
        if size is None or common not in (None, size):
            return None
        common = size
    return common


def _stack(arrays: list[Any], spec: DecodeOptions | MaskOptions) -> Any:
    """Stack arrays of one shape and dtype, else return the list. Failed values are None and fit any shape."""
    kinds = {(array.shape, array.dtype) for array in arrays if array is not None}
    if len(kinds) > 1:
        return arrays
    if kinds:
        shape, dtype = kinds.pop()
    else:
        dtype_name, sizes = describe_output(spec)
        shape, dtype = tuple(size or 0 for size in sizes), np.dtype(dtype_name or "uint8")
    stacked = np.empty((len(arrays), *shape), dtype)
    for index, array in enumerate(arrays):
        if array is not None:
            stacked[index] = array
    return stacked


def _run(
    decode: Callable[[int, Scratch], None],
    count: int,
    executor: Executor | None,
    failures: Failures,
    stop_early: bool,
) -> None:
    """Call `decode` for every index that has not failed yet, on the threads of the executor or on this one."""
    # Shared by all threads. `next` is one step of C code, so no two threads get the same index. Indices are handed out
    # in order, so when one has failed, all before it are done or under way.
    waiting = iter([index for index in range(count) if index not in failures])

    def work() -> None:
        scratch = Scratch()
        for index in waiting:
            try:
                decode(index, scratch)
            except CodecError as error:
                failures[index] = error
            if stop_early and failures:
                return

    if executor is None or count <= 1:
        work()
        return
    from concurrent.futures import wait

    jobs = [executor.submit(work) for _ in range(min(count, os.cpu_count() or 1))]
    wait(jobs)
    for job in jobs:
        job.result()


# ---- raw arrays and text -----------------------------------------------------------------------------------------


def _decode_raw(values: BytesColumn, spec: RawOptions) -> tuple[Any, Failures]:
    dtype = np.dtype(spec.dtype)
    known = dtype.itemsize * int(np.prod([size for size in spec.shape if size is not None], dtype=np.int64))
    lengths = values.lengths
    is_open = None in spec.shape
    is_right = lengths % known == 0 if is_open else lengths == known
    failures = {
        int(index): CodecError(
            f"expected {'a multiple of ' if is_open else ''}{known} bytes (shape {spec.shape}, {spec.dtype}), "
            f"got {int(lengths[index])}"
        )
        for index in np.flatnonzero(~is_right)
    }
    if failures or len(np.unique(lengths)) > 1:
        shape = tuple(-1 if size is None else size for size in spec.shape)
        arrays = [None if i in failures else np.frombuffer(v, dtype).reshape(shape) for i, v in enumerate(values)]
        found = {array.shape for array in arrays if array is not None}
        if len(found) > 1:
            return arrays, failures
        one = found.pop() if found else tuple(size or 0 for size in spec.shape)
        stacked = np.zeros((len(arrays), *one), dtype)
        for index, array in enumerate(arrays):
            if array is not None:
                stacked[index] = array
        return stacked, failures
    num_open = int(lengths[0]) // known if len(lengths) else 0
    shape = (len(values), *(num_open if size is None else size for size in spec.shape))
    data = values.data[int(values.offsets[0]) : int(values.offsets[-1])] if len(values) else values.data[:0]
    # Only unaligned numbers are copied.
    array = np.frombuffer(data, dtype)
    return (array if array.flags.aligned else array.copy()).reshape(shape), failures


def _decode_text(values: BytesColumn) -> tuple[Any, Failures]:
    texts = np.empty(len(values), object)
    failures: Failures = {}
    for index, value in enumerate(values):
        try:
            texts[index] = value.decode("utf-8")
        except UnicodeDecodeError as error:
            failures[index] = CodecError(
                f"expected UTF-8 text, got byte 0x{value[error.start]:02x} at {error.start} of {len(value)}"
            )
    return texts, failures


# ---- columns and rows --------------------------------------------------------------------------------------------


def _resolve_name(name: str, schema: Schema) -> str:
    if name in schema:
        return name
    matches = [name + end for end in _SHORT_NAME_ENDS if name + end in schema]
    if len(matches) == 1:
        return matches[0]
    is_near = find_nearest_name(name, schema.names) is not None
    hint = None if is_near else f"there are: {_list_names(schema.names)}"
    raise MissingFeatureError(describe_missing(name, schema.names), hint=hint)


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(names[:_MAX_NAMED]) + (f", … {len(names)} in all" if len(names) > _MAX_NAMED else "")


def _find_values(name: str, column: Column) -> tuple[BytesColumn, Int64Array | None]:
    """Flatten a column; return its values and the start of each row, None if each row has one value."""
    rows: Int64Array | None = None
    while isinstance(column, Ragged):
        splits = column.row_splits
        rows = splits if rows is None else splits[rows]
        column = column.values
    if not isinstance(column, BytesColumn):
        raise FeatureKindError(
            f"decode of feature {show_name(name)} expected bytes, got {getattr(column, 'dtype', type(column).__name__)}"
        )
    return column, rows


def _name_feature(hint: str | None, name: str) -> str | None:
    """Replace "NAME" in a hint by the name of the feature, which the decoder of a value does not know."""
    if hint is None or '"NAME"' not in hint:
        return hint
    return Hint(Step(hint.replace('"NAME"', repr(name)), in_python=True))


def _find_row(value: int, rows: Int64Array | None, num_rows: int) -> int | None:
    """Find the row of the batch that a value belongs to; None if it is outside all rows, as in a slice."""
    row = value if rows is None else int(np.searchsorted(rows, value, side="right")) - 1
    return row if 0 <= row < num_rows else None


def _wrap_like(column: Column, values: Any) -> Column:
    if isinstance(column, Ragged):
        return Ragged(_wrap_like(column.values, values), column.row_splits, column.presence)
    return values


def _say_where(error: CodecError, row: int, locate: Locate | None) -> CodecError:
    if locate is None:
        return error.replace(row=row)
    shard, record, offset = locate(row)
    return error.replace(shard=shard, record=record, offset=offset)


def _is_sequence(batch: Batch) -> bool:
    return set(batch) == {"context", "feature_lists"} and all(isinstance(part, dict) for part in batch.values())


def _take_rows_of_batch(batch: Batch, rows: Int64Array) -> Batch:
    return {
        name: _take_rows_of_batch(column, rows) if isinstance(column, dict) else take_rows(column, rows)
        for name, column in batch.items()
    }


def take_rows(column: Column, rows: Int64Array) -> Column:
    """Copy some rows of a column."""
    if isinstance(column, np.ndarray):
        return column[rows]
    if isinstance(column, EncodedImages):
        return column.take(rows)
    if isinstance(column, BytesColumn):
        presence = None if column.presence is None else column.presence[rows]
        taken = BytesColumn.from_values([column[int(row)] for row in rows])
        return BytesColumn(taken.data, taken.offsets, presence)
    if isinstance(column, Ragged):
        lengths = column.lengths[rows]
        splits = to_splits(lengths)
        starts = np.repeat(column.row_splits[:-1][rows] - splits[:-1], lengths)
        presence = None if column.presence is None else column.presence[rows]
        return Ragged(take_rows(column.values, starts + np.arange(splits[-1])), splits, presence)
    return [column[int(row)] for row in rows]
