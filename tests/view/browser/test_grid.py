"""The grid of all records: arithmetic, scrolling, keys, requests."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

MANY = 100_000_000


def shown(view: Any, position: int) -> str:
    return view.page.locator(f"#tile-{position} .tile-number").inner_text().replace(",", "")  # type: ignore[no-any-return]


def test_first_last_and_random_records_of_many_are_reached_by_number(fake_view: Callable[..., Any]) -> None:
    view = fake_view(MANY)
    assert view.open()["count"] == MANY
    for number in [MANY - 1, 0, *random.Random(7).sample(range(MANY), 8)]:
        drawn = view.go_to(number)
        assert drawn["first"] <= number <= drawn["last"]
        assert shown(view, number) == str(number)
        # outside of the box and of the mask
        assert view.pixel(f"#tile-{number} canvas", 0.9, 0.95) == list(view.server.color_of(number))


@pytest.mark.parametrize("start", [0, 500, 50_000_000, MANY - 200])
def test_wheel_moves_at_most_two_rows_anywhere(fake_view: Callable[..., Any], start: int) -> None:
    view = fake_view(MANY)
    view.open(f"top={start}")
    view.page.wait_for_load_state("networkidle")  # the first tiles move the grid, and each that arrives is reported
    view.page.mouse.move(900, 500)
    last = "window.drawnEvents.findLast((one) => one.what === 'grid')"
    for notch in (100, -100):
        before = view.page.evaluate(f"{last}.top")
        view.page.mouse.wheel(0, notch)
        after = view.page.wait_for_function(f"(before) => {last}.top !== before && {last}", arg=before).json_value()
        assert 0 < abs(after["top"] - before) <= 100


def test_bar_reaches_both_ends_and_the_middle(fake_view: Callable[..., Any]) -> None:
    view = fake_view(MANY)
    view.open()
    scroller = "document.querySelector('.grid-scroller')"
    bottom = view.after(lambda: view.page.evaluate(f"{scroller}.scrollTop = 1e9"), "grid", last=MANY - 1)
    assert bottom["last"] == MANY - 1
    view.page.evaluate(f"{scroller}.scrollTop = {scroller}.scrollHeight / 2")
    # Tiles of the end may still be reported.
    moved = f"() => window.drawnEvents.findLast((one) => one.what === 'grid' && one.first > 0 && one.last < {MANY - 1})"
    middle = view.page.wait_for_function(moved).json_value()
    assert abs(middle["first"] - MANY / 2) < MANY / 1000
    top = view.after(lambda: view.page.evaluate(f"{scroller}.scrollTop = 0"), "grid", first=0)
    assert top["top"] == 0


def test_bar_and_grid_positions_are_inverse(fake_view: Callable[..., Any]) -> None:
    view = fake_view(10)
    view.open()
    script = """(geometry, counts) => counts.flatMap((count) => {
        const box = geometry.layout({width: 1000, height: 700, size: 160, ratio: 1.3, caption: 26, gap: 10, count});
        const most = Math.max(0, box.full - box.height);
        return [0, 1, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1].map((part) => {
            const top = part === 1 ? most : Math.min(most, part < 1 ? part * most : part);
            return Math.abs(geometry.fromBar(box, geometry.toBar(box, top)) - top) / Math.max(1, most);
        });
    })"""
    errors = view.module("geometry", script, [0, 1, 7, 1000, 400_000, 2_000_000, MANY, 10**12])
    assert max(errors) < 1e-9


def test_small_moves_never_drift(fake_view: Callable[..., Any]) -> None:
    """A thousand small moves down and up again end where they began."""
    view = fake_view(10)
    view.open()
    script = """(geometry, count) => {
        const box = geometry.layout({width: 1000, height: 700, size: 160, ratio: 1.3, caption: 26, gap: 10, count});
        let at = {top: box.full / 2, bar: Math.round(geometry.toBar(box, box.full / 2))};
        const begin = at.top;
        for (let i = 0; i < 2000; i += 1) at = geometry.scrolled(box, at, at.bar + (i < 1000 ? 113 : -113));
        return at.top - begin;
    }"""
    assert view.module("geometry", script, MANY) == 0


def test_keys_move_the_cursor_and_open_the_record(fake_view: Callable[..., Any]) -> None:
    view = fake_view(1000)
    columns = view.open()["columns"]
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft"):
        view.press(key, "grid")
    cursor = view.page.get_attribute(".grid-scroller", "aria-activedescendant")
    assert cursor == f"tile-{columns + 1}"
    assert view.press("Enter", "detail")["record"] == columns + 1
    assert view.state()["record"] == str(columns + 1)
    view.press("n", "detail", record=columns + 2)
    view.press("ArrowLeft", "detail", record=columns + 1)
    view.press("Escape", "grid")
    assert "record" not in view.state()
    assert view.press("End", "grid", last=999)["last"] == 999
    assert view.press("Home", "grid", first=0)["first"] == 0


def test_screen_readers_get_true_numbers(fake_view: Callable[..., Any]) -> None:
    view = fake_view(MANY)
    columns = view.open()["columns"]
    view.go_to(50_000_000)
    rows = -(-MANY // columns)
    assert view.page.get_attribute(".grid-scroller", "aria-rowcount") == str(rows)
    line = view.page.locator("#tile-50000000").locator("xpath=..")
    assert line.get_attribute("aria-rowindex") == str(50_000_000 // columns + 1)


def test_only_tiles_near_the_screen_are_in_the_page(fake_view: Callable[..., Any]) -> None:
    view = fake_view(MANY)
    view.open()
    for number in (10_000, 50_000_000, 99_000_000):
        view.go_to(number)
    assert view.page.locator(".tile").count() < 150


def test_scrolled_past_requests_are_cancelled(fake_view: Callable[..., Any]) -> None:
    view = fake_view(MANY)
    view.open()
    cancelled: list[str] = []
    view.page.on("requestfailed", lambda request: cancelled.append(request.url))
    view.server.hold.clear()
    view.page.keyboard.press("End")
    view.page.wait_for_selector(f"#tile-{MANY - 1}")
    with view.page.expect_event("requestfailed"):
        view.page.keyboard.press("Home")
    view.server.hold.set()
    view.press("ArrowRight", "grid")
    assert cancelled
    assert all("t?" in url for url in cancelled)


def test_tile_size_stays_in_the_address_and_keeps_the_place(fake_view: Callable[..., Any]) -> None:
    view = fake_view(MANY)
    view.open("top=1000000&size=168")
    slider = view.page.locator("[data-key=size]")
    drawn = view.after(lambda: slider.fill("320"), "grid")
    assert drawn["first"] <= 1_000_000 <= drawn["last"]
    assert view.state()["size"] == "320"


def test_a_failed_batch_says_why_in_its_tiles(fake_view: Callable[..., Any]) -> None:
    view = fake_view(50)
    view.expected.append("status of 500")
    view.server.fail["t"] = lambda: (500, "the disk is gone")
    view.open()
    assert "the disk is gone" in view.page.locator("#tile-0").inner_text()
    assert "the disk is gone" in view.page.locator(".message").inner_text()


def test_lost_server_is_named(fake_view: Callable[..., Any]) -> None:
    view = fake_view(50)
    view.expected.append("status of 403")
    view.server.fail["api/set"] = lambda: (403, "token missing")
    view.open(what="broken")
    assert "address that tfr view printed" in view.page.locator("h1").inner_text()
