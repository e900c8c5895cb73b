from __future__ import annotations

import pytest

from tfrkit.images.raw_shapes import (
    describe_guesses,
    fill_shape,
    guess_shapes,
    parse_shape,
    suggest_shapes,
    write_shape,
)


@pytest.mark.parametrize(
    ("text", "shape"),
    [("224x224", (224, 224)), ("32x48x3", (32, 48, 3)), ("(28, 28)", (28, 28)), ("20X40x1", (20, 40, 1))],
)
def test_written_shape_is_read(text: str, shape: tuple[int, ...]) -> None:
    assert parse_shape(text) == shape


@pytest.mark.parametrize("text", ["", "224", "axb", "1x2x3x4", "-1x2", "2.5x2", "0x5", "10x10x2", "10x10x"])
def test_shape_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="shape expected"):
        parse_shape(text)


@pytest.mark.parametrize(
    ("shape", "nbytes", "filled"),
    [
        ((224, 224), 50_176, (224, 224, 1)),
        ((224, 224), 150_528, (224, 224, 3)),
        ((224, 224), 200_704, None),
        ((224, 224, 4), 200_704, (224, 224, 4)),
        ((224, 224), 100_352, None),
        ((224, 224), 50_177, None),
        ((224, 224), 0, None),
        ((10, 20, 3), 600, (10, 20, 3)),
        ((10, 20, 3), 200, None),
    ],
)
def test_shape_fits_its_bytes_exactly_or_not(
    shape: tuple[int, ...], nbytes: int, filled: tuple[int, ...] | None
) -> None:
    assert fill_shape(shape, nbytes) == filled


@pytest.mark.parametrize(
    ("nbytes", "words"),
    [
        (50_176, "224x224 gray"),
        (150_528, "224x224 RGB"),
        (784, "28x28 gray"),
        (3072, "32x32 RGB"),
        (100_800, "160x210 RGB (shape 210x160x3)"),
        # 4:3 in colour is a square in gray as well.
        (921_600, "640x480 RGB (shape 480x640x3) or 1280x720 gray (shape 720x1280)"),
        (1000, ""),
        (2048, ""),
        (64, ""),
        (0, ""),
    ],
)
def test_likely_shapes_are_named_and_others_are_not(nbytes: int, words: str) -> None:
    assert describe_guesses(nbytes) == words


@pytest.mark.parametrize("nbytes", [50_176, 921_600, 307_200, 16_384, 12_288])
def test_every_guess_fits(nbytes: int) -> None:
    assert guess_shapes(nbytes)
    assert all(height * width * channels == nbytes for height, width, channels in guess_shapes(nbytes))


def test_suggestions_keep_a_side_that_was_given() -> None:
    assert suggest_shapes(50_176, (224, 225))[0] == (224, 224, 1)
    assert suggest_shapes(600, (20, 20, 3)) == [(20, 10, 3), (10, 20, 3)]
    assert suggest_shapes(7, (224, 224)) == []


def test_four_channels_are_taken_only_when_requested() -> None:
    # 224x224 gray, or 112x112 in RGBA or float32: the bytes do not show which.
    assert fill_shape((112, 112), 50_176) is None
    assert fill_shape((112, 112), 50_176, has_alpha=True) == fill_shape((112, 112, 4), 50_176) == (112, 112, 4)
    assert {(224, 224, 1), (112, 112, 4)} <= set(suggest_shapes(50_176, (112, 112)))


def test_written_form_is_read_back() -> None:
    assert [write_shape(shape) for shape in [(4, 5, 1), (4, 5, 3), (4, 5)]] == ["4x5", "4x5x3", "4x5"]


@pytest.mark.parametrize(
    ("height", "width"),
    [(720, 1280), (1080, 1920), (2160, 3840), (600, 800), (768, 1024), (218, 178), (112, 92), (288, 352)],
)
def test_usual_sizes_of_video_screens_and_datasets_are_guessed(height: int, width: int) -> None:
    assert (height, width, 3) in guess_shapes(height * width * 3)
