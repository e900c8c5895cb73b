from __future__ import annotations

import os

import pytest

from tfrkit.errors import SourceError
from tfrkit.images.encode import ImageOptions
from tfrkit.images.turn import StoredImage
from tfrkit.sources.base import Problem
from tfrkit.sources.image_features import image_row, image_specs, to_problem

STORED = StoredImage(b"...", "png", 4, 3, 1, 4, 3)


@pytest.mark.parametrize(
    ("name", "prefix"), [("image/encoded", "image/"), ("image", ""), ("a/left/encoded", "a/left/")]
)
def test_row_and_specs_have_the_same_names_next_to_the_bytes(name, prefix):
    names = [name, *(f"{prefix}{fact}" for fact in ("format", "height", "width", "channels"))]
    assert image_row(STORED, name) == dict(zip(names, (b"...", "png", 3, 4, 1), strict=True))
    specs = image_specs(ImageOptions(), {}, name, optional=True)
    assert list(specs) == names
    assert all(spec.optional for spec in specs.values())


def test_problem_of_a_missing_file_and_of_a_dangling_link(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent") as missing:
        (tmp_path / "absent").read_bytes()
    assert to_problem("a.xml", missing.value) == Problem("a.xml", "cannot open, no such file or directory")
    os.symlink("nowhere", tmp_path / "link")
    with pytest.raises(FileNotFoundError, match="link") as dangling:
        (tmp_path / "link").read_bytes()
    assert to_problem("a.xml", dangling.value, input="a").reason == "dangling link, to 'nowhere'"


def test_problem_of_an_error_keeps_its_place_and_hint():
    error = SourceError("not valid XML", shard="a.xml, line 3", hint="repair it")
    assert to_problem("a.xml", error, input="a") == Problem(
        "a.xml, line 3", "not valid XML", input="a", hint="repair it"
    )
