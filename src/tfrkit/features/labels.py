"""Label maps: class names or characters and their ids, fixed before records are written.

All splits share one map. Class names are sorted, so that ids do not depend on the order of files. A charset is the
smallest named one that contains every character seen, so that a digit missing from the data does not shift ids.
"""

from __future__ import annotations

import errno
import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tfrkit.errors import SchemaError, SourceError, StorageError
from tfrkit.features.text_proto import parse_text, quote_text

# Tried in this order: by size, and of two with the same size the simpler one first.
CHARSETS: Mapping[str, str] = MappingProxyType(
    {
        "digits": string.digits,
        "lower": string.ascii_lowercase,
        "upper": string.ascii_uppercase,
        "letters": string.ascii_uppercase + string.ascii_lowercase,
        "alnum": string.digits + string.ascii_uppercase + string.ascii_lowercase,
    }
)

# Names of the background class in labelling tools; its id is always 0.
BACKGROUND = frozenset({"background", "_background_", "__background__"})
LABEL_MAP_SUFFIXES = (".pbtxt", ".pbtext", ".prototxt")
SORTED = "sorted names"
_MAX_ID = 1 << 16


@dataclass(frozen=True)
class LabelMap:
    """Names and their ids: the name at position `i` has id `offset + i`.

    `title` is the kind of the names ("class", "character"), `origin` their source. `gaps` are ids without a class;
    `names` has placeholders for them.

    Example:
        >>> labels = LabelMap(("apple", "orange"))
        >>> labels.id_of("orange"), labels.to_text()
        (1, '0:apple\\n1:orange\\n')
    """

    names: tuple[str, ...]
    title: str = "class"
    origin: str = SORTED
    offset: int = 0
    gaps: frozenset[int] = frozenset()
    _ids: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = {name: self.offset + position for position, name in enumerate(self.names)}
        if len(ids) != len(self.names):
            twice = sorted({name for name in self.names if self.names.count(name) > 1})
            raise SourceError(f"{self.title} names expected once each, got twice: {', '.join(map(repr, twice))}")
        if self.offset < 0:
            raise ValueError(f"label offset expected 0 or more, got {self.offset}")
        object.__setattr__(self, "_ids", ids)

    def __contains__(self, name: object) -> bool:
        return name in self._ids

    def __len__(self) -> int:
        return len(self.names)

    def id_of(self, name: str) -> int:
        """Return the id of a name; raise KeyError if it is unknown."""
        return self._ids[name]

    def describe_unknown(self, name: str) -> str:
        """Return the message for an unknown name."""
        return f"{self.title} {name!r} is not one of the {len(self)} of {self.origin}"

    def spec_names(self) -> tuple[str, ...] | None:
        """Return names by id for a `Spec`, with placeholders for ids below the offset; None without names."""
        if not self.names:
            return None
        return (*(name_unused(number) for number in range(self.offset)), *self.names)

    def to_text(self) -> str:
        """Format the map as `id:name` lines, as in classes.txt; line feeds and backslashes in names are escaped."""
        lines = (f"{self.offset + position}:{_escape(name)}\n" for position, name in enumerate(self.names))
        return "".join(lines)

    def to_label_map(self) -> str:
        """Format the map as a label map of the Object Detection API; gaps are left out."""
        ids = {self.offset + position: quote_text(name, "'") for position, name in enumerate(self.names)}
        items = (f"item {{\n  id: {i}\n  name: {name}\n}}\n" for i, name in ids.items() if i not in self.gaps)
        return "".join(items)


def name_unused(number: int) -> str:
    """Return the placeholder name of an id without a class."""
    return f"unused {number}"


def is_unused(name: str) -> bool:
    """Whether a name is a placeholder made by `name_unused`."""
    return re.fullmatch(r"unused \d+", name) is not None


def make_numbered_map(
    names: Mapping[int, str], *, start: int | None = None, offset: int | None = None, title: str = "class", origin: str
) -> LabelMap:
    """Make a map of numbered names from `start` (default: the lowest number) to the highest number; gaps are filled.

    The name with number `start` gets id `offset` (default: `start`).

    Example:
        >>> labels = make_numbered_map({1: "cat", 3: "dog"}, origin="x.json")
        >>> labels.names, labels.offset, labels.gaps
        (('cat', 'unused 2', 'dog'), 1, frozenset({2}))
    """
    first = min(names) if start is None else start
    offset = first if offset is None else offset
    numbers = range(first, max(names) + 1)
    filled = tuple(names.get(number, name_unused(number)) for number in numbers)
    gaps = frozenset(number - first + offset for number in numbers if number not in names)
    return LabelMap(filled, title=title, origin=origin, offset=offset, gaps=gaps)


def make_class_map(names: Iterable[str], *, offset: int = 0) -> LabelMap:
    """Make a map of the distinct names, sorted."""
    return LabelMap(tuple(sorted(set(names))), offset=offset)


def number_names(names: Iterable[str], *, offset: int | None, first: int = 0, origin: str) -> LabelMap:
    """Number names in order from `offset`; by default from 0 if the first is a background class, else from `first`."""
    listed = tuple(names)
    if offset is None:
        offset = 0 if listed and listed[0].lower() in BACKGROUND else first
    return LabelMap(listed, origin=origin, offset=offset)


