"""Files of other writers: without sidecars, and a TFDS folder."""

from __future__ import annotations

import gzip
import json
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from streets.make_written import NUM_ROWS, split_parts
from streets.pictures import draw, encode
from streets.placing import place, zstd
from streets.storages import Storage
from streets.truth import Feature, Made, Row, Truth
from tfrkit.testing import reference

_DEFLATE: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda data: data,
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "xz": lzma.compress,
    "zstd": zstd.compress,
}
_BFLOAT16, _UINT8 = 14, 4


def _write(
    folder: Path, storage: Storage, truth: Truth, records: list[bytes], name: str = "{split}-{number}-of-{total}"
) -> Made:
    pack = _DEFLATE[storage.compression]
    if storage.layout == "file":
        path = folder / "data.tfrecord"
        path.write_bytes(pack(reference.write_frames(records)))
        return place(path, truth, storage)
    out = folder / "data"
    out.mkdir()
    for split, ranges in split_parts(storage):
        for number, chosen in enumerate(ranges):
            shard = name.format(split=split or "train", number=f"{number:05d}", total=f"{len(ranges):05d}")
            (out / shard).write_bytes(pack(reference.write_frames(records[chosen.start : chosen.stop])))
    return place(out, truth, storage, is_bare=True)


def make_bare(folder: Path, storage: Storage) -> Made:
    """Examples as TensorFlow users write them: encoded pictures, raw pixels, lists, serialized tensors, gaps."""
    rows: list[Row] = []
    records = []
    features = {
        "id": Feature(),
        "image": Feature("bytes", logical="image"),
        "label": Feature(logical="class_label"),
        "pixels": Feature("uint8", (2, 2), "tensor_proto"),
        "scores": Feature("float32", (2,)),
        "tokens": Feature("int64", (None,)),
        "note": Feature("bytes", logical="text", optional=True),
        "zeros": Feature("bytes"),
    }
    for i in range(NUM_ROWS):
        picture = encode(draw(i), "PNG")
        tokens = list(range(i % 3))
        stored: dict[bytes, Any] = {
            b"id": ("int64", [i]),
            b"image": ("bytes", [picture]),
            b"label": ("int64", [i % 3]),
            b"pixels": ("bytes", [reference.encode_tensor(_UINT8, (2, 2), bytes([i] * 4))]),
            b"scores": ("float", [i / 4, -0.0]),
            b"tokens": ("int64", tokens),
            b"zeros": ("bytes", [b"\xfe\x00" + bytes([i, 0])]),
        }
        row: Row = {
            "id": ("int64", (), np.int64(i).tobytes()),
            "image": ("bytes", (), (picture,)),
            "label": ("int64", (), np.int64(i % 3).tobytes()),
            "pixels": ("uint8", (2, 2), bytes([i] * 4)),
            "scores": ("float32", (2,), np.array([i / 4, -0.0], "float32").tobytes()),
            "tokens": ("int64", (len(tokens),), np.array(tokens, "int64").tobytes()),
            "zeros": ("bytes", (), (b"\xfe\x00" + bytes([i, 0]),)),
        }
        if i % 3 != 1:
            stored[b"note"] = ("bytes", [f"größe {i}".encode()])
            row["note"] = ("bytes", (), (f"größe {i}".encode(),))
        records.append(reference.encode_example(stored))
        rows.append(row)
    return _write(folder, storage, Truth(features, rows, keeps_order=True), records)


def make_bare_bfloat16(folder: Path, storage: Storage) -> Made:
    """Serialized tensors of a dtype that NumPy does not have."""
    rows: list[Row] = []
    records = []
    for i in range(NUM_ROWS):
        values = np.array([1, 1 + i / 128], "<f4")  # bfloat16 has seven bits after the point
        bits = (values.view("<u4") >> 16).astype("<u2")
        rows.append({"id": ("int64", (), np.int64(i).tobytes()), "brain": ("float32", (2,), values.tobytes())})
        tensor = reference.encode_tensor(_BFLOAT16, (2,), bits.tobytes())
        records.append(reference.encode_example({b"id": ("int64", [i]), b"brain": ("bytes", [tensor])}))
    features = {"id": Feature(), "brain": Feature("bfloat16", (2,), "tensor_proto")}
    return _write(folder, storage, Truth(features, rows, keeps_order=True), records)


