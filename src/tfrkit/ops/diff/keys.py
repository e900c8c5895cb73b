"""Match the records of two datasets by a key feature. Memory: 8 or 16 bytes per record, for the key or its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfrkit import _native
from tfrkit._types import Int64Array
from tfrkit.batches.shard_set import ShardSet
from tfrkit.batches.stream import read_batches
from tfrkit.codec.columns import BytesColumn, Ragged
from tfrkit.container.records import read_records
from tfrkit.errors import MissingFeatureError, SchemaError
from tfrkit.features.schema import describe_missing, encode_name, show_name
from tfrkit.ops.preview import preview_value

Keys = np.ndarray[Any, np.dtype[Any]]

_BATCH_ROWS = 4096
# Bytes of a digest: enough that a collision is less likely than an undetected disk error.
_DIGEST_NBYTES = 16
_MAX_NAMED = 3


@dataclass(frozen=True)
class Matching:
    """`partners[i]` is the record of b with the key of record `i` of a, or -1; `added` lists records only b has."""

    partners: Int64Array
    added: Int64Array


def match_keys(a: ShardSet, b: ShardSet, feature: str) -> Matching:
    """Match records by key. Raises `SchemaError` if a key is missing or occurs twice in one dataset."""
    keys_a, keys_b = read_keys(a, feature), read_keys(b, feature)
    if keys_a.dtype != keys_b.dtype and len(keys_a) and len(keys_b):
        kinds = f"{a.schema[feature].kind} and {b.schema[feature].kind}"
        raise SchemaError(f"key {show_name(feature)} expected one kind, got {kinds}", shard=b.files[0])
    order = np.argsort(keys_b, kind="stable")
    sorted_b = keys_b[order]
    partners = np.full(len(keys_a), -1, np.int64)
    if len(keys_b) and len(keys_a):
        places = np.minimum(np.searchsorted(sorted_b, keys_a), len(sorted_b) - 1)
        is_there = sorted_b[places] == keys_a
        partners[is_there] = order[places[is_there]]
    is_matched = np.zeros(len(keys_b), np.bool_)
    is_matched[partners[partners >= 0]] = True
    return Matching(partners, np.flatnonzero(~is_matched))


def read_keys(shard_set: ShardSet, feature: str) -> Keys:
    """Read one key per record, in file order: an int64, or a digest if the feature holds bytes."""
    schema = shard_set.schema
    if not len(schema):
        if not len(shard_set.records):
            return np.empty(0, np.int64)
        raise SchemaError("records have no features, so none can be the key", shard=shard_set.files[0])
    if feature not in schema:
        raise MissingFeatureError(describe_missing(feature, schema.names), shard=shard_set.files[0])
    spec = schema[feature]
    if spec.kind == "float" or spec.encoding != "list" or feature not in schema.features:
        raise SchemaError(
            f"key {show_name(feature)} expected one integer or text per record, got {spec.meaning or spec.kind}",
            shard=shard_set.files[0],
        )
    pieces: list[Keys] = []
    first = 0
    batches = read_batches(
        shard_set.shards,
        shard_set.new_decoder([feature]),
        shard_set.policy.for_one_pass(),
        batch_size=_BATCH_ROWS,
        drop_last=False,
        threads=1,
    )
    for batch, num_rows in batches:
        column = _require_one(batch.get("context", batch)[feature], shard_set, feature, first)
        pieces.append(digest_values(column) if isinstance(column, BytesColumn) else np.asarray(column, np.int64))
        first += num_rows
    keys = np.concatenate(pieces) if pieces else np.empty(0, np.int64)
    _require_distinct(keys, shard_set, feature)
    return keys


def digest_values(values: Iterable[bytes]) -> Keys:
    """Compute a digest of each value."""
    digests = [hashlib.blake2b(value, digest_size=_DIGEST_NBYTES).digest() for value in values]
    return np.frombuffer(b"".join(digests), f"S{_DIGEST_NBYTES}")


def digest_records(shard_set: ShardSet) -> Keys:
    """Compute a digest of each record, in file order."""
    policy = shard_set.policy.for_one_pass()
    pieces = [digest_values(records) for shard in shard_set.shards for records in read_records(shard, policy)]
    return np.concatenate(pieces) if pieces else np.empty(0, f"S{_DIGEST_NBYTES}")


def show_key(shard_set: ShardSet, feature: str, number: int) -> str:
    """Return the key of a record as short text, or "?" if it cannot be read."""
    kind = shard_set.schema.kind
    found = _native.read_message(kind, shard_set.records[number])
    if isinstance(found, _native.Fault) or found[0] is None:
        return "?"
    wanted = encode_name(feature)
    values = [values for name, _, values in found[0] if bytes(name) == wanted]
    return preview_value(values[-1][0]) if values and len(values[-1]) else "?"


def _require_one(column: Any, shard_set: ShardSet, feature: str, first: int) -> Any:
    """Return the column as one value per row; raises `SchemaError` at the first row with none or several."""
    if isinstance(column, Ragged):
        wrong = np.flatnonzero(column.lengths != 1)
        if not len(wrong):
            return column.values[int(column.row_splits[0]) : int(column.row_splits[-1])]
        row, count = int(wrong[0]), int(column.lengths[wrong[0]])
    elif isinstance(column, BytesColumn) or column.ndim == 1:
        return column
    else:
        row, count = 0, int(column.shape[1])
    shards, inside = shard_set.records.locate_many(np.array([first + row], np.uint64))
    raise SchemaError(
        f"key {show_name(feature)} expected one value in every record, got {count or 'none'}",
        shard=shard_set.files[int(shards[0])],
        record=int(inside[0]),
        hint="choose another feature, or compare by position, without a key",
    )


def _require_distinct(keys: Keys, shard_set: ShardSet, feature: str) -> None:
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if not len(twice):
        return
    named = [
        f"{show_key(shard_set, feature, int(order[place]))} in records {int(order[place])} and {int(order[place + 1])}"
        for place in twice[:_MAX_NAMED].tolist()
    ]
    more = f", and {len(twice) - _MAX_NAMED:,} more" if len(twice) > _MAX_NAMED else ""
    raise SchemaError(
        f"key {show_name(feature)} expected once, got twice: {', '.join(named)}{more}",
        shard=shard_set.files[0],
        hint="choose another feature, or compare by position, without a key",
    )
