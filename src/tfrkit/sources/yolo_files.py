"""The three kinds of text files of a YOLO dataset: labels, class names, and data.yaml.

Of YAML only what such files use is read: `key: value` lines, lists in brackets or with dashes, and maps of numbers
to names. Anything else in the keys that matter is refused by line, never guessed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tfrkit.errors import SourceError
from tfrkit.sources.boxes import Corners

_KEYS = ("path", "train", "val", "valid", "test", "names", "nc", "kpt_shape")
_PAIR = re.compile(r"""(?P<key>"[^"]*"|'[^']*'|[^\s:#][^:#]*?)\s*:(?:\s+(?P<value>.*))?$""")


@dataclass(frozen=True)
class YoloObject:
    """One line of a label file: class number, and xmin, ymin, xmax, ymax as parts of the image."""

    label: int
    corners: Corners
    line: int
    is_outline: bool = False


@dataclass(frozen=True)
class DataYaml:
    """What a data.yaml says: class names by number, and where each split is.

    `others` are words and lists of words under keys that YOLO does not know: they may be places of splits too.
    """

    names: dict[int, str]
    path: str
    splits: Mapping[str, tuple[str, ...]]
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    has_keypoints: bool = False


def parse_yolo_labels(text: str, *, has_keypoints: bool = False) -> tuple[list[YoloObject], list[tuple[int, str]]]:
    """Objects of a label file, and (line, reason) of the lines that are none.

    A line is `class x_centre y_centre width height`, or `class x1 y1 x2 y2 x3 y3 ...`, an outline, of which the
    surrounding box is taken. Keypoints behind a box are passed over.

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
        raise ValueError(f"class expected a number from 0 up, got {words[0]!r:.64}")
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
    """Class names, one a line, as in classes.txt and obj.names; blank lines at the end count for nothing."""
    return [line.strip() for line in text.lstrip("\ufeff").rstrip().splitlines()]


def parse_data_yaml(text: str, path: str) -> DataYaml:
    """The keys of a data.yaml that say where things are; raises `SourceError` with the line.

    Example:
        >>> parse_data_yaml("train: images/train\\nnames: [cat, dog]", "data.yaml").names
        {0: 'cat', 1: 'dog'}
    """
    found: dict[str, object] = {}
    lines: dict[str, int] = {}
    others: dict[str, tuple[str, ...]] = {}
    for number, key, value, inner in _blocks(text):
        try:
            read = _read_value(value, inner)
        except ValueError as error:
            if key not in _KEYS:
                continue
            raise SourceError(f"key {key!r} {error}", shard=f"{path}, line {number}") from None
        if key in _KEYS:
            found[key], lines[key] = read, number
        elif places := _to_places(read):
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


def _to_places(value: object) -> tuple[str, ...]:
    """The words of a value that is one or a list of them."""
    words = [value] if isinstance(value, str) else value
    return tuple(words) if isinstance(words, list) and all(words) else ()


def _blocks(text: str) -> Iterator[tuple[int, str, str, list[str]]]:
    """(line, key, value behind it, lines that belong to it) of every key at the left margin."""
    key, value, start = "", "", 0
    inner: list[str] = []
    for number, raw in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        line = _drop_comment(raw)
        if not line.strip() or line.startswith(("---", "...", "%")):
            continue
        pair = None if line[0] in " \t-" else _PAIR.match(line)
        if pair is None:
            inner.append(line)
            continue
        if key:
            yield start, key, value, inner
        key, value, start, inner = _unquote(pair["key"]), (pair["value"] or "").strip(), number, []
    if key:
        yield start, key, value, inner


def _drop_comment(line: str) -> str:
    """The line up to a # that stands outside of quotes and behind a blank."""
    quote = ""
    for index, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "#" and (index == 0 or line[index - 1] in " \t"):
            return line[:index].rstrip()
    return line.rstrip()


def _read_value(value: str, inner: list[str]) -> object:
    """A word, a list of words, or a map of words to words; ValueError for anything else."""
    joined = " ".join([value, *(line.strip() for line in inner)]).strip()
    if joined.startswith("["):
        return [_unquote(word) for word in _split_flow(joined, "]")]
    if joined.startswith("{"):
        return dict(_read_pair(word) for word in _split_flow(joined, "}"))
    if value[:1] in "&*!|>" and value:
        raise ValueError(f"expected a word, a list or a map, got {value!r:.64}")
    if value or not inner:
        if inner:
            raise ValueError(f"expected one value, got {value!r:.64} and indented lines below it")
        return _unquote(value)
    stripped = [line.strip() for line in inner]
    if all(line == "-" or line.startswith("- ") for line in stripped):
        return [_unquote(line[1:].strip()) for line in stripped]
    return dict(_read_pair(line) for line in stripped)


def _read_pair(text: str) -> tuple[str, str]:
    pair = _PAIR.match(text.strip())
    if pair is None:
        raise ValueError(f"expected `number: name`, got {text!r:.64}")
    return _unquote(pair["key"]), _unquote((pair["value"] or "").strip())


def _split_flow(text: str, closing: str) -> list[str]:
    """What stands between brackets, cut at commas outside of quotes."""
    if not text.endswith(closing):
        raise ValueError(f"expected {closing!r} at its end, got {text[-16:]!r}")
    words, word, quote = [], "", ""
    for character in text[1:-1]:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'" and not word.strip():
            quote = character
        elif character in "[]{}":
            raise ValueError(f"expected a flat list, got {character!r} inside")
        if character == "," and not quote:
            words.append(word)
            word = ""
        else:
            word += character
    return [*words, word] if word.strip() else words


def _unquote(word: str) -> str:
    word = word.strip()
    if len(word) >= 2 and word[0] == word[-1] == "'":
        return word[1:-1].replace("''", "'")
    if len(word) >= 2 and word[0] == word[-1] == '"':
        return re.sub(r"\\(.)", r"\1", word[1:-1])
    return word


def _read_names(value: object, where: str) -> dict[int, str]:
    if value is None or value == "":
        return {}
    if isinstance(value, list):
        return dict(enumerate(value))
    if not isinstance(value, dict) or not all(key.isdecimal() for key in value):
        raise SourceError("names expected a list, or numbers with names", shard=where)
    return {int(key): name for key, name in sorted(value.items(), key=lambda pair: int(pair[0]))}
