"""Sound of records for the browser: files as they are stored, and lists of samples as WAV files."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrkit.errors import CodecError
from tfrkit.features.meaning import find_media
from tfrkit.features.name_words import SOUND_WORDS, split_words
from tfrkit.pictures.values import list_values

AUDIO_TYPES = {
    "WAV audio": "audio/wav",
    "FLAC audio": "audio/flac",
    "Ogg audio": "audio/ogg",
    "MP3 audio": "audio/mpeg",
}
_MIN_SAMPLES = 1000  # shorter lists are no sound, whatever their name
_MAX_SAMPLES = 1 << 26
_USUAL_RATE = 16_000
_RATES = range(1_000, 400_001)


def is_sound(name: str, array: Any) -> bool:
    """Whether a list of numbers is a sound: by its name, and its length."""
    is_long = array.ndim == 1 and _MIN_SAMPLES <= array.size <= _MAX_SAMPLES and array.dtype.kind in "iuf"
    return bool(is_long and SOUND_WORDS & set(split_words(name)))


def find_rate(values: Mapping[str, Any]) -> int | None:
    """Find the samples per second of a record; None if no feature has them."""
    for name, value in values.items():
        if "rate" in split_words(name) and (found := list_values(value)) and not isinstance(found[0], bytes):
            rate = float(found[0])
            if rate in _RATES:
                return int(rate)
    return None


def make_sound(name: str, value: Any, values: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return sound and its type; `CodecError` if the value is no sound.

    `values` has the other features of the record. Without a rate among them, samples are played at 16 kHz.
    """
    if isinstance(value, (bytes, bytearray)):
        media = find_media([bytes(value[:64])])
        if media in AUDIO_TYPES:
            return bytes(value), AUDIO_TYPES[media]
    elif is_sound(name, array := np.asarray(value)):
        return _write_wav(array, find_rate(values) or _USUAL_RATE), "audio/wav"
    raise CodecError(f"feature {name!r:.64} holds no audio")


def _write_wav(samples: np.ndarray[Any, np.dtype[Any]], rate: int) -> bytes:
    """Write one channel of 16 bits. Samples are fractions of 1, numbers of 16 bits, or scaled to the largest."""
    numbers = np.nan_to_num(samples.astype(np.float64), posinf=0, neginf=0)
    peak = float(np.abs(numbers).max())
    full = 1 if peak <= 1 else 1 << 15 if peak <= 1 << 15 else peak
    data: bytes = np.round(np.clip(numbers / full, -1, 1) * 32_767).astype("<i2").tobytes()
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16)
    return (
        b"RIFF"
        + struct.pack("<I", 4 + len(form) + 8 + len(data))
        + b"WAVE"
        + form
        + struct.pack("<4sI", b"data", len(data))
        + data
    )
