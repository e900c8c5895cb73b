"""The features of an image in a row, and their specs: its bytes, format, height, width and channels."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tfrkit._types import Row
from tfrkit.errors import Hint, SourceError, Step
from tfrkit.features.spec import Spec
from tfrkit.images.encode import ImageOptions, ImageStore, image_spec
from tfrkit.images.turn import StoredImage
from tfrkit.sources.base import Facts, Item, Problem, RowReader
from tfrkit.sources.walk import describe_unreadable, read_file

IMAGE = "image/encoded"
NAME_IMAGE_ROOT = Hint(Step("name the folder where paths start: {image_root}", image_root=...))
"""The hint if an image that a table names cannot be opened."""


class ImageReader(RowReader):
    """Base class of readers of one image per row, which is a file below `root`; `name` is the feature of its bytes."""

    name = IMAGE

    def __init__(self, root: str, images: ImageOptions) -> None:
        self._root = root
        self._store = ImageStore(images)

    def files_of(self, item: Item) -> Sequence[str]:
        return [os.path.join(self._root, item.key)]

    def store(self, path: str, *, is_annotated: bool = False) -> StoredImage:
        """Return an image as it is written; `is_annotated` as in `ImageStore.store`."""
        return self._store.store(read_file(self._root, path), path, is_annotated=is_annotated)

    def take_facts(self) -> Facts:
        """Return formats and sizes of the images read since the last call."""
        return {self.name: self._store.take_facts()}


def image_row(stored: StoredImage, name: str = IMAGE) -> Row:
    """Return the features of an image; those of left/encoded are left/format, left/height and so on.

    Example:
        >>> image_row(StoredImage(b"...", "png", 4, 3, 1, 4, 3), "image")
        {'image': b'...', 'format': "png", "height": 3, 'width': 4, 'channels': 1}
    """
    prefix = name[: name.rfind("/") + 1]
    return {
        name: stored.data,
        f"{prefix}format": stored.format,
        f"{prefix}height": stored.height,
        f"{prefix}width": stored.width,
        f"{prefix}channels": stored.channels,
    }


def image_specs(images: ImageOptions, facts: Facts, name: str = IMAGE, *, optional: bool = False) -> dict[str, Spec]:
    """Return the specs of the features of `image_row`."""
    prefix = name[: name.rfind("/") + 1]
    return {
        name: Spec(**image_spec(images, facts.get(name)), optional=optional),
        f"{prefix}format": Spec("bytes", logical="text", optional=optional),
        **{f"{prefix}{side}": Spec("int64", optional=optional) for side in ("height", "width", "channels")},
    }


def to_problem(key: str, error: SourceError | OSError, *, input: str | None = "") -> Problem:
    """Return the problem of a file that cannot be read or used."""
    if isinstance(error, OSError):
        return Problem(key, describe_unreadable(error, "open"), input=input)
    return Problem(error.shard or key, error.what, input=input, hint=error.hint or "")
