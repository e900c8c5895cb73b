"""Parse COCO's JSON: images, categories, and annotations that refer to both by id."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tfrkit.errors import SourceError
from tfrkit.sources.base import Problem
from tfrkit.sources.boxes import Corners

Identifier = int | str


@dataclass
class CocoObject:
    """One annotation with a box: corners in pixels, and the outline as in the file."""

    category: int
    corners: Corners
    area: float
    is_crowd: int
    outline: Any
    where: str


@dataclass
class CocoImage:
    """One image with its annotations. `is_bad` means that one of its annotations cannot be read."""

    identifier: Identifier
    file_name: str
    width: int | None
    height: int | None
    objects: list[CocoObject] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)
    is_bad: bool = False


@dataclass
class CocoData:
    """The content of a file; `problems` are all invalid entries, each with its place."""

    images: dict[Identifier, CocoImage] = field(default_factory=dict)
    categories: dict[int, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    num_keypoints: int = 0
    has_captions: bool = False


def parse_coco(data: bytes, path: str, *, masks: bool = False) -> CocoData:
    """Parse the images of a file with their annotations; raises `SourceError` if it is not a COCO file.

    Outlines are kept only with `masks`.
    """
    content = load_object(data, path)
    coco = CocoData()
    for index, entry in _entries(content, "images", path):
        _read_image(coco, entry, f"{path}, image {_show_id(entry, index)}")
    for index, entry in _entries(content, "categories", path, required=False):
        _read_category(coco, entry, f"{path}, category {_show_id(entry, index)}")
    seen: set[Identifier] = set()
    for index, entry in _entries(content, "annotations", path, required=False):
        where = f"{path}, annotation {_show_id(entry, index)}"
        image = _image_of(coco, entry, where)
        if image is None:
            continue
        # All problems of an image count for one input.
        place = f"{path}, image {image.identifier!r:.40}"
        identifier = entry.get("id")
        if isinstance(identifier, (int, str)):
            if identifier in seen:
                coco.problems.append(Problem(where, "annotation id expected once, got it twice", input=place))
                image.is_bad = True
                continue
            seen.add(identifier)
        try:
            _read_annotation(coco, image, entry, where, masks)
        except (ValueError, OverflowError) as error:
            # An integer of hundreds of digits is no float.
            reason = str(error) if isinstance(error, ValueError) else "a number is too large"
            coco.problems.append(Problem(where, reason, input=place))
            image.is_bad = True
    return coco


def add_captions(coco: CocoData, data: bytes, path: str) -> None:
    """Add the captions of another file to the images of this one; captions of other images are ignored."""
    content = load_object(data, path)
    coco.has_captions = True
    for index, entry in _entries(content, "annotations", path):
        image = coco.images.get(entry.get("image_id"))  # type: ignore[arg-type]
        caption = entry.get("caption")
        if not isinstance(caption, str):
            where = f"{path}, annotation {_show_id(entry, index)}"
            coco.problems.append(Problem(where, f"caption expected text, got {type(caption).__name__}", input=None))
        elif image is not None:
            image.captions.append(caption)


def load_object(data: bytes, path: str) -> Mapping[str, Any]:
    """Parse a JSON object; raises `SourceError` with the line of the error."""
    try:
        content = json.loads(data)
    except json.JSONDecodeError as error:
        raise SourceError(f"not valid JSON, {error.msg.lower()}", shard=f"{path}, line {error.lineno}") from None
    except (ValueError, RecursionError) as error:
        what = {UnicodeDecodeError: "it is not UTF-8", RecursionError: "it is nested too deeply"}.get(type(error))
        raise SourceError(f"not valid JSON, {what or 'a number has too many digits'}", shard=path) from None
    if not isinstance(content, dict):
        raise SourceError(f"expected a COCO file (a JSON object), got {type(content).__name__}", shard=path)
    return content


def _entries(
    content: Mapping[str, Any], name: str, path: str, *, required: bool = True
) -> Iterator[tuple[int, dict[str, Any]]]:
    entries = content.get(name, None if required else [])
    if not isinstance(entries, list):
        keys = ", ".join(sorted(content)[:8])
        raise SourceError(f"expected a COCO file with a list of {name}, got the keys {keys}", shard=path)
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise SourceError(f"{name} expected objects, got {type(entry).__name__} as entry {index}", shard=path)
        yield index, entry


def _show_id(entry: Mapping[str, Any], index: int) -> str:
    return f"{entry['id']!r:.40}" if "id" in entry else f"number {index} of the list"


def _read_image(coco: CocoData, entry: Mapping[str, Any], where: str) -> None:
    identifier, file_name = entry.get("id"), entry.get("file_name")
    if isinstance(identifier, bool) or not isinstance(identifier, (int, str)):
        coco.problems.append(Problem(where, "image expected an id, got none"))
    elif not isinstance(file_name, str) or not file_name:
        coco.problems.append(Problem(where, "image expected a file_name, got none"))
    elif identifier in coco.images:
        coco.problems.append(Problem(where, "image id expected once, got it twice", input=None))
    else:
        sizes = (entry.get("width"), entry.get("height"))
        width, height = (size if isinstance(size, int) and size > 0 else None for size in sizes)
        coco.images[identifier] = CocoImage(identifier, file_name, width, height)


def _read_category(coco: CocoData, entry: Mapping[str, Any], where: str) -> None:
    identifier, name = entry.get("id"), entry.get("name")
    if isinstance(identifier, bool) or not isinstance(identifier, int) or identifier < 0:
        coco.problems.append(
            Problem(where, "category expected an id of 0 or more, got none", blocking=True, input=None)
        )
    elif not isinstance(name, str) or not name.strip():
        coco.problems.append(Problem(where, "category expected a name, got none", blocking=True, input=None))
    elif coco.categories.get(identifier, name) != name:
        coco.problems.append(Problem(where, "category id expected once, got it twice", blocking=True, input=None))
    else:
        coco.categories[identifier] = name


def _image_of(coco: CocoData, entry: Mapping[str, Any], where: str) -> CocoImage | None:
    identifier = entry.get("image_id")
    image = coco.images.get(identifier) if isinstance(identifier, (int, str)) else None
    if image is None:
        reason = f"image_id {identifier!r:.40} does not belong to an image"
        kind = "annotations have an image_id that does not belong to an image"
        coco.problems.append(Problem(where, reason, input=None, kind=kind))
    return image


def _read_annotation(coco: CocoData, image: CocoImage, entry: Mapping[str, Any], where: str, masks: bool) -> None:
    """Add one annotation to its image; raises ValueError if it is invalid."""
    if "caption" in entry and "bbox" not in entry:
        if not isinstance(entry["caption"], str):
            raise ValueError(f"caption expected text, got {type(entry['caption']).__name__}")
        coco.has_captions = True
        image.captions.append(entry["caption"])
        return
    category = entry.get("category_id")
    if not isinstance(category, int) or category not in coco.categories:
        raise ValueError(f"category_id {category!r:.40} does not belong to a category")
    corners = _read_box(entry.get("bbox"))
    area = entry.get("area")
    if area is None:
        area = (corners[2] - corners[0]) * (corners[3] - corners[1])
    if isinstance(area, bool) or not isinstance(area, (int, float)) or not math.isfinite(area):
        raise ValueError(f"area expected a number, got {area!r:.40}")
    is_crowd = entry.get("iscrowd", 0)
    if is_crowd not in (0, 1):
        raise ValueError(f"iscrowd expected 0 or 1, got {is_crowd!r:.40}")
    outline = entry.get("segmentation") or None
    coco.num_keypoints += bool(entry.get("keypoints"))
    image.objects.append(CocoObject(category, corners, float(area), int(is_crowd), outline if masks else None, where))


def _read_box(box: object) -> Corners:
    """Return the corners of a box [x, y, width, height]."""
    if not isinstance(box, list) or len(box) != 4:
        raise ValueError(f"bbox expected [x, y, width, height], got {box!r:.64}")
    for value in box:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ValueError(f"bbox expected numbers, got {value!r:.40}")
    x, y, width, height = map(float, box)
    return x, y, x + width, y + height
