"""The source `webdataset`: tar files of samples. The part of a member's name after the first dot is its type.

    .jpg .jpeg .png .webp .gif .bmp .tif .tiff .ppm   image/encoded, and image/format, height, width, channels
    .cls                                              image/class/label, one integer
    .txt                                              text
    .json                                             json/<key>, one feature per key
    .npy                                              npy, one array
    .index .id                                        one integer, named by the suffix
    .bin, .pkl and any other                          the bytes unchanged, named by the suffix

A longer suffix, such as .left.jpg or .note.txt, gives other features: left/encoded ..., note. Nothing is unpickled.
"""

from __future__ import annotations

import glob
import io
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from tfrkit._types import Row
from tfrkit.codec.coerce import Floats
from tfrkit.codec.tensor_proto import encode_tensor
from tfrkit.errors import SourceError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.features.tensor_dtypes import DTYPE_NUMBERS
from tfrkit.images.encode import ImageOptions, ImageStore
from tfrkit.orders.split_names import find_splits
from tfrkit.sources.base import Facts, Item, ItemsBuilder, Problem, RowReader, Scan
from tfrkit.sources.description import DescribedSource
from tfrkit.sources.image_features import image_row, image_specs
from tfrkit.sources.json_lines import JsonColumn, look_at_row, parse_line
from tfrkit.sources.split_files import FileSplits
from tfrkit.sources.tar_samples import SampleMember, list_samples
from tfrkit.storage.base import ByteReader
from tfrkit.storage.local import open_to_read
from tfrkit.storage.resolve import expand_home, open_reader

_IMAGES = frozenset({"jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff", "ppm"})
_INTEGERS = frozenset({"cls", "index", "id"})
_TEXTS = frozenset({"txt", "text"})
_BRACES = re.compile(r"\{(\d+)\.\.(\d+)\}")
_NUMBERED = re.compile(r"(\w*[A-Za-z_])-\d+\.tar")
_MAX_JSON_NBYTES = 16 << 20
_MAX_OPEN = 16
_MAX_NPY_HEAD = 1 << 16


@dataclass(frozen=True)
class WebDataset(DescribedSource):
    """Samples in tar files.

    Attributes:
        path: A tar file, a glob, a folder of tar files, a list of these, or a brace pattern such as x-{000..099}.tar.
        split_names: Keep samples in the split their file is named for: train-000000.tar.
        floats: What to do with floats of .json members that float32 cannot represent: "ask" stops, "float32" rounds,
            "float64" keeps them as serialized tensors.
        images: How images are stored.
    """

    path: str | Sequence[str]
    _: KW_ONLY
    split_names: bool = False
    floats: Floats = "ask"
    images: ImageOptions = field(default_factory=ImageOptions)

    kind = "webdataset"

    def scan(self, scratch: str) -> Scan:
        """Read the headers of every archive, and the .json members, whose keys become features."""
        paths = find_tars(self.path)
        root = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths])
        splits = self._find_splits(paths, root)
        builder = ItemsBuilder(splits.names)
        problems: list[Problem] = []
        ignored: Counter[str] = Counter()
        suffixes: Counter[str] = Counter()
        survey = _Survey()
        for number, path in enumerate(paths):
            split = -1 if splits.numbers is None else splits.numbers[number]
            name = os.path.relpath(os.path.abspath(path), root)
            found = list_samples(path, name)
            problems += found.problems
            ignored += found.ignored
            stamp = os.stat(path).st_mtime_ns
            with open_to_read(path) as file:
                for key, members in found.samples.items():
                    where = f"{name}, sample {key!r:.200}"
                    reasons = survey.add(file, members)
                    problems += [Problem(where, reason) for reason in reasons]
                    if not reasons:
                        suffixes.update(member.suffix for member in members)
                        nbytes = sum(member.nbytes for member in members)
                        data = _pack(name, members)
                        builder.add(f"{name}:{key}", data=data, nbytes=nbytes, stamp=stamp, split=split)
        columns, blocking = survey.decide()
        problems += blocking
        size = len(builder)

        def make_schema(facts: Facts) -> Schema:
            return _make_schema(self.images, facts, suffixes, columns, survey.arrays, size)

        shown = ", ".join(f".{suffix} {count}" for suffix, count in suffixes.most_common(12))
        return Scan(
            looked_for=f"samples in {self.title}",
            items=builder.build(sort=False),
            reader=WebDatasetReader(
                root, self.images, {name: column[0] for name, column in columns.items()}, survey.tensors()
            ),
            schema=make_schema({}),
            problems=problems,
            ignored=ignored,
            notes=[*splits.notes, f"members: {shown}", *self.images.describe()] if shown else [],
            counts={"member": dict(suffixes.most_common())},
            order="source",
            refine=make_schema,
            explain=self.images.describe_seen,
            floats=self.floats,
        )

    def _find_splits(self, paths: Sequence[str], root: str) -> FileSplits:
        # Only names below the common folder count, and this folder's own name.
        names = [os.path.relpath(os.path.abspath(path), os.path.dirname(root)) for path in paths]
        found = find_splits(names)
        if self.split_names and not found:
            # Names that are no usual words, as `tfr export webdataset` writes them: north-000000.tar.
            for number, name in enumerate(names):
                numbered = _NUMBERED.fullmatch(os.path.basename(name))
                if numbered:
                    found.setdefault(numbered[1], []).append(number)
        split_of = {number: split for split, numbers in found.items() for number in numbers}
        return FileSplits(paths, [split_of.get(number) for number in range(len(paths))], found, keep=self.split_names)


