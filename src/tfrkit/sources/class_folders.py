"""The source `class-folders`: root/<class>/image. The folder name is the label."""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tfrkit._types import Row
from tfrkit.errors import Hint, SourceError, Step
from tfrkit.features.labels import LabelMap, make_class_map
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.images.encode import ImageOptions
from tfrkit.orders.split_names import WORDS
from tfrkit.sources.base import Facts, Item, Problem, Scan
from tfrkit.sources.class_files import find_folder_problems, load_classes
from tfrkit.sources.description import DescribedSource
from tfrkit.sources.image_features import ImageReader, image_row, image_specs
from tfrkit.sources.walk import describe_dangling, find_dangling, find_images, holds_outputs, require_folder
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.lookup import list_folders

_NOT_KEPT = -2
_NO_FOLDER = "image is not in a class folder"


@dataclass(frozen=True)
class ClassFolders(DescribedSource):
    """Images in one folder per class; class folders may have subfolders.

    Features are named as in TF-Slim: `image/encoded`, `image/format`, `image/height`, `image/width`,
    `image/channels`, `image/filename`, `image/class/label`, `image/class/text`.

    Args:
        root: The folder that contains the class folders.
        images: How images are stored; by default their files are stored unchanged.
        classes: Names in the order of their ids, or the path of a file that lists them; sorted folder names by default.
        label_offset: The id of the first class.
        split_folders: Folders of the first level are splits (train/, test/), which contain the class folders.
    """

    root: str | os.PathLike[str]
    images: ImageOptions = field(default_factory=ImageOptions)
    classes: Sequence[str] | str | None = None
    label_offset: int = 0
    split_folders: bool = False

    kind = "class-folders"

    def scan(self, scratch: str) -> Scan:
        root = self.title
        require_folder(root, "class folders with images")
        found = find_images(root)
        depth = 1 if self.split_folders else 0
        folders = Counter(key.rpartition("/")[0] for key in found.files.each_key())
        labels, empty = self._decide_classes(folders, depth)
        splits = sorted({folder.split("/")[0] for folder in folders if _depth_of(folder) > depth})
        counts: Counter[str] = Counter(dict.fromkeys(labels.names, 0))
        # By folder, because folders are few: the label and the split, or the problem of the files in it.
        known: dict[str, tuple[int, int]] = {}
        wrong: dict[str, Problem] = {}
        for folder, num_files in folders.items():
            parts = folder.split("/")
            if _depth_of(folder) <= depth:
                hint = self._advise(any(_depth_of(other) > depth for other in folders))
                wrong[folder] = Problem("", _NO_FOLDER, kind="images are not in a class folder", hint=hint)
            elif parts[depth] not in labels:
                wrong[folder] = Problem("", labels.describe_unknown(parts[depth]), blocking=True)
            else:
                counts[parts[depth]] += num_files
                known[folder] = (labels.id_of(parts[depth]), splits.index(parts[0]) if self.split_folders else -1)
        problems = find_folder_problems(labels, root)
        columns = array("q")
        for key in found.files.each_key():
            folder = key.rpartition("/")[0]
            columns.extend(known.get(folder, (-1, _NOT_KEPT)))
            if folder in wrong:
                target = find_dangling(os.path.join(root, key))
                fault = wrong[folder] if target is None else Problem("", describe_dangling(target))
                problems.append(replace(fault, key=key))
        ids, indices = np.array(columns, np.int64).reshape(-1, 2).T
        items = found.files.to_items(
            keep=indices != _NOT_KEPT,
            labels=np.ascontiguousarray(ids),
            splits=np.ascontiguousarray(indices) if self.split_folders else None,
            split_names=splits if self.split_folders else (),
        )
        notes = [*found.notes, *self.images.describe()]
        notes += [f"class {name!r} has no image" for name in empty]
        return Scan(
            looked_for=f"images in the class folders of {root}",
            items=items,
            reader=ClassFolderReader(root, depth, labels, self.images),
            schema=_make_schema(self.images, labels, {}),
            problems=problems,
            ignored=found.ignored,
            notes=notes,
            counts={"class": dict(counts)},
            label_files={"classes.txt": labels.to_text()},
            refine=lambda facts: _make_schema(self.images, labels, facts),
            explain=self.images.describe_seen,
        )

    def _advise(self, has_classes: bool) -> str:
        """Return the hint for images outside class folders."""
        if has_classes:
            return ""
        if self.split_folders:
            return Hint(Step("did you mean folders that are classes: without {split_folders}", split_folders=True))
        root = self.title if has_scheme(self.title) else os.path.abspath(self.title)
        return f"did you mean the folder above: {os.path.dirname(root)}"

    def _decide_classes(self, found: Iterable[str], depth: int) -> tuple[LabelMap, list[str]]:
        """Return the label map, and the names of class folders without images."""
        if self.classes is not None:
            return load_classes(self.classes, label_offset=self.label_offset or None, first=0), []
        with_images = {folder.split("/")[depth] for folder in found if _depth_of(folder) > depth}
        if depth == 0:
            if with_images and {name.lower() for name in with_images} <= WORDS:
                raise SourceError(
                    f"class folders are named {', '.join(sorted(with_images))}, which are names of splits",
                    shard=self.title,
                    hint=Hint(
                        Step("if these are splits with class folders inside: {split_folders}", split_folders=True),
                        Step("if these are classes: {classes}", classes=...),
                    ),
                )
            others = set(list_folders(self.title)) - with_images
            # An empty folder is a class, too, so that adding images to it later does not shift the ids of the others.
            empty = sorted(
                name
                for name in others
                if not name.startswith((".", "_")) and not holds_outputs(os.path.join(self.title, name))
            )
            return make_class_map([*with_images, *(empty if with_images else ())], offset=self.label_offset), empty
        return make_class_map(with_images, offset=self.label_offset), []


def _depth_of(folder: str) -> int:
    """Return the depth of a folder below the root; 0 for the root itself."""
    return folder.count("/") + 1 if folder else 0


class ClassFolderReader(ImageReader):
    """Reads images in class folders as rows."""

    def __init__(self, root: str, depth: int, labels: LabelMap, images: ImageOptions) -> None:
        super().__init__(root, images)
        self._depth = depth
        self._labels = labels

    def read(self, item: Item) -> Row:
        name = item.key.split("/")[self._depth]
        return {
            **image_row(self.store(item.key)),
            "image/class/label": self._labels.id_of(name),
            "image/class/text": os.fsencode(name),
            "image/filename": os.fsencode(item.key),
        }


def _make_schema(images: ImageOptions, labels: LabelMap, facts: Facts) -> Schema:
    return Schema(
        {
            **image_specs(images, facts),
            "image/filename": Spec("bytes", logical="text"),
            "image/class/label": Spec("int64", logical="class_label", classes=labels.spec_names()),
            "image/class/text": Spec("bytes", logical="text"),
        }
    )
