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


VERBS = {
    "merge": ["-o", "both.tfrecord"],
    "reshard": ["-o", "both/", "--shards", 1],
    "shuffle": ["-o", "both/"],
    "split": ["-o", "both/", "--split", "train=.5,test=.5"],
    "convert": ["-o", "both/"],
    "sample": ["-o", "both.tfrecord", "-n", 2],
    "build tfrecord": ["-o", "both/"],
}


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_refuse_labels_that_mean_different_classes(clash: list[Path], tmp_path: Path, verb: str) -> None:
    words = [tmp_path / word if str(word).startswith("both") else word for word in VERBS[verb]]
    ran = run_tfr(*verb.split(), *clash, *words, codes=(3,))
    assert f"class 0 of feature '{LABEL}' is 'dog' here and 'cat' in the other files" in ran.stderr
    assert f"--classes '{LABEL}=names.txt'" in ran.stderr
    assert not list(tmp_path.glob("both*"))


@pytest.mark.parametrize("verb", [*VERBS, "append"])
def test_verbs_take_both_after_renumbering(clash: list[Path], tmp_path: Path, verb: str) -> None:
    """The way that the message names, with every class under its own name afterwards."""
    (tmp_path / "names.txt").write_text("fish\ncat\ndog\n")
    renumbered = [tmp_path / f"new{number}" for number in range(2)]
    for old, new in zip(clash, renumbered, strict=True):
        run_tfr("convert", old, "-o", f"{new}/", "--classes", f"{LABEL}={tmp_path / 'names.txt'}")
    words = [tmp_path / word if str(word).startswith("both") else word for word in VERBS.get(verb, ["-o", "both/"])]
    run_tfr(*verb.split(), *renumbered, *words)
    ds = tfr.open(next(path for path in (tmp_path / "both", tmp_path / "both.tfrecord") if path.exists()))
    assert ds.schema[LABEL].classes == ("fish", "cat", "dog")
    assert len(ds) == (2 if verb == "sample" else 4)
    for row in ds:
        assert ds.schema[LABEL].classes[row[LABEL]] == row["image/class/text"].decode()
