"""Seeds of shuffles. Orders are reproducible, and are not TensorFlow's."""

from __future__ import annotations

import itertools
from random import Random, SystemRandom
from typing import Any

_seed: int | None = None
_counter = itertools.count()


def set_random_seed(seed: Any) -> None:
    """`tf.random.set_seed`: shuffles without a seed of their own are reproducible after this."""
    global _seed, _counter
    _seed = None if seed is None else int(seed)
    _counter = itertools.count()


def next_stream(seed: Any) -> str:
    """What a new shuffle draws from: its own seed, its place after the global one, or a seed of chance.

    It is drawn once for a dataset, so that two parts of one order, as `take` and `skip` make them, do not overlap.
    """
    if seed is not None:
        return f"own {int(seed)}"
    return f"chance {SystemRandom().getrandbits(64)}" if _seed is None else f"global {_seed} {next(_counter)}"


def random_of(stream: str, turn: int) -> Random:
    """The generator of one pass."""
    return Random(f"{stream} turn {turn}")
