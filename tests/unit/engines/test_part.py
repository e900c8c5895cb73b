"""Parts of a job by their text."""

from __future__ import annotations

import pytest

from tfrkit.engines.part import Part, parse_part


@pytest.mark.parametrize(("text", "expected"), [("0/1", (0, 1)), ("3/4", (3, 4)), ("finish", (None, 1))])
def test_part_is_parsed(text, expected):
    part = Part(text, "meet")
    assert (part.index, part.count) == parse_part(text) == expected


@pytest.mark.parametrize("text", ["", "1", "4/4", "-1/4", "a/b", "1/2/3", "end"])
def test_wrong_part_is_refused(text):
    with pytest.raises(ValueError, match="part expected I/N with I from 0 to N-1, such as 0/4, or 'finish'"):
        Part(text, "meet")
