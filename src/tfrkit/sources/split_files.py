"""Splits that the names of input files define: kept if requested, else combined with a note."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tfrkit.errors import Hint, SourceError, Step


class FileSplits:
    """The splits of the files of a source.

    Attributes:
        names: Names of the splits; empty if they are not kept.
        numbers: Index into `names` of each file; None if they are not kept.
        notes: A note if several splits are combined.
    """

    def __init__(self, paths: Sequence[str], found: Sequence[str | None], order: Iterable[str], *, keep: bool) -> None:
        """Take the split `found` for each path. Raises `SourceError` if splits are kept and a file has none."""
        self.names: tuple[str, ...] = ()
        self.numbers: list[int] | None = None
        self.notes: list[str] = []
        if keep:
            for path, split in zip(paths, found, strict=True):
                if split is None:
                    raise SourceError("expected a file of a split, such as train-00000-of-00005", shard=path)
            self.names = tuple(order)
            self.numbers = [self.names.index(split) for split in found if split is not None]
        elif len(names := list(order)) > 1:
            note = f"the splits that the files name were combined: {', '.join(names)}"
            self.notes = [Hint(note, Step("keep them: {split_names}", split_names=True), gap="; ")]
