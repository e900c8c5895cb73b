"""Make the pictures of the viewer for the READMEs: `make pictures`."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "view" / "browser"))
from conftest import find_chromium, list_flags  # noqa: E402
from datasets import make_scenes  # noqa: E402

from tfrkit.view.server import Server  # noqa: E402

SIZE = {"width": 1200, "height": 720}
VIEWS = {"grid": ("", "#tile-0:not(.tile-wait)"), "record": ("record=2", ".legend-class")}


def main() -> None:
    """Write each view in English and in Chinese."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tool:
        server = Server([[str(make_scenes(Path(folder) / "scenes"))]])
        browser = tool.chromium.launch(executable_path=find_chromium(), args=list_flags())
        for lang in ("en", "zh"):
            for name in VIEWS:
                page = browser.new_page(viewport=SIZE, locale="zh-CN" if lang == "zh" else "en-US")
                save(page, server.address, name, HERE / f"view-{name}-{lang}.webp")
                page.close()
        browser.close()
        server.stop()


def save(page: Any, address: str, name: str, path: Path) -> None:
    query, wanted = VIEWS[name]
    page.goto(f"{address}&{query}")
    page.wait_for_selector(wanted)
    page.wait_for_selector("[data-key='label/2']")  # a class in the panel of filters
    page.wait_for_function("() => !document.querySelector('.tile-wait:not([hidden])')")
    page.wait_for_load_state("networkidle")
    with Image.open(io.BytesIO(page.screenshot())) as shot:
        shot.save(path, quality=80, method=6)
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
