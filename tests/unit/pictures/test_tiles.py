from __future__ import annotations

import numpy as np
import pytest

from tfrkit.pictures.colors import FAULT, PAGE
from tfrkit.pictures.picture import Box, Picture, Span
from tfrkit.pictures.tiles import Sheet, SheetLayout, break_lines, clean_text, load_font, place_name, shorten

FONT = load_font(12)


def test_text_is_one_printable_line() -> None:
    assert clean_text("a\nb\x00\x1b[31mc\u202ed") == "a b [31mc d"
    assert len(clean_text("x" * 10_000)) == 120
    assert clean_text("\ud800") == ""


@pytest.mark.parametrize("text", ["short", "a label that is much too long for its tile", "验证码" * 20, "", "\n"])
def test_shortened_text_fits(text: str) -> None:
    for width in (0, 5, 40, 128):
        assert FONT.getlength(shorten(text, FONT, width)) <= width
    assert shorten("short", FONT, 128) == "short"
    assert shorten("a label that is much too long for its tile", FONT, 60).endswith("…")


def test_folded_text_fits_and_says_if_there_was_more() -> None:
    lines = break_lines("one two three four five six seven eight nine ten", FONT, 60, max_lines=3)
    assert len(lines) == 3
    assert all(FONT.getlength(line) <= 60 for line in lines)
    assert lines[-1].endswith("…")
    assert break_lines("one two", FONT, 100, max_lines=3) == ["one two"]


def test_layout_has_room_for_every_tile() -> None:
    for num_tiles in (1, 5, 6, 7, 36):
        layout = SheetLayout(num_tiles, 6, 64)
        places = [layout.locate(place) for place in range(num_tiles)]
        assert len(set(places)) == num_tiles
        assert all(x + 64 < layout.width and y + 64 + layout.caption_height < layout.height for x, y in places)


def test_caption_stays_in_its_column() -> None:
    sheet = Sheet(SheetLayout(2, 2, 64))
    caption = [Span("a very long name of a class", (1, 2, 3)), Span("another one that finds no room")]
    sheet.put(0, Picture(caption, np.zeros((64, 64, 3), np.uint8)), 123_456)
    x, y = SheetLayout(2, 2, 64).locate(1)
    beside = sheet.image.crop((x, y, sheet.image.width, sheet.image.height))
    assert beside.getextrema() == tuple((level, level) for level in PAGE)


@pytest.mark.parametrize("size", [(128, 128), (128, 60), (60, 128)])
def test_name_is_inside_the_image_and_does_not_cover_its_box(size: tuple[int, int]) -> None:
    width, height = size
    name = (50, 12)
    for left in range(0, width - 6, 7):
        for top in range(0, height - 6, 5):
            for side in (5, 11, 30):
                right, bottom = min(width - 1, left + side), min(height - 1, top + side)
                x, y = place_name((left, top, right, bottom), name, size)
                assert x >= 0 and x + name[0] < width
                assert y >= 0 and y + name[1] < height
                covers = x <= left and right <= x + name[0] and y <= top and bottom <= y + name[1]
                assert not covers, (left, top, right, bottom, x, y)


def test_name_of_a_box_that_fills_a_tiny_picture_stays_inside_it() -> None:
    assert place_name((0, 0, 29, 11), (25, 12), (30, 12)) == (0, 0)


def test_picture_and_fault_look_as_they_should() -> None:
    sheet, layout = Sheet(SheetLayout(2, 2, 64)), SheetLayout(2, 2, 64)
    sheet.put(0, Picture([], np.full((64, 64, 3), 9, np.uint8)), None)
    sheet.put(1, Picture([], None, cause="damaged"), None)
    assert [sheet.image.getpixel(layout.locate(place)) for place in (0, 1)] == [(9, 9, 9), FAULT]


@pytest.mark.parametrize(
    ("color", "is_dark"), [((0, 255, 0), True), ((0, 200, 198), False), ((0, 0, 255), False), ((255, 0, 0), False)]
)
def test_name_of_a_box_contrasts_with_its_colour(color: tuple[int, int, int], is_dark: bool) -> None:
    sheet, layout = Sheet(SheetLayout(1, 1, 128)), SheetLayout(1, 1, 128)
    box = Box(0.1, 0.3, 0.9, 0.9, "MMMMMM", color, 0)
    sheet.put(0, Picture([], np.zeros((128, 128, 3), np.uint8), boxes=[box]), None)
    x, y = layout.locate(0)
    levels = np.asarray(sheet.image)[y : y + 128, x : x + 128].min(axis=2)
    assert (levels.max() < 100) == is_dark  # white letters have every colour


def test_caption_starts_after_the_mark_of_its_colour() -> None:
    def count_marked(text: str) -> int:
        sheet = Sheet(SheetLayout(1, 1, 64))
        sheet.put(0, Picture([Span(text, (200, 0, 0))], np.zeros((64, 64, 3), np.uint8)), None)
        return int((np.asarray(sheet.image) == (200, 0, 0)).all(axis=2).sum())

    assert count_marked("W") == count_marked(".") == count_marked("|") > 0


def test_caption_is_below_its_picture_and_has_the_number_of_a_record() -> None:
    def draw(number: int | None, caption: list[Span]) -> tuple[np.ndarray, np.ndarray]:
        sheet, layout = Sheet(SheetLayout(1, 1, 64)), SheetLayout(1, 1, 64)
        sheet.put(0, Picture(caption, np.full((64, 64, 3), 9, np.uint8)), number)
        x, y = layout.locate(0)
        pixels = np.asarray(sheet.image)[:, x : x + 64]
        return pixels[y : y + 64], pixels[y + 64 :]

    square, below = draw(None, [])
    assert (square == 9).all() and (below == PAGE).all()
    square, below = draw(7, [])
    assert (square == 9).all() and not (below == PAGE).all()
    assert not np.array_equal(below, draw(8, [])[1])
    square, below = draw(None, [Span("Wg", (200, 0, 0))])
    assert (square == 9).all() and (below[:2] == PAGE).all()
    mark = np.flatnonzero((below == (200, 0, 0)).all(axis=2).any(axis=1))
    layout = SheetLayout(1, 1, 64)
    assert mark[0] == 2 + layout.caption_height // 2 - len(mark) // 2 - 1
