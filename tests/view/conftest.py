"""Datasets and clients for the tests of the viewer's server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrkit

# The tests of this folder import `talk.py`, which is not in a package.
sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("talk")
from talk import TOKEN, Connect, make_row  # noqa: E402


@pytest.fixture
def pictures(tmp_path: Path) -> str:
    """Twelve records with an image, a mask, a box, a label, a score and a text."""
    path = str(tmp_path / "pictures.tfrecord")
    with tfrkit.Writer(path) as writer:
        for number in range(12):
            writer.write(make_row(number))
    return path


@pytest.fixture
def connect() -> Iterator[Connect]:
    """A function that opens paths and returns a client that has the cookie."""
    pytest.importorskip("starlette.testclient")
    from starlette.testclient import TestClient

    from tfrkit.view.app import make_app
    from tfrkit.view.guard import Guard, Rules
    from tfrkit.view.viewer import Options, Viewer

    viewers = []

    def open_client(*paths: str, other: str | None = None, **options: Any) -> Any:
        sets = [list(paths)] + ([[other]] if other is not None else [])
        viewer = Viewer(sets, Options(**options))
        viewers.append(viewer)
        app = Guard(make_app(viewer), Rules(TOKEN, 80))
        client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=True)
        client.cookies.set("tfrkit-80", TOKEN)
        client.headers["sec-fetch-site"] = "same-origin"
        client.viewer = viewer
        return client

    yield open_client
    for viewer in viewers:
        viewer.close()
