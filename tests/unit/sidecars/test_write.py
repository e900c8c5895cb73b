"""Sidecars of a new dataset."""

from __future__ import annotations

import json

from tfrkit.features.schema import Schema
from tfrkit.sidecars.carry import Carried
from tfrkit.sidecars.manifest import NewDataset, NewShard
from tfrkit.sidecars.write import make_texts

SHARD = NewShard("d-train.tfrecord-00000-of-00001", "train", 7, 4, "a" * 64)
DATASET = NewDataset("d", Schema({"x": "int64"}), "none", [SHARD], {}, "in")


def test_features_json_is_carried_unless_features_were_edited() -> None:
    carried = Carried(tfds={"features.json": "carried"})
    assert make_texts(DATASET, carried)[0]["features.json"] == "carried"
    edited = make_texts(DATASET, carried, is_edited=True)[0]
    assert list(json.loads(edited["features.json"])["featuresDict"]["features"]) == ["x"]
