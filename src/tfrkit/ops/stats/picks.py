"""Records picked for a report: some of all, and some of each class.

Records are picked by a hash of their numbers, so that the same ones are picked for any number of threads. Only places
are kept: which classes are rare is known after the last record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

NUM_SAMPLES = 16
NUM_EXAMPLES = 4  # per class
# Records of features with more classes are not picked.
MAX_CLASSES = 1000


class Pick(NamedTuple):
    """The place of a picked record: its ordinal in the shard and the inflated offset of its frame.

    `payload` is the record itself if it cannot be read again.
    """

    priority: int
    shard: str
    record: int
    offset: int
    payload: bytes | None = None


Examples = dict[Any, list[Pick]]
"""Picked records of each class of a feature."""


@dataclass
class Picks:
    """Picked records; `examples` are by feature, as (name as stored, whether it is a feature list)."""

    samples: list[Pick] = field(default_factory=list)
    examples: dict[tuple[bytes, bool], Examples] = field(default_factory=dict)

    def merge(self, other: Picks) -> None:
        """Add the picks of other records; a feature with too many classes has none."""
        self.samples = sorted(self.samples + other.samples)[:NUM_SAMPLES]
        for key, examples in other.examples.items():
            mine = self.examples.setdefault(key, {})
            for value, picks in examples.items():
                mine[value] = sorted(mine.get(value, []) + picks)[:NUM_EXAMPLES]
            if len(mine) > MAX_CLASSES:
                mine.clear()
