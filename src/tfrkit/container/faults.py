"""Convert faults of the core to errors with message, shard and record."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import lru_cache

from tfrkit._native import Fault
from tfrkit.errors import (
    ContainerError,
    CorruptRecordError,
    FeatureKindError,
    Hint,
    LimitError,
    MissingFeatureError,
    ShapeError,
    StaleIndexError,
    Step,
    TfrkitError,
    TruncatedShardError,
    UnknownFeatureError,
    WireError,
)

_KIND_NAMES = ("no kind", "bytes", "float", "int64")


def describe_fault(fault: Fault, columns: Sequence[str] = ()) -> str:
    """Describe a fault in one clause, with the stored and the expected value."""
    name = columns[fault.column] if 0 <= fault.column < len(columns) else "?"
    name = name if len(name) <= 64 else name[:61] + "..."
    match fault.kind:
        case "truncated_header":
            return f"shard ends inside a frame, expected a header of {fault.stored} bytes, got {fault.computed}"
        case "length_checksum":
            return f"length checksum mismatch, stored {fault.stored:#010x}, computed {fault.computed:#010x}"
        case "truncated_payload":
            return describe_truncated(fault.stored, fault.computed)
        case "index_page":
            if fault.stored == fault.computed:
                return "index is damaged, the offsets in the page of this record do not ascend"
            sums = f"stored {fault.stored:#010x}, computed {fault.computed:#010x}"
            return f"index is damaged, offsets checksum mismatch in the page of this record, {sums}"
        case "payload_checksum":
            return f"payload checksum mismatch, stored {fault.stored:#010x}, computed {fault.computed:#010x}"
        case "feature_kind":
            return f"feature {name!r} expected {_KIND_NAMES[fault.computed]}, got {_KIND_NAMES[fault.stored]}"
        case "length":
            return f"feature {name!r} expected {fault.computed} values, got {fault.stored}"
        case "missing":
            return f"feature {name!r} expected in every record, got none"
        case "unknown":
            return f"{'feature list' if fault.computed else 'feature'} {_show_name(fault.name)} is not in the schema"
        case "too_many_names":
            return (
                f"records have more different feature names than tfrkit supports, limit {fault.computed:,}, "
                f"{fault.stored:,} in this record"
            )
        case _:
            return "record is not a well-formed protobuf message of its kind"


def describe_truncated(length: int, available: int) -> str:
    """Describe a shard that ends inside a frame of this length, with `available` bytes after the header."""
    if available >= length:
        return f"shard ends inside a frame, expected a payload checksum of 4 bytes, got {available - length}"
    left = max(0, available - 4)  # the last 4 bytes of a whole frame are its checksum
    return f"shard ends inside a frame, expected {length} bytes of payload, got {left}"


def _show_name(name: bytes) -> str:
    text = name.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 64 else text[:61] + "...")


_CLASSES: dict[str, type[TfrkitError]] = {
    "truncated_header": TruncatedShardError,
    "truncated_payload": TruncatedShardError,
    "length_checksum": CorruptRecordError,
    "payload_checksum": CorruptRecordError,
    "index_page": StaleIndexError,
    "feature_kind": FeatureKindError,
    "length": ShapeError,
    "missing": MissingFeatureError,
    "unknown": UnknownFeatureError,
    "too_many_names": LimitError,
}

SKIP = Step("skip such records: {on_error}", on_error="skip")
_FROM_ALL = Step("take the schema from all records: {infer}", infer="all")
_UNKNOWN_HINT = Hint(
    _FROM_ALL,
    Step("or name the features to read: {features}", features=[...]),
)
_LIMIT_HINT = Hint(Step("the bytes of records can still be read: for record in ds.records(): ...", in_python=True))
_MEMORY_HINT = "take fewer records at a time, fewer features, or more memory"


def fault_to_error(
    fault: Fault, *, shard: str, record: int | None, offset: int, columns: Sequence[str] = ()
) -> TfrkitError:
    """Return the error to raise for a fault in the frame at byte `offset` of the shard."""
    kind = _CLASSES.get(fault.kind, WireError)
    # Repair would keep a record with valid checksums.
    if kind is StaleIndexError:
        hint = Hint(f"rebuild: tfr index {shlex.quote(shard)}")
    else:
        hint = advise_repair(shard) if issubclass(kind, ContainerError) else _advise(kind, shard)
    return kind(describe_fault(fault, columns), shard=shard, record=record, offset=offset, hint=hint, fault=fault.kind)


def _advise(kind: type[TfrkitError], shard: str) -> Hint:
    if kind is UnknownFeatureError:
        return _UNKNOWN_HINT
    if kind is LimitError:
        return _LIMIT_HINT
    if kind is WireError:
        return Hint(list_damage(shard), SKIP)
    look = f"look at all records: tfr info {shlex.quote(shard)}"
    # Values of another kind fit no schema; another number of values does.
    return Hint(look, SKIP) if kind is FeatureKindError else Hint(_FROM_ALL, look, SKIP)


def locate_memory_error(
    error: MemoryError, *, shard: str, record: int | None = None, offset: int | None = None, start: int = 0
) -> MemoryError:
    """Return the error with its position added. The failed call read frames from `record` on, at byte `offset`.

    The offset in the error is relative to the input of the core, which was read from byte `start`.
    """
    if getattr(error, "shard", None) is not None:
        return error
    where = [shard]
    if record is not None:
        record += getattr(error, "num_frames", 0)
        where.append(f"record {record}")
    if offset is not None:
        offset += max(0, getattr(error, "offset", start) - start)
        where.append(f"byte {offset}")
    located = MemoryError(f"out of memory - at {', '.join(where)}\n  {_MEMORY_HINT}")
    located.shard, located.record, located.offset = shard, record, offset  # type: ignore[attr-defined]
    return located


@lru_cache(16)  # a shard may have a million damaged records
def advise_repair(shard: str, *, can_skip: bool = True) -> Hint:
    """Return the hint for a damaged shard; `can_skip` says whether the call can skip damage."""
    steps = (list_damage(shard), copy_readable(shard))
    return Hint(*steps, SKIP) if can_skip else Hint(*steps)


def list_damage(*shards: str) -> str:
    """Return the step that lists the damage of shards."""
    return f"list all damage: tfr verify {shlex.join(shards)}"


def copy_readable(shard: str | None = None) -> str:
    """Return the step that copies the readable records of a shard; without a shard, only the command is named."""
    return "copy what is readable: tfr repair" + (f" {shlex.quote(shard)} -o good.tfrecord" if shard else "")
