"""The pool: newest first, shared, dropped when nobody waits."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tfrkit.view.work import Pool


class Busy:
    """A pool of one thread that is busy until released."""

    def __init__(self) -> None:
        self.pool = Pool(1)
        self.order: list[Any] = []
        self._started, self._release = threading.Event(), threading.Event()

    async def hold(self) -> asyncio.Future[Any]:
        def block() -> None:
            self._started.set()
            self._release.wait(30)

        held = asyncio.ensure_future(self.pool.run(block))
        await asyncio.to_thread(self._started.wait, 30)
        return held

    def ask(self, name: str, key: Any = None) -> asyncio.Future[Any]:
        return asyncio.ensure_future(self.pool.run(lambda: self.order.append(name) or name, key))

    def release(self) -> None:
        self._release.set()


def run(test: Any) -> None:
    async def go() -> None:
        busy = Busy()
        try:
            await test(busy)
        finally:
            busy.release()
            await asyncio.to_thread(busy.pool.close)

    asyncio.run(go())


def test_newest_job_runs_first() -> None:
    async def test(busy: Busy) -> None:
        held = await busy.hold()
        jobs = [busy.ask(name) for name in "abc"]
        await asyncio.sleep(0)
        busy.release()
        assert await asyncio.gather(*jobs) == ["a", "b", "c"]
        await held
        assert busy.order == ["c", "b", "a"]

    run(test)


def test_cancelled_job_does_not_run() -> None:
    async def test(busy: Busy) -> None:
        await busy.hold()
        kept, dropped = busy.ask("kept"), busy.ask("dropped")
        await asyncio.sleep(0)
        dropped.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dropped
        busy.release()
        assert await kept == "kept"
        assert busy.order == ["kept"]

    run(test)


def test_equal_jobs_run_once_and_one_reader_may_leave() -> None:
    async def test(busy: Busy) -> None:
        await busy.hold()
        first, second = busy.ask("first", "key"), busy.ask("second", "key")
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        busy.release()
        assert await second == "first"
        assert busy.order == ["first"]

    run(test)


def test_error_reaches_the_reader_and_the_thread_lives_on() -> None:
    async def test(busy: Busy) -> None:
        def fail() -> None:
            raise ValueError("of the job")

        with pytest.raises(ValueError, match="of the job"):
            await busy.pool.run(fail)
        assert await busy.ask("next") == "next"

    run(test)
