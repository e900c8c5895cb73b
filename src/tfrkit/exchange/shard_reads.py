"""Shards that the tasks of another program read, each on its own, with one schema for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfrkit._optional import import_or_explain
from tfrkit._types import OnError, Verify
from tfrkit.dataset.opening import open_dataset
from tfrkit.features.schema import Schema
from tfrkit.storage.options import StorageOptions, given_options, set_options
from tfrkit.storage.resolve import Address


@dataclass(frozen=True)
class ShardReads:
    """A dataset as data: paths, schema and options. It can be pickled, and holds no open file."""

    paths: tuple[str, ...]
    schema: Schema
    features: tuple[str, ...] | None
    verify: Verify
    on_error: OnError
    stores: tuple[tuple[str, StorageOptions], ...]
    nbytes: tuple[int, ...]
    counts: tuple[int, ...] | None

    @classmethod
    def of(
        cls,
        address: Address | Iterable[Address],
        *,
        features: Sequence[str] | None = None,
        schema: Schema | Mapping[str, Any] | None = None,
        verify: Verify = "all",
        on_error: OnError = "raise",
        storage: Mapping[str, Any] | None = None,
    ) -> ShardReads:
        """Open a dataset to find its shards and its schema; nothing else is read."""
        dataset = open_dataset(
            address, schema=schema, features=features, verify=verify, on_error=on_error, storage=storage
        )
        shards = dataset._set.shards
        counts = dataset._set.records.known_counts
        found = cls(
            tuple(dataset.files),
            dataset._set.schema,
            None if features is None else tuple(features),
            verify,
            on_error,
            tuple(given_options(dataset.files).items()),
            tuple(shard.nbytes or 0 for shard in shards),
            None if counts is None else tuple(counts),
        )
        dataset._set.close()
        return found

    def read(self, paths: Sequence[str], features: Sequence[str] | None = None) -> Iterator[Any]:
        """Yield the record batches of some shards, in order; `features` overrides those of the dataset."""
        arrow = import_or_explain("pyarrow", "arrow")
        for root, options in self.stores:
            set_options(root, options)
        chosen = self.features if features is None else features
        for path in paths:
            dataset = open_dataset(
                [path], schema=self.schema, features=chosen, verify=self.verify, on_error=self.on_error
            )
            try:
                yield from arrow.RecordBatchReader.from_stream(dataset)
            finally:
                dataset._set.close()

    def describe(self) -> Any:
        """Return the schema of the record batches, of pyarrow."""
        arrow = import_or_explain("pyarrow", "arrow")
        dataset = open_dataset([self.paths[0]], schema=self.schema, features=self.features, verify=self.verify)
        try:
            return arrow.RecordBatchReader.from_stream(dataset).schema
        finally:
            dataset._set.close()
