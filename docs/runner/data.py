"""What pages start with: `<!-- data: flowers 60 -->` calls `Fixtures.flowers("60")` in the folder of the page.

Everything is drawn here from fixed seeds, so that the outputs of a page are the same everywhere.
"""

from __future__ import annotations

import csv
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

ENDPOINT = "http://localhost:9000"  # as pages spell the server of `s3`


class Fixtures:
    """Makes data in the current folder; `close` ends what was started."""

    def __init__(self) -> None:
        self._server: Any = None
        self._endpoint = ENDPOINT

    def make(self, words: list[str]) -> None:
        name, *arguments = words
        getattr(self, name.replace("-", "_"))(*arguments)

    def close(self) -> None:
        if self._server is not None:
            self._server.stop()

    def rewrite(self, command: str) -> str:
        return command.replace(ENDPOINT, self._endpoint)

    def unwrite(self, printed: str) -> str:
        printed = printed.replace(self._endpoint, ENDPOINT)
        return printed.replace(os.getcwd(), "/home/you").replace(sys.executable, "python")

    # ---- pictures

    def captchas(self, count: str, folder: str = "captchas") -> None:
        """Captchas of five letters and digits, named by their text."""
        sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
        from make_captchas import make_captchas

        make_captchas(Path(folder), int(count))

    def flowers(self, count: str, folder: str = "flowers") -> None:
        """Photos in a folder for each class, of different sizes."""
        choose = random.Random(0)
        for number in range(int(count)):
            name = ("daisy", "rose", "tulip")[number % 3]
            path = Path(folder, name, f"{number:04}.jpg")
            path.parent.mkdir(parents=True, exist_ok=True)
            draw_flower(name, choose).save(path, quality=90)

    def broken_flower(self, name: str = "flowers/rose/0001.jpg") -> None:
        """One photo whose second half is missing."""
        path = Path(name)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])

    def voc(self, count: str = "6") -> None:
        """A VOCdevkit folder with palette masks and boxes."""
        root = Path("VOC2007")
        for folder in ("JPEGImages", "SegmentationClass", "Annotations", "ImageSets/Segmentation", "ImageSets/Main"):
            (root / folder).mkdir(parents=True)
        choose = random.Random(1)
        names = [f"{number:06}" for number in range(int(count))]
        for number, name in enumerate(names):
            width, height = choose.randint(80, 120), choose.randint(60, 90)
            kind, label = (("cat", 8), ("dog", 12))[number % 2]
            left, top = choose.randint(5, 20), choose.randint(5, 20)
            box = (left, top, left + 40, top + 30)
            photo = Image.new("RGB", (width, height), (90, 140, 90))
            ImageDraw.Draw(photo).ellipse(box, (200, 120, 60))
            photo.save(root / f"JPEGImages/{name}.jpg", quality=95)
            mask = Image.new("P", (width, height), 0)
            mask.putpalette(make_voc_palette())
            ImageDraw.Draw(mask).ellipse(box, label, 255)
            mask.save(root / f"SegmentationClass/{name}.png")
            (root / f"Annotations/{name}.xml").write_text(write_voc_xml(name, (width, height), kind, box))
        for kind in ("Segmentation", "Main"):
            for split, chosen in (("train", names[:-2]), ("val", names[-2:])):
                (root / f"ImageSets/{kind}/{split}.txt").write_text("".join(f"{one}\n" for one in chosen))

    def coco(self, count: str = "6") -> None:
        """images/ and instances.json."""
        Path("images").mkdir()
        choose = random.Random(2)
        images, annotations = [], []
        for number in range(int(count)):
            name = f"{number:04}.jpg"
            photo = Image.new("RGB", (100, 80), (70, 110, 150))
            left, top = choose.randint(0, 50), choose.randint(0, 40)
            ImageDraw.Draw(photo).rectangle((left, top, left + 30, top + 25), (220, 200, 40))
            photo.save(Path("images", name), quality=95)
            images.append({"id": number, "file_name": name, "width": 100, "height": 80})
            annotations.append(
                {"id": number, "image_id": number, "category_id": 1 + number % 2, "bbox": [left, top, 30, 25]}
            )
        categories = [{"id": 1, "name": "car"}, {"id": 2, "name": "bus"}]
        whole = {"images": images, "annotations": annotations, "categories": categories}
        Path("instances.json").write_text(json.dumps(whole), encoding="utf-8")

    # ---- tables and files

    def patients(self, count: str = "60") -> None:
        """visits.csv: several visits of each patient."""
        choose = random.Random(3)
        with open("visits.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["patient", "visit", "age", "pressure", "ill"])
            for number in range(int(count)):
                patient = f"P{choose.randrange(int(count) // 4):03}"
                facts = choose.randint(20, 90), choose.randint(100, 180), choose.randrange(2)
                writer.writerow([patient, number, *facts])

    def numbers(self, count: str = "100", name: str = "train.tfrecord", kind: str = "none") -> None:
        """Records with id, label, name and four floats."""
        import tfrkit as tfr

        rng = np.random.default_rng(4)
        with tfr.Writer(name, compression=kind) as writer:
            for number in range(int(count)):
                row = {"id": number, "label": int(rng.integers(3)), "name": f"row {number}"}
                writer.write({**row, "x": rng.random(4, np.float32).round(3)})

    def tokens(self, count: str = "200") -> None:
        """text.tfrecord: lists of tokens, 3 to 60 of them."""
        import tfrkit as tfr

        rng = np.random.default_rng(5)
        with tfr.Writer("text.tfrecord") as writer:
            for number in range(int(count)):
                writer.write({"id": number, "tokens": rng.integers(1, 1000, rng.integers(3, 61))})

    def small_shards(self, count: str = "1000") -> None:
        """many/: small shards of nine records."""
        import tfrkit as tfr

        Path("many").mkdir()
        for shard in range(int(count)):
            with tfr.Writer(f"many/part-{shard:05}-of-{int(count):05}.tfrecord") as writer:
                writer.write_columns({"id": np.arange(shard * 9, shard * 9 + 9), "label": np.arange(9) % 3})

    def damaged(self, name: str = "train.tfrecord", offset: str = "1000") -> None:
        """One byte changed, as a bad disk does."""
        from tfrkit.testing.corruption import flip

        path = Path(name)
        path.write_bytes(flip(path.read_bytes(), int(offset)))

    def cut_off(self, name: str, nbytes: str) -> None:
        """The end of a file removed."""
        path = Path(name)
        path.write_bytes(path.read_bytes()[: -int(nbytes)])

    def shapes(self, count: str = "120", name: str = "raw.tfrecord") -> None:
        """Raw gray pixels without a shape: discs, squares and crosses."""
        import tfrkit as tfr

        rng = np.random.default_rng(6)
        with tfr.Writer(name) as writer:
            for number in range(int(count)):
                label = int(rng.integers(3))
                writer.write({"x": draw_shape(label, rng).tobytes(), "y": label, "src": f"scan_{number:04}"})

    # ---- servers

    def s3(self, bucket: str = "bucket") -> None:
        """A server of S3's interface on this machine, with an empty bucket."""
        import logging

        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self._endpoint = f"http://{host}:{port}"
        os.environ |= {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self._endpoint,
            "AWS_ALLOW_HTTP": "true",
        }
        import urllib.request

        urllib.request.urlopen(urllib.request.Request(f"{self._endpoint}/{bucket}", method="PUT")).close()


def draw_flower(name: str, choose: random.Random) -> Image.Image:
    """A round flower in the colour of its kind, on grass."""
    width, height = choose.randint(90, 130), choose.randint(80, 110)
    grain = np.random.default_rng(choose.getrandbits(32)).integers(-20, 21, (height, width, 3))
    color = {"daisy": (235, 235, 225), "rose": (200, 40, 60), "tulip": (230, 180, 40)}[name]
    photo = Image.fromarray((np.array((80, 130, 70)) + grain).clip(0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(photo)
    x, y = choose.randint(35, width - 35), choose.randint(35, height - 35)
    for angle in range(0, 360, 45 if name == "daisy" else 90):
        dx, dy = 14 * np.cos(np.radians(angle)), 14 * np.sin(np.radians(angle))
        draw.ellipse((x + dx - 12, y + dy - 12, x + dx + 12, y + dy + 12), color)
    draw.ellipse((x - 8, y - 8, x + 8, y + 8), (240, 200, 60) if name == "daisy" else color)
    return photo


def draw_shape(label: int, rng: np.random.Generator) -> np.ndarray:
    """28x28 gray pixels: a disc, a square or a cross."""
    picture = Image.new("L", (28, 28), 0)
    draw = ImageDraw.Draw(picture)
    left, top = (int(one) for one in rng.integers(2, 10, 2))
    if label == 0:
        draw.ellipse((left, top, left + 15, top + 15), 220)
    elif label == 1:
        draw.rectangle((left, top, left + 14, top + 14), 220)
    else:
        draw.line((left, top, left + 15, top + 15), 220, 3)
        draw.line((left, top + 15, left + 15, top), 220, 3)
    return (np.asarray(picture) + rng.integers(0, 30, (28, 28))).astype(np.uint8)


def make_voc_palette() -> list[int]:
    """The colours of VOC's masks, by the bits of the class number."""
    colors = []
    for number in range(256):
        rgb, rest = [0, 0, 0], number
        for bit in range(8):
            for channel in range(3):
                rgb[channel] |= (rest >> channel & 1) << (7 - bit)
            rest >>= 3
        colors += rgb
    return colors


def write_voc_xml(name: str, size: tuple[int, int], kind: str, box: tuple[int, int, int, int]) -> str:
    tags = ("xmin", "ymin", "xmax", "ymax")
    corners = "".join(f"<{tag}>{value}</{tag}>" for tag, value in zip(tags, box, strict=True))
    return (
        f"<annotation><filename>{name}.jpg</filename><size><width>{size[0]}</width><height>{size[1]}</height>"
        f"<depth>3</depth></size><object><name>{kind}</name><bndbox>{corners}</bndbox></object></annotation>"
    )
