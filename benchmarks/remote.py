"""Remote reading against a bare client: the same bytes over the same connections.

    make remote-test                                       # once: installs the servers
    .venv-remote/bin/python benchmarks/remote.py           # 2 GB, about two minutes
    .venv-remote/bin/python benchmarks/remote.py --nbytes 200000000 --out remote.md

Needs tfrkit[remote], nginx and the fault server of tests/remote. Results are compared before they are timed. The bare
client is obstore: one loop over ranges of 8 MiB on threads, each with If-Match, that looks at nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "remote"))

import numpy as np
import obstore
from clients import make_http, make_s3
from places import set_keys
from servers import FaultServer, start_nginx

import tfrkit as tfr
from tfrkit import tools
from tfrkit._limits import LIMITS

BLOCK = 8 << 20
RECORD = 100_000
Row = tuple[str, str, str, str]


def write_shards(folder: Path, nbytes: int, num_shards: int = 8) -> None:
    """Shards of records of 100 KB, with indexes and a manifest."""
    data = np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8).tobytes()
    plain = folder.with_name("plain")
    plain.mkdir()
    for shard in range(num_shards):
        with tfr.Writer(plain / f"x.tfrecord-{shard:05d}-of-{num_shards:05d}") as writer:
            for number in range(nbytes // num_shards // RECORD):
                at = (shard * 7919 + number * 104729) % ((1 << 20) - RECORD)
                writer.write({"id": shard * 1_000_000 + number, "data": data[at : at + RECORD]})
    tools.reshard(plain, folder, shards=num_shards)


def read_bare(store: Any, sizes: dict[str, int], threads: int) -> int:
    """Read all objects by ranges; return the number of bytes."""
    etags = {name: obstore.head(store, name)["e_tag"] for name in sizes}
    ranges = [(name, start) for name, size in sizes.items() for start in range(0, size, BLOCK)]

    def read(where: tuple[str, int]) -> int:
        name, start = where
        stop = min(sizes[name], start + BLOCK)
        return len(obstore.get(store, name, options={"range": (start, stop), "if_match": etags[name]}).bytes())

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(read, ranges))


def read_bare_records(store: Any, sizes: dict[str, int], count: int, threads: int) -> None:
    """Read ranges of the size of a record, spread over the objects."""
    names = [*sizes]

    def read(number: int) -> int:
        name = names[number % len(names)]
        start = number * 104_729_977 % (sizes[name] - RECORD)
        return len(obstore.get(store, name, options={"range": (start, start + RECORD)}).bytes())

    with ThreadPoolExecutor(threads) as pool:
        sum(pool.map(read, range(count)))


def cost(call: Callable[[], Any]) -> float:
    """Processor time of a call, best of three: on a busy machine it says more than the clock."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return min(taken)


