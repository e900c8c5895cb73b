"""Class names as datasets with annotations carry them: lists, numbered lists, label maps, colour lists."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from tfrkit.errors import SourceError
from tfrkit.features.labels import LabelMap, parse_label_map, read_class_map
from tfrkit.pictures.masks import parse_color_map
from tfrkit.storage.resolve import expand_home

# What labelling tools call the class that is none; its number is always 0.
BACKGROUND = frozenset({"background", "_background_", "__background__"})
# Files labelling tools leave beside a dataset in the form of Pascal VOC, the most telling one first.
CLASS_FILES = ("labelmap.txt", "class_names.txt", "classes.txt", "labels.txt")
LABEL_MAP_SUFFIXES = (".pbtxt", ".pbtext", ".prototxt")
_NUMBERED = re.compile(r"\s*\d+:")


def find_class_file(root: str) -> str | None:
    """The file of class names that lies in a dataset's folder, or None."""
    paths = (os.path.join(root, name) for name in CLASS_FILES)
    return next((path for path in paths if os.path.isfile(path)), None)


def load_classes(classes: str | Sequence[str], *, label_offset: int | None) -> LabelMap:
    """The map of a list of names or of a file: one name per line, `id:name` lines, labelmap.txt, or a label map .pbtxt.

    Ids the file itself gives stay, unless `label_offset` is given. Otherwise the first name has id 1, as readers of
    boxes expect; a background at the front of the list has id 0.
    """
    if not isinstance(classes, str):
        return _number(tuple(classes), "the given names", label_offset)
    classes = expand_home(classes)
    if classes.endswith(LABEL_MAP_SUFFIXES):
        found = parse_label_map(read_text(classes), classes)
        if label_offset is None:
            return found
        gaps = frozenset(number - found.offset + label_offset for number in found.gaps)
        return LabelMap(found.names, origin=classes, offset=label_offset, gaps=gaps)
    text = read_text(classes)
    if os.path.basename(classes) == "labelmap.txt":
        return _number(tuple(parse_color_map(text, classes)[1]), classes, label_offset)
    found = read_class_map(classes)
    is_numbered = all(_NUMBERED.match(line) for line in text.splitlines() if line.strip())
    if is_numbered:
        return LabelMap(found.names, origin=classes, offset=found.offset if label_offset is None else label_offset)
    return _number(found.names, classes, label_offset)


def read_text(path: str) -> str:
    """A small text file, as UTF-8 with or without a byte order mark."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read()
    except OSError as error:
        raise SourceError(f"cannot open, {(error.strerror or str(error)).lower()}", shard=path) from None
    except UnicodeDecodeError as error:
        raise SourceError(f"expected UTF-8 text, got byte {error.object[error.start]:#04x}", shard=path) from None


def _number(names: tuple[str, ...], origin: str, label_offset: int | None) -> LabelMap:
    if label_offset is not None:
        return LabelMap(names, origin=origin, offset=label_offset)
    has_background = bool(names) and names[0].lower() in BACKGROUND
    return LabelMap(names, origin=origin, offset=0 if has_background else 1)
