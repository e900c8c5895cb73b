"""Read the sidecars of shards once, with one order of precedence.

The order is the same for all information and every way to name the shards (folder, glob, list, one shard, one file):

1. arguments of the caller (not handled here),
2. `tfrkit.json`, for the shards it lists,
3. TFDS's files, which add to 2 and never override it,
4. the names of files,
5. the records (`batches.survey`), which win if a sidecar contradicts them.

A sidecar that cannot be read or does not match its shards is added to `problems` and not used.
docs/design/sidecars.md explains why.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

from tfrkit.container.listed import ListedNames
from tfrkit.container.names import is_shard_name
from tfrkit.container.shard_table import ShardTable
from tfrkit.errors import ContainerError, SchemaError, SidecarWarning, SourceError, StorageError, warn_caller
from tfrkit.features.infer import InferredSchema
from tfrkit.features.labels import LabelMap, read_charset, read_class_map
from tfrkit.features.schema import Schema, describe_type, find_mismatches, show_name
from tfrkit.features.spec import Spec
from tfrkit.orders.split_names import find_splits
from tfrkit.sidecars.manifest import Manifest, ShardEntry, check_manifest, entry_at, fingerprint_entries, read_manifest
from tfrkit.sidecars.places import CHARSET, CLASS_FILES, FEATURES, INFO, MANIFEST, own_path
from tfrkit.sidecars.tfds_files import TfdsFolder, read_tfds_folder
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.lookup import (
    UnusableFileError,
    ask_ahead,
    is_file,
    list_names,
    measure_file,
    recall_version,
    stamp_file,
)
from tfrkit.storage.text_files import read_text

STDIN = "-"
_MAX_OPENED = 64  # shards whose own sidecars are looked for by opening them


class SidecarProblem(NamedTuple):
    """A sidecar that is not used, and the reason."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.what} - at {self.path}"


@dataclass(frozen=True)
class ClassClash:
    """A class id that has two names; `path` is the sidecar, or the shard, with the second."""

    feature: str
    number: int
    one: str
    other: str
    path: str


