"""Simulate shuffled reading of 10^8 to 10^10 records by 1 to 1,024 nodes from an object store, on a virtual clock.

    python benchmarks/scale_sim.py                     # a table in Markdown; minutes on one core
    python benchmarks/scale_sim.py --records 1e8 --nodes 1 64

The order, the plan of batches, the windows and the ranges of requests are those of tfrkit (`Striped`, `Shuffled`,
`BatchPlan`, `coalesce`, `cut_range`); only the store, the network and the training step are models: latency log-normal
with a median of 30 ms and 300 ms at 99 %, 55 MB/s per request, 64 requests in flight and 25 Gbit/s per node, 5,500
requests per second for each of the store's prefixes, above which requests wait. All shards have records of one size.
The same arguments give the same numbers.

Columns: start-up until the first batch; stalls after it, as a part of the time; bytes over those of the rows that were
delivered, and requests over those bytes in blocks of 8 MiB; dollars for the requests of an epoch of all nodes; memory
for windows of a node; seconds until a node that was killed has its first batch again, which is all that is lost: its
state is a row of the epoch.
"""

from __future__ import annotations

import argparse
import heapq
import math
from dataclasses import dataclass, field

import numpy as np

from tfrkit._limits import LIMITS
from tfrkit.orders.order import Order, Shuffled, Whole, score_mixing
from tfrkit.orders.plan import BatchPlan
from tfrkit.orders.striped import Striped, Stripes, choose_stripes
from tfrkit.storage.ranges import Range, coalesce, cut_range

MEDIAN_SECONDS, SLOW_SECONDS = 0.030, 0.300  # latency: of half and of 99 % of the requests
SIGMA = math.log(SLOW_SECONDS / MEDIAN_SECONDS) / 2.326
STREAM_NBYTES = 55e6  # per second and request
NIC_NBYTES = 25e9 / 8  # per second and node
PREFIX_REQUESTS = 5_500  # per second
DOLLARS = 0.40e-6  # per request
ROWS = 256  # of a node in a global batch
AHEAD = 16  # batches that are read ahead in exact order
MANIFEST_NBYTES = 219  # per shard
NUM_WINDOWS = 3  # that are simulated
MAX_BATCHES = 400  # of an exact order that are simulated


@dataclass
class Node:
    """One node's connections: requests start in order, as soon as one of its connections is free."""

    store_rate: float  # requests per second that the store gives to this node
    chance: np.random.Generator
    free: list[float] = field(default_factory=lambda: [0.0] * LIMITS.max_requests)
    wire: float = 0.0  # when the network card is free
    next_start: float = 0.0
    num_requests: int = 0
    nbytes: int = 0

    def request(self, now: float, nbytes: int) -> float:
        """Return when a request that is made now has arrived."""
        start = max(now, heapq.heappop(self.free), self.next_start)
        self.next_start = start + 1 / self.store_rate
        latency = MEDIAN_SECONDS * math.exp(SIGMA * self.chance.standard_normal())
        self.wire = max(self.wire, start + latency) + nbytes / NIC_NBYTES
        done = max(start + latency + nbytes / STREAM_NBYTES, self.wire)
        heapq.heappush(self.free, done)
        self.num_requests += 1
        self.nbytes += nbytes
        return done


