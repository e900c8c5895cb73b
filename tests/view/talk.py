"""Rows of the test dataset, and readers of the server's streams."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

TOKEN = "0123456789abcdef0123456789abcdef"
SIDES = ("xmin", "ymin", "xmax", "ymax")


def encode(pixels: np.ndarray[Any, Any], format: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format)
    return file.getvalue()


def make_row(number: int) -> dict[str, Any]:
    pixels = np.full((30, 40, 3), (number * 20 % 256, 90, 200), np.uint8)
    mask = np.zeros((30, 40), np.uint8)
    mask[5:15, 10:30] = number % 3 + 1
    boxes = {f"image/object/bbox/{side}": [at] for side, at in zip(SIDES, (0.25, 0.5, 0.75, 1.0), strict=True)}
    return {
        "image/encoded": encode(pixels, "JPEG"),
        "image/segmentation/class/encoded": encode(mask, "PNG"),
        "image/object/class/text": [b"abc"[number % 3 : number % 3 + 1]],
        "label": number % 3,
        "score": number / 4,
        "note": f"record {number}",
        **boxes,
    }


Connect = Callable[..., Any]


def read_events(client: Any, address: str) -> list[tuple[str, Any]]:
    """All events of a stream."""
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    events = []
    for block in answer.text.strip().split("\n\n"):
        name, data = block.split("\n")
        events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return events


def read_tiles(client: Any, address: str) -> list[tuple[dict[str, Any], list[bytes]]]:
    """Tiles of a stream, by position."""
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    data, at, tiles = answer.content, 0, []
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        row = json.loads(data[at + 4 : at + 4 + length])
        at += 4 + length
        parts = []
        for part in row["parts"]:
            parts.append(data[at : at + part["bytes"]])
            at += part["bytes"]
        tiles.append((row, parts))
    return sorted(tiles, key=lambda tile: tile[0]["position"])


def select(client: Any, query: str) -> str:
    """Make a selection; its id."""
    name, data = read_events(client, f"/api/select?{query}")[-1]
    assert name == "exact", data
    return str(data["sel"])
