"""Infer a schema from counts over the records of a dataset."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypedDict

from tfrkit.features.meaning import FeatureView, ImageLike, guess_meaning
from tfrkit.features.schema import Schema, decode_name
from tfrkit.features.spec import MAX_RANK, RecordKind, Shape, Spec, StorageKind
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


def count_set(present: int, unset: int, *, is_list: bool) -> int:
    """Return the number of records with a value: those that have the name, except those in which it has no kind.

    In a feature list, single steps have no kind, not records.
    """
    return present if is_list else present - unset


Sniff = Callable[[bytes], ImageLike | None]
_Range = tuple[int | float | None, int | float | None]


@dataclass(frozen=True)
class InferredSchema:
    """An inferred schema and the counts it is based on.

    `report` has one dict per feature, in the order of the schema. Its keys are public JSON (`tfr info`):

    - name, type ("bytes", "float", "int64"; None if no record sets one), list (a feature list of a
      SequenceExample), shape (null for a varying size), optional
    - present: records that have the name; unset: records (frames) in which it has no kind; set: records with a value
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
        # The kinds seen, most frequent first.
        counts = count_kinds(counted)
        kinds = sorted(counts, key=counts.__getitem__, reverse=True)
        span = _find_range(kinds, counted)
        num_set = count_set(counted["present"], counted["num_unset"], is_list=counted["is_list"])
        spec = _infer_spec(name, num_set < num_records, counted, kinds, span, sniff)
        (lists if counted["is_list"] else features)[name] = spec
        report.append(_report_feature(name, spec, counted, counts, kinds, span, num_set))
    schema = Schema(features, feature_lists=lists if kind == "sequence_example" else None, kind=kind)
    return InferredSchema(schema, report)


def _infer_spec(
    name: str, optional: bool, counted: FeatureStats, kinds: list[StorageKind], span: _Range, sniff: Sniff | None
) -> Spec:
    is_list, has_one_kind, length = counted["is_list"], len(kinds) == 1, counted["max_length"]
    shape: Shape = () if length == 1 else (length,)
    # A frame without a kind has no values, so the frames do not all have the same length.
    has_gaps = counted["num_unset"] > 0 and is_list
    if has_gaps or not has_one_kind or counted["min_length"] != length or length == 0:
        shape = (None,)
    spec = Spec(
        kinds[0] if kinds else "bytes",
        shape,
        optional=optional,
        is_list=is_list,
        seen=None if has_one_kind else tuple(kinds),
    )
    images: list[ImageLike] = []
    if kinds == ["bytes"]:
        are_tensors = 0 < counted["num_values"] == counted["num_tensors"] and len(counted["tensor_shape"]) <= MAX_RANK
        if shape == () and are_tensors:
            spec = spec.replace(encoding="tensor_proto", logical="tensor", **_describe_tensor(counted))
        elif sniff is not None:
            sniffed = [sniff(bytes(head)) for head in counted["heads"]]
            images = [image for image in sniffed if image is not None] if all(sniffed) else []
    view = FeatureView(
        name=name,
        spec=spec,
        min_length=counted["min_length"],
        max_length=length,
        low=span[0],
        high=span[1],
        min_bytes=counted["min_bytes"],
        max_bytes=counted["max_bytes"],
        is_text=0 < counted["num_values"] == counted["num_text"],
        has_varying_rank=counted["tensor_rank"] < 0,
        heads=[bytes(head) for head in counted["heads"]],
        images=images,
        num_values=counted["num_values"],
    )
    meaning, logical = guess_meaning(view)
    formats = {image.format.lower() for image in images}
    has_format = len(formats) == 1 and logical in ("image", "mask")
    return spec.replace(meaning=meaning, logical=logical, format=formats.pop() if has_format else None)


def count_kinds(counted: FeatureStats) -> dict[StorageKind, int]:
    """Return the number of records (frames) with each kind; unset ones are not counted."""
    return {kind: count for kind, count in zip(_KINDS, counted["kind_counts"], strict=True) if kind and count}


def _describe_tensor(counted: FeatureStats) -> dict[str, Any]:
    shape: Shape = tuple(None if size < 0 else size for size in counted["tensor_shape"])
    if counted["tensor_rank"] < 0:
        shape = (None,)
    return {"dtype": DTYPE_NAMES.get(counted["tensor_dtype"]), "shape": shape}


def _find_range(kinds: list[StorageKind], counted: FeatureStats) -> _Range:
    if kinds == ["int64"] and counted["num_values"]:
        return counted["min_int"], counted["max_int"]
    if kinds == ["float"] and counted["num_values"] > counted["num_nan"]:
        return counted["min_float"], counted["max_float"]
    return None, None


def _report_feature(
    name: str,
    spec: Spec,
    counted: FeatureStats,
    counts: dict[StorageKind, int],
    kinds: list[StorageKind],
    span: _Range,
    num_set: int,
) -> dict[str, Any]:
    low, high = (
        str(end) if isinstance(end, float) and math.isinf(end) else end for end in span
    )  # JSON has no infinity
    has_bytes = "bytes" in kinds and counted["num_values"] > 0
    return {
        "name": name,
        "type": kinds[0] if kinds else None,
        "list": counted["is_list"],
        "present": counted["present"],
        "unset": counted["num_unset"],
        "set": num_set,
        "min_length": counted["min_length"],
        "max_length": counted["max_length"],
        "min_frames": counted["min_frames"] if counted["is_list"] else None,
        "max_frames": counted["max_frames"] if counted["is_list"] else None,
        "shape": list(spec.shape),
        "dtype": spec.dtype,
        "optional": spec.optional,
        "min_value": low,
        "max_value": high,
        "num_values": counted["num_values"],
        "num_nan": counted["num_nan"],
        "min_bytes": counted["min_bytes"] if has_bytes else None,
        "max_bytes": counted["max_bytes"] if has_bytes else None,
        "kinds": counts,
        "meaning": spec.meaning,
    }
