"""Masks, boxes and keypoints: every pixel as computed, and no request for a switch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

# The icon is fetched again at each new address, and the neighbours of record 3 are fetched ahead.
OTHER = ("w/icon.svg", "api/place/", "i/2", "i/4")
PERSON = (0xC0, 0x80, 0x80)
IN_MASK, IN_NOTHING, ON_BOX = (0.1, 0.1), (0.9, 0.9), (0.5, 0.25)
POINTS = {"seen": (0.25, 0.25), "hidden": (0.5, 0.25), "not given": (0.75, 0.25), "second object": (0.25, 0.75)}


def blend(below: tuple[int, ...], above: tuple[int, ...], opacity: float) -> list[int]:
    alpha = round(opacity * 255) / 255
    return [round(a * alpha + b * (1 - alpha)) for a, b in zip(above, below, strict=True)]


def near(found: list[int], wanted: list[int]) -> bool:
    # A canvas keeps colours multiplied by alpha: one step of rounding.
    return all(abs(a - b) <= 1 for a, b in zip(found, wanted, strict=True))


@pytest.fixture
def view(fake_view: Callable[..., Any]) -> Any:
    view = fake_view(10)
    view.open("record=3", "detail")
    view.page.locator("tfr-detail .detail-head button").first.focus()
    return view


def test_mask_is_blended_at_its_opacity_without_a_request(view: Any) -> None:
    plain = view.server.color_of(3)
    assert near(view.pixel(".stage-canvas", *IN_MASK), blend(plain, PERSON, 0.55))
    assert view.pixel(".stage-canvas", *IN_NOTHING) == list(plain)
    asked = len(view.server.asked)
    for key, opacity in (("]", 0.65), ("]", 0.75), ("[", 0.65)):
        view.press(key, "stage")
        assert near(view.pixel(".stage-canvas", *IN_MASK), blend(plain, PERSON, opacity))
    assert view.state()["opacity"] == "65"
    assert [path for path in view.server.asked[asked:] if not path.startswith(OTHER)] == []


def test_a_class_is_hidden_by_its_key_and_by_its_button(view: Any) -> None:
    plain = list(view.server.color_of(3))
    asked = len(view.server.asked)
    view.press("1", "stage")
    assert view.pixel(".stage-canvas", *IN_MASK) == plain
    assert view.state()["hide"] == "person"
    view.after(lambda: view.page.get_by_role("button", name="person").click(), "stage")
    assert view.pixel(".stage-canvas", *IN_MASK) != plain
    assert view.pixel(".stage-canvas", *ON_BOX) == [0, 255, 0]
    view.after(lambda: view.page.get_by_role("button", name="dog").click(), "stage")
    assert view.pixel(".stage-canvas", *ON_BOX) == plain
    assert [path for path in view.server.asked[asked:] if not path.startswith(OTHER)] == []


def test_overlays_are_hidden_while_a_key_is_held(view: Any) -> None:
    plain = list(view.server.color_of(3))
    view.after(lambda: view.page.keyboard.down("h"), "held", hide=True)
    assert view.pixel(".stage-canvas", *IN_MASK) == plain
    assert view.pixel(".stage-canvas", *ON_BOX) == plain
    view.after(lambda: view.page.keyboard.up("h"), "held", hide=False)
    assert view.pixel(".stage-canvas", *ON_BOX) == [0, 255, 0]


def test_switches_of_mask_and_boxes_stay_in_the_address(view: Any) -> None:
    plain = list(view.server.color_of(3))
    view.after(lambda: view.page.get_by_label("Mask").uncheck(), "stage")
    assert view.pixel(".stage-canvas", *IN_MASK) == plain
    view.after(lambda: view.page.get_by_label("Boxes").uncheck(), "stage")
    assert view.pixel(".stage-canvas", *ON_BOX) == plain
    assert view.page.evaluate("new URLSearchParams(location.search).getAll('off')") == ["mask", "boxes"]


@pytest.mark.parametrize("record", [0, 1], ids=["fractions", "pixels"])
def test_keypoints_are_filled_open_or_left_out_and_have_a_switch(real_view: Callable[..., Any], record: int) -> None:
    view, gray = real_view("people"), [120] * 3
    view.open(f"record={record}", "detail")
    seen = {name: view.pixel(".stage-canvas", x, y) for name, (x, y) in POINTS.items()}
    assert seen == {"seen": [128, 0, 0], "hidden": gray, "not given": gray, "second object": [64, 0, 0]}
    view.after(lambda: view.page.get_by_label("Keypoints").uncheck(), "stage")
    assert [view.pixel(".stage-canvas", x, y) for x, y in POINTS.values()] == [gray] * 4


def test_legend_lists_classes_with_their_share_and_count(view: Any) -> None:
    assert [text.split() for text in view.texts(".legend-class")] == [["person", "25.0", "%"], ["dog", "×1"]]


def test_class_under_the_pointer_is_named(view: Any) -> None:
    box = view.page.locator(".stage-canvas").bounding_box()
    view.page.mouse.move(box["x"] + 10, box["y"] + 10)
    assert "15 person" in view.page.locator(".stage-under").inner_text()


def test_colours_of_unnamed_classes_follow_the_rule_of_voc(fake_view: Callable[..., Any]) -> None:
    view = fake_view(10)
    view.open()
    colors = view.module("overlay", "(overlay, ids) => ids.map(overlay.vocColor)", [0, 1, 2, 15, 20, 255])
    assert colors == [[0, 0, 0], [128, 0, 0], [0, 128, 0], [192, 128, 128], [0, 64, 128], [224, 224, 192]]


def test_tiles_follow_the_same_switches(fake_view: Callable[..., Any]) -> None:
    view = fake_view(10)
    view.open()
    plain = view.server.color_of(2)
    assert near(view.pixel("#tile-2 canvas", *IN_MASK), blend(plain, PERSON, 0.55))
    view.after(lambda: view.page.keyboard.down("h"), "held", hide=True)
    assert view.pixel("#tile-2 canvas", *IN_MASK) == list(plain)
    view.after(lambda: view.page.keyboard.up("h"), "held", hide=False)
