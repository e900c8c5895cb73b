from __future__ import annotations

import multiprocessing.reduction
import os
import sys

import numpy as np
import pytest
from PIL import Image

from tfrkit.errors import SourceError
from tfrkit.images.encode import ImageOptions
from tfrkit.sources.file_names import FileNames, match_label

CLASS = r"^(?P<class>[a-z]+)"
TEXT = r"^(?P<text>[^_.]+)"


def read_rows(found):
    return [found.reader.read(found.items.item(number)) for number in range(found.items.size)]


def test_class_comes_from_the_name(make_images, tmp_path):
    root = make_images(["apple01.png", "orange07.png", "apple02.png"])
    found = FileNames(root, CLASS).scan(str(tmp_path))
    rows = read_rows(found)
    assert [(row["filename"], row["label"], row["label/text"]) for row in rows] == [
        (b"apple01.png", 0, b"apple"),
        (b"apple02.png", 0, b"apple"),
        (b"orange07.png", 1, b"orange"),
    ]
    assert found.label_files == {"classes.txt": "0:apple\n1:orange\n"}
    assert found.items.labels.tolist() == [0, 0, 1]


@pytest.mark.parametrize("label", [CLASS, TEXT])
def test_label_pattern_runs_once_per_file(make_images, tmp_path, monkeypatch, label):
    keys = []
    module = sys.modules[FileNames.__module__]
    monkeypatch.setattr(module, "match_label", lambda pattern, key: keys.append(key) or match_label(pattern, key))
    found = FileNames(make_images(["apple.png", "orange.png"]), label).scan(str(tmp_path))
    assert [row["label/text"] for row in read_rows(found)] == [b"apple", b"orange"]
    assert keys == ["apple.png", "orange.png"]


def test_text_gives_one_label_a_character(make_images, tmp_path):
    found = FileNames(make_images(["7KQ3X_1.png"]), r"^(?P<text>.{5})").scan(str(tmp_path))
    (row,) = read_rows(found)
    ids = [7, 20, 26, 3, 33]
    assert [row[f"label{head}"] for head in range(5)] == ids
    assert row["label/ids"].tolist() == ids
    assert (row["label/text"], row["label/length"]) == (b"7KQ3X", 5)
    assert set(found.schema.names) == set(row)


def test_row_holds_the_size_of_raw_pixels(make_images, tmp_path):
    root = make_images(["12345.png"])
    images = ImageOptions(resize=(16, 12), gray=True)
    found = FileNames(root, TEXT, images).scan(str(tmp_path))
    (row,) = read_rows(found)
    expected = np.asarray(Image.open(root / "12345.png").resize((16, 12)).convert("L"))
    np.testing.assert_array_equal(np.frombuffer(row["image"], np.uint8).reshape(12, 16), expected)
    assert (row["height"], row["width"], row["channels"], row["format"]) == (12, 16, 1, "raw")
    assert found.schema["image"].shape == (12, 16, 1)


def test_texts_of_different_length_are_filled_up_with_one_more_id(make_images, tmp_path):
    found = FileNames(make_images(["12_a.png", "345_b.png"]), TEXT).scan(str(tmp_path))
    rows = read_rows(found)
    assert [row["label/ids"].tolist() for row in rows] == [[1, 2, 10], [3, 4, 5]]
    assert [row["label/length"] for row in rows] == [2, 3]
    assert found.label_files["charset.txt"].endswith("9:9\n10:<pad>\n")
    assert found.schema["label0"].num_classes == 11


def test_charset_from_unicode_names(make_images, tmp_path):
    root = make_images(["验证码/东中_1.png", "验证码/中东_2.png"])
    found = FileNames(root, TEXT).scan(str(tmp_path))
    assert found.label_files["charset.txt"] == "0:东\n1:中\n"
    assert [row["label/ids"].tolist() for row in read_rows(found)] == [[0, 1], [1, 0]]


def test_characters_outside_the_charset_block_and_name_every_file(make_images, tmp_path):
    found = FileNames(make_images(["1a.png", "22.png", "b3.png"]), TEXT, charset="digits").scan(str(tmp_path))
    assert [(p.key, p.blocking) for p in found.problems] == [("1a.png", True), ("b3.png", True)]
    assert "character 'a' is not one of the 10 of digits" in found.problems[0].reason


def test_class_outside_the_given_ones_blocks(make_images, tmp_path):
    found = FileNames(make_images(["apple1.png", "pear1.png"]), CLASS, classes=["apple"]).scan(str(tmp_path))
    assert [(p.key, p.blocking) for p in found.problems] == [("pear1.png", True)]


def test_name_the_label_does_not_match_is_a_problem(make_images, tmp_path):
    found = FileNames(make_images(["apple1.png", "007.png"]), CLASS).scan(str(tmp_path))
    assert [p.key for p in found.problems] == ["007.png"]
    assert not found.problems[0].blocking


def test_label_that_matches_nothing_raises_with_an_example(make_images, tmp_path):
    with pytest.raises(SourceError, match=r"matches none of 2 file names, such as 'apple1.png'"):
        FileNames(make_images(["apple1.png", "pear1.png"]), r"(?P<class>[A-Z]+)").scan(str(tmp_path))


def test_name_that_is_not_utf8_is_a_problem_where_the_label_has_it(make_images, tmp_path):
    root = make_images(["ok.png"])
    os.rename(root / "ok.png", os.fsencode(root) + b"/a\xff.png")
    make_images(["good.png"])
    found = FileNames(root, TEXT).scan(str(tmp_path))
    assert [p.reason for p in found.problems] == ["label expected text, got bytes in the file name that are not UTF-8"]


@pytest.mark.parametrize("label", ["^([a-z]+)", "(?P<class>a)(?P<text>b)"])
def test_label_without_one_known_group_raises(label):
    with pytest.raises(ValueError, match="label expected one group named class or text"):
        FileNames("x", label)


def test_label_that_is_no_regular_expression_raises():
    with pytest.raises(ValueError, match="label expected a regular expression"):
        FileNames("x", "(?P<class>[a-z+)")


def test_reader_survives_being_sent_to_a_worker(make_images, tmp_path):
    found = FileNames(make_images(["12.png"]), TEXT).scan(str(tmp_path))
    pickler = multiprocessing.reduction.ForkingPickler
    sent = pickler.loads(pickler.dumps(found.reader))
    assert sent.read(found.items.item(0))["label/text"] == b"12"
