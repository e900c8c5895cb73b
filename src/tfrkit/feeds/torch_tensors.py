"""Batches as PyTorch tensors, and their transfer between processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfrkit._optional import import_or_explain
from tfrkit.codec.columns import BytesColumn, Column, Ragged
from tfrkit.codec.decode import Batch
from tfrkit.feeds.columns import list_bytes

if TYPE_CHECKING:
    import torch

Array = np.ndarray[Any, np.dtype[Any]]

# dtypes that both NumPy and PyTorch have, by NumPy's codes; others are not converted.
_NUMBERS = frozenset("?bBhHiIlLqQefdFD")
# Up to this size a pipe is faster than shared memory, which needs a handshake per block.
_PIPE_NBYTES = 1 << 20
# Alignment of arrays in memory that is shared or copied.
ALIGNMENT = 64


@cache
def load_torch() -> Any:
    """Import PyTorch, or raise an ImportError with the command that installs it."""
    return import_or_explain("torch", "torch")


class RaggedTensor(NamedTuple):
    """Rows of different lengths: row `i` is `values[row_splits[i]:row_splits[i + 1]]`.

    The layout is that of `tfrkit.Ragged`, and the input of EmbeddingBag and of attention over packed sequences. A named
    tuple works with all code that moves a batch: pinning, `.to(device)` of training frameworks, tree_map. `values` is a
    tensor, a list (bytes, text), or a RaggedTensor (steps of a feature list). `presence`, if not None, distinguishes an
    absent feature (0) and one without a kind (1) from an empty list (2).
    """

    values: Any
    row_splits: torch.Tensor
    presence: torch.Tensor | None = None

    @property
    def lengths(self) -> torch.Tensor:
        """Number of values of each row."""
        return self.row_splits.diff()

    def rows(self) -> list[Any]:
        """Return the rows as a list of views."""
        if isinstance(self.values, RaggedTensor):
            inner = self.values.rows()
            return [inner[start:stop] for start, stop in pairwise(self.row_splits.tolist())]
        return [self.values[start:stop] for start, stop in pairwise(self.row_splits.tolist())]

    def to_nested(self) -> torch.Tensor:
        """Return a PyTorch nested tensor over the same memory, with layout torch.jagged. For numbers only."""
        return load_torch().nested.nested_tensor_from_jagged(self.values, self.row_splits)


def find_exchange() -> Any:
    """Return PyTorch's C functions that make tensors over memory of others; None if it is too old to have them."""
    return getattr(load_torch().Tensor, "__dlpack_c_exchange_api__", None)


def convert_batch(batch: Batch) -> Batch:
    """Convert the arrays of a batch to tensors over the same memory. What is a tensor already stays."""
    tensor = load_torch().Tensor
    if set(map(type, batch.values())) == {tensor}:
        return batch
    # Inline for the usual case: a batch may have many columns, and calls cost time.
    return {name: column if type(column) is tensor else convert_column(column) for name, column in batch.items()}


def convert_batches(batches: Iterator[tuple[Batch, int]]) -> Iterator[tuple[Batch, int]]:
    """Yield each batch as tensors, with the row where it ends."""
    for batch, row in batches:
        yield convert_batch(batch), row


def convert_column(column: Any, look_up: Callable[[Any], Any] = lambda column: column) -> Any:
    """Convert every array of numbers of a column to a tensor; bytes and text become lists.

    `look_up` replaces a placeholder by its array or tensor.
    """
    column = look_up(column)
    if isinstance(column, np.ndarray):
        return convert_array(column)
    if isinstance(column, BytesColumn):
        return list_bytes(BytesColumn(look_up(column.data), look_up(column.offsets)))
    if isinstance(column, Ragged):
        presence = None if column.presence is None else convert_column(column.presence, look_up)
        return RaggedTensor(
            convert_column(column.values, look_up), convert_column(column.row_splits, look_up), presence
        )
    if isinstance(column, list):
        return [convert_column(value, look_up) for value in column]
    if isinstance(column, dict):
        return {name: convert_column(value, look_up) for name, value in column.items()}
    return column


def convert_array(array: Array) -> Any:
    """Convert an array to a tensor over the same memory, or text to a list. Other dtypes are unchanged."""
    if array.dtype.char == "Q":
        array = array.view(np.uint64)  # the same, under a name that PyTorch knows
    flags = array.flags
    if array.dtype.char in _NUMBERS and flags.c_contiguous and flags.writeable and array.dtype.isnative:
        return load_torch().from_numpy(array)
    if array.dtype.char not in _NUMBERS:
        return array.tolist() if array.dtype.kind in "OSU" else array
    # A tensor cannot have another byte order, gaps as in a view, or read-only memory: copy.
    return load_torch().from_numpy(np.array(array, array.dtype.newbyteorder("="), order="C"))


