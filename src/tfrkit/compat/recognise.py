"""Recognise functions of `map` that only parse, so that many records can be parsed at once.

The function is called once with a stand-in for a record. It runs on copies: its global variables, closures and defaults
are copied if they are plain data, other functions or names of `tf` for parsing, and anything else, such as `print`,
a generator of random numbers or an object of the script, is refused. A function is recognised if it parses the record
once and returns features of it, unchanged, alone or in dicts and tuples; if it looked at a value, changed its data
or raised, it is not, and is called for each record. Nothing of the script is changed by the attempt.
"""

from __future__ import annotations

import builtins
import dis
import functools
import operator
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

from tfrkit.compat.dtypes import DType, as_dtype
from tfrkit.compat.feature_specs import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    check_features,
)
from tfrkit.compat.namespace import Namespace
from tfrkit.compat.op_errors import OpError
from tfrkit.compat.parse_example import parse_example, parse_single_example

_ATOMS = (type(None), bool, int, float, str, bytes, DType)
_SPECS = (FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, RaggedFeature, SparseFeature)
_BUILTINS = {name: getattr(builtins, name) for name in ("dict", "enumerate", "len", "list", "range", "tuple", "zip")}
# A handler of errors could hide that a stand-in was refused; stores and imports reach beyond the function.
_REFUSED_STEPS = {
    *("PUSH_EXC_INFO", "IMPORT_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR"),
    *("LOAD_NAME", "LOAD_BUILD_CLASS", "LOAD_LOCALS"),
}
_MAX_PARTS = 2000  # of data: copying more takes longer than it can save


class _RefusedError(Exception):
    """The function does something other than parsing."""


# All that a function of plain data can raise: other classes of errors are refused when they are copied.
_ERRORS = (
    *(_RefusedError, OpError, ArithmeticError, AssertionError, AttributeError, LookupError, NameError),
    *(RuntimeError, TypeError, ValueError),
)


def _refuse(*values: Any) -> NoReturn:
    raise _RefusedError


class _UnknownValue:
    """A value that is not known yet. It can be passed on and returned; looking at it is refused."""

    __slots__ = ()
    __bool__ = __eq__ = __ne__ = __str__ = __repr__ = __format__ = _refuse
    __hash__ = _refuse


class ParsedPart(_UnknownValue):
    """A feature of a parsed record."""

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key


def find_parsing(function: Callable[..., Any]) -> tuple[dict[str, Any], Any] | None:
    """Return the specs a function parses and the structure it returns, made of `ParsedPart`s; None if it does more."""
    record = _UnknownValue()
    parsed: list[dict[str, Any]] = []

    def parse(serialized: Any, features: Any, example_names: Any = None, name: Any = None) -> dict[str, Any]:
        if serialized is not record or parsed:
            raise _RefusedError
        parsed.append(dict(check_features(features)))
        return {key: ParsedPart(key) for key in features}

    copies = _Copies({parse_single_example: parse, parse_example: parse})
    found = _call_on_copies(copies, function, record)
    if not parsed or not _holds_parts(found):
        return None
    return parsed[0], found


def opens_files(function: Callable[..., Any], kind: type) -> bool:
    """Whether a function is this class, or only calls it with the path it is given, and returns the result."""
    path, opened = _UnknownValue(), _UnknownValue()

    def make(filenames: Any, *values: Any, **options: Any) -> Any:
        if filenames is not path:
            raise _RefusedError
        return opened

    return function is kind or _call_on_copies(_Copies({kind: make}), function, path) is opened


def _call_on_copies(copies: _Copies, function: Callable[..., Any], given: Any) -> Any:
    try:
        found = copies.copy(function)(given)
    except _ERRORS:
        return None  # an error of the script itself is raised when the function is called for a record
    return found if copies.are_unchanged() else None


def _holds_parts(structure: Any) -> bool:
    if type(structure) is dict:
        return bool(structure) and all(map(_holds_parts, structure.values()))
    if type(structure) in (list, tuple):
        return bool(structure) and all(map(_holds_parts, structure))
    return type(structure) is ParsedPart


