from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tfrkit
from tfrkit.cli.build_options import parse_dimensions, parse_pairs, parse_shards, parse_splits
from tfrkit.cli.build_sources import SOURCES
from tfrkit.testing.commands import run_command

CLASS = "^(?P<class>[a-z]+)"


@pytest.fixture
def fruit(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(8):
        name = "apple" if number % 2 else "orange"
        Image.new("RGB", (10, 8), (number * 30, 0, 0)).save(folder / f"{name}{number:02d}.jpg")
    return folder


@pytest.fixture
def captchas(tmp_path: Path) -> Path:
    folder = tmp_path / "captcha"
    folder.mkdir()
    for number in range(20):
        Image.new("RGB", (16, 6), (number * 12, 50, 0)).save(folder / f"{number:02d}aZ7_{number}.png")
    return folder


def test_captcha_command_does_what_the_tutorial_means(tfr, captchas, tmp_path):
    ran = tfr(
        "build", "file-names", "captcha", "-o", "out/", "--label", "^(?P<text>[0-9A-Za-z]{5})",
        "--gray", "--resize", "24x12", "--split", "test=5", "--shards", "5", "--seed", "0", "--jobs", "2",
    )  # fmt: skip
    assert ran.lines[0] == "out/: 20 found, 20 written, 0 skipped"
    assert "labels: 62 characters (alnum)" in ran.err
    assert len(list((tmp_path / "out").glob("out-train.tfrecord-*-of-00005"))) == 5
    row = tfrkit.open(tmp_path / "out")[0]
    expected = Image.open(captchas / row["filename"].decode()).resize((24, 12)).convert("L")
    assert (
        bytes(np.asarray(row["image"], np.uint8).reshape(-1) if not isinstance(row["image"], bytes) else row["image"])
        == expected.tobytes()
    )
    assert [row[f"label{head}"] for head in range(5)] == row["label/ids"].tolist()
    assert (tmp_path / "out/charset.txt").read_text().startswith("0:0\n1:1\n")


def test_fruit_command_writes_one_file(tfr, fruit, tmp_path):
    tfr(
        "build", "file-names", "data/", "-o", "fruit.tfrecord", "--label", CLASS, "--resize", "32x32", "--encode", "raw"
    )
    rows = list(tfrkit.open(tmp_path / "fruit.tfrecord"))
    assert {(row["filename"][:5], row["label"]) for row in rows} == {(b"apple", 0), (b"orang", 1)}
    assert {row["height"] for row in rows} == {32}


def test_class_folders_command_splits_each_class_alike(tfr, tmp_path):
    for name in ("rose", "tulip"):
        (tmp_path / "flowers" / name).mkdir(parents=True)
        for number in range(10):
            Image.new("L", (4, 4), number).save(tmp_path / "flowers" / name / f"{number}.png")
    ran = tfr(
        "build", "class-folders", "flowers/", "-o", "flowers_tfr/", "--split", "train=.8,val=.1,test=.1",
        "--stratify", "--format", "json",
    )  # fmt: skip
    assert {name: split["records"] for name, split in ran.json["splits"].items()} == {"train": 16, "val": 2, "test": 2}
    labels = [row["image/class/label"] for row in tfrkit.open(tmp_path / "flowers_tfr" / "*-val*")]
    assert sorted(labels) == [0, 1]


def test_arrays_command_keeps_the_order(tfr, tmp_path):
    np.savez(tmp_path / "digits.npz", data=np.arange(10), label=np.arange(10) % 2)
    tfr("build", "arrays", "digits.npz", "-o", "digits.tfrecord")
    rows = list(tfrkit.open(tmp_path / "digits.tfrecord"))
    assert [(row["data"], row["label"]) for row in rows] == [(n, n % 2) for n in range(10)]


def test_dry_run_shows_labels_splits_and_problems_and_exits_1(tfr, fruit, tmp_path):
    (fruit / "plum99.jpg").write_bytes(b"")
    ran = tfr("build", "file-names", "data", "-o", "out", "--label", CLASS, "--split", "test=2", "--dry-run", code=1)
    assert "class (3): apple 4, orange 4, plum 1" in ran.out
    assert "bad: plum99.jpg: expected an image, got 0 bytes" in ran.out
    assert ran.lines[-1] == "dry run, nothing was written"
    assert not (tmp_path / "out").exists()


def test_dry_run_without_problems_exits_0(tfr, fruit):
    assert "about" in tfr("build", "file-names", "data", "-o", "out", "--label", CLASS, "--dry-run").out


def test_bad_files_are_all_named_and_exit_3(tfr, fruit, tmp_path):
    for number in range(30):
        (fruit / f"bad{number:02d}.jpg").write_bytes(b"")
    ran = tfr("build", "file-names", "data", "-o", "out", "--label", CLASS, code=3)
    assert "tfr: 30 of 38 inputs are bad, nothing was written" in ran.err
    assert ran.err.splitlines()[1:3] == [
        "  30 times: expected an image, got 0 bytes - at bad00.jpg; bad01.jpg; bad02.jpg and 27 more",
        "  list every one: --dry-run --format json",
    ]
    arguments = ("build", "file-names", "data", "-o", "out", "--label", CLASS, "--dry-run", "--format", "json")
    assert len({problem["key"] for problem in tfr(*arguments, code=1).json["problems"]}) == 30
    assert ran.err.rstrip().endswith(" --on-bad skip")
    assert not (tmp_path / "out").exists()


def test_skipping_bad_files_exits_1_and_lists_reasons(tfr, fruit, tmp_path):
    (fruit / "bad.jpg").write_bytes(b"")
    ran = tfr("build", "file-names", "data", "-o", "out", "--label", CLASS, "--on-bad", "skip", code=1)
    assert "skipped 1: expected an image, got 0 bytes" in ran.out
    assert json.loads((tmp_path / "out/skipped.jsonl").read_text())["key"] == "bad.jpg"


def test_second_run_has_nothing_to_do(tfr, fruit):
    command = ("build", "file-names", "data", "-o", "out", "--label", CLASS)
    tfr(*command)
    assert "already there" in tfr(*command).out
    ran = tfr(*command, "--seed", "5", code=3)
    assert "seed was 0, is 5" in ran.err
    tfr(*command, "--seed", "5", "--force")


def test_progress_is_json_lines_on_stderr(tfr, fruit):
    ran = tfr("build", "file-names", "data", "-o", "out", "--label", CLASS, "--progress", "json", "--format", "json")
    lines = [json.loads(line) for line in ran.err.splitlines() if line.startswith("{")]
    assert lines[-1]["items"] == lines[-1]["of"] == 8
    assert {"items_per_s", "mb_per_s", "skipped", "eta_s"} <= lines[-1].keys()
    assert ran.json["written"] == 8


def test_keys_rename_features(tfr, fruit, tmp_path):
    tfr("build", "file-names", "data", "-o", "out", "--label", CLASS, "--keys", "image=image/encoded,label=y")
    assert {"image/encoded", "y"} <= tfrkit.open(tmp_path / "out")[0].keys()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--split", "test"), "--split expected NAME=VALUE, got 'test'"),
        (("--shards", "five"), "--shards expected N or NAME=N,..., got 'five'"),
        (("--resize", "224"), "--resize expected WIDTHxHEIGHT such as 224x224, got '224'"),
        (("--shard-size", "big"), "size expected a number of bytes such as 256MB or 1GiB, got 'big'"),
        (("--split", "test=500"), "parts ask for 500 records, there are 8"),
        (("--compression", "rar"), "compression expected one of"),
        (("--encode", "keep", "--gray"), "cannot be kept"),
    ],
)
def test_wrong_usage_exits_2(tfr, fruit, arguments, message):
    ran = tfr("build", "file-names", "data", "-o", "out", "--label", CLASS, *arguments, code=2)
    assert message in ran.err


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda root: None, "no such folder, expected one of images - at x"),
        (lambda root: root.mkdir(), "nothing to build, looked for images in x and below"),
        (lambda root: (root.mkdir(), (root / "a.txt").write_text("")), "found other files only: 1 .txt"),
        (lambda root: root.write_text(""), "expected a folder of images, got a file - at x"),
    ],
    ids=["missing", "empty", "texts", "file"],
)
def test_nothing_to_build_names_the_searched_folder(tfr, tmp_path, prepare, message):
    prepare(tmp_path / "x")
    assert message in tfr("build", "file-names", "x", "-o", "out", "--label", CLASS, code=3).err


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_options_of_every_source_are_arguments_of_it(make):
    renamed = {"table_format": "format", "clip_column": "group", "order_column": "order"}
    hidden = {"path", "no_header"}  # a path is the first argument, under any name
    made = [getattr(tfrkit.sources, make.__name__)]
    if make.__name__ == "frames":
        made.append(tfrkit.sources.frames_table)
    taken = {name for source in made for name in inspect.signature(source).parameters}
    asked = set(inspect.signature(make).parameters) - hidden
    assert {renamed.get(name, name) for name in asked} <= taken


