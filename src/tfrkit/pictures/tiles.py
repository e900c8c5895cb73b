"""Draw pictures as tiles with captions on one sheet."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfrkit.pictures.colors import FAINT, FAULT, FAULT_MAT, INK, MASK_SHARE, MAT, PAGE
from tfrkit.pictures.picture import Box, Picture, Span

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

    Font = FreeTypeFont | ImageFont

MARGIN = 12
GAP = 10
_MAX_TEXT = 120
_LINE = 1.35  # line height as a multiple of the font size


@dataclass(frozen=True)
class SheetLayout:
    """The layout of a sheet, in pixels; font sizes depend on the tile size."""

    num_tiles: int
    columns: int
    side: int

    @property
    def title_size(self) -> int:
        return min(18, max(11, self.side // 9))

    @property
    def caption_size(self) -> int:
        return min(15, max(9, self.side // 10))

    @property
    def small_size(self) -> int:
        return min(13, max(8, self.side // 12))

    @property
    def caption_height(self) -> int:
        return round(_LINE * self.caption_size) + 2

    @property
    def top(self) -> int:
        """Top of the first row."""
        return MARGIN + round(_LINE * self.title_size) + GAP

    @property
    def width(self) -> int:
        return 2 * MARGIN + min(self.columns, self.num_tiles) * (self.side + GAP) - GAP

    @property
    def height(self) -> int:
        num_rows = -(-self.num_tiles // self.columns)
        return self.top + num_rows * (self.side + self.caption_height + GAP) - GAP + MARGIN

    def locate(self, place: int) -> tuple[int, int]:
        """Return (x, y) of the square of a tile; tiles are counted from 0."""
        row, column = divmod(place, self.columns)
        return MARGIN + column * (self.side + GAP), self.top + row * (self.side + self.caption_height + GAP)


class Sheet:
    """Tiles in rows on one image, under a title. Tiles are counted from 0."""

    def __init__(self, layout: SheetLayout) -> None:
        from PIL import Image as images

        self._layout = layout
        self._side = layout.side
        self._caption_font = load_font(layout.caption_size)
        self._small_font = load_font(layout.small_size)
        self._title_font = load_font(layout.title_size)
        self.image: Image = images.new("RGB", (layout.width, layout.height), PAGE)

    def write_title(self, left: str, right: str) -> None:
        """Draw the title line above the tiles."""
        draw = _start_drawing(self.image)
        room = self.image.width - 2 * MARGIN
        right = shorten(right, self._small_font, room)
        used = round(self._small_font.getlength(right))
        draw.text((self.image.width - MARGIN - used, MARGIN + 2), right, FAINT, self._small_font)
        draw.text((MARGIN, MARGIN), shorten(left, self._title_font, room - used - GAP), INK, self._title_font)

    def put(self, place: int, picture: Picture, number: int | None) -> None:
        """Draw a picture as tile `place`, with its caption and the number of its record."""
        square = self._draw_fault(picture.cause) if picture.pixels is None else self._draw_picture(picture)
        x, y = self._layout.locate(place)
        self.image.paste(square, (x, y))
        self._draw_caption(x, y + self._side + 2, picture.caption, "" if number is None else str(number))

    def _draw_picture(self, picture: Picture) -> Image:
        from PIL import Image as images

        assert picture.pixels is not None
        pixels = picture.pixels
        if picture.overlay is not None:
            colors, covered = picture.overlay
            mixed = pixels * (1 - MASK_SHARE) + colors * MASK_SHARE
            pixels = np.where(covered[:, :, None], (mixed + 0.5).astype(np.uint8), pixels)
        shown = images.fromarray(np.ascontiguousarray(pixels))
        draw = _start_drawing(shown)
        # Draw small boxes last, so that large boxes do not hide their names.
        for box in sorted(picture.boxes, key=lambda box: -(box.xmax - box.xmin) * (box.ymax - box.ymin)):
            self._draw_box(draw, box, shown.size)
        square = images.new("RGB", (self._side, self._side), MAT)
        square.paste(shown, ((self._side - shown.width) // 2, (self._side - shown.height) // 2))
        return square

    def _draw_box(self, draw: ImageDraw, box: Box, size: tuple[int, int]) -> None:
        width, height = size
        left, right = (round(min(1.0, max(0.0, x)) * (width - 1)) for x in (box.xmin, box.xmax))
        top, bottom = (round(min(1.0, max(0.0, y)) * (height - 1)) for y in (box.ymin, box.ymax))
        draw.rectangle((left, top, right, bottom), outline=box.color, width=2 if self._side >= 96 else 1)
        self._draw_name(draw, box, (left, top, right, bottom), size)

    def _draw_name(self, draw: ImageDraw, box: Box, sides: tuple[int, int, int, int], size: tuple[int, int]) -> None:
        """Draw the name of a box at `place_name`, shortened to fit the picture."""
        text = shorten(box.text, self._small_font, size[0] - 4)
        if not text:
            return
        text_width = round(self._small_font.getlength(text)) + 4
        text_height = round(_LINE * self._layout.small_size)
        x, y = place_name(sides, (text_width, text_height), size)
        draw.rectangle((x, y, x + text_width, y + text_height), fill=box.color)
        red, green, blue = box.color
        is_light = 299 * red + 587 * green + 114 * blue > 140_000
        draw.text((x + 2, y), text, INK if is_light else PAGE, self._small_font)

    def _draw_fault(self, cause: str | None) -> Image:
        from PIL import Image as images

        side = self._side
        square = images.new("RGB", (side, side), FAULT_MAT)
        draw = _start_drawing(square)
        draw.line((0, 0, side - 1, side - 1), FAULT, 2)
        draw.line((0, side - 1, side - 1, 0), FAULT, 2)
        draw.rectangle((0, 0, side - 1, side - 1), outline=FAULT, width=2)
        step = round(_LINE * self._layout.small_size)
        lines = break_lines(cause or "", self._small_font, side - 12, max_lines=max(1, (side - 12) // step))
        y = (side - step * len(lines)) // 2
        for line in lines:
            length = round(self._small_font.getlength(line))
            x = (side - length) // 2
            draw.rectangle((x - 2, y, x + length + 2, y + step - 1), fill=FAULT_MAT)
            draw.text((x, y), line, FAULT, self._small_font)
            y += step
        return square

    def _draw_caption(self, x: int, y: int, caption: list[Span], number: str) -> None:
        draw = _start_drawing(self.image)
        used = round(self._small_font.getlength(number))
        draw.text((x + self._side - used, y + 2), number, FAINT, self._small_font)
        left, right = x, x + self._side - used - 4
        mark = round(0.6 * self._layout.caption_size)
        for index, span in enumerate(caption):
            indent = mark + 3 if span.color is not None else 0
            text = span.text + ("," if index + 1 < len(caption) and span.color is None else "")
            text = shorten(text, self._caption_font, right - left - indent)
            if not text:
                return
            if span.color is not None:
                top = y + self._layout.caption_height // 2 - mark // 2 - 1
                draw.rectangle((left, top, left + mark - 1, top + mark - 1), fill=span.color)
            draw.text((left + indent, y), text, INK, self._caption_font)
            left += indent + round(self._caption_font.getlength(text)) + 6


def place_name(sides: tuple[int, int, int, int], name: tuple[int, int], size: tuple[int, int]) -> tuple[int, int]:
    """Return the upper left corner for the name of a box (left, top, right, bottom): above the box if there is room.

    Otherwise it is inside a box that is high enough, below the box, or next to it; it covers the box only if nothing
    else fits. `name` and `size` are (width, height) of the name and of the image.

    Example:
        >>> place_name((10, 40, 30, 60), (25, 12), (100, 100)), place_name((10, 2, 15, 9), (25, 12), (100, 100))
        ((10, 28), (10, 10))
    """
    left, top, right, bottom = sides
    width, height = name
    x = max(0, min(left, size[0] - 1 - width))
    if top >= height:
        return x, top - height
    if bottom - top >= 2 * height:
        return x, top
    if bottom + 1 + height < size[1]:
        return x, bottom + 1
    y = max(0, min(top, size[1] - 1 - height))
    if right + 1 + width < size[0]:
        return right + 1, y
    return (left - 1 - width, y) if left > width else (x, top)


def load_font(size: int) -> Font:
    """Load Pillow's default font."""
    from PIL import ImageFont as fonts

    return fonts.load_default(size)


