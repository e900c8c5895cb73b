"""TensorFlow's errors: `tf.errors`."""

from __future__ import annotations

import re
from typing import Any

from tfrkit.errors import ContainerError, StorageError, TfrkitError


class OpError(TfrkitError):
    """Base of TensorFlow's errors. Takes (node_def, op, message), as TensorFlow's do; `message` is the last."""

    error_code = 2

    def __init_subclass__(cls, code: int = 2) -> None:
        cls.error_code = code

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "", error_code: int | None = None) -> None:
        super().__init__(message)
        self.node_def = node_def
        self.op = op
        if error_code is not None:
            self.error_code = error_code

    def __str__(self) -> str:
        return self.what

    @property
    def message(self) -> str:
        return self.what

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (None, None, self.what)


class InvalidArgumentError(OpError, code=3):
    """A record or a value that does not fit the request."""


class NotFoundError(OpError, code=5):
    """A missing file."""


class AlreadyExistsError(OpError, code=6):
    """A file that exists already."""


class PermissionDeniedError(OpError, code=7):
    """A file that may not be read or written."""


class FailedPreconditionError(OpError, code=9):
    """An operation that needs another one before it."""


class OutOfRangeError(OpError, code=11):
    """The end of a dataset or a queue."""


class UnimplementedError(OpError, code=12):
    """Something TensorFlow does and tfrkit.compat does not."""


class DataLossError(OpError, code=15):
    """A damaged TFRecord file."""


# Further error classes that scripts catch.
_OTHERS = {
    "CancelledError": 1,
    "UnknownError": 2,
    "DeadlineExceededError": 4,
    "ResourceExhaustedError": 8,
    "AbortedError": 10,
    "InternalError": 13,
    "UnavailableError": 14,
    "UnauthenticatedError": 16,
}
for _name, _code in _OTHERS.items():
    _body = {"__module__": __name__, "__doc__": "Nothing here raises it."}
    globals()[_name] = type(_name, (OpError,), _body, code=_code)

_KINDS: list[type[OpError]] = [OpError, *sorted(OpError.__subclasses__(), key=lambda kind: kind.error_code)]


def _constant(kind: type[OpError]) -> str:
    """Return the constant of an error class, such as INVALID_ARGUMENT for InvalidArgumentError."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", kind.__name__.removesuffix("Error")).upper()


# The names of `tf.errors`: the classes, and their codes by constant.
ERRORS: dict[str, Any] = {kind.__name__: kind for kind in _KINDS}
ERRORS |= {_constant(kind): kind.error_code for kind in _KINDS[1:]}


def explain_storage_error(error: StorageError | OSError) -> OpError:
    """Return TensorFlow's error for a file that cannot be opened, read or written."""
    text = str(error) if isinstance(error, StorageError) else f"{(error.strerror or str(error)).lower()}"
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{text} - at {error.filename}"
    if isinstance(error, FileNotFoundError) or "no such file" in text:
        return NotFoundError(None, None, text)
    if isinstance(error, FileExistsError):
        return AlreadyExistsError(None, None, text)
    if isinstance(error, PermissionError) or "permission denied" in text:
        return PermissionDeniedError(None, None, text)
    return FailedPreconditionError(None, None, text)


def explain_damage(error: ContainerError) -> DataLossError:
    """Return TensorFlow's error for a file whose bytes are not a sound TFRecord."""
    return DataLossError(None, None, str(error))
