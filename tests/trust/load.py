"""Load: the viewer under clients that give up, many readers of one dataset, memory over many opens, a store that fails.

python tests/trust/load.py [--seconds 600] [--clients 200] [--readers 64] [--opens 100000] [--hours 1] [--only viewer]

Answers and rows are compared, memory is measured at the start and at the end. Prints figures; 1 if something was lost
or grew.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import gc
import gzip
import http.client
import io
import operator
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

import tfrkit as tfr
from tfrkit.errors import TfrkitError
from tfrkit.testing.corruption import flip

NUM_ROWS = 2000


def make_row(number: int) -> dict[str, object]:
    picture = io.BytesIO()
    Image.fromarray(np.full((8, 12, 3), number % 256, np.uint8)).save(picture, "png")
    return {"id": number, "name": f"row {number}", "x": np.full(200, number, np.float32), "image": picture.getvalue()}


def make_dataset(folder: Path) -> Path:
    tfr.build([make_row(number) for number in range(NUM_ROWS)], folder / "d", seed=0, shards=4)
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
        self.messages: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()
        self.cookie = self._sign_in()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        self.messages.extend(self.process.stdout)

    def _sign_in(self) -> str:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        connection.request("GET", "/" + self.address.split("/", 3)[3])
        answer = connection.getresponse()
        answer.read()
        return (answer.getheader("set-cookie") or "").split(";")[0]

    def make_request(self, path: str) -> bytes:
        head = f"GET {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nCookie: {self.cookie}\r\n"
        return f"{head}Sec-Fetch-Site: same-origin\r\nConnection: close\r\n\r\n".encode()

    async def ask(self, path: str, *, nbytes: int = -1) -> bytes:
        """Return an answer, or up to `nbytes` of it."""
        reader, writer = await asyncio.wait_for(asyncio.open_connection(self.host, self.port), 60)
        try:
            writer.write(self.make_request(path))
            return await asyncio.wait_for(reader.read(nbytes), 120)
        finally:
            writer.close()


def split_answer(answer: bytes) -> tuple[str, bytes | None]:
    """The status, and the body: None if a part of it is missing."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status = answer[9:12].decode(errors="replace")
    if found := re.search(rb"content-length: (\d+)", head, re.IGNORECASE):
        return status, body if len(body) == int(found[1]) else None
    return status, body if body.endswith(b"0\r\n\r\n") else None


async def be_a_client(
    viewer: Viewer, expected: dict[str, bytes | None], stop: float, seen: collections.Counter[str], seed: str
) -> None:
    """Ask for pages, and give up in the middle of one request in three."""
    chooser = random.Random(seed)
    while time.monotonic() < stop:
        path = chooser.choice(list(expected))
        nbytes = chooser.choice((1, 100, 3000)) if chooser.random() < 1 / 3 else -1
        try:
            answer = await viewer.ask(path, nbytes=nbytes)
        except (OSError, TimeoutError) as error:
            seen[f"failed: {type(error).__name__}"] += 1
            continue
        if nbytes > 0:
            seen["given up"] += 1
            continue
        status, body = split_answer(answer)
        is_wrong = body is None or (expected[path] is not None and body != expected[path])
        seen[f"wrong: {path}" if is_wrong else f"status {status}"] += 1


async def learn_answers(viewer: Viewer) -> dict[str, bytes | None]:
    """What each address answers to one client; None where two answers differ, as those with times and progress."""
    paths = ["/", "/w/grid.js", "/api/set", "/api/rows", "/api/rows?first=200&count=50", "/nothing-of-the-kind"]
    paths += ["/api/figures", "/api/report", "/api/count", "/api/damage", "/t?first=0&count=40", "/api/hex/7"]
    for number in range(0, NUM_ROWS, 100):
        paths += [f"/api/record/{number}", f"/i/{number}?feature=image", f"/raw/{number}"]
    first, second = [[split_answer(await viewer.ask(path)) for path in paths] for _ in range(2)]
    return {path: one[1] if one == two else None for path, one, two in zip(paths, first, second, strict=True)}


