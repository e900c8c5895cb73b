"""Names of class ids, for whatever shows or counts them."""

from __future__ import annotations

from collections.abc import Mapping

from tfrkit.features.labels import LabelMap
from tfrkit.features.schema import Schema


class ClassNames:
    """Names of class ids: those a schema gives a feature, else those of a file beside the data."""

    def __init__(self, classes: Mapping[str, tuple[str, ...]], beside: LabelMap | None) -> None:
        self._classes = classes
        self._beside = {} if beside is None else {beside.id_of(name): name for name in beside.names}

    @classmethod
    def of_schema(cls, schema: Schema, beside: LabelMap | None) -> ClassNames:
        """Those of a schema, else those of a file."""
        specs = {**schema.features, **schema.feature_lists}
        return cls({name: spec.classes for name, spec in specs.items() if spec.classes is not None}, beside)

    def name_of(self, feature: str, value: object) -> str | None:
        """The name of a class id; None where it has none."""
        if not isinstance(value, int):
            return None
        classes = self._classes.get(feature)
        if classes is None:
            return self._beside.get(value)
        return classes[value] if 0 <= value < len(classes) else None

    def show(self, feature: str, number: int) -> str:
        """The name of a class id, or the number where it has none."""
        return self.name_of(feature, int(number)) or str(number)

    def list_ids(self, feature: str) -> list[int]:
        """Every class id that has a name, whether it occurs or not."""
        classes = self._classes.get(feature)
        return list(self._beside) if classes is None else list(range(len(classes)))

    def knows(self, feature: str) -> bool:
        """Does the schema name the classes of this feature?"""
        return feature in self._classes
