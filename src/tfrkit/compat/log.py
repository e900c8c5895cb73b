"""`tf.logging`: messages of scripts, on stderr, by Python's logging under the name "tensorflow"."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from typing import Any, TextIO

from tfrkit.compat.namespace import Namespace

_counts: Counter[tuple[str, int]] = Counter()  # by file and line


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to what stderr is now, which may have been exchanged since."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


def get_logger() -> logging.Logger:
    """The logger of `tf.logging`, which writes to stderr where the script has not set up logging itself."""
    logger = logging.getLogger("tensorflow")
    if not logger.handlers and not logging.getLogger().handlers:
        handler = _Stderr()
        handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
        logger.addHandler(handler)
    return logger


def set_verbosity(v: Any) -> None:
    """Show messages of this level and above."""
    get_logger().setLevel(v.upper() if isinstance(v, str) else v)


def get_verbosity() -> int:
    """The level from which on messages are shown."""
    return get_logger().getEffectiveLevel()


def log(level: int, msg: Any, *args: Any, **options: Any) -> None:
    """A message of any level."""
    get_logger().log(level, msg, *args, **options)


def debug(msg: Any, *args: Any, **options: Any) -> None:
    """A message for finding faults."""
    get_logger().debug(msg, *args, **options)


def info(msg: Any, *args: Any, **options: Any) -> None:
    """A message about progress."""
    get_logger().info(msg, *args, **options)


def warning(msg: Any, *args: Any, **options: Any) -> None:
    """A message about something doubtful."""
    get_logger().warning(msg, *args, **options)


def error(msg: Any, *args: Any, **options: Any) -> None:
    """A message about a failure."""
    get_logger().error(msg, *args, **options)


def fatal(msg: Any, *args: Any, **options: Any) -> None:
    """A fatal message; the script continues."""
    get_logger().critical(msg, *args, **options)


def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """The first of every `n` such messages of one line of a script."""
    log_if(level, msg, _count_calls() % n == 0, *args)


def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """The first `n` such messages of one line of a script."""
    log_if(level, msg, _count_calls() < n, *args)


def log_if(level: int, msg: str, condition: Any, *args: Any) -> None:
    """A message where a condition holds."""
    if condition:
        log(level, msg, *args)


def flush() -> None:
    """Nothing waits to be written."""


def _count_calls() -> int:
    """How often the line of the script has asked before."""
    caller = sys._getframe(2)
    key = (caller.f_code.co_filename, caller.f_lineno)
    _counts[key] += 1
    return _counts[key] - 1


LOGGING = Namespace(
    "tf.logging",
    DEBUG=logging.DEBUG,
    ERROR=logging.ERROR,
    FATAL=logging.FATAL,
    INFO=logging.INFO,
    WARN=logging.WARNING,
    WARNING=logging.WARNING,
    debug=debug,
    error=error,
    fatal=fatal,
    flush=flush,
    get_verbosity=get_verbosity,
    info=info,
    log=log,
    log_every_n=log_every_n,
    log_first_n=log_first_n,
    log_if=log_if,
    set_verbosity=set_verbosity,
    vlog=log,
    warn=warning,
    warning=warning,
)
