"""The commands whose failures are tried: every verb that writes, every source of a build, every verb that reads."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image

import tfrkit as tfr
from tfrkit.testing.corruption import flip

NUM_RECORDS = 40

# Each writes below out* or changes the dataset d in place.
WRITERS: dict[str, list[str]] = {
    "convert": ["convert", "in.tfrecord", "-o", "out.tfrecord.gz"],
    "convert to a folder": ["convert", "in.tfrecord", "-o", "out/", "--compression", "zlib"],
    "merge": ["merge", "in.tfrecord", "more.tfrecord", "-o", "out.tfrecord"],
    "reshard": ["reshard", "in.tfrecord", "-o", "out/", "--shards", "3"],
    "split": ["split", "in.tfrecord", "-o", "out/", "--split", "a=.5,b=.5", "--seed", "1"],
    "shuffle": ["shuffle", "in.tfrecord", "-o", "out/", "--shards", "2", "--seed", "1"],
    "shuffle to a file": ["shuffle", "in.tfrecord", "-o", "out.tfrecord", "--seed", "1"],
    "sample": ["sample", "in.tfrecord", "-n", "10", "--seed", "1", "-o", "out.tfrecord"],
    "repair": ["repair", "bad.tfrecord", "-o", "out.tfrecord"],
    "index": ["index", "in.tfrecord"],
    "edit": ["edit", "d", "--where", "label = 3", "--set", "label = label + 1", "--in-place"],
    "append": ["append", "d", "more.tfrecord", "--split", "train", "--in-place"],
    "dedupe": ["dedupe", "d", "--by", "label", "--in-place"],
    "sheet": ["sheet", "in.tfrecord", "-o", "out.png"],
    "stats to html": ["stats", "in.tfrecord", "--html", "out.html"],
    "sql to parquet": ["sql", "select number, name from 'in.tfrecord' order by 1", "-o", "out.parquet"],
    "sql to tfrecord": ["sql", "select number, name from 'in.tfrecord' order by 1", "-o", "out.tfrecord"],
    "export images": ["export", "images", "in.tfrecord", "-o", "out"],
    "export csv": ["export", "csv", "in.tfrecord", "-o", "out.csv"],
    "export jsonl": ["export", "jsonl", "in.tfrecord", "-o", "out.jsonl"],
    "export npz": ["export", "npz", "in.tfrecord", "-o", "out.npz"],
    "export parquet": ["export", "parquet", "in.tfrecord", "-o", "out.parquet"],
    "export webdataset": ["export", "webdataset", "in.tfrecord", "-o", "out/"],
    "export coco": ["export", "coco", "boxes.tfrecord", "-o", "out"],
    "export voc": ["export", "voc", "boxes.tfrecord", "-o", "out"],
    "export yolo": ["export", "yolo", "boxes.tfrecord", "-o", "out"],
}

_SPLIT = ("-o", "out", "--split", "train=.5,test=.5", "--seed", "1", "--jobs", "1")
BUILDS: dict[str, list[str]] = {
    "class-folders": ["build", "class-folders", "classes", *_SPLIT],
    "class-folders, two jobs": ["build", "class-folders", "classes", *_SPLIT[:-1], "2", "--shards", "2"],
    "file-names": ["build", "file-names", "names", "--label", "^(?P<class>[a-z]+)", *_SPLIT],
    "voc-seg": ["build", "voc-seg", "voc", *_SPLIT],
    "voc-det": ["build", "voc-det", "voc", *_SPLIT],
    "coco": ["build", "coco", "coco.json", "--image-root", "names", *_SPLIT],
    "yolo": ["build", "yolo", "yolo", *_SPLIT],
    "csv-boxes": ["build", "csv-boxes", "boxes.csv", "--image-root", "names", *_SPLIT],
    "table csv": ["build", "table", "table.csv", *_SPLIT],
    "table jsonl": ["build", "table", "table.jsonl", *_SPLIT],
    "frames": ["build", "frames", "frames", *_SPLIT],
    "tfrecord": ["build", "tfrecord", "in.tfrecord", *_SPLIT],
    "webdataset": ["build", "webdataset", "samples.tar", *_SPLIT],
    "arrays": ["build", "arrays", "arrays.npz", *_SPLIT],
}

READERS: dict[str, list[str]] = {
    "info": ["info", "d", "--json"],
    "stats": ["stats", "d", "--json"],
    "head": ["head", "in.tfrecord", "-n", "5"],
    "tail": ["tail", "in.tfrecord", "-n", "5"],
    "cat": ["cat", "in.tfrecord"],
    "cat gzip": ["cat", "in.tfrecord.gz"],
    "sample": ["sample", "in.tfrecord", "-n", "5", "--seed", "1"],
    "count": ["count", "in.tfrecord", "in.tfrecord.gz", "d", "--json"],
    "schema": ["schema", "in.tfrecord"],
    "verify": ["verify", "d", "--json"],
    "verify deep": ["verify", "d", "--deep", "--json"],
    "verify gzip": ["verify", "in.tfrecord.gz", "--json"],
    "sql": ["sql", "select count(*), sum(number) from 'in.tfrecord'"],
    "diff": ["diff", "in.tfrecord", "in.tfrecord.gz", "--json"],
}


def make_inputs(folder: Path) -> None:
    """Write the small inputs that all commands share."""
    rows = [_make_row(number) for number in range(NUM_RECORDS)]
    _write_records(folder / "in.tfrecord", rows)
    _write_records(folder / "in.tfrecord.gz", rows)
    _write_records(folder / "more.tfrecord", rows[:7])
    data = (folder / "in.tfrecord").read_bytes()
    (folder / "bad.tfrecord").write_bytes(flip(data, len(data) // 2))
    tfr.build(rows, folder / "d", splits={"test": 10}, seed=0, shards={"train": 2, "test": 1})
    box = {
        "image/object/bbox/" + side: [value]
        for side, value in zip(("xmin", "ymin", "xmax", "ymax"), (0.125, 0.25, 0.875, 0.75), strict=True)
    }
    boxes = {**box, "image/object/class/text": [b"cat"], "image/object/class/label": [1]}
    sizes = {"image/width": 12, "image/height": 8, "image/format": b"png"}
    encoded = [{**boxes, **sizes, "image/encoded": _draw(n), "image/filename": f"{n}.png".encode()} for n in range(6)]
    _write_records(folder / "boxes.tfrecord", encoded)
    _make_images(folder)
    _make_tables(folder)


def _make_row(number: int) -> dict[str, object]:
    name = hashlib.blake2b(str(number).encode()).hexdigest()[: 3 + number % 20]
    return {
        "image": _draw(number),
        "number": number,
        "label": number % 5,
        "name": name,
        "weights": [0.5] * (number % 4),
    }


def _write_records(path: Path, rows: list[dict[str, object]]) -> None:
    with tfr.Writer(path) as writer:
        for row in rows:
            writer.write(row)


def _draw(number: int, kind: str = "png") -> bytes:
    pixels = np.random.default_rng(number).integers(0, 255, (8, 12, 3), dtype=np.uint8)
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, kind)
    return data.getvalue()


def _save(path: Path, data: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)


def _make_images(folder: Path) -> None:
    for number in range(6):
        kind = "cat" if number % 2 else "dog"
        _save(folder / f"classes/{kind}/{number}.png", _draw(number))
        _save(folder / f"names/{kind}{number}.png", _draw(number))
        _save(folder / f"frames/clip{number % 3}/{number}.png", _draw(number))
        _save(folder / f"yolo/images/{number}.png", _draw(number))
        _save(folder / f"yolo/labels/{number}.txt", f"{number % 2} 0.5 0.5 0.4 0.4\n")
        _save(folder / f"voc/JPEGImages/{number}.jpg", _draw(number, "jpeg"))
        mask = io.BytesIO()
        Image.fromarray(np.full((8, 12), number % 3, np.uint8)).save(mask, "png")
        _save(folder / f"voc/SegmentationClass/{number}.png", mask.getvalue())
        _save(folder / f"voc/Annotations/{number}.xml", _describe_voc(number, kind))
    _save(folder / "yolo/data.yaml", "names: [dog, cat]\n")


def _describe_voc(number: int, kind: str) -> str:
    box = "<bndbox><xmin>2</xmin><ymin>2</ymin><xmax>9</xmax><ymax>7</ymax></bndbox>"
    size = "<size><width>12</width><height>8</height><depth>3</depth></size>"
    return f"<annotation><filename>{number}.jpg</filename>{size}<object><name>{kind}</name>{box}</object></annotation>"


def _make_tables(folder: Path) -> None:
    names = sorted(path.name for path in (folder / "names").iterdir())
    images = [{"id": n, "file_name": name, "width": 12, "height": 8} for n, name in enumerate(names)]
    boxes = [
        {"id": n, "image_id": n, "category_id": 1, "bbox": [1, 1, 5, 5], "area": 25, "iscrowd": 0} for n in range(6)
    ]
    coco = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "pet"}]}
    _save(folder / "coco.json", json.dumps(coco))
    lines = [f"{name},1,1,9,7,pet" for name in names]
    _save(folder / "boxes.csv", "\n".join(["filename,xmin,ymin,xmax,ymax,class", *lines]) + "\n")
    _save(folder / "table.csv", "a,b\n" + "".join(f"{n},text {n}\n" for n in range(20)))
    _save(folder / "table.jsonl", "".join(json.dumps({"a": n, "b": [n] * 3}) + "\n" for n in range(20)))
    np.savez(folder / "arrays.npz", x=np.arange(20, dtype=np.int64), y=np.ones((20, 3), np.float32))
    with tarfile.open(folder / "samples.tar", "w") as tar:
        for number in range(6):
            for suffix, data in (("png", _draw(number)), ("cls", str(number % 2).encode())):
                member = tarfile.TarInfo(f"{number:04}.{suffix}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