@pytest.mark.parametrize("name", [make.__name__.replace("_", "-") for make in SOURCES])
def test_help_of_every_source_has_an_example_and_the_shared_options(tfr, name):
    ran = tfr("build", name, "--help")
    assert f"  tfr build {name} " in ran.out
    for option in ("--split", "--shards", "--seed", "--jobs", "--on-bad", "--dry-run", "--force", "--progress"):
        assert option in ran.out


# --- texts


def test_splits_are_read_as_ratio_count_rest_or_list():
    assert parse_splits(["train=rest", "val=10%,test=500", "extra=lists/x.txt"]) == {
        "train": None,
        "val": 0.1,
        "test": 500,
        "extra": "lists/x.txt",
    }
    assert parse_splits(["test=1.0"]) == {"test": 1.0}
    assert parse_splits(None) is None


def test_name_given_twice_raises():
    with pytest.raises(ValueError, match="--keys expected 'a' once, got it twice"):
        parse_pairs(["a=b", "a=c"], "--keys")


def test_shards_are_a_number_or_one_for_each_split():
    assert parse_shards("5") == 5
    assert parse_shards("train=5,test=1") == {"train": 5, "test": 1}
    assert parse_shards(None) is None


def test_dimensions_are_width_and_height():
    assert parse_dimensions("160x60") == (160, 60)
    assert parse_dimensions("160X60") == (160, 60)


