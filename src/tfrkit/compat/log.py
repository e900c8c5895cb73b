"""`tf.logging`: a script's messages on stderr, through Python's logger "tensorflow"."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from typing import Any, TextIO

from tfrkit.compat.namespace import Namespace

_counts: Counter[tuple[str, int]] = Counter()  # by file and line


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to the current sys.stderr, which may have been replaced."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


def get_logger() -> logging.Logger:
    """Return the logger of `tf.logging`, which writes to stderr unless the script has set up logging."""
    logger = logging.getLogger("tensorflow")
    if not logger.handlers and not logging.getLogger().handlers:
        handler = _Stderr()
        handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
        logger.addHandler(handler)
    return logger


def set_verbosity(v: Any) -> None:
    """Show messages of this level and higher."""
    get_logger().setLevel(v.upper() if isinstance(v, str) else v)


def get_verbosity() -> int:
    """Return the lowest level that is shown."""
    return get_logger().getEffectiveLevel()


def log(level: int, msg: Any, *args: Any, **options: Any) -> None:
    """Log a message of any level."""
    get_logger().log(level, msg, *args, **options)


def debug(msg: Any, *args: Any, **options: Any) -> None:
    """Log a debug message."""
    get_logger().debug(msg, *args, **options)


def info(msg: Any, *args: Any, **options: Any) -> None:
    """Log an info message."""
    get_logger().info(msg, *args, **options)


def warning(msg: Any, *args: Any, **options: Any) -> None:
    """Log a warning."""
    get_logger().warning(msg, *args, **options)


def error(msg: Any, *args: Any, **options: Any) -> None:
    """Log an error."""
    get_logger().error(msg, *args, **options)


def fatal(msg: Any, *args: Any, **options: Any) -> None:
    """Log a fatal error; the script continues."""
    get_logger().critical(msg, *args, **options)


def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Log the first of every `n` calls from one line of a script."""
    log_if(level, msg, _count_calls() % n == 0, *args)


def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Log the first `n` calls from one line of a script."""
    log_if(level, msg, _count_calls() < n, *args)


def log_if(level: int, msg: str, condition: Any, *args: Any) -> None:
    """Log a message if a condition is true."""
    if condition:
        log(level, msg, *args)


def flush() -> None:
    """Do nothing: messages are not buffered."""


def _count_calls() -> int:
    """Return the number of earlier calls from the same line of the script."""
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
