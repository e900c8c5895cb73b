"""Locks that are reset in a forked process.

A forked process has only the thread that forked, so a lock held by another thread at that moment stays locked forever.
This happens: PyTorch forks the workers of one loader while threads of another loader read the same files.
"""

from __future__ import annotations

import os
import threading
import weakref
from functools import cache
from typing import Protocol


class _LockOwner(Protocol):
    _lock: threading.Lock


_owners: weakref.WeakSet[_LockOwner] = weakref.WeakSet()


def renew_lock_after_fork(owner: _LockOwner) -> None:
    """Give `owner` a new `_lock` in every forked process."""
    _register()
    _owners.add(owner)


@cache
def _register() -> None:
    if hasattr(os, "register_at_fork"):  # missing on some systems
        os.register_at_fork(after_in_child=_renew_locks)


def _renew_locks() -> None:
    for owner in list(_owners):
        owner._lock = threading.Lock()