def test_overwrite_is_a_hidden_alias_of_force(fruit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = ["build", "file-names", "data", "-o", "out", "--label", CLASS, "--jobs", "1"]
    assert run_command(made).exit_code == 0
    ran = run_command([*made, "--seed", "4"])
    assert ran.exit_code == 3
    assert ran.stderr.endswith("\n  replace it: --force\n")
    ran = run_command([*made, "--seed", "4", "--force"])
    assert (ran.exit_code, "deprecated" in ran.stderr) == (0, False)
    ran = run_command([*made, "--seed", "5", "--overwrite"])
    assert (ran.exit_code, ran.stderr.count("note: --overwrite is deprecated, use --force\n")) == (0, 1)
    assert "--overwrite" not in run_command(["build", "file-names", "--help"]).stdout


def test_quiet_build_still_says_why_it_failed(fruit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "pear01.jpg").write_bytes(b"no image")
    made = ["build", "file-names", "data", "-o", "out", "--label", CLASS, "--jobs", "1", "--quiet"]
    ran = run_command(made)
    assert ran.exit_code == 3
    assert "pear01.jpg: " in ran.stderr
    assert ran.stderr.endswith("repair or remove them    or leave them out: --on-bad skip\n")
    assert run_command([*made, "--shards", "none"]).stderr.startswith("tfr: --shards expected")


@pytest.mark.parametrize(
    ("values", "way_out"),
    [
        (['"a"', "3"], "--type x=text"),
        (["[1,2]", '["a"]'], "--type x=text"),
        (["9007199254740993", "0.5"], "--type x=text"),
        (["0.5"] * 3000 + ['"a"'], "--type x=text"),
        (["1", "[1,2]"], "write a list in every line"),
    ],
)
@pytest.mark.parametrize("on_bad", ["fail", "skip"])
def test_json_lines_that_disagree_next_to_a_good_column_exit_3_with_a_way_out(tfr, tmp_path, values, way_out, on_bad):
    lines = [f'{{"id":{number},"x":{value}}}\n' for number, value in enumerate(values)]
    (tmp_path / "t.jsonl").write_text("".join(lines))
    ran = tfr("build", "table", "t.jsonl", "-o", "o", "--on-bad", on_bad, code=3)
    assert "t.jsonl, column 'x': expected" in ran.err and way_out in ran.err
    assert not (tmp_path / "o").exists()
