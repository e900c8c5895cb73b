"""Files of class names for the shards of a new dataset."""

from __future__ import annotations

from tfrkit.features.labels import LabelMap
from tfrkit.sidecars.places import CLASSES, LABEL_MAP


def make_detection_labels(labels: LabelMap) -> dict[str, str]:
    """Texts by file name for a dataset of boxes: classes.txt, and label_map.pbtxt for the Object Detection API.

    Both have the ids of `image/object/class/label`. Nothing where there are no classes.

    Example:
        >>> print(make_detection_labels(LabelMap(("cat",), offset=1))["label_map.pbtxt"], end="")
        item {
          id: 1
          name: 'cat'
        }
    """
    return {CLASSES: labels.to_text(), LABEL_MAP: labels.to_label_map()} if labels.names else {}
