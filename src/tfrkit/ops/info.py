"""Describe the contents of files: records, kinds, features."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tfrkit.batches.survey import RecordSizes, Surveyed, kind_of_shapes
from tfrkit.container.names import note_missing_shards
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard, find_shards
from tfrkit.features.infer import InferredSchema
from tfrkit.features.meaning import find_media
from tfrkit.features.schema import Schema, decode_name
from tfrkit.features.size_features import find_sizes
from tfrkit.images.raw_shapes import describe_guesses, fill_shape, guess_shapes, show_shape
from tfrkit.sidecars.read import Sidecars
from tfrkit.storage.resolve import Address


@dataclass(frozen=True)
class FileDescription:
    """Description of one shard."""

    path: str
    bytes: int | None
    compression: str
    records: int
    kind: str


@dataclass(frozen=True)
class Description:
    """Description of a dataset, from all its records."""

    files: list[FileDescription]
    kind: str
    features: list[dict[str, Any]]
    splits: dict[str, int]
    problems: list[str]
    record_bytes: dict[str, Any] | None = None

    @property
    def records(self) -> int:
        return sum(file.records for file in self.files)

    @property
    def notes(self) -> list[str]:
        """Notes on missing shards and on sidecars that cannot be used."""
        return [*note_missing_shards(file.path for file in self.files), *self.problems]

    @property
    def compression(self) -> str:
        """The compression of all files, or "mixed"."""
        found = {file.compression for file in self.files}
        return found.pop() if len(found) == 1 else "mixed"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: records, record_bytes, kind, compression, splits, files, features, notes."""
        return {
            "records": self.records,
            "record_bytes": self.record_bytes,
            "kind": self.kind,
            "compression": self.compression,
            "splits": self.splits,
            "files": [dict(vars(file)) for file in self.files],
            "features": self.features,
            "notes": self.notes,
        }


def describe(address: Address | Iterable[Address]) -> Description:
    """Read every record once and describe the dataset. Damage raises."""
    whole = Surveyed()
    sizes = RecordSizes()
    files = []
    for path in find_shards(address):
        with contextlib.closing(Shard.open(path)) as shard:
            before = dict(whole.survey.shapes)
            num_records = whole.add_shard(shard, Policy(), sizes=sizes)
            added = {shape: count - before[shape] for shape, count in whole.survey.shapes.items()}
            files.append(FileDescription(path, shard.nbytes, shard.compression, num_records, kind_of_shapes(added)))
    sidecars = Sidecars([file.path for file in files])
    splits = {name: sum(files[number].records for number in numbers) for name, numbers in sidecars.splits.items()}
    known = {decode_name(one["name"]) for one in whole.survey.features() if find_media([*map(bytes, one["heads"])])}
    features = _refine_report(whole.counts.infer(), sidecars, known)
    kind = kind_of_shapes(whole.survey.shapes)
    return Description(files, kind, features, splits, sidecars.notes, sizes.to_json())


def _refine_report(inferred: InferredSchema, sidecars: Sidecars, media: Collection[str]) -> list[dict[str, Any]]:
    """Return the statistics of each feature, with facts from sidecars; `media` names features with audio or similar."""
    schema = sidecars.refine(inferred)
    report = []
    for row in inferred.report:
        spec = (schema.feature_lists if row["list"] else schema.features).get(row["name"])
        known = {} if spec is None else {"shape": list(spec.shape), "dtype": spec.dtype, "meaning": spec.meaning}
        report.append({**row, **known, "pixel_shapes": []})
    _guess_pixels([row for row in report if row["name"] not in media], schema, _find_constants(report))
    return report


def _find_constants(report: list[dict[str, Any]]) -> dict[str, int]:
    """Return the integer features that have the same value in all records."""
    rows = [row for row in report if row["type"] == "int64" and row["min_value"] == row["max_value"]]
    return {row["name"]: row["min_value"] for row in rows if row["min_value"] is not None}


def _guess_pixels(report: list[dict[str, Any]], schema: Schema, constants: Mapping[str, int]) -> None:
    """Add possible pixel shapes to raw bytes of equal length; the meaning of a guess ends in a question mark."""
    for row in report:
        spec = (schema.feature_lists if row["list"] else schema.features).get(row["name"])
        is_raw = spec is not None and spec.kind == "bytes" and spec.encoding == "list" and spec.logical == "bytes"
        nbytes = row["max_bytes"]
        if not is_raw or not nbytes or row["min_bytes"] != nbytes:
            continue
        meaning = row["meaning"] or "raw bytes"
        sizes = find_sizes({name: one for name, one in schema.features.items() if one.seen is None}, row["name"])
        if sizes.is_known:
            stated = [constants.get(name or "", 0) for name in (sizes.height, sizes.width)]
            stated += [constants[sizes.channels]] if sizes.channels is not None and sizes.channels in constants else []
            filled = fill_shape(stated, nbytes) if min(stated) > 0 else None
            if filled is not None:
                row["pixel_shapes"] = [list(filled)]
                row["meaning"] = f"{meaning}: {show_shape(filled)}"
            continue
        row["pixel_shapes"] = [list(shape) for shape in guess_shapes(nbytes)]
        if row["pixel_shapes"]:
            row["meaning"] = f"{meaning}: {describe_guesses(nbytes)}?"
