"""Two datasets that name one label differently: no verb may use one name for both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tfrkit as tfr
from streets.building import run_tfr
from streets.pictures import draw, encode, save
from tfrkit.errors import SidecarWarning

LABEL = "image/class/label"


@pytest.fixture
def clash(tmp_path: Path) -> list[Path]:
    """0 is cat and 1 is dog in one folder, 0 is dog and 1 is fish in the other."""
    made = []
    for number, names in enumerate((("cat", "dog"), ("dog", "fish"))):
        for k, name in enumerate(names):
            save(tmp_path / f"in{number}" / name / "0.png", encode(draw(number * 2 + k), "PNG"))
        made.append(tmp_path / f"out{number}")
        run_tfr("build", "class-folders", tmp_path / f"in{number}", "-o", made[-1], "--jobs", 1, "--quiet")
    return made


def test_open_gives_no_names_to_numbers_that_have_two(clash: list[Path]) -> None:
    with pytest.warns(SidecarWarning, match="0 is 'dog' here and 'cat' in .*out0.tfrkit.json"):
        assert tfr.open(clash).schema[LABEL].classes is None


def test_stats_give_no_names_to_numbers_that_have_two(clash: list[Path]) -> None:
    answer = json.loads(run_tfr("stats", *clash, "--format", "json", "--quiet").stdout)
    [found] = [one for one in answer["classes"] if one["feature"] == LABEL]
    assert [one["name"] for one in found["classes"]] == [None, None]


@pytest.mark.parametrize("verb", ["merge", "reshard"])
def test_verbs_give_no_names_to_numbers_that_have_two(clash: list[Path], tmp_path: Path, verb: str) -> None:
    out = tmp_path / ("both.tfrecord" if verb == "merge" else "both")
    shards = [] if verb == "merge" else ["--shards", 1]
    run_tfr(verb, *clash, "-o", out, *shards)
    assert tfr.open(out).schema[LABEL].classes is None


@pytest.mark.parametrize("verb", ["merge", "reshard"])
def test_verbs_report_labels_that_mean_different_classes(clash: list[Path], tmp_path: Path, verb: str) -> None:
    out = tmp_path / ("both.tfrecord" if verb == "merge" else "both")
    shards = [] if verb == "merge" else ["--shards", 1]
    ran = run_tfr(verb, *clash, "-o", out, *shards, codes=(0, 1, 2, 3))
    assert LABEL in ran.stderr and "cat" in ran.stderr
