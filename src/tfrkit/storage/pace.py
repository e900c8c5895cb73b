"""How requests to remote stores go: their counts, how many run at a time, how many blocks are requested ahead."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field, fields

from tfrkit._limits import LIMITS

_PACE_FORGETS = 1.02  # the least time of a request counts less with each later one
_PATIENT_BLOCKS = 64  # after a reader had to wait


@dataclass
class RequestCounts:
    """Requests of this process to remote stores, and how they went.

    Attributes:
        requests: All requests, repeated ones included.
        nbytes: Bytes received.
        retries: Requests that were repeated, for whatever reason.
        busy: Answers that asked for fewer requests (429, 503).
        resumed: Bodies that broke off and were continued at the byte reached.
        fetched_again: Bytes that failed a checksum and were requested once more.
        cache_hits: Blocks read from the cache instead of the store.
    """

    requests: int = 0
    nbytes: int = 0
    retries: int = 0
    busy: int = 0
    resumed: int = 0
    fetched_again: int = 0
    cache_hits: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, **counts: int) -> None:
        with self._lock:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)

    def reset(self) -> None:
        """Count from 0 again, in a forked process: its parent may have held the lock."""
        self._lock = threading.Lock()
        for name in self.to_json():
            setattr(self, name, 0)

    def to_json(self) -> dict[str, int]:
        return {one.name: getattr(self, one.name) for one in fields(self) if not one.name.startswith("_")}


COUNTS = RequestCounts()


def count_requests() -> dict[str, int]:
    """Return the counts of requests of this process to remote stores."""
    return COUNTS.to_json()


class Gate:
    """Limits the requests in flight: half as many after "slow down", and then one more after a round of successes.

    Before the first "slow down", one more after each success.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._limit = float(LIMITS.first_requests)
        self._in_flight = 0
        self._slowed = 0.0

    def enter(self) -> None:
        with self._condition:
            while self._in_flight >= max(1, int(self._limit)):
                self._condition.wait()
            self._in_flight += 1

    def leave(self, *, is_busy: bool) -> None:
        with self._condition:
            self._in_flight -= 1
            now = time.monotonic()
            if not is_busy:
                step = 1 / self._limit if self._slowed else 1.0
                self._limit = min(float(LIMITS.max_requests), self._limit + step)
            elif now - self._slowed > 0.1:  # answers to requests of the same moment count once
                self._slowed = now
                self._limit = max(1.0, self._limit / 2)
            self._condition.notify_all()


class Pace:
    """How many blocks a stream requests ahead: few if the store is so near that more would only take memory.

    Blocks that wait are in new memory, which the system has to clear, and out of the processor's cache when they are
    read. From a store that sends a block in 20 ms, four are enough; after a reader had to wait for one, all are
    requested again for a while. Races between threads do no harm.
    """

    def __init__(self) -> None:
        self._least = math.inf  # seconds of a request for half a block or more, of late
        self._num_patient = 0

    def note_request(self, nbytes: int, seconds: float) -> None:
        """Take the time of a request."""
        if 2 * nbytes >= LIMITS.block_nbytes:
            self._least = min(seconds, self._least * _PACE_FORGETS)

    def note_wait(self, seconds: float) -> None:
        """Take the time that a reader waited for a block."""
        self._num_patient = _PATIENT_BLOCKS if seconds > LIMITS.quick_seconds else max(0, self._num_patient - 1)

    @property
    def stream_blocks(self) -> int:
        """Blocks to request ahead."""
        is_quick = self._least < LIMITS.quick_seconds and not self._num_patient
        return min(LIMITS.quick_stream_blocks, LIMITS.stream_blocks) if is_quick else LIMITS.stream_blocks
