"""Names that have no meaning for TFRecord files: accepted, so that the lines around them run."""

from __future__ import annotations

import contextlib
import logging as python_logging
from typing import Any

from tfrkit.compat.namespace import Namespace

_logger = python_logging.getLogger("tfrkit.compat")


class Options:
    """Settings of a machine that is not here. Any may be given or set, in any depth; none has an effect."""

    def __init__(self, *values: Any, **settings: Any) -> None:
        self.__dict__.update(settings)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__[name] = inner = Options()
        return inner


class ConfigProto(Options):
    """Settings of a Session."""


class GPUOptions(Options):
    """Settings of graphics processors."""


class Graph:
    """A graph to build in; there is only one here."""

    @contextlib.contextmanager
    def as_default(self) -> Any:
        yield self

    def finalize(self) -> None:
        """Nothing to do."""


@contextlib.contextmanager
def scope(*values: Any, **settings: Any) -> Any:
    """A `with` block that changes nothing: devices and names mean nothing here."""
    yield values[0] if values else None


def ignore(*values: Any, **settings: Any) -> None:
    """Nothing."""


logging = Namespace(
    "tf.logging",
    DEBUG=python_logging.DEBUG,
    ERROR=python_logging.ERROR,
    FATAL=python_logging.FATAL,
    INFO=python_logging.INFO,
    WARN=python_logging.WARNING,
    debug=_logger.debug,
    error=_logger.error,
    fatal=_logger.critical,
    info=_logger.info,
    log=_logger.log,
    set_verbosity=_logger.setLevel,
    warn=_logger.warning,
    warning=_logger.warning,
)


def get_logger() -> python_logging.Logger:
    """The logger behind `tf.logging`."""
    return _logger


def as_bytes(value: Any, encoding: str = "utf-8") -> bytes:
    """Text as bytes; bytes as they are."""
    if not isinstance(value, (str, bytes, bytearray)):
        raise TypeError(f"expected bytes or text, got {type(value).__name__}")
    return value.encode(encoding) if isinstance(value, str) else bytes(value)


def as_text(value: Any, encoding: str = "utf-8") -> str:
    """Bytes as text; text as it is."""
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"expected bytes or text, got {type(value).__name__}")
    return value.decode(encoding) if isinstance(value, bytes) else value
