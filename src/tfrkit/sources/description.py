"""Sources that are dataclasses: the first field is the input, all other fields are options that affect the output."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from tfrkit.codec.frame_columns import IN_MEMORY
from tfrkit.storage.resolve import show_address


@dataclass(frozen=True)
class DescribedSource:
    """Base class of file and table sources."""

    def __post_init__(self) -> None:
        """Expand ~ in paths, and convert lists of names to tuples."""
        for name in (fields(self)[0].name, "image_root"):
            path = getattr(self, name, None)
            if isinstance(path, (str, os.PathLike)):
                object.__setattr__(self, name, show_address(path))
        for name in ("sets", "context", "missing"):
            names = getattr(self, name, None)
            if names is not None:
                object.__setattr__(self, name, (names,) if isinstance(names, str) else tuple(names))

    @property
    def title(self) -> str:
        """The file or folder, or all of them, for messages."""
        place = getattr(self, fields(self)[0].name)
        if isinstance(place, (list, tuple)):
            return ", ".join(map(str, place))
        return place if isinstance(place, str) else IN_MEMORY

    def options(self) -> dict[str, Any]:
        """Return every option that affects the output, as JSON values."""
        return {"path": self.title, **{field.name: _to_json(getattr(self, field.name)) for field in fields(self)[1:]}}


def _to_json(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Mapping):
        return {str(name): other for name, other in sorted(value.items())}
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