class Sidecars:
    """The sidecars of some shards. Each is read once, on first use."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths: Sequence[str] = paths if isinstance(paths, ListedNames) else list(paths)
        self._problems: dict[SidecarProblem, None] = {}
        self._warned: set[SidecarProblem] = set()
        self._clash: ClassClash | None = None
        self._manifests: dict[str, Manifest | None] = {}
        self._listed: dict[str, frozenset[str]] = {}
        self._tfds: dict[str, TfdsFolder] = {}

    @property
    def problems(self) -> list[SidecarProblem]:
        """Unusable sidecars found so far; `check` reads all sidecars to find all problems."""
        return list(self._problems)

    @property
    def notes(self) -> list[str]:
        """One line for each problem found so far."""
        return [str(problem) for problem in self._problems]

    def warn(self) -> None:
        """Warn about each problem found so far, once."""
        for problem in self._problems:
            if problem not in self._warned:
                self._warned.add(problem)
                warn_caller(SidecarWarning(str(problem)))

    def ask_ahead(self) -> None:
        """Request the sidecars of remote folders that `check` reads; returns at once."""
        if len(self.folders) == 1 and has_scheme(self.folders[0]):
            names = (FEATURES, INFO, *CLASS_FILES, CHARSET)
            ask_ahead(os.path.join(self.folders[0], name) for name in names)

    def check(self) -> list[SidecarProblem]:
        """Read every sidecar; return all problems."""
        _ = self.classes, self.class_file, self.charset
        for folder in self.folders:
            self.tfds_of(folder)
        return self.problems

    # ---- manifests -----------------------------------------------------------------------------------------------

    @cached_property
    def folders(self) -> list[str]:
        """The folders that hold the shards."""
        if isinstance(self.paths, ListedNames):
            return [self.paths.folder]
        return list(dict.fromkeys(os.path.dirname(path) for path in self.paths if path != STDIN))

    @cached_property
    def manifests(self) -> list[Manifest | None]:
        """For each shard, the manifest that lists it: its own, else that of its folder, else None."""
        if self._table is not None:
            return [self.folder_manifest(self.folders[0])] * len(self.paths)
        return [None if path == STDIN else self._find_manifest(path) for path in self.paths]

    @property
    def name(self) -> str | None:
        """The name of the dataset, if all manifests agree."""
        names = {None if manifest is None else manifest.name for manifest in self.manifests}
        return names.pop() if len(names) == 1 else None

    @property
    def source_kind(self) -> str | None:
        """The source of `tfr build` that made the first shard, or the verb that wrote it."""
        manifest = self.manifests[0] if self.manifests else None
        return None if manifest is None else manifest.source_kind

    def folder_manifest(self, folder: str) -> Manifest | None:
        """Return the manifest of a folder, or None."""
        return self._load_manifest(os.path.join(folder, MANIFEST))

    def entry(self, number: int) -> ShardEntry | None:
        """Return the entry of a shard in its manifest, or None, without checking the size."""
        if self._table is not None:
            return entry_at(self._table, number)
        manifest = self.manifests[number]
        return None if manifest is None else manifest.entries[os.path.basename(self.paths[number])]

    @cached_property
    def fits(self) -> list[bool]:
        """For each shard, whether a manifest lists it with its current size, and in a store its current version."""
        if self._table is not None:
            return [True] * len(self.paths)  # each request compares the size
        return [
            manifest is not None and self._compare_size(number, manifest)
            for number, manifest in enumerate(self.manifests)
        ]

    def _compare_size(self, number: int, manifest: Manifest) -> bool:
        path = self.paths[number]
        entry = manifest.entries[os.path.basename(path)]
        try:
            nbytes = measure_file(path)
        except (OSError, StorageError):
            return False
        says = f"as {os.path.basename(manifest.path)} says"
        if entry.nbytes not in (None, nbytes):
            what = f"expected {entry.nbytes:,} bytes {says}, got {nbytes:,}"
        else:
            version = recall_version(path) if entry.etag is not None else None
            if version is None or version == entry.etag or manifest.stored_at != os.path.dirname(path):
                return True
            what = f"expected the version {entry.etag} {says}, got {version}"
        self.report(path, f"{what}; its facts about the records are not used")
        return False

    @cached_property
    def counts(self) -> list[int | None]:
        """Number of records of each shard from its manifest; None if unknown or if the shard has changed."""
        if self._table is not None:
            counts: list[int | None] = self._table.records.tolist()
            return counts
        return [
            entry.records if fits and (entry := self.entry(number)) is not None else None
            for number, fits in enumerate(self.fits)
        ]

    @cached_property
    def _table(self) -> ShardTable | None:
        """The table that lists all shards, if the manifest of their folder is still the one it was made of."""
        if not isinstance(self.paths, ListedNames):
            return None
        manifest = self.folder_manifest(self.paths.folder)
        return None if manifest is None or manifest.table is not self.paths.table.whole else self.paths.table

    @property
    def listed_fingerprint(self) -> str | None:
        """A hash of the sizes and checksums of all shards in their manifests; None if one is not known."""
        if self._table is not None:
            return self._table.fingerprint
        if not all(self.fits):
            return None
        entries = map(self.entry, range(len(self.paths)))
        return fingerprint_entries((entry.nbytes, entry.sha256) for entry in entries if entry is not None)

    def _find_manifest(self, path: str) -> Manifest | None:
        folder, name = os.path.split(path)
        places = [os.path.join(folder, MANIFEST)]
        if has_scheme(path):
            places.append(own_path(path, MANIFEST))  # a request for each shard would be too many
        elif len(self.paths) <= _MAX_OPENED or f"{name}.{MANIFEST}" in self._list_own(folder, path):
            places.insert(0, own_path(path, MANIFEST))
        for place in places:
            manifest = self._load_manifest(place)
            if manifest is not None and name in manifest.entries:
                return manifest
        return None

    def _list_own(self, folder: str, path: str) -> frozenset[str]:
        """Return the names of sidecars of single files in a folder, by the path of one file in it.

        They are listed once: one listing costs less than many failed opens.
        """
        if folder not in self._listed:
            try:
                self._listed[folder] = frozenset(os.listdir(os.path.dirname(own_path(path, MANIFEST))))
            except OSError:
                self._listed[folder] = frozenset()
        return self._listed[folder]

    def _load_manifest(self, path: str) -> Manifest | None:
        if path not in self._manifests:
            try:
                self._manifests[path] = self._recall_manifest(path) or read_manifest(path)
            except ContainerError as error:
                self._manifests[path] = None
                self.report(path, error.what)
        return self._manifests[path]

    def _recall_manifest(self, path: str) -> Manifest | None:
        """Return the manifest of a local folder whose shards were found by a table of it, unless it was replaced."""
        names = self.paths
        if not isinstance(names, ListedNames) or names.stamp is None or path != os.path.join(names.folder, MANIFEST):
            return None
        with contextlib.suppress(OSError):
            if stamp_file(path) == names.stamp:
                return check_manifest(path, names.table.head, names.table.whole)
        return None

    def report(self, path: str, what: str) -> None:
        """Add a problem: a sidecar that cannot be used."""
        self._problems[SidecarProblem(path, what)] = None

    # ---- splits --------------------------------------------------------------------------------------------------

    @cached_property
    def split_names(self) -> list[str | None]:
        """The split of each shard, or None.

        The split is taken from the manifest, even if the shard was changed since. Otherwise it is found in the file
        name, among the splits in TFDS's dataset_info.json or else by usual words. Other shards in the folder are
        considered, too, so that a single shard has the same split as when all are opened.
        """
        if self._table is not None and 0 not in self._table.split_codes:
            table = self._table
            return [table.split_names[code - 1] for code in table.split_codes.tolist()]
        entries = [self.entry(number) for number in range(len(self.paths))]
        names = [None if entry is None else entry.split for entry in entries]
        rest = [number for number, name in enumerate(names) if name is None and self.paths[number] != STDIN]
        known: dict[str, None] = {}
        for number in rest:
            known.update(dict.fromkeys(self.tfds_lengths(number)))
        named = [self.paths[number] for number in rest]
        for split, chosen in find_splits([*named, *_list_neighbours(named)], list(known)).items():
            for at in chosen:
                if at < len(rest):
                    names[rest[at]] = split
        return names

    @cached_property
    def splits(self) -> dict[str, list[int]]:
        """Numbers of the shards in each split; splits have the order of the manifest or of TFDS."""
        order: dict[str, None] = {}
        seen: set[Manifest] = set()  # each is asked once: there may be 100,000 shards
        for number, manifest in enumerate(self.manifests):
            if manifest is None:
                order.update(dict.fromkeys(self.tfds_lengths(number)))
            elif manifest not in seen:
                seen.add(manifest)
                order.update(_list_splits(manifest))
        order.update(dict.fromkeys(name for name in self.split_names if name is not None))
        found: dict[str, list[int]] = {name: [] for name in order}
        for number, name in enumerate(self.split_names):
            if name is not None:
                found[name].append(number)
        return {name: numbers for name, numbers in found.items() if numbers}

    # ---- TFDS ----------------------------------------------------------------------------------------------------

    def tfds_of(self, folder: str) -> TfdsFolder:
        """Return the content of TFDS's files in a folder."""
        if folder not in self._tfds:
            self._tfds[folder] = read_tfds_folder(folder)
            for path, what in self._tfds[folder].problems:
                self.report(path, what)
        return self._tfds[folder]

    def tfds_lengths(self, number: int) -> Mapping[str, Sequence[int]]:
        """Return the shard lengths of each split from the dataset_info.json that describes a shard."""
        if self.info_of(number) is None:
            return {}
        return self.tfds_of(os.path.dirname(self.paths[number])).lengths

    def is_tfds(self, number: int) -> bool:
        """Whether a features.json describes a shard."""
        path = self.paths[number]
        if path == STDIN or self.is_of_others(number, FEATURES):
            return False
        return self.tfds_of(os.path.dirname(path)).schema is not None

    def info_of(self, number: int) -> Mapping[str, Any] | None:
        """Return the content of TFDS's dataset_info.json if it describes a shard, else None."""
        if self.paths[number] == STDIN or self.is_of_others(number, INFO):
            return None
        return self.tfds_of(os.path.dirname(self.paths[number])).info

    def is_of_others(self, number: int, name: str) -> bool:
        """Whether a sidecar of the folder belongs to a dataset that does not include this shard."""
        path = self.paths[number]
        manifest = self.folder_manifest(os.path.dirname(path))
        return manifest is not None and name in manifest.files and os.path.basename(path) not in manifest.entries

    # ---- schema --------------------------------------------------------------------------------------------------

    @cached_property
    def schema(self) -> Schema | None:
        """The schema of all shards from manifests; None if a shard is not listed or was changed, or schemas differ."""
        if not self.paths or not all(self.fits):
            return None
        said = self._said_by_manifests
        return said[0] if len(said) == 1 and all(self._schema_of(m) is not None for m in self.manifests) else None

    def refuse_schema(self, reasons: Sequence[str]) -> None:
        """Report that `schema` contradicts the records, and stop using it."""
        for manifest in dict.fromkeys(self.manifests):
            if manifest is not None:
                self.report(manifest.path, f"schema does not fit the records, {'; '.join(reasons)}; it is not used")
        self.schema = None
        self._said_by_manifests = []

    @property
    def schema_origin(self) -> Literal["manifest", "tfds", "records"]:
        """The main source of the schema for `refine`: matching manifests, features.json, or only the records."""
        return "manifest" if self.schema is not None else "tfds" if self.paths and self.is_tfds(0) else "records"

    def refine(self, inferred: InferredSchema) -> Schema:
        """Return the schema of the records, with the information of sidecars that does not contradict the records."""
        found = inferred.schema
        if found.kind not in ("example", "sequence_example"):
            return found
        empty = {(row["name"], row["list"]) for row in inferred.report if not row["max_bytes"]}
        groups = [
            [schema for schema in group if schema.kind == found.kind]
            for group in (self._said_by_manifests, self._said_by_tfds)
        ]
        if not any(groups):
            return found

        def choose(name: str, spec: Spec) -> Spec:
            for group in groups:
                wanted = _find_agreed(group, name, is_list=spec.is_list)
                if wanted is not None and _is_possible(name, wanted, spec, is_empty=(name, spec.is_list) in empty):
                    return wanted.replace(meaning=_choose_meaning(wanted, spec))
            return spec

        features = {name: choose(name, spec) for name, spec in found.features.items()}
        lists = {name: choose(name, spec) for name, spec in found.feature_lists.items()}
        return Schema(features, feature_lists=lists if found.kind == "sequence_example" else None, kind=found.kind)

    @cached_property
    def _said_by_manifests(self) -> list[Schema]:
        """Distinct schemas of the manifests that match their shards."""
        fitting = [manifest for manifest, fits in zip(self.manifests, self.fits, strict=True) if fits]
        said = {manifest.path: self._schema_of(manifest) for manifest in dict.fromkeys(fitting) if manifest is not None}
        return self._list_different({path: schema for path, schema in said.items() if schema is not None})

    @cached_property
    def _said_by_tfds(self) -> list[Schema]:
        """Distinct schemas of features.json files, for shards without a schema from a manifest."""
        has_more = bool(self._said_by_manifests)
        described = [n for n in range(len(self.paths)) if not (has_more and self.fits[n]) and self.is_tfds(n)]
        folders = dict.fromkeys(os.path.dirname(self.paths[number]) for number in described)
        said = {os.path.join(folder, FEATURES): self.tfds_of(folder).schema for folder in folders}
        return self._list_different({path: schema for path, schema in said.items() if schema is not None})

    def _list_different(self, said: Mapping[str, Schema]) -> list[Schema]:
        """Return the distinct schemas; report a problem if a class id has two names."""
        different: list[Schema] = []
        named: dict[str, tuple[str, tuple[str, ...]]] = {}
        for path, schema in said.items():
            if schema in different:
                continue
            different.append(schema)
            for name, spec in {**schema.features, **schema.feature_lists}.items():
                if spec.classes is not None:
                    first, classes = named.setdefault(name, (path, spec.classes))
                    self._compare_classes(name, first, classes, path, spec.classes)
        return different

    def _compare_classes(self, name: str, first: str, classes: Sequence[str], path: str, others: Sequence[str]) -> None:
        pairs = enumerate(zip_longest(classes, others, fillvalue="none"))
        clash = next(((number, one, other) for number, (one, other) in pairs if one != other), None)
        if clash is not None:
            number, one, other = clash
            if number < min(len(classes), len(others)):
                self._clash = self._clash or ClassClash(name, number, one, other, path)
            self.report(
                path,
                f"class names of feature {show_name(name)} differ, {number} is {show_name(other)} here and "
                f"{show_name(one)} in {first}; none are used",
            )

    def _schema_of(self, manifest: Manifest | None) -> Schema | None:
        if manifest is None:
            return None
        try:
            return manifest.schema
        except SchemaError as error:
            self.report(manifest.path, error.what)
            return None

    # ---- names of classes ----------------------------------------------------------------------------------------

    @cached_property
    def classes(self) -> dict[str, tuple[str, ...]]:
        """Class names by feature, from manifests and features.json."""
        found: dict[str, tuple[str, ...]] = {}
        for group in (self._said_by_tfds, self._said_by_manifests):
            for name in dict.fromkeys(name for schema in group for name in schema):
                agreed = [_find_agreed(group, name, is_list=is_list) for is_list in (False, True)]
                spec = next((spec for spec in agreed if spec is not None), None)
                if spec is not None and spec.classes is not None:
                    found[name] = spec.classes
        return found

    @property
    def class_clash(self) -> ClassClash | None:
        """The first class id with two names in the sidecars of these shards, if any."""
        _ = self.classes
        return self._clash

    @cached_property
    def class_file(self) -> LabelMap | None:
        """Class names from a class file, if one describes all shards."""
        path = self.find_file(*CLASS_FILES)
        return None if path is None else self._read_names(path, read_class_map)

    @cached_property
    def charset(self) -> LabelMap | None:
        """Characters of labels by id, if one charset file describes all shards."""
        path = self.find_file(CHARSET)
        return None if path is None else self._read_names(path, read_charset)

    def find_file(self, *names: str) -> str | None:
        """Return the first sidecar of these names that describes all shards: of a single shard, else of their folder.

        None if there is none.
        """
        if STDIN in self.paths or len(self.folders) != 1:
            return None
        manifest, others = self.folder_manifest(self.folders[0]), frozenset[str]()
        if manifest is not None and self._table is None:
            is_whole = all(os.path.basename(path) in manifest.entries for path in self.paths)
            others = others if is_whole else manifest.files  # of a dataset that does not include all shards
        is_there = is_file if has_scheme(self.folders[0]) else os.path.isfile
        for name in names:
            if len(self.paths) == 1 and is_there(own := own_path(self.paths[0], name)):
                return own
            path = os.path.join(self.folders[0], name)
            if name not in others and is_there(path):
                return path
        return None

    def _read_names(self, path: str, read: Callable[..., LabelMap]) -> LabelMap | None:
        try:
            return read(path, text=read_text(path) if has_scheme(path) else None)
        except (SourceError, UnusableFileError) as error:
            self.report(path, f"class names were not used, {error.what}")
            return None


