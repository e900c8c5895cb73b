"""Make the files of version_2: the index with pages, which is number 2, and sidecars that are newer than version_1.

Run once and kept, as version_1 was: this folder never changes.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

import tfrkit as tfr
from tfrkit._limits import LIMITS
from tfrkit.features.schema_json import to_json
from tfrkit.storage import transaction
from tfrkit.testing.fake_store import use_fake_store
from tfrkit.view.keep import Tags

HERE = Path(__file__).parent / "version_2"
NUM_PAGED = 2100  # two pages
ROWS = [{"label": number % 3, "name": f"row {number}", "x": [0.5] * (number % 3)} for number in range(20)]


def main() -> None:
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir()
    with tfr.Writer(HERE / "paged.tfrecord", index=True) as writer:
        writer.write_columns({"id": np.arange(NUM_PAGED)})
    with tfr.Writer(HERE / "packed.tfrecord.gz", index=True) as writer:
        for row in ROWS:
            writer.write(row)
    with tfr.open(HERE / "packed.tfrecord.gz") as ds:
        (HERE / "schema.json").write_text(json.dumps(to_json(ds.schema)))
    tags = Tags(str(HERE))
    tags.set(0, "hard", [1, 5], on=True)
    tags.set(1, "blurred", [7], on=True)
    make_stored()
    make_interrupted()


def make_stored() -> None:
    """A dataset of a store, s3://bucket/data, with its table of shards."""
    LIMITS.table_text_nbytes = 0
    with use_fake_store() as store:
        tfr.build(ROWS, "s3://bucket/data", splits={"test": 5}, seed=0, shards={"train": 2, "test": 1}, jobs=1)
        for key, data in store.objects.items():
            path = HERE / "store" / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def make_interrupted() -> None:
    """A folder of which one file was replaced by a new one, with the old one kept, when the process was killed."""
    folder = HERE / "changed"
    folder.mkdir()
    (folder / "a").write_text("old a")

    def stop(*_: object) -> None:
        raise SystemExit

    transaction._restore = lambda folder: False  # type: ignore[assignment]
    transaction._remove_pending = stop
    with transaction.Replacement(str(folder)) as change:
        Path(change.path("a")).write_text("new a")
        Path(change.path("b")).write_text("new b")
        change.put("a")
        change.put("b")
        try:
            change.commit()
        except SystemExit:
            shutil.copytree(folder, HERE / "kept")
    shutil.rmtree(folder)
    (HERE / "kept").rename(folder)


if __name__ == "__main__":
    main()
