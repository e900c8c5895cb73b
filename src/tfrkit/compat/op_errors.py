"""TensorFlow's errors, as `tf.errors`."""

from __future__ import annotations

from typing import Any

from tfrkit.errors import ContainerError, StorageError, TfrkitError


class OpError(TfrkitError):
    """Base of TensorFlow's errors. Takes (node_def, op, message), as TensorFlow's do; `message` is the last."""

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(message)
        self.node_def = node_def
        self.op = op

    @property
    def message(self) -> str:
        return self.what

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (None, None, self.what)


class OutOfRangeError(OpError):
    """The end of a dataset or a queue."""


class InvalidArgumentError(OpError):
    """A record or a value that is not what was asked for."""


class DataLossError(OpError):
    """A damaged TFRecord file."""


class NotFoundError(OpError):
    """A file that is not there."""


class PermissionDeniedError(OpError):
    """A file that may not be read or written."""


class AlreadyExistsError(OpError):
    """A file that is there already."""


class FailedPreconditionError(OpError):
    """A step that needs another one before it."""


class UnimplementedError(OpError):
    """Something TensorFlow does and tfrkit.compat does not."""


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
