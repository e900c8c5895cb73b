"""A real Chromium, and a page that fails its test on any console error, violation of the policy or request elsewhere.

No test sleeps. Each waits for the event `tfr:drawn` that its action causes, then reads once.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# The tests of this folder import `fake_server.py`, which is not in a package.
sys.path.insert(0, str(Path(__file__).parent))
if importlib.util.find_spec("playwright") is None:
    collect_ignore_glob = ["test_*.py"]  # `make view-test` has it

ROOT = Path(__file__).resolve().parents[3]
WEB = ROOT / "src" / "tfrkit" / "view" / "web"
AXE = ROOT / "build" / "view" / "axe.min.js"
SHOTS = ROOT / "build" / "view" / "screenshots"
PATIENCE = (
    int(os.environ.get("VIEW_PATIENCE", "60")) * 1000
)  # ms; a loaded machine is slow, and a wait that is met costs nothing

RECORDER = """
window.drawnEvents = [];
window.addEventListener("error", (event) => { window.brokenBy = event.message; });
window.addEventListener("unhandledrejection", (event) => { window.brokenBy = String(event.reason); });
document.addEventListener("tfr:drawn", (event) => window.drawnEvents.push(event.detail));
document.addEventListener("securitypolicyviolation", (event) =>
    console.error(`violation: ${event.violatedDirective} ${event.blockedURI}`));
"""

# The first fitting event; or the reason why there will be none.
FIND = """([start, wanted]) => window.drawnEvents.slice(start).find((event) =>
    Object.entries(wanted).every(([key, value]) => JSON.stringify(event[key]) === JSON.stringify(value)))
    ?? (window.brokenBy ? { brokenBy: window.brokenBy } : null)
    ?? window.drawnEvents.find((event) => event.what === "broken")"""


def find_chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.fail("Chromium is not here: run `make view-test`, or set CHROMIUM to its path")
    return found


def list_flags() -> list[str]:
    flags = ["--force-device-scale-factor=1", "--disable-lcd-text", "--font-render-hinting=none"]
    return [*flags, "--no-sandbox"] if os.geteuid() == 0 else flags  # Chromium refuses to run as root with it


@pytest.fixture(scope="session")
def chromium_with() -> Iterator[Callable[..., Any]]:
    """Starts Chromium with more flags."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        yield lambda *more: tool.chromium.launch(executable_path=find_chromium(), args=[*list_flags(), *more])


@pytest.fixture(scope="session")
def browser(chromium_with: Callable[..., Any]) -> Any:
    return chromium_with()