def find_tars(path: str | Sequence[str]) -> list[str]:
    """Return the archives of a path, a glob, a folder, a list of these, or a name with {000..099}, in order."""
    if not isinstance(path, (str, os.PathLike)):
        found = [one for part in path for one in find_tars(part)]
    else:
        text = expand_home(path)
        braces = _BRACES.search(text)
        if os.path.isdir(text):
            found = sorted(glob.glob("**/*.tar", root_dir=text, recursive=True))
            found = [os.path.join(text, name) for name in found]
        elif braces is not None and not os.path.exists(text):
            first, last = int(braces[1]), int(braces[2])
            if not 0 <= last - first < 1 << 20:
                raise ValueError(f"expected ascending numbers, got {braces[0]}")
            numbers = (str(number).zfill(len(braces[1])) for number in range(first, last + 1))
            found = [f"{text[: braces.start()]}{number}{text[braces.end() :]}" for number in numbers]
        else:
            found = [text] if os.path.exists(text) else sorted(glob.glob(text, recursive=True))
    if not found:
        raise SourceError("no tar file there", shard=str(path))
    for one in found:
        if not os.path.isfile(one):
            raise SourceError("cannot open, no such file", shard=one)
    return found


def _pack(archive: str, members: Sequence[SampleMember]) -> bytes:
    content = [archive, [[member.suffix, member.offset, member.nbytes] for member in members]]
    return json.dumps(content, separators=(",", ":")).encode()


