"""Small datasets that show everything the page can show, made with our own writer."""

from __future__ import annotations

import io
import math
import struct
import wave
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

import tfrkit as tfr

SHAPES = {1: "circle", 2: "square", 3: "triangle"}
SIZE = (320, 240)


def make_scenes(folder: Path, count: int = 96) -> Path:
    """Pictures of shapes with a mask, boxes with names and scores, a label and text; two splits."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(3)
    for split, numbers in (("train", range(count * 3 // 4)), ("test", range(count * 3 // 4, count))):
        with tfr.Writer(str(folder / f"scenes-{split}.tfrecord-00000-of-00001"), floats="float32") as writer:
            for number in numbers:
                writer.write(scene(number, random))
    return folder


def scene(number: int, random: np.random.Generator) -> dict[str, object]:
    width, height = SIZE
    image = background(number)
    mask = Image.new("L", SIZE, 0)
    pen, stencil = ImageDraw.Draw(image), ImageDraw.Draw(mask)
    boxes, kinds = [], []
    for _ in range(1 + number % 3):
        kind = int(random.choice([1, 1, 1, 2, 2, 3]))
        side = int(random.integers(50, 110))
        x, y = int(random.integers(8, width - side - 8)), int(random.integers(8, height - side - 8))
        color = tuple(int(part) for part in random.integers(60, 240, 3))
        for draw, fill in ((pen, color), (stencil, kind)):
            draw_shape(draw, kind, (x, y, x + side, y + side), fill)
        boxes.append((x / width, y / height, (x + side) / width, (y + side) / height))
        kinds.append(kind)
    stencil.rectangle((0, height - 6, width, height), fill=255)
    sides = dict(zip(("xmin", "ymin", "xmax", "ymax"), np.array(boxes, np.float32).T, strict=True))
    return {
        "image/encoded": encode(image, "JPEG"),
        "image/height": height,
        "image/width": width,
        "image/filename": f"scene-{number:04d}.jpg",
        "image/segmentation/class/encoded": encode(mask, "PNG"),
        **{f"image/object/bbox/{name}": list(map(float, values)) for name, values in sides.items()},
        "image/object/class/text": [SHAPES[kind] for kind in kinds],
        "image/object/class/label": kinds,
        "label": kinds[0],
        "brightness": float(np.asarray(image).mean()),
        "description": f"{len(kinds)} shapes, the first is a {SHAPES[kinds[0]]}",
    }


def background(number: int) -> Image.Image:
    width, height = SIZE
    y, x = np.mgrid[0:height, 0:width]
    warm = (np.sin(x / 60 + number) + np.cos(y / 45 + number / 3)) * 18
    base = np.stack([150 + warm + y / 8, 160 + warm, 175 - warm / 2 + x / 12], axis=-1) - number % 7 * 9
    return Image.fromarray(base.clip(0, 255).astype(np.uint8))


def draw_shape(pen: ImageDraw.ImageDraw, kind: int, box: tuple[int, int, int, int], fill: object) -> None:
    left, top, right, bottom = box
    if kind == 1:
        pen.ellipse(box, fill=fill)  # type: ignore[arg-type]
    elif kind == 2:
        pen.rectangle(box, fill=fill)  # type: ignore[arg-type]
    else:
        pen.polygon([(left, bottom), (right, bottom), ((left + right) // 2, top)], fill=fill)  # type: ignore[arg-type]


def encode(image: Image.Image, kind: str) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, quality=90)
    return out.getvalue()


def make_mixed(folder: Path, *, changed: int | None = None) -> Path:
    """Records without pictures, one of them `changed`: text, numbers, lists, sound, JSON, bytes, hostile text."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "mixed.tfrecord"
    with tfr.Writer(str(path), floats="float32") as writer:
        for number in range(40):
            writer.write(
                {
                    "id": number,
                    "text": HOSTILE[number % len(HOSTILE)],
                    "score": math.sin(number / 4),
                    "tokens": list(range(number % 7 + 1)),
                    "signal": [math.sin(i / 9 + number) * math.exp(-i / 90) for i in range(300)],
                    "sound": tone(220 + 20 * number),
                    "meta": f'{{"number": {number}, "list": [1, 2, 3]}}',
                    "blob": bytes(range(80)),
                    "constant": 8 if number == changed else 7,
                }
            )
    return path


HOSTILE = [
    "a plain sentence about nothing in particular",
    "<img src=x onerror=alert(1)><script>alert(2)</script>",
    "right to left: \u202egnirts siht\u202c and a bell \u0007",
    "中文文本，以及 emoji 🎈",
    "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(3)'/>",
]


def tone(frequency: float) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        values = [int(9000 * math.sin(2 * math.pi * frequency * i / 8000)) for i in range(2000)]
        sound.writeframes(struct.pack(f"<{len(values)}h", *values))
    return out.getvalue()


def make_damaged(folder: Path) -> Path:
    """Pictures with one payload damaged and the file truncated."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "damaged.tfrecord"
    random = np.random.default_rng(5)
    with tfr.Writer(str(path), floats="float32") as writer:
        for number in range(20):
            writer.write(scene(number, random))
    data = bytearray(path.read_bytes())
    starts = frame_starts(data)
    data[starts[4] + 12 + 200] ^= 0xFF
    del data[starts[19] + 500 :]
    path.write_bytes(bytes(data))
    return path


def frame_starts(data: bytes | bytearray) -> list[int]:
    starts, at = [], 0
    while at < len(data):
        starts.append(at)
        at += 8 + 4 + struct.unpack_from("<Q", data, at)[0] + 4
    return starts


def make_copies(folder: Path) -> Path:
    """Pictures in two splits; two of the training split are also in the test split."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(9)
    rows = [scene(number, random) for number in range(24)]
    for split, numbers in (("train", range(18)), ("test", [*range(18, 24), 3, 7])):
        with tfr.Writer(str(folder / f"copies-{split}.tfrecord"), floats="float32") as writer:
            for number in numbers:
                writer.write(rows[number])
    return folder


def make_people(folder: Path) -> Path:
    """Gray pictures with two objects of keypoints: seen, hidden (1), not given (0); in fractions, then in pixels."""
    folder.mkdir(parents=True, exist_ok=True)
    gray = Image.new("RGB", SIZE, (120, 120, 120))
    x, y = [0.25, 0.5, 0.75, 0.25, 0.5], [0.25, 0.25, 0.25, 0.75, float("nan")]
    with tfr.Writer(str(folder / "people.tfrecord"), floats="float32") as writer:
        for width, height in ((1, 1), SIZE):
            writer.write(
                {
                    "image/encoded": encode(gray, "PNG"),
                    "image/object/keypoint/x": [value * width for value in x],
                    "image/object/keypoint/y": [value * height for value in y],
                    "image/object/keypoint/visibility": [2, 1, 0, 2, 2],
                    "image/object/keypoint/num": [3, 2],
                }
            )
    return folder


def make_sequences(folder: Path) -> Path:
    """SequenceExamples: frames that are pictures, and numbers per frame."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "sequences.tfrecord"
    with tfr.Writer(str(path), floats="float32") as writer:
        for number in range(12):
            frames = [encode(frame(number, step), "PNG") for step in range(8)]
            steps = [[float(step)] for step in range(8)]
            writer.write({"context": {"name": f"run {number}"}, "feature_lists": {"image": frames, "speed": steps}})
    return path


def frame(number: int, step: int) -> Image.Image:
    image = background(number).resize((96, 72))
    ImageDraw.Draw(image).ellipse((step * 10, 20, step * 10 + 20, 40), fill=(220, 40, 60))
    return image
