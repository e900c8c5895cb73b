"""Repeated fields and maps of messages: lists and dicts that check their values.

A change makes the message present in its parent, as in protobuf: appending to `feature.int64_list.value`
sets the kind of a Feature.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, MutableSequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrkit.compat.tensor import Tensor

if TYPE_CHECKING:
    from tfrkit.compat.message import Message

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_FLOAT32 = struct.Struct("<f")


def check_int64(value: Any) -> int:
    """Return a 64-bit integer. Booleans are accepted, as in the protobuf versions of old scripts."""
    if type(value) is not int:
        value = _plain(value)
        if isinstance(value, np.bool_):
            return int(value)
        try:
            value = operator.index(value)
        except TypeError:
            raise TypeError(f"Int64List expected integers, got {type(value).__name__}") from None
    if not _INT64_MIN <= value <= _INT64_MAX:
        raise ValueError(f"Int64List expected signed 64-bit integers, got {value}, which is out of range")
    return int(value)


def check_float32(value: Any) -> float:
    """Return a number rounded to float32; numbers that are too large become infinite."""
    if type(value) is not float:
        value = _plain(value)
        if isinstance(value, (str, bytes, bytearray, np.ndarray)) or not (
            hasattr(value, "__float__") or hasattr(value, "__index__")
        ):
            raise TypeError(f"FloatList expected real numbers, got {type(value).__name__}")
        value = float(value)
    try:
        rounded: float = _FLOAT32.unpack(_FLOAT32.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def _plain(value: Any) -> Any:
    return value.numpy() if isinstance(value, Tensor) and value.ndim == 0 else value


def check_bytes(value: Any) -> bytes:
    """Return bytes; text is refused, because it must be encoded first."""
    if isinstance(value, bytes):
        return bytes(value)
    hint = "\n  encode it: value.encode()" if isinstance(value, str) else ""
    raise TypeError(f"BytesList expected bytes, got {type(value).__name__}{hint}")


def _check_int64s(values: Any) -> list[int]:
    if type(values) is list:
        return [
            value if type(value) is int and _INT64_MIN <= value <= _INT64_MAX else check_int64(value)
            for value in values
        ]
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iub":
        if values.dtype != np.uint64:
            return [int(value) for value in values] if values.dtype == bool else values.tolist()
        values = values.tolist()
    return [check_int64(value) for value in values]


def _check_float32s(values: Any) -> list[float]:
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iubf":
        with np.errstate(over="ignore", invalid="ignore"):
            rounded: list[float] = values.astype(np.float32).tolist()
        return rounded
    return [check_float32(value) for value in values]


def _check_bytes_values(values: Any) -> list[bytes]:
    return [value if type(value) is bytes else check_bytes(value) for value in values]


_CHECKS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], list[Any]], Any]] = {
    "int64": (check_int64, _check_int64s, np.int64),
    "float": (check_float32, _check_float32s, np.float32),
    "bytes": (check_bytes, _check_bytes_values, None),
}


def list_values(values: Any, kind: str) -> list[Any]:
    """Check values, and return them as a list of the given kind."""
    check, check_all, _ = _CHECKS[kind]
    if type(values) is not list:
        if not isinstance(values, Iterable) or (isinstance(values, np.ndarray) and values.ndim == 0):
            raise TypeError(f"expected a list of values, got {type(values).__name__}\n  wrap it: [value]")
        if isinstance(values, Values) and values.check is check:
            return list(values)
    return check_all(values)


class Repeated(MutableSequence[Any]):
    """A repeated field, backed by a list."""

    __slots__ = ("_list", "_message")
    _list: list[Any]
    _message: Message

    def take(self, values: list[Any]) -> None:
        """Use this list itself, without a copy; its values are already checked."""
        self._list = values

    def __delitem__(self, index: Any) -> None:
        del self._list[index]
        self._message.SetInParent()

    def __getitem__(self, index: Any) -> Any:
        return self._list[index]

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._list)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, type(self)):
            return self._list == other._list
        return self._list == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._list)


class Values(Repeated):
    """The `value` field of a BytesList, FloatList or Int64List."""

    __slots__ = ("_dtype", "_kind", "check", "check_all")

    def __init__(self, message: Message, kind: str) -> None:
        self._message = message
        self._list = []
        self._kind = kind
        self.check, self.check_all, self._dtype = _CHECKS[kind]

    def append(self, value: Any) -> None:
        self._list.append(self.check(value))
        self._message.SetInParent()

    def extend(self, values: Iterable[Any]) -> None:
        self._list.extend(list_values(values, self._kind))
        self._message.SetInParent()

    MergeFrom = extend

    def copy_for(self, message: Message) -> Values:
        copied = Values.__new__(Values)
        copied._message, copied._list, copied._kind = message, self._list.copy(), self._kind
        copied.check, copied.check_all, copied._dtype = self.check, self.check_all, self._dtype
        return copied

    def insert(self, index: int, value: Any) -> None:
        self._list.insert(index, self.check(value))
        self._message.SetInParent()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._list[index] = self.check_all(value) if isinstance(index, slice) else self.check(value)
        self._message.SetInParent()

    def __iadd__(self, values: Iterable[Any]) -> Values:
        raise AttributeError("assignment to a repeated field is not allowed\n  use .extend(values)")

    def sort(self, **options: Any) -> None:
        self._list.sort(**options)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self._list, self._dtype if dtype is None else dtype)


class Messages(Repeated):
    """The `feature` field of a FeatureList. Messages are copied when added; `add()` makes a new one."""

    __slots__ = ("_type",)

    def __init__(self, message: Message, kind: type[Message]) -> None:
        self._message = message
        self._type = kind
        self._list = []

    def add(self, **fields: Any) -> Any:
        self._list.append(self._type(**fields))
        self._message.SetInParent()
        return self._list[-1]

    def append(self, value: Any) -> None:
        self.insert(len(self._list), value)

    def insert(self, index: int, value: Any) -> None:
        self._list.insert(index, copy_message(value, self._type))
        self._message.SetInParent()

    def extend(self, values: Iterable[Any]) -> None:
        if not isinstance(values, Iterable):
            raise TypeError(f"expected a list of {self._type.__name__}s, got {type(values).__name__}")
        self._list.extend([copy_message(value, self._type) for value in values])
        self._message.SetInParent()

    MergeFrom = extend

    def copy_for(self, message: Message) -> Messages:
        copied = Messages(message, self._type)
        copied._list = [inner._copy() for inner in self._list]
        return copied

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("messages cannot be assigned\n  change the one that is there: list[i].CopyFrom(message)")


class MessageMap(MutableMapping[str, Any]):
    """A map of names to messages. Reading a missing name adds an empty message, as in protobuf."""

    __slots__ = ("_dict", "_message", "_type")

    def __init__(self, message: Message, kind: type[Message]) -> None:
        self._message = message
        self._type = kind
        self._dict: dict[str, Message] = {}

    def __getitem__(self, name: str | bytes) -> Any:
        key = check_name(name)
        found = self._dict.get(key)
        if found is None:
            found = self._dict[key] = self._type()
            self._message.SetInParent()
        return found

    get_or_create = __getitem__

    def get(self, name: str | bytes, default: Any = None) -> Any:
        return self._dict.get(check_name(name), default)

    def __contains__(self, name: object) -> bool:
        return check_name(name) in self._dict

    def __setitem__(self, name: str, value: Any) -> None:
        raise ValueError("messages cannot be assigned\n  change the one that is there: feature[name].CopyFrom(message)")

    def __delitem__(self, name: str) -> None:
        del self._dict[check_name(name)]
        self._message.SetInParent()

    def merge(self, values: Mapping[Any, Any]) -> None:
        """Copy messages into the map; entries with the same name are replaced."""
        if not isinstance(values, Mapping):
            raise TypeError(f"expected a dict of {self._type.__name__}s, got {type(values).__name__}")
        copies = {check_name(name): copy_message(value, self._type) for name, value in values.items()}
        self._dict.update(copies)
        self._message.SetInParent()

    MergeFrom = merge

    def copy_for(self, message: Message) -> MessageMap:
        copied = MessageMap(message, self._type)
        copied._dict = {name: inner._copy() for name, inner in self._dict.items()}
        return copied

    def take(self, values: dict[str, Any]) -> None:
        """Use this dict itself, without a copy."""
        self._dict = values

    def clear(self) -> None:
        self._dict.clear()
        self._message.SetInParent()

    def __len__(self) -> int:
        return len(self._dict)

    def __iter__(self) -> Iterator[str]:
        return iter(self._dict)

    def __repr__(self) -> str:
        return repr(self._dict)


def check_name(name: Any) -> str:
    """Return a feature name as text; bytes must be UTF-8."""
    if isinstance(name, bytes):
        return name.decode()
    if not isinstance(name, str):
        raise TypeError(f"a feature name expected str, got {type(name).__name__}")
    if not name.isascii():
        name.encode()  # raises for a lone surrogate
    return str(name)


def copy_message(value: Any, kind: type[Message]) -> Message:
    """Copy a message of this kind, or make one from a dict of its fields."""
    if isinstance(value, kind):
        return value._copy()
    if isinstance(value, Mapping):
        return kind(**value)
    raise TypeError(f"expected a {kind.__name__} or a dict of its fields, got {type(value).__name__}")
