"""Features, lists of images and VOC annotations, under the names of `object_detection.utils.dataset_util`.

from tfrkit.compat.object_detection.utils import dataset_util   # was: from object_detection.utils import ...
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tfrkit.compat.gfile import open_file
from tfrkit.compat.train_messages import BytesList, Feature, FloatList, Int64List

# An annotation has five levels; a far deeper file is not an annotation and would only exhaust the stack.
_MAX_DEPTH = 64


def int64_feature(value: int) -> Feature:
    """Make a Feature of one integer."""
    return int64_list_feature([value])


def int64_list_feature(value: Iterable[int]) -> Feature:
    """Make a Feature of integers."""
    return Feature(int64_list=Int64List(value=value))


def bytes_feature(value: bytes) -> Feature:
    """Make a Feature of one bytes value."""
    return bytes_list_feature([value])


def bytes_list_feature(value: Iterable[bytes]) -> Feature:
    """Make a Feature of bytes values."""
    return Feature(bytes_list=BytesList(value=value))


def float_feature(value: float) -> Feature:
    """Make a Feature of one float."""
    return float_list_feature([value])


def float_list_feature(value: Iterable[float]) -> Feature:
    """Make a Feature of floats."""
    return Feature(float_list=FloatList(value=value))


def read_examples_list(path: Any) -> list[str]:
    """Read the first word of each line: the names in `ImageSets/Main/aeroplane_train.txt`, without their 1 or -1."""
    with open_file(path) as file:
        return [line.strip().split(" ")[0] for line in file]


def recursive_parse_xml_to_dict(xml: Any) -> dict[str, Any]:
    """Convert an lxml or xml.etree element to nested dicts: all `object` elements in a list, the last of any other tag.

    Example:
        >>> from xml.etree import ElementTree
        >>> recursive_parse_xml_to_dict(ElementTree.fromstring("<a><b>1</b><object><c>x</c></object></a>"))
        {'a': {'b': '1', 'object': [{'c': 'x'}]}}
    """
    return {xml.tag: _read_element(xml, 1)}


def _read_element(xml: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise ValueError(f"annotation expected at most {_MAX_DEPTH} levels, got more")
    children = [child for child in xml if isinstance(child.tag, str)]  # skips lxml's comments
    if not children:
        return xml.text
    result: dict[str, Any] = {}
    for child in children:
        value = _read_element(child, depth + 1)
        if child.tag == "object":
            result.setdefault("object", []).append(value)
        else:
            result[child.tag] = value
    return result
