"""A store with errors in 5 % of its answers, for hours of a clock of its own: every row of every pass is right.

The clock counts what a client of a real store would wait for, one after the other: 100 ms for each request, and the
pauses before it tries again, which are not slept. Needs obstore.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from load import NUM_ROWS, make_row, memory_of

import tfrkit as tfr
from tfrkit._limits import LIMITS
from tfrkit.storage import bucket, obstore_client
from tfrkit.storage.options import use_storage
from tfrkit.storage.pace import COUNTS

sys.path.insert(0, str(Path(__file__).parent.parent / "remote"))

from places import set_keys
from servers import FaultServer, start_anywhere

REQUEST_SECONDS = 0.1
FAULTS = {"slow_down": 0.02, "cut": 0.015, "lost": 0.013, "stall": 0.002, "stall_seconds": 5.0}
BUILT = [make_row(number) for number in range(50)]


class Clock:
    """The time of this store, in place of the module `time` in its client."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slept = 0.0

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self._slept += seconds

    def monotonic(self) -> float:
        return self._slept + COUNTS.requests * REQUEST_SECONDS


def load_store(dataset: Path, hours: float, seed: int) -> bool:
    """Read, pick and build again and again until the clock says so."""
    set_keys()
    clock, chooser, begun = Clock(), random.Random(seed), time.monotonic()
    # Small blocks make many requests, small pieces make bodies that break off in the middle.
    LIMITS.block_nbytes, LIMITS.first_block_nbytes, LIMITS.stall_seconds = 32 << 10, 16 << 10, 1.0
    obstore_client._PIECE_NBYTES = 4 << 10  # type: ignore[misc]
    bucket.time = SimpleNamespace(sleep=clock.sleep, monotonic=clock.monotonic)  # type: ignore[assignment]
    done = dict.fromkeys(KINDS, 0)
    num_wrong, sizes = 0, []
    with tempfile.TemporaryDirectory() as folder, start_anywhere(partial(FaultServer, Path(folder))) as server:
        use_storage(endpoint=server.url)
        server.mount("bucket/d", dataset)
        server.set_faults(**FAULTS, seed=seed)
        while clock.monotonic() < hours * 3600:
            kind = chooser.choice(list(KINDS))
            num_wrong += not KINDS[kind](chooser)
            done[kind] += 1
            server.clear_log()  # which grows
            if not sizes and clock.monotonic() > hours * 360:
                gc.collect()
                sizes.append(memory_of(os.getpid()))
        gc.collect()
        sizes.append(memory_of(os.getpid()))
        server.set_faults()
        left = [*server.uploads(), *(key for key in server.read_keys() if "/_build" in key or "/." in key)]
    print(f"store: {clock.monotonic() / 3600:.2f} hours in {time.monotonic() - begun:.0f} s: {done}, {num_wrong} wrong")
    print(f"store: {COUNTS.to_json()}; left over: {left or 'nothing'}")
    print(f"store: {sizes[0]:.0f} MB after a tenth, {sizes[-1]:.0f} MB at the end", flush=True)
    return not num_wrong and not left and sizes[-1] < sizes[0] * 1.1 + 10


def read_pass(chooser: random.Random) -> bool:
    with tfr.open("s3://bucket/d") as ds:
        order = ds.shuffle(seed=chooser.randrange(99)) if chooser.random() < 0.5 else ds
        return sorted(int(one) for batch in order.batch(64) for one in batch["id"]) == list(range(NUM_ROWS))


def pick_rows(chooser: random.Random) -> bool:
    wanted = [chooser.randrange(NUM_ROWS) for _ in range(20)]
    with tfr.open("s3://bucket/d") as ds:
        return [int(ds[one]["id"]) for one in wanted] == wanted


def build_again(chooser: random.Random) -> bool:
    """Replace a dataset in the store, and read it."""
    tfr.build(BUILT, "s3://bucket/out", seed=chooser.randrange(99), shards=2, force=True)
    with tfr.open("s3://bucket/out") as ds:
        return sorted(int(row["id"]) for row in ds) == list(range(len(BUILT)))


KINDS = {"passes": read_pass, "picks": pick_rows, "builds": build_again}
