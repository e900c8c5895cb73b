"""The source `file-names`: a folder of images that are labelled by their file names.

A regular expression with a group named `class` gives one class per image (`apple01.jpg`); with a group named `text` it
gives the characters in the image (`7KQ3X_0001.png`), one label per character.
"""

from __future__ import annotations

import os
import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tfrkit._types import Row
from tfrkit.codec.columns import BytesColumn
from tfrkit.errors import SourceError
from tfrkit.features.labels import LabelMap, make_charset, make_class_map
from tfrkit.features.name_words import CHARACTER_IDS, LABEL
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.images.encode import ImageOptions
from tfrkit.sources.base import Facts, Item, Items, Problem, Scan
from tfrkit.sources.class_files import load_classes
from tfrkit.sources.description import DescribedSource
from tfrkit.sources.image_features import ImageReader, image_row, image_specs
from tfrkit.sources.walk import FoundFiles, find_images, require_folder

PAD = "<pad>"
_MAX_HEADS = 256


@dataclass(frozen=True)
class FileNames(DescribedSource):
    """Images labelled by their file names.

    Features: `image`, `height`, `width`, `channels`, `format`, `filename`, and

    - with a `class` group: `label` (the id) and `label/text` (the name);
    - with a `text` group: `label0` … `label{k-1}`, one id per character, `label/ids` (the same ids as a list),
      `label/text` and `label/length`. If lengths differ, shorter texts are padded with an extra id, `<pad>`.

    Args:
        root: The folder; its subfolders are searched, too.
        label: A regular expression that is searched for in each file name, with a group `class` or `text`.
        images: How images are stored; by default their files are stored unchanged.
        charset: Characters of text labels: "auto", "digits", "lower", "upper", "letters", "alnum", or a file.
        classes: Class names in the order of their ids, or a file that lists them; sorted names by default.
        label_offset: The id of the first class or character.
    """

    root: str | os.PathLike[str]
    label: str
    images: ImageOptions = field(default_factory=ImageOptions)
    charset: str = "auto"
    classes: Sequence[str] | str | None = None
    label_offset: int = 0

    kind = "file-names"

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            groups = re.compile(self.label).groupindex
        except re.error as error:
            raise ValueError(f"label expected a regular expression, got {self.label!r}, {error}") from None
        if ("class" in groups) == ("text" in groups):
            raise ValueError(
                f"label expected one group named class or text, got {self.label!r}\n"
                "  '^(?P<class>[a-z]+)' for one class per image, '^(?P<text>.{5})' for its characters"
            )

    def scan(self, scratch: str) -> Scan:
        root = self.title
        require_folder(root, "images")
        pattern = re.compile(self.label)
        found = find_images(root)
        labelled = _Labelled(found.files)
        seen: Counter[str] = Counter()
        problems = []
        for key in found.files.each_key():
            try:
                label = match_label(pattern, key)
            except SourceError as error:
                problems.append(Problem(key, error.what))
                labelled.add(None)
            else:
                seen[label] += 1
                labelled.add(label)
        if found.files and not seen:
            raise SourceError(
                f"label {self.label!r} matches none of {len(found.files)} file names, such as "
                f"{os.path.basename(next(found.files.each_key()))!r}",
                shard=root,
            )
        make = self._scan_text if "text" in pattern.groupindex else self._scan_classes
        scan = make(labelled, seen)
        scan.problems[:0] = problems
        scan.ignored = found.ignored
        scan.notes[:0] = [*found.notes, *self.images.describe()]
        return scan

    def _scan_classes(self, labelled: _Labelled, seen: Counter[str]) -> Scan:
        if self.classes is not None:
            labels = load_classes(self.classes, label_offset=self.label_offset or None, first=0)
        else:
            labels = make_class_map(seen, offset=self.label_offset)
        unknown = {name: labels.describe_unknown(name) for name in seen if name not in labels}
        ids = {name: labels.id_of(name) for name in seen if name not in unknown}
        problems = labelled.find_problems(unknown)
        return Scan(
            looked_for=f"images in {self.title} and below",
            items=labelled.to_items(unknown, ids),
            reader=ClassNameReader(self.title, labels, self.images),
            schema=_make_class_schema(self.images, labels, {}),
            problems=problems,
            counts={"class": {name: seen[name] for name in labels.names}},
            label_files={"classes.txt": labels.to_text()},
            refine=lambda facts: _make_class_schema(self.images, labels, facts),
            explain=self.images.describe_seen,
        )

    def _scan_text(self, labelled: _Labelled, seen: Counter[str]) -> Scan:
        counts: Counter[str] = Counter()
        lengths: Counter[int] = Counter()
        for text, number in seen.items():
            lengths[len(text)] += number
            for character in text:
                counts[character] += number
        charset = make_charset(self.charset, counts)
        unknown: dict[str, str] = {}
        for text in seen:
            outside = [character for character in dict.fromkeys(text) if character not in charset]
            if outside:
                unknown[text] = "; ".join(map(charset.describe_unknown, outside))
        problems = labelled.find_problems(unknown)
        num_heads = max(lengths, default=0)
        if num_heads > _MAX_HEADS:
            raise SourceError(f"text labels expected at most {_MAX_HEADS} characters, got {num_heads}")
        notes = [f"labels: {len(charset)} characters ({charset.origin})"]
        names = charset.names
        if len(lengths) > 1:
            names = (*names, PAD)
            notes.append(f"labels: {min(lengths)} to {num_heads} characters, padded with id {len(names) - 1} {PAD}")
        labels = LabelMap(names, title="character", origin=charset.origin, offset=self.label_offset)
        return Scan(
            looked_for=f"images in {self.title} and below",
            items=labelled.to_items(unknown),
            reader=TextNameReader(self.title, labels, self.images, num_heads),
            schema=_make_text_schema(self.images, labels, num_heads, {}),
            problems=problems,
            notes=notes,
            counts={"character": dict(sorted(counts.items())), "length": {str(k): lengths[k] for k in sorted(lengths)}},
            label_files={"charset.txt": labels.to_text()},
            refine=lambda facts: _make_text_schema(self.images, labels, num_heads, facts),
            explain=self.images.describe_seen,
        )


