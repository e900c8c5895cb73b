"""`ds.view()` in a real JupyterLab: directly, and behind a path prefix through jupyter-server-proxy.

`make view-test LAB=1` installs JupyterLab, 150 MB; without it these tests are skipped.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE
from datasets import make_scenes

KEY = "0123456789"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jupyterlab") is None, reason="JupyterLab is not installed: make view-test LAB=1"
)


@contextmanager
def run_lab(folder: Path, source: str, *options: str) -> Iterator[str]:
    """Run JupyterLab with a notebook of one cell; the address of the notebook."""
    cell = {"cell_type": "code", "id": "one", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "book.ipynb").write_text(json.dumps(book))
    homes = {name: str(folder / name) for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR")}
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--ServerApp.port=0",
        f"--IdentityProvider.token={KEY}",
    ]
    command += [
        "--allow-root",
        f"--ServerApp.root_dir={folder}",
        "--LabApp.news_url=",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        *options,
    ]
    with (folder / "lab.log").open("w") as log:
        lab = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **homes})
    try:
        yield _wait_for_lab(lab, folder) + f"lab/tree/book.ipynb?token={KEY}"
    finally:
        lab.terminate()
        lab.wait(30)


def _wait_for_lab(lab: subprocess.Popen[bytes], folder: Path) -> str:
    """The address of the server, once it answers."""
    for _ in range(PATIENCE // 250):
        time.sleep(0.25)  # it sends no event that could be waited for
        assert lab.poll() is None, (folder / "lab.log").read_text()
        for path in Path(folder, "JUPYTER_RUNTIME_DIR").glob("jpserver-*.json"):
            found = json.loads(path.read_text() or "{}")
            if not found.get("port"):
                continue
            address = f"http://127.0.0.1:{found['port']}{found['base_url']}"
            try:
                urllib.request.urlopen(f"{address}api?token={KEY}", timeout=5).close()
            except OSError:
                continue
            return address
    raise AssertionError((folder / "lab.log").read_text())


@pytest.mark.parametrize("way", ["direct", "proxy"])
def test_frame_in_jupyterlab_shows_tiles_and_a_record(
    tmp_path: Path, chromium_with: Callable[..., Any], way: str
) -> None:
    scenes = make_scenes(tmp_path / "scenes", 12)
    hide = "import sys; sys.modules['jupyter_server_proxy'] = None\n" if way == "direct" else ""
    source = f"{hide}import tfrkit\ntfrkit.open({str(scenes)!r}).view(height=600)"
    # Behind a prefix, under a name that is not one of this machine.
    options = ["--ServerApp.base_url=/some/prefix/", "--ServerApp.allow_remote_access=True"] if way == "proxy" else []
    browser = chromium_with("--host-resolver-rules=MAP hub.example 127.0.0.1")
    with run_lab(tmp_path, source, *options) as address:
        page = browser.new_context(viewport={"width": 1400, "height": 1000}).new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(address.replace("127.0.0.1", "hub.example") if way == "proxy" else address)
        page.locator(".jp-Cell .cm-content").click()
        page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for()
        page.keyboard.press("Shift+Enter")
        frame = page.frame_locator(".jp-OutputArea iframe[src*='/proxy/'], .jp-OutputArea iframe[src^='http://127']")
        frame.locator("#tile-0:not(.tile-wait)").wait_for()
        shown = page.locator(".jp-OutputArea iframe").get_attribute("src")
        assert shown.startswith("/some/prefix/proxy/" if way == "proxy" else "http://127.0.0.1:")
        frame.locator("#tile-3").click()
        frame.get_by_role("heading", name="Record 3").wait_for()
    browser.close()