class _Survey:
    """Collects the types of all keys of .json members and of all arrays of .npy members, by feature."""

    def __init__(self) -> None:
        self.arrays: dict[str, set[tuple[str, tuple[int, ...]]]] = {}
        self._columns: dict[str, JsonColumn] = {}
        self._num_samples = 0

    def add(self, file: Any, members: Sequence[SampleMember]) -> list[str]:
        """Add the .json and .npy members of a sample; return the reasons why they are bad."""
        reasons = []
        self._num_samples += 1
        for member in members:
            prefix, kind = split_suffix(member.suffix)
            if kind == "npy":
                try:
                    self._add_array(prefix or "npy", file, member)
                except ValueError as error:
                    reasons.append(f".{member.suffix} {error}")
            if kind != "json":
                continue
            if member.nbytes > _MAX_JSON_NBYTES:
                reasons.append(f".{member.suffix} expected at most {_MAX_JSON_NBYTES:,} bytes, got {member.nbytes:,}")
                continue
            file.seek(member.offset)
            try:
                row = parse_json(file.read(member.nbytes), prefix)
                look_at_row(self._columns, row, self._num_samples)
            except ValueError as error:
                reasons.append(f".{member.suffix} {error}")
        return reasons

    def _add_array(self, name: str, file: Any, member: SampleMember) -> None:
        file.seek(member.offset)
        head = io.BytesIO(file.read(min(member.nbytes, _MAX_NPY_HEAD)))
        version = np.lib.format.read_magic(head)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(head)
        if dtype.name not in DTYPE_NUMBERS:
            raise ValueError(f"expected an array of numbers, got dtype {dtype}")
        self.arrays.setdefault(name, set()).add((dtype.name, shape))

    def tensors(self) -> frozenset[str]:
        """Return the features that are serialized tensors: all arrays except those that are lists in every sample."""
        return frozenset(name for name, seen in self.arrays.items() if not _are_lists(seen))

    def decide(self) -> tuple[dict[str, tuple[str, bool, bool]], list[Problem]]:
        """Return feature → (kind, is a list, may be absent), and problems of keys whose values differ in type."""
        decided: dict[str, tuple[str, bool, bool]] = {}
        problems = []
        for name, column in self._columns.items():
            try:
                kind = column.decide()
            except ValueError as error:
                reason, numbers = error.args
                shown = ", ".join(map(str, numbers))
                problems.append(
                    Problem(f"feature {name!r}", f"{reason} in samples number {shown}", blocking=True, input=None)
                )
                continue
            if kind is not None:
                decided[name] = (*kind, sum(column.counts.values()) < self._num_samples)
        return decided, problems


def _are_lists(seen: set[tuple[str, tuple[int, ...]]]) -> bool:
    dtypes = {dtype for dtype, _ in seen}
    ranks = {len(shape) for _, shape in seen}
    return dtypes in ({"int64"}, {"float32"}) and ranks in ({0}, {1})


def _array_spec(seen: set[tuple[str, tuple[int, ...]]], optional: bool) -> Spec:
    dtypes = {dtype for dtype, _ in seen}
    ranks = {len(shape) for _, shape in seen}
    shape: tuple[int | None, ...] = ()
    if len(ranks) == 1:
        sizes = zip(*(shape for _, shape in seen), strict=True)
        shape = tuple(next(iter(set(one))) if len(set(one)) == 1 else None for one in sizes)
    if _are_lists(seen):
        return Spec("int64" if dtypes == {"int64"} else "float", shape, logical="tensor", optional=optional)
    dtype = dtypes.pop() if len(dtypes) == 1 else None
    return Spec("bytes", shape, logical="tensor", encoding="tensor_proto", dtype=dtype, optional=optional)


def parse_json(data: bytes, prefix: str) -> dict[str, Any]:
    """Parse a .json member to values by feature name; raises ValueError if it is invalid."""
    row = parse_line(data.decode("utf-8-sig"))
    return {f"{prefix or 'json'}/{key}": value for key, value in row.items()}


def split_suffix(suffix: str) -> tuple[str, str]:
    """Split a suffix into prefix and kind: ("", "jpg") for jpg, ("left", "jpg") for left.jpg."""
    prefix, _, kind = suffix.rpartition(".")
    return prefix, kind


