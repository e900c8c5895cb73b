"""The filter: one visible condition that ticks, brushes, search and the user's own text write together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

OWN = "_record < 100 or name = 'a and b'"


@pytest.fixture
def where(fake_view: Callable[..., Any]) -> Callable[..., Any]:
    view = fake_view(10)
    view.open()
    return lambda name, *arguments: view.module("where", f"(where, list) => where.{name}(...list)", list(arguments))


def test_terms_split_at_and_outside_of_quotes_and_brackets(where: Callable[..., Any]) -> None:
    text = """a = 1 AND (b = 2 and c = 3) and d = 'x and y' and "and" = 4 and e between 1 and 2 and f = 5"""
    assert where("terms", text) == [
        "a = 1",
        "(b = 2 and c = 3)",
        "d = 'x and y'",
        '"and" = 4',
        "e between 1 and 2",
        "f = 5",
    ]
    assert where("terms", OWN) == [OWN]
    assert where("terms", "  ") == []
    assert where("terms", "brand = 1 and order_id = 2") == ["brand = 1", "order_id = 2"]


def test_ticks_are_read_from_the_text_and_leave_other_terms_alone(where: Callable[..., Any]) -> None:
    values = ["label = 1", "label = 2", "label = 12"]
    text = where("tick", "score > 0.5", values, ["label = 1"])
    assert text == "score > 0.5 and label = 1"
    text = where("tick", text, values, ["label = 1", "label = 12"])
    assert text == "score > 0.5 and (label = 1 or label = 12)"
    assert where("ticked", text, values) == ["label = 1", "label = 12"]
    assert where("tick", text, values, []) == "score > 0.5"


def test_a_condition_with_or_is_bracketed_before_a_term_is_added(where: Callable[..., Any]) -> None:
    assert where("tick", OWN, ["label = 1"], ["label = 1"]) == f"({OWN}) and label = 1"


def test_brush_replaces_its_own_range_only(where: Callable[..., Any]) -> None:
    text = where("brush", "label = 1", '"image/height"', {"from": 100, "to": 200, "isLast": False})
    assert text == 'label = 1 and ("image/height" >= 100 and "image/height" < 200)'
    assert where("brushed", text, '"image/height"') == [100, 200]
    assert where("brushed", text, "height") is None
    text = where("brush", text, '"image/height"', {"from": -1.5, "to": 1e30, "isLast": True})
    assert text == 'label = 1 and ("image/height" >= -1.5 and "image/height" <= 1e+30)'
    assert where("brush", text, '"image/height"', None) == "label = 1"


def test_search_is_quoted_and_found_again(where: Callable[..., Any]) -> None:
    text = where("search", "label = 1", ["name", "text"], "it's or that")
    assert text == "label = 1 and (name ilike '%it''s or that%' or text ilike '%it''s or that%')"
    assert where("searched", where("search", "", ["name"], "cat"), ["name"]) == "cat"
    assert where("search", "name ilike '%cat%'", ["name"], "") == ""


def test_tick_brush_search_and_text_write_one_condition(fake_view: Callable[..., Any]) -> None:
    view = fake_view(1000)
    view.open()
    view.page.wait_for_selector(".values input")
    view.after(lambda: view.page.get_by_label("dog").check(), "selection")
    assert view.state()["where"] == "label = 1"
    view.after(lambda: view.page.get_by_label("tree").check(), "selection")
    assert view.page.input_value("#where") == "(label = 1 or label = 3)"

    box = view.page.locator(".bars.can-brush").bounding_box()

    def drag() -> None:
        view.page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 30)
        view.page.mouse.down()
        view.page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 30)
        view.page.mouse.up()

    view.after(drag, "selection")
    text = view.page.input_value("#where")
    assert text.startswith("(label = 1 or label = 3) and (score >= 0.")
    assert [box.is_checked() for box in view.page.locator(".values input").all()] == [False, True, False, True, False]

    view.page.fill("#where", "label = 4")
    view.after(lambda: view.page.keyboard.press("Enter"), "selection")
    assert view.state()["where"] == "label = 4"
    assert "200 of 1,000" in view.page.locator(".status").inner_text()
    start = view.mark()
    view.page.go_back()
    view.wait(start, what="selection")
    assert view.page.input_value("#where") == text


def test_a_link_shows_the_same_state_in_another_browser(fake_view: Callable[..., Any], open_view: Any) -> None:
    view = fake_view(1000)
    view.open()
    view.page.fill("#where", "label = 4")
    view.press("Enter", "grid", count=200)
    view.page.locator(".grid-scroller").focus()
    view.press("Enter", "detail")
    view.after(lambda: view.page.get_by_role("button", name="person").click(), "stage")
    other = open_view(view.server.url)
    other.open(view.page.url.split("?", 1)[1], "detail")
    assert other.page.input_value("#where") == "label = 4"
    assert other.page.get_by_role("button", name="person").get_attribute("aria-pressed") == "false"
    assert other.pixel(".stage-canvas", 0.1, 0.1) == view.pixel(".stage-canvas", 0.1, 0.1)


def test_a_wrong_condition_is_shown_with_its_reason(fake_view: Callable[..., Any]) -> None:
    view = fake_view(10)
    view.open()
    view.server.select_failure = "column labl not found"
    view.page.fill("#where", "labl = 1")
    view.press("Enter", "selection")
    assert "column labl not found" in view.page.locator(".nothing").inner_text()
    assert view.page.get_attribute("#where", "aria-invalid") == "true"
