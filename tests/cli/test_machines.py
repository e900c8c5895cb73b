"""What tfrkit prints on machines that lack something: a compiler, a network, a newer Python, space, a home to write to.

A full disk is in tests/unit/storage/test_local.py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tfrkit
from tfrkit.errors import StorageError

from .conftest import COMMAND, Tfr

ROOT = Path(__file__).parents[2]
CMAKE = Path(sys.executable).parent / "cmake"


@pytest.mark.parametrize(
    ("path", "here"),
    [
        (r"C:\data\x.tfrecord", "/mnt/c/data/x.tfrecord"),
        ("d:/data/x.tfrecord", "/mnt/d/data/x.tfrecord"),
        (r"data\x.tfrecord", "data/x.tfrecord"),
    ],
)
def test_windows_path_is_shown_as_linux_has_it(tfr: Tfr, path: str, here: str) -> None:
    hint = f"\n  this looks like a path of Windows; on Linux, in WSL: {here}\n"
    assert hint in tfr("info", path, code=3).err
    assert hint in tfr("build", "class-folders", path, "-o", "out", code=3).err


@pytest.mark.parametrize("path", [r"D:\out", "d:/out", r"D:\out.tfrecord"])
def test_output_on_a_drive_of_windows_is_refused(tfr: Tfr, tmp_path: Path, path: str) -> None:
    data = tmp_path / "x.tfrecord"
    with tfrkit.Writer(data) as writer:
        writer.write_columns({"a": range(9)})
    (tmp_path / "x.csv").write_text("a\n1\n", encoding="utf-8")
    hint = f"this looks like a path of Windows; on Linux, in WSL: /mnt/d/{path[3:]}"
    shown = f"cannot write, there are no drives here - at {path}\n  {hint}\n"
    for verb in ("convert", "shuffle", "split --split a=.5,b=.5", "repair", "export csv"):
        assert shown in tfr(*verb.split(), data, "-o", path, code=3).err, verb
    assert shown in tfr("build", "table", tmp_path / "x.csv", "-o", path, code=3).err
    with pytest.raises(StorageError, match="there are no drives here"):
        tfrkit.Writer(path)


def test_read_only_home_and_folder_are_enough_to_read(tmp_path: Path) -> None:
    home, data = tmp_path / "home", tmp_path / "data"
    home.mkdir()
    data.mkdir()
    with tfrkit.Writer(data / "x.tfrecord.gz") as writer:
        writer.write_columns({"a": range(9)})
    for folder in (home, data):
        folder.chmod(0o555)
    for verb in ("info", "head", "verify", "count"):
        assert run_as_ordinary_user([verb, "x.tfrecord.gz"], home=home, folder=data).returncode == 0
    ran = run_as_ordinary_user(["convert", "x.tfrecord.gz", "-o", "y.tfrecord"], home=home, folder=data)
    assert ran.returncode == 3
    assert ran.stderr == "tfr: cannot write, permission denied - at y.tfrecord\n  write to a folder of your own\n"


def run_as_ordinary_user(arguments: list[str], *, home: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run tfr without the right to write everywhere, which root has."""
    before = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is needed, or another user than root")
        rights = "-dac_override,-dac_read_search"
        before = ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}"]
    environment = {name: value for name, value in os.environ.items() if name != "XDG_CACHE_HOME"}
    return subprocess.run(
        [*before, *COMMAND, *arguments],
        cwd=folder,
        env={**environment, "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(not CMAKE.exists(), reason="needs cmake from PyPI")
def test_building_without_a_compiler_names_one_and_the_wheel(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CXX", "CMAKE"))}
    ran = subprocess.run(
        [CMAKE, "-S", ROOT, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={CMAKE.parent / 'ninja'}"],
        env={**environment, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    said = re.sub(r"\s+", " ", ran.stderr)
    assert "needs a C++20 compiler, and there is none" in said
    assert "apt install g++" in said
    assert "pip install --only-binary tfrkit tfrkit" in said


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What `make` reads before it has made anything."""
    for name in ("Makefile", "tests/constraints.txt", "tests/trust/targets.mk", "release/release.mk"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("share", "src", "native/core", "native/os", "native/engine", "native/bindings"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("target", [".venv/.tools", ".venv-pages/.tools", ".venv-site/.tools"])
def test_make_with_an_old_python_names_the_version_that_is_needed(checkout: Path, target: str) -> None:
    old = checkout / "python3.10"
    old.write_text(
        f'#!{sys.executable}\nimport sys\nsys.version_info = (3, 10, 13, "final", 0)\n'
        'assert sys.argv[1] == "-c", "nothing may be made"\nexec(sys.argv[2])\n',
        encoding="utf-8",
    )
    old.chmod(0o755)
    ran = make(checkout, target, f"PYTHON={old}")
    assert "Python 3.11 or newer is needed, this is 3.10: make PYTHON=python3.11\n" in ran.stderr


def test_make_site_without_network_names_where_the_pages_are(checkout: Path) -> None:
    ran = make(checkout, "site", f"PYTHON={sys.executable}", PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert "Without a network read the same pages in docs/index.md, tfr --help and man tfr." in ran.stderr


def make(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("make") is None:
        pytest.skip("needs make")
    ran = subprocess.run(
        ["make", "-C", folder, *arguments],
        env={**{name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    return ran
