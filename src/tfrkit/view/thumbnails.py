"""Small pictures of records at known places of files, as JSON with their bytes in base64."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tfrkit._types import Record, Row
from tfrkit.codec.decode import Decoder
from tfrkit.container.compression import InflateReader
from tfrkit.container.shards import Shard
from tfrkit.errors import CodecError, ContainerError, SchemaError
from tfrkit.features.schema import Schema
from tfrkit.images.jpeg import encode_jpeg
from tfrkit.pictures.colors import to_hex
from tfrkit.pictures.guesses import NUM_PROBED, PictureGuesses
from tfrkit.pictures.picture import Picture, PictureReader
from tfrkit.sidecars.class_names import ClassNames

SIDE = 112
_QUALITY = 82
# Smaller pictures are drawings or digits: PNG keeps their pixels.
_MAX_PNG_SIDE = 48
_MAX_BOXES = 12
_MAX_CAPTION = 80
# Larger records are not shown.
_MAX_NBYTES = 32 << 20
_SKIP_NBYTES = 4 << 20

Json = dict[str, Any]
Key = tuple[str, int]


class Spot(Protocol):
    """Where a record is: its shard, ordinal and inflated offset there."""

    @property
    def shard(self) -> str: ...
    @property
    def record(self) -> int: ...
    @property
    def offset(self) -> int: ...


class Thumbnails:
    """Pictures of records at known places. What a picture is made of is guessed from those at `first`."""

    def __init__(self, schema: Schema, names: ClassNames, first: Sequence[Spot], *, given: Mapping[str, str]) -> None:
        self._payloads = dict(_read_payloads(first))
        self._decoder = None if schema.kind == "raw" else Decoder(schema)
        self._reader: PictureReader | None = None
        self.label: str | None = None
        """The feature whose classes the pictures show, or None."""
        if self._decoder is None:
            return
        rows = (self._decode(place) for place in first[:NUM_PROBED])
        guesses = PictureGuesses(schema, given, lambda: [row for row in rows if row is not None], guesses_shape=True)
        try:
            features = guesses.features
        except SchemaError:
            return  # no feature is an image
        boxes = features.boxes
        objects = None if boxes is None else boxes.text or boxes.label
        self.label = features.labels[0] if features.labels else objects
        self._reader = PictureReader(schema, features, names, side=SIDE, keeps_pixels=True, enlarges=False)

    def read(self, places: Sequence[Spot]) -> None:
        """Read the records at more places, each file once."""
        self._payloads.update(_read_payloads(places))

    def make(self, place: Spot, *, only: str | None = None) -> Json | None:
        """Return the picture of a record that was read, with all boxes or those of one class; None without pictures."""
        row = self._decode(place)
        if self._reader is None or row is None:
            return None
        picture = self._reader.read(row)
        made: Json = {"caption": picture.label[:_MAX_CAPTION], "cause": picture.cause, "data": None, "boxes": []}
        if picture.pixels is None:
            return made
        pixels = np.ascontiguousarray(picture.pixels)
        made |= {"height": pixels.shape[0], "width": pixels.shape[1], "boxes": _list_boxes(picture, only)}
        kind, data = _encode(pixels)
        return made | {"type": kind, "data": base64.b64encode(data).decode()}

    def _decode(self, place: Spot) -> Row | None:
        payload = self._payloads.get((place.shard, place.offset))
        if payload is None or self._decoder is None:
            return None
        builder = self._decoder.new_row_builder()
        try:
            if builder.append_record(payload) is not None:
                return None
            row: Row = builder.finish()[0]
        except (CodecError, SchemaError):
            return None
        return row


def _list_boxes(picture: Picture, only: str | None) -> list[Json]:
    chosen = [box for box in picture.boxes if only in (None, box.text)][:_MAX_BOXES]
    return [{"box": [round(float(side), 4) for side in box[:4]], "color": to_hex(box.color)} for box in chosen]


def _encode(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> tuple[str, bytes]:
    if max(pixels.shape[:2]) > _MAX_PNG_SIDE:
        return "image/jpeg", encode_jpeg(pixels, _QUALITY)
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return "image/png", file.getvalue()


def _read_payloads(places: Sequence[Spot]) -> Iterator[tuple[Key, Record]]:
    """Yield the record at each place, each file once from its front; those in a damaged file are left out.

    Raises `StorageError` for a file that cannot be read: it could, when its statistics were made.
    """
    by_shard: dict[str, set[int]] = {}
    for place in places:
        payload = getattr(place, "payload", None)
        if payload is not None:
            yield (place.shard, place.offset), payload
        else:
            by_shard.setdefault(place.shard, set()).add(place.offset)
    for path, offsets in by_shard.items():
        try:
            shard = Shard.open(path)
        except ContainerError:
            continue
        try:
            source = _Forward(shard) if shard.compression != "none" else shard.reader
            for offset in sorted(offsets):
                nbytes = int.from_bytes(source.read_at(offset, 8), "little")
                if nbytes <= _MAX_NBYTES:
                    yield (path, offset), bytes(source.read_at(offset + 12, nbytes))
        except ContainerError:
            continue
        finally:
            shard.close()


class _Forward:
    """Reads a compressed shard at ascending offsets, inflating it once."""

    def __init__(self, shard: Shard) -> None:
        self._reader = InflateReader(shard.reader, shard.compression)
        self._at = 0

    def read_at(self, offset: int, nbytes: int) -> bytes:
        while self._at < offset:
            skipped = len(self._reader.read(min(_SKIP_NBYTES, offset - self._at)))
            if skipped == 0:
                return b""
            self._at += skipped
        parts = []
        while nbytes > 0 and (part := self._reader.read(nbytes)):
            parts.append(part)
            nbytes -= len(part)
            self._at += len(part)
        return b"".join(map(bytes, parts))
