"""What is in these files: records, kinds, features."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tfrkit.batches.survey import Surveyed, kind_of_shapes
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard, find_shards, note_missing_shards
from tfrkit.features.infer import InferredSchema
from tfrkit.sidecars.read import Sidecars
from tfrkit.storage.resolve import Address


@dataclass(frozen=True)
class FileDescription:
    """One shard."""

    path: str
    bytes: int | None
    compression: str
    records: int
    kind: str


@dataclass(frozen=True)
class Description:
    """A dataset, every record looked at."""

    files: list[FileDescription]
    kind: str
    features: list[dict[str, Any]]
    splits: dict[str, int]
    problems: list[str]

    @property
    def records(self) -> int:
        return sum(file.records for file in self.files)

    @property
    def notes(self) -> list[str]:
        """What a reader should know: shards that are not there, sidecars that cannot be used."""
        return [*note_missing_shards(file.path for file in self.files), *self.problems]

    @property
    def compression(self) -> str:
        """That of all files, or "mixed"."""
        found = {file.compression for file in self.files}
        return found.pop() if len(found) == 1 else "mixed"

    def to_json(self) -> dict[str, Any]:
        """The public form: records, kind, compression, splits, files, features, notes."""
        return {
            "records": self.records,
            "kind": self.kind,
            "compression": self.compression,
            "splits": self.splits,
            "files": [dict(vars(file)) for file in self.files],
            "features": self.features,
            "notes": self.notes,
        }


def describe(address: Address | Iterable[Address]) -> Description:
    """Read every record once and say what is there. Damage raises."""
    whole = Surveyed()
    files = []
    for path in find_shards(address):
        shard = Shard.open(path)
        try:
            before = dict(whole.survey.shapes)
            num_records = whole.add_shard(shard, Policy())
            added = {shape: count - before[shape] for shape, count in whole.survey.shapes.items()}
            files.append(FileDescription(path, shard.nbytes, shard.compression, num_records, kind_of_shapes(added)))
        finally:
            shard.close()
    sidecars = Sidecars([file.path for file in files])
    splits = {name: sum(files[number].records for number in numbers) for name, numbers in sidecars.splits.items()}
    features = _refine_report(whole.infer(), sidecars)
    return Description(files, kind_of_shapes(whole.survey.shapes), features, splits, sidecars.notes)


def _refine_report(inferred: InferredSchema, sidecars: Sidecars) -> list[dict[str, Any]]:
    """Figures of each feature, with what sidecars know of it."""
    has_bytes = {(row["name"], row["list"]): bool(row["max_bytes"]) for row in inferred.report}
    schema = sidecars.refine(inferred.schema, has_values=lambda name, is_list: has_bytes[name, is_list])
    report = []
    for row in inferred.report:
        spec = (schema.feature_lists if row["list"] else schema.features).get(row["name"])
        known = {} if spec is None else {"shape": list(spec.shape), "dtype": spec.dtype, "meaning": spec.meaning}
        report.append({**row, **known})
    return report
