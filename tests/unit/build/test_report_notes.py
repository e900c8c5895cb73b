"""Notes about all images of a build: CMYK, wrong suffixes, growth."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import tfrkit
from tfrkit import sources

NUM_IMAGES = 6


def make(folder, *, mode="RGB", kind="JPEG", suffix="jpg"):
    (folder / "in/cat").mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(0).integers(0, 9, (40, 60, 4), np.uint8)
    image = Image.fromarray(pixels[..., :3]).convert(mode)
    for number in range(NUM_IMAGES):
        image.save(folder / f"in/cat/{kind}{number}.{suffix}", kind)
    return str(folder / "in")


def build(root, folder, **options):
    source = sources.class_folders(root, images=sources.ImageOptions(**options))
    return tfrkit.build(source, folder / "x.record", jobs=1, force=True).notes


def test_cmyk_that_is_kept_is_one_note_with_the_option(tmp_path):
    root = make(tmp_path, mode="CMYK")
    [note] = [note for note in build(root, tmp_path) if "CMYK" in note]
    assert note == (
        "images in CMYK, kept unchanged, which not every reader decodes: 6 of 6; "
        'to re-encode as RGB: encode="jpeg" or encode="png"'
    )
    # Re-encoded, they are RGB; the note on all images covers that.
    assert not any("images in CMYK" in note for note in build(root, tmp_path, encode="jpeg"))


@pytest.mark.parametrize("options", [{}, {"resize": (4, 4)}])
def test_files_with_other_names_are_one_note(tmp_path, options):
    make(tmp_path)
    root = make(tmp_path, kind="PNG", suffix="jpg")
    make(tmp_path, kind="JPEG", suffix="jpeg")
    notes = [note for note in build(root, tmp_path, **options) if "whose suffix" in note]
    assert notes == ["files whose suffix does not match their format, read by format: png called .jpg 6"]


def test_names_that_fit_are_not_noted(tmp_path):
    root = make(tmp_path)
    assert not any("whose suffix" in note or "CMYK" in note for note in build(root, tmp_path))


@pytest.mark.parametrize("encode", ["raw", "jpeg"])
def test_growth_is_noted_with_its_factor_and_the_option(tmp_path, encode):
    root = make(tmp_path)
    for path in (tmp_path / "in/cat").iterdir():
        Image.new("RGB", (400, 300), (9, 9, 9)).save(path, "JPEG", quality=30)
    notes = [note for note in build(root, tmp_path, encode=encode) if "times as large" in note]
    if encode == "raw":
        assert len(notes) == 1
        assert "with images as raw pixels" in notes[0]
        assert notes[0].endswith('smaller: encode="png" or encode="jpeg"')
    if encode == "jpeg":
        assert notes == []


def test_dry_run_notes_growth_too(tmp_path):
    root = make(tmp_path)
    for path in (tmp_path / "in/cat").iterdir():
        Image.new("RGB", (400, 300), (9, 9, 9)).save(path, "JPEG", quality=30)
    source = sources.class_folders(root, images=sources.ImageOptions(encode="raw"))
    report = tfrkit.build(source, tmp_path / "x.record", jobs=1, dry_run=True)
    assert sum("times as large as the inputs, with images as raw pixels" in note for note in report.notes) == 1
