"""Report of an export."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from tfrkit.container.records import Finding
from tfrkit.errors import CodecError, Hint, Step
from tfrkit.ops.export.input import ExportInput, RecordNumber

OnBad = Literal["fail", "skip"]
"""Handling of a record that cannot be written in the requested form."""

# Names of a report; a hostile dataset may have a million.
_MAX_RENAMED = 10_000


class Renamed(NamedTuple):
    """A name as it is stored, and as it was written."""

    stored: str
    written: str


@dataclass
class Export:
    """What was written where. `skipped` are the records left out, with their errors.

    `available` is how many records there are, where only some were asked for. Of an export of images, `images` and
    `masks` count those files, and `tables` names the others.
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
        """Was every record written?"""
        return not self.skipped

    def note_renamed(self, stored: str, written: str) -> None:
        """Remember a name that could not stay."""
        self.num_renamed += 1
        if len(self.renamed) < _MAX_RENAMED:
            self.renamed.append(Renamed(stored, written))

    def take_bad(self, source: ExportInput, place: RecordNumber, cause: str, on_bad: OnBad) -> None:
        """Record a record that cannot be written, or raise."""
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
        """The public form: kind, output, records, files, nbytes, skipped, renamed (stored, written), notes.

        Of images also available, images, masks, tables.
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
    """Raise ValueError for a word that is none of the choices."""
    if on_bad not in ("fail", "skip"):
        raise ValueError(f"on_bad expected 'fail' or 'skip', got {on_bad!r}")