class WebDatasetReader(RowReader):
    """Reads a sample as a row."""

    def __init__(self, root: str, images: ImageOptions, kinds: Mapping[str, str], tensors: frozenset[str]) -> None:
        self._root = root
        self._images = images
        self._stores: dict[str, ImageStore] = {}
        self._kinds = dict(kinds)
        self._tensors = tensors
        self._archives: dict[str, ByteReader] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_archives": {}}

    def read(self, item: Item) -> Row:
        """Return the row of one sample."""
        archive, members = json.loads(item.data)
        reader = self._open(archive)
        row: Row = {"__key__": item.key.partition(":")[2].encode("utf-8", "surrogateescape")}
        for suffix, offset, nbytes in members:
            data = reader.read_at(offset, nbytes)
            if len(data) != nbytes:
                raise SourceError(f"member .{suffix} is truncated, expected {nbytes} bytes, got {len(data)}")
            try:
                row.update(self._convert(suffix, data))
            except ValueError as error:
                raise SourceError(f".{suffix} {error}") from None
            except SourceError as error:
                raise SourceError(f".{suffix} {error.what}") from None
        return row

    def _convert(self, suffix: str, data: bytes) -> Row:
        prefix, kind = split_suffix(suffix)
        if kind in _IMAGES:
            name = prefix or "image"
            stored = self._stores.setdefault(name, ImageStore(self._images)).store(data, f".{kind}")
            return image_row(stored, f"{name}/encoded")
        if kind == "json":
            return {
                name: self._fit(name, value) for name, value in parse_json(data, prefix).items() if value is not None
            }
        if kind in _INTEGERS:
            return {_name_integer(prefix, kind): _parse_integer(data)}
        if kind in _TEXTS:
            data.decode()  # raises for the first byte that is not UTF-8
            return {prefix or "text": data}
        if kind == "npy":
            array = np.load(io.BytesIO(data), allow_pickle=False)
            name = prefix or "npy"
            return {name: encode_tensor(array) if name in self._tensors else array}
        return {suffix: data}

    def _fit(self, name: str, value: Any) -> Any:
        """Convert a JSON value to the kind that its feature has in all samples."""
        kind = self._kinds.get(name)
        if isinstance(value, list) and not value:
            return np.empty(0, {"int64": "<i8", "float": "<f4"}.get(kind or "", "S1"))
        if kind == "float":
            return [float(one) for one in value] if isinstance(value, list) else float(value)
        return value

    def _open(self, archive: str) -> ByteReader:
        reader = self._archives.get(archive)
        if reader is None:
            if len(self._archives) >= _MAX_OPEN:
                self._archives.pop(next(iter(self._archives))).close()
            reader = self._archives[archive] = open_reader(os.path.join(self._root, archive))
        return reader

    def take_facts(self) -> Facts:
        """Return formats and sizes of the images read since the last call."""
        return {f"{name}/encoded": store.take_facts() for name, store in self._stores.items()}


def _name_integer(prefix: str, kind: str) -> str:
    return prefix or ("image/class/label" if kind == "cls" else kind)


def _parse_integer(data: bytes) -> int:
    try:
        value = int(data)
    except ValueError:
        raise ValueError(f"expected one integer, got {data[:40]!r}") from None
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"expected a signed 64-bit integer, got {value}")
    return value


def _make_schema(
    images: ImageOptions,
    facts: Facts,
    suffixes: Mapping[str, int],
    columns: Mapping[str, tuple[str, bool, bool]],
    arrays: Mapping[str, set[tuple[str, tuple[int, ...]]]],
    size: int,
) -> Schema:
    features: dict[str, Spec] = {"__key__": Spec("bytes", logical="text")}
    for suffix, count in suffixes.items():
        prefix, kind = split_suffix(suffix)
        optional = count < size
        if kind in _IMAGES:
            name = prefix or "image"
            # .jpg in one sample and .png in another are the same feature, which may be present in all samples.
            optional = sum(suffixes.get(f"{prefix}.{one}" if prefix else one, 0) for one in _IMAGES) < size
            features |= image_specs(images, facts, f"{name}/encoded", optional=optional)
        elif kind in _INTEGERS:
            features[_name_integer(prefix, kind)] = Spec("int64", optional=optional)
        elif kind in _TEXTS:
            features[prefix or "text"] = Spec("bytes", logical="text", optional=optional)
        elif kind == "npy":
            features[prefix or "npy"] = _array_spec(arrays[prefix or "npy"], optional)
        elif kind != "json":
            features[suffix] = Spec("bytes", logical="bytes", optional=optional)
    for name, (kind, is_list, optional) in columns.items():
        shape = (None,) if is_list else ()
        if kind == "text":
            features[name] = Spec("bytes", shape, logical="text", optional=optional)
        else:
            features[name] = Spec("int64" if kind == "int64" else "float", shape, optional=optional)
    return Schema(features)
