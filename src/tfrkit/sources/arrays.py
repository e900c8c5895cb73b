"""The source `arrays`: .npy and .npz files, and arrays in memory. Row i of every array becomes record i."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.codec.coerce import Floats
from tfrkit.codec.encode_columns import serialize_rows
from tfrkit.errors import SourceError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.features.tensor_dtypes import DTYPE_NUMBERS
from tfrkit.sources.base import ColumnReader, Items, Problem, Scan, fingerprint_file
from tfrkit.sources.description import DescribedSource
from tfrkit.sources.rounded_floats import RoundedFloats
from tfrkit.sources.walk import require_file
from tfrkit.storage.local import open_to_read
from tfrkit.storage.resolve import expand_home

_Array = np.ndarray[Any, Any]
# How `tfr export npz` stores values that are missing or vary in number or length.
_RAGGED = ("/row_splits", "/offsets")
_OF_EXPORT = (
    "tfr export npz stores features that are missing or vary in length this way; "
    "to build from an export: tfr export parquet, then tfr build table"
)
_ROWS_AT_ONCE = 1 << 16
_LOCAL_HEADER_NBYTES = 30  # local header of a zip member, without its name and extra field


@dataclass(frozen=True)
class StoredArray:
    """An array on disk that each worker memory-maps."""

    path: str
    offset: int
    dtype: str
    shape: tuple[int, ...]
    fortran: bool

    def open(self) -> _Array:
        """Memory-map the array; an empty array, which cannot be mapped, is created."""
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        order: Any = "F" if self.fortran else "C"
        return np.memmap(self.path, np.dtype(self.dtype), "r", self.offset, self.shape, order)


@dataclass(frozen=True, eq=False)
class Arrays(DescribedSource):
    """Arrays whose rows become records, with one feature per array.

    A .npy file gives the feature `data`; a .npz file and a dict give one feature per name. Integers and booleans become
    int64 and float32 stays float; 1-D rows of int64 or float32 become lists; rows of any other dtype or rank are stored
    as serialized tensors, which keep dtype and shape.

    Args:
        data: A .npy or .npz file, or a dict of arrays of equal length.
        label: The array with the class of each record, for `stratify`.
        floats: What to do with float64 values that float32 cannot represent: "ask" raises, "float32" rounds, "float64"
            keeps them as serialized tensors.
    """

    data: str | os.PathLike[str] | Mapping[str, Any]
    label: str | None = None
    floats: Floats = "ask"

    kind = "arrays"

    @property
    def title(self) -> str:
        return "arrays in memory" if isinstance(self.data, Mapping) else expand_home(self.data)

    def scan(self, scratch: str) -> Scan:
        fingerprint, stamp = "", 0
        if isinstance(self.data, Mapping):
            stored, fingerprint = _spool_arrays(self.data, scratch)
        else:
            path = self.title
            require_file(path, "a .npy or .npz file")
            stored = _find_arrays(path, scratch)
            fingerprint, stamp = fingerprint_file(path)
        num_rows = self._check_arrays(stored)
        labels = None
        if self.label is not None:
            if self.label not in stored:
                raise SourceError(f"label expected one of {', '.join(stored)}, got {self.label!r}")
            values = stored[self.label].open()
            if values.ndim != 1 or values.dtype.kind not in "iub":
                raise SourceError(f"label expected one integer per record, got {values.dtype} {values.shape}")
            labels = np.array(values, np.int64)
        schema = Schema({name: self._make_spec(name, array) for name, array in stored.items()})
        return Scan(
            looked_for=f"arrays in {self.title}",
            items=Items(num_rows, labels=labels),
            reader=ArraysReader(
                stored, [name for name, spec in schema.features.items() if spec.encoding == "tensor_proto"]
            ),
            schema=schema,
            order="source",
            floats=self.floats,
            problems=self._find_problems(stored, schema),
            fingerprint=fingerprint,
            stamp=stamp,
        )

    def _check_arrays(self, stored: Mapping[str, StoredArray]) -> int:
        if not stored:
            raise SourceError("expected at least one array, got none", shard=self.title)
        lengths = {}
        for name, array in stored.items():
            if not array.shape:
                raise SourceError(f"array {name!r} expected one row per record, got a single value", shard=self.title)
            lengths[name] = array.shape[0]
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
            is_export = any(name.endswith(_RAGGED) for name in lengths)
            raise SourceError(
                f"arrays expected one length, got {listed}", shard=self.title, hint=_OF_EXPORT if is_export else None
            )
        return next(iter(lengths.values()))

    def _make_spec(self, name: str, array: StoredArray) -> Spec:
        dtype, row_shape = np.dtype(array.dtype).newbyteorder("="), array.shape[1:]
        if dtype.kind in "SU":
            if row_shape:
                raise SourceError(f"array {name!r} expected one text per record, got {row_shape}", shard=self.title)
            return Spec("bytes", logical="text" if dtype.kind == "U" else "bytes")
        if dtype.name not in DTYPE_NUMBERS:
            raise SourceError(f"array {name!r} has dtype {dtype}, which records cannot store", shard=self.title)
        if not row_shape and dtype.kind in "iub" and not _exceeds_int64(array):
            return Spec("int64", dtype=None if dtype == np.int64 else dtype.name)
        if not row_shape and dtype.kind == "f" and (dtype.itemsize <= 4 or self.floats != "float64"):
            return Spec("float", dtype=None if dtype == np.float32 else dtype.name)
        # An empty list looks like one whose length varies, so that only a tensor keeps the shape (0,).
        is_list = len(row_shape) == 1 and row_shape[0] > 0
        if is_list and dtype in (np.int64, np.float32):
            return Spec("int64" if dtype.kind == "i" else "float", row_shape, logical="tensor")
        if is_list and dtype == np.float64 and self.floats == "float32":
            return Spec("float", row_shape, logical="tensor", dtype="float64")
        return Spec("bytes", row_shape, logical="tensor", encoding="tensor_proto", dtype=dtype.name)

    def _find_problems(self, stored: Mapping[str, StoredArray], schema: Schema) -> list[Problem]:
        """Find arrays with values that the float lists of the schema cannot hold."""
        problems = []
        for name, array in stored.items():
            if schema[name].kind != "float" or np.dtype(array.dtype).itemsize <= 4:
                continue
            rounded, values = RoundedFloats(self.floats), array.open()
            for row in range(0, len(values), _ROWS_AT_ONCE):
                block = values[row : row + _ROWS_AT_ONCE]
                rounded.narrow(block.reshape(-1), row, np.full(len(block), block[0].size))
            if rounded.count:
                problems.append(rounded.problem(f"{self.title}, row {rounded.row}, array {name!r}"))
        return problems


class ArraysReader(ColumnReader):
    """Reads rows of memory-mapped arrays as columns."""

    def __init__(self, stored: Mapping[str, StoredArray], tensors: Iterable[str]) -> None:
        self._stored = dict(stored)
        self._tensors = frozenset(tensors)
        self._open: dict[str, _Array] = {}

    def read_columns(self, numbers: Int64Array) -> Mapping[str, Any]:
        if not self._open:
            self._open = {name: array.open() for name, array in self._stored.items()}
        # A slice of consecutive rows is a view; indexing by row numbers copies.
        is_run = len(numbers) > 0 and bool((np.diff(numbers) == 1).all())
        chosen: Any = slice(int(numbers[0]), int(numbers[-1]) + 1) if is_run else numbers
        columns: dict[str, Any] = {}
        for name, array in self._open.items():
            rows = np.asarray(array[chosen])
            rows = rows.astype(rows.dtype.newbyteorder("="), copy=False)
            if name in self._tensors:
                columns[name] = serialize_rows(rows)
            else:
                columns[name] = rows.tolist() if rows.dtype.kind in "SU" else rows
        return columns

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_open": {}}


def _exceeds_int64(array: StoredArray) -> bool:
    """Whether there are values of uint64 that a signed integer cannot hold."""
    return np.dtype(array.dtype).newbyteorder("=") == np.uint64 and int(array.open().max(initial=0)) >= 1 << 63


def _find_arrays(path: str, scratch: str) -> dict[str, StoredArray]:
    """Find the arrays of a file; compressed ones are unpacked into `scratch`, so that they can be memory-mapped."""
    with open_to_read(path) as file:
        head = file.read(6)
    try:
        if head == b"\x93NUMPY":
            return {"data": _read_header(path, 0, "data")}
        if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
            return _find_members(path, scratch)
    except (ValueError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise SourceError(f"cannot read arrays, {error}", shard=path) from None
    raise SourceError(f"expected a .npy or .npz file, got a file that starts with {head!r}", shard=path)


def _find_members(path: str, scratch: str) -> dict[str, StoredArray]:
    stored = {}
    with zipfile.ZipFile(path) as archive:
        for number, member in enumerate(archive.infolist()):
            name = member.filename.removesuffix(".npy")
            if member.compress_type == zipfile.ZIP_STORED:
                with open_to_read(path) as file:
                    file.seek(member.header_offset)
                    header = file.read(_LOCAL_HEADER_NBYTES)
                name_nbytes, extra_nbytes = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
                offset = member.header_offset + _LOCAL_HEADER_NBYTES + name_nbytes + extra_nbytes
                stored[name] = _read_header(path, offset, name)
                continue
            target = os.path.join(scratch, f"array-{number}.npy")
            with archive.open(member) as packed, open(target, "wb") as unpacked:
                while piece := packed.read(1 << 20):
                    unpacked.write(piece)
            stored[name] = _read_header(target, 0, name)
    return stored


def _read_header(path: str, offset: int, name: str) -> StoredArray:
    """Read the header of the .npy data at `offset`."""
    with open_to_read(path) as file:
        file.seek(offset)
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        if dtype.hasobject:
            raise SourceError(f"array {name!r} holds Python objects, which are not read from files", shard=path)
        if dtype.fields is not None:
            raise SourceError(f"array {name!r} has named fields, expected one value per element", shard=path)
        return StoredArray(path, file.tell(), dtype.str, tuple(map(int, shape)), fortran)


def _spool_arrays(arrays: Mapping[str, Any], scratch: str) -> tuple[dict[str, StoredArray], str]:
    """Save arrays in memory to files that workers can memory-map; return these files and a digest of the arrays."""
    stored = {}
    digest = hashlib.sha256()
    for number, (name, values) in enumerate(arrays.items()):
        array = np.asarray(values)
        if array.dtype.hasobject:
            raise SourceError(f"array {name!r} expected numbers or text, got Python objects")
        path = os.path.join(scratch, f"array-{number}.npy")
        np.save(path, array, allow_pickle=False)
        stored[name] = _read_header(path, 0, name)
        digest.update(f"{name}\0{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
    return stored, digest.hexdigest()[:32]
