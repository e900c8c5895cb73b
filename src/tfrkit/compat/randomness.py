"""Seeds of shuffles. Orders are reproducible, but not TensorFlow's."""

from __future__ import annotations

import itertools
from random import Random, SystemRandom
from typing import Any

_seed: int | None = None
_counter = itertools.count()


def set_random_seed(seed: Any) -> None:
    """`tf.random.set_seed`: makes shuffles without a seed reproducible from here on."""
    global _seed, _counter
    _seed = None if seed is None else int(seed)
    _counter = itertools.count()


def next_stream(seed: Any) -> str:
    """Return the seed of a new shuffle: its own seed, the global seed with a counter, or a random one.

    Chosen once per dataset, so that two parts of one order, as `take` and `skip` make them, do not overlap.
    """
    if seed is not None:
        return f"own {int(seed)}"
    return f"chance {SystemRandom().getrandbits(64)}" if _seed is None else f"global {_seed} {next(_counter)}"


def random_of(stream: str, turn: int) -> Random:
    """Return the random generator of one pass."""
    return Random(f"{stream} turn {turn}")
