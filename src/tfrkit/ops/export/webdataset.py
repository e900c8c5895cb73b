"""Export as WebDataset: tar files of samples. The same input gives the same bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import BinaryIO

from tfrkit._limits import DEFAULT_TAR_SIZE
from tfrkit.errors import CodecError, SchemaError
from tfrkit.features.name_words import LABEL
from tfrkit.features.size_features import SizeFeatures
from tfrkit.ops.export.input import ExportInput, RecordNumber
from tfrkit.ops.export.members import KEY, MemberPlan
from tfrkit.ops.export.names import SafeNames, safe_part
from tfrkit.ops.export.pictures import decode_text
from tfrkit.ops.export.report import Export, OnBad, require_on_bad
from tfrkit.ops.export.tar import TarWriter
from tfrkit.outputs.sizes import parse_size
from tfrkit.outputs.staging import StagedFile, StagedFolder
from tfrkit.outputs.stored import open_file, open_folder
from tfrkit.pictures.features import PictureFeatures, find_picture_features
from tfrkit.progress import Progress
from tfrkit.storage.resolve import Address, show_address


def export_webdataset(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    *,
    shard_size: int | str = DEFAULT_TAR_SIZE,
    image: str | None = None,
    label: str | None = None,
    name: str | None = None,
    on_bad: OnBad = "fail",
    force: bool = False,
    incomplete: bool = False,
    progress: Progress | None = None,
) -> Export:
    """Write a dataset as tar files of samples, which WebDataset and `tfr build webdataset` read.

    ops/export/members.py defines the member of each feature. The key of a sample is __key__, else its stored file
    name, else the record number. Members have no date and no owner, so that the same records give the same bytes.

    Args:
        address: Path, glob, folder, or a list of these.
        output: The folder to create, with train-000000.tar for each split or data-000000.tar; or one file NAME.tar.
        shard_size: Approximate size of a tar file, in bytes or as "1GB".
        image: The feature to write as .jpg or .png; found by default.
        label: The feature to write as .cls; found by default.
        name: The feature with the keys.
        on_bad: A record that cannot be a sample stops the export ("fail"), or is left out and listed ("skip").
        force: Replace existing files.
        incomplete: Continue if shards of a set are missing.
        progress: Progress callback.
    """
    require_on_bad(on_bad)
    limit = parse_size(shard_size) if isinstance(shard_size, str) else shard_size
    if limit < 1:
        raise ValueError(f"shard size expected a number of bytes from 1 up, got {shard_size!r}")
    target = show_address(output)
    with ExportInput(address, progress, incomplete=incomplete) as source:
        source.require_examples()
        if source.schema.kind != "example":
            raise SchemaError(
                "expected Examples, got SequenceExamples, whose frames cannot be members of a sample",
                shard=source.paths[0],
                hint="frames as files: tfr export images; everything: tfr export jsonl",
            )
        report = Export("webdataset", target)
        features = _find_features(source, image, label)
        plan = MemberPlan(
            source.schema,
            image=image or _find_image(source, features),
            label=label or _find_label(source, features),
            sizes=SizeFeatures() if features is None else features.sizes,
        )
        keys = _Keys(source, report, name, features)
        is_file = target.endswith(".tar") and not os.path.isdir(target)
        stage: Callable[..., StagedFile | StagedFolder] = open_file if is_file else open_folder
        # Each member has a header of 512 bytes and is padded to a multiple of 512.
        nbytes = source.nbytes + source.num_records * 4 * 1024
        with stage(target, sources=source.paths, force=force, nbytes=nbytes) as staged:
            splits = [""] * len(source.paths) if is_file else source.split_names()
            tars = _Tars(splits, staged, 1 << 62 if is_file else limit)
            source.begin()
            for place, values in source.rows(list(dict.fromkeys([*plan.features, *keys.features]))):
                try:
                    members = plan.make(values)
                    if not members:
                        raise CodecError("sample expected at least one feature, got none")
                except CodecError as error:
                    report.take_bad(source, place, error.what, on_bad)
                    continue
                tars.add(place.shard, keys.take(place, values), members)
                report.records += 1
            source.end()
            report.files, report.nbytes = tars.commit()
        report.notes += plan.describe()
        return report


def _find_features(source: ExportInput, image: str | None, label: str | None) -> PictureFeatures | None:
    try:
        return find_picture_features(source.schema, image=image, label=label)
    except SchemaError:
        if image is not None or label is not None:
            raise
        return None


def _find_image(source: ExportInput, features: PictureFeatures | None) -> str | None:
    """Return the feature with the encoded image, or None; raw pixels are an image only if named by the user."""
    if features is None:
        return None
    spec = source.schema[features.image]
    is_encoded = spec.kind == "bytes" and spec.encoding == "list" and spec.shape == () and spec.logical == "image"
    return features.image if is_encoded else None


def _find_label(source: ExportInput, features: PictureFeatures | None) -> str | None:
    """Return the integer feature with the class, or None; always None for datasets that came from tar files."""
    schema = source.schema
    candidates = [LABEL, *(features.labels if features is not None else ())] if KEY not in schema else []
    for name in candidates:
        if name in schema.features and schema[name].kind == "int64" and schema[name].shape == ():
            return name
    return None


class _Keys:
    """Gives each sample a unique key."""

    def __init__(self, source: ExportInput, report: Export, name: str | None, features: PictureFeatures | None) -> None:
        schema = source.schema
        if name is not None:
            schema.require_one_kind(name)
        title = features.title if features is not None else None
        self._feature = name or (KEY if KEY in schema else title)
        self.features = [self._feature] if self._feature is not None else []
        self._report = report
        self._names = SafeNames()
        self._starts = [0, *accumulate(source.counts)]

    def take(self, place: RecordNumber, values: dict[str, object]) -> str:
        """Return the key of a sample: a path without a dot after its last slash."""
        number = f"{self._starts[place.shard] + place.record:08d}"
        value = values.get(self._feature) if self._feature is not None else None
        if not isinstance(value, (bytes, int)):
            return self._names.take(number, otherwise=number)
        stored = decode_text(value) if isinstance(value, bytes) else str(value)
        wanted = stored if self._feature == KEY else os.path.splitext(stored)[0]
        folder, slash, base = wanted.rpartition("/")
        base = base.replace(".", "_").removeprefix("__") or number
        key = self._names.take(f"{folder}{slash}{base}", otherwise=number)
        if key != wanted:
            self._report.note_renamed(wanted, key)
        return key


class _Tars:
    """Tar files of each split, filled one after the other: NAME-000000.tar, NAME-000001.tar ..."""

    def __init__(self, splits: list[str], staged: StagedFile | StagedFolder, limit: int) -> None:
        self._splits = splits
        self._staged = staged
        self._limit = limit
        self._open: dict[str, tuple[TarWriter, BinaryIO]] = {}
        self._counts: dict[str, int] = {}

    def add(self, shard: int, key: str, members: list[tuple[str, bytes]]) -> None:
        """Write one sample; its members are always in the same file."""
        split = self._splits[shard]
        if split in self._open and self._open[split][0].nbytes >= self._limit:
            self._close(split)
        if split not in self._open:
            number = self._counts[split] = self._counts.get(split, -1) + 1
            file = self._staged.open(f"{safe_part(split or 'data')}-{number:06d}.tar")
            self._open[split] = TarWriter(file), file
        for suffix, data in members:
            self._open[split][0].add(f"{key}.{suffix}", data)

    def commit(self) -> tuple[int, int]:
        """Move the files into place; return their number and size in bytes."""
        for split in list(self._open):
            self._close(split)
        self._staged.commit()
        return self._staged.files, self._staged.nbytes

    def _close(self, split: str) -> None:
        archive, file = self._open.pop(split)
        archive.close()
        file.close()
