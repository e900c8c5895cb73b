"""Find the features that hold the size of raw pixels: height, width, channels, or a shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tfrkit.features.name_words import CHANNEL_WORDS, HEIGHT_WORDS, WIDTH_WORDS, split_words
from tfrkit.features.spec import Spec


@dataclass(frozen=True)
class SizeFeatures:
    """The features that hold height, width and channels of raw pixels.

    Attributes:
        height: The feature with the height.
        width: The feature with the width.
        channels: The feature with the number of channels.
        shape: One feature with the whole shape.
        fixed: (height, width) or (height, width, channels) of all images, given by the caller; no features are read.
    """

    height: str | None = None
    width: str | None = None
    channels: str | None = None
    shape: str | None = None
    fixed: tuple[int, ...] | None = None

    @property
    def is_known(self) -> bool:
        """Whether height and width of raw pixels are known."""
        return self.fixed is not None or self.shape is not None or (self.height is not None and self.width is not None)

    @property
    def names(self) -> list[str]:
        """The features that have to be read."""
        return [name for name in (self.height, self.width, self.channels, self.shape) if name is not None]


def find_sizes(specs: Mapping[str, Spec], image: str) -> SizeFeatures:
    """Find the features that hold the size of `image`, by their names and kinds."""

    def find(words: Sequence[str]) -> str | None:
        found = [
            name
            for name, spec in specs.items()
            if spec.kind == "int64" and spec.num_values in (1, -1) and spec.shape in ((), (1,), (None,))
            if split_words(name)[-1:] in [[word] for word in words]
        ]
        # If there are several, take the one most similar in name: a mask or a thumbnail may have its own size.
        return min(found, key=lambda name: (-_count_shared(name, image), name), default=None)

    shapes = [
        name
        for name, spec in specs.items()
        if spec.kind == "int64" and spec.shape in ((2,), (3,), (None,)) and split_words(name)[-1:] == ["shape"]
    ]
    return SizeFeatures(find(HEIGHT_WORDS), find(WIDTH_WORDS), find(CHANNEL_WORDS), shapes[0] if shapes else None)


def _count_shared(name: str, other: str) -> int:
    """Return the length of the common prefix of two names."""
    pairs = zip(name, other, strict=False)
    return next((at for at, (one, two) in enumerate(pairs) if one != two), min(len(name), len(other)))
