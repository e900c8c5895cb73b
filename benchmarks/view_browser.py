"""Measure the viewer's page in Chromium: first tiles, jumps, frames while scrolling, blank tiles, heap.

Times are taken in the page, between the key and the event `tfr:drawn`, so the remote control is not part of them.
"""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from view_data import TINY, Sizes

Row = tuple[Any, ...]
NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_MS = 60_000
NOTCH = 100  # pixels of one step of a wheel
REST_MS = 300

RECORDER = """
window.drawnEvents = [];
window.keyAt = 0;
addEventListener("keydown", () => { window.keyAt = performance.now(); }, true);
document.addEventListener("tfr:drawn", (event) =>
    window.drawnEvents.push({ ...event.detail, at: performance.now(), since: performance.now() - window.keyAt }));
window.watchFrames = () => {
    window.frames_ = [];
    let last = performance.now();
    const look = (now) => {
        window.frames_.push(now - last);
        last = now;
        if (window.isWatching) requestAnimationFrame(look);
    };
    window.isWatching = true;
    requestAnimationFrame((now) => { last = now; requestAnimationFrame(look); });
};
window.endFrames = () => { window.isWatching = false; return window.frames_; };
window.blankTiles = () => {
    const box = document.querySelector(".grid-scroller").getBoundingClientRect();
    return [...document.querySelectorAll(".tile-wait:not([hidden])")].filter((tile) => {
        const { top, bottom } = tile.getBoundingClientRect();
        return bottom > box.top && top < box.bottom;
    }).length;
};
"""
FIND = """([start, wanted]) => window.drawnEvents.slice(start).find((event) =>
    Object.entries(wanted).every(([key, value]) => event[key] === value))"""


def find_absent() -> str | None:
    """Return what is missing for these measurements."""
    if importlib.util.find_spec("playwright") is None:
        return "Playwright is not installed"
    return None if find_chromium() else "Chromium is not installed"


def find_chromium() -> str | None:
    """Return the path of Chromium."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def measure(files: dict[str, Path], sizes: Sizes, serve: Any, *, quick: bool) -> Iterator[Row]:
    """Yield the figures as rows of title, value, unit, bar, is_least, note."""
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=find_chromium(), args=flags)
        yield from measure_starts(browser, files, sizes, serve, rounds=1 if quick else 3)
        with serve(files["tiny"]) as served:
            served.get("api/count")  # ends when all records are counted
            page = open_page(browser, f"{served.address}&{urlencode(TINY)}")
            yield from measure_jumps(page, sizes.tiny, 10 if quick else 40)
        with serve(files["photos"]) as served:
            page = open_page(browser, served.address)
            yield from measure_scrolling(page, notches=60 if quick else 300)
            yield from measure_heap(page, sizes.photos, seconds=10 if quick else 60)
        browser.close()


def open_page(browser: Any, address: str) -> Any:
    """Open a page and wait for its first tiles."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(PATIENCE_MS)
    page.add_init_script(RECORDER)
    page.goto(address)
    wait(page, 0, what="grid")
    return page


def wait(page: Any, start: int, **wanted: Any) -> dict[str, Any]:
    """Return the first fitting event."""
    found: dict[str, Any] = page.wait_for_function(FIND, arg=[start, wanted]).json_value()
    return found


def press(page: Any, key: str, **wanted: Any) -> float:
    """Press a key; return the milliseconds until its event."""
    start = page.evaluate("window.drawnEvents.length")
    page.keyboard.press(key)
    return float(wait(page, start, **wanted)["since"])


def measure_starts(browser: Any, files: dict[str, Path], sizes: Sizes, serve: Any, rounds: int) -> Iterator[Row]:
    """From the start of the command to the first drawn screen; the browser runs already."""
    cases = (("photos", f"{sizes.photos:,} photos with an index", 1.0), ("tiny", f"{sizes.tiny:,} records", 1.3))
    for name, title, bar in (*cases, ("gzip", "gzip without an index", 1.5)):
        seconds = []
        for _ in range(rounds):
            with serve(files[name]) as served:
                page = open_page(browser, served.address)
                seconds.append(time.monotonic() - served.started)
                page.close()
        yield f"command to tiles on screen, {title}", statistics.median(seconds), "s", bar


def measure_jumps(page: Any, num_records: int, rounds: int) -> Iterator[Row]:
    """Keys of the grid and of a record."""
    rng = random.Random(15)
    jumps = []
    for _ in range(rounds):
        press(page, "g", what="dialog")
        page.keyboard.type(str(rng.randrange(num_records)))
        jumps.append(press(page, "Enter", what="grid"))
    press(page, "Enter", what="detail")
    steps = [press(page, "ArrowRight", what="detail") for _ in range(rounds)]
    steps += [press(page, "ArrowLeft", what="detail") for _ in range(rounds)]
    yield f"jump to a random record of {num_records:,} on screen, p95", p95(jumps), "ms", 150
    yield "next and previous record on screen, p95", p95(steps), "ms", 50


def p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1))]


def measure_scrolling(page: Any, notches: int) -> Iterator[Row]:
    """Turn the wheel and look at the frames, then at the tiles 300 ms after the last notch."""
    page.mouse.move(800, 500)
    page.evaluate("window.watchFrames()")
    for _ in range(notches):
        page.mouse.wheel(0, NOTCH)
        page.wait_for_timeout(16)
    frames = page.evaluate("window.endFrames()")
    page.wait_for_timeout(REST_MS)
    blank = page.evaluate("window.blankTiles()")
    late = sum(frame > 25 for frame in frames) / len(frames)
    note = f"{len(frames)} frames, {late:.1%} longer than 25 ms"
    yield "frames per second while the wheel turns, median", 1000 / statistics.median(frames), "/s", 55, True, note
    yield "longest frame", max(frames), "ms", 50
    yield f"blank tiles {REST_MS} ms after the wheel stopped", blank, "", 0


def measure_heap(page: Any, num_records: int, seconds: float) -> Iterator[Row]:
    """Jump and scroll at random; the heap after a collection, half way and at the end."""
    rng = random.Random(16)
    session = page.context.new_cdp_session(page)
    heaps = []
    for _ in range(2):
        end = time.monotonic() + seconds / 2
        while time.monotonic() < end:
            press(page, "g", what="dialog")
            page.keyboard.type(str(rng.randrange(num_records)))
            press(page, "Enter", what="grid")
            for _ in range(5):
                page.mouse.wheel(0, rng.choice([-5, -1, 1, 5]) * NOTCH)
                page.wait_for_timeout(16)
        session.send("HeapProfiler.collectGarbage")
        heaps.append(session.send("Runtime.getHeapUsage")["usedSize"] / 1e6)
    note = f"{heaps[0]:.1f} MB half way"
    yield f"heap of the page after {seconds:.0f} s of random scrolling", heaps[1], "MB", 150, False, note
    yield "growth of the heap in the second half", heaps[1] / heaps[0], "×", 1.2
