"""Well-known feature names, in order of preference, and words in names: all guesses by name use these lists."""

from __future__ import annotations

import re

IMAGE_NAMES = ("image/encoded", "image", "image_raw", "img", "encoded")
MASK_NAME = "image/segmentation/class/encoded"
LABEL = "label"
# Ids of the characters of a text: a feature for each character, and all of them as a list.
CHARACTER_IDS = f"{LABEL}/ids"
CHARACTER_LABELS = re.compile(rf"{LABEL}\d+|{CHARACTER_IDS}")
CLASS_NAMES = ("image/class/label", LABEL, "clip/label/index", "image_class")
OBJECT_CLASS_NAMES = ("image/object/class/label", "objects/label")
# Features that hold the name of a class; label/text is not one, because it may also be a sentence.
CLASS_TEXTS = ("image/class/text", "clip/label/string")
CAPTION_NAMES = ("label/text", *CLASS_TEXTS, "image/caption", "caption", "text")
TITLE_NAMES = ("image/filename", "filename", "image/source_id", "clip/media_id", "id", "key", "name")
# Features with class names, by the feature with the class ids.
TEXTS_OF_LABELS = {
    LABEL: "label/text",
    "image/class/label": "image/class/text",
    "image/object/class/label": "image/object/class/text",
}
# Last parts of the names of features with the scores of boxes, next to the boxes or their classes.
SCORE_NAMES = ("score", "scores", "confidence", "bbox/score", "class/score")
# Last parts of the names of other object features, by meaning, as `tfr build` and TFDS spell them.
OBJECT_FEATURES: dict[str, tuple[str, ...]] = {name: (name,) for name in ("is_crowd", "area", "mask")}
OBJECT_FEATURES |= {name: (name, f"is_{name}") for name in ("difficult", "truncated")} | {"pose": ("view", "pose")}

PLAIN_LABEL_WORDS = frozenset({LABEL, "labels"})
LABEL_WORDS = PLAIN_LABEL_WORDS | {"class", "classes", "category", "categories", "target", "y"}
MASK_WORDS = frozenset({"mask", "masks", "segmentation", "seg", "annotation"})
BOX_WORDS = frozenset({"bbox", "bboxes", "box", "boxes", "xmin", "xmax", "ymin", "ymax"})
IMAGE_WORDS = frozenset({"image", "images", "img", "picture", "photo", "pixels", "frame", "frames", "rgb", "gray"})
SOUND_WORDS = frozenset({"audio", "sound", "speech", "waveform", "wav", "pcm"})
RAW_WORDS = IMAGE_WORDS | {"data", "raw", "encoded", "x"}
ENCODED_WORDS = frozenset({"image", "img", "picture", "photo", "jpeg", "png", "encoded", "mask"})
FILE_WORDS = frozenset({"filename", "path", "file"})
HEIGHT_WORDS, WIDTH_WORDS, CHANNEL_WORDS = ("height", "rows"), ("width", "cols"), ("channels", "depth")
SIZE_WORDS = (*HEIGHT_WORDS, *WIDTH_WORDS, *CHANNEL_WORDS)
# Last words of features that describe a picture or a label but are not one.
FACT_WORDS = frozenset({"format", "filename", "name", "id", "key", "length", "height", "width", "channels", "depth"})
# Last words of measurements: label/length is not a class.
_MEASURE_WORDS = frozenset(SIZE_WORDS) | {
    *("length", "len", "size", "count", "num", "number", "total", "offset", "index", "position", "weight", "shape"),
    *("area", "time", "timestamp", "duration", "x", "y", "xmin", "xmax", "ymin", "ymax"),
}


def split_words(name: str) -> list[str]:
    """Split a feature name into lower-case words: ``image/objectHeight_px`` gives image, object, height, px."""
    parted = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name[:200])
    return [word.lower() for word in re.split(r"[^A-Za-z]+", parted) if word]


def is_label_name(name: str) -> bool:
    """Whether a feature with this name may label the record; False for counts and features such as label/format."""
    return _names_a_class(name, split_words(name), FACT_WORDS)


def can_be_class(name: str) -> bool:
    """Whether numbers in a feature with this name may be class ids.

    Example:
        >>> [can_be_class(name) for name in ("image/class/label", "category_id", "label/length", "num_classes")]
        [True, True, False, False]
    """
    words = split_words(name)
    return words == ["y"] or _names_a_class(name, words, _MEASURE_WORDS)


def _names_a_class(name: str, words: list[str], others: frozenset[str]) -> bool:
    if LABEL_WORDS.isdisjoint(words) or words[-1] in others:
        return False
    return split_words(re.split(r"[/.]", name)[-1])[:1] not in (["num"], ["n"], ["number"])  # a count
