"""Names of features, in order of preference, and words in names: meanings are guessed from these only."""

from __future__ import annotations

import re

IMAGE_NAMES = ("image/encoded", "image", "image_raw", "img", "encoded")
MASK_NAME = "image/segmentation/class/encoded"
CLASS_NAMES = ("image/class/label", "label", "clip/label/index", "image_class")
OBJECT_CLASS_NAMES = ("image/object/class/label", "objects/label")
# A text such as label/text may be anything, a sentence too; these name a class.
CLASS_TEXTS = ("image/class/text", "clip/label/string")
CAPTION_NAMES = ("label/text", *CLASS_TEXTS, "image/caption", "caption", "text")
TITLE_NAMES = ("image/filename", "filename", "image/source_id", "clip/media_id", "id", "key", "name")
# Features with the names of classes, by the feature with their ids.
TEXTS_OF_LABELS = {
    "label": "label/text",
    "image/class/label": "image/class/text",
    "image/object/class/label": "image/object/class/text",
}
# Last parts of names of further features of objects, by what they mean, in the words of `tfr build` and of TFDS.
OBJECT_FEATURES: dict[str, tuple[str, ...]] = {name: (name,) for name in ("is_crowd", "area", "mask")}
OBJECT_FEATURES |= {name: (name, f"is_{name}") for name in ("difficult", "truncated")} | {"pose": ("view", "pose")}

LABEL_WORDS = frozenset({"label", "labels", "class", "classes", "category", "categories", "target", "y"})
MASK_WORDS = frozenset({"mask", "masks", "segmentation", "seg", "annotation"})
BOX_WORDS = frozenset({"bbox", "bboxes", "box", "boxes", "xmin", "xmax", "ymin", "ymax"})
IMAGE_WORDS = frozenset({"image", "images", "img", "picture", "photo", "pixels", "frame", "frames", "rgb", "gray"})
RAW_WORDS = IMAGE_WORDS | {"data", "raw", "encoded", "x"}
ENCODED_WORDS = frozenset({"image", "img", "picture", "photo", "jpeg", "png", "encoded", "mask"})
FILE_WORDS = frozenset({"filename", "path", "file"})
HEIGHT_WORDS, WIDTH_WORDS, CHANNEL_WORDS = ("height", "rows"), ("width", "cols"), ("channels", "depth")
SIZE_WORDS = (*HEIGHT_WORDS, *WIDTH_WORDS, *CHANNEL_WORDS)
# Last words of features about a picture or a label that are neither.
FACT_WORDS = frozenset({"format", "filename", "name", "id", "key", "length", "height", "width", "channels", "depth"})
# Last words of measures: label/length is not a class.
_MEASURE_WORDS = frozenset(SIZE_WORDS) | {
    *("length", "len", "size", "count", "num", "number", "total", "offset", "index", "position", "weight", "shape"),
    *("area", "time", "timestamp", "duration", "x", "y", "xmin", "xmax", "ymin", "ymax"),
}


def split_words(name: str) -> list[str]:
    """The words of a feature name, in lower case: ``image/objectHeight_px`` gives image, object, height, px."""
    parted = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name[:200])
    return [word.lower() for word in re.split(r"[^A-Za-z]+", parted) if word]


def is_label_name(name: str) -> bool:
    """Whether a feature of this name describes the record as class, text or id: not a count or another fact."""
    return _speaks_of_class(name, FACT_WORDS)


def can_be_class(name: str) -> bool:
    """Whether numbers of a feature of this name may be class ids.

    Example:
        >>> [can_be_class(name) for name in ("image/class/label", "category_id", "label/length", "num_classes")]
        [True, True, False, False]
    """
    return split_words(name) == ["y"] or _speaks_of_class(name, _MEASURE_WORDS)


def _speaks_of_class(name: str, others: frozenset[str]) -> bool:
    words = split_words(name)
    is_count = split_words(re.split(r"[/.]", name)[-1])[:1] in (["num"], ["n"], ["number"])
    return bool(LABEL_WORDS & set(words)) and words[-1] not in others and not is_count