def time_best(runs: int, *calls: Callable[[], Any]) -> list[float]:
    """Best of several runs of each call, in turns, so that a busy moment does not hit one of them alone."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(runs):
        for call, taken in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return [min(taken) for taken in times]


def sequential(scratch: Path, folder: Path, runs: int) -> list[Row]:
    shards = sorted(folder.glob("x.tfrecord*")) or sorted(folder.glob("*tfrecord*"))
    sizes = {path.name: path.stat().st_size for path in shards}
    total, rows = sum(sizes.values()), []
    with start_nginx(scratch, folder.parent) as server:
        address = f"{server.url}/{folder.name}"
        store = make_http(server, folder.name)
        local, remote = tools.verify(folder).to_json(), tools.verify(address).to_json()
        assert (local["records"], local["findings"]) == (remote["records"], remote["findings"])
        assert read_bare(store, sizes, 8) == total
        best = [min(time_best(1, lambda n=n: read_bare(store, sizes, n))) for n in (2, 4, 8, 16)]  # type: ignore[misc]
        threads = (2, 4, 8, 16)[best.index(min(best))]
        bare, ours, here = time_best(
            runs,
            lambda: read_bare(store, sizes, threads),
            lambda: tools.verify(address),
            lambda: tools.verify(folder),
        )
        share = bare / ours
        what = f"read and verify {total / 1e9:.1f} GB from nginx"
        rows.append(
            (what, f"{total / ours / 1e6:,.0f} MB/s", f"{share:.0%} of a bare loop ({threads} threads)", "≥ 90 %")
        )
        used = [cost(lambda: read_bare(store, sizes, threads)), cost(lambda: tools.verify(address))]
        rows.append(
            ("its processor time", f"{used[1] / total * 1e9:.2f} ms/MB", f"{used[0] / used[1]:.0%} of a bare loop", "")
        )
        rows.append(("the same from disk", f"{total / here / 1e6:,.0f} MB/s", "", ""))
    return rows


def slow_connections(scratch: Path, folder: Path) -> list[Row]:
    """50 ms and 75 MB/s per connection: what the connections allow is in flight x block / (latency + block / rate)."""
    latency, rate, rows = 0.05, 75e6, []
    shards = sorted(folder.glob("*tfrecord*"))
    with FaultServer(scratch) as server:
        server.mount("bucket/x", folder)
        tools.use_storage(endpoint=server.url)
        store = make_s3(server)
        sizes = {f"x/{path.name}": path.stat().st_size for path in shards}
        total = sum(sizes.values())
        server.set_faults(latency=latency, bandwidth=rate)
        in_flight = LIMITS.stream_blocks
        bare, ours = time_best(2, lambda: read_bare(store, sizes, in_flight), lambda: tools.verify("s3://bucket/x"))
        allowed = in_flight * BLOCK / (latency + BLOCK / rate)
        what = f"the same {total / 1e9:.1f} GB, 50 ms and 75 MB/s per connection, {in_flight} in flight"
        how = f"{total / ours / allowed:.0%} of {allowed / 1e6:,.0f} MB/s allowed, {bare / ours:.0%} of a bare loop"
        rows.append((what, f"{total / ours / 1e6:,.0f} MB/s", how, "≥ 90 %"))
        tools.use_storage()
    return rows


def random_records(scratch: Path, folder: Path, latency: float = 0.03) -> list[Row]:
    rows: list[Row] = []
    here = tfr.open(folder)
    count = min(1000, len(here))
    numbers = np.random.default_rng(3).permutation(len(here))[:count]
    with FaultServer(scratch) as server:
        server.mount("bucket/x", folder)
        tools.use_storage(endpoint=server.url)
        ds = tfr.open("s3://bucket/x")
        assert [row["id"] for row in ds[numbers[:20]]] == [row["id"] for row in here[numbers[:20]]]
        ds[[*range(0, len(here), len(here) // 16)]]  # indexes of all shards
        server.set_faults(latency=latency)
        server.clear_log()
        [taken] = time_best(1, lambda: ds[numbers])
        requests = len(server.read_log())
        sizes = {f"x/{path.name}": path.stat().st_size for path in sorted(folder.glob("*tfrecord*"))}
        store = make_s3(server)
        [bare] = time_best(1, lambda: read_bare_records(store, sizes, count, LIMITS.max_requests))
        ideal = count / LIMITS.max_requests * latency
        how = f"{taken / ideal:.2f} x (records / {LIMITS.max_requests} in flight) x {latency * 1e3:.0f} ms"
        how += f", a bare loop {bare / ideal:.2f} x"
        rows.append(
            (f"{count} random records of 100 KB, {latency * 1e3:.0f} ms", f"{taken * 1e3:,.0f} ms", how, "≤ 1.3 x")
        )
        rows.append(("their requests", f"{requests / count:.3f} per record", "", "≤ 1.05"))
        server.clear_log()
        ds[[*range(100, 300)]]
        rows.append(("requests for 200 adjacent records", str(len(server.read_log())), "", "≤ 4"))
        tools.use_storage()
    return rows


def striped_epoch(scratch: Path, nbytes: int, record: int = 4000) -> list[Row]:
    """One shuffled epoch of small records, by the log of the server."""
    data = np.random.default_rng(2).integers(0, 256, 1 << 20, np.uint8).tobytes()
    source, folder = scratch / "small.tfrecord", scratch / "small"
    with tfr.Writer(source) as writer:
        for number in range(nbytes // record):
            at = number * 104_729 % ((1 << 20) - record)
            writer.write({"id": number, "data": data[at : at + record]})
    tools.reshard(source, folder, shard_size="256MB")
    source.unlink()
    with FaultServer(scratch) as server:
        server.mount("bucket/small", folder)
        tools.use_storage(endpoint=server.url)
        ds = tfr.open("s3://bucket/small")
        _ = ds.schema
        total = sum(path.stat().st_size for path in folder.glob("*tfrecord*"))
        server.clear_log()
        seen = np.concatenate([batch["id"] for batch in ds.shuffle(seed=1).batch(256)])
        log = server.read_log()
        tools.use_storage()
    assert np.array_equal(np.sort(seen), np.arange(len(ds)))
    read, ideal = sum(entry["nbytes"] for entry in log) / total, total / BLOCK
    return [
        (f"shuffled epoch of {total / 1e9:.1f} GB of {record} bytes", f"{read:.3f} x the bytes", "", "≤ 1.02"),
        ("its requests", f"{len(log):,}", f"{len(log) / ideal:.2f} x bytes / 8 MiB", "≤ 1.1"),
    ]


def open_many(scratch: Path, num_shards: int = 10_000) -> list[Row]:
    folder = scratch / "many"
    source = scratch / "many.tfrecord"
    with tfr.Writer(source) as writer:
        for number in range(num_shards):
            writer.write({"id": number})
    tools.reshard(source, folder, shards=num_shards)
    code = (
        "import json, time, tfrkit as tfr; from tfrkit import tools; tools.use_storage(endpoint={url!r});"
        "import obstore.store; start = time.perf_counter(); ds = tfr.open('s3://bucket/many'); n = len(ds);"
        "print(json.dumps([n, time.perf_counter() - start]))"
    )
    import subprocess

    with FaultServer(scratch) as server:
        server.mount("bucket/many", folder)
        found = []
        for _ in range(3):
            server.clear_log()
            done = subprocess.run([sys.executable, "-c", code.format(url=server.url)], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            found.append(json.loads(done.stdout))
        requests = len(server.read_log())
        assert {row[0] for row in found} == {num_shards}
        taken = min(row[1] for row in found)
    what = f"open and len of {num_shards:,} shards with a manifest"
    return [(what, f"{taken * 1e3:,.0f} ms", f"{requests} requests", "≤ 3 requests, < 1 s")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nbytes", type=int, default=2_000_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--shards", type=int, default=10_000, help="of the dataset that is opened")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    set_keys()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        folder = scratch / "www" / "x"
        folder.parent.mkdir()
        os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
        write_shards(folder, options.nbytes)
        rows = sequential(scratch, folder, options.runs)
        rows += slow_connections(scratch, folder)
        rows += random_records(scratch, folder)
        rows += striped_epoch(scratch, options.nbytes)
        rows += open_many(scratch, options.shards)
    lines = ["| work | result | | bar |", "| --- | --- | --- | --- |", *(f"| {' | '.join(row)} |" for row in rows)]
    text = "\n".join([*lines, "", f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, loopback."])
    print(text)
    if options.out is not None:
        options.out.write_text(f"{text}\n")


if __name__ == "__main__":
    main()
