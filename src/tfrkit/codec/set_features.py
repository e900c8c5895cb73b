"""Setting of features in one record; all other bytes are unchanged."""

from __future__ import annotations

from collections.abc import Mapping

from tfrkit import _native
from tfrkit._types import Record
from tfrkit.codec.edit_record import DELIMITED, delimit, read_entry_name, split_fields
from tfrkit.errors import CodecError
from tfrkit.features.schema import encode_name

_FEATURES = 1  # field number of the features of an Example, and of the context of a SequenceExample


def set_features(record: Record, values: Mapping[str, bytes | None]) -> Record:
    """Replace features of an Example or context by Feature messages; None removes a feature.

    A feature that already has this value keeps its bytes, in any encoding. A new feature is inserted before the first
    name that sorts after it. Raises `CodecError` for a record that is not an Example.

    Example:
        >>> set_features(b"", {"label": encode_feature("int64", [3])})
        b'\\n\\x10\\n\\x0e\\n\\x05label\\x12\\x05\\x1a\\x03\\n\\x01\\x03'
    """
    if _native.classify_record(record) == "other":
        raise CodecError("expected an Example, got another record, which has no features to set")
    fields = split_fields(record)
    maps = [at for at, field in enumerate(fields) if field[0] == _FEATURES and field[1] == DELIMITED]
    left = dict(values)
    out: list[bytes] = []
    for at, (_, _, start, value_start, stop) in enumerate(fields):
        if at not in maps:
            out.append(record[start:stop])
            continue
        edited = _set_in_map(record[value_start:stop], values, left, is_last=at == maps[-1])
        out.append(delimit(_FEATURES, edited))
    added = [_make_entry(name, value) for name, value in sorted(left.items()) if value is not None]
    if not maps and added:
        out.insert(0, delimit(_FEATURES, b"".join(added)))
    return b"".join(out)


def _set_in_map(
    message: bytes, values: Mapping[str, bytes | None], left: dict[str, bytes | None], *, is_last: bool
) -> bytes:
    """Replace entries of a Features message and remove them from `left`; the last message adds the rest of `left`."""
    out: list[tuple[str | None, bytes]] = []
    for number, wire_type, start, value_start, stop in split_fields(message):
        whole = message[start:stop]
        if wire_type != DELIMITED or number != 1:
            out.append((None, whole))
            continue
        entry = message[value_start:stop]
        name = read_entry_name(entry)
        if name not in values:
            out.append((name, whole))
        elif name in left:
            value = left.pop(name)
            if value is not None:
                out.append((name, whole if _has_value(entry, value) else _make_entry(name, value)))
        # Otherwise the entry is a duplicate, already replaced by the first one.
    if is_last:
        for name, value in sorted(left.items()):
            if value is not None:
                after = (at for at, (other, _) in enumerate(out) if other is not None and other > name)
                out.insert(next(after, len(out)), (name, _make_entry(name, value)))
        left.clear()
    return b"".join(piece for _, piece in out)


def _make_entry(name: str, value: bytes) -> bytes:
    return delimit(1, delimit(1, encode_name(name)) + delimit(2, value))


def _has_value(entry: bytes, value: bytes) -> bool:
    """Whether an entry has this value, in any encoding."""
    old = b"".join(
        entry[start:stop] for number, kind, _, start, stop in split_fields(entry) if (number, kind) == (2, DELIMITED)
    )
    return old == value or _read_feature(old) == _read_feature(value)


def _read_feature(message: bytes) -> object:
    # The core reads whole records, so wrap this feature in one.
    read = _native.read_message("example", delimit(1, delimit(1, delimit(1, b"x") + delimit(2, message))))
    if isinstance(read, _native.Fault) or read[0] is None:
        return message
    [(_, kind, values)] = read[0]
    return kind, [repr(value) for value in values]  # as text, so that -0.0 differs from 0.0, and nan equals nan
