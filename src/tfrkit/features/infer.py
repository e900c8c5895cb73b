"""Infer a schema from counts over the records of a dataset."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypedDict

from tfrkit.features.meaning import FeatureView, ImageLike, guess_meaning
from tfrkit.features.schema import Schema, decode_name
from tfrkit.features.spec import MAX_RANK, Logical, RecordKind, Shape, Spec, StorageKind
from tfrkit.features.tensor_dtypes import DTYPE_NAMES

# By field number of tf.train.Feature; 0 is a Feature in which no list is set.
_KINDS: tuple[StorageKind | None, ...] = (None, "bytes", "float", "int64")


class FeatureStats(TypedDict):
    """The counts of a survey for one feature; native/core/stats/survey.h describes each key."""

    name: bytes
    is_list: bool
    present: int
    num_unset: int
    kind_counts: list[int]
    min_length: int
    max_length: int
    min_frames: int
    max_frames: int
    min_int: int
    max_int: int
    min_float: float
    max_float: float
    num_values: int
    num_nan: int
    min_bytes: int
    max_bytes: int
    num_text: int
    num_tensors: int
    tensor_dtype: int
    tensor_shape: list[int]
    tensor_rank: int
    heads: list[bytes]


def merge_stats(one: FeatureStats, other: FeatureStats) -> FeatureStats:
    """Merge two surveys of a feature into the result of a single survey."""
    merged: dict[str, Any] = dict(one)
    had_kind, has_kind = sum(one["kind_counts"][1:]) > 0, sum(other["kind_counts"][1:]) > 0
    for name in ("present", "num_unset", "num_values", "num_nan", "num_text", "num_tensors"):
        merged[name] += other[name]
    merged["kind_counts"] = [a + b for a, b in zip(one["kind_counts"], other["kind_counts"], strict=True)]
    for name, had, has in (
        ("length", had_kind, has_kind),
        ("frames", True, True),
        ("int", one["num_values"] > 0, other["num_values"] > 0),
        ("float", one["num_values"] > one["num_nan"], other["num_values"] > other["num_nan"]),
        ("bytes", one["num_values"] > 0, other["num_values"] > 0),
    ):
        if has:
            low, high = other[f"min_{name}"], other[f"max_{name}"]  # type: ignore[literal-required]
            merged[f"min_{name}"] = min(merged[f"min_{name}"], low) if had else low
            merged[f"max_{name}"] = max(merged[f"max_{name}"], high) if had else high
    if other["num_tensors"]:
        _merge_tensors(merged, one, other)
    merged["heads"] = (one["heads"] + other["heads"])[:3]
    return merged  # type: ignore[return-value]


def _merge_tensors(merged: dict[str, Any], one: FeatureStats, other: FeatureStats) -> None:
    if not one["num_tensors"]:
        for name in ("tensor_dtype", "tensor_shape", "tensor_rank"):
            merged[name] = other[name]
        return
    if one["tensor_dtype"] != other["tensor_dtype"]:
        merged["tensor_dtype"] = -1
    if one["tensor_rank"] != other["tensor_rank"]:
        merged["tensor_rank"] = -1
    if merged["tensor_rank"] >= 0:
        pairs = zip(one["tensor_shape"], other["tensor_shape"], strict=True)
        merged["tensor_shape"] = [a if a == b else -1 for a, b in pairs]


Sniff = Callable[[bytes], ImageLike | None]


@dataclass(frozen=True)
class InferredSchema:
    """An inferred schema and the counts it is based on.

    `report` has one dict per feature, in the order of the schema. Its keys are public JSON (`tfr info`):

    - name, type ("bytes", "float", "int64"; None if no record sets one), list (a feature list of a
      SequenceExample), shape (null for a varying size), optional
    - present: records that have the name; unset: records (frames) in which it has no kind
    - min_length, max_length: values per record (per frame), over records in which it has a kind
    - min_frames, max_frames: frames per record; null unless list
    - min_value, max_value: over all numbers except NaN, null if there are none; "inf" and "-inf" are strings
    - num_values, num_nan; min_bytes, max_bytes: sizes of single bytes values; null for numbers
    - dtype: dtype of a serialized tensor, else null
    - kinds: number of records (frames) with each kind
    - meaning: a guess as text
    """

    schema: Schema
    report: list[dict[str, Any]]


def infer_schema(
    kind: RecordKind, num_records: int, stats: Iterable[FeatureStats], *, sniff: Sniff | None = None
) -> InferredSchema:
    """Guess the schema of `num_records` records from the counts of a survey.

    A feature is a scalar if every record that sets it has exactly one value. If all have k values, its shape is
    (k,); otherwise, or if it is always empty, its shape is (None,). A feature is optional if some record lacks it
    or has it without a kind. Bytes are inferred to be serialized tensors only if every value passes the strict
    structural check. `sniff` identifies an image by its first bytes.
    """
    features: dict[str, Spec] = {}
    lists: dict[str, Spec] = {}
    report = []
    for counted in stats:
        name = decode_name(counted["name"])
        spec = _infer_spec(name, num_records, counted, sniff)
        (lists if counted["is_list"] else features)[name] = spec
        report.append(_report_feature(name, spec, counted))
    schema = Schema(features, feature_lists=lists if kind == "sequence_example" else None, kind=kind)
    return InferredSchema(schema, report)


def _infer_spec(name: str, num_records: int, counted: FeatureStats, sniff: Sniff | None) -> Spec:
    kinds = _list_kinds(counted)
    kind: StorageKind = kinds[0] if kinds else "bytes"
    is_list = counted["is_list"]
    # A frame without a kind has no values, so the frames do not all have the same length.
    has_gaps = counted["num_unset"] > 0 and is_list
    shape = _infer_shape(counted["min_length"], counted["max_length"], has_gaps=has_gaps or len(kinds) != 1)
    spec = Spec(
        kind,
        shape,
        optional=counted["present"] < num_records or (counted["num_unset"] > 0 and not is_list),
        is_list=is_list,
        seen=tuple(kinds) if len(kinds) != 1 else None,
    )
    if len(kinds) == 1 and kind == "bytes" and shape == () and _are_all_tensors(counted):
        spec = spec.replace(encoding="tensor_proto", logical="tensor", **_describe_tensor(counted))
    images = _sniff_all(counted["heads"], sniff) if kinds == ["bytes"] and spec.encoding == "list" else []
    meaning, logical = guess_meaning(_view_feature(name, spec, counted, images))
    return spec.replace(meaning=meaning, logical=logical, format=_shared_format(images, logical))


def count_kinds(counted: FeatureStats) -> dict[StorageKind, int]:
    """Return the number of records (frames) with each kind; unset ones are not counted."""
    return {kind: count for kind, count in zip(_KINDS, counted["kind_counts"], strict=True) if kind and count}


def _list_kinds(counted: FeatureStats) -> list[StorageKind]:
    """Return the kinds seen, most frequent first."""
    counts = count_kinds(counted)
    return sorted(counts, key=lambda kind: -counts[kind])


def _infer_shape(min_length: int, max_length: int, *, has_gaps: bool) -> Shape:
    if has_gaps or min_length != max_length or max_length == 0:
        return (None,)
    return () if max_length == 1 else (max_length,)


def _are_all_tensors(counted: FeatureStats) -> bool:
    return 0 < counted["num_values"] == counted["num_tensors"] and len(counted["tensor_shape"]) <= MAX_RANK


def _describe_tensor(counted: FeatureStats) -> dict[str, Any]:
    shape: Shape = tuple(None if size < 0 else size for size in counted["tensor_shape"])
    if counted["tensor_rank"] < 0:
        shape = (None,)
    return {"dtype": DTYPE_NAMES.get(counted["tensor_dtype"]), "shape": shape}


def _sniff_all(heads: list[bytes], sniff: Sniff | None) -> list[ImageLike]:
    """Identify the sampled images; return an empty list unless all samples are images."""
    if sniff is None or not heads:
        return []
    images = [sniff(bytes(head)) for head in heads]
    return [image for image in images if image is not None] if all(images) else []


def _shared_format(images: list[ImageLike], logical: Logical) -> str | None:
    formats = {image.format.lower() for image in images}
    return formats.pop() if len(formats) == 1 and logical in ("image", "mask") else None


def _view_feature(name: str, spec: Spec, counted: FeatureStats, images: list[ImageLike]) -> FeatureView:
    low, high = _find_range(spec, counted)
    return FeatureView(
        name=name,
        spec=spec,
        min_length=counted["min_length"],
        max_length=counted["max_length"],
        low=low,
        high=high,
        min_bytes=counted["min_bytes"],
        max_bytes=counted["max_bytes"],
        is_text=0 < counted["num_values"] == counted["num_text"],
        has_varying_rank=counted["tensor_rank"] < 0,
        heads=[bytes(head) for head in counted["heads"]],
        images=images,
        num_values=counted["num_values"],
    )


def _find_range(spec: Spec, counted: FeatureStats) -> tuple[int | float | None, int | float | None]:
    if spec.seen is not None or counted["num_values"] == 0:
        return None, None
    if spec.kind == "int64":
        return counted["min_int"], counted["max_int"]
    if spec.kind == "float" and counted["num_values"] > counted["num_nan"]:
        return counted["min_float"], counted["max_float"]
    return None, None


def _report_feature(name: str, spec: Spec, counted: FeatureStats) -> dict[str, Any]:
    kinds = _list_kinds(counted)
    low, high = _find_range(spec, counted)
    has_bytes = "bytes" in kinds and counted["num_values"] > 0
    return {
        "name": name,
        "type": kinds[0] if kinds else None,
        "list": counted["is_list"],
        "present": counted["present"],
        "unset": counted["num_unset"],
        "min_length": counted["min_length"],
        "max_length": counted["max_length"],
        "min_frames": counted["min_frames"] if counted["is_list"] else None,
        "max_frames": counted["max_frames"] if counted["is_list"] else None,
        "shape": list(spec.shape),
        "dtype": spec.dtype,
        "optional": spec.optional,
        "min_value": _to_json_number(low),
        "max_value": _to_json_number(high),
        "num_values": counted["num_values"],
        "num_nan": counted["num_nan"],
        "min_bytes": counted["min_bytes"] if has_bytes else None,
        "max_bytes": counted["max_bytes"] if has_bytes else None,
        "kinds": count_kinds(counted),
        "meaning": spec.meaning,
    }


def _to_json_number(value: int | float | None) -> int | float | str | None:
    """Convert infinity to a string, because JSON has no infinity."""
    return str(value) if isinstance(value, float) and math.isinf(value) else value
