"""Iterators over datasets: over values, and for a graph that is run later."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from tfrkit.compat.graph import Node, NotFedError, Run, current_run, running
from tfrkit.compat.op_errors import FailedPreconditionError, OpError, OutOfRangeError

_is_eager = False
_has_graphs = False
_END = object()
_MAX_LOOKED_AT = 100  # errors before the first element: if every parse fails, not all files should be read


def enable_eager_execution(*values: Any, **options: Any) -> None:
    """Make `make_one_shot_iterator().get_next()` return values instead of graph nodes."""
    global _is_eager, _has_graphs
    _is_eager, _has_graphs = True, False


def disable_eager_execution() -> None:
    """Return graph nodes again, which is the default of this module."""
    global _is_eager, _has_graphs
    _is_eager, _has_graphs = False, True


def executing_eagerly() -> bool:
    """Whether operations return values: always, but a script in graph mode gets False."""
    return not _has_graphs


class ValueIterator:
    """The iterator of `iter(dataset)`."""

    def __init__(self, elements: Iterator[Any]) -> None:
        self._elements = elements

    def __iter__(self) -> ValueIterator:
        return self

    def __next__(self) -> Any:
        return next(self._elements)

    def get_next(self) -> Any:
        """Return the next element; raise OutOfRangeError at the end."""
        element = next(self._elements, _END)
        if element is _END:
            raise OutOfRangeError(None, None, "end of sequence")
        return element


class GraphIterator:
    """The iterator that `dataset.make_one_shot_iterator()` and `make_initializable_iterator()` return.

    The structure of an element, such as a dict or a tuple, is found by reading the first element when `get_next` is
    called; elements and errors read by then are kept for the first runs. If files are fed later, functions of the
    dataset are called with nodes instead.
    """

    def __init__(self, start: Callable[[], Iterator[Any]], outline: Callable[[], Any], *, is_started: bool) -> None:
        self._start = start
        self._outline = outline
        self._run = Run()
        self._elements = ValueIterator(start()) if is_started else None
        self._seen: deque[Any] = deque()
        self.initializer = Node(self._restart)

    def get_next(self, name: str | None = None) -> Any:
        """Return nodes that give the next element in each `Session.run`; with eager execution, the next element."""
        if _is_eager:
            return self._take()
        return _name_parts(Node(self._take), self._look())

    def _restart(self) -> None:
        self._run = current_run()  # fed values also apply to later epochs
        self._elements = ValueIterator(self._start())
        self._seen.clear()

    def _take(self) -> Any:
        if self._elements is None:
            raise FailedPreconditionError(
                None, None, "iterator expected to be started\n  run it first: session.run(iterator.initializer)"
            )
        with running(self._run):
            element = self._seen.popleft() if self._seen else self._elements.get_next()
        if isinstance(element, OpError):
            raise element
        return element

    def _look(self) -> Any:
        """Return the first element, or None if there is none; errors are raised later, when the element is run."""
        seen = self._seen if self._elements is not None else deque()
        try:
            elements = self._elements or ValueIterator(self._start())
            while not (seen and not isinstance(seen[-1], OpError)) and len(seen) < _MAX_LOOKED_AT:
                try:
                    seen.append(elements.get_next())
                except (OutOfRangeError, NotFedError):
                    raise
                except OpError as error:
                    seen.append(error)
        except OutOfRangeError:
            return None
        except NotFedError:
            return self._outline()
        return None if isinstance(seen[-1], OpError) else seen[-1]


def _name_parts(node: Node, element: Any) -> Any:
    """Make nodes for the parts of an element, in the same dicts and tuples."""
    if isinstance(element, dict):
        return {name: _name_parts(node[name], part) for name, part in element.items()}
    if isinstance(element, tuple):
        return tuple(_name_parts(node[number], part) for number, part in enumerate(element))
    return node
