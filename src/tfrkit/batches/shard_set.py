"""The shards of a dataset, opened once and shared by everything derived from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

import numpy as np

from tfrkit._limits import LIMITS
from tfrkit._types import Infer, OnError, Verify
from tfrkit.batches.access import Records
from tfrkit.batches.state import fingerprint_dataset
from tfrkit.batches.stream import read_batches
from tfrkit.batches.survey import find_schema, sample_schema
from tfrkit.codec.columns import BytesColumn, Ragged
from tfrkit.codec.decode import Decoder
from tfrkit.container.records import Policy
from tfrkit.container.shard_list import ShardList
from tfrkit.container.shards import Shard
from tfrkit.errors import (
    EmptyShardWarning,
    FeatureKindError,
    MissingFeatureError,
    SchemaError,
    ShapeError,
    UnlistedShardWarning,
    in_one_line,
    warn_caller,
)
from tfrkit.features.schema import Schema, find_mismatches
from tfrkit.orders.order import Whole
from tfrkit.sidecars.read import Sidecars
from tfrkit.storage.options import StorageOptions, given_options, set_options

_COLUMN_BATCH = 4096
_MAX_QUICK_SHARDS = 64


class ShardSet:
    """Shards, read options, and cached facts. Safe to share between threads."""

    def __init__(
        self,
        shards: Sequence[Shard],
        policy: Policy,
        schema: Schema | None = None,
        *,
        counts: Sequence[int] | None = None,
        infer: Infer = "sample",
    ) -> None:
        self.shards = ShardList.of(shards)
        self.infer: Infer = infer
        self.policy = policy
        self.sidecars = Sidecars(self.shards.names)
        # Not a bound method: in a reference cycle, the garbage collector would close the files, with a warning.
        self.records = Records(self.shards, policy, counts, partial(_recall_counts, self.sidecars, policy))
        self._schema = schema
        self._is_schema_given = schema is not None
        self._is_schema_checked = False

    @property
    def files(self) -> list[str]:
        return list(self.shards.names)

    @property
    def mean_nbytes(self) -> int:
        """Approximate stored bytes per record."""
        return self.shards.nbytes // max(1, len(self.records))

    @property
    def schema(self) -> Schema:
        """Schema of the records: as given, or inferred once."""
        if self._schema is None:
            self._schema = find_schema(self.shards, self.policy, from_all=self.infer == "all", sidecars=self.sidecars)
            self.sidecars.warn()
        return self._schema

    @property
    def known_schema(self) -> Schema | None:
        """The schema if known without reading records."""
        return self._schema if self._schema is not None else self.sidecars.schema

    @property
    def known_count(self) -> int | None:
        """The number of records if known without a scan."""
        if self.records.known_counts is not None:
            return len(self.records)
        counts = _recall_counts(self.sidecars, self.policy)
        return None if counts is None else sum(counts)

    @property
    def is_quick(self) -> bool:
        """Whether the shards are few and small enough for a quick full scan."""
        nbytes = [(shard.nbytes, shard.compression == "none") for shard in self.shards[: _MAX_QUICK_SHARDS + 1]]
        if len(nbytes) > _MAX_QUICK_SHARDS or self.shards.has_pipe:
            return False
        # Compressed data may be many times larger.
        return sum((size or 0) * (1 if is_plain else 8) for size, is_plain in nbytes) <= LIMITS.quick_count_nbytes

    def look_at_all(self) -> bool:
        """Switch to a schema inferred from all records; return False if already so, or if a schema was given."""
        if self._is_schema_given or self.infer == "all":
            return False
        self.infer, self._schema = "all", None
        return True

    @property
    def fingerprint(self) -> str:
        """A hash of the records for a saved state: of the first and last bytes of each shard.

        For remote shards, whose bytes cost two requests each, and for many local ones, which a table lists, it is a
        hash of their checksums in the manifest.
        """
        is_listed = self.shards.is_remote or self.shards.table is not None
        listed = self._listed_fingerprint if is_listed else None
        return self._stored_fingerprint if listed is None else listed

    def fingerprint_like(self, other: object) -> str:
        """Return the fingerprint of the same kind as another, so that a state moves between a disk and a store."""
        is_listed = isinstance(other, str) and other.startswith("m")
        return (self._listed_fingerprint if is_listed else self._stored_fingerprint) or self.fingerprint

    @cached_property
    def _stored_fingerprint(self) -> str:
        return fingerprint_dataset(self.shards)

    @cached_property
    def _listed_fingerprint(self) -> str | None:
        return self.sidecars.listed_fingerprint

    def new_decoder(self, features: Sequence[str] | None) -> Decoder:
        """Create a decoder of these features, None for all. A given schema is first checked against the records."""
        schema = self.schema if features is None else self.schema.select(features)
        if self._is_schema_given and not self._is_schema_checked:
            self._check_schema(schema)
            self._is_schema_checked = True
        # With named features or a given schema, other features are ignored. Otherwise all must be in the schema.
        has_chosen = features is not None or self._is_schema_given
        return Decoder(schema, known=None if has_chosen else schema)

    @property
    def file_order(self) -> Whole:
        """The order of all records in the files. Counts the records."""
        return Whole(len(self.records))

    def read_column(self, name: str) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
        """Read a feature with one value per record, in file order: as int64, float32, or objects for bytes."""
        try:
            decoder = self.new_decoder([name])
        except MissingFeatureError as error:
            first = self.files[0]
            raise MissingFeatureError(error.what, shard=first, hint=f"see what is there: tfr info {first}") from None
        pieces = []
        batches = read_batches(
            self.shards,
            decoder,
            self.policy.for_one_pass(),
            batch_size=_COLUMN_BATCH,
            drop_last=False,
            threads=1,
        )
        num_read = 0
        missing: list[int] = []
        for batch, num_rows in batches:
            column = batch.get("context", batch)[name]
            if isinstance(column, Ragged) and self.schema[name].shape == ():
                missing += (num_read + np.flatnonzero(np.asarray(column.lengths) == 0)).tolist()
            num_read += num_rows
            if missing:
                continue
            if isinstance(column, BytesColumn):
                column = np.asarray(column)
            if not isinstance(column, np.ndarray) or column.ndim != 1:
                raise ShapeError(
                    f"feature {name!r} expected one value in every record, got "
                    f"{self.schema[name].kind} values of shape {self.schema[name].shape}",
                    shard=self.files[0],
                    hint=f"see what is there: tfr info {self.files[0]}",
                )
            pieces.append(column)
        if missing:
            raise ShapeError(
                f"feature {name!r} expected one value in every record, "
                f"it is missing in {len(missing):,} of {num_read:,}",
                record=missing[0],
                hint=f"see what is there: tfr info {self.files[0]}",
            )
        column = np.concatenate(pieces) if pieces else np.empty(0, np.int64)
        num_records = len(self.records)
        if len(column) != num_records:
            raise SchemaError(
                f"feature {name!r} was read from {len(column)} of {num_records} records, some are damaged"
            )
        return column

    def read_key(self, name: str) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
        """Read a feature of integers or bytes, whose values decide the part of a record; see `read_column`."""
        column = self.read_column(name)
        if column.dtype.kind == "f":
            first = self.files[0]
            hint = f"see what is there: tfr info {first}"
            raise FeatureKindError(f"feature {name!r} expected integers or bytes, got floats", shard=first, hint=hint)
        return column

    def warn_of_empty(self) -> None:
        """Warn if some of several shards are empty, unless a manifest lists them as empty."""
        empty = self.shards.find_empty()
        if not empty:
            return
        counts = self.sidecars.counts
        names = [self.shards[number].name for number in empty if counts[number] != 0]
        if names:
            more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
            warn_caller(
                EmptyShardWarning(
                    f"{len(names):,} of {len(self.shards):,} shards are empty - at {in_one_line(names[0])}{more}\n"
                    "  copy or write them again if they should have records",
                    tuple(names),
                )
            )

    def warn_of_unlisted(self) -> None:
        """Warn about shards that the manifest of their folder does not list."""
        if self.shards.table is not None:
            return
        for folder in dict.fromkeys(os.path.dirname(shard.name) for shard in self.shards):
            manifest = self.sidecars.folder_manifest(folder)
            if manifest is None:
                continue
            inside = [number for number, shard in enumerate(self.shards) if os.path.dirname(shard.name) == folder]
            extra = [number for number in inside if os.path.basename(self.shards[number].name) not in manifest.entries]
            extra = [number for number in extra if self.sidecars.manifests[number] is None]
            if not extra or len(extra) == len(inside):
                continue
            names = [self.shards[number].name for number in extra]
            more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
            has_none = self.sidecars.splits and all(self.sidecars.split_names[number] is None for number in extra)
            splits = ", and in no split" if has_none else ""
            where = f"{in_one_line(names[0])}{more}"
            warn_caller(
                UnlistedShardWarning(
                    f"not listed in {os.path.basename(manifest.path)} next to it{splits} - at {where}\n"
                    "  add its records to the dataset: tfr append, or move it elsewhere",
                    tuple(names),
                )
            )

    def require_like(self, schema: Schema, name: str) -> None:
        """Raise if records with this schema, from file `name`, cannot be in one batch with the others."""
        mismatches = find_mismatches(self.schema, schema)
        if mismatches:
            raise SchemaError("; ".join(mismatches), shard=name, hint="select the features that all of them have")

    def close(self) -> None:
        """Close files and maps. They are reopened on the next read."""
        self.shards.close()

    def _check_schema(self, schema: Schema) -> None:
        """Raise if the given schema does not fit a sample of the records."""
        if self.shards.has_pipe or not len(schema):
            return
        found = sample_schema(self.shards, self.policy)
        mismatches = find_mismatches(schema, found) if len(found) else []
        if mismatches:
            first = self.files[0]
            raise SchemaError("; ".join(mismatches), shard=first, hint=f"see what is there: tfr info {first}")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the names, sizes and record counts: another process reopens files on use and does not count again.

        Findings are not copied.
        """
        policy = self.policy
        options = (policy.verify, policy.on_error, policy.max_errors)
        state = (self._is_schema_given, self._is_schema_checked, self.infer)
        # Only with a remote shard: how its store is reached, without keys.
        stores = given_options(self.shards.names if self.shards.table is None else self.shards.names[:1])
        return _reopen, (self.shards.pack(), self.records.known_counts, self._schema, state, *options, stores)


def _recall_counts(sidecars: Sidecars, policy: Policy) -> list[int] | None:
    """Return the manifests' record counts; None if one is missing, or if damage is skipped and must not be counted."""
    if policy.on_error == "skip":
        return None
    counts = [count for count in sidecars.counts if count is not None]
    return counts if len(counts) == len(sidecars.paths) else None


def _reopen(
    open_shards: Callable[[], ShardList],
    counts: list[int] | None,
    schema: Schema | None,
    state: tuple[bool, bool, Infer],
    verify: Verify,
    on_error: OnError,
    max_errors: int | None,
    stores: Mapping[str, StorageOptions],
) -> ShardSet:
    for root, given in stores.items():
        set_options(root, given)
    opened = ShardSet(open_shards(), Policy(verify, on_error, max_errors), schema, counts=counts)
    opened._is_schema_given, opened._is_schema_checked, opened.infer = state
    return opened
