"""Every asker can fail: given a wrong truth it reports a difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from streets.askers import ASKERS
from streets.cells import ask, make
from streets.pictures import draw, encode
from streets.truth import Made, Row

# Datasets that together hold everything an asker reads.
ASKED = ("class_folders", "voc_det", "webdataset")
# Asking is the whole test: it must not raise.
ONLY_RUN = {"schema_forms"}


@pytest.mark.parametrize("asked", [name for name in ASKERS if name not in ONLY_RUN])
def test_asker_finds_another_truth_wrong(asked: str, tmp_path: Path) -> None:
    for made in ASKED:
        (tmp_path / made).mkdir()
        dataset = make(made, "folder_plain", tmp_path / made)
        plain = ask(asked, dataset, tmp_path / f"{made}_plain")
        if plain is None:
            continue
        for number, other in enumerate(_change(dataset)):
            if ask(asked, other, tmp_path / f"{made}_{number}") != plain:
                return
    pytest.fail(f"{asked} agrees with every truth")


def _change(made: Made) -> Iterator[Made]:
    """The same files with a wrong truth: a missing row, another split, another image, other features."""
    last = made.shards[-1]
    shorter = replace(last, rows=last.rows[:-1], records=last.records[:-1])
    yield replace(made, shards=[*made.shards[:-1], shorter])
    yield replace(made, splits={"other": len(made.rows)}, shards=[replace(s, split="other") for s in made.shards])
    yield replace(made, shards=[replace(s, rows=[_repaint(row) for row in s.rows]) for s in made.shards])
    features = {
        name: replace(feature, classes=None if feature.classes is None else feature.classes[::-1], optional=True)
        for name, feature in made.truth.features.items()
    }
    yield replace(made, truth=replace(made.truth, features=features))


def _repaint(row: Row) -> Row:
    return {**row, "image/encoded": ("bytes", (), (encode(draw(999), "PNG"),))}
