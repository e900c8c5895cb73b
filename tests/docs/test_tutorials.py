"""Every script of examples/tutorials runs, changed and unchanged, and the tfrkit version gives equal rows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

import tfrkit as tfr

TUTORIALS = Path(__file__).parents[2] / "examples" / "tutorials"
ALNUM = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def run_program(*words: object) -> str:
    """Run a program and return its output; `tfr` is the command of this environment."""
    folders = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        list(map(str, words)),
        env={**os.environ, "PATH": folders},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_tutorial(name: str, *arguments: object) -> str:
    """Run a script of the tutorials."""
    return run_program(sys.executable if name.endswith(".py") else "bash", TUTORIALS / name, *arguments)


def run_unchanged(name: str, folder: Path, *arguments: object) -> str:
    """Run a script as it was before its one line was changed, by `tfr run`."""
    text = (TUTORIALS / name).read_text(encoding="utf-8")
    changed = "from tfrkit.compat import tensorflow as tf  # was: import tensorflow as tf\n"
    assert text.count(changed) == text.count("import tensorflow") // 2 == 1
    (folder / "unchanged.py").write_text(text.replace(changed, "import tensorflow as tf\n"), encoding="utf-8")
    command = [sys.executable, "-c", "from tfrkit_start import main; main()"]
    return run_program(*command, "run", folder / "unchanged.py", *arguments)


def assert_same_files(folder: Path, other: Path) -> None:
    names = sorted(path.name for path in folder.iterdir())
    assert names
    assert names == sorted(path.name for path in other.iterdir())
    for name in names:
        assert (folder / name).read_bytes() == (other / name).read_bytes()


def read_rows(path: Path | str) -> list[Any]:
    return list(tfr.open(str(path)))


def raw_pixels(row: dict[str, Any], name: str = "image") -> bytes:
    """Pixels of a row, from an array or from bytes."""
    value = row[name]
    return value if isinstance(value, bytes) else bytes(np.asarray(value).tobytes())


def test_every_tutorial_is_run_here() -> None:
    names = {path.name for path in TUTORIALS.iterdir() if path.suffix in (".py", ".sh")}
    source = Path(__file__).read_text(encoding="utf-8")
    assert {name for name in names if f'"{name}"' not in source} == set()
    assert {name[:4] for name in names} == {f"job{number}" for number in range(1, 6)}
    page = (TUTORIALS / "README.md").read_text(encoding="utf-8")
    assert {name for name in names if f"`{name}`" not in page} == set()


# --- 1


@pytest.fixture
def captchas(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    rng = np.random.default_rng(1)
    for number in range(14):
        text = "".join(rng.choice(list(ALNUM), 5))
        picture = Image.fromarray(rng.integers(150, 256, (60, 160, 3), dtype=np.uint8))
        ImageDraw.Draw(picture).text((20, 20), text, fill=(0, 0, 120))
        picture.save(folder / f"{text}_{number:04}.png")
    return folder


def captcha_rows(rows: list[Any]) -> list[tuple[bytes, tuple[int, ...]]]:
    return sorted((raw_pixels(row), tuple(row[f"label{place}"] for place in range(5))) for row in rows)


def test_captchas_give_equal_rows_both_ways(captchas: Path, tmp_path: Path) -> None:
    printed = run_tutorial("job1_captchas.py", captchas, tmp_path / "old", 4)
    assert "test: 4 pictures written" in printed
    assert "train: 10 pictures written" in printed
    old = {split: read_rows(tmp_path / "old" / f"{split}.tfrecords") for split in ("train", "test")}
    texts = sorted("".join(ALNUM[row[f"label{place}"]] for place in range(5)) for rows in old.values() for row in rows)
    assert texts == sorted(path.name[:5] for path in captchas.iterdir())
    assert len(raw_pixels(old["test"][0])) == 224 * 224
    assert run_unchanged("job1_captchas.py", tmp_path, captchas, tmp_path / "run", 4) == printed
    assert_same_files(tmp_path / "run", tmp_path / "old")
    run_tutorial("job1_captchas.sh", captchas, tmp_path / "new", 4)
    new = {split: read_rows(tmp_path / "new" / f"*-{split}.*") for split in ("train", "test")}
    assert {split: len(rows) for split, rows in new.items()} == {"train": 10, "test": 4}
    assert captcha_rows(new["train"] + new["test"]) == captcha_rows(old["train"] + old["test"])


def test_captchas_are_not_converted_twice_and_bad_pictures_are_named(captchas: Path, tmp_path: Path) -> None:
    (captchas / "zzzzz_bad.png").write_bytes(b"nothing")
    printed = run_tutorial("job1_captchas.py", captchas, tmp_path / "old", 4)
    assert "zzzzz_bad.png, left out" in printed
    assert len(read_rows(tmp_path / "old")) == 14
    assert "0:0\n1:1\n" in (tmp_path / "old" / "labels.txt").read_text()
    assert "nothing to do" in run_tutorial("job1_captchas.py", captchas, tmp_path / "old", 4)


# --- 2


def test_fruit_gives_equal_rows_both_ways(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    rng = np.random.default_rng(2)
    for number in range(12):
        picture = Image.fromarray(rng.integers(0, 256, (40, 50, 3), dtype=np.uint8))
        picture.save(folder / f"{'apple' if number < 7 else 'orange'}{number:02}.jpg")
    printed = run_tutorial("job2_fruit.py", folder, tmp_path / "old.tfrecords")
    assert printed.count("(4, 32, 32, 3)") == 3
    old = read_rows(tmp_path / "old.tfrecords")
    assert sorted(row["label"] for row in old) == [0] * 7 + [1] * 5
    assert run_unchanged("job2_fruit.py", tmp_path, folder, tmp_path / "run.tfrecords").count("(4, 32, 32, 3)") == 3
    assert (tmp_path / "run.tfrecords").read_bytes() == (tmp_path / "old.tfrecords").read_bytes()
    run_tutorial("job2_fruit.sh", folder, tmp_path / "new.tfrecord")
    new = read_rows(tmp_path / "new.tfrecord")
    assert sorted((raw_pixels(row), row["label"]) for row in new) == sorted(
        (raw_pixels(row), row["label"]) for row in old
    )
    train, test = tfr.open(str(tmp_path / "new.tfrecord")).split({"train": 0.75, "test": 0.25}, seed=0)
    assert (len(train), len(test)) == (9, 3)


# --- 3


def test_arrays_and_photo_give_equal_rows_both_ways(tmp_path: Path) -> None:
    photo = tmp_path / "cat.png"
    pixels = np.random.default_rng(3).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(photo)
    old = run_tutorial("job3_arrays.py", photo, tmp_path / "old")
    assert run_unchanged("job3_arrays.py", tmp_path, photo, tmp_path / "run") == old
    assert_same_files(tmp_path / "run", tmp_path / "old")
    new = run_tutorial("job3_arrays_tfrkit.py", photo, tmp_path / "new")
    assert "end of the file after 10 records" in old
    assert old.splitlines()[1:] == new.splitlines()
    assert new.splitlines()[0] == f"data {list(range(10))}"
    assert read_rows(tmp_path / "old" / "data.tfrecords") == read_rows(tmp_path / "new" / "data.tfrecord")
    row = read_rows(tmp_path / "old" / "photo.tfrecords")[0]
    stored = np.frombuffer(row["data"], np.uint8).reshape(row["shape"])
    assert np.array_equal(stored, pixels)
    assert np.array_equal(read_rows(tmp_path / "new" / "photo.tfrecord")[0]["data"], stored)


# --- 4


@pytest.fixture
def voc(tmp_path: Path) -> Path:
    root = tmp_path / "VOC2007"
    for folder in ("ImageSets/Segmentation", "JPEGImages", "SegmentationClass"):
        (root / folder).mkdir(parents=True)
    rng = np.random.default_rng(4)
    colours = rng.integers(0, 256, 768, dtype=np.uint8).tobytes()
    names = {"train": ["000032", "000039", "000063"], "val": ["000042"]}
    for split, listed in names.items():
        (root / "ImageSets/Segmentation" / f"{split}.txt").write_text("".join(f"{name}\n" for name in listed))
        for name in listed:
            height, width = rng.integers(20, 30, 2)
            Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(
                root / f"JPEGImages/{name}.jpg"
            )
            mask = Image.fromarray(rng.choice([0, 1, 7, 20, 255], (height, width)).astype(np.uint8), "P")
            mask.putpalette(colours)
            mask.save(root / f"SegmentationClass/{name}.png")
    return root


def test_voc_masks_keep_their_classes_in_all_three_feeds(voc: Path, tmp_path: Path) -> None:
    printed = run_tutorial("job4_voc_segmentation.py", voc, tmp_path / "old")
    assert run_unchanged("job4_voc_segmentation.py", tmp_path, voc, tmp_path / "run") == printed
    assert_same_files(tmp_path / "run", tmp_path / "old")
    lines = printed.splitlines()
    counts = {line.split(" {")[0]: line.split(" {")[1] for line in lines}
    assert list(counts) == ["from Python", "preloaded", "from file"]
    assert len(set(counts.values())) == 1
    assert [part.split(":")[0].strip() for part in counts["from file"].split(",")] == ["0", "1", "7", "20", "255"]


def test_voc_gives_equal_rows_both_ways(voc: Path, tmp_path: Path) -> None:
    run_tutorial("job4_voc_segmentation.py", voc, tmp_path / "old")
    run_tutorial("job4_voc_segmentation.sh", voc, tmp_path / "new")
    for split in ("train", "val"):
        old = read_rows(tmp_path / "old" / f"{split}.tfrecords")
        new = read_rows(tmp_path / "new" / f"*-{split}.*")
        assert sorted(map(voc_pixels_of_new, new)) == sorted(map(voc_pixels_of_old, old))


def voc_pixels_of_old(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["height"], row["width"], row["image_raw"], row["label_raw"]


def voc_pixels_of_new(row: dict[str, Any]) -> tuple[Any, ...]:
    import io

    image, mask = (
        np.asarray(Image.open(io.BytesIO(row[name]))) for name in ("image/encoded", "image/segmentation/class/encoded")
    )
    return row["image/height"], row["image/width"], image.tobytes(), mask.tobytes()


# --- 5


def test_options_and_messages_give_equal_rows_both_ways(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in range(3):
        smooth = np.add.outer(np.arange(40), np.arange(50))[:, :, None] + np.array([0, 40, 90]) + number
        Image.fromarray(smooth.astype(np.uint8)).save(folder / f"p{number}.png")
    old = run_tutorial("job5_options.py", folder, tmp_path / "old")
    assert run_unchanged("job5_options.py", tmp_path, folder, tmp_path / "run") == old
    assert_same_files(tmp_path / "run", tmp_path / "old")
    new = run_tutorial("job5_options_tfrkit.py", folder, tmp_path / "new")
    assert old.splitlines()[-1] == new.splitlines()[-1] == "frames 3 [b'p0.png', b'p1.png', b'p2.png']"
    sizes = {line.split(": ")[0]: int(line.split()[1]) for line in new.splitlines()[:-1]}
    assert max(sizes["zlib"], sizes["gzip"], sizes["xz"]) < sizes["none"]
    names = {"plain": "none", "zlib": "zlib", "gzip": "gzip"}
    for theirs, ours in names.items():
        for before, after in zip(
            read_rows(tmp_path / "old" / f"{theirs}.tfrecords"),
            read_rows(tmp_path / "new" / f"{ours}.tfrecord"),
            strict=True,
        ):
            bgr = np.frombuffer(before["image"], np.uint8).reshape(before["shape"])
            assert np.array_equal(bgr[:, :, ::-1], after["image"])
            assert before["label"] == after["label"]
            assert np.array_equal(before["mean"][::-1], after["mean"])
    assert [bytes(record) for record in tfr.open(str(tmp_path / "old" / "names.tfrecords")).records()] == [
        bytes(record) for record in tfr.open(str(tmp_path / "new" / "names.tfrecord")).records()
    ]
