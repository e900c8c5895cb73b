"""Convert statistics to JSON values, with the meanings of features and the names of classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tfrkit.features.infer import FeatureStats, InferredSchema, count_set, infer_schema
from tfrkit.features.meaning import describe_images
from tfrkit.features.name_words import is_label_name
from tfrkit.features.schema import Schema, decode_name
from tfrkit.features.spec import RecordKind, Spec
from tfrkit.images.sniff import ImageInfo, sniff_image
from tfrkit.ops.preview import value_to_json
from tfrkit.ops.stats.bytes import BytesSummary, ImageSummary
from tfrkit.ops.stats.features import DatasetSummary, FeatureKey, FeatureSummary
from tfrkit.ops.stats.numbers import NumberSummary
from tfrkit.sidecars.class_names import ClassNames
from tfrkit.sidecars.read import Sidecars

NUM_TOP = 10
# With more values than are counted exactly, frequent ones are listed only if the first has at least this share.
_MIN_TOP_SHARE = 0.01
_MAX_TEXT_CLASSES = 1000


def guess_specs(summary: DatasetSummary) -> dict[FeatureKey, Spec]:
    """Infer the spec of each feature, with meanings based on the statistics of all records."""
    counted = [
        _to_survey(key, feature, summary.probes[key])
        for key, feature in summary.features.items()
        if key in summary.probes
    ]
    kind: RecordKind = "sequence_example" if any(is_list for _, is_list in summary.features) else "example"
    schema = infer_schema(kind, summary.records, counted, sniff=sniff_image).schema
    specs = {}
    for name, is_list in summary.features:
        found = (schema.feature_lists if is_list else schema.features).get(decode_name(name))
        specs[name, is_list] = Spec("bytes") if found is None else found
    return specs


def refine_specs(specs: Mapping[FeatureKey, Spec], sidecars: Sidecars) -> Schema:
    """Return the specs as a schema, refined by the information in sidecars."""
    plain = {decode_name(name): spec for (name, is_list), spec in specs.items() if not is_list}
    lists = {decode_name(name): spec for (name, is_list), spec in specs.items() if is_list}
    return sidecars.refine(InferredSchema(Schema(plain, feature_lists=lists or None), []))


def find_spec(schema: Schema, key: FeatureKey) -> Spec:
    """Return the spec of a feature."""
    return (schema.feature_lists if key[1] else schema.features)[decode_name(key[0])]


def is_label(key: FeatureKey, feature: FeatureSummary, spec: Spec, names: ClassNames) -> bool:
    """Does a feature hold class labels, few enough to be counted exactly?"""
    name = decode_name(key[0])
    values = feature.values
    if values is None or values.count == 0 or not values.table.is_exact:
        return False
    if isinstance(values, BytesSummary):
        is_named = is_label_name(name) and values.is_text
        return is_named and bool(values.list_top(1)) and _is_repeated(values, _MAX_TEXT_CLASSES)
    return feature.kind == "int64" and (spec.logical == "class_label" or names.knows(name))


def feature_to_json(
    key: FeatureKey, feature: FeatureSummary, spec: Spec, records: int, names: ClassNames | None
) -> dict[str, Any]:
    """Return a feature as a JSON object; `names` are given if its values are classes."""
    name = decode_name(key[0])
    values = feature.values
    is_bytes = isinstance(values, BytesSummary)
    num_set = count_set(feature.present, feature.unset, is_list=key[1])
    return {
        "name": name,
        "list": key[1],
        "type": feature.kind,
        "kinds": dict(feature.kinds),
        "present": feature.present,
        "unset": feature.unset,
        "set": num_set,
        "share": num_set / records if records else 0.0,
        "values": 0 if values is None else values.count,
        "lengths": summary_to_json(feature.lengths) if feature.lengths.count else None,
        "frames": summary_to_json(feature.frames) if key[1] and feature.frames.count else None,
        "numbers": _numbers_to_json(values) if isinstance(values, NumberSummary) else None,
        "sizes": summary_to_json(values.sizes) if isinstance(values, BytesSummary) else None,
        "distinct": None if values is None else values.num_distinct,
        "distinct_exact": None if values is None else values.table.is_exact,
        "top": [] if values is None else list_top(name, values, names),
        "top_error": None if values is None else values.table.slack,
        "text": values.is_text and values.count > 0 if isinstance(values, BytesSummary) else None,
        "images": _images_to_json(values.images) if is_bytes and values.images.count else None,  # type: ignore[union-attr]
        "meaning": _describe(feature, spec),
    }


def summary_to_json(summary: NumberSummary) -> dict[str, Any]:
    """Return a summary of numbers as a JSON object: range, moments, quantiles, histogram."""
    quantiles, bins = summary.describe()
    return {
        "min": _plain(summary.low),
        "mean": summary.mean if summary.num_finite else None,
        "max": _plain(summary.high),
        "std": summary.std,
        "quantiles": {name: _plain(value) for name, value in (quantiles or {}).items()} or None,
        "histogram": [{"start": start, "stop": stop, "count": count} for start, stop, count in bins],
        "exact": summary.table.is_exact,
    }


def list_top(name: str, values: NumberSummary | BytesSummary, names: ClassNames | None) -> list[dict[str, Any]]:
    """List the most frequent values; [] if none is repeated, or if counts are inexact and the values rare."""
    top: list[tuple[Any, int]]
    top = values.list_top(NUM_TOP) if isinstance(values, BytesSummary) else values.table.list_top(NUM_TOP)
    if not top:
        return []
    is_repeated = top[0][1] > 1 or values.count == 1
    if not is_repeated or (not values.table.is_exact and top[0][1] < _MIN_TOP_SHARE * values.count):
        return []
    return [
        {
            "value": value_to_json(value),
            "name": None if names is None else names.name_of(name, value),
            "count": count,
            "share": count / values.count,
        }
        for value, count in top
    ]


def _numbers_to_json(values: NumberSummary) -> dict[str, Any]:
    counted = {"zeros": values.zeros, "nan": values.num_nan, "infinite": values.num_infinite}
    return {**summary_to_json(values), **counted}


def _images_to_json(images: ImageSummary) -> dict[str, Any]:
    return {
        "count": images.count,
        "formats": dict(sorted(images.formats.items())),
        "modes": dict(sorted(images.modes.items())),
        "width": summary_to_json(images.widths) if images.widths.count else None,
        "height": summary_to_json(images.heights) if images.heights.count else None,
    }


def _describe(feature: FeatureSummary, spec: Spec) -> str:
    """Describe the meaning of a feature; for images, from all of them and not only the first ones."""
    values = feature.values
    if not isinstance(values, BytesSummary) or not values.are_images:
        return spec.meaning
    images = values.images
    corners = [ImageInfo(name) for name in images.formats]
    if images.widths.count:
        for width, height in ((images.widths.low, images.heights.low), (images.widths.high, images.heights.high)):
            corners.append(ImageInfo(corners[0].format, int(width or 0), int(height or 0)))
    modes = {mode for mode in images.modes if mode != "RGB"}
    words = describe_images(corners)
    return f"{words} {ImageInfo('', mode=modes.pop()).pixels}" if len(images.modes) == len(modes) == 1 else words


def _to_survey(key: FeatureKey, feature: FeatureSummary, probe: FeatureStats) -> FeatureStats:
    """Make the survey that all records would have given, with the fields from which meanings are inferred."""
    values, lengths, frames = feature.values, feature.lengths, feature.frames
    counted: FeatureStats = {**probe, "name": key[0], "is_list": key[1]}
    counted["present"], counted["num_unset"] = feature.present, feature.unset
    counted["kind_counts"] = [0, *(feature.kinds[kind] for kind in ("bytes", "float", "int64"))]
    counted["min_length"], counted["max_length"] = int(lengths.low or 0), int(lengths.high or 0)
    counted["min_frames"], counted["max_frames"] = int(frames.low or 0), int(frames.high or 0)
    is_tensor = 0 < probe["num_tensors"] == probe["num_values"]
    counted["num_values"] = 0 if values is None else values.count
    counted["num_tensors"] = counted["num_values"] if is_tensor else 0
    if isinstance(values, BytesSummary):
        counted["num_text"] = counted["num_values"] if values.is_text else 0
        counted["min_bytes"], counted["max_bytes"] = int(values.sizes.low or 0), int(values.sizes.high or 0)
    elif values is not None and values.low is not None and values.high is not None:
        counted["num_nan"] = values.num_nan
        if feature.kind == "int64":
            counted["min_int"], counted["max_int"] = int(values.low), int(values.high)
        else:
            counted["min_float"], counted["max_float"] = values.low, values.high
    return counted


def _is_repeated(values: BytesSummary, most: int) -> bool:
    """Are there at most `most` distinct values, and do they occur at least twice on average or all agree?"""
    return values.num_distinct <= most and (values.num_distinct == 1 or 2 * values.num_distinct <= values.count)


def _plain(value: int | float | None) -> int | float | str | None:
    """Convert infinity to a string, because JSON has no infinity."""
    return str(value) if isinstance(value, float) and math.isinf(value) else value
