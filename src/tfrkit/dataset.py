"""Dataset: the face of the read street."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfrkit._types import OnError, Row, Verify
from tfrkit.batches.access import Records
from tfrkit.batches.rows import RowReader
from tfrkit.batches.survey import find_schema, sample_schema
from tfrkit.container.records import Finding, Policy
from tfrkit.container.shards import Shard, find_shards
from tfrkit.errors import SchemaError, WireError
from tfrkit.features.schema import Schema, find_mismatches
from tfrkit.features.spec import RecordKind
from tfrkit.storage.resolve import Address

Batch = dict[str, Any]
"""Columns by feature name; for SequenceExamples {"context": columns, "feature_lists": columns}."""


def open_dataset(
    address: Address | Iterable[Address],
    *,
    schema: Schema | Mapping[str, Any] | None = None,
    features: Sequence[str] | None = None,
    verify: Verify = "all",
    on_error: OnError = "raise",
    max_errors: int | None = None,
) -> Dataset:
    """Open TFRecord files: a path, a glob, a folder, or a list of these.

    Compression, kind of record and schema are found from the bytes. Opening looks at the first bytes of each
    file; reading starts when something is asked for.

    Args:
        address: Where the files are.
        schema: What the features are; found from TFDS's features.json beside the data or from the records
            themselves where it is not given.
        features: Decode only these.
        verify: "all" compares both checksums of every frame, "lengths" those of lengths, "none" none.
        on_error: "raise" at the first damage, or "skip" it and list it in `Dataset.errors`.
        max_errors: With "skip", more damaged places than this in one pass raise all the same.

    Example:
        >>> ds = tfrkit.open("digits.tfrecord")
        >>> ds[0]
        {'data': 0, 'label': 0}
    """
    if verify not in ("all", "lengths", "none"):
        raise ValueError(f"verify expected 'all', 'lengths' or 'none', got {verify!r}")
    if on_error not in ("raise", "skip"):
        raise ValueError(f"on_error expected 'raise' or 'skip', got {on_error!r}")
    if max_errors is not None and (not isinstance(max_errors, int) or max_errors < 0):
        raise ValueError(f"max_errors expected a number from 0 up, got {max_errors!r}")
    if isinstance(features, str):
        raise TypeError(f"features expected a list of names, got the string {features!r}")
    if schema is not None and not isinstance(schema, Schema):
        if not isinstance(schema, Mapping):
            raise TypeError(f"schema expected a Schema or a dict of features, got {type(schema).__name__}")
        schema = Schema(schema)
    shards = [Shard.open(path) for path in find_shards(address)]
    return Dataset(shards, Policy(verify, on_error, max_errors), schema=schema, features=features)


class Dataset:
    """Shards of records, with a schema. Immutable; safe to share between threads."""

    def __init__(
        self,
        shards: Sequence[Shard],
        policy: Policy,
        *,
        schema: Schema | None = None,
        features: Sequence[str] | None = None,
    ) -> None:
        self._shards = list(shards)
        self._policy = policy
        self._whole_schema = schema
        self._is_schema_given = schema is not None
        self._features = None if features is None else list(features)
        self._reader: RowReader | None = None
        self._records = Records(self._shards, policy)

    @property
    def files(self) -> list[str]:
        """Paths of the shards, in reading order."""
        return [shard.name for shard in self._shards]

    @property
    def schema(self) -> Schema:
        """What each record holds. Where nobody said, it is inferred from many records, and kept."""
        if self._whole_schema is None:
            self._whole_schema = find_schema(self._shards, self._policy)
        if self._features is None:
            return self._whole_schema
        return self._whole_schema.select(self._features)

    @property
    def kind(self) -> RecordKind:
        """What the records are: "example", "sequence_example", or "raw" for anything else."""
        return self.schema.kind

    @property
    def errors(self) -> list[Finding]:
        """Damage that was skipped so far, each place once."""
        return list(self._policy.findings.values())

    def select(self, features: Sequence[str]) -> Dataset:
        """The same records with only these features decoded."""
        if isinstance(features, str):
            raise TypeError(f"features expected a list of names, got the string {features!r}")
        chosen = Dataset(self._shards, self._policy, schema=self._whole_schema, features=features)
        chosen._records = self._records
        chosen._is_schema_given = self._is_schema_given
        _ = chosen.schema  # a wrong name is told here, not when reading starts
        return chosen

    def records(self) -> Records:
        """Payload bytes of every record, whatever they mean."""
        return self._records

    def __len__(self) -> int:
        """Number of records, from the index or a scan of the headers."""
        return len(self._records)

    def __getitem__(self, index: int | slice | Sequence[int] | np.ndarray[Any, Any]) -> Any:
        """One row by number (negative from the end); a list of rows for a slice or several numbers."""
        if isinstance(index, (int, np.integer)):
            return self._pick_one(int(index))
        if isinstance(index, slice):
            return self._get_reader().pick(range(*index.indices(len(self))))
        numbers = np.asarray(index)
        if numbers.dtype == bool and numbers.shape == (len(self),):
            numbers = np.flatnonzero(numbers)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise TypeError(f"expected a number, a slice or a list of numbers, got {index!r}")
        return self._get_reader().pick(numbers.tolist())

    def __iter__(self) -> Iterator[Row]:
        """Rows in file order."""
        return self._get_reader().rows()

    def batch(self, size: int, *, drop_last: bool = False, threads: int = 1) -> Iterator[Batch]:
        """Batches of rows as columns, in file order.

        A column is a NumPy array where every record has the same number of values, `Ragged` where that varies,
        `BytesColumn` for one bytes value a row. `threads` decode at the same time; the order stays.
        """
        size, threads = operator.index(size), operator.index(threads)
        if size < 1:
            raise ValueError(f"size expected at least 1, got {size}")
        if threads < 1:
            raise ValueError(f"threads expected at least 1, got {threads}")
        return self._get_reader().batches(size, drop_last=drop_last, threads=threads)

    def close(self) -> None:
        """Let go of open files and maps. They are opened again when something is read."""
        for shard in self._shards:
            shard.close()

    def __reduce__(self) -> tuple[object, ...]:
        """Another process opens the same files again; what was skipped here stays here."""
        policy = self._policy
        options = (self._whole_schema, self._features, policy.verify, policy.on_error, policy.max_errors)
        return _reopen, (self.files, *options)

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        names = ", ".join(os.path.basename(name) for name in self.files[:3])
        more = f", … {len(self.files)} files" if len(self.files) > 3 else ""
        return f"Dataset({names}{more})"

    def _pick_one(self, number: int) -> Row:
        rows = self._get_reader().pick([number])
        if not rows:
            raise WireError("record was skipped, it does not decode", record=number, hint="list them: ds.errors")
        return rows[0]

    def _check_schema(self) -> None:
        """Hold a schema that somebody gave against the records, before the first of them fails to decode."""
        if any(shard.nbytes is None for shard in self._shards) or not len(self.schema):
            return
        found = sample_schema(self._shards, self._policy)
        mismatches = find_mismatches(self.schema, found) if len(found) else []
        if mismatches:
            raise SchemaError(
                "; ".join(mismatches), shard=self.files[0], hint=f"see what is there: tfr info {self.files[0]}"
            )

    def _get_reader(self) -> RowReader:
        if self._reader is None:
            if self._is_schema_given:
                self._check_schema()
            self._reader = RowReader(self._shards, self._records, self.schema, self._policy)
        return self._reader


def _reopen(
    files: list[str],
    schema: Schema | None,
    features: list[str] | None,
    verify: Verify,
    on_error: OnError,
    max_errors: int | None,
) -> Dataset:
    shards = [Shard.open(path) for path in files]
    return Dataset(shards, Policy(verify, on_error, max_errors), schema=schema, features=features)
