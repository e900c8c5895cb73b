"""Deferred values: what TensorFlow 1 scripts build first and then run in a Session.

A `Node` is a function with its inputs, nothing more. `Session.run` computes the requested nodes, each once per
run, so that two results derived from one record see the same record. There is no optimiser, there are no devices
and no threads.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, NoReturn

from tfrkit.compat.op_errors import InvalidArgumentError
from tfrkit.compat.shapes import TensorShape
from tfrkit.compat.structure import leaves, map_parts
from tfrkit.compat.tensor import Tensor, to_numpy, to_tensor


class Node:
    """A value that is computed when a Session runs."""

    __slots__ = ("_compute", "_inputs", "_shape")

    def __init__(self, compute: Callable[..., Any], *inputs: Any) -> None:
        self._compute = compute
        self._inputs = inputs
        self._shape = TensorShape(None)

    def eval(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> Any:
        """Compute the value and return it in plain NumPy."""
        return Session().run(self, feed_dict)

    def run(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> None:
        """Compute the value for its side effects."""
        self.eval(feed_dict, session)

    @property
    def shape(self) -> TensorShape:
        """The shape as declared by the script: `set_shape`, `reshape`, `placeholder(shape=)`."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """Return `shape`."""
        return self._shape

    def set_shape(self, shape: Any) -> None:
        """Declare the shape of the value."""
        self._shape = self._shape.merge_with(shape)

    @property
    def values(self) -> Node:
        return Node(operator.attrgetter("values"), self)

    @property
    def indices(self) -> Node:
        return Node(operator.attrgetter("indices"), self)

    @property
    def dense_shape(self) -> Node:
        return Node(operator.attrgetter("dense_shape"), self)

    def __getitem__(self, key: Any) -> Node:
        return Node(operator.getitem, self, key)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(
            "a value of a graph has no elements before it is run\n  name them: element[0], element['label']"
        )

    def __bool__(self) -> bool:
        raise TypeError("a value of a graph is not known before it is run\n  compute it: session.run(value)")

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a value of a graph has no {name!r} before it is run\n  compute it: session.run(value)")


def _binary(function: Callable[[Any, Any], Any], *, is_swapped: bool) -> Callable[[Node, Any], Node]:
    def method(self: Node, other: Any) -> Node:
        return Node(function, other, self) if is_swapped else Node(function, self, other)

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Node, f"__{_name}__", _binary(getattr(operator, _name), is_swapped=False))
    setattr(Node, f"__r{_name}__", _binary(getattr(operator, _name), is_swapped=True))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Node, f"__{_name}__", _binary(getattr(operator, _name), is_swapped=False))


class Run:
    """One call of `Session.run`: the fed values, and the values computed so far."""

    def __init__(self, feeds: dict[Any, Any] | None = None) -> None:
        self._feeds = dict(feeds or {})
        self._done: dict[Node, Any] = {}

    def compute(self, structure: Any) -> Any:
        """Replace nested nodes by their values."""
        return map_parts(self._value, structure, lists=True)

    def _value(self, part: Any) -> Any:
        if not isinstance(part, Node):
            return part
        if part in self._feeds:
            return to_tensor(self._feeds[part])
        if part not in self._done:
            self._done[part] = part._compute(*[self.compute(given) for given in part._inputs])
        return self._done[part]


_current: ContextVar[Run | None] = ContextVar("run", default=None)


def current_run() -> Run:
    """Return the current `Session.run`, or a new one without fed values."""
    return _current.get() or Run()


@contextlib.contextmanager
def running(run: Run) -> Iterator[Run]:
    """Make this the current run inside the `with` block."""
    token = _current.set(run)
    try:
        yield run
    finally:
        _current.reset(token)


def compute_now(structure: Any) -> Any:
    """Replace nested nodes by their values, using the values fed to the current run."""
    return current_run().compute(structure)


def is_deferred(structure: Any) -> bool:
    """Whether nested dicts, lists and tuples contain a node."""
    return any(isinstance(part, Node) for part in leaves(structure, lists=True))


def deferrable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function return a node if one of its arguments is a node."""

    @functools.wraps(function)
    def call(*values: Any, **options: Any) -> Any:
        if is_deferred(values) or is_deferred(options):
            return Node(lambda values, options: function(*values, **options), values, options)
        return function(*values, **options)

    return call


class NotFedError(InvalidArgumentError):
    """A placeholder without a value."""


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Node:
    """Make a node whose value comes from `Session.run(..., feed_dict={placeholder: value})`."""

    def complain() -> None:
        raise NotFedError(None, None, f"placeholder {name or ''} expected a value in feed_dict, got none")

    node = Node(complain)
    node.set_shape(shape)
    return node


class Session:
    """Computes nodes. Its options are ignored: there are no devices and no variables."""

    graph = None

    def __init__(self, target: str = "", graph: Any = None, config: Any = None) -> None:
        self._is_open = True

    def run(
        self, fetches: Any, feed_dict: dict[Any, Any] | None = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Compute nodes, also nested in lists and dicts, and return their values in plain NumPy."""
        if not self._is_open:
            raise RuntimeError("attempted to use a closed Session")
        _check_fetches(fetches)
        with running(Run(feed_dict)) as run:
            return to_numpy(run.compute(fetches))

    def close(self) -> None:
        self._is_open = False

    def as_default(self) -> Session:
        return self

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _check_fetches(fetches: Any) -> None:
    def check(fetch: Any) -> None:
        if not isinstance(fetch, (Node, Tensor)):
            raise TypeError(f"session.run expected values of a graph, got {type(fetch).__name__}")

    map_parts(check, fetches, lists=True)


def do_nothing(*values: Any, **options: Any) -> Node:
    """Return an operation without effect, such as the initializer of variables that do not exist."""
    return Node(lambda: None)
