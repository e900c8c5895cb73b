"""Features made of several, ragged tensors, JSON and animations: real TensorFlow against tfrkit.compat."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from both import Script, example, run_both
from PIL import Image

FIRST = {
    "v": ("float", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    "i": ("int64", [5, 0, 3, 2, 4, 1]),
    "j": ("int64", [0, 1, 1, 0, 1, 1]),
    "lengths": ("int64", [2, 0, 4]),
    "outer": ("int64", [1, 2]),
    "splits": ("int64", [0, 2, 2, 6]),
    "starts": ("int64", [0, 2, 2]),
    "limits": ("int64", [2, 2, 6]),
    "ids": ("int64", [0, 0, 2, 2, 2, 2]),
    "short": ("int64", [1]),
}
SECOND = {
    "v": ("float", [7.0, 8.0]),
    "i": ("int64", [1, 0]),
    "j": ("int64", [1, 1]),
    "lengths": ("int64", [1, 1]),
    "outer": ("int64", [2]),
    "splits": ("int64", [0, 1, 2]),
    "starts": ("int64", [0, 1]),
    "limits": ("int64", [1, 2]),
    "ids": ("int64", [0, 1]),
    "short": ("int64", [1]),
}
EMPTY = {"splits": ("int64", [0])}


def ragged(tf: Any, *partitions: Any, **options: Any) -> Any:
    return tf.io.RaggedFeature(tf.float32, "v", partitions, **options)


FEATURES: dict[str, Script] = {
    "sparse": lambda tf: tf.io.SparseFeature("i", "v", tf.float32, 6),
    "sparse, sorted": lambda tf: tf.io.SparseFeature("i", "v", tf.float32, 6, already_sorted=True),
    "sparse of two": lambda tf: tf.io.SparseFeature(["j", "i"], "v", tf.float32, [2, 6]),
    "sparse of numbers": lambda tf: tf.io.SparseFeature("i", "j", tf.int64, 10),
    "no partition": lambda tf: ragged(tf),
    "lengths": lambda tf: ragged(tf, tf.io.RaggedFeature.RowLengths("lengths")),
    "lengths of int64": lambda tf: ragged(tf, tf.io.RaggedFeature.RowLengths("lengths"), row_splits_dtype=tf.int64),
    "splits": lambda tf: ragged(tf, tf.io.RaggedFeature.RowSplits("splits")),
    "starts": lambda tf: ragged(tf, tf.io.RaggedFeature.RowStarts("starts")),
    "limits": lambda tf: ragged(tf, tf.io.RaggedFeature.RowLimits("limits")),
    "ids": lambda tf: ragged(tf, tf.io.RaggedFeature.ValueRowIds("ids")),
    "uniform": lambda tf: ragged(tf, tf.io.RaggedFeature.UniformRowLength(2)),
    "two": lambda tf: ragged(
        tf, tf.io.RaggedFeature.RowLengths("outer"), tf.io.RaggedFeature.RowLengths("lengths"), validate=True
    ),
    "uniform inside": lambda tf: ragged(
        tf, tf.io.RaggedFeature.RowLengths("short"), tf.io.RaggedFeature.UniformRowLength(2)
    ),
    "no partitions": lambda tf: ragged(tf, 3),
}
BATCHES = {"1": [FIRST], "2": [FIRST, SECOND], "3": [SECOND, EMPTY, FIRST], "0": []}


def parse_batch(tf: Any, name: str, rows: str) -> Any:
    records = np.array([example(tf, **row) for row in BATCHES[rows]], object)
    return tf.io.parse_example(tf.constant(records, tf.string), {"x": FEATURES[name](tf)})


# UniformRowLength(2) after RowLengths(short) cuts 6 values into 3 pairs, of which row 0 has 1: TensorFlow does not
# check this by default.
UNCHECKED = {"uniform inside"}


@pytest.mark.parametrize("name", [name for name in FEATURES if name not in UNCHECKED])
def test_composite_features_of_one_record_are_tensorflows(name: str) -> None:
    run_both(lambda tf: tf.io.parse_single_example(example(tf, **FIRST), {"x": FEATURES[name](tf)}))


@pytest.mark.parametrize("rows", BATCHES)
@pytest.mark.parametrize("name", [name for name in FEATURES if name not in UNCHECKED])
def test_composite_features_of_a_batch_are_tensorflows(name: str, rows: str) -> None:
    run_both(lambda tf: parse_batch(tf, name, rows))


RAGGED: dict[str, Script] = {
    "dense": lambda tf: parse_batch(tf, "lengths", "2")["x"].to_tensor(),
    "dense with a value": lambda tf: parse_batch(tf, "lengths", "2")["x"].to_tensor(default_value=-1.0),
    "dense, cut": lambda tf: parse_batch(tf, "lengths", "2")["x"].to_tensor(shape=[None, 2, 3]),
    "dense, larger": lambda tf: parse_batch(tf, "no partition", "2")["x"].to_tensor(shape=[3, 7]),
    "dense, two": lambda tf: parse_batch(tf, "two", "2")["x"].to_tensor(),
    "dense, uniform": lambda tf: parse_batch(tf, "uniform", "2")["x"].to_tensor(),
    "sparse": lambda tf: parse_batch(tf, "lengths", "2")["x"].to_sparse(),
    "parts": lambda tf: [
        (x.nrows(), x.row_lengths(), x.flat_values, x.ragged_rank, x.shape.as_list(), x[0], x[-1])
        for x in [parse_batch(tf, "lengths", "2")["x"]]
    ],
    "made": lambda tf: [
        tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 1, 3]),
        tf.RaggedTensor.from_row_lengths(["a", "b"], [0, 2]),
        tf.RaggedTensor.from_row_lengths(["a", "b"], [0, 2]).to_tensor(),
    ],
    "rows": lambda tf: list(tf.data.Dataset.from_tensor_slices(parse_batch(tf, "two", "2")["x"])),
    "batched again": lambda tf: list(tf.data.Dataset.from_tensor_slices(parse_batch(tf, "two", "2")["x"]).batch(2)),
    "nothing": lambda tf: [tf.constant([], tf.string), tf.constant([], tf.int64), tf.constant([[]], tf.float32)],
    "one hot": lambda tf: [
        tf.one_hot([0, 2], 3, axis=0),
        tf.one_hot([0, 2], 3, 5, 1),
        tf.one_hot(1, 2, dtype=tf.int64),
    ],
    "shape": lambda tf: tf.shape([[1, 2]], out_type=tf.int64),
    "json": lambda tf: tf.io.decode_json_example(
        [
            '{"features": {"feature": {"a": {"int64List": {"value": ["1", 2]}}}}}',
            '{"features": {"feature": {"b": {"bytes_list": {"value": ["YWI="]}}, "c": {"floatList": {"value": [1]}}}}}',
            "{}",
        ]
    ),
    "json of one": lambda tf: tf.io.decode_json_example('{"features": {"feature": {"e": {}}}}'),
    "no json": lambda tf: tf.io.decode_json_example("nothing"),
    "json of something else": lambda tf: tf.io.decode_json_example('{"nothing": 3}'),
}


@pytest.mark.parametrize("name", RAGGED)
def test_value_is_tensorflows(name: str) -> None:
    if name.startswith("json"):
        # The order of features in serialized messages is unspecified.
        run_both(lambda tf: [tf.train.Example.FromString(record) for record in strings(RAGGED[name](tf).numpy())])
    else:
        run_both(RAGGED[name])


def strings(value: Any) -> list[bytes]:
    return [value] if isinstance(value, bytes) else value.tolist()


def encode(picture: Image.Image, form: str, **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, form, **options)
    return out.getvalue()


def make_pictures() -> dict[str, bytes]:
    rng = np.random.default_rng(3)
    frames = [Image.fromarray(rng.integers(0, 256, (6, 5, 3), dtype=np.uint8)) for _ in range(3)]
    moving = [Image.new("P", (8, 6), 0) for _ in range(3)]
    for number, frame in enumerate(moving):
        frame.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0])
        frame.paste(number % 2 + 1, (number, 1, number + 2, 3))
    return {
        "gif": encode(frames[0], "GIF"),
        "frames": encode(frames[0], "GIF", save_all=True, append_images=frames[1:]),
        "moving": encode(moving[0], "GIF", save_all=True, append_images=moving[1:]),
        "bmp": encode(frames[0], "BMP"),
        "png": encode(frames[0], "PNG"),
    }


PICTURES = make_pictures()
DECODERS: dict[str, Any] = {
    "gif": lambda tf, data: tf.io.decode_gif(data),
    "bmp": lambda tf, data: tf.io.decode_bmp(data),
    "bmp of three": lambda tf, data: tf.image.decode_bmp(data, channels=3),
    "any": lambda tf, data: tf.io.decode_image(data),
    "any, first frame": lambda tf, data: tf.io.decode_image(data, expand_animations=False),
    "png": lambda tf, data: tf.io.decode_png(data),
}


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("decoder", DECODERS)
def test_frames_are_tensorflows(name: str, decoder: str) -> None:
    run_both(lambda tf: DECODERS[decoder](tf, PICTURES[name]))


PIXEL_TYPES = ("uint8", "int8", "uint16", "int16", "float32", "float64")


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("to", PIXEL_TYPES)
@pytest.mark.parametrize("given", PIXEL_TYPES)
def test_pixels_of_another_type_are_tensorflows(given: str, to: str, saturate: bool) -> None:
    if np.dtype(given).kind == "f":
        pixels = np.linspace(0, 1, 97).astype(given)
    else:
        pixels = np.linspace(0, np.iinfo(given).max, 97).astype(given)
    if saturate and np.dtype(given).kind != "u":
        pixels = np.concatenate([pixels, -pixels])
    run_both(lambda tf: tf.image.convert_image_dtype(tf.constant(pixels), to, saturate=saturate))
