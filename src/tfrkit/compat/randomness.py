"""Seeds of shuffles. Orders are reproducible, and are not TensorFlow's."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

_seed: int | None = None
_counter = itertools.count()


def set_random_seed(seed: Any) -> None:
    """`tf.random.set_seed`: shuffles without a seed of their own are reproducible after this."""
    global _seed, _counter
    _seed = None if seed is None else int(seed)
    _counter = itertools.count()


def next_stream(seed: Any) -> str | None:
    """What a new shuffle draws from: its own seed, its place after the global one, or chance."""
    if seed is not None:
        return f"own {int(seed)}"
    return None if _seed is None else f"global {_seed} {next(_counter)}"


def random_of(stream: str | None, turn: int) -> Random:
    """The generator of one pass."""
    return Random() if stream is None else Random(f"{stream} turn {turn}")
