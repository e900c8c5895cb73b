"""What went into a dataset, in a form that `==` compares: NaN equals NaN, -0.0 is not 0.0, dtypes and shapes count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfrkit import BytesColumn

# (dtype, shape, content): content is bytes for numbers and a tuple of bytes for bytes; None is a feature without value.
Value = tuple[Any, ...] | None
# Frozen values by name; an absent feature has no key. The name of a feature list ends in LIST.
Row = dict[str, Value]
LIST = "[]"


@dataclass(frozen=True)
class Feature:
    """One feature as a reader of the dataset should see it.

    `shape` has None where a size varies. `encoding` is "list" for plain values, "tensor_proto" or "raw" for arrays
    inside a bytes value. `logical` and `classes` are None where the maker does not know them.
    """

    dtype: str = "int64"
    shape: tuple[int | None, ...] = ()
    encoding: str = "list"
    logical: str | None = None
    classes: tuple[str, ...] | None = None
    optional: bool = False
    is_number: bool = False  # text that spells a number in every row

    @property
    def value_dtype(self) -> str:
        """The dtype of its values in rows and batches: NumPy has no bfloat16, and float32 holds each of them."""
        return "float32" if self.dtype == "bfloat16" else self.dtype

    @property
    def kind(self) -> str:
        """How it is stored: "bytes", "float" or "int64"."""
        if self.encoding != "list" or self.dtype == "bytes":
            return "bytes"
        return "float" if self.dtype.startswith("float") else "int64"


@dataclass(frozen=True)
class Truth:
    """Input rows and the description of each feature; `rows` are frozen, in the order of the source."""

    features: Mapping[str, Feature]
    rows: Sequence[Row]
    kind: str = "example"
    keeps_order: bool = False  # one file, not split, has the rows in this order
    masks: frozenset[str] = frozenset()  # features whose pixels went in; the bytes are the builder's own

    def __getitem__(self, name: str) -> Feature:
        return self.features[name]


@dataclass(frozen=True)
class PlacedShard:
    """One file of a dataset, the split it belongs to, its rows in file order and its records."""

    path: str
    split: str | None
    rows: Sequence[Row]
    records: Sequence[bytes]


@dataclass(frozen=True)
class Made:
    """A dataset on disk: the address that opens it and what it holds.

    `splits` are records by name. If they are not `certain` (one file, unknown names), a reader may also report none;
    all askers then have to agree.
    """

    path: str
    truth: Truth
    shards: Sequence[PlacedShard]
    splits: Mapping[str, int]
    is_certain: bool = True

    @property
    def rows(self) -> list[Row]:
        return [row for shard in self.shards for row in shard.rows]

    @property
    def records(self) -> list[bytes]:
        return [record for shard in self.shards for record in shard.records]

    def rows_of(self, split: str) -> list[Row]:
        return [row for shard in self.shards if shard.split == split for row in shard.rows]


def freeze(value: Any, feature: Feature) -> Value:
    """A value as a reader returned it. Python numbers take the dtype of the feature if it fits."""
    if value is None:
        return None
    if isinstance(value, (bytes, bytearray, str)):
        return ("bytes", (), (_to_bytes(value),))
    if isinstance(value, BytesColumn):
        value = list(value)
    if isinstance(value, (bool, int, float)):
        return _freeze_number(value, feature)
    if isinstance(value, (np.ndarray, np.generic)):
        return _freeze_array(value)
    if isinstance(value, (list, tuple)):
        return _freeze_list(value, feature)
    return (type(value).__name__, (), repr(value))


def freeze_frames(frames: Any, feature: Feature) -> Value:
    """The frames of a feature list."""
    return None if frames is None else ("frames", tuple(freeze(frame, feature) for frame in frames))


def freeze_row(row: Mapping[str, Any], features: Mapping[str, Feature]) -> Row:
    """A row of `tfr.open`; a SequenceExample has its context and its feature lists side by side."""
    if set(row) <= {"context", "feature_lists"} and any(name.endswith(LIST) for name in features):
        frozen = {name: freeze(value, features.get(name, Feature())) for name, value in row["context"].items()}
        for name, frames in row["feature_lists"].items():
            frozen[name + LIST] = freeze_frames(frames, features.get(name + LIST, Feature()))
        return frozen
    return {name: freeze(value, features.get(name, Feature())) for name, value in row.items()}


def show_value(value: Value) -> str:
    if value is None:
        return "unset"
    if value[0] == "frames":
        return f"frames({', '.join(map(show_value, value[1][:2]))})"
    dtype, shape, content = value
    if isinstance(content, bytes) and dtype in np.sctypeDict:
        content = np.frombuffer(content, dtype).tolist()
    return f"{dtype}{list(shape)} {content!r:.60}"


def flatten(value: Any) -> Iterator[Any]:
    """The single values of nested lists."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from flatten(item)
    else:
        yield value


def _to_bytes(value: bytes | bytearray | str) -> bytes:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)


def _freeze_number(value: float, feature: Feature) -> Value:
    dtype = feature.value_dtype
    if dtype == "bytes" or (np.dtype(dtype).kind == "f") != isinstance(value, float):
        return (type(value).__name__, (), repr(value))
    return (dtype, (), np.asarray(value).astype(dtype).tobytes())


def _freeze_array(value: Any) -> Value:
    if value.dtype.kind in "OSU":
        return ("bytes", value.shape, tuple(_to_bytes(item) for item in np.asarray(value).ravel().tolist()))
    return (str(value.dtype), value.shape, value.tobytes())


def _freeze_list(value: Sequence[Any], feature: Feature) -> Value:
    items = list(flatten(value))
    if any(isinstance(item, (bytes, str)) for item in items) or (not items and feature.dtype == "bytes"):
        return ("bytes", (len(items),), tuple(map(_to_bytes, items)))
    if feature.dtype == "bytes" or any(item is None for item in items):
        return ("list", (len(items),), repr(value))
    if not items:
        return (feature.value_dtype, (0,), b"")
    if all(isinstance(item, float) for item in items) != (np.dtype(feature.value_dtype).kind == "f"):
        return ("list", (len(items),), repr(value))
    try:
        return _freeze_array(np.array(value, dtype=feature.value_dtype))
    except ValueError:  # rows of different lengths do not form an array
        return ("list", (len(items),), repr(value))
