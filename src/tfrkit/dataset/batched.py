"""Batches: what `Dataset.batch` gives, and its ways into other frameworks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfrkit._familiar import OF_BATCHES, explain_attribute
from tfrkit.batches.loop import BatchLoop
from tfrkit.batches.stages import BatchFunction, MapBatches, MapRows
from tfrkit.orders.plan import Even

if TYPE_CHECKING:
    from tfrkit.feeds.jax import JaxLoader
    from tfrkit.feeds.torch import TorchBatches, TorchLoader


# What users call of the loop; the rest is for loaders.
_INHERITED = ("epoch", "schema", "set_epoch")


class Batches(BatchLoop):
    """Batches of a dataset. Iterate over them; each pass is the next epoch.

    `iter` returns an iterator whose `state_dict` and `load_state_dict` save and restore its position.

    Ranks and batch size. `to_torch`, `to_torch_dataset` and `to_jax` share every batch between the ranks (processes) of
    a training. The size of a batch is that of all ranks together: ``batch(64)`` over 8 ranks is 8 rows on each, and
    global batch k is the same 64 rows on any number of ranks. ``batch(64, per_rank=True)`` is 64 rows on each rank and
    512 on all together. Without `per_rank`, the first of several ranks warns with both numbers.
    With ``max_tokens`` the budget is that of each rank. A state may be loaded with another number of ranks, workers or
    rows; it counts rows of the epoch.

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
            "batches are iterated over, not picked by number: for batch in ds.batch(64)\n"
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
        """Every batch as `function` returns it. Runs on the reading threads, or in `processes`."""
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
        """A loader of PyTorch tensors that resumes exactly.

        Over an epoch every row comes exactly once, whatever the number of workers and ranks, and global batch k is
        always the same rows. Rank and world size are those of torch.distributed where it is set up, else those of RANK
        and WORLD_SIZE, which torchrun sets. `even` makes the last batch even between ranks: repeat rows ("pad") or drop
        rows ("drop"). `options` go to torch.utils.data.DataLoader. It is a loader itself; where a trainer makes the
        DataLoader, give it what `to_torch_dataset` returns.

        With `device` batches are tensors there, copied from pinned memory on a side stream two batches ahead; where
        `decode` was given a device, that is the default, and JPEGs are decoded there.

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
        """The same batches as a torch.utils.data.IterableDataset, for your own DataLoader or StatefulDataLoader.

        Give it to the loader with ``batch_size=None``: its items are batches. Workers and ranks share them, each row
        comes once per epoch. If workers are restarted for each pass, call `set_epoch` before it, as with PyTorch's
        DistributedSampler; without workers, or with ``persistent_workers=True``, each pass is the next epoch by itself.
        For a trainer that distributes batches itself, pass ``rank=0, world_size=1``.

        torchdata's StatefulDataLoader saves and restores it in the middle of an epoch, with as many workers as it was
        saved with. The loader of `to_torch` resumes with any number of workers.

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
        """A loader of JAX arrays, placed by `sharding` where one is given. Resumes exactly, as `to_torch` does.

        Rank and world size are those of JAX's processes unless given. With ``device="cuda"`` JPEGs that `decode` was
        given with a device are decoded there, which takes PyTorch and torchvision.
        """
        from tfrkit.feeds.jax import JaxLoader

        return JaxLoader(self, sharding=sharding, rank=rank, world_size=world_size, even=even, device=device)

    def to_tf(self, *, epochs: int | None = None) -> Any:
        """A tf.data.Dataset of these batches. Each pass over it is the next epoch.

        With `epochs` one pass is that number of epochs, always the same; tf.train.Checkpoint can save the position.
        """
        from tfrkit.feeds.tensorflow import batches_to_tf

        return batches_to_tf(self, epochs=epochs)
