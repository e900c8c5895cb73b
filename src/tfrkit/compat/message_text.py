"""Messages in protobuf's text format."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tfrkit.compat.containers import MessageMap, Messages
from tfrkit.compat.message import Message

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def print_message(message: Message) -> str:
    """Return a message as text, one line per value, map entries sorted by key."""
    return "".join(f"{line}\n" for line in _lines(message))


def _lines(message: Message) -> Iterator[str]:
    for name, value in message.ListFields():
        if isinstance(value, Message):
            yield from _block(name, _lines(value))
        elif isinstance(value, MessageMap):
            for key in sorted(value, key=str.encode):
                yield from _block(name, _entry(key, value[key]))
        elif isinstance(value, Messages):
            for inner in value:
                yield from _block(name, _lines(inner))
        else:
            for item in value:
                yield f"{name}: {_print_value(item)}"


def _entry(key: str, value: Message) -> Iterator[str]:
    yield f'key: "{"".join(_escape(character) for character in key)}"'
    yield from _block("value", _lines(value))


def _block(name: str, lines: Iterator[str]) -> Iterator[str]:
    yield f"{name} {{"
    for line in lines:
        yield f"  {line}"
    yield "}"


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return f"\\{ord(character):03o}" if ord(character) < 0x20 or ord(character) == 0x7F else character


def _print_value(value: Any) -> str:
    if isinstance(value, bytes):
        return '"' + "".join(_escape(chr(byte)) if byte < 0x80 else f"\\{byte:03o}" for byte in value) + '"'
    return _print_float(value) if isinstance(value, float) else str(value)


def _print_float(value: float) -> str:
    """Use six digits if they give the same float32 when read, else nine, which always do."""
    if math.isnan(value):
        return "nan"
    short = f"{value:.6g}"
    with np.errstate(over="ignore"):
        is_same = float(np.float32(float(short))) == value
    return short if is_same else f"{value:.9g}"