class _Labelled:
    """Files with their labels, stored as integer codes to save memory."""

    def __init__(self, files: FoundFiles) -> None:
        self._files = files
        self._numbers: dict[str, int] = {}
        self._labels = array("q")

    def add(self, label: str | None) -> None:
        """Add the label of the next file; None if it has no label."""
        self._labels.append(-1 if label is None else self._numbers.setdefault(label, len(self._numbers)))

    def find_problems(self, unknown: Mapping[str, str]) -> list[Problem]:
        """Return a problem for each file with an unknown label."""
        if not unknown:
            return []
        reasons = {self._numbers[label]: reason for label, reason in unknown.items()}
        return [
            Problem(key, reasons[number], blocking=True)
            for key, number in zip(self._files.each_key(), self._labels, strict=True)
            if number in reasons
        ]

    def to_items(self, unknown: Mapping[str, str], ids: Mapping[str, int] | None = None) -> Items:
        """Return the files with a known label as items: the label is the data, and its id in `ids` the class."""
        numbers = np.frombuffer(self._labels, np.int64) if self._labels else np.empty(0, np.int64)
        is_known = np.ones(len(self._numbers) + 1, bool)
        is_known[[self._numbers[label] for label in unknown]] = False
        is_known[-1] = False  # files without a label have the code -1
        labels = None
        if ids is not None:
            table = np.full(len(self._numbers) + 1, -1, np.int64)
            table[[self._numbers[label] for label in ids]] = list(ids.values())
            labels = table[numbers]
        texts = [*map(str.encode, self._numbers), b""]
        data = BytesColumn.from_values([texts[number] for number in self._labels])
        return self._files.to_items(keep=is_known[numbers], data=data, labels=labels)


def match_label(pattern: re.Pattern[str], key: str) -> str:
    """Return the label in the file name of a key; raises `SourceError` if there is none."""
    match = pattern.search(key.rpartition("/")[2])
    if match is None:
        raise SourceError(f"label pattern {pattern.pattern!r} does not match the file name")
    label = match["text" if "text" in pattern.groupindex else "class"]
    if not label:
        raise SourceError(f"label pattern {pattern.pattern!r} matches an empty text")
    try:
        label.encode()
    except UnicodeEncodeError:
        raise SourceError("label expected text, got bytes in the file name that are not UTF-8") from None
    return label


class _NameReader(ImageReader):
    """Reads images; the label of an item is its data."""

    name = "image"

    def __init__(self, root: str, labels: LabelMap, images: ImageOptions) -> None:
        super().__init__(root, images)
        self._labels = labels

    def read_image(self, item: Item) -> Row:
        return {**image_row(self.store(item.key), self.name), "filename": os.fsencode(item.key)}


class ClassNameReader(_NameReader):
    """Reads images with a class in their file names."""

    def read(self, item: Item) -> Row:
        label = self._labels.id_of(item.data.decode())
        return {**self.read_image(item), "label": label, "label/text": item.data}


class TextNameReader(_NameReader):
    """Reads images with their text in their file names."""

    def __init__(self, root: str, labels: LabelMap, images: ImageOptions, num_heads: int) -> None:
        super().__init__(root, labels, images)
        self._names = [f"{LABEL}{head}" for head in range(num_heads)]
        self._pad = [labels.id_of(PAD)] if PAD in labels else []

    def read(self, item: Item) -> Row:
        text = item.data.decode()
        ids = [self._labels.id_of(character) for character in text]
        ids += self._pad * (len(self._names) - len(ids))
        return {
            **self.read_image(item),
            **dict(zip(self._names, ids, strict=True)),
            CHARACTER_IDS: np.array(ids, np.int64),
            "label/length": len(text),
            "label/text": item.data,
        }


def _image_specs(images: ImageOptions, facts: Facts) -> dict[str, Spec]:
    specs = image_specs(images, facts, "image")
    text = specs.pop("format")
    return {**specs, "format": text, "filename": text}


def _make_class_schema(images: ImageOptions, labels: LabelMap, facts: Facts) -> Schema:
    label = Spec("int64", logical="class_label", classes=labels.spec_names())
    return Schema({**_image_specs(images, facts), "label": label, "label/text": Spec("bytes", logical="text")})


def _make_text_schema(images: ImageOptions, labels: LabelMap, num_heads: int, facts: Facts) -> Schema:
    head = Spec("int64", logical="class_label", classes=labels.spec_names())
    return Schema(
        {
            **_image_specs(images, facts),
            **{f"{LABEL}{number}": head for number in range(num_heads)},
            CHARACTER_IDS: head.replace(shape=(num_heads,)),
            "label/text": Spec("bytes", logical="text"),
            "label/length": Spec("int64"),
        }
    )
