"""From a fault of the core to an error with words, shard and record."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tfrkit._native import Fault
from tfrkit.errors import (
    ContainerError,
    CorruptRecordError,
    FeatureKindError,
    MissingFeatureError,
    ShapeError,
    TfrkitError,
    TruncatedShardError,
    WireError,
)

_KIND_NAMES = ("no kind", "bytes", "float", "int64")


def describe_fault(fault: Fault, columns: Sequence[str] = ()) -> str:
    """One clause: what was stored against what was expected."""
    name = columns[fault.column] if 0 <= fault.column < len(columns) else "?"
    name = name if len(name) <= 64 else name[:61] + "..."
    match fault.kind:
        case "truncated_header":
            return f"shard ends inside a frame, expected a header of {fault.stored} bytes, got {fault.computed}"
        case "length_checksum":
            return f"length checksum mismatch, stored {fault.stored:#010x}, computed {fault.computed:#010x}"
        case "truncated_payload":
            if fault.computed >= fault.stored:
                left = fault.computed - fault.stored
                return f"shard ends inside a frame, expected a payload checksum of 4 bytes, got {left}"
            left = max(0, fault.computed - 4)  # the last 4 bytes of a whole frame are its checksum
            return f"shard ends inside a frame, expected {fault.stored} bytes of payload, got {left}"
        case "payload_checksum":
            return f"payload checksum mismatch, stored {fault.stored:#010x}, computed {fault.computed:#010x}"
        case "feature_kind":
            return f"feature {name!r} expected {_KIND_NAMES[fault.computed]}, got {_KIND_NAMES[fault.stored]}"
        case "length":
            return f"feature {name!r} expected {fault.computed} values, got {fault.stored}"
        case "missing":
            return f"feature {name!r} expected in every record, got none"
        case _:
            return "record is not a well-formed protobuf message of its kind"


_CLASSES: dict[str, type[TfrkitError]] = {
    "truncated_header": TruncatedShardError,
    "truncated_payload": TruncatedShardError,
    "length_checksum": CorruptRecordError,
    "payload_checksum": CorruptRecordError,
    "feature_kind": FeatureKindError,
    "length": ShapeError,
    "missing": MissingFeatureError,
}

_WIRE_HINT = 'list all of them: tfr verify {shard}    read the others: on_error="skip"'
_SCHEMA_HINT = 'look at all records: tfr info {shard}    read the others: on_error="skip"'


def fault_to_error(
    fault: Fault, *, shard: str, record: int | None, offset: int, columns: Sequence[str] = ()
) -> TfrkitError:
    """The error to raise for a fault whose frame starts at byte `offset` of the shard."""
    kind = _CLASSES.get(fault.kind, WireError)
    if issubclass(kind, ContainerError):
        hint = advise_repair(shard)
    else:
        # Repair would keep the record: its checksums hold.
        hint = (_WIRE_HINT if kind is WireError else _SCHEMA_HINT).format(shard=shlex.quote(shard))
    return kind(describe_fault(fault, columns), shard=shard, record=record, offset=offset, hint=hint)


def advise_repair(shard: str) -> str:
    """The next steps at a shard whose bytes are damaged."""
    name = shlex.quote(shard)
    return (
        f"list all damage: tfr verify {name}    copy what is readable: tfr repair {name} -o good.tfrecord    "
        'read on: on_error="skip"'
    )
