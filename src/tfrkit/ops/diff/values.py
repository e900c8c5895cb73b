"""Compare two records feature by feature, and images pixel by pixel."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tfrkit import _native
from tfrkit._types import Record
from tfrkit.errors import CodecError
from tfrkit.features.schema import PARTS, Schema, decode_name
from tfrkit.features.spec import RecordKind
from tfrkit.images.decode import decode_image
from tfrkit.images.sniff import sniff_image
from tfrkit.ops.preview import preview_bytes, preview_value

Change = Literal["changed", "added", "removed"]

Compared = tuple[list["FeatureChange"], bool]
"""Differences of two records, and whether there are others that the schema comparison already lists."""

_HEAD_NBYTES = 4096
_MAX_NAMED_FRAMES = 3


@dataclass(frozen=True)
class FeatureChange:
    """A change of one feature: previews of the old (a) and new (b) value, and a note on the difference."""

    feature: str
    change: Change
    a: str | None
    b: str | None
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class _Stored:
    """A stored feature: values of one kind or, for a feature list, the (kind, values) of each step."""

    kind: str | None
    values: Sequence[Any]
    is_list: bool = False

    def show(self) -> str:
        if self.is_list:
            return f"{len(self.values):,} frame{'' if len(self.values) == 1 else 's'}"
        if self.kind is None:
            return "no value"
        shown = _to_array(self)
        if len(shown) == 1:
            return preview_bytes(bytes(shown[0])) if self.kind == "bytes" else preview_value(shown[0])
        return preview_value(shown)


def compare_schemas(a: Schema, b: Schema) -> list[FeatureChange]:
    """List features that one side lacks or stores as another kind; one change if the record kinds differ."""
    if a.kind != b.kind and len(a) + len(b):
        return [FeatureChange("", "changed", f"{a.kind} records", f"{b.kind} records")]
    if not len(a) or not len(b):
        return []
    kinds_a, kinds_b = _list_kinds(a), _list_kinds(b)
    changes = []
    for name in dict.fromkeys([*kinds_a, *kinds_b]):
        kind_a, kind_b = kinds_a.get(name), kinds_b.get(name)
        if kind_a is None or kind_b is None:
            changes.append(FeatureChange(name, "added" if kind_a is None else "removed", kind_a, kind_b))
        elif kind_a != kind_b and "no kind" not in (kind_a, kind_b):
            changes.append(FeatureChange(name, "changed", kind_a, kind_b))
    return changes


def make_comparison(
    kind_a: RecordKind, kind_b: RecordKind, schema_changes: Collection[FeatureChange]
) -> Callable[[Record, Record], Compared]:
    """Return a function that finds the differences of two records, except those listed in `schema_changes`.

    Values of another kind are such a difference only if they are the same numbers.
    """
    listed = {(change.feature, change.change) for change in schema_changes}

    def compare(a: Record, b: Record) -> Compared:
        features_a, features_b = _read_features(a, kind_a), _read_features(b, kind_b)
        if features_a is None or features_b is None:
            note = _note_images(a, b)
            return [FeatureChange("record", "changed", preview_bytes(a), preview_bytes(b), note)], False
        changes = []
        is_told = False
        for name in dict.fromkeys([*features_a, *features_b]):
            stored_a, stored_b = features_a.get(name), features_b.get(name)
            change = _compare_features(name, stored_a, stored_b)
            if change is None:
                continue
            if (name, change.change) in listed and (
                change.change != "changed" or _are_same_numbers(stored_a, stored_b)
            ):
                is_told = True
            else:
                changes.append(change)
        return changes, is_told

    return compare


def _compare_features(name: str, a: _Stored | None, b: _Stored | None) -> FeatureChange | None:
    if a is None or b is None:
        assert a is not None or b is not None
        shown_a, shown_b = (None if side is None else side.show() for side in (a, b))
        return FeatureChange(name, "added" if a is None else "removed", shown_a, shown_b)
    if _are_equal(a, b):
        return None
    return FeatureChange(name, "changed", a.show(), b.show(), _note(a, b))


def _are_equal(a: _Stored, b: _Stored) -> bool:
    if a.kind != b.kind or len(a.values) != len(b.values):
        return False
    if a.is_list:
        return all(map(_are_equal, _frames(a), _frames(b)))
    if a.kind == "float":
        # Compare bits, so that NaN equals itself and 0.0 differs from -0.0.
        return bool(_to_array(a).tobytes() == _to_array(b).tobytes())
    return list(a.values) == list(b.values)


def _are_same_numbers(a: _Stored | None, b: _Stored | None) -> bool:
    """Whether one side has integers and the other one the same numbers as floats."""
    if a is None or b is None or {a.kind, b.kind} != {"int64", "float"}:
        return False
    return list(a.values) == list(b.values)


def _note(a: _Stored, b: _Stored) -> str:
    """Describe how two unequal values differ; may return an empty string."""
    if a.is_list and b.is_list:
        return _note_frames(a, b)
    if a.kind != b.kind:
        return "another kind"
    if len(a.values) != len(b.values):
        return f"{len(a.values):,} against {len(b.values):,} values"
    if a.kind == "bytes":
        return _note_images(a.values[0], b.values[0]) if len(a.values) == 1 else ""
    if len(a.values) < 2:
        return ""
    values_a, values_b = _to_array(a), _to_array(b)
    differs = values_a.view(f"i{values_a.itemsize}") != values_b.view(f"i{values_b.itemsize}")
    with np.errstate(invalid="ignore", over="ignore"):
        largest = np.abs(values_a[differs].astype(np.float64) - values_b[differs].astype(np.float64)).max()
    return f"{int(differs.sum()):,} of {len(differs):,} values differ, by at most {largest:.6g}"


def _note_frames(a: _Stored, b: _Stored) -> str:
    if len(a.values) != len(b.values):
        return f"{len(a.values):,} against {len(b.values):,} frames"
    wrong = [number for number, pair in enumerate(zip(_frames(a), _frames(b), strict=True)) if not _are_equal(*pair)]
    named = ", ".join(map(str, wrong[:_MAX_NAMED_FRAMES])) + (", …" if len(wrong) > _MAX_NAMED_FRAMES else "")
    return f"{len(wrong):,} of {len(a.values):,} frames differ: {named}"


def _note_images(a: bytes, b: bytes) -> str:
    """Describe how the pixels of two images differ; an empty string if either value is not an image."""
    if sniff_image(bytes(a[:_HEAD_NBYTES])) is None or sniff_image(bytes(b[:_HEAD_NBYTES])) is None:
        return ""
    try:
        pixels_a, pixels_b = decode_image(a, channels="keep"), decode_image(b, channels="keep")
    except CodecError as error:
        return f"not decoded: {error.what}"
    if pixels_a.shape != pixels_b.shape or pixels_a.dtype != pixels_b.dtype:
        shown = [f"{p.shape[1]}x{p.shape[0]}x{p.shape[2]} {p.dtype}" for p in (pixels_a, pixels_b)]
        return f"pixels {shown[0]} against {shown[1]}"
    if np.array_equal(pixels_a, pixels_b):
        return "equal pixels"
    gap = np.abs(pixels_a.astype(np.int32) - pixels_b.astype(np.int32))
    share = float((gap.max(axis=2) > 0).mean())
    return f"{share:.2%} of pixels differ, by at most {int(gap.max())}"


def _read_features(record: Record, kind: RecordKind) -> dict[str, _Stored] | None:
    """Return the features of a record by name, or None if the record is not a message of this kind."""
    if kind not in ("example", "sequence_example"):
        return None
    found = _native.read_message(kind, record)
    if isinstance(found, _native.Fault):
        return None
    features, lists = found
    prefixes = _prefixes(kind)
    read = {prefixes[0] + decode_name(bytes(name)): _Stored(stored, values) for name, stored, values in features or ()}
    for name, frames in lists or ():
        read[prefixes[1] + decode_name(bytes(name))] = _Stored("frames", frames, is_list=True)
    return read


def _frames(stored: _Stored) -> list[_Stored]:
    return [_Stored(kind, values) for kind, values in stored.values]


def _to_array(stored: _Stored) -> Any:
    if stored.kind == "float":
        return np.asarray(stored.values, np.float32)
    if stored.kind == "int64":
        return np.asarray(stored.values, np.int64)
    return [bytes(value) for value in stored.values]


def _prefixes(kind: RecordKind) -> tuple[str, str]:
    """Return what the names of features and of feature lists start with."""
    return (f"{PARTS[0]}.", f"{PARTS[1]}.") if kind == "sequence_example" else ("", "")


def _list_kinds(schema: Schema) -> dict[str, str]:
    """Map each feature to its storage kind; several kinds are joined by "|" if records disagree."""
    prefixes = _prefixes(schema.kind)
    kinds = {}
    for prefix, specs in ((prefixes[0], schema.features), (prefixes[1], schema.feature_lists)):
        for name, spec in specs.items():
            seen = (spec.kind,) if spec.seen is None else spec.seen
            kinds[prefix + name] = "|".join(sorted(seen)) or "no kind"
    return kinds
