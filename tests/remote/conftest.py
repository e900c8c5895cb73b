"""The servers of this folder, started once per run when a test first needs them."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

# The tests of this folder import `servers.py`, which is not in a package.
sys.path.insert(0, str(Path(__file__).parent))
if importlib.util.find_spec("obstore") is None or importlib.util.find_spec("moto") is None:
    collect_ignore_glob = ["test_*.py"]  # `make remote-test` has them

from servers import FaultServer, Started, make_container, start_anywhere, start_azurite, start_moto, start_nginx

BUCKET = "bucket"
_numbers = itertools.count()


@pytest.fixture(scope="session")
def _fault_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultServer]:
    with start_anywhere(partial(FaultServer, tmp_path_factory.mktemp("fault"))) as server:
        yield server


@pytest.fixture
def fault_server(_fault_server: FaultServer) -> FaultServer:
    """An empty fault server without faults."""
    _fault_server.reset()
    return _fault_server


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """A moto with one empty bucket, shared by all tests: use keys of your own."""
    with start_moto(tmp_path_factory.mktemp("moto")) as server:
        server.request("PUT", f"/{BUCKET}")
        yield server


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """An Azurite with one empty container, shared by all tests: use keys of your own."""
    with start_azurite(tmp_path_factory.mktemp("azurite")) as server:
        make_container(server, BUCKET)
        yield server


@pytest.fixture(scope="session")
def nginx_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that nginx serves; `bucket` is a folder in it, so that addresses are those of the other servers."""
    root = tmp_path_factory.mktemp("www")
    (root / BUCKET).mkdir()
    return root


@pytest.fixture(scope="session")
def nginx(tmp_path_factory: pytest.TempPathFactory, nginx_root: Path) -> Iterator[Started]:
    with start_nginx(tmp_path_factory.mktemp("nginx"), nginx_root) as server:
        yield server


@pytest.fixture(scope="session", autouse=True)
def _keys() -> None:
    if importlib.util.find_spec("obstore") is not None:
        from places import set_keys

        set_keys()


@pytest.fixture
def make_place(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """Returns a new, empty folder on a server, by the name of the place."""
    from clients import make_azure, make_gcs, make_s3
    from places import Place
    from servers import AZURITE_ACCOUNT

    def make(name: str) -> Place:
        scheme, _, kind = name.partition("-")
        fixture = {"fault": "fault_server"}.get(kind, kind)
        server = request.getfixturevalue(fixture)
        folder = f"f{next(_numbers)}"
        options: dict[str, Any] = {"endpoint": server.url}
        if scheme == "http":
            address = f"{server.url}/{BUCKET}/{folder}"
            disk = request.getfixturevalue("nginx_root") / BUCKET / folder if kind == "nginx" else None
            return Place(name, address, {}, make_s3(server), f"{folder}/", disk)
        if scheme == "gs":
            return Place(name, f"gs://{BUCKET}/{folder}", options, make_gcs(server), f"{folder}/")
        if scheme == "az":
            options = {"endpoint": f"{server.url}/{AZURITE_ACCOUNT}"}
            return Place(name, f"az://{BUCKET}/{folder}", options, make_azure(server), f"{folder}/")
        return Place(name, f"s3://{BUCKET}/{folder}", options, make_s3(server), f"{folder}/")

    return make
