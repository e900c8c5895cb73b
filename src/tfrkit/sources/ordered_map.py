"""Work done by several threads, its results taken in order. For native calls, which let go of the interpreter."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_in_order(
    function: Callable[[_Item], _Result], items: Iterable[_Item], *, threads: int
) -> Generator[_Result, None, None]:
    """The result for each item, in their order; a few items ahead of those taken are worked on.

    One thread is the caller's own. Close the iterator if it is not taken to its end: no work goes on then.

    Example:
        >>> list(map_in_order(abs, [-1, 2, -3], threads=2))
        [1, 2, 3]
    """
    if threads <= 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[Future[_Result]] = deque()
        try:
            for item in items:
                ahead.append(pool.submit(function, item))
                if len(ahead) > 2 * threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()
