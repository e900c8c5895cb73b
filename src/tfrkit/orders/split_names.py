"""Names of splits, from shard names or TFDS's dataset_info.json."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

# Groups of synonyms, which are the first suggestion for an unknown name.
_FAMILIES = [
    ("train", "training"),
    ("val", "valid", "validation", "dev", "eval"),
    ("test", "testing"),
]
WORDS = frozenset(word for family in _FAMILIES for word in family)

_SEPARATOR = re.compile(r"[^A-Za-z0-9]+")
_TRAILING_DIGITS = re.compile(r"\d+$")
_SHARD_NUMBER = re.compile(r"-\d+-of-\d+")
_TFDS_NAME = re.compile(r"(?P<dataset>\w+)-(?P<split>[\w-]+)\.\w+-\d{5,}-of-\d{5,}")
# Characters allowed in a file name.
_WRITABLE = re.compile(r"[A-Za-z0-9_]+")
_TFX_FOLDER = re.compile(r"split-(?P<split>.+)", re.IGNORECASE)


def find_splits(names: Sequence[str], known: Collection[str] = ()) -> dict[str, list[int]]:
    """Find the shards of each split from the names of all shards of a dataset; {} if none has a split word.

    The file name is used first, then the nearest folder. Words such as train, val and test match between separators,
    optionally followed by digits; with `known`, only the known names match. If a name has two words, a word that all
    shards have is ignored. If another name ends in train, the name train_extra is a separate split, otherwise it is
    train. Shards without a split word are in no split.

    Example:
        >>> find_splits(["a/captcha-train.tfrecord-00000-of-00002", "a/captcha-train.tfrecord-00001-of-00002"])
        {'train': [0, 1]}
        >>> find_splits(["a/part-0.tfrecord"])
        {}
    """
    paths = [re.split(r"[/\\]+", name) for name in names]
    said = [_words_of_file(path[-1], known) for path in paths]
    everywhere = set.intersection(*map(set, said)) if len(said) > 1 else set()
    depth = _common_depth(paths)
    stems = {_stem_of(path[-1]) for path in paths}
    splits: dict[str, list[int]] = {name: [] for name in known}
    for number, (words, path) in enumerate(zip(said, paths, strict=True)):
        if len(words) > 1:
            words = [word for word in words if word not in everywhere]
        elif not words:
            words = _words_of_folders(path[:-1], depth, known)
        if len(words) == 1:
            name = words[0] if known else words[0] + _find_addition(words[0], _stem_of(path[-1]), stems)
            splits.setdefault(name, []).append(number)
    return {name: numbers for name, numbers in splits.items() if numbers}


def read_split_lengths(info: Mapping[str, Any]) -> dict[str, list[int]]:
    """Read the number of records in each shard of each split from the content of TFDS's dataset_info.json.

    Splits are in the order of the file, which is the order of "all"; {} if there are none. [] if lengths are missing.
    """
    splits = info.get("splits")
    lengths = {}
    for split in splits if isinstance(splits, list) else ():
        if isinstance(split, Mapping) and isinstance(split.get("name"), str):
            lengths[split["name"]] = _read_lengths(split.get("shardLengths"))
    return lengths


def _read_lengths(values: object) -> list[int]:
    # Protobuf's JSON has 64-bit integers as strings and omits empty lists.
    texts = [str(value) for value in values] if isinstance(values, list) else []
    return [int(text) for text in texts] if all(re.fullmatch("[0-9]{1,19}", text) for text in texts) else []


def find_nearest_split(name: str, known: Iterable[str]) -> str | None:
    """Find the most likely known name: a synonym, or a name with a similar spelling."""
    import difflib  # slow to import, and needed only for messages

    candidates = list(known)
    folded = name.casefold()
    for family in _FAMILIES:
        if folded in family:
            for candidate in candidates:
                if candidate.casefold() in family:
                    return candidate
    close = difflib.get_close_matches(folded, [candidate.casefold() for candidate in candidates], 1)
    return next((candidate for candidate in candidates if candidate.casefold() in close), None)


def _words_of_file(name: str, known: Collection[str]) -> list[str]:
    found = _TFDS_NAME.fullmatch(name)
    if found is not None:
        # The name of the dataset, before the first dash, may be anything, even "train".
        name = found["split"]
        exact = [split for split in known if f"-{name}".endswith(f"-{split}")]
        if exact or known:
            return sorted(exact, key=len)[-1:]
    return _match_known(name, known) if known else _match_words(name)


def _stem_of(name: str) -> str:
    """Remove the shard number and suffixes from a file name."""
    return _SHARD_NUMBER.sub("", name).lower().partition(".")[0]


def _find_addition(word: str, stem: str, stems: Collection[str]) -> str:
    """Find the suffix of a split word if another name ends at that word: "_extra" if there is also "train"."""
    for found in re.finditer(rf"(?<![a-z0-9]){word}(?=_)", stem):
        addition = stem[found.end() :]
        if stem[: found.end()] in stems and not re.fullmatch(r"_\d+", addition):
            return addition
    return ""


def _match_known(name: str, known: Collection[str]) -> list[str]:
    """Find the longest known name between separators: "train_extra" rather than "train"."""
    for split in sorted(known, key=len, reverse=True):
        if re.search(rf"(?<![A-Za-z0-9]){re.escape(split)}(?![A-Za-z])", name):
            return [split]
    return []


def _match_words(name: str) -> list[str]:
    tokens = (_TRAILING_DIGITS.sub("", token) for token in _SEPARATOR.split(_SHARD_NUMBER.sub("", name).lower()))
    return [token for token in dict.fromkeys(tokens) if token in WORDS]


def _words_of_folders(folders: Sequence[str], depth: int, known: Collection[str]) -> list[str]:
    """Find the nearest folder whose whole name is a split.

    Folders common to all shards locate the dataset and do not name splits, except that the last of them may be a split.
    """
    for folder in reversed(folders[max(0, depth - 1) :]):
        tfx = _TFX_FOLDER.fullmatch(folder)
        name = tfx["split"] if tfx else folder
        word = _TRAILING_DIGITS.sub("", name.lower())
        if known and name in known:
            return [name]
        if not known and word in WORDS:
            return [word]
    return []


def _common_depth(paths: Sequence[Sequence[str]]) -> int:
    """Count the leading folders common to all paths."""
    depth = 0
    for column in zip(*(path[:-1] for path in paths), strict=False):
        if len(set(column)) > 1:
            break
        depth += 1
    return depth


def require_split_names(names: Iterable[str]) -> None:
    """Raise for a name that is not allowed in a file name."""
    for name in names:
        if not _WRITABLE.fullmatch(name):
            raise ValueError(f"split name expected letters, digits and _, got {name!r}")
