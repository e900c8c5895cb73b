"""Dask's scheduler runs the calls of `futures.py`. Needs the extra `dask`."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Sequence
from typing import Any

from tfrkit._optional import import_or_explain
from tfrkit.engines.futures import Death, drain, make_entry
from tfrkit.engines.worker import Terms


class DaskCluster:
    """A Dask cluster: that of the current client, or else the one at `address`.

    Without an address, Dask starts workers on this machine.
    """

    def __init__(self, address: str | None) -> None:
        self._dask: Any = import_or_explain("distributed", "dask")
        self._is_ours = False
        try:
            self._client = self._dask.default_client()
        except ValueError:
            # A cluster of our own: any free port for its page, and no log of workers that end with it.
            quiet: dict[str, Any] = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
            own = quiet if address is None else {}
            self._client = self._dask.Client(address, set_as_default=False, **own)
            self._is_ours = True
        self._errors = (self._dask.scheduler.KilledWorker, self._dask.CancelledError, self._dask.comm.CommClosedError)
        self._enter: Any = None
        self._answers: dict[Any, tuple[Any, ...]] = {}
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def count_slots(self) -> int:
        return sum(self._client.nthreads().values())

    def dump(self, task: Any) -> bytes:
        return import_or_explain("cloudpickle", "dask").dumps(task)  # type: ignore[no-any-return]

    def prepare(self, terms: Terms) -> None:
        self._enter = make_entry(terms, "cloudpickle")

    def submit(self, payloads: Sequence[bytes]) -> Sequence[Any]:
        return self._watch(self._client.map(self._enter, payloads, pure=False))

    def submit_elsewhere(self, payload: bytes, futures: Sequence[Any]) -> Any:
        keys = {future.key for future in futures}
        busy = {name for name, processed in self._client.processing().items() if keys & set(processed)}
        others = [name for name in self._client.nthreads() if name not in busy]
        where: dict[str, Any] = {"workers": others, "allow_other_workers": True} if others else {}
        return self._watch([self._client.submit(self._enter, payload, pure=False, **where)])[0]

    def _watch(self, futures: Sequence[Any]) -> Sequence[Any]:
        for future in futures:
            future.add_done_callback(self._done.put)
        return futures

    def wait(self, seconds: float) -> Sequence[Any]:
        done = drain(self._done, seconds)
        finished = [future for future in done if future.status == "finished"]
        try:  # one round trip for all
            self._answers.update(zip(finished, self._client.gather(finished), strict=True))
        except self._errors:  # a worker died with its results; `take` finds out which
            pass
        return done

    def take(self, future: Any) -> tuple[Any, ...]:
        return self._answers.pop(future) if future in self._answers else future.result()

    def cancel(self, future: Any) -> None:
        self._answers.pop(future, None)
        future.cancel(force=True)

    def explain(self, error: BaseException) -> Death | None:
        # The scheduler has by itself tried the task on other workers.
        if isinstance(error, self._dask.scheduler.KilledWorker):
            return Death(error.allowed_failures + 1, f"at {error.last_worker.address}, as Dask's scheduler reports")
        return Death(1, f"{type(error).__name__}, {error}") if isinstance(error, self._errors) else None

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        """Disconnect if this object connected."""
        if self._is_ours:
            self._client.close()
