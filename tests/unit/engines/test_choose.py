from __future__ import annotations

import subprocess
import sys

import pytest

import tfrkit as tfr
from tfrkit.engines.choose import open_engine
from tfrkit.engines.local import LocalEngine


def test_local_engine_has_the_requested_number_of_jobs():
    with open_engine("local", jobs=3) as engine:
        assert engine == LocalEngine(3)
        assert engine.is_local


def test_unknown_engine_is_refused(tmp_path):
    with pytest.raises(ValueError, match="engine expected one of local, ray, dask, got 'spark'"):
        tfr.build([{"x": 1}], tmp_path / "out", engine="spark")


def test_address_without_a_cluster_is_refused(tmp_path):
    with pytest.raises(ValueError, match="engine_address is only for engine 'ray' or 'dask', got 'auto' with 'local'"):
        tfr.build([{"x": 1}], tmp_path / "out", engine_address="auto")


@pytest.mark.parametrize(("engine", "package"), [("ray", "ray"), ("dask", "distributed")])
def test_missing_extra_is_one_line_with_the_install_command(tmp_path, monkeypatch, engine, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ImportError, match=rf"{package} is not installed\n  install it: pip install 'tfrkit\[{engine}\]'"
    ):
        tfr.build([{"x": 1}], tmp_path / "out", engine=engine)
    assert not (tmp_path / "out").exists()


def test_command_names_the_missing_extra(tmp_path):
    code = "import sys; sys.modules['ray'] = None; sys.argv[0] = 'tfr'; from tfrkit.cli.main import main; main()"
    (tmp_path / "a.csv").write_text("x\n1\n")
    arguments = ["build", "table", str(tmp_path / "a.csv"), "-o", str(tmp_path / "out"), "--engine", "ray"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert done.stderr == "tfr: ray is not installed\n  install it: pip install 'tfrkit[ray]'\n"
