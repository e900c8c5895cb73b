"""Engines by name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, get_args

from tfrkit._threads import count_cores
from tfrkit.engines.base import Engine, EngineName
from tfrkit.engines.futures import FuturesEngine
from tfrkit.engines.local import LocalEngine


@contextlib.contextmanager
def open_engine(name: EngineName, *, address: str | None = None, jobs: int | None = None) -> Iterator[Engine]:
    """Connect to an engine for the duration of the block.

    `jobs` is the number of local processes, by default one per processor, or the limit of tasks on a cluster.
    """
    check_engine(name, address)
    if name == "local":
        yield LocalEngine(jobs or count_cores())
        return
    cluster: Any
    if name == "ray":
        from tfrkit.engines.ray import RayCluster

        cluster = RayCluster(address)
    else:
        from tfrkit.engines.dask import DaskCluster

        cluster = DaskCluster(address)
    try:
        yield FuturesEngine(cluster, jobs)
    finally:
        cluster.close()


def check_engine(name: str, address: str | None) -> None:
    """Raise `ValueError` for an unknown engine, and for an address without an engine that has one."""
    if name not in get_args(EngineName):
        raise ValueError(f"engine expected one of {', '.join(get_args(EngineName))}, got {name!r}")
    if name == "local" and address is not None:
        raise ValueError(f"engine_address is only for engine 'ray' or 'dask', got {address!r} with 'local'")
