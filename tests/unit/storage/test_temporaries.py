from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tfrkit import _native
from tfrkit.errors import StorageError
from tfrkit.storage import temporaries
from tfrkit.storage.temporaries import (
    MadeFolders,
    TemporaryFile,
    TemporaryFolder,
    make_scratch,
    move_file,
    sweep_folder,
)


@pytest.fixture(autouse=True)
def _sweep_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporaries, "_next_sweeps", _Forgetful())


class _Forgetful(dict[str, float]):
    def __setitem__(self, key: str, value: float) -> None:
        pass


def leave(folder: Path, kind: str) -> None:
    """A temporary of a process that was killed."""
    program = f"""
import os, signal
from tfrkit.storage.temporaries import {kind}
made = {kind}({str(folder / "out")!r})
if {kind == "TemporaryFolder"}:
    os.makedirs(os.path.join(made.path, "a", "b"))
    open(os.path.join(made.path, "a", "b", "c"), "wb").close()
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == -signal.SIGKILL


@pytest.mark.parametrize("kind", ["TemporaryFile", "TemporaryFolder"])
def test_temporary_of_a_killed_process_is_removed(tmp_path: Path, kind: str) -> None:
    leave(tmp_path, kind)
    assert len(os.listdir(tmp_path)) == (1 if kind == "TemporaryFile" else 2)
    sweep_folder(str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_folder_that_a_worker_made_again_is_removed(tmp_path: Path) -> None:
    leave(tmp_path, "TemporaryFolder")
    [folder] = tmp_path.glob("*.tmp")
    sweep_folder(str(tmp_path))
    (folder / "a").mkdir(parents=True)  # by a worker that had not noticed yet
    sweep_folder(str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_temporary_in_use_stays_also_for_another_process(tmp_path: Path) -> None:
    file, folder = TemporaryFile(str(tmp_path / "out")), TemporaryFolder(str(tmp_path / "out"))
    before = sorted(os.listdir(tmp_path))
    sweep_folder(str(tmp_path))
    program = f"from tfrkit.storage.temporaries import sweep_folder; sweep_folder({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert sorted(os.listdir(tmp_path)) == before
    file.remove()
    folder.remove()
    assert os.listdir(tmp_path) == []


def test_temporary_of_a_fork_stays_while_its_parent_writes(tmp_path: Path) -> None:
    file = TemporaryFile(str(tmp_path / "out"))
    child = os.fork()
    if child == 0:
        file.remove()  # closes only its own copy
        os._exit(0)
    os.waitpid(child, 0)
    sweep_folder(str(tmp_path))
    file.place(str(tmp_path / "out"))
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize(
    "name", [".out.1-0123456789abcdef.tmp", ".out.tfrkit.tmp", "out.1-0123456789abcdef.tfrkit.tmp"]
)
def test_files_with_other_names_are_not_ours(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    sweep_folder(str(tmp_path))
    assert os.listdir(tmp_path) == [name]


def test_link_with_our_name_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"x")
    (tmp_path / ".out.1-0123456789abcdef.tfrkit.tmp").symlink_to(tmp_path / "precious")
    sweep_folder(str(tmp_path))
    assert (tmp_path / "precious").read_bytes() == b"x"


def test_network_disk_is_swept_only_by_the_machine_that_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "is_local_disk", lambda descriptor: False)
    leave(tmp_path, "TemporaryFile")
    (tmp_path / ".out.1-0123456789abcdef.tfrkit.tmp").write_bytes(b"")
    sweep_folder(str(tmp_path))
    assert os.listdir(tmp_path) == [".out.1-0123456789abcdef.tfrkit.tmp"]
    monkeypatch.undo()
    temporaries._next_sweeps.clear()
    sweep_folder(str(tmp_path))  # on a local disk the lock is enough
    assert os.listdir(tmp_path) == []


def test_temporary_without_a_lock_is_never_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    file, folder = TemporaryFile(str(tmp_path / "out")), TemporaryFolder(str(tmp_path / "out"))
    assert not [name for name in os.listdir(tmp_path) if "tfrkit" in name]
    monkeypatch.undo()
    sweep_folder(str(tmp_path))
    assert os.path.exists(file.path)
    assert os.path.exists(folder.path)
    file.remove()
    folder.place(str(tmp_path / "out"))
    assert os.listdir(tmp_path) == ["out"]


def test_sweeper_between_creation_and_lock_costs_a_name_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = fcntl.flock
    removed = []

    def remove_first(descriptor: int, operation: int) -> None:
        if not removed:
            [name] = os.listdir(tmp_path)
            os.unlink(tmp_path / name)
            removed.append(name)
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    file = TemporaryFile(str(tmp_path / "out"))
    assert [file.path] == [str(tmp_path / name) for name in os.listdir(tmp_path)]
    assert os.path.basename(file.path) not in removed
    file.remove()


@pytest.mark.parametrize("base", ["x" * 255, "ä" * 127])
def test_longest_names_have_temporaries(tmp_path: Path, base: str) -> None:
    file = TemporaryFile(str(tmp_path / base))
    file.place(str(tmp_path / base))
    assert os.listdir(tmp_path) == [base]


def test_folder_is_removed_with_no_descriptors_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = TemporaryFolder(str(tmp_path / "out"))
    os.makedirs(os.path.join(folder.path, "a", "b"))
    Path(folder.path, "a", "b", "c").write_bytes(b"")

    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        folder.remove()
    assert os.listdir(tmp_path) == []


def test_interrupt_while_a_folder_is_removed_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = TemporaryFolder(str(tmp_path / "out"))
    unlink, calls = os.unlink, []

    def interrupt_once(path: str, *args: object, **options: object) -> None:
        calls.append(path)
        if len(calls) == 1:
            raise KeyboardInterrupt
        unlink(path, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "unlink", interrupt_once)
    with pytest.raises(KeyboardInterrupt):
        folder.remove()
    assert os.listdir(tmp_path) == []


def test_file_moves_to_another_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"new" * (1 << 20))
    (tmp_path / "b").write_bytes(b"old")
    replace = os.replace

    def refuse(source: str, target: str) -> None:
        if source == str(tmp_path / "a"):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    move_file(str(tmp_path / "a"), str(tmp_path / "b"))
    assert os.listdir(tmp_path) == ["b"]
    assert (tmp_path / "b").read_bytes() == b"new" * (1 << 20)


def test_scratch_that_cannot_be_made_names_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    with pytest.raises(
        Exception, match=r"cannot write, no such file or directory - at /nowhere\n  name another folder: T"
    ):
        make_scratch("x")


@pytest.mark.parametrize("kind", [TemporaryFile, TemporaryFolder])
def test_folders_made_for_a_temporary_go_with_it(tmp_path: Path, kind: type[TemporaryFile]) -> None:
    temporary = kind(str(tmp_path / "a" / "b" / "out"), make_folders=True)
    temporary.remove()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", [TemporaryFile, TemporaryFolder])
def test_folders_made_for_a_temporary_stay_when_it_is_placed(tmp_path: Path, kind: type[TemporaryFile]) -> None:
    target = tmp_path / "a" / "b" / "out"
    temporary = kind(str(target), make_folders=True)
    temporary.place(str(target))
    temporary.remove()
    assert os.listdir(target.parent) == ["out"]


def test_file_in_the_way_of_a_folder_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match=r"cannot make a folder, it is a file - at .*file"):
        TemporaryFile(str(tmp_path / "file" / "a" / "out"), make_folders=True)
    assert os.listdir(tmp_path) == ["file"]


def test_folder_that_another_process_makes_at_the_same_moment_is_used_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def make_before(path: str) -> None:
        mkdir(path)
        mkdir(path)  # as if the first one were of another process

    monkeypatch.setattr(os, "mkdir", make_before)
    made = MadeFolders()
    made.make(str(tmp_path / "a" / "b"))
    made.remove()
    assert (tmp_path / "a" / "b").is_dir()


def test_file_that_appears_in_place_of_a_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir = os.mkdir

    def write_before(path: str) -> None:
        Path(path).touch()
        mkdir(path)

    monkeypatch.setattr(os, "mkdir", write_before)
    with pytest.raises(StorageError, match="cannot make a folder, it is a file"):
        MadeFolders().make(str(tmp_path / "a"))
