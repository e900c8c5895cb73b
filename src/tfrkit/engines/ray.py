"""Ray runs the calls of `futures.py`. Needs the extra `ray`."""

from __future__ import annotations

import queue
import time
from collections.abc import Sequence
from typing import Any

from tfrkit._optional import import_or_explain
from tfrkit.engines.futures import Death, drain, make_entry
from tfrkit.engines.worker import Terms


class RayCluster:
    """A Ray cluster: the one this process is connected to, or else the one at `address`.

    Without an address, Ray connects to a cluster on this machine or starts one.
    """

    def __init__(self, address: str | None) -> None:
        self._ray: Any = import_or_explain("ray", "ray")
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            self._ray.init(address=address, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
        self._enter: Any = None
        self._refs: dict[Any, Any] = {}
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def count_slots(self) -> int:
        return int(self._ray.cluster_resources().get("CPU", 0))

    def dump(self, task: Any) -> bytes:
        return self._ray.cloudpickle.dumps(task)  # type: ignore[no-any-return]

    def prepare(self, terms: Terms) -> None:
        # The loop counts deaths and submits again by itself.
        self._enter = self._ray.remote(num_cpus=1, max_retries=0)(make_entry(terms, "ray.cloudpickle"))

    def submit(self, payloads: Sequence[bytes]) -> Sequence[Any]:
        return [self._call(payload) for payload in payloads]

    def submit_elsewhere(self, payload: bytes, futures: Sequence[Any]) -> Any:
        return self._call(payload)  # the workers that run the others are not free

    def _call(self, payload: bytes) -> Any:
        ref = self._enter.remote(payload)
        future = ref.future()
        self._refs[future] = ref
        future.add_done_callback(self._done.put)
        return future

    def wait(self, seconds: float) -> Sequence[Any]:
        return drain(self._done, seconds)

    def take(self, future: Any) -> tuple[Any, ...]:
        del self._refs[future]
        return future.result()  # type: ignore[no-any-return]

    def cancel(self, future: Any) -> None:
        self._ray.cancel(self._refs.pop(future), force=True)

    def explain(self, error: BaseException) -> Death | None:
        errors = self._ray.exceptions
        if isinstance(error, errors.RayTaskError) or not isinstance(error, errors.RayError):
            return None
        return Death(1, f"{type(error).__name__}, {str(error).strip().splitlines()[0]}")

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        """Disconnect if this object connected."""
        if self._is_ours:
            self._ray.shutdown()
