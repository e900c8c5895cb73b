"""Boxes checked against their images: errors, clipping, notes."""

from __future__ import annotations

import pytest

from tfrkit.sources.boxes import BoxFitter, Corners, clean_name, clip_box, judge_box


@pytest.mark.parametrize(
    ("corners", "reason"),
    [
        ((0, 0, 320, 240), None),
        ((1, 1, 2, 2), None),
        ((-0.4, 0, 320.4, 240.4), None),  # rounding of the tool that drew it
        ((20, 1, 10, 9), "corners swapped"),
        ((1, 20, 9, 10), "corners swapped"),
        ((5, 5, 5, 9), "has no area"),
        ((5, 5, 9, 5), "has no area"),
        ((-0.5, 0, 10, 10), "is outside its image, 320x240"),
        ((0, 0, 320.5, 10), "is outside its image, 320x240"),
        ((0, 0, 10, 241), "is outside its image, 320x240"),
        ((320, 0, 320.4, 10), "no area inside its image"),
    ],
)
def test_judge_box_names_each_fault(corners: Corners, reason: str | None) -> None:
    judged = judge_box(corners, width=320, height=240)
    assert judged is None if reason is None else judged is not None and reason in judged


def test_clip_box_keeps_the_part_inside() -> None:
    assert clip_box((-5, 10, 500, 400), width=320, height=240) == (0, 10, 320, 240)
    assert clip_box((400, 10, 500, 20), width=320, height=240) is None


def test_fitter_fail_names_the_box_and_keeps_none() -> None:
    corners, problem = BoxFitter("fail").fit((0, 0, 400, 10), "a.xml, line 3", width=320, height=240)
    assert corners is None
    assert problem is not None
    assert problem.reason == "box (0, 0, 400, 10) is outside its image, 320x240"
    assert problem.hint == 'cut them to the image: boxes="clip"    leave them out: boxes="drop"'
    _, problem = BoxFitter("fail").fit((9, 9, 9, 10), "a.xml, line 3", width=320, height=240)
    assert problem is not None
    assert problem.hint == 'leave them out: boxes="drop"'


def test_fitter_clip_cuts_and_says_so() -> None:
    fitter = BoxFitter("clip")
    assert fitter.fit((0, 0, 400, 10), "a.xml, line 3", width=320, height=240) == ((0, 0, 320, 10), None)
    assert fitter.fit((9, 0, 1, 10), "b.xml, line 4", width=320, height=240) == (None, None)
    assert fitter.notes() == [
        "boxes cut to the image: 1 (boxes=clip) - at a.xml, line 3",
        "boxes left out: 1 (boxes=clip) - at b.xml, line 4",
    ]


def test_fitter_drop_leaves_out_and_counts_all_of_them() -> None:
    fitter = BoxFitter("drop")
    for number in range(7):
        assert fitter.fit((0, 0, 400, 10), f"a.xml, line {number}", width=320, height=240) == (None, None)
    assert fitter.fit((0, 0, 4, 10), "b.xml, line 1", width=320, height=240)[0] == (0, 0, 4, 10)
    [note] = fitter.notes()
    assert note.startswith("boxes left out: 7 (boxes=drop) - at a.xml, line 0; ")
    assert note.endswith("a.xml, line 4 and 2 more")


def test_rounding_past_the_edge_is_clipped_silently() -> None:
    fitter = BoxFitter("fail")
    assert fitter.fit((-0.2, 0, 320.2, 10), "a", width=320, height=240) == ((0, 0, 320, 10), None)
    assert fitter.notes() == []


def test_fitter_unknown_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="boxes expected one of fail, clip, drop, got 'crop'"):
        BoxFitter("crop")  # type: ignore[arg-type]


@pytest.mark.parametrize("raw", ["car\n", " car", "\ufeffcar", "car\u00a0", "\t car \u200b\n"])
def test_clean_name_strips_every_kind_of_blank(raw: str) -> None:
    assert clean_name(raw) == "car"


def test_fitter_name_with_blanks_is_reported_and_stripped() -> None:
    fitter = BoxFitter("fail")
    assert fitter.name("car\n", "a.xml, line 9") == "car"
    assert fitter.name("traffic light", "a.xml, line 10") == "traffic light"
    assert fitter.notes() == [r"class names with blanks around them, stripped: 1 - 'car\n' at a.xml, line 9"]


# --- sizes of images
