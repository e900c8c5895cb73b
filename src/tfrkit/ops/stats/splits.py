"""Compare the splits of a dataset: the balance of classes in each split, and features that differ between splits.

Two splits are compared feature by feature, by a distance between 0 (alike) and 1 (nothing in common):

- total variation, for at most MAX_CATEGORIES distinct values: half of the sum, over all values, of the differences
  of their shares;
- Kolmogorov-Smirnov otherwise: the largest difference of the cumulative distributions. For bytes, those of the
  sizes of values.

Samples of the same distribution differ too. A distance is flagged if it is above MIN_DISTANCE and above what chance
explains for this number of values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrkit.features.infer import count_set
from tfrkit.features.schema import decode_name
from tfrkit.features.spec import Spec
from tfrkit.ops.preview import value_to_json
from tfrkit.ops.stats.bytes import BytesSummary
from tfrkit.ops.stats.describe import is_label
from tfrkit.ops.stats.features import DatasetSummary, FeatureKey, FeatureSummary
from tfrkit.ops.stats.numbers import NumberSummary
from tfrkit.sidecars.class_names import ClassNames

MAX_CATEGORIES = 100
MIN_DISTANCE = 0.1
MIN_PRESENCE_GAP = 0.05
# Limit on listed classes.
MAX_CLASSES = 1000
# Distance that two samples of one distribution exceed in 1 % of cases, in units of sqrt(1/n + 1/m).
_KS_CHANCE = 1.63
_TV_CHANCE = 2.0  # times the expected distance
_PRESENCE_CHANCE = 3.0  # standard deviations
_FIRST_WORDS = ("train", "training")

SplitSummaries = Mapping[str, DatasetSummary]


def choose_reference(splits: SplitSummaries) -> str:
    """Choose the split that others are compared with: the training split, else the largest."""
    for name in splits:
        if name.lower() in _FIRST_WORDS:
            return name
    return max(splits, key=lambda name: splits[name].records)


def count_classes(
    whole: DatasetSummary, splits: SplitSummaries, specs: Mapping[FeatureKey, Spec], names: ClassNames
) -> list[dict[str, Any]]:
    """Count the classes of each label feature, in total and per split."""
    counted = []
    for key, feature in sorted(whole.features.items(), key=lambda item: (item[0][1], item[0][0])):
        if is_label(key, feature, specs[key], names):
            counted.append(_count_feature(key, feature, splits, names))
    return counted


def _count_feature(
    key: FeatureKey, feature: FeatureSummary, splits: SplitSummaries, names: ClassNames
) -> dict[str, Any]:
    name = decode_name(key[0])
    total = _count_values(feature)
    by_split = {split: _count_values(summary.features.get(key)) for split, summary in splits.items()}
    sums = {split: sum(counts.values()) for split, counts in by_split.items()}
    num_values = sum(total.values())
    named = names.list_ids(name) if feature.kind == "int64" else []
    values = sorted(total) if len(total) <= MAX_CLASSES else [value for value, _ in _rank(total)[:MAX_CLASSES]]
    return {
        "feature": name,
        "list": key[1],
        "num_classes": len(total),
        "largest_to_smallest": max(total.values()) / min(total.values()),
        "unused": [{"value": value, "name": names.name_of(name, value)} for value in named if value not in total],
        "classes": [
            {
                "value": value_to_json(value),
                "name": names.name_of(name, value),
                "count": total[value],
                "share": total[value] / num_values,
                "splits": {
                    split: {"count": counts.get(value, 0), "share": counts.get(value, 0) / max(1, sums[split])}
                    for split, counts in by_split.items()
                },
            }
            for value in values
        ],
    }


def _rank(counts: Mapping[Any, int]) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _count_values(feature: FeatureSummary | None) -> dict[Any, int]:
    """Map values to their counts; for bytes, the values themselves and not their hashes."""
    values = None if feature is None else feature.values
    if values is None:
        return {}
    counts = dict(zip(values.table.values.tolist(), values.table.counts.tolist(), strict=True))
    if isinstance(values, BytesSummary):
        return {values.shown[key]: count for key, count in counts.items() if key in values.shown}
    return counts


def compare_splits(whole: DatasetSummary, splits: SplitSummaries) -> dict[str, Any] | None:
    """Compare each feature of each split with the reference split; None for fewer than two splits with records."""
    filled = {name: summary for name, summary in splits.items() if summary.records}
    if len(filled) < 2:
        return None
    reference = choose_reference(filled)
    features: list[dict[str, Any]] = []
    for key, feature in sorted(whole.features.items(), key=lambda item: (item[0][1], item[0][0])):
        method = _choose_method(feature)
        features.append(
            {
                "name": decode_name(key[0]),
                "list": key[1],
                "method": method,
                "splits": [_compare(key, method, name, filled, reference) for name in filled],
            }
        )
    flagged = sum(split["flagged"] for feature in features for split in feature["splits"])
    return {"reference": reference, "flagged": flagged, "features": features}


def _choose_method(feature: FeatureSummary) -> str | None:
    values = feature.values
    if values is None or values.count == 0:
        return None
    if values.table.is_exact and values.num_distinct <= MAX_CATEGORIES:
        return "total variation"
    return "Kolmogorov-Smirnov" if isinstance(values, NumberSummary) else "Kolmogorov-Smirnov of sizes"


def _compare(key: FeatureKey, method: str | None, name: str, splits: SplitSummaries, reference: str) -> dict[str, Any]:
    empty = FeatureSummary()
    summary, base = splits[name], splits[reference]
    feature, other = summary.features.get(key, empty), base.features.get(key, empty)
    num_set, num_base = (count_set(one.present, one.unset, is_list=key[1]) for one in (feature, other))
    share, base_share = num_set / summary.records, num_base / base.records
    values = feature.values
    has_mean = isinstance(values, NumberSummary) and values.num_finite
    result: dict[str, Any] = {
        "split": name,
        "share": share,
        "mean": values.mean if has_mean else None,  # type: ignore[union-attr]
        "distance": None,
        "chance": None,
        "flagged": False,
        "why": None,
    }
    if name == reference:
        return result
    causes = []
    if feature.kind != other.kind:
        causes.append(f"type {feature.kind or 'none'}, {other.kind or 'none'} in {reference}")
    elif method is not None and values is not None and other.values is not None and values.count and other.values.count:
        distance, chance = _find_distance(method, values, other.values)
        result["distance"], result["chance"] = distance, chance
        if distance > MIN_DISTANCE and distance > chance:
            causes.append(f"{method} {distance:.2f}")
    pooled = (num_set + num_base) / (summary.records + base.records)
    spread = math.sqrt(pooled * (1 - pooled) * (1 / summary.records + 1 / base.records))
    gap = abs(share - base_share)
    if gap > MIN_PRESENCE_GAP and gap > _PRESENCE_CHANCE * spread:
        causes.append(f"present in {share:.0%}, {base_share:.0%} in {reference}")
    result["flagged"], result["why"] = bool(causes), "; ".join(causes) or None
    return result


def _find_distance(
    method: str, one: NumberSummary | BytesSummary, other: NumberSummary | BytesSummary
) -> tuple[float, float]:
    """Return the distance, and the largest distance that chance explains."""
    if method == "total variation":
        return find_total_variation(_count_keys(one), _count_keys(other))
    numbers = one.sizes if isinstance(one, BytesSummary) else one
    return find_ks(numbers, other.sizes if isinstance(other, BytesSummary) else other)


def _count_keys(values: NumberSummary | BytesSummary) -> dict[Any, int]:
    return dict(zip(values.table.values.tolist(), values.table.counts.tolist(), strict=True))


def find_total_variation(one: Mapping[Any, int], other: Mapping[Any, int]) -> tuple[float, float]:
    """Return the total variation distance of two distributions, and the largest distance that chance explains.

    Example:
        >>> find_total_variation({"a": 3, "b": 1}, {"a": 1, "b": 3})[0]
        0.5
    """
    size, other_size = sum(one.values()), sum(other.values())
    distance = chance = 0.0
    for value in sorted(one.keys() | other.keys()):
        count, other_count = one.get(value, 0), other.get(value, 0)
        distance += abs(count / size - other_count / other_size)
        pooled = (count + other_count) / (size + other_size)
        # Mean absolute value of a difference that is normally distributed around 0.
        chance += math.sqrt(2 / math.pi * pooled * (1 - pooled) * (1 / size + 1 / other_size))
    return distance / 2, _TV_CHANCE * chance / 2


def find_ks(one: NumberSummary, other: NumberSummary) -> tuple[float, float]:
    """Return the Kolmogorov-Smirnov distance of two distributions, and the largest distance that chance explains."""
    values, weights = one.weigh()
    other_values, other_weights = other.weigh()
    points = np.union1d(values, other_values)
    gaps = _share_up_to(values, weights, points) - _share_up_to(other_values, other_weights, points)
    chance = _KS_CHANCE * math.sqrt(1 / one.count + 1 / other.count)
    return float(np.abs(gaps).max(initial=0.0)), chance


def _share_up_to(values: Any, weights: Any, points: Any) -> Any:
    reached = np.concatenate([[0], np.cumsum(weights)])
    return reached[np.searchsorted(values, points, side="right")] / max(1, int(reached[-1]))