def read_class_map(path: str, *, offset: int | None = None, first: int = 0, text: str | None = None) -> LabelMap:
    """Read a map from a file with one name per line, `id:name` lines, or a label map (recognized by its suffix).

    Ids in the file are kept unless `offset` is given; names without ids are numbered by `number_names`. `text` is the
    content of the file, if it was read already.
    """
    if path.endswith(LABEL_MAP_SUFFIXES):
        found = parse_label_map(_read_text(path, text=text), path)
        moved = 0 if offset is None else offset - found.offset
        return replace(found, offset=found.offset + moved, gaps=frozenset(gap + moved for gap in found.gaps))
    names = []
    numbered: dict[int, str] = {}
    for line in _read_lines(path, text=text):
        head, colon, rest = line.partition(":")
        if colon and head.strip().isdigit():
            numbered[int(head)] = _unescape(rest)
        names.append(line.strip())
    if len(numbered) != len(names):
        return number_names(names, offset=offset, first=first, origin=path)
    lowest = min(numbered)
    if sorted(numbered) != list(range(lowest, lowest + len(numbered))):
        raise SourceError("class ids expected without gaps", shard=path)
    names = [numbered[number] for number in sorted(numbered)]
    return LabelMap(tuple(names), origin=path, offset=lowest if offset is None else offset)


def parse_label_map(text: str, path: str) -> LabelMap:
    """Parse a label map of the Object Detection API: ``item { id: 1 name: 'cat' }``; gaps get placeholder names."""
    try:
        items = parse_text(text).get_messages("item")
        names: dict[int, str] = {}
        for item in items:
            ids = item.fields.get("id", [])
            name = item.get_text("name") or item.get_text("display_name")
            if len(ids) != 1 or not isinstance(ids[0], int) or not name:
                raise SourceError("item expected an id and a name", shard=f"{path}, line {item.line}")
            if not 0 <= ids[0] <= _MAX_ID:
                raise SourceError(f"id expected from 0 to {_MAX_ID:,}, got {ids[0]}", shard=f"{path}, line {item.line}")
            if ids[0] in names:
                raise SourceError(f"id {ids[0]} expected once, got it twice", shard=f"{path}, line {item.line}")
            names[ids[0]] = name
    except SchemaError as error:
        raise SourceError(f"not a label map, {error}", shard=path) from None
    if not names:
        raise SourceError("expected at least one item with an id and a name, got none", shard=path)
    return make_numbered_map(names, origin=path)


def make_charset(choice: str, seen: Iterable[str]) -> LabelMap:
    """Make a map of characters: a named charset, a file, or "auto" for the smallest named charset that contains `seen`.

    If no named charset contains `seen`, "auto" makes a map of the sorted characters seen.

    Example:
        >>> make_charset("auto", "0317").origin, len(make_charset("auto", "a7"))
        ('digits', 62)
    """
    characters = set(seen)
    if choice == "auto":
        for name in sorted(CHARSETS, key=lambda name: len(CHARSETS[name])):
            if characters <= set(CHARSETS[name]):
                return LabelMap(tuple(CHARSETS[name]), title="character", origin=name)
        return LabelMap(tuple(sorted(characters)), title="character", origin="characters seen")
    if choice in CHARSETS:
        return LabelMap(tuple(CHARSETS[choice]), title="character", origin=choice)
    return read_charset(choice)


def read_charset(path: str, *, text: str | None = None) -> LabelMap:
    """Read a map of characters from a file with `id:character` lines, or with all characters in order."""
    lines = _read_lines(path, what=f"a charset: one of auto, {', '.join(CHARSETS)}, or a file", text=text)
    numbered = [line.partition(":") for line in lines]
    if all(head.isdigit() and colon and len(_unescape(rest)) == 1 for head, colon, rest in numbered):
        return LabelMap(tuple(_unescape(rest) for _, _, rest in numbered), title="character", origin=path)
    return LabelMap(tuple("".join(lines)), title="character", origin=path)


def _read_text(path: str, what: str = "a file of names", text: str | None = None) -> str:
    if text is not None:
        return text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES):
            raise StorageError(f"cannot read, {(error.strerror or '').lower()}", shard=path) from None
        raise SourceError(f"expected {what}, got {path!r}, {(error.strerror or '').lower()}") from None
    except UnicodeDecodeError:
        raise SourceError(f"expected {what}, got {path!r}, it is not UTF-8 text") from None


def _read_lines(path: str, what: str = "a file of names", text: str | None = None) -> list[str]:
    lines = [line for line in _read_text(path, what, text).split("\n") if line.strip()]
    if not lines:
        raise SourceError("expected at least one name, got an empty file", shard=path)
    return lines


def _escape(name: str) -> str:
    return name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _unescape(name: str) -> str:
    if "\\" not in name:
        return name
    plain, escaped = [], False
    for character in name:
        if escaped:
            plain.append({"n": "\n", "r": "\r"}.get(character, character))
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            plain.append(character)
    return "".join(plain)
