"""Tiles of the grid: caption and facts of an item, and its picture in the size of the tile."""

from __future__ import annotations

import json
import struct
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrkit.errors import CodecError, ContainerError, SchemaError, StorageError, WireError
from tfrkit.images.jpeg import encode_jpeg
from tfrkit.ops.preview import preview_row
from tfrkit.pictures.masks import encode_indices
from tfrkit.pictures.picture import Picture
from tfrkit.view.describe import to_json_box, to_json_caption
from tfrkit.view.guesses import Guesses
from tfrkit.view.opened import Opened, to_json_damage

MIN_SIDE, MAX_SIDE = 32, 512
MAX_TILES = 200
_QUALITY = 80
_MAX_BOXES = 100
_MAX_CARD = 8
_MAX_CARD_TEXT = 200
_CACHE_NBYTES = 64 << 20
_ENCODER = json.JSONEncoder(separators=(",", ":"))

Json = dict[str, Any]
Tile = tuple[Json, list[bytes]]
"""The JSON of a place without its position, and its pictures."""


class TileCache:
    """The newest tiles, up to a number of bytes. Safe to share between threads."""

    def __init__(self, max_nbytes: int = _CACHE_NBYTES) -> None:
        self._max_nbytes = max_nbytes
        self._tiles: OrderedDict[Any, Tile] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()

    def __contains__(self, key: Any) -> bool:
        return key in self._tiles

    def get(self, key: Any) -> Tile | None:
        with self._lock:
            found = self._tiles.get(key)
            if found is not None:
                self._tiles.move_to_end(key)
            return found

    def put(self, key: Any, tile: Tile) -> None:
        nbytes = _measure(tile)
        with self._lock:
            if key in self._tiles:
                return
            self._tiles[key] = tile
            self._nbytes += nbytes
            while self._nbytes > self._max_nbytes:
                _, dropped = self._tiles.popitem(last=False)
                self._nbytes -= _measure(dropped)


def _measure(tile: Tile) -> int:
    return sum(map(len, tile[1])) + 2000


def make_tile(opened: Opened, guesses: Guesses, item: int, side: int | None, *, masks: bool = True) -> Tile:
    """Make the tile of an item. Without `side` there are no pictures; a failure is part of the tile."""
    result: Json = {"record": item if item >= 0 else None, "shard": None, "caption": [], "width": None, "height": None}
    result |= {"boxes": [], "more_boxes": 0, "classes": [], "card": [], "damage": None, "cause": None, "parts": []}
    if item < 0:
        damage = to_json_damage(opened, opened.broken[-1 - item])
        return result | {"shard": damage["shard"], "damage": damage}, []
    result["shard"] = opened.locate(item).shard if opened.is_complete and len(opened.paths) > 1 else 0
    try:
        if guesses.features is None:
            row: Any = opened.read(item) if opened.kind == "raw" else opened.read_row(item)
            return result | {"card": _make_card(row)}, []
        reader = guesses.new_reader(side or MIN_SIDE)
        assert reader is not None
        picture = reader.read(opened.read_row(item, guesses.features.names))
    except (ContainerError, WireError) as error:
        finding = opened.find_damage(item, error)
        return result | {"damage": None if finding is None else to_json_damage(opened, finding)}, []
    except (CodecError, SchemaError, StorageError) as error:
        return result | {"cause": error.what}, []
    result |= {"caption": to_json_caption(picture.caption), "cause": picture.cause}
    if picture.size is not None:
        result |= {"height": picture.size[0], "width": picture.size[1]}
    result["boxes"] = [to_json_box(box) for box in picture.boxes[:_MAX_BOXES]]
    result["more_boxes"] = max(0, len(picture.boxes) - _MAX_BOXES)
    if picture.numbers is not None:
        result["classes"] = [int(number) for number in np.unique(picture.numbers)]
    pictures: list[bytes] = []
    if side is not None and picture.pixels is not None:
        result["parts"], pictures = _encode_parts(picture, masks)
    return result, pictures


def _encode_parts(picture: Picture, masks: bool) -> tuple[list[Json], list[bytes]]:
    assert picture.pixels is not None
    encoded = [
        ("image", "image/jpeg", encode_jpeg(np.ascontiguousarray(picture.pixels), _QUALITY), picture.pixels.shape)
    ]
    if masks and picture.numbers is not None:
        numbers = np.minimum(picture.numbers, 255).astype(np.uint8)
        encoded.append(("mask", "image/png", encode_indices(numbers), numbers.shape))
    parts = [
        {"name": name, "type": kind, "bytes": len(data), "width": shape[1], "height": shape[0]}
        for name, kind, data, shape in encoded
    ]
    return parts, [data for _, _, data, _ in encoded]


def _make_card(row: Any) -> list[Json]:
    texts = preview_row(row)
    return [{"name": name, "text": text[:_MAX_CARD_TEXT]} for name, text in list(texts.items())[:_MAX_CARD]]


def pack_tile(row: Json, pictures: Sequence[bytes]) -> bytes:
    """Return a tile as bytes: length of its JSON, JSON, pictures."""
    text = _ENCODER.encode(row).encode()
    return b"".join([struct.pack("<I", len(text)), text, *pictures])