@dataclass(frozen=True)
class Case:
    """A dataset and the nodes that read it."""

    num_records: int
    record_nbytes: int
    nodes: int
    rows_per_second: float  # that a node trains on
    is_striped: bool
    shard_nbytes: int = 4_000_000_000

    @property
    def num_shards(self) -> int:
        return max(1, -(-self.num_records * self.record_nbytes // self.shard_nbytes))

    def find_requests(self, numbers: np.ndarray) -> list[int]:
        """Return the sizes of the requests for some records, as the reader plans them."""
        per_shard = -(-self.num_records // self.num_shards)
        numbers = np.unique(numbers).astype(np.int64)
        shards = numbers // per_shard
        breaks = np.flatnonzero((np.diff(numbers) != 1) | (np.diff(shards) != 0)) + 1
        firsts, lasts = numbers[np.append(0, breaks)], numbers[np.append(breaks - 1, len(numbers) - 1)]
        gap = LIMITS.gap_nbytes if len(firsts) > LIMITS.first_requests else LIMITS.wide_gap_nbytes
        # Shards are one after the other in one address space, a gap apart that is never joined.
        skip = (firsts // per_shard) * (LIMITS.wide_gap_nbytes + 1)
        ranges = [
            Range(int(first) * self.record_nbytes + int(more), int(last + 1) * self.record_nbytes + int(more))
            for first, last, more in zip(firsts, lasts, skip, strict=True)
        ]
        sizes = []
        for joined, _ in coalesce(ranges, gap, LIMITS.block_nbytes):
            sizes += [part.stop - part.start for part in cut_range(joined)]
        return sizes


def make_order(case: Case) -> tuple[Order, Stripes | None]:
    """Return the order that tfrkit gives, with as many groups as nodes if there are more than it chooses."""
    whole = Whole(case.num_records)
    if not case.is_striped:
        return Shuffled(whole, 0), None
    stripes = choose_stripes(
        case.num_records, case.record_nbytes, block_nbytes=LIMITS.block_nbytes, window_nbytes=LIMITS.stripes_nbytes
    )
    stripes = Stripes(stripes.block, max(stripes.groups, case.nodes))
    return Striped(whole, 0, stripes, batch=ROWS * case.nodes), stripes


def simulate(case: Case) -> dict[str, float]:
    """Read the first windows, or batches of an exact order, as the node in the middle does."""
    order, _ = make_order(case)
    plan = BatchPlan(case.num_records, ROWS * case.nodes, rank=case.nodes // 2, world_size=case.nodes)
    num_prefixes = max(1, case.num_shards // 1000)
    node = Node(PREFIX_REQUESTS * num_prefixes / case.nodes, np.random.default_rng(1))
    now = 0.0
    for _ in range(-(-case.num_shards * MANIFEST_NBYTES // LIMITS.block_nbytes)):
        now = max(now, node.request(0.0, min(LIMITS.block_nbytes, case.num_shards * MANIFEST_NBYTES)))
    opened, (manifest_requests, manifest_nbytes) = now, (node.num_requests, node.nbytes)
    step = ROWS / case.rows_per_second
    ready: dict[object, float] = {}
    consumed: list[float] = []
    stalled, delivered, held = 0.0, 0, 0

    def load(key: object, numbers: np.ndarray, when: float) -> int:
        # Two more requests for the index of each shard that is met: a page, and its header.
        shards = len(np.unique(numbers // np.uint64(-(-case.num_records // case.num_shards))))
        index = max((node.request(when, 16 << 10) for _ in range(min(2 * shards, 2 * len(numbers)))), default=when)
        sizes = case.find_requests(numbers)
        ready[key] = max((node.request(index, nbytes) for nbytes in sizes), default=index)
        return sum(sizes)

    number = 0
    while number < plan.num_batches:
        rows = plan.rows(number)
        at = consumed[-1] + step if consumed else opened
        if isinstance(order, Striped):
            windows = order.windows_of(rows)
            if windows and windows[-1][0] >= NUM_WINDOWS:
                break
            for window in windows:
                if window not in ready:
                    held = max(held, load(window, order.numbers_of(window, 0), at))
                following = order.next_window(window)
                if following is not None and following not in ready:
                    load(following, order.numbers_of(following, 0), at)
            arrived = max((ready[window] for window in windows), default=at)
        else:
            if number == MAX_BATCHES:
                break
            for ahead in range(number, min(number + AHEAD, plan.num_batches)):
                if ahead not in ready:
                    load(ahead, order.at(plan.rows(ahead), 0), at)
            arrived = ready[number]
        if consumed:
            stalled += max(0.0, arrived - at)
        consumed.append(max(at, arrived))
        delivered += len(rows) * case.record_nbytes
        number += 1
    spent = consumed[-1] - consumed[0] + step
    # The window that is read ahead was not delivered yet.
    fetched = node.nbytes - manifest_nbytes
    windows_read = len(ready) if isinstance(order, Striped) else 1
    windows_used = NUM_WINDOWS if isinstance(order, Striped) and windows_read > NUM_WINDOWS else windows_read
    share = windows_used / windows_read if isinstance(order, Striped) else delivered / max(1, fetched)
    requests = (node.num_requests - manifest_requests) * share
    nbytes = fetched * share
    total = case.num_records * case.record_nbytes
    return {
        "start": consumed[0],
        "stalls": stalled / spent,
        "bytes": nbytes / delivered,
        "requests": requests / (delivered / LIMITS.block_nbytes),
        "dollars": requests / delivered * total * DOLLARS,
        "held": 3 * held,
        "lost": consumed[0] - opened,
        "mixing": score_mixing(order, 0, 2_000),
    }


def main() -> None:
    """Print a table of all cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=float, nargs="+", default=[1e8, 1e9, 1e10])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 8, 64, 1024])
    given = parser.parse_args()
    print(
        "| records | size | nodes | order | start-up | stalls | bytes | requests | dollars | memory | lost | mixing |"
    )
    print("| ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for num_records in map(int, given.records):
        for record_nbytes, rate in ((1_000, 100_000.0), (100_000, 8_000.0)):
            for nodes in given.nodes:
                for is_striped in (False, True):
                    case = Case(num_records, record_nbytes, nodes, rate, is_striped)
                    found = simulate(case)
                    print(
                        f"| {num_records:.0e} | {record_nbytes // 1000} KB | {nodes:,} | "
                        f"{'striped' if is_striped else 'exact'} | {found['start']:.1f} s | {found['stalls']:.0%} | "
                        f"{found['bytes']:.2f} | {found['requests']:,.1f} | {found['dollars']:,.2f} | "
                        f"{found['held'] / 1e6:,.0f} MB | {found['lost']:.1f} s | {found['mixing']:.2f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
