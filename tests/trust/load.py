"""Load: the viewer under many clients that give up, many readers of one dataset, memory over many opens.

python tests/trust/load.py [--seconds 30] [--clients 200] [--readers 64] [--opens 100000] [--only viewer]

Answers are compared, memory is measured at the start and at the end. Prints figures; 1 if something was lost or grew.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import gc
import http.client
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import tfrkit as tfr

NUM_ROWS = 2000


def make_dataset(folder: Path) -> Path:
    rows = [{"id": number, "name": f"row {number}", "x": np.full(20, number, np.float32)} for number in range(NUM_ROWS)]
    tfr.build(rows, folder / "d", seed=0, shards=4)
    return folder / "d"


def memory_of(process: int) -> float:
    """Resident megabytes."""
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


# --- viewer ---------------------------------------------------------------------------------------------


class Viewer:
    """`tfr view` in a process of its own, and the address that it prints."""

    def __init__(self, dataset: Path) -> None:
        command = [sys.executable, "-m", "tfrkit", "view", str(dataset), "--no-browser", "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found = re.search(r"http://([\w.]+):(\d+)/\S*", line)
            if found:
                self.host, self.port, self.address = found[1], int(found[2]), found[0]
                break
        else:
            raise SystemExit("the viewer did not start")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        self.cookie = self._sign_in()

    def _sign_in(self) -> str:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        connection.request("GET", "/" + self.address.split("/", 3)[3])
        answer = connection.getresponse()
        answer.read()
        return (answer.getheader("set-cookie") or "").split(";")[0]


async def be_a_client(viewer: Viewer, paths: list[str], stop: float, seen: collections.Counter[str], seed: int) -> None:
    """Ask for pages, and give up in the middle of one request in three."""
    chooser = random.Random(seed)
    while time.monotonic() < stop:
        path = chooser.choice(paths)
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection(viewer.host, viewer.port), 30)
        except (OSError, TimeoutError):
            seen["refused"] += 1
            continue
        request = f"GET {path} HTTP/1.1\r\nHost: {viewer.host}:{viewer.port}\r\nCookie: {viewer.cookie}\r\n"
        writer.write(f"{request}Sec-Fetch-Site: same-origin\r\nConnection: close\r\n\r\n".encode())
        try:
            if chooser.random() < 1 / 3:
                await asyncio.wait_for(reader.read(chooser.choice((1, 100, 3000))), 60)
                seen["cancelled"] += 1
            else:
                answer = await asyncio.wait_for(reader.read(), 60)
                seen[f"status {answer[9:12].decode(errors='replace')}"] += 1
        except (OSError, TimeoutError):
            seen["failed"] += 1
        finally:
            writer.close()


def load_viewer(dataset: Path, seconds: float, clients: int) -> bool:
    viewer = Viewer(dataset)
    paths = ["/", "/api/set", "/api/rows", "/api/rows?first=200&count=50", "/api/figures", "/nothing-of-the-kind"]
    paths += [f"/api/record/{number}" for number in range(0, NUM_ROWS, 100)]
    try:
        seen: collections.Counter[str] = collections.Counter()

        async def run(length: float) -> None:
            stop = time.monotonic() + length
            await asyncio.gather(*(be_a_client(viewer, paths, stop, seen, number) for number in range(clients)))

        asyncio.run(run(min(5.0, seconds / 3)))  # caches fill, threads start
        before = memory_of(viewer.process.pid)
        seen.clear()
        asyncio.run(run(seconds))
        after = memory_of(viewer.process.pid)
        is_alive = viewer.process.poll() is None
        print(f"viewer: {clients} clients, {seconds:.0f} s: {dict(sorted(seen.items()))}")
        print(f"viewer: {before:.0f} MB at the start, {after:.0f} MB at the end, {'alive' if is_alive else 'DEAD'}")
        wrong = [name for name in seen if name.startswith("status 5") or name == "failed"]
        return is_alive and not wrong and after < before * 1.2 + 30
    finally:
        viewer.process.terminate()
        viewer.process.wait(30)


# --- readers ---------------------------------------------------------------------------------------------

READ = """
import sys, tfrkit as tfr
total = 0
with tfr.open(sys.argv[1]) as ds:
    for epoch in range(2):
        for batch in ds.shuffle(seed=epoch).batch(64):
            total += int(batch["id"].sum())
print(total)
"""


def load_readers(dataset: Path, readers: int) -> bool:
    """Processes that read one dataset at the same time, with no index at the start: each must see every row."""
    begun = time.monotonic()
    env = {**os.environ, "XDG_CACHE_HOME": str(dataset.parent / "cache"), "OPENBLAS_NUM_THREADS": "1"}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", READ, str(dataset)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
        )
        for _ in range(readers)
    ]
    expected = str(2 * sum(range(NUM_ROWS))).encode()
    wrong = [one.communicate() for one in running]
    bad = [(out, err[-300:]) for out, err in wrong if out.strip() != expected]
    print(f"readers: {readers} processes, {len(bad)} wrong, {time.monotonic() - begun:.1f} s")
    for out, err in bad[:3]:
        print(out, err)
    return not bad


# --- memory ----------------------------------------------------------------------------------------------


def load_memory(dataset: Path, opens: int) -> bool:
    """Open, one batch, close: again and again in one process."""
    sizes = []
    for number in range(opens):
        with tfr.open(str(dataset)) as ds:
            batch = next(iter(ds.batch(8, threads=1 + number % 2)))
            assert len(batch["id"]) == 8
        if number in (opens // 10, opens - 1):
            gc.collect()
            sizes.append(memory_of(os.getpid()))
    grown = sizes[-1] - sizes[0]
    files = len(os.listdir("/proc/self/fd"))
    print(
        f"memory: {opens:,} opens, batches and closes: {sizes[0]:.1f} MB after a tenth, {sizes[-1]:.1f} MB at the end"
    )
    print(f"memory: {files} open files, {threading.active_count()} threads at the end")
    return grown < max(5.0, 0.0001 * opens)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--readers", type=int, default=64)
    parser.add_argument("--opens", type=int, default=100_000)
    parser.add_argument("--only", choices=["viewer", "readers", "memory"])
    options = parser.parse_args()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, 4096), limit))
    held = True
    with tempfile.TemporaryDirectory() as folder:
        dataset = make_dataset(Path(folder))
        if options.only in (None, "viewer"):
            held &= load_viewer(dataset, options.seconds, options.clients)
        if options.only in (None, "readers"):
            held &= load_readers(dataset, options.readers)
        if options.only in (None, "memory"):
            held &= load_memory(dataset, options.opens)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
