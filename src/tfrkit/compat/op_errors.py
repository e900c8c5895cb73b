"""TensorFlow's errors, as `tf.errors`."""

from __future__ import annotations

import re
from typing import Any

from tfrkit.errors import ContainerError, StorageError, TfrkitError


class OpError(TfrkitError):
    """Base of TensorFlow's errors. Takes (node_def, op, message), as TensorFlow's do; `message` is the last."""

    error_code = 2

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "", error_code: int | None = None) -> None:
        super().__init__(message)
        self.node_def = node_def
        self.op = op
        if error_code is not None:
            self.error_code = error_code

    @property
    def message(self) -> str:
        return self.what

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (None, None, self.what)


class CancelledError(OpError):
    """A step that was called off; nothing here raises it."""

    error_code = 1


class UnknownError(OpError):
    """Something else; nothing here raises it."""

    error_code = 2


class InvalidArgumentError(OpError):
    """A record or a value that is not what was asked for."""

    error_code = 3


class DeadlineExceededError(OpError):
    """A step that took too long; nothing here raises it."""

    error_code = 4


class NotFoundError(OpError):
    """A file that is not there."""

    error_code = 5


class AlreadyExistsError(OpError):
    """A file that is there already."""

    error_code = 6


class PermissionDeniedError(OpError):
    """A file that may not be read or written."""

    error_code = 7


class ResourceExhaustedError(OpError):
    """Memory or quota that is used up; nothing here raises it."""

    error_code = 8


class FailedPreconditionError(OpError):
    """A step that needs another one before it."""

    error_code = 9


class AbortedError(OpError):
    """A step that was stopped; nothing here raises it."""

    error_code = 10


class OutOfRangeError(OpError):
    """The end of a dataset or a queue."""

    error_code = 11


class UnimplementedError(OpError):
    """Something TensorFlow does and tfrkit.compat does not."""

    error_code = 12


class InternalError(OpError):
    """A broken rule inside TensorFlow; nothing here raises it."""

    error_code = 13


class UnavailableError(OpError):
    """A service that is not there; nothing here raises it."""

    error_code = 14


class DataLossError(OpError):
    """A damaged TFRecord file."""

    error_code = 15


class UnauthenticatedError(OpError):
    """A request without a name; nothing here raises it."""

    error_code = 16


_KINDS: list[type[OpError]] = [OpError, *OpError.__subclasses__()]


def _constant(kind: type[OpError]) -> str:
    """INVALID_ARGUMENT for InvalidArgumentError."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", kind.__name__.removesuffix("Error")).upper()


# What is under `tf.errors`: the classes, and their numbers by name.
ERRORS: dict[str, Any] = {kind.__name__: kind for kind in _KINDS}
ERRORS |= {_constant(kind): kind.error_code for kind in _KINDS[1:]}


def explain_storage_error(error: StorageError | OSError) -> OpError:
    """TensorFlow's error for a file that cannot be opened, read or written."""
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
    """TensorFlow's error for a file whose bytes are not a sound TFRecord."""
    return DataLossError(None, None, str(error))