class Slot(NamedTuple):
    """Placeholder for an array in a block of memory."""

    char: str  # of its dtype, in the byte order of this machine
    shape: tuple[int, ...]
    offset: int


class Packing:
    """A batch whose numbers are to be copied to one block of memory of `nbytes`.

    `contents` is the batch with a `Slot` for each array. Without `with_bytes`, bytes stay columns.
    """

    def __init__(self, batch: Batch, *, with_bytes: bool = True) -> None:
        self.nbytes = 0
        self._arrays: list[tuple[Array, Slot]] = []
        self._with_bytes = with_bytes
        self.contents: Batch = {name: self._pack(column) for name, column in batch.items()}

    def copy_to(self, buffer: Array) -> None:
        """Copy the numbers to memory of `nbytes`."""
        for array, slot in self._arrays:
            view_slot(buffer, slot)[...] = array

    def _pack(self, column: Column) -> Any:
        if isinstance(column, np.ndarray):
            if column.dtype.char not in _NUMBERS:
                return column
            slot = Slot(column.dtype.char, column.shape, self.nbytes)
            self._arrays.append((column, slot))
            self.nbytes += -(-column.nbytes // ALIGNMENT) * ALIGNMENT
            return slot
        if isinstance(column, BytesColumn) and self._with_bytes:
            first, last = (int(column.offsets[0]), int(column.offsets[-1])) if len(column.offsets) else (0, 0)
            offsets = column.offsets - first if first else column.offsets
            return BytesColumn(self._pack(column.data[first:last]), self._pack(offsets))
        if isinstance(column, Ragged):
            presence = None if column.presence is None else self._pack(column.presence)
            return Ragged(self._pack(column.values), self._pack(column.row_splits), presence)
        if isinstance(column, list):
            return [self._pack(value) for value in column]
        if isinstance(column, dict):
            return {name: self._pack(value) for name, value in column.items()}
        return column


class Parcel:
    """A batch sent by a worker. Unpickling returns the batch as tensors.

    All its numbers are in one block of memory, which is shared if large. PyTorch would share each tensor separately,
    which for twenty columns takes longer than reading them.
    """

    def __init__(self, batch: Batch) -> None:
        packing = Packing(batch)
        self._contents = packing.contents
        self._memory: bytearray | torch.Tensor
        if packing.nbytes <= _PIPE_NBYTES:
            self._memory = bytearray(packing.nbytes)
        else:
            torch = load_torch()
            # The same call as in PyTorch's collate in a worker.
            storage = torch.UntypedStorage._new_shared(packing.nbytes, device="cpu")
            self._memory = torch.empty(0, dtype=torch.uint8).set_(storage)
        packing.copy_to(_view_memory(self._memory))

    def open(self) -> Batch:
        """Return the batch as tensors over the shared memory."""
        return _open_parcel(self._memory, self._contents)

    def __reduce__(self) -> tuple[object, ...]:
        return _open_parcel, (self._memory, self._contents)


class OpenParcel(dict[str, Any]):
    """A batch of tensors that is sent as a `Parcel` unless its values were replaced."""

    def __init__(self, parcel: Parcel, batch: Batch) -> None:
        super().__init__(batch)
        self._parcel = parcel
        self._packed = batch

    def __copy__(self) -> OpenParcel:
        copied = OpenParcel(self._parcel, self._packed)
        copied.clear()
        copied.update(self)
        return copied

    def __reduce__(self) -> tuple[object, ...]:
        packed = self._packed
        if self.keys() == packed.keys() and all(value is packed[name] for name, value in self.items()):
            return self._parcel.__reduce__()
        return dict, (dict(self),)


def _open_parcel(memory: bytearray | torch.Tensor, contents: Batch) -> Batch:
    buffer = _view_memory(memory)

    def look_up(slot: Any) -> Any:
        return view_slot(buffer, slot) if isinstance(slot, Slot) else slot

    return {name: convert_column(column, look_up) for name, column in contents.items()}


def _view_memory(memory: bytearray | torch.Tensor) -> Array:
    return np.frombuffer(memory, np.uint8) if isinstance(memory, bytearray) else memory.numpy()


def view_slot(buffer: Array, slot: Slot) -> Array:
    """Return the array in a block of memory."""
    return np.ndarray(slot.shape, slot.char, buffer, slot.offset)
