"""Read the class names of annotated datasets: lists, numbered lists, label maps, colour lists."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence

from tfrkit.errors import SourceError
from tfrkit.features.labels import LabelMap, number_names, read_class_map
from tfrkit.pictures.masks import parse_color_map
from tfrkit.sources.base import Problem
from tfrkit.sources.walk import describe_unreadable
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.inputs import read_input
from tfrkit.storage.lookup import is_file
from tfrkit.storage.resolve import show_address

# Files that labelling tools write next to a dataset in Pascal VOC format, in order of preference.
CLASS_FILES = ("labelmap.txt", "class_names.txt", "classes.txt", "labels.txt")
_RENAME = "rename the folder"


def find_class_file(root: str) -> str | None:
    """Return the path of the class file in a dataset's folder, or None."""
    paths = (os.path.join(root, name) for name in CLASS_FILES)
    return next((path for path in paths if is_file(path)), None)


def load_classes(classes: str | Sequence[str], *, label_offset: int | None, first: int = 1) -> LabelMap:
    """Return the label map of a list of names or of a file: labelmap.txt, or a format that `read_class_map` reads.

    Ids that the file defines are kept unless `label_offset` is given. Otherwise the first name has id `first`; the
    default is 1, as detection readers expect. A background class at the start of the list has id 0.
    """
    if not isinstance(classes, str):
        return number_names(classes, offset=label_offset, first=first, origin="the given names")
    path = show_address(classes)
    if os.path.basename(path) == "labelmap.txt":
        names = parse_color_map(read_small_text(path), path)[1]
        return number_names(names, offset=label_offset, first=first, origin=path)
    text = read_small_text(path) if has_scheme(path) else None
    return read_class_map(path, offset=label_offset, first=first, text=text)


def find_folder_problems(labels: LabelMap, root: str) -> list[Problem]:
    """Return a blocking problem for each class folder whose name is not UTF-8 text, which no sidecar can list."""
    return [
        Problem(root, f"class name expected UTF-8 text, got {name!r:.200}", blocking=True, input=None, hint=_RENAME)
        for name in labels.names
        if not _is_utf8(name)
    ]


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # the name of a file may be any bytes; those that are not text are surrogates
        return False
    return True


def read_small_text(path: str) -> str:
    """Read a small UTF-8 text file with or without a byte order mark."""
    try:
        return io.StringIO(read_input(path).decode("utf-8-sig"), newline=None).read()
    except OSError as error:
        raise SourceError(describe_unreadable(error, "open"), shard=path) from None
    except UnicodeDecodeError as error:
        raise SourceError(f"expected UTF-8 text, got byte {error.object[error.start]:#04x}", shard=path) from None
