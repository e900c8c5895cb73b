"""Names of class ids: read for display and counts, and written with a new dataset."""

from __future__ import annotations

from collections.abc import Mapping

from tfrkit.features.labels import LabelMap
from tfrkit.features.schema import Schema
from tfrkit.sidecars.places import CLASSES, LABEL_MAP


class ClassNames:
    """Names of class ids: from the schema of a feature, else from a class file."""

    def __init__(self, classes: Mapping[str, tuple[str, ...]], beside: LabelMap | None) -> None:
        self._classes = classes
        self._beside = {} if beside is None else {beside.id_of(name): name for name in beside.names}

    @classmethod
    def of_schema(cls, schema: Schema, beside: LabelMap | None) -> ClassNames:
        """Make class names from a schema, with the class file for features without names."""
        specs = {**schema.features, **schema.feature_lists}
        return cls({name: spec.classes for name, spec in specs.items() if spec.classes is not None}, beside)

    def name_of(self, feature: str, value: object) -> str | None:
        """Return the name of a class id, or None."""
        if not isinstance(value, int):
            return None
        classes = self._classes.get(feature)
        if classes is None:
            return self._beside.get(value)
        return classes[value] if 0 <= value < len(classes) else None

    def show(self, feature: str, number: int) -> str:
        """Return the name of a class id, or its number as text."""
        return self.name_of(feature, int(number)) or str(number)

    def list_ids(self, feature: str) -> list[int]:
        """Return all class ids that have a name, including ids that do not occur in the data."""
        classes = self._classes.get(feature)
        return list(self._beside) if classes is None else list(range(len(classes)))

    def knows(self, feature: str) -> bool:
        """Whether the schema has the class names of this feature."""
        return feature in self._classes


def make_detection_labels(labels: LabelMap) -> dict[str, str]:
    """Return the label files of a dataset with boxes: classes.txt, and label_map.pbtxt for the Object Detection API.

    The result maps file names to texts; it is empty without classes. The ids are those of `image/object/class/label`.

    Example:
        >>> print(make_detection_labels(LabelMap(("cat",), offset=1))["label_map.pbtxt"], end="")
        item {
          id: 1
          name: 'cat'
        }
    """
    return {CLASSES: labels.to_text(), LABEL_MAP: labels.to_label_map()} if labels.names else {}
