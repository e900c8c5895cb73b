from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from tfrkit.errors import CodecError
from tfrkit.view.sounds import find_rate, is_sound, make_sound

LONG = np.zeros(1000, np.float32)


@pytest.mark.parametrize(
    ("name", "array", "verdict"),
    [
        ("audio", LONG, True),
        ("speech/waveform", LONG.astype(np.int64), True),
        ("audio", LONG[:999], False),
        ("audio", LONG.reshape(2, 500), False),
        ("signal", LONG, False),
        ("audio", np.zeros(1000, bool), False),
    ],
)
def test_sound_has_a_name_and_a_length(name: str, array: Any, verdict: bool) -> None:
    assert is_sound(name, array) == verdict


@pytest.mark.parametrize(
    ("values", "rate"),
    [
        ({"sample_rate": 44_100}, 44_100),
        ({"audio/rate": [8000.0]}, 8000),
        ({"heart_rate": 70}, None),
        ({"rate": b"x"}, None),
        ({}, None),
    ],
)
def test_rate_is_a_feature_of_the_record(values: dict[str, Any], rate: int | None) -> None:
    assert find_rate(values) == rate


@pytest.mark.parametrize(
    ("value", "level"),
    [(0.5, 16_384), (16_384, 16_384), (-1.0, -32_767), (1e6, 32_767), (float("nan"), 0), (float("inf"), 0)],
)
def test_samples_are_scaled_to_16_bits(value: float, level: int) -> None:
    data, kind = make_sound("audio", np.full(1000, value), {})
    assert kind == "audio/wav"
    assert struct.unpack("<I", data[24:28]) == (16_000,)
    assert struct.unpack("<h", data[-2:]) == (level,)
    assert struct.unpack("<I", data[4:8])[0] == len(data) - 8


@pytest.mark.parametrize("value", [b"text", np.zeros(10), 3])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(CodecError, match="feature 'audio' holds no audio"):
        make_sound("audio", value, {})
