"""The steps of a dataset, one iterator each.

None is a generator: an error ends a generator, and a dataset continues with the next element.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from tfrkit.compat.structure import leaves, map_parts

_END = object()


class Pull(Iterator[Any]):
    """An iterator that calls a function for each element; StopIteration ends it, any other error does not."""

    def __init__(self, step: Callable[[], Any]) -> None:
        self._step = step

    def __next__(self) -> Any:
        return self._step()


def shuffle(elements: Iterator[Any], size: int, random: Random) -> Iterator[Any]:
    """Shuffle elements with a buffer of `size`."""
    waiting: list[Any] = []
    is_ended = False

    def step() -> Any:
        nonlocal is_ended
        while not is_ended:
            element = next(elements, _END)
            if element is _END:
                is_ended = True
                random.shuffle(waiting)
                waiting.reverse()
            elif len(waiting) < size:
                waiting.append(element)
            else:
                place = random.randrange(size)
                drawn, waiting[place] = waiting[place], element
                return drawn
        return _pop(waiting)

    return Pull(step)


def _pop(waiting: list[Any]) -> Any:
    if not waiting:
        raise StopIteration
    return waiting.pop()


def group(elements: Iterator[Any], size: int, *, drop_remainder: bool) -> Iterator[list[Any]]:
    """Group elements into lists of `size`. After an error, elements already in its list are lost, as in TensorFlow."""

    def step() -> list[Any]:
        taken = list(itertools.islice(elements, size))
        if not taken or (drop_remainder and len(taken) < size):
            raise StopIteration
        return taken

    return Pull(step)


def window(elements: Iterator[Any], size: int, shift: int, stride: int, *, drop_remainder: bool) -> Iterator[list[Any]]:
    """Yield lists of `size` elements, `stride` apart; each starts `shift` elements after the one before."""
    waiting: list[Any] = []
    reach = (size - 1) * stride + 1
    num_to_skip = 0

    def step() -> list[Any]:
        nonlocal num_to_skip
        while num_to_skip or len(waiting) < reach:
            element = next(elements, _END)
            if element is _END:
                break
            if num_to_skip:
                num_to_skip -= 1
            else:
                waiting.append(element)
        taken = waiting[:reach:stride]
        if not taken or (drop_remainder and len(taken) < size):
            raise StopIteration
        num_to_skip = max(0, shift - len(waiting))
        del waiting[:shift]
        return taken

    return Pull(step)


def repeat(start: Callable[[], Iterator[Any]], count: int) -> Iterator[Any]:
    """Repeat all elements `count` times, or endlessly if negative; stop if there are no elements."""
    turns = itertools.count() if count < 0 else iter(range(count))
    elements: Iterator[Any] | None = None
    is_empty = False

    def step() -> Any:
        nonlocal elements, is_empty
        while True:
            if elements is None:
                next(turns)
                elements, is_empty = start(), True
            element = next(elements, _END)
            if element is not _END:
                is_empty = False
                return element
            if is_empty:
                raise StopIteration
            elements = None

    return Pull(step)


def take(elements: Iterator[Any], count: int) -> Iterator[Any]:
    """Yield the first `count` elements; errors do not count."""
    left = count

    def step() -> Any:
        nonlocal left
        if left <= 0:
            raise StopIteration
        element = next(elements)
        left -= 1
        return element

    return Pull(step)


def every(elements: Iterator[Any], start: int, stride: int = 1) -> Iterator[Any]:
    """Yield every `stride`-th element, starting at `start`."""
    place = -start

    def step() -> Any:
        nonlocal place
        while True:
            element = next(elements)
            place += 1
            if place > 0 and (place - 1) % stride == 0:
                return element

    return Pull(step)


def flatten(elements: Iterator[Any], open_element: Callable[[Any], Iterator[Any]]) -> Iterator[Any]:
    """Yield the content of each element, one element after the other."""
    return interleave(elements, open_element, 1, 1)


def interleave(
    elements: Iterator[Any], open_element: Callable[[Any], Iterator[Any]], cycle_length: int, block_length: int
) -> Iterator[Any]:
    """Yield the content of elements, taking turns between `cycle_length` of them, `block_length` items per turn."""
    if cycle_length == 1:
        return _OneByOne(elements, open_element)
    opened: list[Iterator[Any] | None] = [None] * cycle_length
    place = num_taken = 0
    is_ended = False

    def advance() -> None:
        nonlocal place, num_taken
        place, num_taken = (place + 1) % cycle_length, 0

    def step() -> Any:
        nonlocal num_taken, is_ended
        while not is_ended or any(inner is not None for inner in opened):
            inner = opened[place]
            if inner is not None:
                found = next(inner, _END)
                if found is not _END:
                    num_taken += 1
                    if num_taken == block_length:
                        advance()
                    return found
                opened[place] = None
                advance()
            elif is_ended:
                advance()
            else:
                element = next(elements, _END)
                is_ended = element is _END
                if not is_ended:
                    opened[place] = open_element(element)
        raise StopIteration

    return Pull(step)


class _OneByOne(Iterator[Any]):
    """The content of one element after the other."""

    def __init__(self, elements: Iterator[Any], open_element: Callable[[Any], Iterator[Any]]) -> None:
        self._elements = elements
        self._open = open_element
        self._inner: Iterator[Any] = iter(())

    def __next__(self) -> Any:
        while True:
            for found in self._inner:
                return found
            self._inner = self._open(next(self._elements))


def together(opened: Any) -> Iterator[Any]:
    """Advance nested iterators together; if one raises, the others still advance."""

    def pull(iterators: list[Iterator[Any]]) -> list[Any]:
        if not iterators:
            return []
        try:
            first = next(iterators[0])
        finally:
            others = pull(iterators[1:])
        return [first, *others]

    def step() -> Any:
        found = iter(pull(list(leaves(opened))))
        return map_parts(lambda _: next(found), opened)

    return Pull(step)


def skip_errors(
    elements: Iterator[Any], kinds: tuple[type[Exception], ...], report: Callable[[Exception], None]
) -> Iterator[Any]:
    """Skip and report errors of the given kinds."""

    def step() -> Any:
        while True:
            try:
                return next(elements)
            except kinds as error:
                report(error)

    return Pull(step)


def keep(start: Callable[[], Iterator[Any]]) -> Callable[[], Iterator[Any]]:
    """Cache elements: once an iteration reaches the end, later ones reuse its elements."""
    kept: list[list[Any]] = []

    def open_kept() -> Iterator[Any]:
        if kept:
            return iter(kept[0])
        elements = start()
        seen: list[Any] = []

        def step() -> Any:
            element = next(elements, _END)
            if element is _END:
                if not kept:
                    kept.append(seen)
                raise StopIteration
            seen.append(element)
            return element

        return Pull(step)

    return open_kept
