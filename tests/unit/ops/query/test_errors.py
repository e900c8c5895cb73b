from __future__ import annotations

import pytest

from tfrkit.ops.query.errors import point_at, quote_name, read_facts, to_query_error


@pytest.mark.parametrize(
    ("name", "quoted"), [("label", "label"), ("_x1", "_x1"), ("1x", '"1x"'), ("a/b", '"a/b"'), ('a"b', '"a""b"')]
)
def test_names_are_quoted_where_sql_needs_it(name: str, quoted: str) -> None:
    assert quote_name(name) == quoted


def test_places_are_bytes_and_are_shown_as_characters() -> None:
    assert point_at("select 'ü', x", 13) == " - at character 13 of the query"
    assert point_at("abc", None) == point_at("abc", 100) == ""


def test_facts_are_read_in_either_form() -> None:
    told = read_facts(ValueError('Binder Error: {"exception_message": "Boo", "position": "3"}'))
    assert told == {"exception_message": "Boo", "position": "3"}
    assert read_facts(ValueError("Binder Error: Boo {")) == {"exception_message": "Boo {"}
    assert read_facts(ValueError("boo")) == {"exception_message": "boo"}


def test_message_is_one_clause_with_the_place_drawn_below() -> None:
    text = "select a,\n  b + from 'x'"
    error = to_query_error({"exception_message": "Bad thing here!\nmore", "position": "14"}, text)
    assert str(error) == "bad thing here - at character 15 of the query\n    b + from 'x'\n      ^"
    assert error.position == 14
    long = "select " + "a, " * 100 + "b"
    assert (
        len(str(to_query_error({"exception_message": "INT128 is odd", "position": "250"}, long)).split("\n")[1]) <= 102
    )
    assert str(to_query_error({"exception_message": "INT128 is odd"}, "x")) == "INT128 is odd"


def test_missing_column_comes_with_the_nearest_and_the_others() -> None:
    facts = {"exception_message": "...", "error_subtype": "COLUMN_NOT_FOUND", "name": "image", "position": "7"}
    columns = [("img", "img"), ("image/height", '"image/height"')]
    error = to_query_error(facts, "select image/height from 'x'", columns=columns)
    assert str(error) == (
        'no column image, did you mean "image/height" - at character 8 of the query\n  columns: img, "image/height"'
    )
    many = [(f"c{number}", f"c{number}") for number in range(40)]
    assert str(to_query_error(facts, "select image", columns=many)).endswith("c10, c11, … 40 in all")
