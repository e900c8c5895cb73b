from __future__ import annotations

import string

import pytest

from tfrkit.errors import SourceError
from tfrkit.features.labels import (
    LabelMap,
    make_charset,
    make_class_map,
    parse_label_map,
    read_charset,
    read_class_map,
)


def test_class_map_sorts_names_and_counts_from_zero():
    labels = make_class_map(["orange", "apple", "orange"])
    assert labels.names == ("apple", "orange")
    assert [labels.id_of(name) for name in labels.names] == [0, 1]
    assert labels.to_text() == "0:apple\n1:orange\n"


def test_offset_moves_every_id_and_names_the_gap():
    labels = make_class_map(["a", "b"], offset=1)
    assert labels.id_of("a") == 1
    assert labels.to_text() == "1:a\n2:b\n"
    assert labels.spec_names() == ("unused 0", "a", "b")


def test_negative_offset_raises():
    with pytest.raises(ValueError, match="label offset expected 0 or more, got -1"):
        make_class_map(["a"], offset=-1)


def test_name_given_twice_raises():
    with pytest.raises(SourceError, match="class names expected once each, got twice: 'a'"):
        LabelMap(("a", "b", "a"))


@pytest.mark.parametrize(
    ("seen", "origin"),
    [
        ("0", "digits"),
        ("0317", "digits"),
        ("abc", "lower"),
        ("XYZ", "upper"),
        ("aZ", "letters"),
        ("a7", "alnum"),
        ("7KQ3X", "alnum"),
    ],
)
def test_auto_charset_is_the_smallest_that_covers_the_text(seen, origin):
    charset = make_charset("auto", seen)
    assert charset.origin == origin
    assert set(seen) <= set(charset.names)


def test_digit_that_never_occurs_shifts_no_id():
    assert make_charset("auto", "13579").id_of("9") == 9


def test_alnum_counts_digits_upper_lower():
    charset = make_charset("alnum", "")
    assert charset.names == tuple(string.digits + string.ascii_uppercase + string.ascii_lowercase)


def test_auto_charset_of_other_characters_is_their_sorted_set():
    charset = make_charset("auto", "东中a")
    assert charset.names == tuple(sorted("东中a"))
    assert charset.origin == "characters seen"


def test_class_file_of_plain_lines_keeps_their_order(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("dog\n\ncat\n", encoding="utf-8")
    assert read_class_map(str(path)).names == ("dog", "cat")


def test_class_file_we_wrote_reads_back_with_odd_names(tmp_path):
    labels = LabelMap(("a\\n", "b\nc", "ü:x", "\\"), offset=3)
    path = tmp_path / "classes.txt"
    path.write_text(labels.to_text(), encoding="utf-8")
    back = read_class_map(str(path))
    assert back.names == labels.names
    assert back.offset == 3


def test_class_file_with_a_gap_in_its_ids_raises(tmp_path):
    path = tmp_path / "classes.txt"
    path.write_text("0:a\n2:b\n")
    with pytest.raises(SourceError, match="class ids expected without gaps"):
        read_class_map(str(path))


def test_class_file_that_is_empty_raises(tmp_path):
    path = tmp_path / "classes.txt"
    path.write_text("\n")
    with pytest.raises(SourceError, match="expected at least one name, got an empty file"):
        read_class_map(str(path))


@pytest.mark.parametrize("number", [-1, 65537])
def test_label_map_with_an_id_out_of_range_names_it(number: int) -> None:
    with pytest.raises(SourceError, match=f"id expected from 0 to 65,536, got {number} - at m.pbtxt, line 2"):
        parse_label_map(f"item {{ id: 1 name: 'a' }}\nitem {{ id: {number} name: 'b' }}\n", "m.pbtxt")


def test_charset_file_of_characters_keeps_their_order(tmp_path):
    path = tmp_path / "chars.txt"
    path.write_text("ba\ndc\n")
    assert read_charset(str(path)).names == ("b", "a", "d", "c")


def test_charset_file_we_wrote_reads_back(tmp_path):
    path = tmp_path / "charset.txt"
    path.write_text(make_charset("digits", "").to_text())
    assert read_charset(str(path)).names == tuple(string.digits)


@pytest.mark.parametrize(
    ("text", "ids", "moved"),
    [
        ("cat\ndog\n", [1, 2], [5, 6]),
        ("__background__\ncat\n", [0, 1], [5, 6]),
        ("3:cat\n4:dog\n", [3, 4], [5, 6]),
        ("0:cat\n1:dog\n", [0, 1], [5, 6]),
    ],
)
def test_ids_of_a_file_stay_unless_an_offset_is_given(tmp_path, text, ids, moved):
    path = tmp_path / "names.txt"
    path.write_text(text)
    for offset, expected in ((None, ids), (5, moved)):
        labels = read_class_map(str(path), offset=offset, first=1)
        assert [labels.id_of(name) for name in labels.names] == expected


@pytest.mark.parametrize("suffix", [".pbtxt", ".pbtext", ".prototxt"])
def test_label_map_is_read_by_its_suffix(tmp_path, suffix):
    path = tmp_path / f"map{suffix}"
    path.write_text("item { id: 2 name: 'cat' } item { id: 4 name: 'dog' }")
    labels = read_class_map(str(path))
    assert (labels.names, labels.offset, labels.gaps) == (("cat", "unused 3", "dog"), 2, frozenset({3}))
    labels = read_class_map(str(path), offset=0)
    assert (labels.id_of("dog"), labels.gaps) == (2, frozenset({1}))


def test_unknown_charset_names_the_known_ones():
    with pytest.raises(SourceError, match="one of auto, digits, lower, upper, letters, alnum, or a file, got 'hex'"):
        make_charset("hex", "")
