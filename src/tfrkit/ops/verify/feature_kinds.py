"""Check the kind of every feature for `verify --deep`, including features that are not decoded."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from tfrkit import _native
from tfrkit._types import UInt64Array
from tfrkit.features.infer import FeatureStats, count_kinds
from tfrkit.features.schema import Schema, decode_name, show_name
from tfrkit.features.spec import StorageKind
from tfrkit.storage.base import ByteSource

# Feature name, and whether it is a feature list: a context feature may have the same name.
_Name = tuple[str, bool]


class KindCheck:
    """Finds records in which a feature has another kind than in the other records. Not thread-safe.

    The expected kind is that of the schema or, if the schema lacks the feature, of the first record that has it.
    Features in `decoded` are skipped: their kinds are compared when they are decoded.
    """

    def __init__(self, schema: Schema, decoded: Collection[str]) -> None:
        self._decoded = frozenset(decoded)
        self._expected: dict[_Name, StorageKind] = {
            **{(name, False): spec.kind for name, spec in schema.features.items()},
            **{(name, True): spec.kind for name, spec in schema.feature_lists.items()},
        }

    def find(self, data: ByteSource, offsets: UInt64Array, stop: int) -> Iterator[tuple[int, str]]:
        """Yield the position in `offsets` and the cause of each mismatch in the frames at `offsets`, up to `stop`."""
        together = _survey(data, int(offsets[0]), stop, len(offsets))
        if all(len(count_kinds(counted)) <= 1 for counted in together) and not self._list_mismatches(together):
            return
        for number, offset in enumerate(offsets.tolist()):
            for name, expected, kind in self._list_mismatches(_survey(data, offset, stop, 1)):
                yield number, f"feature {show_name(name)} expected {expected} as in the other records, got {kind}"

    def _list_mismatches(self, surveyed: list[FeatureStats]) -> list[tuple[str, StorageKind, StorageKind]]:
        found = []
        for counted in surveyed:
            name = decode_name(counted["name"])
            if name in self._decoded:
                continue
            for kind in count_kinds(counted):
                expected = self._expected.setdefault((name, counted["is_list"]), kind)
                if kind != expected:
                    found.append((name, expected, kind))
        return found


def _survey(data: ByteSource, start: int, stop: int, num_frames: int) -> list[FeatureStats]:
    survey = _native.Survey("sequence_example")
    survey.add_frames(data, start, stop, num_frames, "none")
    surveyed: list[Any] = survey.features()
    return surveyed
