"""The address of the viewer for each kind of notebook."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tfrkit.view import notebooks
from tfrkit.view.notebooks import find_notebook


@pytest.fixture(autouse=True)
def no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUPYTERHUB_SERVICE_PREFIX", "JPY_PARENT_PID"):
        monkeypatch.delenv(name, raising=False)


def test_notebook_of_this_machine_reaches_the_port() -> None:
    found = find_notebook()
    assert found.find_address(8123, "key/?a=1") == "http://127.0.0.1:8123/key/?a=1"
    assert not found.has_proxy
    assert "vscode-webview:" in found.ancestors


def test_hub_reaches_the_port_through_its_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/me/")
    found = find_notebook()
    assert found.find_address(8123, "key/") == "/user/me/proxy/8123/key/"
    assert found.has_proxy
    assert found.ancestors[0] == "'self'"


@pytest.mark.parametrize("base", ["/", "/lab/prefix/"])
def test_server_with_a_proxy_is_found_by_its_process(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = ModuleType("jupyter_core.paths")
    paths.jupyter_runtime_dir = lambda: str(tmp_path)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jupyter_core", ModuleType("jupyter_core"))
    monkeypatch.setitem(sys.modules, "jupyter_core.paths", paths)
    monkeypatch.setenv("JPY_PARENT_PID", "77")
    monkeypatch.setattr(notebooks, "find_spec", lambda name: None)
    assert find_notebook().base is None
    monkeypatch.setattr(notebooks, "find_spec", lambda name: name)
    assert find_notebook().base is None  # another server's process
    (tmp_path / "jpserver-77.json").write_text(json.dumps({"base_url": base}))
    assert find_notebook().find_address(1, "") == f"{base}proxy/1/"
    (tmp_path / "jpserver-77.json").write_text("{")
    assert find_notebook().base is None


def test_colab_frames_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.colab", ModuleType("google.colab"))
    found = find_notebook()
    assert found.is_colab
    assert found.has_proxy
    assert "https://colab.research.google.com" in found.ancestors
