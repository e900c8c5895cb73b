from __future__ import annotations

import json

import pytest

from tfrkit.build.changes import describe_changes, describe_input_changes
from tfrkit.build.report import Report, Skipped, refuse, write_skipped_lines
from tfrkit.sources.base import Items, ItemsBuilder, Problem


def test_error_names_bad_inputs_and_what_to_do():
    error = refuse([Problem("a.png", "broken"), Problem("b.png", "empty")], found=10)
    assert str(error) == (
        "2 of 10 inputs are bad, nothing was written\n"
        "  a.png: broken\n"
        "  b.png: empty\n"
        '  repair or remove them    or leave them out: on_bad="skip"'
    )


def test_equal_reasons_are_one_line_with_a_count_and_all_are_held():
    error = refuse([Problem(f"{n}", "bad") for n in range(1000)], found=1000)
    assert str(error).splitlines()[1] == "  1,000 times: bad - at 0; 1; 2 and 997 more"
    assert len(str(error).splitlines()) == 3
    assert len(error.problems) == 1000


def test_error_shows_some_of_many_kinds_and_holds_all():
    error = refuse([Problem(f"{n}", f"bad {'x' * n}") for n in range(100)], found=100)
    assert "... and 80 more" in str(error)
    assert len(error.problems) == 100


def test_problem_without_an_input_is_not_counted_as_one():
    column = Problem("x.csv, column 'a'", "is text", blocking=True, input=None)
    assert refuse([column], found=3000).what == "1 problem in 3,000 inputs, nothing was written"
    assert refuse([column], found=0).what == "1 problem found, nothing was written"
    both = refuse([column, Problem("a", "x"), column], found=7)
    assert both.what == "1 of 7 inputs is bad and there are 2 problems more, nothing was written"


def test_problems_of_one_input_count_once():
    boxes = [Problem(f"a.xml, line {line}", "box", input="a") for line in range(2)]
    assert refuse(boxes, found=7).what == "1 of 7 inputs is bad, nothing was written"
    report = Report("out", "x", skipped=[Skipped.of(box) for box in boxes])
    assert (report.num_skipped, report.to_json()["skipped"]) == (1, 1)
    assert write_skipped_lines(report.skipped).count("\n") == 2


def test_input_with_two_problems_counts_once():
    error = refuse([Problem("a", "x"), Problem("a", "y")], found=5)
    assert error.what == "1 of 5 inputs is bad, nothing was written"


def test_blocking_problems_cannot_be_skipped_so_that_is_not_offered():
    error = refuse([Problem("a", "x", blocking=True)], found=5, is_begun=True)
    assert "on-bad" not in str(error)
    assert "shards without them are kept" in error.what


def test_report_counts_reasons():
    report = Report("out", "x", skipped=[Skipped("a", "r"), Skipped("b", "s"), Skipped("c", "r")])
    assert report.to_json()["skipped_by_reason"] == {"r": 2, "s": 1}
    assert not report.ok


def test_skipped_lines_are_json_with_odd_names():
    (line,) = write_skipped_lines([Skipped("验\n", "why", "train")]).splitlines()
    assert json.loads(line) == {"key": "验\n", "reason": "why", "split": "train"}


# --- what changed


def test_changed_values_are_named_with_both():
    old = {"options": {"label": "a", "images": {"gray": False}}, "build": {"seed": 0}}
    new = {"options": {"label": "b", "images": {"gray": True}}, "build": {"seed": 0}}
    assert describe_changes(old, new) == ['label was "a", is "b"', "images gray was false, is true"]


def test_long_values_are_cut():
    (line,) = describe_changes({"x": "a" * 200}, {"x": "b"})
    assert len(line) < 100


@pytest.mark.parametrize(
    ("name", "words"), [("schema_digest", "the names of classes or features differ"), ("records", "the inputs differ")]
)
def test_change_shown_only_by_a_digest_is_described(name, words):
    (line,) = describe_changes({name: "x"}, {name: "y"})
    assert words in line


def test_equal_descriptions_have_no_changes():
    assert describe_changes({"a": 1}, {"a": 1}) == []


def make_items(*files) -> Items:
    builder = ItemsBuilder()
    for key, nbytes, stamp in files:
        builder.add(key, nbytes=nbytes, stamp=stamp)
    return builder.build()


def test_inputs_added_removed_and_changed_are_named():
    old = {"a": (1, 5), "b": (1, 5), "c": (1, 5), "d": (1, 5)}
    items = make_items(("a", 1, 5), ("b", 2, 5), ("c", 1, 6), ("e", 1, 5))
    assert describe_input_changes(old, items) == ["1 input added: e", "1 input removed: d", "2 inputs changed: b, c"]


def test_without_listed_times_inputs_newer_than_the_dataset_are_changed():
    items = make_items(("a", 1, 50), ("b", 1, 150))
    assert describe_input_changes({"a": (1, 0), "b": (1, 0)}, items, since=100) == ["1 input changed: b"]


def test_rows_have_no_inputs_to_name():
    assert describe_input_changes({"a": (1, 1)}, Items(3)) == []
