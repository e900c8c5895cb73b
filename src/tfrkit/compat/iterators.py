"""Iterators over datasets: of values, and of a graph that is run later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tfrkit.compat.graph import Node
from tfrkit.compat.op_errors import FailedPreconditionError, OpError, OutOfRangeError

_is_eager = False
_END = object()


def enable_eager_execution(*values: Any, **options: Any) -> None:
    """From here on `make_one_shot_iterator().get_next()` gives values and not nodes of a graph."""
    global _is_eager
    _is_eager = True


def disable_eager_execution() -> None:
    """Back to nodes, which is how this module starts."""
    global _is_eager
    _is_eager = False


class ValueIterator:
    """What `iter(dataset)` gives."""

    def __init__(self, elements: Iterator[Any]) -> None:
        self._elements = elements

    def __iter__(self) -> ValueIterator:
        return self

    def __next__(self) -> Any:
        return next(self._elements)

    def get_next(self) -> Any:
        """The next element; OutOfRangeError at the end."""
        element = next(self._elements, _END)
        if element is _END:
            raise OutOfRangeError(None, None, "end of sequence")
        return element


class GraphIterator:
    """What `dataset.make_one_shot_iterator()` and `make_initializable_iterator()` give.

    The shape of an element, a dict or a tuple of what, is found by reading the first one when `get_next` is called;
    it is kept for the first run.
    """

    def __init__(self, start: Callable[[], Iterator[Any]], *, is_started: bool) -> None:
        self._start = start
        self._elements = ValueIterator(start()) if is_started else None
        self._first: list[Any] = []
        self.initializer = Node(self._restart)

    def get_next(self, name: str | None = None) -> Any:
        """An element that each `Session.run` takes anew; with eager execution, the next element itself."""
        if _is_eager:
            return self._take()
        return _name_parts(Node(self._take), self._look())

    def _restart(self) -> None:
        self._elements = ValueIterator(self._start())
        self._first.clear()

    def _take(self) -> Any:
        if self._first:
            return self._first.pop()
        if self._elements is None:
            raise FailedPreconditionError(
                None, None, "iterator expected to be started\n  run it first: session.run(iterator.initializer)"
            )
        return self._elements.get_next()

    def _look(self) -> Any:
        """The first element, or nothing where there is none; what is wrong then is said when it is run."""
        try:
            if self._elements is None:
                return next(self._start(), None)
            if not self._first:
                self._first.append(self._elements.get_next())
            return self._first[0]
        except OutOfRangeError:
            return None
        except OpError as error:
            self._start = _raiser(error)
            self._restart()
            return None


def _raiser(error: OpError) -> Callable[[], Iterator[Any]]:
    def step() -> Any:
        raise error

    return lambda: iter(step, None)


def _name_parts(node: Node, element: Any) -> Any:
    """Nodes for the parts of an element, in the same dicts and tuples."""
    if isinstance(element, dict):
        return {name: _name_parts(node[name], part) for name, part in element.items()}
    if isinstance(element, tuple):
        return tuple(_name_parts(node[number], part) for number, part in enumerate(element))
    return node