def make_bare_raw(folder: Path, storage: Storage) -> Made:
    """Records that are not Examples."""
    records = [b"line %d\n" % i if i % 3 else b"\xff\xff\xff\x00" + bytes([i]) for i in range(NUM_ROWS)]
    rows: list[Row] = [{"record": ("bytes", (), (record,))} for record in records]
    return _write(folder, storage, Truth({"record": Feature("bytes")}, rows, "raw", keeps_order=True), records)


_PACKAGE = "tensorflow_datasets.core.features."


def _tensor(dtype: str, *dimensions: str) -> dict[str, Any]:
    shape = {"dimensions": list(dimensions)} if dimensions else {}
    tensor = {"shape": shape, "dtype": dtype, "encoding": "none"}
    return {"pythonClassName": _PACKAGE + "tensor_feature.Tensor", "tensor": tensor}


def make_tfds(folder: Path, storage: Storage) -> Made:
    """What TFDS writes: small integers and booleans in int64 lists, float64 in float lists, metadata beside them."""
    classes = ("cat", "dog", "fish")
    features = {
        "image": Feature("bytes", logical="image"),
        "label": Feature(logical="class_label", classes=classes),
        "flag": Feature("bool"),
        "grid": Feature("uint8", (2, 2)),
        "fine": Feature("float64", (2,)),
        "note": Feature("bytes", logical="text"),
        "steps": Feature("int64", (None,)),
    }
    image = {"pythonClassName": _PACKAGE + "image_feature.Image", "image": {
        "shape": {"dimensions": ["-1", "-1", "3"]}, "dtype": "uint8", "encodingFormat": "png"}}  # fmt: skip
    label = {"pythonClassName": _PACKAGE + "class_label_feature.ClassLabel", "classLabel": {"numClasses": "3"}}
    text = {"pythonClassName": _PACKAGE + "text_feature.Text", "text": {}}
    steps = {"pythonClassName": _PACKAGE + "sequence_feature.Sequence",
             "sequence": {"feature": _tensor("int64"), "length": "-1"}}  # fmt: skip
    document = {"image": image, "label": label, "flag": _tensor("bool"), "grid": _tensor("uint8", "2", "2"),
                "fine": _tensor("float64", "2"), "note": text, "steps": steps}  # fmt: skip
    rows: list[Row] = []
    records = []
    for i in range(NUM_ROWS):
        picture, tokens, fine = encode(draw(i), "PNG"), list(range(i % 3 + 1)), [i / 4, i / 2]
        stored: dict[bytes, Any] = {
            b"image": ("bytes", [picture]),
            b"label": ("int64", [i % 3]),
            b"flag": ("int64", [i % 2]),
            b"grid": ("int64", [i, 0, 255, 1]),
            b"fine": ("float", fine),
            b"note": ("bytes", [f"größe {i}".encode()]),
            b"steps": ("int64", tokens),
        }
        rows.append({
            "image": ("bytes", (), (picture,)),
            "label": ("int64", (), np.int64(i % 3).tobytes()),
            "flag": ("bool", (), bytes([i % 2])),
            "grid": ("uint8", (2, 2), bytes([i, 0, 255, 1])),
            "fine": ("float64", (2,), np.array(fine).tobytes()),
            "note": ("bytes", (), (f"größe {i}".encode(),)),
            "steps": ("int64", (len(tokens),), np.array(tokens, "int64").tobytes()),
        })  # fmt: skip
        records.append(reference.encode_example(stored))
    made = _write(folder, storage, Truth(features, rows), records, "data-{split}.tfrecord-{number}-of-{total}")
    out = folder / "data"
    whole = {"pythonClassName": _PACKAGE + "features_dict.FeaturesDict", "featuresDict": {"features": document}}
    _write_json(out / "features.json", whole)
    splits = [
        {
            "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
            "name": split or "train",
            "numBytes": str(sum(len(records[k]) for chosen in ranges for k in chosen)),
            "shardLengths": [str(len(chosen)) for chosen in ranges],
        }
        for split, ranges in split_parts(storage)
    ]
    _write_json(out / "dataset_info.json", {"name": "data", "version": "1.0.0", "fileFormat": "tfrecord",
                                           "splits": splits})  # fmt: skip
    (out / "label.labels.txt").write_text("".join(f"{name}\n" for name in classes), encoding="utf-8")
    return Made(made.path, made.truth, made.shards, made.splits)


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
