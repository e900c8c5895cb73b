"""Check the boxes of objects against the size of their image.

Formats differ only in how they write a box: boxes of all formats are converted to corners in pixels, are checked by
the same rules, and give the same notes.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

from tfrkit.errors import Hint, Step

BoxPolicy = Literal["fail", "clip", "drop"]
"""What to do with a box outside its image: fail the build, clip the box to the image, or drop it."""

BOX_POLICIES: tuple[BoxPolicy, ...] = ("fail", "clip", "drop")

Corners = tuple[float, float, float, float]
"""xmin, ymin, xmax, ymax in pixels."""

# Tools round to whole pixels, or to two decimals of width and height, so a box may exceed the image by less than this.
_ROUNDING = 0.5
# Invisible characters that str.strip does not remove: byte order mark, zero-width characters.
_INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060"
# Maximum number of places named in a note.
_MAX_PLACES = 5
_DROP = Step("leave them out: {boxes}", boxes="drop")
_ONLY_DROP = Hint(_DROP)
_CUT_OR_DROP = Hint(Step("cut them to the image: {boxes}", boxes="clip"), _DROP)


class BadBox(NamedTuple):
    """The problem of a box, with a hint."""

    reason: str
    hint: str


def judge_box(corners: Corners, *, width: int, height: int) -> str | None:
    """Return the error of a box in an image of this size, or None.

    Example:
        >>> judge_box((1, 1, 400, 90), width=320, height=240)
        'box (1, 1, 400, 90) is outside its image, 320x240'
    """
    xmin, ymin, xmax, ymax = corners
    shown = f"box ({xmin:g}, {ymin:g}, {xmax:g}, {ymax:g})"
    if xmin > xmax or ymin > ymax:
        return f"{shown} has its corners swapped, expected xmin < xmax and ymin < ymax"
    if xmin == xmax or ymin == ymax:
        return f"{shown} has no area"
    if min(xmin, ymin) <= -_ROUNDING or xmax >= width + _ROUNDING or ymax >= height + _ROUNDING:
        return f"{shown} is outside its image, {width}x{height}"
    if clip_box(corners, width=width, height=height) is None:
        return f"{shown} has no area inside its image, {width}x{height}"
    return None


def clip_box(corners: Corners, *, width: int, height: int) -> Corners | None:
    """Return the part of a box inside the image, or None.

    Example:
        >>> clip_box((-5.0, 10.0, 50.0, 400.0), width=320, height=240)
        (0.0, 10.0, 50.0, 240.0)
    """
    xmin, ymin, xmax, ymax = corners
    clipped = (max(xmin, 0.0), max(ymin, 0.0), min(xmax, float(width)), min(ymax, float(height)))
    return clipped if clipped[0] < clipped[2] and clipped[1] < clipped[3] else None


class BoxFitter:
    """Applies a policy to boxes, and counts changes for the notes of a scan."""

    def __init__(self, policy: BoxPolicy) -> None:
        if policy not in BOX_POLICIES:
            raise ValueError(f"boxes expected one of {', '.join(BOX_POLICIES)}, got {policy!r:.64}")
        self._policy = policy
        self._counts: Counter[str] = Counter()
        self._places: dict[str, list[str]] = {}

    def fit(self, corners: Corners, where: str, *, width: int, height: int) -> tuple[Corners | None, BadBox | None]:
        """Return the box to store (None if it is left out), and the problem that fails the build, or None."""
        reason = judge_box(corners, width=width, height=height)
        if reason is not None and self._policy == "fail":
            has_part = clip_box(corners, width=width, height=height) is not None
            return None, BadBox(reason, _CUT_OR_DROP if has_part else _ONLY_DROP)
        is_dropped = reason is not None and self._policy == "drop"
        fitted = None if is_dropped else clip_box(corners, width=width, height=height)
        if reason is not None:
            self._note("left out" if fitted is None else "cut to the image", where)
        return fitted, None

    def name(self, raw: str, where: str) -> str:
        """Strip a class name, and make a note if that changes it."""
        name = clean_name(raw)
        if name != raw:
            self._note("blank", f"{raw!r:.64} at {where}")
        return name

    def notes(self) -> list[str]:
        """Return one sentence for each kind of change to boxes or names."""
        sentences = []
        for what in ("cut to the image", "left out"):
            if self._counts[what]:
                places = self._show_places(what)
                sentences.append(f"boxes {what}: {self._counts[what]} (boxes={self._policy}) - at {places}")
        if self._counts["blank"]:
            places = self._show_places("blank")
            sentences.append(f"class names with blanks around them, stripped: {self._counts['blank']} - {places}")
        return sentences

    def _note(self, what: str, where: str) -> None:
        self._counts[what] += 1
        places = self._places.setdefault(what, [])
        if len(places) < _MAX_PLACES:
            places.append(where)

    def _show_places(self, what: str) -> str:
        places = self._places[what]
        more = self._counts[what] - len(places)
        return "; ".join(places) + (f" and {more} more" if more else "")


def clean_name(name: str) -> str:
    """Strip whitespace and invisible characters from both ends of a class name.

    Example:
        >>> clean_name("car\\n")
        'car'
    """
    before = None
    while name != before:
        before, name = name, name.strip().strip(_INVISIBLE)
    return name
