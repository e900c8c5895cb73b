"""Layout of a Pascal VOC dataset: lists of images, images, annotations, masks.

ImageSets/Main/train.txt  ImageSets/Segmentation/train.txt     ids, one per line
JPEGImages/<id>.jpg  Annotations/<id>.xml  SegmentationClass/<id>.png
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tfrkit.errors import SourceError
from tfrkit.sources.base import Problem
from tfrkit.sources.class_files import read_small_text
from tfrkit.sources.walk import IMAGE_SUFFIXES, FoundFile
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.lookup import is_file, is_folder, list_names

# Default lists. trainval is not among them, because it repeats the ids of train and val.
_USUAL_SETS = ("train", "val", "test")
# Lists of one class mark each image: 1 if it shows the class, -1 if not, 0 if the object is difficult.
_MARKED = re.compile(r"(?P<id>.*?)\s+-?[01]")


@dataclass
class ListedIds:
    """Ids in the order of the lists, each with its split and its place in a list."""

    ids: dict[str, tuple[int, str]] = field(default_factory=dict)
    split_names: tuple[str, ...] = ()
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_sets(root: str, folder: str, sets: Sequence[str]) -> ListedIds | None:
    """Read the ids of these lists of ImageSets/`folder`; by default those of train, val and test that exist.

    If none of these exists, trainval is used, or else all lists if there are several and no two share an id. Returns
    None if no list is named and no default exists. A name may also be the path of a list.
    """
    lists = _find_lists(root, folder, sets)
    if not lists:
        return None
    listed = ListedIds(split_names=tuple(lists))
    if not sets:
        listed.notes.append(f"sets: {', '.join(lists)} of {os.path.join('ImageSets', folder)}, as none were named")
    for split, (name, path) in enumerate(lists.items()):
        shown = path.removeprefix(f"{root.rstrip('/')}/") if has_scheme(root) else os.path.relpath(path, root)
        ids, is_marked = _read_list(path)
        if is_marked:
            listed.notes.append(f"set {name!r}: the marks -1, 0 and 1 after its ids were ignored")
        for line, identifier in ids:
            where = f"{shown}, line {line}"
            if identifier not in listed.ids:
                listed.ids[identifier] = (split, where)
            elif listed.ids[identifier][0] == split:
                listed.problems.append(
                    Problem(where, f"id {identifier!r} expected once, got it twice in set {name!r}", input=None)
                )
            else:
                other = listed.split_names[listed.ids[identifier][0]]
                reason = f"id {identifier!r} expected in one set, got it in {other!r} and {name!r}"
                kind = f"ids are in sets {other!r} and {name!r}, expected in one"
                listed.problems.append(Problem(where, reason, blocking=True, input=None, kind=kind))
    return listed


def _find_lists(root: str, folder: str, sets: Sequence[str]) -> dict[str, str]:
    """Return split name → path of its list."""
    parent = os.path.join(root, "ImageSets", folder)
    lists: dict[str, str] = {}
    if not sets:
        usual = [name for name in _USUAL_SETS if is_file(os.path.join(parent, f"{name}.txt"))]
        if not usual and is_file(os.path.join(parent, "trainval.txt")):
            usual = ["trainval"]
        return {name: os.path.join(parent, f"{name}.txt") for name in usual or _find_disjoint(parent)}
    for name in sets:
        path = os.path.join(parent, f"{name}.txt")
        if not is_file(path):
            path = name
        if not is_file(path):
            names = _list_names(parent)
            raise SourceError(
                f"no list of set {name!r}, expected {name}.txt in {os.path.join('ImageSets', folder)}",
                shard=root,
                hint=f"sets that are there: {', '.join(names[:20])}" if names else None,
            )
        split = os.path.splitext(os.path.basename(name))[0]
        if split in lists:
            raise ValueError(f"sets expected different names, got {split!r} twice")
        lists[split] = path
    return lists


def note_unused_lists(root: str, folder: str) -> list[str]:
    """Return a note about existing lists; called if `read_sets` used none of them."""
    names = _list_names(os.path.join(root, "ImageSets", folder))
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return [f"lists of {os.path.join('ImageSets', folder)} were not used, as none were named: {shown}"] if names else []


def _list_names(parent: str) -> list[str]:
    entries = list_names(parent) if is_folder(parent) else []
    return [entry.removesuffix(".txt") for entry in entries if entry.endswith(".txt")]


def _find_disjoint(parent: str) -> list[str]:
    """Return the names of all lists if there are several and no two share an id, as lists of single classes do."""
    names = _list_names(parent)
    seen: set[str] = set()
    for name in names:
        ids = {identifier for _, identifier in _read_list(os.path.join(parent, f"{name}.txt"))[0]}
        if seen & ids:
            return []
        seen |= ids
    return names if len(names) > 1 else []


def _read_list(path: str) -> tuple[list[tuple[int, str]], bool]:
    """Return (line, id) of each id of a list, and whether marks were removed from the ids."""
    texts = [(line, text.strip()) for line, text in enumerate(read_small_text(path).splitlines(), 1) if text.strip()]
    marked = [_MARKED.fullmatch(text) for _, text in texts]
    # A file name may also end in a blank and a number; these are marks only if all lines have them.
    if not texts or not all(marked):
        return texts, False
    return [(line, match["id"]) for (line, _), match in zip(texts, marked, strict=True) if match and match["id"]], True


class FilesById:
    """Files of one folder by id. The id is the path without its suffix, as lists and annotations give it."""

    def __init__(self, files: Iterable[FoundFile]) -> None:
        self._files: dict[str, list[FoundFile]] = {}
        for file in files:
            self._files.setdefault(os.path.splitext(file.key)[0], []).append(file)

    def ids(self) -> list[str]:
        """Return all ids, in the order of the files."""
        return list(self._files)

    def find(self, identifier: str, what: str) -> FoundFile:
        """Return the file of an id with or without suffix; raises `SourceError` if there is none or several."""
        found = self._files.get(identifier)
        if found is None and os.path.splitext(identifier)[1].lower() in IMAGE_SUFFIXES:
            found = self._files.get(os.path.splitext(identifier)[0])
        if found is None:
            raise SourceError(f"no {what} with id {identifier!r}")
        if len(found) > 1:
            names = ", ".join(file.key for file in found[:3])
            raise SourceError(f"expected one {what} with id {identifier!r}, got {names}")
        return found[0]


def find_folder(root: str, names: Sequence[str]) -> str | None:
    """Return the first of these folders that exists, or None."""
    return next((name for name in names if is_folder(os.path.join(root, name))), None)
