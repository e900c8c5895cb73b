"""Folders of pictures with labels, boxes and masks, and clips of frames."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from streets.building import build_from
from streets.make_written import NUM_ROWS
from streets.pictures import ROTATED, draw, encode, save
from streets.storages import Storage
from streets.truth import LIST, Feature, Made, Row, Truth, freeze, freeze_frames

CLASSES = ("cat", "dog", "fish")
_IMAGE = Feature("bytes", logical="image")
_BYTES = Feature("bytes")
_INT = Feature()
_WIDTH, _HEIGHT = 8, 6


def _truth(
    features: dict[str, Feature], rows: Sequence[dict[str, Any]], kind: str = "example", masks: Sequence[str] = ()
) -> Truth:
    frozen: list[Row] = []
    for row in rows:
        frozen.append({
            name: freeze_frames(value, features[name]) if name.endswith(LIST) else freeze(value, features[name])
            for name, value in row.items()
        })  # fmt: skip
    return Truth(features, frozen, kind, masks=frozenset(masks))


def _picture(data: bytes, kind: str, name: str, width: int = _WIDTH, height: int = _HEIGHT) -> dict[str, Any]:
    return {
        "image/encoded": data,
        "image/format": kind,
        "image/height": height,
        "image/width": width,
        "image/channels": 3,
        "image/filename": name,
    }


_PICTURE = {
    "image/encoded": _IMAGE,
    "image/format": _BYTES,
    "image/height": _INT,
    "image/width": _INT,
    "image/channels": _INT,
    "image/filename": _BYTES,
}


# ---- classes -----------------------------------------------------------------------------------------------------

_CLASSIFIED = {
    **_PICTURE,
    "image/class/label": Feature(logical="class_label", classes=CLASSES),
    "image/class/text": _BYTES,
}


def make_class_folders(folder: Path, storage: Storage) -> Made:
    rows = []
    for i in range(NUM_ROWS):
        kind = "JPEG" if i % 4 == 3 else "PNG"
        name = f"{CLASSES[i % 3]}/{i:02d}.{'jpg' if kind == 'JPEG' else 'png'}"
        data = save(folder / "in" / name, encode(draw(i), kind))
        label = {"image/class/label": i % 3, "image/class/text": CLASSES[i % 3]}
        rows.append({**_picture(data, kind.lower(), name), **label})
    return build_from(folder, storage, _truth(_CLASSIFIED, rows), "class-folders", folder / "in")


def make_class_folders_exif(folder: Path, storage: Storage) -> Made:
    """Photos with an EXIF orientation; height and width are those of the stored pixels."""
    rows = []
    for i in range(NUM_ROWS):
        name = f"{CLASSES[i % 3]}/{i:02d}.jpg"
        data = save(folder / "in" / name, encode(draw(i, (16, 12)), "JPEG", ROTATED))
        label = {"image/class/label": i % 3, "image/class/text": CLASSES[i % 3]}
        rows.append({**_picture(data, "jpeg", name, 16, 12), **label})
    return build_from(folder, storage, _truth(_CLASSIFIED, rows), "class-folders", folder / "in")


def make_names_class(folder: Path, storage: Storage) -> Made:
    features = {
        "image": _IMAGE,
        "height": _INT,
        "width": _INT,
        "channels": _INT,
        "format": _BYTES,
        "filename": _BYTES,
        "label": Feature(logical="class_label", classes=CLASSES),
        "label/text": _BYTES,
    }
    rows = []
    for i in range(NUM_ROWS):
        name = f"{CLASSES[i % 3]}{i:02d}.png"
        data = save(folder / "in" / name, encode(draw(i), "PNG"))
        rows.append({"image": data, "height": _HEIGHT, "width": _WIDTH, "channels": 3, "format": "png",
                     "filename": name, "label": i % 3, "label/text": CLASSES[i % 3]})  # fmt: skip
    truth = _truth(features, rows)
    return build_from(folder, storage, truth, "file-names", folder / "in", "--label", "^(?P<class>[a-z]+)")


_DIGITS = tuple("0123456789")


def _text_features(image: Feature) -> dict[str, Feature]:
    digit = Feature(logical="class_label", classes=_DIGITS)
    return {
        "image": image,
        "height": _INT,
        "width": _INT,
        "channels": _INT,
        "format": _BYTES,
        "filename": _BYTES,
        "label0": digit,
        "label1": digit,
        "label/ids": Feature("int64", (2,), classes=_DIGITS),
        "label/text": _BYTES,
        "label/length": _INT,
    }


def _text_row(i: int, image: Any, width: int, height: int, channels: int, kind: str) -> dict[str, Any]:
    return {"image": image, "height": height, "width": width, "channels": channels, "format": kind,
            "filename": f"{i:02d}_x.png", "label0": i // 10, "label1": i % 10, "label/ids": [i // 10, i % 10],
            "label/text": f"{i:02d}", "label/length": 2}  # fmt: skip


def make_names_text(folder: Path, storage: Storage) -> Made:
    rows = []
    for i in range(NUM_ROWS):
        data = save(folder / "in" / f"{i:02d}_x.png", encode(draw(i), "PNG"))
        rows.append(_text_row(i, data, _WIDTH, _HEIGHT, 3, "png"))
    truth = _truth(_text_features(_IMAGE), rows)
    return build_from(folder, storage, truth, "file-names", folder / "in", "--label", "^(?P<text>[0-9]{2})")


def make_names_raw(folder: Path, storage: Storage) -> Made:
    """Raw gray pixels: the size is in the schema and in the record, not in the bytes."""
    rows = []
    for i in range(NUM_ROWS):
        image = Image.new("L", (_WIDTH, _HEIGHT), i * 20)
        save(folder / "in" / f"{i:02d}_x.png", encode(image, "PNG"))
        rows.append(_text_row(i, np.full((2, 4, 1), i * 20, "uint8"), 4, 2, 1, "raw"))
    truth = _truth(_text_features(Feature("uint8", (2, 4, 1), "raw", logical="image")), rows)
    options = ("--label", "^(?P<text>[0-9]{2})", "--gray", "--resize", "4x2")
    return build_from(folder, storage, truth, "file-names", folder / "in", *options)


# ---- masks and boxes ---------------------------------------------------------------------------------------------

_MASK = "image/segmentation/class/encoded"
MASK_VALUES = (0, 1, 2, 255)
_MASK_CLASSES = ("background", "cat", "dog")


def make_voc_seg(folder: Path, storage: Storage) -> Made:
    features = {
        **_PICTURE,
        _MASK: Feature("bytes", logical="mask", classes=_MASK_CLASSES),
        "image/segmentation/class/format": _BYTES,
    }
    root, rows = folder / "in", []
    save(root / "classes.txt", "".join(f"{name}\n" for name in _MASK_CLASSES).encode())
    for i in range(NUM_ROWS):
        picture = save(root / f"JPEGImages/{i:02d}.jpg", encode(draw(i), "JPEG"))
        mask = Image.fromarray(np.array([[MASK_VALUES[(x + i) % 4] for x in range(_WIDTH)]] * _HEIGHT, "uint8"))
        pixels = save(root / f"SegmentationClass/{i:02d}.png", encode(mask, "PNG"))
        rows.append({**_picture(picture, "jpeg", f"{i:02d}.jpg"), _MASK: pixels,
                     "image/segmentation/class/format": "png"})  # fmt: skip
    save(root / "ImageSets/Segmentation/all.txt", "".join(f"{i:02d}\n" for i in range(NUM_ROWS)).encode())
    return build_from(folder, storage, _truth(features, rows, masks=[_MASK]), "voc-seg", root,
                      "--classes", str(root / "classes.txt"))  # fmt: skip


def _named_from(first: int) -> tuple[str, ...]:
    """Names by id; ids below the first have no name."""
    return (*(f"unused {label}" for label in range(first)), *CLASSES)


_BOXES = {
    "image/encoded": _IMAGE,
    "image/format": _BYTES,
    "image/height": _INT,
    "image/width": _INT,
    "image/channels": _INT,
    "image/filename": _BYTES,
    "image/source_id": _BYTES,
    "image/key/sha256": _BYTES,
    **{f"image/object/bbox/{side}": Feature("float32", (None,)) for side in ("xmin", "xmax", "ymin", "ymax")},
    "image/object/class/label": Feature("int64", (None,), logical="class_label", classes=_named_from(1)),
    "image/object/class/text": Feature("bytes", (None,)),
}


def _objects(i: int) -> list[tuple[int, int, int, int, int]]:
    """Class, xmin, ymin, xmax, ymax in pixels; every third image has none."""
    return [((i + k) % 3, k, k, k + 3, k + 2) for k in range(i % 3)]


def _boxes(i: int, data: bytes, kind: str, name: str, *, first: int, size: tuple[int, int]) -> dict[str, Any]:
    width, height = size
    objects = _objects(i)
    return {
        "image/encoded": data,
        "image/format": kind,
        "image/height": height,
        "image/width": width,
        "image/channels": 3,
        "image/filename": name,
        "image/source_id": name,
        "image/key/sha256": hashlib.sha256(data).hexdigest(),
        "image/object/bbox/xmin": np.array([one[1] / width for one in objects], "float32"),
        "image/object/bbox/ymin": np.array([one[2] / height for one in objects], "float32"),
        "image/object/bbox/xmax": np.array([one[3] / width for one in objects], "float32"),
        "image/object/bbox/ymax": np.array([one[4] / height for one in objects], "float32"),
        "image/object/class/label": [one[0] + first for one in objects],
        "image/object/class/text": [CLASSES[one[0]].encode() for one in objects],
    }


def _make_voc_det(folder: Path, storage: Storage, kind: str, orientation: int | None, size: tuple[int, int]) -> Made:
    features = {
        **_BOXES,
        "image/object/difficult": Feature("int64", (None,)),
        "image/object/truncated": Feature("int64", (None,)),
        "image/object/view": Feature("bytes", (None,)),
    }
    root, rows = folder / "in", []
    save(root / "classes.txt", "".join(f"{name}\n" for name in CLASSES).encode())
    for i in range(NUM_ROWS):
        name = f"{i:02d}.{'jpg' if kind == 'JPEG' else 'png'}"
        data = save(root / "JPEGImages" / name, encode(draw(i, size), kind, orientation))
        objects = "".join(
            f"<object><name>{CLASSES[one[0]]}</name><pose>Left</pose><truncated>0</truncated><difficult>1</difficult>"
            f"<bndbox><xmin>{one[1]}</xmin><ymin>{one[2]}</ymin><xmax>{one[3]}</xmax><ymax>{one[4]}</ymax></bndbox>"
            "</object>"
            for one in _objects(i)
        )
        text = (
            f"<annotation><filename>{name}</filename><size><width>{size[0]}</width><height>{size[1]}</height>"
            f"<depth>3</depth></size>{objects}</annotation>"
        )
        save(root / f"Annotations/{i:02d}.xml", text.encode())
        count = len(_objects(i))
        rows.append({**_boxes(i, data, kind.lower(), name, first=1, size=size),
                     "image/object/difficult": [1] * count, "image/object/truncated": [0] * count,
                     "image/object/view": [b"Left"] * count})  # fmt: skip
    truth = _truth(features, rows)
    return build_from(folder, storage, truth, "voc-det", root, "--classes", str(root / "classes.txt"))


def make_voc_det(folder: Path, storage: Storage) -> Made:
    return _make_voc_det(folder, storage, "PNG", None, (_WIDTH, _HEIGHT))


def make_voc_det_exif(folder: Path, storage: Storage) -> Made:
    """Boxes in the coordinates of the stored pixels, as annotation tools write them for such photos."""
    return _make_voc_det(folder, storage, "JPEG", ROTATED, (16, 12))


def make_csv_boxes(folder: Path, storage: Storage) -> Made:
    features = {
        **_BOXES,
        "image/object/difficult": Feature("int64", (None,)),
        "image/object/truncated": Feature("int64", (None,)),
        "image/object/view": Feature("bytes", (None,)),
    }
    root, rows = folder / "in", []
    lines = ["filename,width,height,class,xmin,ymin,xmax,ymax,difficult,pose"]
    for i in range(NUM_ROWS):
        name = f"{i:02d}.png"
        data = save(root / name, encode(draw(i), "PNG"))
        boxes = [",".join(map(str, (CLASSES[one[0]], *one[1:], 1, "Left"))) for one in _objects(i)]
        lines += [f"{name},{_WIDTH},{_HEIGHT},{box}" for box in boxes or [",,,,,,"]]
        count = len(boxes)
        rows.append({**_boxes(i, data, "png", name, first=1, size=(_WIDTH, _HEIGHT)),
                     "image/object/difficult": [1] * count, "image/object/truncated": [0] * count,
                     "image/object/view": [b"Left"] * count})  # fmt: skip
    save(root / "boxes.csv", "\n".join(lines).encode())
    classes = save_names(root / "names.txt")
    return build_from(folder, storage, _truth(features, rows), "csv-boxes", root / "boxes.csv", "--classes", classes)


def save_names(path: Path) -> str:
    save(path, "".join(f"{name}\n" for name in CLASSES).encode())
    return str(path)


def make_coco(folder: Path, storage: Storage) -> Made:
    features = {
        **_BOXES,
        "image/object/class/label": Feature("int64", (None,), logical="class_label", classes=_named_from(5)),
        "image/source_id": Feature("bytes", is_number=True),
        "image/object/is_crowd": Feature("int64", (None,)),
        "image/object/area": Feature("float32", (None,)),
        "image/object/mask": Feature("bytes", (None,)),
    }
    root, rows, annotations, images = folder / "in", [], [], []
    for i in range(NUM_ROWS):
        name = f"{i:02d}.png"
        data = save(root / "images" / name, encode(draw(i), "PNG"))
        images.append({"id": i, "file_name": name, "width": _WIDTH, "height": _HEIGHT})
        masks = []
        for label, xmin, ymin, xmax, ymax in _objects(i):
            outline = [xmin, ymin, xmax, ymin, xmax, ymax, xmin, ymax]
            annotations.append({
                "id": len(annotations) + 1, "image_id": i, "category_id": label + 5, "area": 6, "iscrowd": 0,
                "bbox": [xmin, ymin, xmax - xmin, ymax - ymin], "segmentation": [outline]})  # fmt: skip
            pixels = np.zeros((_HEIGHT, _WIDTH), "uint8")
            pixels[ymin:ymax, xmin:xmax] = 1
            masks.append(encode(Image.fromarray(pixels), "PNG"))
        count = len(_objects(i))
        rows.append({**_boxes(i, data, "png", name, first=5, size=(_WIDTH, _HEIGHT)),
                     "image/source_id": str(i), "image/object/is_crowd": [0] * count,
                     "image/object/area": np.full(count, 6, "float32"), "image/object/mask": masks})  # fmt: skip
    categories = [{"id": label + 5, "name": name} for label, name in enumerate(CLASSES)]
    document = {"images": images, "annotations": annotations, "categories": categories}
    save(root / "all.json", json.dumps(document).encode())
    truth = _truth(features, rows, masks=["image/object/mask"])
    return build_from(folder, storage, truth, "coco", root / "all.json",
                      "--image-root", str(root / "images"), "--masks")  # fmt: skip


def make_yolo(folder: Path, storage: Storage) -> Made:
    root, rows = folder / "in", []
    names = ", ".join(CLASSES)
    save(root / "data.yaml", f"names: [{names}]\n".encode())
    for i in range(NUM_ROWS):
        name = f"{i:02d}.png"
        data = save(root / "images" / name, encode(draw(i, (16, 8)), "PNG"))
        lines = [
            f"{one[0]} {(one[1] + one[3]) / 32} {(one[2] + one[4]) / 16} {(one[3] - one[1]) / 16} "
            f"{(one[4] - one[2]) / 8}\n"
            for one in _objects(i)
        ]
        save(root / f"labels/{i:02d}.txt", "".join(lines).encode())
        rows.append(_boxes(i, data, "png", name, first=1, size=(16, 8)))
    return build_from(folder, storage, _truth(_BOXES, rows), "yolo", root)


# ---- clips -------------------------------------------------------------------------------------------------------


def make_frames(folder: Path, storage: Storage) -> Made:
    features = {
        "clip/media_id": _BYTES,
        "clip/length": _INT,
        "clip/label/index": Feature(logical="class_label", classes=CLASSES),
        "clip/label/string": _BYTES,
        "image/format": _BYTES,
        "image/height": _INT,
        "image/width": _INT,
        "image/channels": _INT,
        "image/encoded" + LIST: _IMAGE,
        "image/filename" + LIST: _BYTES,
    }
    rows = []
    for i in range(NUM_ROWS):
        clip = f"{CLASSES[i % 3]}/clip{i:02d}"
        names = [f"{k}.png" for k in range(i % 3 + 1)]
        frames = [save(folder / "in" / clip / name, encode(draw(i * 3 + k), "PNG")) for k, name in enumerate(names)]
        rows.append({
            "clip/media_id": clip, "clip/length": len(names), "clip/label/index": i % 3,
            "clip/label/string": CLASSES[i % 3], "image/format": "png", "image/height": _HEIGHT,
            "image/width": _WIDTH, "image/channels": 3, "image/encoded" + LIST: frames,
            "image/filename" + LIST: names,
        })  # fmt: skip
    return build_from(folder, storage, _truth(features, rows, "sequence_example"), "frames", folder / "in")


def make_frames_table(folder: Path, storage: Storage) -> Made:
    features = {
        "video": _BYTES,
        "kind": _INT,
        "t" + LIST: _INT,
        "speed" + LIST: Feature("float32"),
        "word" + LIST: _BYTES,
    }
    lines, rows = ["video,kind,t,speed,word"], []
    for i in range(NUM_ROWS):
        count = i % 3 + 1
        lines += [f"clip{i:02d},{i % 2},{k},{k / 4},w{k}" for k in range(count)]
        rows.append({"video": f"clip{i:02d}", "kind": i % 2, "t" + LIST: list(range(count)),
                     "speed" + LIST: [k / 4 for k in range(count)],
                     "word" + LIST: [f"w{k}" for k in range(count)]})  # fmt: skip
    save(folder / "in.csv", ("\n".join(lines) + "\n").encode())
    truth = _truth(features, rows, "sequence_example")
    return build_from(folder, storage, truth, "frames", folder / "in.csv",
                      "--clip-column", "video", "--order-column", "t", "--context", "kind")  # fmt: skip
