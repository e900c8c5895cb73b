"""Which rows ended up in which file, read with the slow reference reader and nothing else of tfrkit."""

from __future__ import annotations

import gzip
import io
import lzma
import re
import sys
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from streets.storages import Storage
from streets.truth import LIST, Feature, Made, PlacedShard, Row, Truth, Value, show_value
from tfrkit.testing import reference

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_INFLATE = {
    "none": lambda data: data,
    "gzip": gzip.decompress,
    "zlib": zlib.decompress,
    "xz": lzma.decompress,
    "zstd": zstd.decompress,
}
# tensorflow.DataType
_DTYPES = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 9: "int64", 10: "bool",
    14: "bfloat16", 17: "uint16", 19: "float16", 22: "uint32", 23: "uint64",
}  # fmt: skip
_SHARD = re.compile(r"-\d{5}-of-\d{5}")


def place(made_at: Path, truth: Truth, storage: Storage, *, is_bare: bool = False) -> Made:
    """The dataset at a path as `storage` addresses it.

    Every row that went in has to be in one of the files, once. A folder without splits is all "train", as `build`
    names it. Splits of files without sidecars come from their names, so only the usual ones are certain.
    """
    names = list(storage.splits)
    files = [made_at] if storage.layout == "file" else sorted(p for p in made_at.iterdir() if _SHARD.search(p.name))
    shards = [_read_shard(path, names or ["train"], truth, storage) for path in files]
    rows = [row for shard in shards for row in shard.rows]
    _require_same_rows(rows, truth, in_order=storage.layout == "file" and truth.keeps_order)
    if storage.layout == "file":
        return Made(str(made_at), truth, shards, {"train": len(rows)}, is_certain=False)
    lost = [name for name in names if not any(shard.split == name for shard in shards)]
    assert not lost, f"no file is of split {', '.join(lost)}: {', '.join(path.name for path in files)}"
    is_certain = not is_bare or set(names) <= {"train", "test"}
    named = [name for name in names or ["train"] if any(shard.split == name for shard in shards)]
    if storage.address == "shard":
        last = shards[-1]
        return Made(last.path, truth, [last], {str(last.split): len(last.rows)}, is_certain)
    if storage.address == "split":
        kept = [shard for shard in shards if shard.split == named[-1]]
        stem = _SHARD.split(Path(kept[0].path).name)[0]
        counts = {named[-1]: sum(len(shard.rows) for shard in kept)}
        return Made(str(made_at / f"{stem}-*"), truth, kept, counts, is_certain)
    counts = {name: sum(len(shard.rows) for shard in shards if shard.split == name) for name in named}
    return Made(str(made_at), truth, shards, counts, is_certain)


def read_records(path: Path, compression: str) -> list[bytes]:
    try:
        data = _INFLATE[compression](path.read_bytes())
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError) as error:
        raise AssertionError(f"{path.name} is not compressed with {compression}: {error}") from None
    return reference.read_frames(data)


def parse_record(record: bytes, truth: Truth) -> Row:
    """A record as the truth says to read it."""
    if truth.kind == "raw":
        return {"record": ("bytes", (), (record,))}
    if truth.kind == "example":
        return {name.decode(): _to_value(found, truth, name.decode()) for name, found in
                reference.parse_example(record).items()}  # fmt: skip
    context, lists = reference.parse_sequence_example(record)
    row: Row = {name.decode(): _to_value(found, truth, name.decode()) for name, found in context.items()}
    for name, frames in lists.items():
        key = name.decode() + LIST
        row[key] = ("frames", tuple(_to_value(frame, truth, key) for frame in frames))
    return row


def _read_shard(path: Path, names: list[str], truth: Truth, storage: Storage) -> PlacedShard:
    records = read_records(path, storage.compression)
    said = [name for name in names if re.search(rf"(^|-){re.escape(name)}[-.]", path.name)]
    split = max(said, key=len) if said and storage.layout == "folder" else None
    return PlacedShard(str(path), split, [parse_record(record, truth) for record in records], records)


def _to_value(found: reference.Feature, truth: Truth, name: str) -> Value:
    if found is None:
        return None
    kind, values = found
    feature = truth.features.get(name, Feature())
    if kind != feature.kind:
        return (kind, (len(values),), repr(values))
    if feature.encoding == "raw":
        return (feature.dtype, tuple(size or 0 for size in feature.shape), bytes(values[0]))  # type: ignore[arg-type]
    if feature.encoding == "tensor_proto":
        tensor = reference.read_strict_tensor(values[0])  # type: ignore[arg-type]
        if tensor is None:
            return ("bytes", (), tuple(values))
        number, shape, content = tensor
        if _DTYPES[number] == "bfloat16":  # the upper half of a float32
            return ("float32", shape, b"".join(b"\0\0" + content[k : k + 2] for k in range(0, len(content), 2)))
        return (_DTYPES[number], shape, content)
    if kind == "bytes":
        return ("bytes", () if feature.shape == () else (len(values),), tuple(values))
    array = np.array(values, "float32" if kind == "float" else "int64").astype(feature.dtype)
    if feature.shape == () and len(values) != 1:
        return (feature.dtype, (len(values),), array.tobytes())
    array = array.reshape([-1 if size is None else size for size in feature.shape])
    return (feature.dtype, array.shape, array.tobytes())


def _require_same_rows(rows: Sequence[Row], truth: Truth, *, in_order: bool) -> None:
    found, expected = [_countable(row, truth) for row in rows], [_countable(row, truth) for row in truth.rows]
    missing, extra = list((Counter(expected) - Counter(found)).elements()), Counter(found) - Counter(expected)
    if missing or extra:
        # Show the row most similar to the missing one.
        likest = max(extra, key=lambda row: len(set(row) & set(missing[0])), default=()) if missing else ()
        lost, instead = (
            ", ".join(f"{name}={show_value(value)}" for name, value in one if (name, value) not in other)
            for one, other in ((missing[0] if missing else (), likest), (likest, missing[0] if missing else ()))
        )
        raise AssertionError(
            f"{len(rows)} rows stored, {len(expected)} went in, {len(missing)} not stored: {lost} - instead: {instead}"
        )
    if in_order:
        assert found == expected, "rows are stored in another order than they went in"


def _countable(row: Row, truth: Truth) -> tuple[tuple[str, Value], ...]:
    """A row that can be counted, with the pixels of masks: which PNG holds them is the builder's choice."""
    return tuple(sorted((name, _to_pixels(value) if name in truth.masks else value) for name, value in row.items()))


def _to_pixels(value: Value) -> Value:
    if value is None or value[0] != "bytes":
        return value
    pixels = [np.asarray(Image.open(io.BytesIO(data))) for data in value[2]]
    return ("pixels", value[1], tuple((one.dtype.str, one.shape, one.tobytes()) for one in pixels))
