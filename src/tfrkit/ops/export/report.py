"""Report of an export."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from tfrkit.container.records import Finding
from tfrkit.errors import CodecError, Hint, Step
from tfrkit.ops.export.input import ExportInput, RecordNumber

OnBad = Literal["fail", "skip"]
"""Handling of a record that cannot be written in the requested form."""

# Limits the size of the report: a hostile dataset may have a million names.
_MAX_RENAMED = 10_000


class Renamed(NamedTuple):
    """A stored name that was unsafe or taken, and the name it was written under."""

    stored: str
    written: str


@dataclass
class Export:
    """Report of an export. `skipped` lists the records left out, with their errors.

    `available` is the total number of records if only some were requested. For an export of images, `images` and
    `masks` count the files of each, and `tables` lists the other files.
    """

    kind: str
    output: str
    records: int = 0
    files: int = 0
    nbytes: int = 0
    skipped: list[Finding] = field(default_factory=list)
    renamed: list[Renamed] = field(default_factory=list)
    num_renamed: int = 0
    notes: list[str] = field(default_factory=list)
    available: int | None = None
    images: int = 0
    masks: int = 0
    tables: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every record was written."""
        return not self.skipped

    def note_renamed(self, stored: str, written: str) -> None:
        """Add a name that was changed; all are counted, the first 10,000 listed."""
        self.num_renamed += 1
        if len(self.renamed) < _MAX_RENAMED:
            self.renamed.append(Renamed(stored, written))

    def take_bad(self, source: ExportInput, place: RecordNumber, cause: str, on_bad: OnBad) -> None:
        """Report a record that cannot be written: raise, or with `on_bad` "skip" add it to `skipped`."""
        finding = source.locate(place, cause)
        if on_bad == "fail":
            raise CodecError(
                cause,
                shard=finding.shard,
                record=finding.record,
                offset=finding.offset,
                hint=Hint(Step("leave such records out, and list them: {on_bad}", on_bad="skip")),
            )
        self.skipped.append(finding)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: kind, output, records, files, nbytes, skipped, renamed, num_renamed, notes.

        Each entry of renamed has stored and written. For images also available, images, masks, tables.
        """
        parts = {"available": self.available, "images": self.images, "masks": self.masks, "tables": self.tables}
        return {
            "kind": self.kind,
            "output": self.output,
            "records": self.records,
            "files": self.files,
            "nbytes": self.nbytes,
            "skipped": [finding.to_json() for finding in self.skipped],
            "renamed": [name._asdict() for name in self.renamed],
            "num_renamed": self.num_renamed,
            "notes": self.notes,
            **(parts if self.kind == "images" else {}),
        }


def require_on_bad(on_bad: str) -> None:
    """Raise ValueError unless `on_bad` is "fail" or "skip"."""
    if on_bad not in ("fail", "skip"):
        raise ValueError(f"on_bad expected 'fail' or 'skip', got {on_bad!r}")
