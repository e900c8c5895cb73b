"""Results of tasks as JSON, for other processes.

Plain values, arrays, and objects of tfrkit by their class and their attributes. Reading creates objects without calling
anything of theirs, so that a file that another user wrote into a shared folder can only give wrong results.
"""

from __future__ import annotations

import base64
import json
import math
from collections import Counter, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from importlib import import_module
from typing import Any
from uuid import UUID

import numpy as np

_PACKAGE = "tfrkit."
# Containers by their mark; an object has one key, its mark.
_CONTAINERS: dict[str, type] = {"tuple": tuple, "set": set, "frozenset": frozenset, "deque": deque}
_MAPPINGS: dict[str, type] = {"dict": dict, "Counter": Counter}
_TEXTS: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, time.isoformat, time.fromisoformat),
    "Decimal": (Decimal, str, Decimal),
    "UUID": (UUID, str, UUID),
}

# What content of any other form leads to.
_NO_RESULT = (TypeError, ValueError, LookupError, AttributeError, ImportError, RecursionError, ArithmeticError)


def write_results(results: Any) -> bytes:
    """Return a value as JSON. Raises `TypeError` for one that cannot be read again."""
    return json.dumps(_encode(results), separators=(",", ":")).encode("ascii")


def read_results(data: bytes) -> Any:
    """Return the value of `write_results`. Raises `ValueError` for anything else."""
    try:
        return _decode(json.loads(data))
    except _NO_RESULT as error:
        raise ValueError(f"expected a result of tfrkit, got another text ({type(error).__name__}, {error})") from None


def _encode(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [*map(_encode, value)]
    if kind is float:
        return {"float": repr(value)}
    if kind is bytes:
        return {"bytes": base64.b64encode(value).decode()}
    if kind is timedelta:
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        mark = "array" if kind is np.ndarray else "scalar"
        return {mark: [np.lib.format.dtype_to_descr(value.dtype), list(value.shape), data]}
    for mark, one in _CONTAINERS.items():
        if kind is one:
            return {mark: [*map(_encode, value)]}
    for mark, one in _MAPPINGS.items():
        if kind is one:
            return {mark: [[_encode(key), _encode(item)] for key, item in value.items()]}
    for mark, (one, show, _) in _TEXTS.items():
        if kind is one:
            return {mark: show(value)}
    if kind.__module__.startswith(_PACKAGE):
        name = f"{kind.__module__}:{kind.__qualname__}"
        if isinstance(value, tuple):
            return {"row": [name, [*map(_encode, value)]]}
        state = value.__getstate__()
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        return {"object": [name, _encode({**(attributes or {}), **(slots or {})})]}
    raise TypeError(f"{kind.__module__}.{kind.__qualname__} is no result")


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [*map(_decode, value)]
    if not isinstance(value, dict):
        return value
    [(mark, content)] = value.items()
    if mark in _CONTAINERS:
        return _CONTAINERS[mark](map(_decode, content))
    if mark in _MAPPINGS:
        return _MAPPINGS[mark]({_decode(key): _decode(item) for key, item in content})
    if mark in _TEXTS:
        return _TEXTS[mark][2](content)
    if mark == "float":
        return float(content)
    if mark == "bytes":
        return base64.b64decode(content)
    if mark == "timedelta":
        return timedelta(*content)
    if mark in ("array", "scalar"):
        descr, shape, data = content
        array = np.frombuffer(base64.b64decode(data), _read_dtype(descr)).reshape(shape).copy()
        return array if mark == "array" else array[()]
    name, state = content
    kind = _find_class(name)
    if mark == "row" and issubclass(kind, tuple):
        return tuple.__new__(kind, map(_decode, state))
    if mark != "object":
        raise ValueError(f"{mark!r:.40} is no kind of result")
    made: Any = object.__new__(kind)
    for attribute, one in _decode(state).items():
        object.__setattr__(made, attribute, one)
    return made


def _read_dtype(descr: Any) -> np.dtype[Any]:
    if isinstance(descr, list):
        descr = [tuple(field) for field in descr]
    dtype: np.dtype[Any] = np.dtype(descr)
    if dtype.hasobject:
        raise ValueError("an array of objects is no result")
    return dtype


def _find_class(name: str) -> type:
    module, _, path = name.partition(":")
    found = getattr(import_module(module), path) if module.startswith(_PACKAGE) else None
    if not isinstance(found, type) or found.__module__ != module:
        raise ValueError(f"{name!r:.80} is no class of a result")
    return found
