"""Datasets made by a verb."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from streets import make_foreign, make_pictures, make_written
from streets.building import output_of, output_options, run_tfr
from streets.placing import place
from streets.storages import STORAGES, Storage
from streets.truth import Made

Make = Callable[[Path, Storage], Made]

_BASES: dict[str, Make] = {"mixed": make_written.make_rows_mixed, "classes": make_pictures.make_class_folders}
# Files without sidecars are described by their records alone, so no verb may rely on sidecars.
_WITH_BARE: dict[str, Make] = {**_BASES, "bare": make_foreign.make_bare}
_ONE_FILE = STORAGES["file_none"]


@functools.cache
def _root() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="streets-")


@functools.cache
def _make_base(base: Make, name: str, compression: str, shards: int) -> Made:
    """The input of a verb, made once: verbs do not change it."""
    storage = replace(STORAGES[name], compression=compression, shards=shards, address="all")
    folder = Path(tempfile.mkdtemp(dir=_root().name))
    return base(folder, storage)


def _reshape(folder: Path, storage: Storage, source: Made, verb: str, *options: object) -> Made:
    out = output_of(folder, storage)
    run_tfr(verb, source.path, "-o", out, "--compression", storage.compression, *options, "--quiet")
    in_order = source.truth.keeps_order and verb != "shuffle"
    return place(out, replace(source.truth, keeps_order=in_order), storage)


def make_split(base: Make) -> Make:
    """Parts of one file."""

    def make(folder: Path, storage: Storage) -> Made:
        source = _make_base(base, _ONE_FILE.name, "none", 1)
        out = output_of(folder, storage)
        wanted = replace(storage, splits=storage.splits or {"train": 1.0})
        run_tfr("split", source.path, "-o", out, *output_options(wanted), "--quiet")
        return place(out, source.truth, storage)

    return make


def make_with_shards(verb: str, base: Make) -> Make:
    """A dataset with the same splits, in other shards."""

    def make(folder: Path, storage: Storage) -> Made:
        return _reshape(folder, storage, _make_base(base, storage.name, "gzip", 1), verb, "--shards", storage.shards)

    return make


def make_convert(base: Make) -> Make:
    """Another compression under the same names."""

    def make(folder: Path, storage: Storage) -> Made:
        return _reshape(folder, storage, _make_base(base, storage.name, "zlib", storage.shards), "convert")

    return make


def make_from_parts(verb: str, base: Make) -> Make:
    """One file out of the splits of a folder."""

    def make(folder: Path, storage: Storage) -> Made:
        source = _make_base(base, "folder_north", "none", 2)
        more = ["-n", len(source.truth.rows)] if verb == "sample" else []
        unordered = replace(source, truth=replace(source.truth, keeps_order=False))
        return _reshape(folder, storage, unordered, verb, *more)

    return make


def make_build_tfrecord(folder: Path, storage: Storage) -> Made:
    source = _make_base(make_written.make_rows_mixed, "file_gzip", "gzip", 1)
    out = output_of(folder, storage)
    run_tfr("build", "tfrecord", source.path, "-o", out, *output_options(storage), "--jobs", 1, "--quiet")
    return place(out, source.truth, storage)


RESHAPED: dict[tuple[str, str], Make] = {
    **{("split", name): make_split(base) for name, base in _WITH_BARE.items()},
    **{("shuffle", name): make_with_shards("shuffle", base) for name, base in _BASES.items()},
    **{("reshard", name): make_with_shards("reshard", base) for name, base in _BASES.items()},
    **{("convert", name): make_convert(base) for name, base in _BASES.items()},
    **{("merge", name): make_from_parts("merge", base) for name, base in _WITH_BARE.items()},
    **{("sample", name): make_from_parts("sample", base) for name, base in _WITH_BARE.items()},
}
