"""Export as .npz: arrays that `numpy.load` reads without unpickling.

A feature x becomes

    x                        numbers or arrays, if the shape is the same in all records: (records, *shape)
    x                        bytes, if no value is longer than 256 or ends in NUL: fixed-width bytes, (records,)
    x/bytes, x/offsets       other bytes: value i is bytes[offsets[i]:offsets[i + 1]]
    x/values, x/row_splits   a varying number of values: record i is values[row_splits[i]:row_splits[i + 1]];
                             values are named by the same rules: x/values/bytes, x/values/row_splits ...
    x/presence               if some records lack the feature: 0 absent, 1 present with no kind set, 2 present
    x/shapes                 if the shapes of arrays differ, in addition to x/values and x/row_splits

The parts of a SequenceExample are context/x and feature_lists/x.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

import numpy as np

from tfrkit.codec.columns import PRESENT, BytesColumn, Column, Ragged, to_splits
from tfrkit.errors import Hint, SchemaError, Step
from tfrkit.features.schema import show_name
from tfrkit.features.spec import Spec
from tfrkit.ops.export.input import ExportInput
from tfrkit.ops.export.members import make_npy_header
from tfrkit.ops.export.report import Export
from tfrkit.ops.export.tables import export_table
from tfrkit.progress import Progress
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.local import NamedFile
from tfrkit.storage.resolve import Address, show_address
from tfrkit.storage.temporaries import TemporaryFolder

Array = np.ndarray[Any, np.dtype[Any]]

_LEAVE_OUT = Hint(Step("leave it out: {select}", select=[...]), "or take another form: tfr export jsonl")
_MAX_WIDTH = 256  # wider fixed-width bytes would be mostly padding
_COPY_NBYTES = 1 << 20
# A fixed date, the earliest that a zip can hold, so that the same input gives the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


def export_npz(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    *,
    select: Sequence[str] | None = None,
    force: bool = False,
    incomplete: bool = False,
    progress: Progress | None = None,
) -> Export:
    """Write a dataset as one .npz of arrays, loadable with ``numpy.load(path, allow_pickle=False)``.

    The top of this module lists the arrays of a feature. Arrays are assembled on disk next to the output: memory is
    bounded, and writing needs twice the space.

    Args:
        address: Path, glob, folder, or a list of these.
        output: The file to write, or a folder for one file per split.
        select: Only these features.
        force: Replace existing files.
        incomplete: Continue if shards of a set are missing.
        progress: Progress callback.
    """
    shown = show_address(output)
    beside = os.path.join(tempfile.gettempdir(), "tfrkit-npz") if has_scheme(shown) else os.path.abspath(shown)

    def write(source: ExportInput, file: BinaryIO, shards: Sequence[int] | None) -> None:
        source.require_examples()
        names = list((source.schema if select is None else source.schema.select(select)).names)
        unfit: set[str] = set()
        while True:
            # A value that ends in NUL is found only while reading: all is then written again, its feature as x/bytes.
            with TemporaryFolder(beside) as scratch:
                spool = _Spool(scratch, source, unfit)
                try:
                    for batch in source.batches(names, shards=shards):
                        spool.add_batch(batch.columns)
                    spool.write(file)
                except _UnfitError as error:
                    unfit.add(error.name)
                    continue
                finally:
                    spool.close()
                return

    return export_table(
        "npz", address, output, write, growth=2.0, force=force, incomplete=incomplete, progress=progress
    )


class _UnfitError(Exception):
    """A value ends in NUL, which fixed-width bytes would lose."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _ArrayMember:
    """One array with its values in a temporary file."""

    def __init__(self, path: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.path = path
        self.dtype = dtype
        self.shape = shape  # of a row
        self.num_rows = 0
        # The spool closes it.
        self.file = io.BufferedWriter(NamedFile(path, "wb", shown=path), buffer_size=_COPY_NBYTES)

    def append(self, array: Array) -> None:
        self.num_rows += len(array)
        self.file.write(array.tobytes())


class _Spool:
    """Arrays that grow batch by batch, one file each."""

    def __init__(self, scratch: str, source: ExportInput, unfit: set[str]) -> None:
        self._scratch = scratch
        self._source = source
        self._unfit = unfit
        self._members: dict[str, _ArrayMember] = {}
        self._owners: dict[str, str] = {}
        self._stops: dict[str, int] = {}
        self._everywhere: dict[str, bool] = {}  # presence array: only PRESENT so far
        self._feature = ""

    def add_batch(self, columns: dict[str, Any]) -> None:
        schema = self._source.schema
        if schema.kind != "sequence_example":
            for name, column in columns.items():
                self._add_feature(name, column, schema.features[name])
            return
        for part, specs in (("context", schema.features), ("feature_lists", schema.feature_lists)):
            for name, column in columns[part].items():
                self._add_feature(f"{part}/{name}", column, specs[name], name)

    def write(self, file: BinaryIO) -> None:
        """Write all arrays as a zip of .npy files, uncompressed so that they can be mapped."""
        self.close()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, member in self._members.items():
                if self._everywhere.get(name):
                    continue
                info = zipfile.ZipInfo(f"{name}.npy", _DATE)
                with archive.open(info, "w", force_zip64=True) as target, open(member.path, "rb") as values:
                    target.write(make_npy_header(member.dtype, (member.num_rows, *member.shape)))
                    shutil.copyfileobj(values, target, _COPY_NBYTES)

    def close(self) -> None:
        for member in self._members.values():
            member.file.close()

    def _add_feature(self, name: str, column: Column, spec: Spec, feature: str | None = None) -> None:
        self._feature = name
        row = self._source.report.get((feature if feature is not None else name, spec.is_list), {})
        width = row.get("max_bytes") or 0
        is_short = width <= _MAX_WIDTH and spec.logical not in ("image", "mask") and name not in self._unfit
        self._add(name, column, max(1, width) if is_short else None)

    def _add(self, name: str, column: Column, width: int | None) -> None:
        if isinstance(column, BytesColumn):
            self._add_bytes(name, column, width)
        elif isinstance(column, Ragged):
            first, last = int(column.row_splits[0]), int(column.row_splits[-1])
            self._add_splits(f"{name}/row_splits", column.row_splits)
            presence = np.full(len(column), PRESENT, np.uint8) if column.presence is None else column.presence
            self._append(f"{name}/presence", presence)
            if (presence == PRESENT).all():
                self._everywhere.setdefault(f"{name}/presence", True)
            else:
                self._everywhere[f"{name}/presence"] = False
            self._add(f"{name}/values", column.values[first:last], width)
        elif isinstance(column, list):
            self._add_arrays(name, column)
        elif column.dtype.hasobject:
            raise SchemaError(
                f"feature {show_name(self._feature)} holds tensors of text, which arrays cannot store without pickle",
                hint=_LEAVE_OUT,
            )
        else:
            self._append(name, column)

    def _add_bytes(self, name: str, column: BytesColumn, width: int | None) -> None:
        start, stop = int(column.offsets[0]), int(column.offsets[-1])
        data = column.data[start:stop]
        lengths = column.lengths
        if width is None:
            self._append(f"{name}/bytes", data)
            self._add_splits(f"{name}/offsets", column.offsets)
            return
        ends = column.offsets[1:][lengths > 0] - start - 1
        if len(ends) and not data[ends].all():
            raise _UnfitError(self._feature)
        padded = np.zeros((len(column), width), np.uint8)
        padded[np.arange(width) < lengths[:, None]] = data
        self._append(name, padded.reshape(-1).view(f"S{width}"))

    def _add_arrays(self, name: str, arrays: list[Array]) -> None:
        """Add arrays of different shapes: their values concatenated, their row splits and their shapes."""
        if not arrays:
            return
        ranks = {array.ndim for array in arrays}
        kinds = {array.dtype for array in arrays}
        if len(kinds) > 1 or arrays[0].dtype.hasobject:
            raise SchemaError(
                f"feature {show_name(self._feature)} expected tensors of one dtype, got {', '.join(map(str, kinds))}",
                hint=_LEAVE_OUT,
            )
        self._add_splits(f"{name}/row_splits", to_splits([array.size for array in arrays]))
        self._append(f"{name}/values", np.concatenate([array.reshape(-1) for array in arrays]))
        if len(ranks) > 1:
            raise SchemaError(
                f"feature {show_name(self._feature)} expected tensors of one rank, got {', '.join(map(str, ranks))}",
                hint=_LEAVE_OUT,
            )
        self._append(f"{name}/shapes", np.array([array.shape for array in arrays], np.int64).reshape(len(arrays), -1))

    def _add_splits(self, name: str, splits: Array) -> None:
        """Append the row splits of a batch, continuing from those of the previous batches."""
        stop = self._stops.get(name)
        if stop is None:
            self._append(name, np.zeros(1, np.int64))
            stop = 0
        counted = splits[1:] - splits[0] + stop
        self._append(name, counted)
        self._stops[name] = int(counted[-1]) if len(counted) else stop

    def _append(self, name: str, array: Array) -> None:
        member = self._members.get(name)
        if member is None:
            self._require_name(name)
            path = os.path.join(self._scratch, str(len(self._members)))
            member = self._members[name] = _ArrayMember(path, array.dtype, array.shape[1:])
            self._owners[name] = self._feature
        if self._owners[name] != self._feature:
            raise SchemaError(
                f"features {show_name(self._owners[name])} and {show_name(self._feature)} would both be the array "
                f"{show_name(name)}",
                hint=Hint(Step("leave one out: {select}", select=[...])),
            )
        if member.dtype != array.dtype or member.shape != array.shape[1:]:
            raise SchemaError(
                f"feature {show_name(self._feature)} expected arrays of {member.dtype} {member.shape}, "
                f"got {array.dtype} {array.shape[1:]}",
                hint=_LEAVE_OUT,
            )
        member.append(array)

    def _require_name(self, name: str) -> None:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise SchemaError(
                f"feature {show_name(self._feature)} has a name that is not text, which an array name must be"
            ) from None
        if "\0" in name:
            raise SchemaError(f"feature {show_name(self._feature)} has a NUL in its name, which zip cannot store")
