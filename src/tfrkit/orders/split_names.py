"""Splits by name: what the names of a dataset's shards, or TFDS's dataset_info.json, say about them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

# Words for one thing stand together: the first guess where a name is not known.
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
# What may stand in the name of a file.
_WRITABLE = re.compile(r"[A-Za-z0-9_]+")
_TFX_FOLDER = re.compile(r"split-(?P<split>.+)", re.IGNORECASE)


def find_splits(names: Sequence[str], known: Collection[str] = ()) -> dict[str, list[int]]:
    """The shards of each split, by the names of all shards of a dataset (paths or addresses); {} if they say nothing.

    A name says what its file name says, else what the nearest folder says. Words such as train, val and test are
    looked for, between separators and with digits behind them at most; with `known`, those names and no others, in
    their order. A name with two words says the one that not all shards have. Beside train, the name train_extra is a
    split of its own; without it, it is train of a dataset called extra. Shards that say nothing are in no split.

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
    """The number of records in each shard of each split, from the content of TFDS's dataset_info.json.

    In the order of the file, which is the order of "all". {} if it names no splits; [] for one without lengths.
    """
    splits = info.get("splits")
    lengths = {}
    for split in splits if isinstance(splits, list) else ():
        if isinstance(split, Mapping) and isinstance(split.get("name"), str):
            lengths[split["name"]] = _read_lengths(split.get("shardLengths"))
    return lengths


def _read_lengths(values: object) -> list[int]:
    # JSON of protobuf writes 64-bit integers as strings, and leaves a list without items out.
    texts = [str(value) for value in values] if isinstance(values, list) else []
    return [int(text) for text in texts] if all(re.fullmatch("[0-9]{1,19}", text) for text in texts) else []


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was most likely meant: another word for the same, or one spelt nearly so."""
    import difflib  # for a message only, and not cheap to load

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
    """A file name without the number of its shard and without what follows a full stop."""
    return _SHARD_NUMBER.sub("", name).lower().partition(".")[0]


def _find_addition(word: str, stem: str, stems: Collection[str]) -> str:
    """What a name adds to the word of its split where another name ends at that word: "_extra" beside "train"."""
    for found in re.finditer(rf"(?<![a-z0-9]){word}(?=_)", stem):
        addition = stem[found.end() :]
        if stem[: found.end()] in stems and not re.fullmatch(r"_\d+", addition):
            return addition
    return ""


def _match_known(name: str, known: Collection[str]) -> list[str]:
    """The longest known name that stands between separators: "train_extra" rather than "train"."""
    for split in sorted(known, key=len, reverse=True):
        if re.search(rf"(?<![A-Za-z0-9]){re.escape(split)}(?![A-Za-z])", name):
            return [split]
    return []


def _match_words(name: str) -> list[str]:
    tokens = (_TRAILING_DIGITS.sub("", token) for token in _SEPARATOR.split(_SHARD_NUMBER.sub("", name).lower()))
    return [token for token in dict.fromkeys(tokens) if token in WORDS]


def _words_of_folders(folders: Sequence[str], depth: int, known: Collection[str]) -> list[str]:
    """What the nearest folder that is a split by its whole name says.

    Folders above the ones that all shards share say where a dataset lies, not what it holds; of those shared, the
    last one may still be a split on its own.
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
    """How many folders all paths begin with."""
    depth = 0
    for column in zip(*(path[:-1] for path in paths), strict=False):
        if len(set(column)) > 1:
            break
        depth += 1
    return depth


def require_split_names(names: Iterable[str]) -> None:
    """Raise for a name that cannot stand in the name of a file."""
    for name in names:
        if not _WRITABLE.fullmatch(name):
            raise ValueError(f"split name expected letters, digits and _, got {name!r}")