def _list_neighbours(paths: Sequence[str]) -> list[str]:
    """Return other files with the names of shards in the folders of some shards."""
    known = set(paths)
    found = []
    for folder in dict.fromkeys(map(os.path.dirname, paths)):
        with contextlib.suppress(OSError):
            found += [os.path.join(folder, name) for name in list_names(folder) if is_shard_name(name)]
    return [path for path in found if path not in known]


def _list_splits(manifest: Manifest) -> dict[str, None]:
    if manifest.table is not None:
        return dict.fromkeys(manifest.table.split_names)
    return dict.fromkeys(entry.split for entry in manifest.entries.values() if entry.split is not None)


def _find_agreed(schemas: Sequence[Schema], name: str, *, is_list: bool) -> Spec | None:
    """Return the spec of a feature if all schemas that have it agree, else None."""
    specs = [(schema.feature_lists if is_list else schema.features).get(name) for schema in schemas]
    found = {spec for spec in specs if spec is not None}
    return found.pop() if len(found) == 1 else None


def _is_possible(name: str, wanted: Spec, found: Spec, *, is_empty: bool) -> bool:
    """Whether the spec of a sidecar is compatible with the records."""
    if found.encoding == "tensor_proto" and wanted.encoding == "list":
        # TFDS declares serialized tensors as strings.
        return False
    if wanted.logical == "text" and found.logical != "text" and found.seen is None and not is_empty:
        return False
    return not find_mismatches(_alone(name, wanted), _alone(name, found))


def _choose_meaning(wanted: Spec, found: Spec) -> str:
    """Prefer the meaning guessed from the records, which has their ranges, unless the sidecar decodes differently."""
    if found.meaning and (wanted.encoding, wanted.logical) == (found.encoding, found.logical):
        return found.meaning
    if wanted.meaning:
        return wanted.meaning
    return found.meaning if wanted.encoding == "list" else f"{describe_type(wanted)} {wanted.shape}"


def _alone(name: str, spec: Spec) -> Schema:
    return Schema(None, feature_lists={name: spec}) if spec.is_list else Schema({name: spec})
