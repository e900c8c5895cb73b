"""label_map.pbtxt: written by every detection build and copied with the records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import tfrkit
from tfrkit import sources, tools
from tfrkit.features.labels import LabelMap, make_numbered_map, parse_label_map
from tfrkit.sidecars.class_names import make_detection_labels
from tfrkit.sidecars.read import Sidecars

MAP = "item {\n  id: 1\n  name: 'cat'\n}\nitem {\n  id: 3\n  name: 'dog'\n}\n"


def make_coco(folder: Path) -> str:
    folder.mkdir()
    images, annotations = [], []
    for number in range(8):
        Image.new("RGB", (20, 10), (number, 0, 0)).save(folder / f"{number}.png")
        images.append({"id": number, "file_name": f"{number}.png"})
        annotations.append({"id": number, "image_id": number, "category_id": 1 + number % 2 * 2, "bbox": [1, 1, 5, 5]})
    categories = [{"id": 1, "name": "cat"}, {"id": 3, "name": "dog"}]
    (folder / "a.json").write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return str(folder / "a.json")


@pytest.mark.parametrize("name", ["cat", "it's", 'a "b"', "back\\slash", "two\nlines", "café", "\t"])
def test_label_map_gives_every_name_back(name):
    text = make_detection_labels(LabelMap((name, "x"), offset=1))["label_map.pbtxt"]
    labels = parse_label_map(text, "m")
    assert (labels.names, labels.offset) == ((name, "x"), 1)


def test_label_map_without_names_is_not_written():
    assert make_detection_labels(LabelMap(())) == {}


def test_gaps_stay_gaps_when_a_label_map_is_read_and_written():
    labels = make_numbered_map({2: "a", 5: "b"}, origin="x")
    assert labels.gaps == {3, 4}
    assert parse_label_map(labels.to_label_map(), "m").gaps == {3, 4}


def test_label_map_is_in_the_folder_or_the_index_folder_of_one_file(tmp_path):
    source = sources.coco(make_coco(tmp_path / "in"))
    tfrkit.build(source, tmp_path / "out", jobs=1)
    tfrkit.build(source, tmp_path / "train.record", jobs=1)
    assert (tmp_path / "out/label_map.pbtxt").read_text() == MAP
    assert "label_map.pbtxt" in json.loads((tmp_path / "out/tfrkit.json").read_text())["files"]
    assert (tmp_path / "_index/train.record.label_map.pbtxt").read_text() == MAP
    found = {label for row in tfrkit.open(tmp_path / "train.record") for label in row["image/object/class/label"]}
    assert found == {1, 3}


VERBS: dict[str, Any] = {
    "split": lambda source, out: tools.split(source, out, {"train": 0.5, "val": 0.5}),
    "shuffle": lambda source, out: tools.shuffle(source, out),
    "reshard": lambda source, out: tools.reshard(source, out, shards=2),
    "convert": lambda source, out: tools.convert(source, f"{out}/"),
    "merge": lambda source, out: tools.merge(source, f"{out}.record"),
    "shuffle to one file": lambda source, out: tools.shuffle(source, f"{out}.record"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_label_map_goes_along_with_the_records(tmp_path, verb):
    tfrkit.build(sources.coco(make_coco(tmp_path / "in")), tmp_path / "one.record", jobs=1)
    VERBS[verb](str(tmp_path / "one.record"), str(tmp_path / "out"))
    made = tmp_path / "out/label_map.pbtxt"
    made = made if made.exists() else tmp_path / "_index/out.record.label_map.pbtxt"
    assert made.read_text() == MAP


def test_label_map_alone_names_the_classes(tmp_path):
    tfrkit.build(sources.coco(make_coco(tmp_path / "in")), tmp_path / "out", jobs=1)
    for name in ("tfrkit.json", "features.json", "classes.txt"):
        (tmp_path / "out" / name).unlink()
    [path] = (tmp_path / "out").glob("*-of-*")
    labels = Sidecars([str(path)]).class_file
    assert labels is not None
    assert (labels.id_of("dog"), labels.gaps) == (3, {2})