class _Copies:
    """Copies of what a function refers to. `names` gives the stand-ins for functions of `tf`."""

    def __init__(self, names: dict[Any, Callable[..., Any]]) -> None:
        self._names = names
        self._made: dict[int, Any] = {}
        self._num_parts = 0
        self._originals: list[Any] = []  # kept, so that no two have the same id
        self._contents: list[tuple[Any, list[Any]]] = []
        self._globals: dict[int, dict[str, Any]] = {}

    def are_unchanged(self) -> bool:
        """Whether lists and dicts still have the content they were copied with."""
        for made, before in self._contents:
            now = _content(made)
            if len(now) != len(before) or not all(map(operator.is_, now, before)):
                return False
        return True

    def copy(self, value: Any) -> Any:
        """Copy a value; refuse one that is neither data, nor a function, nor a name of `tf`."""
        kind = type(value)
        if kind in _ATOMS:
            return value
        if id(value) in self._made:
            return self._made[id(value)]
        self._num_parts += len(value) if kind in (list, dict, tuple) else 1
        if self._num_parts > _MAX_PARTS:
            raise _RefusedError
        self._originals.append(value)
        made = self._made[id(value)] = self._start_copy(value, kind)
        if kind is list or kind is dict:
            if kind is list:
                made.extend(map(self.copy, value))
            else:
                made.update({self.copy(name): self.copy(part) for name, part in value.items()})
            self._contents.append((made, _content(made)))
        elif kind is FunctionType:
            self._fill_function(made, value)
        return made

    def _start_copy(self, value: Any, kind: type) -> Any:
        if kind is list or kind is dict:
            return kind()
        if kind is tuple:
            return tuple(map(self.copy, value))
        if kind in _SPECS:
            return kind(*map(self.copy, value))
        if kind is FunctionType:
            return self._names[value] if value in self._names else self._start_function(value)
        if kind is functools.partial:
            return functools.partial(self.copy(value.func), *map(self.copy, value.args), **self.copy(value.keywords))
        if kind is Namespace or (kind is ModuleType and value.__name__ == "tfrkit.compat.tensorflow"):
            return _Names(value, self.copy)
        if kind is type and (value in _SPECS or value in self._names):
            return self._names.get(value, value)
        raise _RefusedError

    def _start_function(self, function: FunctionType) -> Any:
        if function is as_dtype:
            return function
        _check_steps(function.__code__)
        if vars(function):
            raise _RefusedError
        space = self._globals.setdefault(id(function.__globals__), {"__builtins__": _BUILTINS})
        cells = tuple(CellType() for _ in function.__closure__ or ())
        return FunctionType(function.__code__, space, function.__name__, None, cells)

    def _fill_function(self, made: Any, function: FunctionType) -> None:
        if made is function or function in self._names:
            return
        for cell, original in zip(made.__closure__ or (), function.__closure__ or (), strict=True):
            cell.cell_contents = self.copy(original.cell_contents)
        for name in _global_names(function.__code__):
            if name in function.__globals__:
                made.__globals__[name] = self.copy(function.__globals__[name])
            elif name not in _BUILTINS:
                raise _RefusedError
        made.__defaults__ = self.copy(function.__defaults__)
        made.__kwdefaults__ = self.copy(function.__kwdefaults__)


class _Names:
    """`tf`, or a name with names below it, from which only names that a copy may have can be taken."""

    __slots__ = ("_copy", "_space")

    def __init__(self, space: Any, copy: Callable[[Any], Any]) -> None:
        self._space = space
        self._copy = copy

    def __getattr__(self, name: str) -> Any:
        return self._copy(getattr(self._space, name))


def _content(made: Any) -> list[Any]:
    return list(made) if isinstance(made, list) else [*made.keys(), *made.values()]


def _walk_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _walk_code(constant)


@functools.lru_cache(256)
def _check_steps(code: CodeType) -> None:
    for inner in _walk_code(code):
        for step in dis.get_instructions(inner):
            is_outer = step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in code.co_freevars
            if step.opname in _REFUSED_STEPS or is_outer:
                raise _RefusedError


@functools.lru_cache(256)
def _global_names(code: CodeType) -> frozenset[str]:
    return frozenset(
        step.argval
        for inner in _walk_code(code)
        for step in dis.get_instructions(inner)
        if step.opname == "LOAD_GLOBAL"
    )
