"""Measure the viewer: first tiles, tiles per second, jumps, filters, memory, and scrolling in Chromium.

    python benchmarks/view.py                     full data (7 GB, made once), writes benchmarks/RESULTS-view.md
    python benchmarks/view.py --quick             small data, one minute: checks that everything works

Standard output carries one JSON row per measurement, standard error the table. Times depend on what else runs, because
both cores are needed; processor seconds of the server and the load are printed, too. Pages of mapped files are not
counted as memory. What needs a browser is left out without Playwright or Chromium, and the table says so.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import view_browser
from view_data import QUICK, TINY, Sizes, make_files

PROJECT = Path(__file__).resolve().parent.parent
SCREEN = 60  # tiles
SIDE = 192  # pixels
TICKS = os.sysconf("SC_CLK_TCK")
COMMAND = [sys.executable, "-c", "from tfrkit.cli.main import main; main()", "view", "--no-browser"]


@dataclass(frozen=True)
class Figure:
    """One measured number and the bar it is held to."""

    title: str
    value: float
    unit: str
    bar: float | None = None
    is_least: bool = False
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        if self.bar is None:
            return None
        return self.value >= self.bar if self.is_least else self.value <= self.bar


class Served:
    """`tfr view` as a process of its own, and one connection to it."""

    def __init__(self, *arguments: str | Path) -> None:
        self.started = time.monotonic()
        self._process = subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        place = urlsplit(self.address)
        assert place.hostname is not None, "the server did not start"
        self._place = place.hostname, place.port
        self._connection = http.client.HTTPConnection(*self._place)
        self._connection.request("GET", f"/?{place.query}")
        answer = self._connection.getresponse()
        answer.read()
        self._cookie = answer.headers["Set-Cookie"].partition(";")[0]

    def get(self, path: str, **query: object) -> bytes:
        return self.open(path, **query).read()

    def open(self, path: str, **query: object) -> http.client.HTTPResponse:
        """Send a request; the answer is read by the caller."""
        self._connection.request("GET", f"/{path}?{urlencode(query)}", headers={"Cookie": self._cookie})
        answer = self._connection.getresponse()
        assert answer.status == 200, answer.read()
        return answer

    def connect_again(self) -> Served:
        """Return another connection to the same server."""
        other = object.__new__(Served)
        other.__dict__ = {**self.__dict__, "_connection": http.client.HTTPConnection(*self._place)}
        return other

    def tiles(self, first: int, count: int = SCREEN) -> int:
        """Request tiles; return their bytes."""
        data = self.get("t", first=first, count=count, size=SIDE, masks=1)
        assert len(data) > 100 * count
        return len(data)

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def own_megabytes(self) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("RssAnon:")[2].split()[0]) * 1024 / 1e6

    @contextmanager
    def watch_memory(self) -> Iterator[Callable[[], float]]:
        """Sample the memory; the function returns the largest."""
        highest, stop = [self.own_megabytes], threading.Event()

        def look() -> None:
            while not stop.wait(0.02):
                highest[0] = max(highest[0], self.own_megabytes)

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield lambda: highest[0]
        finally:
            stop.set()
            thread.join()

    def close(self) -> None:
        self._connection.close()
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def serve(*arguments: str | Path) -> Iterator[Served]:
    served = Served(*arguments)
    try:
        yield served
    finally:
        served.close()


def timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1))]


# ---- the server alone ------------------------------------------------------------------------------------------------


def measure_first_tiles(path: Path, title: str, bar: float, rounds: int) -> Iterator[Figure]:
    """From the start of the command to a screen of tiles, requested as the page does."""
    seconds, processor = [], []
    for _ in range(rounds):
        with serve(path) as served:
            served.get("")
            count = json.loads(served.get("api/set"))["sets"][0]["count"]
            served.tiles(0, min(SCREEN, count))
            seconds.append(time.monotonic() - served.started)
            processor.append(served.cpu_seconds)
    note = f"{statistics.median(processor):.2f} s of processor time"
    yield Figure(f"command to {SCREEN} tiles, {title}", statistics.median(seconds), "s", bar, note=note)


def measure_tiles(served: Served, num_photos: int, rounds: int) -> Iterator[Figure]:
    """Tiles that are in the server's cache, and tiles that are not."""
    served.tiles(0)
    before = served.cpu_seconds
    warm = [timed(lambda: served.tiles(0)) * 1000 for _ in range(rounds * 10)]
    processor = (served.cpu_seconds - before) / len(warm)
    note = f"median {statistics.median(warm):.0f} ms, {processor * 1000:.0f} ms of processor time"
    yield Figure(f"{SCREEN} tiles of 500x375 JPEGs, warm, p95", p95(warm), "ms", 60, note=note)
    starts = range(SCREEN, num_photos - SCREEN, SCREEN)
    connections = [served, served.connect_again()]
    before = served.cpu_seconds
    with ThreadPoolExecutor(len(connections)) as pool:

        def fetch(number: int) -> None:
            for start in starts[number :: len(connections)]:
                connections[number].tiles(start)

        seconds = timed(lambda: list(pool.map(fetch, range(len(connections)))))
    count = len(starts) * SCREEN
    processor = (served.cpu_seconds - before) / count
    yield Figure("tiles cold", count / seconds, "/s", 1500, True, f"{processor * 1000:.2f} ms of processor time each")
    yield Figure("tiles cold per processor second", 1 / processor, "/s")


