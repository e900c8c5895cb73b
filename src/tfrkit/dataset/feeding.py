"""Conversions of a Dataset to tables, tensors and data sources. Each method imports its library when called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tfrkit.batches.collate import describe_batch
from tfrkit.batches.loop import Batching
from tfrkit.batches.stages import DecodeFeatures
from tfrkit.dataset.batched import Batches
from tfrkit.dataset.part import Part
from tfrkit.features.schema import Schema
from tfrkit.orders.order import Order

if TYPE_CHECKING:
    import pandas
    import polars

    from tfrkit.feeds.arrow import ArrowStream
    from tfrkit.feeds.grain import GrainSource
    from tfrkit.feeds.torch import TorchRows

# Limits of a batch for a table, in rows and bytes: many small rows, few images.
_ARROW_ROWS = 8192
_ARROW_NBYTES = 64 << 20
# Rows to find the features after `map` from, which are known only by calling its function.
_SAMPLED_ROWS = 32


class Feeding(Part):
    """Conversions of a `Dataset` for other libraries."""

    gives_rows: ClassVar[bool] = True
    """Tells writers to read this object as an iterable of rows, though it also exports an Arrow stream."""

    def to_arrow(self) -> ArrowStream:
        """Return an Arrow stream of the rows (the PyCapsule protocol), for pyarrow, polars, DuckDB and others.

        Nothing is read before the stream is used; each use is a new pass. ``pyarrow.table(ds)`` works as well.
        """
        from tfrkit.feeds.arrow import to_arrow

        return to_arrow(lambda: iter(self._batch_for_tables()), self._schema_of_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.to_arrow().__arrow_c_schema__()

    def to_pandas(self) -> pandas.DataFrame:
        """Read all rows into a pandas DataFrame."""
        from tfrkit.feeds.frames import to_pandas

        return to_pandas(self.to_arrow())

    def to_polars(self) -> polars.DataFrame:
        """Read all rows into a polars DataFrame."""
        from tfrkit.feeds.frames import to_polars

        return to_polars(self.to_arrow())

    def to_hf(self, *, streaming: bool = False) -> Any:
        """Return a Hugging Face datasets.Dataset of all rows, or an IterableDataset with `streaming`."""
        from tfrkit.feeds.huggingface import to_hf

        stream = self.to_arrow()
        return to_hf(stream, streaming=True) if streaming else to_hf(stream)

    def to_torch(self) -> TorchRows:
        """Return a map-style torch.utils.data.Dataset of rows. For batches and ranks: ``ds.batch(64).to_torch()``."""
        from tfrkit.feeds.torch import TorchRows

        return TorchRows(self)

    def to_tf(self) -> Any:
        """Return a tf.data.Dataset of rows. Batches are faster: ``ds.batch(64).to_tf()``."""
        from tfrkit.feeds.tensorflow import rows_to_tf

        return rows_to_tf(self._batch_for_tables())

    def to_jax(self) -> dict[str, Any]:
        """Read all rows into JAX arrays, by feature. To iterate over batches: ``ds.batch(64).to_jax()``."""
        from tfrkit.feeds.jax import JaxLoader

        batches: dict[str, Any] = next(iter(JaxLoader(self._make_batches(Batching(max(1, len(self)))))), {})
        return batches

    def to_grain(self) -> GrainSource:
        """Return a random access data source of rows for Grain."""
        from tfrkit.feeds.grain import GrainSource

        return GrainSource(self, self._make_batches(Batching(1)))

    def _schema_of_batches(self) -> Schema:
        """Find the schema of batches after `map` and `decode`."""
        steps = self._recipe.stages
        if not steps:
            return self.schema
        batch = next(iter(self._make_batches(Batching(_SAMPLED_ROWS))), None)
        varying = {name for step in steps if isinstance(step, DecodeFeatures) for name in step.varying}
        return self.schema if batch is None else describe_batch(batch, self.schema, varying)

    def _batch_for_tables(self) -> Batches:
        size = max(1, min(_ARROW_ROWS, _ARROW_NBYTES // max(1, self._set.mean_nbytes)))
        return self._make_batches(Batching(size))

    def _make_batches(self, batching: Batching, order: Order | None = None) -> Batches:
        recipe = self._recipe
        order = recipe.order if order is None else order
        return Batches(
            self._set, batching, features=recipe.features, order=order, stages=recipe.stages, epoch=recipe.epoch
        )
