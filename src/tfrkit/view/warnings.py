"""What a reader of a report should know first: facts with a level, worst first. The page has the words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from tfrkit.features.name_words import TEXTS_OF_LABELS
from tfrkit.ops.stats.stats import Stats
from tfrkit.ops.verify.result import Verification

Json = dict[str, Any]
Level = Literal["bad", "warn", "note"]

_LEVELS: tuple[Level, ...] = ("bad", "warn", "note")
# Copies inside one split, which may be on purpose; every other kind of finding is bad.
_MILD_KINDS = frozenset({"duplicate", "near_duplicate"})
_DAMAGE_KINDS = frozenset({"checksum", "truncated", "compression", "file"})
_MAX_NAMES = 5
_MIN_RATIO = 20  # of the largest class to the smallest


def list_warnings(result: Stats, checked: Verification | None) -> list[Json]:
    """Return the warnings of a dataset, each with `level`, `kind` and its facts."""
    found = [*_list_damage(result, checked), *_list_classes(result), *_list_splits(result), *_list_features(result)]
    found += [_warn("note", "text", text=note) for note in result.notes]
    return sorted(found, key=lambda one: _LEVELS.index(one["level"]))


def _warn(level: Level, kind: str, **facts: Any) -> Json:
    return {"level": level, "kind": kind, **facts}


def _list_damage(result: Stats, checked: Verification | None) -> Iterator[Json]:
    if result.skipped:
        yield _warn("bad", "damage", n=result.skipped)
    for kind, count in {} if checked is None else checked.counts.items():
        if result.skipped and kind in _DAMAGE_KINDS:
            continue  # counted already
        yield _warn("warn" if kind in _MILD_KINDS else "bad", f"found_{kind}", n=count)


def _list_classes(result: Stats) -> Iterator[Json]:
    for one in drop_twins(result.classes):
        name = one["feature"]
        if one["unused"]:
            names = [str(entry["name"]) for entry in one["unused"][:_MAX_NAMES]]
            yield _warn("warn", "unused", feature=name, n=len(one["unused"]), names=names)
        for split in [split["name"] for split in result.splits if len(result.splits) > 1 and split["records"]]:
            absent = [entry for entry in one["classes"] if not entry["splits"][split]["count"]]
            if absent:
                names = [str(entry["name"] or entry["value"]) for entry in absent[:_MAX_NAMES]]
                yield _warn("warn", "absent", feature=name, split=split, n=len(absent), names=names)
        if one["largest_to_smallest"] >= _MIN_RATIO:
            yield _warn("warn", "imbalance", feature=name, ratio=round(one["largest_to_smallest"]))


def drop_twins(classes: Sequence[Json]) -> list[Json]:
    """Leave out class numbers if another feature has the names of the same classes."""
    counts = {one["feature"]: sorted(entry["count"] for entry in one["classes"]) for one in classes}
    twins = {name for name, text in TEXTS_OF_LABELS.items() if name in counts and counts.get(text) == counts[name]}
    return [one for one in classes if one["feature"] not in twins]


def _list_splits(result: Stats) -> Iterator[Json]:
    comparison = result.comparison
    for feature in [] if comparison is None else comparison["features"]:
        for split in feature["splits"]:
            if split["flagged"]:
                facts = {"split": split["split"], "reference": comparison["reference"] if comparison else None}
                distance = None if split["distance"] is None else round(split["distance"], 2)
                yield _warn("warn", "split", feature=feature["name"], **facts, distance=distance)


def _is_constant(feature: Json, records: int) -> bool:
    lengths = feature["lengths"] or {"min": 0, "max": 0}
    return records > 1 and feature["distinct"] == 1 and lengths["min"] == lengths["max"]


def _list_features(result: Stats) -> Iterator[Json]:
    features = result.features
    mixed = [feature["name"] for feature in features if feature["type"] == "mixed"]
    bad = [feature["name"] for feature in features if feature["numbers"] and feature["numbers"]["nan"]]
    infinite = [feature["name"] for feature in features if feature["numbers"] and feature["numbers"]["infinite"]]
    missing = [feature["name"] for feature in features if feature["set"] < result.records]
    constant = [feature["name"] for feature in features if _is_constant(feature, result.records)]
    groups: list[tuple[Level, str, list[str]]] = [
        ("bad", "mixed", mixed),
        ("warn", "nan", bad),
        ("warn", "infinite", infinite),
        ("warn", "missing", missing),
        ("note", "constant", constant),
    ]
    for level, kind, names in groups:
        if names:
            yield _warn(level, kind, n=len(names), names=names[:_MAX_NAMES])
