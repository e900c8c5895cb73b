"""Make the files of version_1: one dataset with everything tfrkit keeps next to shards or hands out.

Run once, when the format numbers were 1, and kept: what a release wrote, every later one reads. A new format number
gets a folder and a script of its own; this folder never changes.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import tfrkit as tfr
from tfrkit.build.journal import BadItem, Journal, ShardResult, write_done
from tfrkit.ops.index import make_index
from tfrkit.sources.base import ItemsBuilder

HERE = Path(__file__).parent / "version_1"
ROWS = [{"label": number % 3, "name": f"row {number}", "x": [0.5] * (number % 3)} for number in range(20)]


def main() -> None:
    shutil.rmtree(HERE, ignore_errors=True)
    dataset = HERE / "dataset"
    tfr.build(ROWS, dataset, splits={"test": 5}, seed=0, shards={"train": 2, "test": 1})
    with tfr.Writer(HERE / "packed.tfrecord.gz") as writer:
        for row in ROWS:
            writer.write(row)
    make_index(str(HERE / "packed.tfrecord.gz"))
    make_index(str(dataset))
    with tfr.open(dataset) as ds:
        batches = iter(ds["train"].shuffle(seed=3).batch(4))
        next(batches)
        (HERE / "state.json").write_text(json.dumps(batches.state_dict()))
    journal = Journal(str(HERE / "journal"))
    (HERE / "journal").mkdir()
    builder = ItemsBuilder()
    builder.add("a.png", nbytes=3, stamp=9)
    builder.add("b.png", nbytes=4, stamp=10)
    journal.save_plan({"hash": "0123456789abcdef", "shards": 1}, builder.build())
    done = ShardResult("train-00000-of-00001.tfrecord", 2, 100, 7, "ab" * 32, [BadItem("c.png", "not an image")])
    write_done(str(HERE / "journal" / done.name), done)


if __name__ == "__main__":
    main()
