"""Which mutant is on. The changed copy of the package asks here: see mutants.py."""

from __future__ import annotations

import inspect
import os
import sys

OFF, RECORD = -1, -2
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT
# Tests replace the functions of os.
_open, _write, _close, _environ = os.open, os.write, os.close, os.environ

active = int(os.environ.get("TFRKIT_MUTANT", OFF))  # for processes that a test starts
_seen: set[tuple[int, str]] = set()


def is_on(number: int) -> bool:
    if active == RECORD:
        # "" for an import: the code of modules and classes, and defaults of functions.
        is_import = not sys._getframe(1).f_code.co_flags & inspect.CO_OPTIMIZED
        reached = number, "" if is_import else _environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
        if reached not in _seen:
            _seen.add(reached)
            file = _open(_environ["TFRKIT_MUTANTS_REACHED"], _FLAGS)
            _write(file, f"{reached[0]}\t{reached[1]}\n".encode())
            _close(file)
    return active == number
