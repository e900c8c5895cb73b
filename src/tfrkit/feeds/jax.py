"""JAX: batches as device arrays. The next batch is transferred during a training step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from tfrkit._optional import import_or_explain
from tfrkit.batches.loop import BatchLoop
from tfrkit.batches.state import Position
from tfrkit.codec.columns import Ragged
from tfrkit.codec.decode import Batch
from tfrkit.errors import SchemaError, ShapeError
from tfrkit.feeds.loader import Loader, make_ahead, share_loop
from tfrkit.orders.plan import Even

Array = np.ndarray[Any, np.dtype[Any]]

_NUMBER_KINDS = "biufc"


class JaxLoader(Loader):
    """A loader of batches of JAX arrays. Each pass over it is the next epoch; `epoch` is the epoch of the next pass.

    A batch is a dict. Arrays of numbers are put on the default device, or placed by `sharding`: each process then
    reads its own part, and the array is the whole batch. Ragged features are `tfrkit.Ragged` of device arrays, a pytree
    for JAX. With a sharding they stay NumPy arrays, because their parts have no common shape: pad them in `batch`.
    Bytes and text are unchanged.

    JAX converts 64-bit numbers to 32 bits unless ``jax_enable_x64`` is set. Integers that do not fit raise.

    Rank and world size default to those of JAX's processes. `state_dict` counts delivered batches; it may be loaded
    with another number of processes or another batch size.

    Example:
        >>> loader = ds.shuffle(seed=7).batch(64, drop_last=True).to_jax()
        >>> for batch in loader:
        ...     params = update(params, batch["image"], batch["label"])
    """

    def __init__(
        self,
        loop: BatchLoop,
        *,
        sharding: Any = None,
        rank: int | None = None,
        world_size: int | None = None,
        even: Even = "pad",
        device: str | None = None,
    ) -> None:
        # With a sharding an array is the batch of all processes, so the user sees the global size.
        is_whole = sharding is not None
        shared = share_loop(
            loop, rank=rank, world_size=world_size, even=even, find_rank=_find_rank, shows_whole=is_whole
        )
        device = loop.device if device is None else device
        self._feed = None
        if device not in (None, "cpu"):
            if sharding is not None:
                raise ValueError("device cannot be combined with sharding: each process decodes on its own device")
            from tfrkit.feeds.torch_device import DeviceFeed

            self._feed = DeviceFeed(device, images_only=True)
            if self._feed.device.type == "cuda" and all(one.platform == "cpu" for one in _load_jax().devices()):
                raise RuntimeError(
                    f"device {device!r} expected a GPU, JAX sees none, only PyTorch does\n  install jax with CUDA"
                )
            shared = shared.leave_images()
        super().__init__(shared)
        self._sharding = sharding
        _load_jax()

    def _start(self, start: Position) -> Iterator[tuple[Batch, int]]:
        batches = self._loop.run(epoch=start.epoch, row=start.row)
        if self._feed is not None:
            batches = self._feed.run(batches)
        # Putting an array on a device only starts the copy, so the next batch is copied during a step.
        return make_ahead(((self._place(batch), row) for batch, row in batches), 1)

    def _place(self, batch: Batch) -> Batch:
        return {
            name: self._place(column) if isinstance(column, dict) else self._place_column(name, column)
            for name, column in batch.items()
        }

    def _place_column(self, name: str, column: Any) -> Any:
        if isinstance(column, np.ndarray) and column.dtype.kind in _NUMBER_KINDS:
            return self._place_array(name, column)
        if self._feed is not None and self._feed.is_image(column):
            return _load_jax().dlpack.from_dlpack(column)
        if isinstance(column, Ragged) and self._sharding is None:
            presence = None if column.presence is None else self._place_array(name, column.presence)
            splits = self._place_array(name, column.row_splits)
            return Ragged(self._place_column(name, column.values), splits, presence)
        return column

    def _place_array(self, name: str, array: Array) -> Any:
        jax = _load_jax()
        _require_fit(name, array, jax)
        if self._sharding is None:
            return jax.device_put(array)
        try:
            return jax.make_array_from_process_local_data(self._sharding, array)
        except ValueError as error:
            raise ShapeError(
                f"feature {name!r} of shape {array.shape} cannot be divided by the sharding, {error}",
                hint="leave out a last batch of fewer rows: batch(size, drop_last=True)",
            ) from error


def _require_fit(name: str, array: Array, jax: Any) -> None:
    """Raise if JAX would truncate integers."""
    if array.dtype.itemsize < 8 or array.dtype.kind not in "iu" or array.size == 0 or jax.config.jax_enable_x64:
        return
    limits = np.iinfo(np.int32 if array.dtype.kind == "i" else np.uint32)
    least, most = int(array.min()), int(array.max())
    if least < limits.min or most > limits.max:
        raise SchemaError(
            f"feature {name!r} expected integers that fit in 32 bits, to which JAX converts them, "
            f"got {least if least < limits.min else most}",
            hint='keep 64 bits: jax.config.update("jax_enable_x64", True)',
        )


def _find_rank() -> tuple[int, int]:
    jax = _load_jax()
    return int(jax.process_index()), int(jax.process_count())


@cache
def _load_jax() -> Any:
    """Import JAX and register `Ragged` as a pytree."""
    jax = import_or_explain("jax", "jax")
    jax.tree_util.register_pytree_node(
        Ragged,
        lambda ragged: ((ragged.values, ragged.row_splits, ragged.presence), None),
        lambda _, children: Ragged(*children),
    )
    return jax
