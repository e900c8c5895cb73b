"""Sizes of image files, stored and turned, and the note if a declared size fits only one of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from tfrkit._limits import LIMITS
from tfrkit.errors import SourceError
from tfrkit.sources.measure import explain_difference, measure_image_file, read_orientation


def save(path: Path, orientation: int = 1) -> str:
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.new("RGB", (31, 17)).save(path, exif=exif)
    return str(path)


@pytest.mark.parametrize("image_format", ["JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM"])
def test_measure_image_reads_the_header_of_any_format(tmp_path: Path, image_format: str) -> None:
    path = tmp_path / "wrong.suffix"
    Image.new("RGB", (31, 17)).save(path, image_format)
    assert measure_image_file(str(path)) == (31, 17)


def test_measure_image_jpeg_with_a_large_profile_before_its_size(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    Image.new("RGB", (31, 17)).save(path, icc_profile=b"x" * 200_000)
    assert measure_image_file(str(path)) == (31, 17)


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "tif"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_measure_image_gives_the_size_its_record_will_have(tmp_path: Path, suffix: str, orientation: int) -> None:
    path = save(tmp_path / f"a.{suffix}", orientation)
    assert read_orientation(path) == orientation
    assert measure_image_file(path) == (31, 17)
    assert measure_image_file(path, "apply") == ((31, 17) if orientation < 5 else (17, 31))


def test_measure_image_refuses_an_orientation_when_requested(tmp_path: Path) -> None:
    assert measure_image_file(save(tmp_path / "a.jpg"), "fail") == (31, 17)
    with pytest.raises(SourceError, match="image expected upright, got EXIF orientation 2"):
        measure_image_file(save(tmp_path / "b.jpg", 2), "fail")


def test_tiff_whose_directory_is_far_away_has_the_size_of_its_pixels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMITS, "image_head_nbytes", 16)
    monkeypatch.setattr(LIMITS, "max_image_head_nbytes", 16)
    path = save(tmp_path / "a.tif", 6)
    assert (measure_image_file(path), measure_image_file(path, "apply")) == ((31, 17), (17, 31))


def test_size_that_fits_the_other_orientation_names_the_option(tmp_path: Path) -> None:
    turned, plain = save(tmp_path / "a.jpg", 6), save(tmp_path / "b.jpg", 3)
    explained = explain_difference(turned, (17, 31), (31, 17), "keep")
    assert explained == (", stored with EXIF orientation 6", 'if it was annotated upright: exif="apply"')
    explained = explain_difference(turned, (31, 17), (17, 31), "apply")
    assert explained == (", turned by its EXIF orientation 6", 'if it was annotated as stored: exif="keep"')
    assert explain_difference(plain, (17, 31), (31, 17), "keep") == (", width and height are swapped", None)
    assert explain_difference(turned, (17, 30), (31, 17), "keep") == ("", None)


@pytest.mark.parametrize(("content", "match"), [(b"", "got an empty file"), (b"hello", "are of unknown format")])
def test_measure_image_other_files_are_refused(tmp_path: Path, content: bytes, match: str) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=match):
        measure_image_file(str(path))
