"""Where a notebook runs, and the address at which its browser reaches a server of this machine.

A notebook on this machine reaches it directly. One on a hub, or on a server that is used from elsewhere, has to go
through that server: `jupyter-server-proxy` answers `BASE/proxy/PORT/` with what the port answers.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

_LOCAL = ("http://localhost:*", "http://127.0.0.1:*", "vscode-webview:")
_COLAB = ("https://colab.research.google.com", "https://*.googleusercontent.com")


@dataclass(frozen=True)
class Notebook:
    """The notebook that this process belongs to.

    `ancestors` are the origins that may frame the page. With `base`, the path of a server with a proxy, the page is
    framed by its own origin, whose name is not known here.
    """

    ancestors: tuple[str, ...] = _LOCAL
    base: str | None = None
    is_colab: bool = False

    @property
    def has_proxy(self) -> bool:
        """Whether requests come through another server, with its name as their host."""
        return self.base is not None or self.is_colab

    def find_address(self, port: int, path: str) -> str:
        """Return the address of a page of a port, for a frame of the notebook."""
        return f"http://127.0.0.1:{port}/{path}" if self.base is None else f"{self.base}proxy/{port}/{path}"


def find_notebook() -> Notebook:
    """Find the notebook that this process belongs to; one of this machine if nothing is known."""
    if "google.colab" in sys.modules:
        return Notebook(_COLAB, is_colab=True)
    base = os.environ.get("JUPYTERHUB_SERVICE_PREFIX") or _find_base()
    if base is None:
        return Notebook()
    return Notebook(("'self'", *_LOCAL), f"/{base.strip('/')}/" if base.strip("/") else "/")


def _find_base() -> str | None:
    """Return the path of the Jupyter server that started this process, if it has the proxy."""
    process_id = os.environ.get("JPY_PARENT_PID", "")
    if not process_id.isdecimal() or find_spec("jupyter_server_proxy") is None:
        return None
    try:
        from jupyter_core.paths import jupyter_runtime_dir

        text = Path(jupyter_runtime_dir(), f"jpserver-{process_id}.json").read_text(encoding="utf-8")
        base = json.loads(text).get("base_url")
    except (ImportError, OSError, ValueError, AttributeError):
        return None
    return base if isinstance(base, str) else None
