"""The guesses of `tfr sheet` for a dataset that is viewed, overridden by parameters of the same names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tfrkit._types import Row
from tfrkit.errors import CodecError, ContainerError, SchemaError
from tfrkit.pictures.colors import to_hex, voc_palette
from tfrkit.pictures.features import PictureFeatures
from tfrkit.pictures.guesses import NUM_PROBED, PictureGuesses, read_given
from tfrkit.pictures.picture import PictureReader
from tfrkit.view.opened import Opened

_MAX_CLASSES = 256


@dataclass(frozen=True)
class Guesses:
    """The features of pictures of a dataset: `given` ones, and guesses for the others."""

    opened: Opened
    given: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, opened: Opened, query: Mapping[str, str]) -> Guesses:
        """Read parameters; an unknown feature raises `SchemaError`, a wrong value ValueError."""
        return cls(opened, tuple(read_given(query).items()))

    @cached_property
    def features(self) -> PictureFeatures | None:
        """The features of pictures; None if there are no pictures."""
        is_raw = self.opened.kind not in ("example", "sequence_example")
        if is_raw or dict(self.given).get("image") == "-":
            return None
        try:
            return self._guesses.features
        except SchemaError:
            if self.given:
                raise
            return None

    def new_reader(self, side: int, *, enlarges: bool = True) -> PictureReader | None:
        """Make a reader of pictures that fit into a square; small ones are enlarged by default."""
        if self.features is None:
            return None
        opened = self.opened
        return PictureReader(
            opened.schema,
            self.features,
            opened.names,
            side=side,
            keeps_pixels=True,
            enlarges=enlarges,
            is_quick=True,
        )

    def to_json(self) -> dict[str, Any]:
        """Return value, options and origin of each guess."""
        return self._guesses.to_json(self.features)

    def list_classes(self) -> list[dict[str, Any]]:
        """Return id, name and colour of the classes of the mask."""
        mask = None if self.features is None else self.features.mask
        if mask is None:
            return []
        ids = [number for number in self.opened.names.list_ids(mask) if 0 <= number < _MAX_CLASSES]
        return [
            {
                "id": number,
                "name": self.opened.names.show(mask, number),
                "color": to_hex(voc_palette()[number].tolist()),
            }
            for number in ids
        ]

    @cached_property
    def _guesses(self) -> PictureGuesses:
        return PictureGuesses(self.opened.schema, dict(self.given), self._read_first, guesses_shape=True)

    def _read_first(self) -> Iterator[Row]:
        for record in range(min(NUM_PROBED, self.opened.num_records)):
            try:
                yield self.opened.read_row(record)
            except (ContainerError, CodecError, SchemaError):
                continue
