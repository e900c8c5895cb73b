"""Names from records: inside the output, unique, and never distinct by case alone."""

from __future__ import annotations

import os

import pytest

from tfrkit.ops.export.names import SafeNames, safe_part


@pytest.mark.parametrize(
    ("stored", "written"),
    [
        ("a/b.jpg", "a/b.jpg"),
        ("../../etc/passwd", "etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("a/../../b.jpg", "a/b.jpg"),
        ("./a//b.jpg", "a/b.jpg"),
        ("..", "7.jpg"),
        ("", "7.jpg"),
        ("/", "7.jpg"),
        ("a\0b.jpg", "a_b.jpg"),
        ("...", "..."),
        ("grüße/標籤.png", "grüße/標籤.png"),
        ("\udcff.jpg", "\udcff.jpg"),
    ],
)
def test_name_stays_inside_and_is_changed_no_more_than_needed(stored: str, written: str) -> None:
    assert SafeNames().take(stored, otherwise="7.jpg") == written


def test_names_that_fall_together_get_numbers() -> None:
    names = SafeNames()
    taken = [names.take(name, otherwise="x") for name in ("a.jpg", "a.jpg", "A.JPG", "b.jpg", "a-2.jpg")]
    assert taken == ["a.jpg", "a-2.jpg", "A-3.JPG", "b.jpg", "a-2-2.jpg"]
    assert len({name.casefold() for name in taken}) == len(taken)


def test_names_that_differ_in_the_form_of_a_letter_fall_together() -> None:
    names = SafeNames()
    assert names.take("caf\u00e9", otherwise="x") == "caf\u00e9"
    assert names.take("cafe\u0301", otherwise="x") == "cafe\u0301-2"


def test_folders_that_differ_in_case_are_made_unique() -> None:
    names = SafeNames()
    taken = [names.take(name, otherwise="x") for name in ("Cat/1", "cat/2", "cat/1", "Cat/2", "cat/2")]
    assert taken == ["Cat/1", "cat-2/2", "cat-2/1", "Cat/2", "cat-2/2-2"]


def test_file_and_folder_of_one_name_are_made_unique() -> None:
    names = SafeNames()
    assert [names.take(name, otherwise="x") for name in ("cat", "cat/1", "dog/1", "dog")] == [
        "cat",
        "cat-2/1",
        "dog/1",
        "dog-2",
    ]


def test_by_stem_suffixes_do_not_count() -> None:
    names = SafeNames(by_stem=True)
    taken = [names.take(name, otherwise="x") for name in ("a.jpg", "a.png", "b/a.png", "b.jpg")]
    assert taken == ["a.jpg", "a-2.png", "b/a.png", "b.jpg"]


def test_plain_names_can_stand_on_a_line() -> None:
    assert SafeNames(is_plain=True).take(" a\nb /c\u2028.jpg ", otherwise="x") == "a_b/c_.jpg"


def test_long_names_are_cut_and_stay_different() -> None:
    names = SafeNames()
    taken = [names.take("é" * 200 + end + ".jpg", otherwise="x") for end in "ab"]
    assert len(set(taken)) == 2
    assert all(len(os.fsencode(name)) < 255 and name.endswith(".jpg") for name in taken)
    assert names.take("/".join(["a" * 200] * 20), otherwise="7.jpg") == "7.jpg"


def test_one_name_for_all_records_is_not_counted_up_anew_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    names = SafeNames()
    plain, tries = names._key, 0

    def count(*parts: str) -> int:
        nonlocal tries
        tries += 1
        return plain(*parts)

    monkeypatch.setattr(names, "_key", count)
    taken = [names.take("image.jpg", otherwise="x") for _ in range(500)]
    assert taken[-1] == "image-500.jpg"
    assert tries <= 2 * 500


@pytest.mark.parametrize(
    ("name", "part"), [("cat", "cat"), ("a/b", "a_b"), ("..", "_"), ("", "_"), ("../x", ".._x"), ("a\0", "a_")]
)
def test_class_is_one_part_of_a_path(name: str, part: str) -> None:
    assert safe_part(name) == part


def test_reserved_name_is_never_assigned() -> None:
    names = SafeNames()
    names.reserve("labels.csv")
    assert names.take("Labels.csv", otherwise="x") == "Labels-2.csv"
