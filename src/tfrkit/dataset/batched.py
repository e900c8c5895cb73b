"""Batches, the result of `Dataset.batch`, and their conversion for other frameworks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfrkit._familiar import OF_BATCHES, explain_attribute
from tfrkit.batches.loop import BatchLoop
from tfrkit.batches.stages import BatchFunction, MapBatches, MapRows
from tfrkit.orders.plan import Even

if TYPE_CHECKING:
    from tfrkit.feeds.jax import JaxLoader
    from tfrkit.feeds.torch import TorchBatches, TorchLoader


# Names of `BatchLoop` that users need; the others are for loaders.
_INHERITED = ("epoch", "schema", "set_epoch")


class Batches(BatchLoop):
    """Batches of a dataset. Iterate over them; each pass is the next epoch.

    `iter` returns an iterator that saves and restores its position by `state_dict` and `load_state_dict`.

    Ranks and batch size. `to_torch`, `to_torch_dataset` and `to_jax` share every batch between the ranks (processes) of
    a training job. The batch size counts the rows of all ranks together: ``batch(64)`` on 8 ranks is 8 rows each, and
    global batch k is the same 64 rows on any number of ranks. ``batch(64, per_rank=True)`` is 64 rows on each rank and
    512 on all together. If `per_rank` is not given, the first of several ranks warns with both numbers.
    With ``max_tokens`` each rank has the whole budget. A state may be loaded with another number of ranks or workers,
    or another batch size, because it counts rows of the epoch; with ``bucket`` or ``max_tokens``, which choose the rows
    of a batch, only with the same ones.

    Example:
        >>> batches = ds.shuffle(seed=7).batch(256)
        >>> for epoch in range(3):
        ...     for batch in batches:
        ...         train(batch["image"], batch["label"])
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise explain_attribute(self, name, OF_BATCHES)

    def __getitem__(self, index: object) -> Any:
        raise TypeError(
            "batches are iterated over and have no index: for batch in ds.batch(64)\n"
            "  for PyTorch: ds.batch(64).to_torch()    for a DataLoader of your own: "
            "DataLoader(ds.batch(64).to_torch_dataset(), batch_size=None), or rows: "
            "DataLoader(ds.to_torch(), batch_size=64)"
        )

    def __dir__(self) -> list[str]:
        return sorted({*(name for name in super().__dir__() if name.startswith("_")), *vars(Batches), *_INHERITED})

    def __repr__(self) -> str:
        if any(isinstance(stage, (MapBatches, MapRows)) for stage in self._stages):
            return f"Batches({self._batching.describe()}, epoch {self.epoch}: mapped)"
        return super().__repr__()

    def map(self, function: BatchFunction, *, processes: int | None = None) -> Batches:
        """Apply `function` to every batch. It runs on the reading threads, or in a number of `processes`."""
        return self.rebuild(stages=[MapBatches(function, processes=processes)])

    def to_torch(
        self,
        *,
        num_workers: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        even: Even = "pad",
        device: Any = None,
        **options: Any,
    ) -> TorchLoader:
        """Return a loader of PyTorch tensors that resumes exactly.

        Every row is read once per epoch for any number of workers and ranks, and global batch k always has the same
        rows. Only `even` adds to that: it makes the last batch even between ranks by repeating ("pad") or dropping
        ("drop") rows. Rank and world size default to those of torch.distributed if it is initialized, else to RANK and
        WORLD_SIZE, which torchrun sets. `options` are passed to torch.utils.data.DataLoader. If a trainer makes the
        DataLoader itself, use `to_torch_dataset` instead.

        With `device`, batches are tensors on that device, copied from pinned memory on a side stream two batches ahead.
        The default is the device given to `decode`, if any; JPEGs are then decoded on it.

        Example:
            >>> loader = ds.shuffle(seed=7).batch(4, per_rank=True).to_torch(num_workers=2)
            >>> for batch in loader:
            ...     state = loader.state_dict()  # resumes after this batch: loader.load_state_dict(state)
        """
        from tfrkit.feeds.torch import TorchLoader

        return TorchLoader(
            self,
            num_workers=num_workers,
            rank=rank,
            world_size=world_size,
            even=even,
            device=device,
            options=options,
        )

    def to_torch_dataset(
        self, *, rank: int | None = None, world_size: int | None = None, even: Even = "pad"
    ) -> TorchBatches:
        """Return the batches as a torch.utils.data.IterableDataset, for your own DataLoader or StatefulDataLoader.

        Pass it to the loader with ``batch_size=None``: its items are batches, shared between workers and ranks. Each
        row is read once per epoch. If workers are restarted for each pass, call `set_epoch` first, as with a
        DistributedSampler. Without workers, or with ``persistent_workers=True``, the epoch advances by itself.
        For a trainer that distributes batches itself, pass ``rank=0, world_size=1``.

        torchdata's StatefulDataLoader can save and restore it within an epoch, with the same number of workers. The
        loader of `to_torch` resumes with any number of workers.

        Example:
            >>> dataset = ds.shuffle(seed=7).batch(4).to_torch_dataset()
            >>> loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2)
            >>> for epoch in range(2):
            ...     dataset.set_epoch(epoch)
            ...     for batch in loader:
            ...         train(batch["image"], batch["label"])
        """
        from tfrkit.feeds.loader import share_loop
        from tfrkit.feeds.torch import TorchBatches, find_rank

        return TorchBatches(share_loop(self, rank=rank, world_size=world_size, even=even, find_rank=find_rank))

    def to_jax(
        self,
        *,
        sharding: Any = None,
        rank: int | None = None,
        world_size: int | None = None,
        even: Even = "pad",
        device: str | None = None,
    ) -> JaxLoader:
        """Return a loader of JAX arrays, placed by `sharding` if given. It resumes exactly, as `to_torch` does.

        Rank and world size default to those of JAX's processes. With ``device="cuda"``, images of a `decode` with a
        device are decoded on the GPU if they are JPEGs, which requires PyTorch and torchvision.
        """
        from tfrkit.feeds.jax import JaxLoader

        return JaxLoader(self, sharding=sharding, rank=rank, world_size=world_size, even=even, device=device)

    def to_tf(self, *, epochs: int | None = None) -> Any:
        """Return a tf.data.Dataset of these batches. Each pass over it is the next epoch.

        With `epochs`, every pass reads the same `epochs` epochs, and tf.train.Checkpoint can save the position.
        """
        from tfrkit.feeds.tensorflow import batches_to_tf

        return batches_to_tf(self, epochs=epochs)
