"""Parse the text files of a YOLO dataset: labels, class names, and data.yaml."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tfrkit.errors import SourceError
from tfrkit.sources.boxes import Corners

_KEYS = ("path", "train", "val", "valid", "test", "names", "nc", "kpt_shape")
_Value = str | list[str] | dict[str, str]


@dataclass(frozen=True)
class YoloObject:
    """One line of a label file: class number, and xmin, ymin, xmax, ymax as fractions of the image size."""

    label: int
    corners: Corners
    line: int
    is_outline: bool = False


@dataclass(frozen=True)
class DataYaml:
    """The content of a data.yaml: class names by number, and the paths of each split.

    `others` are the strings and lists of strings under keys that YOLO does not define; they may be paths of splits.
    """

    names: dict[int, str]
    path: str
    splits: Mapping[str, tuple[str, ...]]
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    has_keypoints: bool = False


def parse_yolo_labels(text: str, *, has_keypoints: bool = False) -> tuple[list[YoloObject], list[tuple[int, str]]]:
    """Parse the objects of a label file; also return (line, reason) of each invalid line.

    A line is `class x_centre y_centre width height`, or `class x1 y1 x2 y2 x3 y3 ...`, an outline, whose bounding box
    is used. Keypoints after a box are ignored.

    Example:
        >>> parse_yolo_labels("3 0.5 0.5 0.25 0.5")[0][0].corners
        (0.375, 0.25, 0.625, 0.75)
    """
    objects: list[YoloObject] = []
    problems: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                objects.append(_parse_line(line.split(), number, has_keypoints))
            except ValueError as error:
                problems.append((number, str(error)))
    return objects, problems


def _parse_line(words: list[str], number: int, has_keypoints: bool) -> YoloObject:
    try:
        label = float(words[0])
        values = [float(word) for word in words[1:]]
    except ValueError:
        odd = next(word for word in words if not _is_number(word))
        raise ValueError(f"expected numbers, got {odd!r:.64}") from None
    if not all(map(math.isfinite, [label, *values])):
        raise ValueError("expected numbers, got nan or inf")
    if label < 0 or label != int(label):
        raise ValueError(f"class expected a whole number of 0 or more, got {words[0]!r:.64}")
    if len(values) == 4 or (has_keypoints and len(values) > 4):
        x, y, width, height = values[:4]
        if width < 0 or height < 0:
            raise ValueError(f"width and height expected 0 or more, got {width:g} and {height:g}")
        return YoloObject(int(label), (x - width / 2, y - height / 2, x + width / 2, y + height / 2), number)
    if len(values) >= 6 and len(values) % 2 == 0:
        xs, ys = values[::2], values[1::2]
        return YoloObject(int(label), (min(xs), min(ys), max(xs), max(ys)), number, is_outline=True)
    raise ValueError(
        f"expected a class and 4 numbers, or a class and pairs of 3 corners or more, got {len(words)} numbers"
    )


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def parse_names(text: str) -> list[str]:
    """Parse class names, one per line, as in classes.txt and obj.names; blank lines at the end are ignored."""
    return [line.strip() for line in text.lstrip("\ufeff").rstrip().splitlines()]


def parse_data_yaml(text: str, path: str) -> DataYaml:
    """Parse the names and paths in a data.yaml; raises `SourceError` with the line if it is invalid.

    Example:
        >>> parse_data_yaml("train: images/train\\nnames: [cat, dog]", "data.yaml").names
        {0: 'cat', 1: 'dog'}
    """
    found: dict[str, _Value] = {}
    lines: dict[str, int] = {}
    others: dict[str, tuple[str, ...]] = {}
    for key, node in _compose(text, path):
        line = node.start_mark.line + 1
        try:
            value = _read_value(node)
        except ValueError as error:
            if key not in _KEYS:
                continue
            raise SourceError(f"key {key!r} {error}", shard=f"{path}, line {line}") from None
        if key in _KEYS:
            found[key], lines[key] = value, line
        elif places := _to_places(value):
            others[key] = places
    names = _read_names(found.get("names"), f"{path}, line {lines.get('names', 1)}")
    declared = found.get("nc")
    if isinstance(declared, str) and declared.isdecimal() and names and int(declared) != len(names):
        raise SourceError(
            f"nc expected the number of names, {len(names)}, got {declared}", shard=f"{path}, line {lines['nc']}"
        )
    splits = {}
    for key in ("train", "val", "valid", "test"):
        places = _to_places(found.get(key))
        if places:
            splits["val" if key == "valid" else key] = places
    root = found.get("path", "")
    return DataYaml(names, root if isinstance(root, str) else "", splits, others, "kpt_shape" in found)


def _compose(text: str, path: str) -> list[tuple[str, Any]]:
    """Return the top-level keys of the document and their nodes; tags create no objects, aliases are not copied."""
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = path if mark is None else f"{path}, line {mark.line + 1}"
        raise SourceError(f"expected YAML, {getattr(error, 'problem', None) or error}", shard=where) from None
    except RecursionError:
        raise SourceError("expected YAML, got endlessly nested lists", shard=path) from None
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    return [(key.value, node) for key, node in pairs if isinstance(key, yaml.ScalarNode)]


def _read_value(node: Any) -> _Value:
    """Read strings as written, so that a class may be named `no` or `1.50`; raises ValueError for deeper nesting."""
    if node.id == "scalar":
        return _read_word(node)
    if node.id == "sequence":
        return [_read_word(item) for item in node.value]
    return {_read_word(key): _read_word(value) for key, value in node.value}


def _read_word(node: Any) -> str:
    if node.id != "scalar":
        raise ValueError(
            f"expected a word, a flat list or a flat map, got a {node.id} at line {node.start_mark.line + 1}"
        )
    return str(node.value)


def _to_places(value: _Value | None) -> tuple[str, ...]:
    """Return the strings of a value that is a string or a list of strings; empty for any other."""
    words = [value] if isinstance(value, str) else value
    return tuple(words) if isinstance(words, list) and all(words) else ()


def _read_names(value: _Value | None, where: str) -> dict[int, str]:
    if value is None or value == "":
        return {}
    if isinstance(value, list):
        return dict(enumerate(value))
    if not isinstance(value, dict) or not all(key.isdecimal() for key in value):
        raise SourceError("names expected a list, or numbers with names", shard=where)
    return {int(key): name for key, name in sorted(value.items(), key=lambda pair: int(pair[0]))}
