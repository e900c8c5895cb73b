"""Label maps, `item { id: 1 name: "cat" }`, under the names of `object_detection.utils.label_map_util`.

    from tfrkit.compat.object_detection.utils import label_map_util   # was: from object_detection.utils import ...

Read without protobuf. Class 0 is the background and cannot have another name, as in the Object Detection API.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tfrkit.compat import log
from tfrkit.compat.gfile import open_file
from tfrkit.errors import SchemaError
from tfrkit.features.text_proto import TextMessage, parse_text

_KNOWN = frozenset(
    {"id", "name", "display_name", "keypoints", "ancestor_ids", "descendant_ids", "frequency", "instance_count"}
)
_BACKGROUND = "background"


@dataclass(frozen=True)
class StringIntLabelMapItem:
    """One class. Missing fields are 0 or empty; `HasField` shows whether a field was set."""

    id: int = 0
    name: str = ""
    display_name: str = ""
    given: frozenset[str] = frozenset()

    def HasField(self, name: str) -> bool:
        """Whether the file sets this field."""
        return name in self.given


@dataclass(frozen=True)
class StringIntLabelMap:
    """A label map: its classes, in file order."""

    item: list[StringIntLabelMapItem] = field(default_factory=list)


def load_labelmap(path: Any) -> StringIntLabelMap:
    """Read a label map from a file; SchemaError if the file is not a label map."""
    try:
        with open_file(path) as file:
            message = parse_text(file.read())
        _refuse_unknown(message, frozenset({"item"}))
        label_map = StringIntLabelMap([_read_item(item) for item in message.get_messages("item")])
    except SchemaError as error:
        raise SchemaError(error.what, shard=str(path)) from None
    except UnicodeDecodeError:
        raise SchemaError("label map expected text, got bytes that are not UTF-8", shard=str(path)) from None
    _note_repeated(label_map, str(path))
    return label_map


def get_label_map_dict(
    label_map_path_or_proto: Any, use_display_name: bool = False, fill_in_gaps_and_background: bool = False
) -> dict[str, int]:
    """Return class ids by name."""
    label_map = _load(label_map_path_or_proto)
    numbers = {(item.display_name if use_display_name else item.name): item.id for item in label_map.item}
    if fill_in_gaps_and_background:
        used = set(numbers.values())
        if 0 not in used:
            numbers[_BACKGROUND] = 0
        numbers |= {str(number): number for number in range(1, max(used, default=0)) if number not in used}
    return numbers


def get_max_label_map_index(label_map: StringIntLabelMap) -> int:
    """Return the highest class id."""
    return max(item.id for item in label_map.item)


def convert_label_map_to_categories(
    label_map: StringIntLabelMap | None, max_num_classes: int, use_display_name: bool = True
) -> list[dict[str, Any]]:
    """List classes 1 to `max_num_classes` as `{"id": 1, "name": "cat"}`; without a label map, with invented names."""
    if not label_map:
        return [{"id": number, "name": f"category_{number}"} for number in range(1, max_num_classes + 1)]
    names: dict[int, str] = {}
    for item in label_map.item:
        if not 0 < item.id <= max_num_classes:
            log.info("Ignore item %d since it falls outside of requested label range.", item.id)
            continue
        has_display_name = use_display_name and item.HasField("display_name")
        names.setdefault(item.id, item.display_name if has_display_name else item.name)
    return [{"id": number, "name": name} for number, name in names.items()]


def create_categories_from_labelmap(label_map_path: Any, use_display_name: bool = True) -> list[dict[str, Any]]:
    """List the classes of a file as `{"id": 1, "name": "cat"}`."""
    label_map = load_labelmap(label_map_path)
    return convert_label_map_to_categories(label_map, get_max_label_map_index(label_map), use_display_name)


def create_category_index(categories: Iterable[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return classes by id."""
    return {category["id"]: category for category in categories}


def create_category_index_from_labelmap(label_map_path: Any, use_display_name: bool = True) -> dict[int, Any]:
    """Return the classes of a file by id."""
    return create_category_index(create_categories_from_labelmap(label_map_path, use_display_name))


def create_class_agnostic_category_index() -> dict[int, Any]:
    """Return a single class, "object", for all detections."""
    return {1: {"id": 1, "name": "object"}}


def _load(path_or_map: Any) -> StringIntLabelMap:
    return path_or_map if isinstance(path_or_map, StringIntLabelMap) else load_labelmap(path_or_map)


def _read_item(message: TextMessage) -> StringIntLabelMapItem:
    _refuse_unknown(message, _KNOWN)
    number = message.get_number("id")
    name, display_name = message.get_text("name") or "", message.get_text("display_name") or ""
    if number is not None and (not isinstance(number, int) or not 0 <= number < 1 << 31):
        raise SchemaError(f"item expected an id from 0 on, got {number} - at line {message.line}")
    if not number and _BACKGROUND not in (name, display_name):
        raise SchemaError(
            f"item expected an id from 1 on, 0 is the background, got {number or 0} for {name!r:.40} "
            f"- at line {message.line}"
        )
    return StringIntLabelMapItem(int(number or 0), name, display_name, frozenset(message.fields))


def _refuse_unknown(message: TextMessage, known: frozenset[str]) -> None:
    unknown = [name for name in message.fields if name not in known]
    if unknown:
        raise SchemaError(
            f"label map expected {', '.join(sorted(known))}, got {unknown[0]!r:.40} - at line {message.line}"
        )


def _note_repeated(label_map: StringIntLabelMap, path: str) -> None:
    """Warn about an id with two names or a name with two ids, which the API accepts."""
    names: dict[int, str] = {}
    numbers: dict[str, int] = {}
    for item in label_map.item:
        first = names.setdefault(item.id, item.name)
        if first != item.name:
            log.warning("class %d has two names, %r and %r - at %s", item.id, first, item.name, path)
        number = numbers.setdefault(item.name, item.id)
        if item.name and number != item.id:
            log.warning("class %r has two numbers, %d and %d - at %s", item.name, number, item.id, path)
