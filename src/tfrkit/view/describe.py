"""A record as JSON: its place, its features by meaning, its picture with overlays, and its bytes explained."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from tfrkit._types import Row
from tfrkit.errors import CodecError, ContainerError, SchemaError, TfrkitError
from tfrkit.features.meaning import find_media
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.images.sniff import ImageInfo, sniff_image
from tfrkit.ops.preview import HEAD_BYTES, preview_value, value_to_json
from tfrkit.pictures.colors import to_hex
from tfrkit.pictures.masks import encode_indices, read_mask
from tfrkit.pictures.picture import Box, Span
from tfrkit.pictures.pixels import to_pixels
from tfrkit.pictures.values import flatten_row, list_values
from tfrkit.view.guesses import Guesses
from tfrkit.view.opened import Opened, to_json_damage
from tfrkit.view.sounds import AUDIO_TYPES, is_sound, make_sound
from tfrkit.view.wire import explain_frame

MAX_VALUES = 256
MAX_TEXT = 10_000
MAX_ITEMS = 64
MAX_HEX = 4096
MAX_FIELDS = 2000
MAX_PAGE = 1000
_POINTS = 256
_HEX_HEAD = 64
_MAX_JSON = 100_000
_SIDE = 4096  # of a picture made by the server
SHOWN_FORMATS = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp", "GIF": "image/gif"}
"""Formats whose bytes are sent unchanged."""

Json = dict[str, Any]


def describe_record(opened: Opened, guesses: Guesses, item: int) -> Json:
    """Describe an item with all its features; damage is part of the description."""
    record = item if item >= 0 else None
    result: Json = {
        "record": record,
        "kind": opened.kind,
        "features": [],
        "picture": None,
        "cause": None,
        "caption": [],
    }
    if record is None:
        finding = opened.broken[-1 - item]
        shard = opened.paths.index(finding.shard)
        result |= {"shard": shard, "file": os.path.basename(finding.shard), "ordinal": finding.record}
        return result | {
            "offset": finding.offset,
            "bytes": None,
            "split": None,
            "damage": to_json_damage(opened, finding),
        }
    place = opened.locate(record)
    result |= {"shard": place.shard, "file": os.path.basename(opened.paths[place.shard]), "ordinal": place.ordinal}
    result |= {"offset": place.offset, "bytes": None, "split": opened.find_split(record), "damage": None}
    try:
        payload = opened.read(record)
    except ContainerError as error:
        found = opened.find_damage(record, error)
        return result | {"damage": None if found is None else to_json_damage(opened, found)}
    result["bytes"] = len(payload)
    try:
        if opened.kind == "raw":
            result["features"] = [_describe_value("record", "", payload, None, record, {})]
            return result
        row = opened.read_row(record)
    except (CodecError, SchemaError) as error:
        damage = opened.find_damage(record, error)
        result |= {"cause": error.what} if damage is None else {"damage": to_json_damage(opened, damage)}
        result["features"] = [_describe_value("record", "", payload, None, record, {})]
        return result
    roles = list_roles(guesses)
    for values, schema in ((row, opened.schema), opened.read_others(record)):
        for part, features, specs in _list_parts(values, schema):
            for name, value in features.items():
                result["features"].append(_describe_feature(opened, name, part, value, specs.get(name), record, roles))
    result |= _describe_picture(opened, guesses, row, record)
    if result["cause"] is not None and guesses.features is not None:
        _leave_out_picture(result["features"], guesses.features.image)
    return result


def _leave_out_picture(described: list[Json], image: str) -> None:
    """Describe the bytes of an image that cannot be shown as bytes: the cause is shown once, with the record."""
    for feature in described:
        if feature["name"] == image and feature["show"] == "image" and "head" in feature:
            feature["show"] = "bytes"


def _list_parts(row: Row, schema: Schema) -> list[tuple[str, Mapping[str, Any], Mapping[str, Spec]]]:
    if schema.kind != "sequence_example":
        return [("", row, schema.features)]
    context, lists = row.get("context", {}), row.get("feature_lists", {})
    return [("context", context, schema.features), ("feature_lists", lists, schema.feature_lists)]


def list_roles(guesses: Guesses) -> dict[str, str]:
    """Return what each feature is used for in the picture."""
    found = guesses.features
    if found is None:
        return {}
    roles = dict.fromkeys(found.sizes.names, "size") | dict.fromkeys(found.labels, "label")
    if found.boxes is not None:
        roles |= dict.fromkeys(found.boxes.sides, "box")
        roles |= {name: "name" for name in (found.boxes.text, found.boxes.label) if name is not None}
    if found.mask is not None:
        roles[found.mask] = "mask"
    return roles | {found.image: "image"}


def _describe_feature(
    opened: Opened, name: str, part: str, value: Any, spec: Spec | None, record: int, roles: Mapping[str, str]
) -> Json:
    is_frames = part == "feature_lists"
    if is_frames or (isinstance(value, list) and value and isinstance(value[0], bytes)):
        frames = list(value) if value is not None else []
        items = [
            _describe_value(name, part, one, spec, record, roles, frame=number)
            for number, one in enumerate(frames[:MAX_ITEMS])
        ]
        described = _describe_value(name, part, None, spec, record, roles)
        described |= {"show": "frames" if is_frames else "list", "count": len(frames), "items": items}
        return described | {"frames": len(frames), "is_cut": len(frames) > MAX_ITEMS, "text": preview_value(value)}
    described = _describe_value(name, part, value, spec, record, roles)
    if described["show"] in ("number", "numbers") and spec is not None and spec.kind == "int64":
        named = [opened.names.name_of(name, one) for one in described["values"]]
        described["names"] = named if any(named) and spec.logical == "class_label" else None
    return described


def _describe_value(
    name: str, part: str, value: Any, spec: Spec | None, record: int, roles: Mapping[str, str], frame: int | None = None
) -> Json:
    kind = None if spec is None else spec.kind
    result: Json = {"name": name, "part": part, "kind": kind, "role": roles.get(name), "show": "empty"}
    result |= {"meaning": "" if spec is None else spec.meaning, "text": preview_value(value), "count": 0, "bytes": None}
    result |= {"values": [], "is_cut": False, "frames": 0, "names": None}
    where = f"{record}?feature={quote(name, safe='')}" + ("" if frame is None else f"&frame={frame}")
    if value is None:
        return result
    if isinstance(value, (bytes, bytearray)):
        return result | _describe_bytes(bytes(value), where, roles.get(name))
    array = np.asarray(value)
    result |= {"count": int(array.size), "bytes": int(array.nbytes)}
    flat = array.reshape(-1)
    result |= {"values": value_to_json_list(flat[:MAX_VALUES]), "is_cut": array.size > MAX_VALUES}
    is_tensor = array.ndim > 1 or (spec is not None and spec.encoding != "list")
    if array.size == 0:
        return result
    if not is_tensor and array.size == 1:
        return result | {"show": "number"}
    if array.dtype.kind not in "biuf":
        return result | {"show": "numbers"}
    result |= {"show": "tensor" if is_tensor else "numbers", "dtype": str(array.dtype), "shape": list(array.shape)}
    result |= _measure(flat)
    if is_sound(name, array):
        result["sound"] = f"a/{where}"
    if roles.get(name) in ("image", "mask") or _is_drawable(array):
        result["src"] = f"{'m' if roles.get(name) == 'mask' else 'i'}/{where}"
    return result


def value_to_json_list(flat: Any) -> list[Any]:
    """Return numbers of an array for JSON."""
    converted = flat.astype(np.float64) if flat.dtype.kind not in "biufO" else flat
    return [value_to_json(one) for one in converted.tolist()]


def _measure(flat: Any) -> Json:
    numbers = flat.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    stats: Json = {"min": None, "max": None, "mean": None, "std": None}
    if finite.size:
        stats = {"min": float(finite.min()), "max": float(finite.max())}
        stats |= {"mean": float(finite.mean()), "std": float(finite.std())}
    places = np.linspace(0, len(flat) - 1, min(len(flat), _POINTS)).astype(np.int64)
    return {"stats": stats, "points": value_to_json_list(numbers[places])}


def _is_drawable(array: Any) -> bool:
    is_image = array.ndim in (2, 3) and min(array.shape[:2]) >= 8
    return bool(is_image and (array.ndim == 2 or 3 in (array.shape[0], array.shape[2]) or 1 in array.shape))


def _describe_bytes(value: bytes, where: str, role: str | None) -> Json:
    facts: Json = {"count": 1, "bytes": len(value), "download": f"raw/{where}"}
    if not value:
        return facts | {"show": "empty"}
    info = sniff_image(value[:HEAD_BYTES])
    if info is not None:
        facts |= {"format": info.format, "width": info.width, "height": info.height}
        return facts | {
            "show": "mask" if role == "mask" else "image",
            "src": f"{'m' if role == 'mask' else 'i'}/{where}",
        }
    media = find_media([value[:64]])
    if media in AUDIO_TYPES:
        return facts | {"show": "audio", "format": media.split()[0], "src": f"a/{where}"}
    text = _read_text(value)
    if text is not None:
        pretty = _read_json(value)
        shown = text if pretty is None else pretty
        facts |= {"show": "text" if pretty is None else "json", "value": shown[:MAX_TEXT]}
        return facts | {"is_cut": len(shown) > MAX_TEXT or len(value) > 4 * MAX_TEXT}
    facts |= {"show": "bytes", "head": value[:_HEX_HEAD].hex()}
    if role in ("image", "mask"):
        facts |= {"show": role, "format": "raw", "width": None, "height": None}
        facts["src"] = f"{'m' if role == 'mask' else 'i'}/{where}"
    return facts


def _read_text(value: bytes) -> str | None:
    try:
        text = value[: 4 * MAX_TEXT].decode("utf-8", "strict" if len(value) <= 4 * MAX_TEXT else "ignore")
    except UnicodeDecodeError:
        return None
    odd = sum(not (character.isprintable() or character in "\n\r\t") for character in text[:1024])
    return None if odd * 8 > len(text[:1024]) or len(text) * 8 < min(len(value), 4 * MAX_TEXT) else text


def _read_json(value: bytes) -> str | None:
    if value[:1] not in b"{[" or len(value) > _MAX_JSON:
        return None
    try:
        return json.dumps(json.loads(value), indent=1, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


# ---- pictures --------------------------------------------------------------------------------------------------------


def _describe_picture(opened: Opened, guesses: Guesses, row: Row, record: int) -> Json:
    reader = guesses.new_reader(64)
    if reader is None or guesses.features is None:
        return {}
    features = guesses.features
    picture = reader.read(row)
    result: Json = {"caption": to_json_caption(picture.caption), "cause": picture.cause}
    if picture.size is None:
        return result
    value = flatten_row(row, opened.schema).get(features.image)
    frames = len(value) if features.image in opened.schema.feature_lists and value is not None else 1
    shown: Json = {"feature": features.image, "width": picture.size[1], "height": picture.size[0], "frames": frames}
    shown["src"] = f"i/{record}?feature={quote(features.image, safe='')}" + ("&frame=0" if frames > 1 else "")
    shown["boxes"] = [to_json_box(box) for box in picture.boxes]
    shown["keypoints"] = _find_keypoints(row, opened, picture.size)
    shown["mask"] = None
    if picture.numbers is not None and features.mask is not None:
        classes = sorted({int(number) for number in np.unique(picture.numbers)})
        where = f"m/{record}?feature={quote(features.mask, safe='')}"
        shown["mask"] = {"feature": features.mask, "src": where, "classes": classes}
    return result | {"picture": shown}


def _find_keypoints(row: Row, opened: Opened, size: tuple[int, int]) -> list[Any]:
    """Return the points of each object, from features whose names end in keypoint/x, /y and /visibility."""
    values = flatten_row(row, opened.schema)
    stem = next((name[:-1] for name in values if name.endswith(("keypoint/x", "keypoints/x"))), None)
    if stem is None or f"{stem}y" not in values:
        return []
    xs, ys = (list_values(values[f"{stem}{axis}"]) for axis in "xy")
    seen = list_values(values.get(f"{stem}visibility"))
    # A place that is no number, as tools write where a point is missing, is not shown.
    places = np.array([*zip(xs, ys, strict=False)], np.float64).reshape(-1, 2)
    is_known = np.isfinite(places.sum(axis=1))
    places[~is_known] = 0
    places /= size[::-1] if places.max(initial=0) > 2 else (1, 1)
    visible = [int(seen[at]) if at < len(seen) else 2 for at in range(len(places))]
    points = [
        {"x": x, "y": y, "visible": visible[at] if is_known[at] else 0} for at, (x, y) in enumerate(places.tolist())
    ]
    counts = [
        int(count) for count in list_values(values.get(f"{stem.rpartition('/')[0].rpartition('/')[0]}/keypoint/num"))
    ]
    if sum(counts) != len(points):
        return [points] if points else []
    stops = np.cumsum(counts).tolist()
    return [points[stop - count : stop] for stop, count in zip(stops, counts, strict=True)]


def to_json_caption(caption: Sequence[Span]) -> list[Json]:
    """Return the parts of a caption with their colours."""
    return [{"text": span.text, "color": None if span.color is None else to_hex(span.color)} for span in caption]


def to_json_box(box: Box) -> Json:
    """Return a box: corners as fractions of width and height."""
    corners = [round(float(side), 6) for side in box[:4]]
    return {"box": corners, "text": box.text, "id": box.label, "score": box.score, "color": to_hex(box.color)}


def find_value(opened: Opened, record: int, feature: str, frame: int | None) -> Any:
    """Return the value of a feature of a record, or one frame of it; LookupError if there is none."""
    values = flatten_row(opened.read_row(record), opened.schema)
    if feature not in values:
        row, schema = opened.read_others(record)
        values = flatten_row(row, schema) if row else {}
    if values.get(feature) is None:
        raise LookupError(f"record {record} has no feature {feature!r:.64}")
    value = values[feature]
    if isinstance(value, list) or feature in opened.schema.feature_lists:
        frame = frame or 0
        if not 0 <= frame < len(value):
            raise LookupError(f"frame {frame} of {len(value)}")
        value = value[frame]
    elif frame:
        raise LookupError(f"frame {frame} of 1")
    return value


def make_picture(opened: Opened, guesses: Guesses, record: int, feature: str, frame: int | None) -> tuple[bytes, str]:
    """Return a picture for display and its type: as stored if a browser shows it, else as a PNG."""
    value = find_value(opened, record, feature, frame)
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, bytes):
        info: ImageInfo | None = sniff_image(value[:HEAD_BYTES])
        if info is not None and info.format in SHOWN_FORMATS:
            return value, SHOWN_FORMATS[info.format]
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return _encode_png(to_pixels(value)), "image/png"
    features = guesses.features
    if features is None or features.image != feature:
        given = {**dict(guesses.given), "image": feature}
        guesses = Guesses.read(opened, given)
    reader = guesses.new_reader(_SIDE, enlarges=False)
    if reader is None:
        raise CodecError(f"feature {feature!r:.64} holds no picture")
    row = opened.read_row(record)
    if opened.kind == "sequence_example" and frame:
        parts = dict(row["feature_lists"])
        parts[feature] = parts[feature][frame:]
        row = {**row, "feature_lists": parts}
    pixels, _ = reader.read_pixels(row)
    return _encode_png(pixels), "image/png"


def make_mask(opened: Opened, guesses: Guesses, record: int, feature: str, frame: int | None) -> bytes:
    """Return a mask as an 8-bit gray PNG of class numbers; larger numbers become 255."""
    value = find_value(opened, record, feature, frame)
    size = None
    if not isinstance(value, bytes) or sniff_image(value[:64]) is None:
        # Bare numbers have the size of the image.
        reader = guesses.new_reader(_SIDE, enlarges=False)
        size = None if reader is None else reader.read_pixels(opened.read_row(record))[1]
    numbers = read_mask(value, size)
    return encode_indices(np.minimum(numbers, 255).astype(np.uint8))


def _encode_png(pixels: Any) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "PNG", compress_level=1)
    return file.getvalue()


def find_raw(opened: Opened, record: int, feature: str | None, frame: int | None) -> bytes:
    """Return the stored bytes of a feature, or of the whole record."""
    if feature is None or opened.kind == "raw":
        return opened.read(record)
    value = find_value(opened, record, feature, frame)
    return bytes(value) if isinstance(value, (bytes, bytearray)) else np.ascontiguousarray(value).tobytes()


def find_audio(opened: Opened, record: int, feature: str, frame: int | None) -> tuple[bytes, str]:
    """Return sound and its type; `CodecError` if the feature is no sound."""
    if opened.kind == "raw":
        return make_sound(feature, opened.read(record), {})
    values = flatten_row(opened.read_row(record), opened.schema)
    return make_sound(feature, find_value(opened, record, feature, frame), values)


def page_values(opened: Opened, record: int, feature: str, frame: int | None, first: int, count: int) -> Json:
    """Return a page of the values of a feature, or of the characters of a text."""
    value = opened.read(record) if opened.kind == "raw" else find_value(opened, record, feature, frame)
    count = min(count, MAX_PAGE)
    if isinstance(value, (bytes, bytearray)):
        text = bytes(value).decode("utf-8", "backslashreplace")
        return {"name": feature, "total": len(text), "first": first, "values": [text[first : first + count]]}
    flat = np.asarray(value).reshape(-1)
    return {
        "name": feature,
        "total": len(flat),
        "first": first,
        "values": value_to_json_list(flat[first : first + count]),
    }


# ---- bytes -----------------------------------------------------------------------------------------------------------


def describe_frame(opened: Opened, record: int, at: int, count: int) -> Json:
    """Return a page of the bytes of a record with its frame, explained."""
    place = opened.locate(record)
    frame = opened.read_bytes(place.shard, place.offset, 8)
    total = min(int.from_bytes(frame, "little") + 16, _measure_rest(opened, record))
    return _describe_bytes_at(opened, place.shard, place.offset, total, at, count, is_frame=True)


def describe_bytes_at(opened: Opened, shard: int, offset: int, at: int, count: int) -> Json:
    """Return the bytes around a place of a shard, explained as a frame that starts there."""
    if not 0 <= shard < len(opened.paths):
        raise LookupError(f"shard {shard} of {len(opened.paths)}")
    at = max(-offset, at)
    return _describe_bytes_at(opened, shard, offset, None, at, count, is_frame=False)


def _measure_rest(opened: Opened, record: int) -> int:
    try:
        return opened.measure_frame(record)
    except TfrkitError:
        return 1 << 26  # a damaged record: its length may be wrong


def _describe_bytes_at(
    opened: Opened, shard: int, offset: int, total: int | None, at: int, count: int, *, is_frame: bool
) -> Json:
    count = max(0, min(count, MAX_HEX))
    page = opened.read_bytes(shard, offset + at, count if total is None else max(0, min(count, total - at)))
    nbytes = max(at + len(page), 0) if total is None else total
    frame = opened.read_bytes(shard, offset, min(nbytes, 1 << 26))
    fields = explain_frame(frame, opened.kind, start=at, stop=at + len(page), limit=MAX_FIELDS)
    return {
        "file": os.path.basename(opened.paths[shard]),
        "shard": shard,
        "offset": offset,
        "total": len(frame) if total is None else total,
        "at": at,
        "hex": page.hex(),
        "is_frame": is_frame,
        "fields": [field.to_json() for field in fields],
    }
