"""The wire format, explained field by field."""

from __future__ import annotations

import random

import pytest

from tfrkit.testing.corruption import flip
from tfrkit.testing.reference import encode_example, write_frames
from tfrkit.view.wire import Field, explain_frame


def explain(frame: bytes, kind: str = "example", start: int = 0, stop: int | None = None) -> list[Field]:
    return explain_frame(frame, kind, start=start, stop=len(frame) if stop is None else stop, limit=2000)


def make_frame() -> bytes:
    features = {b"label": ("int64", [3, -1]), b"x": ("float", [0.5, 2.0]), b"name": ("bytes", [b"abc", b"\xff"])}
    return write_frames([encode_example(features)])  # type: ignore[arg-type]


def test_every_value_has_its_path_and_its_bytes() -> None:
    frame = make_frame()
    values = [(field.path, field.value) for field in explain(frame) if field.value and field.path != "frame"]
    label, x, name = (f'features.feature["{key}"]' for key in ("label", "x", "name"))
    for one in (
        (f"{label}.int64_list.value", "3"),
        (f"{label}.int64_list.value", "-1"),
        (f"{x}.float_list.value", "0.5"),
        (f"{x}.float_list.value", "2"),
        (f"{name}.bytes_list.value", "abc"),
        (f"{name}.bytes_list.value", "\\xff"),
    ):
        assert one in values


def test_leaves_cover_every_byte_once() -> None:
    frame = make_frame()
    covered = [at for field in explain(frame) for at in range(field.start, field.stop)]
    assert sorted(covered) == list(range(len(frame)))
    assert not any(field.is_bad for field in explain(frame))


def test_page_has_the_fields_that_touch_it() -> None:
    frame = make_frame()
    whole = explain(frame)
    for start in range(0, len(frame), 7):
        page = explain(frame, start=start, stop=start + 7)
        expected = [field for field in whole if field.start < start + 7 and field.stop > start]
        assert [field for field in page if field in expected] == page
        assert set(page) == set(expected)


@pytest.mark.parametrize(("place", "what"), [(9, "length checksum"), (14, "payload checksum")])
def test_wrong_checksum_is_marked(place: int, what: str) -> None:
    fields = {field.what: field for field in explain(flip(make_frame(), place)) if field.path == "frame"}
    assert fields[what].is_bad and "computed" in fields[what].value
    assert [name for name, field in fields.items() if field.is_bad] == [what]


def test_random_bytes_are_explained_without_an_error() -> None:
    chance = random.Random(0)
    frame = make_frame()
    for _ in range(500):
        damaged = bytearray(frame)
        for _ in range(4):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        explain(bytes(damaged), chance.choice(["example", "sequence_example", "raw"]))
        explain(chance.randbytes(chance.randrange(60)))
