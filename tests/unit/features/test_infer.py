"""Inference: from counts to specs, figures and a described guess."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tfrkit.features.infer import FeatureStats, infer_schema
from tfrkit.features.spec import Spec
from tfrkit.images.sniff import ImageInfo

NUM_RECORDS = 100
BYTES, FLOAT, INT64 = 1, 2, 3


def count(name: bytes = b"x", kind: int = INT64, **changes: Any) -> FeatureStats:
    """Stats of a feature that all records set to one value."""
    kind_counts = [0, 0, 0, 0]
    kind_counts[kind] = NUM_RECORDS
    stats: dict[str, Any] = {
        "name": name,
        "is_list": False,
        "present": NUM_RECORDS,
        "num_unset": 0,
        "kind_counts": kind_counts,
        "min_length": 1,
        "max_length": 1,
        "min_frames": 0,
        "max_frames": 0,
        "min_int": 0,
        "max_int": 0,
        "min_float": 0.0,
        "max_float": 0.0,
        "num_values": NUM_RECORDS,
        "num_nan": 0,
        "min_bytes": 0,
        "max_bytes": 0,
        "num_text": 0,
        "num_tensors": 0,
        "tensor_dtype": 0,
        "tensor_shape": [],
        "tensor_rank": 0,
        "heads": [],
    }
    assert changes.keys() <= stats.keys()
    return {**stats, **changes}  # type: ignore[typeddict-item]


def infer_one(stats: FeatureStats, **options: Any) -> tuple[Spec, dict[str, Any]]:
    kind = "sequence_example" if stats["is_list"] else "example"
    inferred = infer_schema(kind, NUM_RECORDS, [stats], **options)
    (name,) = inferred.schema
    assert inferred.report[0]["meaning"] == inferred.schema[name].meaning
    return inferred.schema[name], inferred.report[0]


@pytest.mark.parametrize(
    ("min_length", "max_length", "shape"),
    [(1, 1, ()), (2, 2, (2,)), (3, 3, (3,)), (0, 1, (None,)), (1, 2, (None,)), (0, 0, (None,)), (0, 512, (None,))],
)
def test_infer_shape_follows_lengths(min_length: int, max_length: int, shape: tuple[int | None, ...]) -> None:
    spec, report = infer_one(count(min_length=min_length, max_length=max_length))
    assert spec.shape == shape
    assert (report["min_length"], report["max_length"], report["shape"]) == (min_length, max_length, list(shape))


@pytest.mark.parametrize(
    ("changes", "optional"),
    [({}, False), ({"present": 99}, True), ({"num_unset": 1, "kind_counts": [1, 0, 0, 99]}, True)],
)
def test_infer_absent_or_unset_is_optional(changes: dict[str, Any], optional: bool) -> None:
    spec, report = infer_one(count(**changes))
    assert spec.optional is optional
    assert spec.shape == ()
    assert report["optional"] is optional


def test_infer_never_set_feature_has_no_type() -> None:
    spec, report = infer_one(count(kind_counts=[100, 0, 0, 0], num_unset=100, min_length=0, max_length=0, num_values=0))
    assert (spec.kind, spec.shape, spec.optional, spec.seen, spec.meaning) == ("bytes", (None,), True, (), "never set")
    assert report["type"] is None
    assert (report["unset"], report["kinds"]) == (100, {})


def test_infer_mixed_kinds_keeps_most_frequent_with_a_note() -> None:
    spec, report = infer_one(count(kind_counts=[0, 0, 60, 40]))
    assert (spec.kind, spec.seen, spec.shape) == ("float", ("float", "int64"), (None,))
    assert report["type"] == "float"
    assert report["kinds"] == {"float": 60, "int64": 40}
    assert report["meaning"] == "float and int64 in different records"


@pytest.mark.parametrize(
    ("number", "shape", "rank", "spec_shape", "dtype", "meaning"),
    [
        (4, [28, 28], 2, (28, 28), "uint8", "serialized uint8 tensor (28, 28)"),
        (2, [-1, 3], 2, (None, 3), "float64", "serialized float64 tensor (None, 3)"),
        (14, [], 0, (), "bfloat16", "serialized bfloat16 tensor ()"),
        (7, [2], 1, (2,), "string", "serialized string tensor (2,)"),
        (-1, [2], 1, (2,), None, "serialized tensors of several dtypes"),
        (1, [2], -1, (None,), "float32", "serialized float32 tensor, rank varies"),
    ],
)
def test_infer_all_tensors_gives_dtype_and_shape(
    number: int, shape: list[int], rank: int, spec_shape: Any, dtype: str | None, meaning: str
) -> None:
    stats = count(kind=BYTES, num_tensors=100, tensor_dtype=number, tensor_shape=shape, tensor_rank=rank, max_bytes=9)
    spec, report = infer_one(stats)
    assert (spec.kind, spec.encoding, spec.logical) == ("bytes", "tensor_proto", "tensor")
    assert (spec.shape, spec.dtype, spec.meaning) == (spec_shape, dtype, meaning)
    assert report["dtype"] == dtype


def test_infer_tensor_of_absurd_rank_stays_bytes() -> None:
    spec, _ = infer_one(count(kind=BYTES, num_tensors=100, tensor_dtype=4, tensor_shape=[1] * 255, tensor_rank=255))
    assert spec.encoding == "list"


@pytest.mark.parametrize("changes", [{"num_tensors": 99}, {"num_tensors": 200, "num_values": 200, "max_length": 3}])
def test_infer_not_only_single_tensors_stays_bytes(changes: dict[str, Any]) -> None:
    spec, _ = infer_one(count(kind=BYTES, tensor_dtype=4, tensor_shape=[2], tensor_rank=1, max_bytes=9, **changes))
    assert spec.encoding == "list"


@pytest.mark.parametrize(
    ("stats", "meaning", "logical"),
    [
        (count(b"label", max_int=9), "class id 0..9", "class_label"),
        (count(b"objects/label", max_int=20, max_length=7), "1..7 values, class ids 0..20", "class_label"),
        (count(b"label", min_int=-1, max_int=9), "scalar -1..9", "scalar"),
        (count(b"label", max_int=100_000), "scalar 0..100000", "scalar"),
        (count(b"labelled", max_int=9), "scalar 0..9", "scalar"),
        (count(b"label/length", max_int=9), "scalar 0..9", "scalar"),
        (count(b"class/height", max_int=9), "image height 0..9", "scalar"),
        (count(b"num_classes", max_int=9), "scalar 0..9", "scalar"),
        (count(b"labels/count", max_int=9, max_length=7), "1..7 values, 0..9", "tensor"),
        (count(b"center/y", max_int=9), "scalar 0..9", "scalar"),
        (count(b"y", max_int=9), "class id 0..9", "class_label"),
        (count(b"category_id", max_int=9), "class id 0..9", "class_label"),
        (count(b"imageLabel", max_int=9), "class id 0..9", "class_label"),
        (count(b"is_first", max_int=1), "boolean 0/1", "scalar"),
        (count(b"image/height", min_int=480, max_int=480), "image height 480", "scalar"),
        (count(b"height", min_int=10, max_int=480), "image height 10..480", "scalar"),
        (count(b"depth", min_int=3, max_int=3), "depth 3", "scalar"),
        (count(b"user_id", min_int=5, max_int=70_000), "identifier 5..70000", "scalar"),
        (count(b"tokens", min_length=0, max_length=512, max_int=30521), "0..512 values, 0..30521", "tensor"),
        (count(kind=FLOAT, min_float=-1.5, max_float=2.0), "scalar -1.5 .. 2", "scalar"),
        (count(kind=FLOAT, min_length=3, max_length=3, max_float=1.0), "3 values, 0 .. 1", "tensor"),
        (count(kind=FLOAT, num_nan=100), "scalar all NaN", "scalar"),
        (
            count(b"image/object/bbox/xmin", FLOAT, max_length=4, min_float=0.25, max_float=0.5),
            "1..4 values, box coordinates 0.25 .. 0.5",
            "boxes",
        ),
        (count(b"text", BYTES, num_text=100, max_bytes=30), "UTF-8 text", "text"),
        (count(b"tags", BYTES, num_text=100, max_bytes=30, max_length=3), "1..3 values, UTF-8 text", "text"),
        (count(b"raw", BYTES, min_bytes=784, max_bytes=784), "raw bytes, 784 each", "bytes"),
        (count(b"raw", BYTES, min_bytes=1, max_bytes=9), "raw bytes, 1..9 each", "bytes"),
        (count(b"raw", BYTES, num_text=100), "empty bytes", "bytes"),
        (count(b"sound", BYTES, max_bytes=50, heads=[b"RIFF\n\0\0\0WAVEfmt "]), "WAV audio", "bytes"),
        (count(min_length=0, max_length=0, num_values=0), "always empty", "scalar"),
    ],
)
def test_infer_meaning_is_guessed(stats: FeatureStats, meaning: str, logical: str) -> None:
    spec, _ = infer_one(stats)
    assert (spec.meaning, spec.logical) == (meaning, logical)


IMAGES = {
    b"small": ImageInfo("JPEG", 320, 213, "RGB"),
    b"large": ImageInfo("JPEG", 800, 600, "RGB"),
    b"gray": ImageInfo("PNG", 28, 28, "L"),
    b"palette": ImageInfo("PNG", 3, 2, "P"),
    b"cut": ImageInfo("JPEG"),
}


@pytest.mark.parametrize(
    ("name", "heads", "meaning", "logical", "image_format"),
    [
        (b"image", [b"large"], "JPEG 800x600", "image", "jpeg"),
        (b"image", [b"large", b"small"], "JPEG 320x213 .. 800x600", "image", "jpeg"),
        (b"image", [b"cut"], "JPEG", "image", "jpeg"),
        (b"image", [b"cut", b"small"], "JPEG 320x213", "image", "jpeg"),
        (b"image", [b"gray", b"small"], "PNG or JPEG 28x28 .. 320x213", "image", None),
        (b"image", [b"gray"], "PNG 28x28 gray", "image", "png"),
        (b"image", [b"palette"], "PNG 3x2 palette", "image", "png"),
        (b"image/segmentation/class", [b"palette"], "PNG 3x2 palette", "mask", "png"),
        (b"image", [b"large", b"no image"], "raw bytes, 10..20 each", "bytes", None),
    ],
)
def test_infer_images_are_described(
    name: bytes, heads: list[bytes], meaning: str, logical: str, image_format: str | None
) -> None:
    stats = count(name, BYTES, heads=heads, min_bytes=10, max_bytes=20, num_values=len(heads))
    spec, _ = infer_one(stats, sniff=IMAGES.get)
    assert (spec.meaning, spec.logical, spec.format) == (meaning, logical, image_format)


def test_infer_images_beyond_the_sampled_ones_are_not_spoken_for() -> None:
    stats = count(b"image", BYTES, heads=[b"large", b"small"], min_bytes=10, max_bytes=20, num_values=100)
    spec, _ = infer_one(stats, sniff=IMAGES.get)
    assert spec.meaning == "JPEG 320x213 .. 800x600 (of the first 2)"


def test_infer_feature_list_reports_frames() -> None:
    stats = count(b"frames", is_list=True, min_frames=2, max_frames=7, min_length=3, max_length=3, max_int=5)
    spec, report = infer_one(stats)
    assert spec == Spec("int64", (3,), logical="tensor", is_list=True)
    assert (report["list"], report["min_frames"], report["max_frames"]) == (True, 2, 7)


def test_infer_feature_list_with_unset_frames_varies_in_length() -> None:
    spec, report = infer_one(count(is_list=True, num_unset=4, kind_counts=[4, 0, 0, 96]))
    assert (spec.shape, spec.optional) == ((None,), False)
    assert report["unset"] == 4


def test_infer_schema_order_and_kind_are_kept() -> None:
    inferred = infer_schema("example", NUM_RECORDS, [count(b"b"), count(b"a", FLOAT)])
    assert (inferred.schema.kind, inferred.schema.names) == ("example", ("b", "a"))
    assert infer_schema("raw", 5, []).schema.kind == "raw"
    lists = infer_schema("sequence_example", NUM_RECORDS, [count(b"x"), count(b"x", FLOAT, is_list=True)]).schema
    assert (lists.features["x"].kind, lists.feature_lists["x"].kind) == ("int64", "float")


def test_infer_report_is_plain_json() -> None:
    stats = [
        count(b"\xff\0", FLOAT, min_float=float("-inf"), max_float=float("inf")),
        count(b"n", num_values=0, min_length=0, max_length=0),
    ]
    report = infer_schema("example", NUM_RECORDS, stats).report
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert list(report[0]) == [
        "name",
        "type",
        "list",
        "present",
        "unset",
        "set",
        "min_length",
        "max_length",
        "min_frames",
        "max_frames",
        "shape",
        "dtype",
        "optional",
        "min_value",
        "max_value",
        "num_values",
        "num_nan",
        "min_bytes",
        "max_bytes",
        "kinds",
        "meaning",
    ]
    assert (report[0]["name"], report[0]["min_value"], report[0]["max_value"]) == ("\udcff\0", "-inf", "inf")
    assert (report[1]["min_value"], report[1]["max_value"]) == (None, None)


def test_infer_reports_sizes_of_bytes_alone() -> None:
    _, report = infer_one(count(kind=BYTES, min_bytes=3, max_bytes=9))
    assert (report["min_bytes"], report["max_bytes"]) == (3, 9)
    _, report = infer_one(count())
    assert (report["min_bytes"], report["max_bytes"]) == (None, None)
    _, report = infer_one(count(kind=BYTES, num_values=0, min_length=0, max_length=0))
    assert (report["min_bytes"], report["max_bytes"]) == (None, None)