def measure_bare(path: Path, count: int) -> Iterator[Figure]:
    """The same pixels by simplejpeg alone: reduced decode, resize, encode; one thread."""
    import simplejpeg
    from PIL import Image

    import tfrkit as tfr

    with tfr.open(str(path)) as ds:
        photos = [row["image/encoded"] for row, _ in zip(ds, range(count), strict=False)]

    def make(photo: bytes) -> bytes:
        pixels = simplejpeg.decode_jpeg(photo, min_width=SIDE, min_height=SIDE * 3 // 4, min_factor=2)
        small = Image.fromarray(pixels).resize((SIDE, SIDE * 3 // 4), Image.Resampling.BOX)
        return simplejpeg.encode_jpeg(memoryview(small.tobytes()).cast("B", (*small.size[::-1], 3)), 80)

    before = time.thread_time()
    for photo in photos:
        make(photo)
    yield Figure("decode, resize and encode alone per processor second", count / (time.thread_time() - before), "/s")


def measure_jumps(served: Served, num_records: int, rounds: int) -> Iterator[Figure]:
    """A random record with its picture, and its neighbours."""
    rng = random.Random(14)
    places = [rng.randrange(1, num_records - 1) for _ in range(rounds * 10)]

    def show(record: int) -> None:
        described = json.loads(served.get(f"api/record/{record}", **TINY))
        assert described["record"] == record
        served.get(f"i/{record}", feature=described["picture"]["feature"], **TINY)

    served.get("api/count")  # ends when all records are counted
    show(0)
    jumps = [timed(lambda place=place: show(place)) * 1000 for place in places]
    tiles = [
        timed(lambda place=place: served.get("t", first=place, count=1, size=SIDE, **TINY)) * 1000 for place in places
    ]
    steps = [timed(lambda place=place: show(place + 1)) * 1000 for place in places]
    yield Figure(
        f"a random record of {num_records:,}, p95", p95(jumps), "ms", 150, note=f"its tile {p95(tiles):.0f} ms"
    )
    yield Figure("the next record, p95", p95(steps), "ms", 50)


def measure_filter(served: Served, rounds: int, num_records: int) -> Iterator[Figure]:
    """A condition on a label: the event of the sample and the exact one. The figures of the page come first."""

    def ask(path: str, last: str, **query: object) -> dict[str, float]:
        started, found = time.perf_counter(), {}
        answer = served.open(path, **query)
        for line in answer:
            if line.startswith(b"event: "):
                name = line[7:].strip().decode()
                found.setdefault(name, time.perf_counter() - started)
                assert name != "fail", answer.read()
        assert last in found
        return found

    first = ask("api/figures", "exact", feature="label")
    answers = [
        ask("api/select", "exact", where=f"label = {number % 10} and label >= {-number}") for number in range(rounds)
    ]
    note = f"figures of the label before: sample {first['sample']:.2f} s, exact {first['exact']:.2f} s"
    title = f"filter on a label, {num_records:,} records"
    yield Figure(f"{title}, exact", statistics.median(one["exact"] for one in answers), "s", 0.5, note=note)
    yield Figure(f"{title}, from a sample", statistics.median(one["sample"] for one in answers), "s", 0.15)


def measure_server(files: dict[str, Path], sizes: Sizes, rounds: int) -> Iterator[Figure]:
    """Everything that needs no browser."""
    yield from measure_first_tiles(files["photos"], f"{sizes.photos:,} photos with an index", 1.0, rounds)
    yield from measure_first_tiles(files["tiny"], f"{sizes.tiny:,} records with an index", 1.3, rounds)
    megabytes = files["gzip"].stat().st_size / 1e6
    yield from measure_first_tiles(files["gzip"], f"{megabytes:,.0f} MB of gzip without an index", 1.5, rounds)
    with serve(files["photos"]) as served, served.watch_memory() as highest:
        yield from measure_tiles(served, sizes.photos, rounds)
        yield Figure("server memory, photos", highest(), "MB", 220)
    yield from measure_bare(files["photos"], 300)
    with serve(files["tiny"]) as served, served.watch_memory() as highest:
        yield from measure_jumps(served, sizes.tiny, rounds)
        yield Figure(f"server memory, {sizes.tiny:,} records", highest(), "MB", 220)
    with serve(files["labelled"]) as served, served.watch_memory() as highest:
        yield from measure_filter(served, rounds, sizes.labelled)
        yield Figure("server memory, filters", highest(), "MB", 220)


# ---- the report ------------------------------------------------------------------------------------------------------


def to_markdown(figures: list[Figure], notes: list[str]) -> str:
    """Return the table."""
    verdicts = {True: "met", False: "**not met**", None: ""}
    lines = ["| viewer | | bar | met | |", "| --- | ---: | --- | --- | --- |"]
    for one in figures:
        bar = "" if one.bar is None else f"{'≥' if one.is_least else '≤'} {one.bar:,g} {one.unit}"
        digits = 2 if one.unit == "s" else 0
        cells = [one.title, f"{one.value:,.{digits}f} {one.unit}", bar, verdicts[one.is_met], one.note]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *notes])


def measure(root: Path, *, quick: bool, only: str = "") -> tuple[list[Figure], list[str]]:
    """Make the data and measure; return the figures and notes on them."""
    sizes = QUICK if quick else Sizes()
    files = make_files(root / "view", sizes)
    rounds = 2 if quick else 5
    figures, load = [], os.getloadavg()[0]
    parts: dict[str, Callable[[], Iterator[Any]]] = {"server": lambda: measure_server(files, sizes, rounds)}
    absent = view_browser.find_absent()
    if absent is None:
        parts["browser"] = lambda: view_browser.measure(files, sizes, serve, quick=quick)
    for name, part in parts.items():
        for figure in part() if only in name else ():
            one = figure if isinstance(figure, Figure) else Figure(*figure)
            figures.append(one)
            print(json.dumps({**asdict(one), "is_met": one.is_met}), flush=True)
    notes = [f"Load of the machine: {load:.1f} before, {os.getloadavg()[0]:.1f} at the end, {os.cpu_count()} cores."]
    return figures, notes if absent is None else [*notes, f"Not measured in a browser: {absent}."]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small data")
    parser.add_argument("--only", default="", choices=("", "server", "browser"))
    parser.add_argument("--cache", type=Path, default=PROJECT / ".bench")
    options = parser.parse_args()
    root = options.cache / ("quick" if options.quick else "full")
    table = to_markdown(*measure(root, quick=options.quick, only=options.only))
    print(table, file=sys.stderr)
    if not options.quick and not options.only:
        head = f"# Results of the viewer\n\nMade by `make bench ARGS='--only view'` on {date.today()}.\n\n"
        (PROJECT / "benchmarks" / "RESULTS-view.md").write_text(head + table + "\n")


if __name__ == "__main__":
    main()