def clean_text(text: str) -> str:
    """Reduce text to one line: invisible characters become blanks, and long text is cut.

    Example:
        >>> clean_text("a\\nb\\x00c")
        'a b c'
    """
    shown = "".join(" " if unicodedata.category(character)[0] in "CZ" else character for character in text[:_MAX_TEXT])
    return " ".join(shown.split())


def shorten(text: str, font: Font, width: float) -> str:
    """Cut a text to a width, with … if it is cut; "" if nothing fits."""
    text = clean_text(text)
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(f"{text}…") > width:
        text = text[:-1]
    return f"{text.rstrip()}…" if text else ""


def break_lines(text: str, font: Font, width: float, *, max_lines: int) -> list[str]:
    """Break a text into lines between words; the last line and longer words are cut with …."""
    lines: list[str] = []
    words = clean_text(text).split(" ")
    while words and len(lines) < max_lines:
        line = words.pop(0)
        while words and font.getlength(f"{line} {words[0]}") <= width:
            line = f"{line} {words.pop(0)}"
        if len(lines) + 1 == max_lines and words:
            line = " ".join([line, *words])
        lines.append(shorten(line, font, width))
    return lines


def _start_drawing(image: Image) -> ImageDraw:
    from PIL import ImageDraw as drawing

    return drawing.Draw(image)