def load_viewer(dataset: Path, seconds: float, clients: int, seed: int) -> bool:
    viewer = Viewer(dataset)
    try:
        expected = asyncio.run(learn_answers(viewer))
        seen: collections.Counter[str] = collections.Counter()

        async def run(length: float, part: str) -> None:
            stop = time.monotonic() + length
            seeds = (f"{seed} {part} {number}" for number in range(clients))
            await asyncio.gather(*(be_a_client(viewer, expected, stop, seen, one) for one in seeds))

        asyncio.run(run(seconds / 10, "start"))  # caches fill, threads start
        before = memory_of(viewer.process.pid)
        asyncio.run(run(seconds * 0.9, "rest"))
        after = memory_of(viewer.process.pid)
        is_alive = viewer.process.poll() is None
        num_compared = sum(body is not None for body in expected.values())
        print(f"viewer: {clients} clients, {seconds:.0f} s, {num_compared} of {len(expected)} addresses compared:")
        print(f"viewer: {dict(sorted(seen.items()))}")
        print(f"viewer: {before:.0f} MB after a tenth, {after:.0f} MB at the end, {'alive' if is_alive else 'DEAD'}")
        wrong = [name for name in seen if name.startswith(("status 5", "failed", "wrong"))]
        is_traced = any("Traceback" in line for line in viewer.messages)
        print("".join(viewer.messages[-50:]) if is_traced else "", end="", flush=True)
        return is_alive and not wrong and not is_traced and after < before * 1.1 + 10
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
    print(f"readers: {readers} processes, {len(bad)} wrong, {time.monotonic() - begun:.1f} s", flush=True)
    for out, err in bad[:3]:
        print(out, err)
    return not bad


# --- memory ----------------------------------------------------------------------------------------------


def is_flat(what: str, times: int, act: Callable[[int], object]) -> bool:
    """Whether `act`, called with 0 and up, leaves no memory, no file and no thread behind."""
    begun, sizes, held = time.monotonic(), [], []
    for number in range(times):
        act(number)
        if number in (times // 10, times - 1):
            gc.collect()
            sizes.append(memory_of(os.getpid()))
            held.append((len(os.listdir("/proc/self/fd")), threading.active_count()))
    print(f"memory: {times:,} {what}: {sizes[0]:.1f} MB after a tenth, {sizes[1]:.1f} MB at the end")
    print(f"memory: {held[1][0]} files, {held[1][1]} threads at the end; {time.monotonic() - begun:.0f} s", flush=True)
    # Threads that were there before may end meanwhile.
    return sizes[1] - sizes[0] < 5 and all(map(operator.le, held[1], held[0]))


def load_memory(dataset: Path, opens: int) -> bool:
    """Open, one batch, close, again and again in one process; then the same with what is damaged."""
    whole = str(dataset)

    def open_sound(number: int) -> None:
        with tfr.open(whole) as ds:
            chosen = ds if number % 4 else ds.shuffle(seed=number)
            assert len(next(iter(chosen.batch(8, threads=1 + number % 2)))["id"]) == 8

    damaged = make_damaged(dataset)

    def open_damaged(number: int) -> None:
        path = damaged[number % len(damaged)]
        try:
            with tfr.open(path) as ds:
                for _ in ds.batch(8, threads=1 + number % 2):
                    pass
        except (TfrkitError, OSError):
            return
        raise AssertionError(f"no error: {path}")

    return is_flat("opens, batches and closes", opens, open_sound) & is_flat(
        "opens that end in an error", opens, open_damaged
    )


def make_damaged(dataset: Path) -> list[str]:
    """Files that cannot be read, each for another reason."""
    frames = b"".join(path.read_bytes() for path in sorted(dataset.glob("*-of-*")))[:4000]
    place = dataset.parent / "damaged"
    place.mkdir()
    files = {
        "flipped.tfrecord": flip(frames, 2000),
        "cut.tfrecord": frames[:3999],
        "length.tfrecord": b"\xff" * 12 + frames,
        "flipped.tfrecord.gz": gzip.compress(flip(frames, 2000)),
        "cut.tfrecord.gz": gzip.compress(frames)[:-40],
        "page.tfrecord": b"<!doctype html>",
    }
    for name, data in files.items():
        (place / name).write_bytes(data)
    return [str(place / name) for name in (*files, "missing.tfrecord")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600, help="of the viewer")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--readers", type=int, default=64)
    parser.add_argument("--opens", type=int, default=100_000)
    parser.add_argument("--hours", type=float, default=1, help="of the store, by its own clock")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", choices=["viewer", "readers", "memory", "store"])
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, 4096), limit))
    held = True
    with tempfile.TemporaryDirectory() as folder:
        dataset = make_dataset(Path(folder))
        if options.only in (None, "readers"):
            held &= load_readers(dataset, options.readers)
        if options.only in (None, "viewer"):
            held &= load_viewer(dataset, options.seconds, options.clients, options.seed)
        if options.only in (None, "memory"):
            held &= load_memory(dataset, options.opens)
        if options.only in (None, "store"):
            from load_store import load_store

            held &= load_store(dataset, options.hours, options.seed)
    print("held" if held else "NOT HELD")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