class View:
    """One page. `expected` lists parts of console errors that a test causes on purpose."""

    def __init__(self, page: Any, url: str) -> None:
        self.page, self.url = page, url
        self.problems: list[str] = []
        self.expected: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.add_init_script(RECORDER)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        page.on("request", self._asked)

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "blob:http://127.0.0.1:")):
            self.problems.append(f"request off loopback: {request.url}")

    def unexpected(self) -> list[str]:
        return [text for text in self.problems if not any(part in text for part in self.expected)]

    def open(self, query: str = "", what: str = "grid", **match: Any) -> dict[str, Any]:
        separator = "&" if "?" in self.url else "?"
        self.page.goto(self.url + (separator + query if query else ""))
        return self.wait(0, what=what, **match)

    def mark(self) -> int:
        return self.page.evaluate("window.drawnEvents.length")  # type: ignore[no-any-return]

    def wait(self, start: int, **match: Any) -> dict[str, Any]:
        found = self.page.wait_for_function(FIND, arg=[start, match], timeout=PATIENCE).json_value()
        assert found.get("what") == match["what"], found
        return found  # type: ignore[no-any-return]

    def after(self, action: Callable[[], object], what: str, **match: Any) -> dict[str, Any]:
        """Do something and return the first fitting event that it causes."""
        start = self.mark()
        action()
        return self.wait(start, what=what, **match)

    def press(self, key: str, what: str, **match: Any) -> dict[str, Any]:
        return self.after(lambda: self.page.keyboard.press(key), what, **match)

    def go_to(self, number: int) -> dict[str, Any]:
        """The dialog of key `g`."""
        self.press("g", "dialog", name="go")
        self.page.keyboard.type(str(number))
        start = self.mark()
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector(f"#tile-{number}:not(.tile-wait)")
        return self.wait(start, what="grid")

    def state(self) -> dict[str, str]:
        return self.page.evaluate("Object.fromEntries(new URLSearchParams(location.search))")  # type: ignore[no-any-return]

    def texts(self, selector: str) -> list[str]:
        return self.page.locator(selector).all_inner_texts()  # type: ignore[no-any-return]

    def module(self, name: str, expression: str, argument: Any = None) -> Any:
        """The value of `expression`, a function of a module of the page and of `argument`."""
        script = f"async (argument) => ({expression})(await import(`./w/{name}.js`), argument)"
        return self.page.evaluate(script, argument)

    def pixel(self, selector: str, x: float, y: float) -> list[int]:
        """Red, green and blue of a canvas at a fraction of its width and height."""
        script = """([selector, x, y]) => {
            const canvas = document.querySelector(selector);
            const copy = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
            copy.drawImage(canvas, -Math.floor(x * canvas.width), -Math.floor(y * canvas.height));
            return [...copy.getImageData(0, 0, 1, 1).data].slice(0, 3);
        }"""
        return self.page.evaluate(script, [selector, x, y])  # type: ignore[no-any-return]

    def violations(self) -> list[tuple[str, list[str]]]:
        """Rules of accessibility that the page breaks, each with the elements."""
        self.page.evaluate(AXE.read_text() + "; 0")
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        return [(one["id"], [node["html"][:160] for node in one["nodes"][:3]]) for one in found]

    def shot(self, name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(SHOTS / f"{name}.png"))


@pytest.fixture
def open_view(browser: Any) -> Iterator[Callable[..., View]]:
    """Makes pages; what goes wrong on any of them fails the test."""
    made: list[tuple[Any, View]] = []

    def make(url: str, *, width: int = 1280, height: int = 800, **options: Any) -> View:
        context = browser.new_context(viewport={"width": width, "height": height}, locale="en-US", **options)
        view = View(context.new_page(), url)
        made.append((context, view))
        return view

    yield make
    problems = [text for _, view in made for text in view.unexpected()]
    for context, _ in made:
        context.close()
    assert not problems


@pytest.fixture
def fake_view(open_view: Callable[..., View], request: pytest.FixtureRequest) -> Callable[..., View]:
    """Pages on made-up records; `view.server` is the server."""
    from fake_server import FakeServer

    def make(count: int = 1000, **options: Any) -> View:
        server = FakeServer(WEB, count=count)
        request.addfinalizer(server.close)
        view = open_view(server.url, **options)
        view.server = server  # type: ignore[attr-defined]
        return view

    return make


@pytest.fixture(scope="session")
def datasets_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The datasets of `datasets.py`, one folder each, and what is exported from them."""
    from datasets import make_copies, make_damaged, make_mixed, make_people, make_scenes, make_sequences

    folder = tmp_path_factory.mktemp("view")
    make_scenes(folder / "scenes")
    make_mixed(folder / "mixed")
    make_mixed(folder / "changed", changed=5)
    make_damaged(folder / "damaged")
    make_sequences(folder / "sequences")
    make_copies(folder / "copies")
    make_people(folder / "people")
    return folder


@pytest.fixture
def real_view(
    open_view: Callable[..., View], datasets_folder: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> Callable[..., View]:
    """Pages of the real server on one of the datasets; exports go to `view.out`."""
    from tfrkit.view.server import Server
    from tfrkit.view.viewer import Options

    def make(*names: str, **options: Any) -> View:
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        server = Server([[str(datasets_folder / name)] for name in names], Options(out=str(out)))
        request.addfinalizer(server.stop)
        view = open_view(server.address, **options)
        view.out = out  # type: ignore[attr-defined]
        return view

    return make
