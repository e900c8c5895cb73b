"""The statistics of a dataset as one JSON object: what the statistics page and the file of `tfr stats --html` draw."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfrkit.container.names import title_files
from tfrkit.container.records import NO_LIMIT, find_hole
from tfrkit.features.schema import Schema, encode_name
from tfrkit.ops.preview import value_to_json
from tfrkit.ops.stats.bytes import BytesSummary
from tfrkit.ops.stats.describe import summary_to_json
from tfrkit.ops.stats.features import FeatureSummary
from tfrkit.ops.stats.numbers import NumberSummary
from tfrkit.ops.stats.picks import Pick
from tfrkit.ops.stats.stats import Collected, Stats
from tfrkit.ops.verify.result import FindingKind, Verification, VerifyFinding
from tfrkit.view.thumbnails import Spot, Thumbnails
from tfrkit.view.warnings import drop_twins, list_warnings

Json = dict[str, Any]

COPY_KINDS: tuple[FindingKind, ...] = ("leak", "duplicate", "near_duplicate")
_MAX_FIGURES = 100
_MAX_FEATURES = 1000
_MAX_FILES = 500
_MAX_CLASSES = 300
_MAX_RARE = 8  # classes
_MAX_PAIRS = 12
_MAX_FINDINGS = 50


def make_report(
    collected: Collected,
    checked: Verification | None = None,
    *,
    given: Mapping[str, str] = {},
    find: Callable[[Spot], Json] = lambda place: {},
) -> Json:
    """Return the report of a dataset, with copies and other findings if it was checked, and with small pictures.

    `given` are choices of the features of pictures, by the names of `tfr sheet`; `find` adds facts about records.
    """
    result, picks = collected.result, collected.whole.picks.samples
    pictures = Thumbnails(collected.schema, collected.names, picks, given=given)
    rarest = _choose_rarest(collected, pictures.label)
    pairs = [] if checked is None else _choose_pairs(checked)
    pictures.read([*(pick for _, _, some in rarest for pick in some), *(place for pair in pairs for place in pair[1:])])
    holes = {} if checked is None else {tally.path: tally.hole for tally in checked.shards}
    for one in result.findings:
        holes[one.shard] = min(find_hole([one]), holes.get(one.shard, NO_LIMIT))
    shown = _Shown(pictures, find, {file["path"]: file["split"] for file in result.files}, holes)
    features = _list_features(collected, [split["name"] for split in result.splits])
    return {
        "title": title_files([file["path"] for file in result.files]) if result.files else "",
        "kind": result.kind,
        "records": result.records,
        "bytes": sum(file["bytes"] or 0 for file in result.files),
        "num_files": len(result.files),
        "splits": result.splits,
        "warnings": list_warnings(result, checked),
        "record_bytes": _make_figure(
            collected.whole.other_sizes if result.kind == "raw" else collected.whole.sizes, ()
        ),
        "classes": [_shorten_classes(one, result.splits) for one in drop_twins(result.classes)],
        "rarest": _show_rarest(rarest, shown, collected.schema),
        "samples": shown.show_all(picks),
        "copies": None if checked is None else _show_copies(checked, pairs, shown),
        "findings": _list_findings(result, checked, shown),
        "features": features,
        "tables": [_list_facts(features), _list_files(result)],
    }


class _Shown:
    """Records as the page shows them: place, split, and what `find` knows of them; never the path of a file."""

    def __init__(
        self,
        pictures: Thumbnails,
        find: Callable[[Spot], Json],
        splits: Mapping[str, str | None],
        holes: Mapping[str, int],
    ) -> None:
        self._pictures = pictures
        self._find = find
        self._splits = splits
        self._holes = holes  # record numbers of a file are uncertain after this one

    def name(self, place: Spot) -> Json:
        facts = {"file": os.path.basename(place.shard), "record": place.record, "split": self._splits.get(place.shard)}
        if place.record is not None and place.record > self._holes.get(place.shard, place.record):
            facts["record_certain"] = False
        return facts | self._find(place)

    def show(self, place: Spot, *, only: str | None = None) -> Json | None:
        made = self._pictures.make(place, only=only)
        return None if made is None else made | self.name(place)

    def show_all(self, places: Sequence[Spot], *, only: str | None = None) -> list[Json]:
        return [made for place in places if (made := self.show(place, only=only)) is not None]


def _list_features(collected: Collected, splits: Sequence[str]) -> list[Json]:
    listed: list[Json] = []
    keys = sorted(collected.whole.features, key=lambda key: (key[1], key[0]))
    for number, (key, shown) in enumerate(zip(keys, collected.result.features, strict=True)):
        if number == _MAX_FEATURES:
            break
        parts = [collected.splits[name].features.get(key, FeatureSummary()) for name in splits]
        feature = dict(shown)
        if number < _MAX_FIGURES:
            feature |= _make_figures(collected.whole.features[key], parts if len(parts) > 1 else (), is_list=key[1])
        for name in ("lengths", "frames", "numbers", "sizes"):
            feature[name] = {k: v for k, v in (feature[name] or {}).items() if k != "histogram"} or None
        # Lists that belong together, such as the sides of boxes, have the same lengths: these are plotted once.
        lengths = feature["lengths"] or {}
        if any(lengths.get("bins") == (other["lengths"] or {}).get("bins") for other in listed):
            lengths.pop("bins", None)
        listed.append(feature)
    return listed


def _make_figures(whole: FeatureSummary, splits: Sequence[FeatureSummary], *, is_list: bool) -> Json:
    made: Json = {"lengths": _make_figure(whole.lengths, [part.lengths for part in splits])}
    made["frames"] = _make_figure(whole.frames, [part.frames for part in splits]) if is_list else None
    made["sizes"] = made["numbers"] = None
    values, others = whole.values, [part.values for part in splits]
    if isinstance(values, NumberSummary):
        counted = {"zeros": values.zeros, "nan": values.num_nan, "infinite": values.num_infinite}
        numbers = [one if isinstance(one, NumberSummary) else NumberSummary() for one in others]
        figure = _make_figure(values, numbers)
        made["numbers"] = None if figure is None else figure | counted
    elif isinstance(values, BytesSummary):
        sizes = [one.sizes if isinstance(one, BytesSummary) else NumberSummary() for one in others]
        made["sizes"] = _make_figure(values.sizes, sizes)
        pairs = sorted(values.images.pairs.items(), key=lambda item: (-item[1], item[0]))
        made["pictures"] = {
            "step": values.images.step,
            "formats": dict(sorted(values.images.formats.items())),
            "sizes": [{"width": width, "height": height, "count": count} for (width, height), count in pairs],
        }
    return made


def _make_figure(whole: NumberSummary, splits: Sequence[NumberSummary]) -> Json | None:
    """Return a histogram with the facts of the numbers; the bins count each split, too."""
    if whole.count == 0:
        return None
    figure = summary_to_json(whole)
    bins = figure.pop("histogram")
    edges = [one["start"] for one in bins] + [one["stop"] for one in bins[-1:]]
    counted = [part.count_between(edges) if part.count else [0] * len(bins) for part in splits]
    figure["bins"] = [
        {"from": one["start"], "to": one["stop"], "count": one["count"]}
        | ({"splits": [part[number] for part in counted]} if counted else {})
        for number, one in enumerate(bins)
    ]
    return figure | {"splits": [part.num_finite for part in splits]}


def _shorten_classes(one: Json, splits: Sequence[Json]) -> Json:
    """Sort classes by count, and count them in each split, or in all records if there are no splits."""
    names = [split["name"] for split in splits] if len(splits) > 1 else []
    ranked = sorted(one["classes"], key=lambda entry: -entry["count"])
    counts = [[entry["splits"][name]["count"] for name in names] or [entry["count"]] for entry in ranked]
    kept = [
        {"value": entry["value"], "text": _name_class(entry), "count": entry["count"], "splits": count}
        for entry, count in list(zip(ranked, counts, strict=True))[:_MAX_CLASSES]
    ]
    facts = {key: one[key] for key in ("feature", "list", "num_classes", "largest_to_smallest")}
    return {**facts, "sums": [sum(count) for count in zip(*counts, strict=True)], "classes": kept}


def _name_class(entry: Json) -> str:
    value = entry["value"]
    if entry["name"]:
        return f"{entry['name']} ({value})" if str(entry["name"]) != str(value) else str(value)
    return str(next(iter(value.values()), "")) if isinstance(value, dict) else str(value)


Rare = tuple[Json, Json, list[Pick]]
"""A label, one of its classes, and picked records of that class."""


def _choose_rarest(collected: Collected, label: str | None) -> list[Rare]:
    """Choose the rarest classes of the label that pictures show, else of the first label."""
    uneven = [one for one in collected.result.classes if one["num_classes"] > 1 and one["largest_to_smallest"] > 1]
    for one in sorted(uneven, key=lambda one: one["feature"] != label):
        examples = collected.whole.picks.examples.get((encode_name(one["feature"]), one["list"]), {})
        picked = {str(value_to_json(value)): picks for value, picks in examples.items()}
        ranked = sorted(one["classes"], key=lambda entry: (entry["count"], str(entry["value"])))
        chosen = [(one, entry, picked[str(entry["value"])]) for entry in ranked if str(entry["value"]) in picked]
        if chosen:
            return chosen[:_MAX_RARE]
    return []


def _show_rarest(rarest: Sequence[Rare], shown: _Shown, schema: Schema) -> Json | None:
    classes = []
    for one, entry, picks in rarest:
        text = _name_class(entry)
        spec = schema.features.get(one["feature"])
        # With several classes per record, boxes show which object is meant.
        only = str(entry["name"] or entry["value"]) if spec is not None and spec.shape == (None,) else None
        made = shown.show_all(picks, only=only)
        if made:
            classes.append({"value": entry["value"], "text": text, "count": entry["count"], "pictures": made})
    return {"feature": rarest[0][0]["feature"], "classes": classes} if classes else None


Pair = tuple[VerifyFinding, Spot, Spot]


def _choose_pairs(checked: Verification) -> list[Pair]:
    """Choose copies to show, leaks between splits first."""
    found = [finding for finding in checked.findings if finding.kind in COPY_KINDS]
    found.sort(key=lambda finding: COPY_KINDS.index(finding.kind))
    return [(one, one.other, one) for one in found[:_MAX_PAIRS] if one.other is not None]  # type: ignore[misc]


def _show_copies(checked: Verification, pairs: Sequence[Pair], shown: _Shown) -> Json:
    listed = [
        {"kind": finding.kind, "records": [shown.show(place) or shown.name(place) for place in (one, other)]}
        for finding, one, other in pairs
    ]
    return {"counts": {kind: checked.counts[kind] for kind in COPY_KINDS if checked.counts[kind]}, "pairs": listed}


def _list_findings(result: Stats, checked: Verification | None, shown: _Shown) -> list[Json]:
    """List damaged places that were left out, and what a check found, except copies."""
    found: list[Any] = list(result.findings)
    if checked is not None:
        known = {(one.shard, one.offset) for one in found}
        others = [one for one in checked.findings if one.kind not in COPY_KINDS]
        found += [one for one in others if (one.shard, one.offset) not in known]
    return [{**shown.name(one), "cause": one.cause} for one in found[:_MAX_FINDINGS]]


FACTS = ("name", "type", "present", "length", "min", "mean", "max", "std", "values", "meaning")


def _list_facts(features: Sequence[Json]) -> Json:
    """Return the table of all features; cells are texts and numbers."""
    rows = []
    for one in features:
        figure, lengths = one["numbers"] or one["sizes"] or {}, one["lengths"] or {}
        length = (
            lengths.get("max") if lengths.get("min") == lengths.get("max") else f"{lengths['min']} – {lengths['max']}"
        )
        facts = {key: figure.get(key) for key in ("min", "mean", "max", "std")}
        facts |= {"name": one["name"], "type": f"{one['type']} list" if one["list"] else one["type"]}
        facts |= {"present": one["set"], "length": length, "values": one["distinct"], "meaning": one["meaning"]}
        rows.append([facts[key] for key in FACTS])
    return {"name": "table", "heads": FACTS, "rows": rows}


def _list_files(result: Stats) -> Json:
    rows = [
        [os.path.basename(file["path"]), file["split"], file["records"], file["bytes"]]
        for file in result.files[:_MAX_FILES]
    ]
    return {"name": "file_list", "heads": ("name", "split", "records", "bytes"), "rows": rows}
