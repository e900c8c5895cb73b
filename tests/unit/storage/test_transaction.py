from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tfrkit._limits import LIMITS
from tfrkit.container.shards import find_shards
from tfrkit.errors import StorageError, UnfinishedChangeError
from tfrkit.storage import transaction
from tfrkit.storage.transaction import PENDING, Replacement, require_no_change, restore

OLD = {"a": b"old a", "b": b"old b", "gone": b"old gone", "_index/a": b"old index", "same": b"same"}
NEW = {"a": b"new a", "b": b"new b", "c": b"new c", "_index/a": b"new index", "same": b"same", "moved": b"old gone"}


def fill(folder: Path) -> Path:
    for name, content in OLD.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def read_all(folder: Path) -> dict[str, bytes]:
    """Every file, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def change(folder: Path) -> None:
    with Replacement(str(folder)) as made:
        for name, content in NEW.items():
            if name not in ("same", "moved"):
                Path(made.path(name)).write_bytes(content)
        made.link("gone", "moved")
        made.remove("gone")
        for name in ("a", "b", "c", "moved"):
            made.put(name, at_once=True)
        made.put("_index/a")
        made.commit()


def test_files_change_places_and_nothing_is_left(tmp_path: Path) -> None:
    os.chmod(fill(tmp_path) / "a", 0o640)
    change(tmp_path)
    assert read_all(tmp_path) == NEW
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    assert not restore(str(tmp_path))


def test_nothing_is_left_of_a_change_that_was_not_committed(tmp_path: Path) -> None:
    fill(tmp_path)
    with Replacement(str(tmp_path)) as made:
        Path(made.path("a")).write_bytes(b"new")
        made.put("a")
    assert read_all(tmp_path) == OLD


def run_and_kill(work: Callable[[], None], step: int) -> bool:
    """Run work in another process and kill it before the given file operation; whether that was reached."""
    child = os.fork()
    if child == 0:
        left = step
        originals = {name: getattr(os, name) for name in ("rename", "replace", "link", "unlink", "mkdir")}

        def wrap(name: str) -> Callable[..., object]:
            def call(*args: object, **options: object) -> object:
                nonlocal left
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
                return originals[name](*args, **options)

            return call

        for name in originals:
            setattr(os, name, wrap(name))
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def test_killed_at_any_step_leaves_the_old_files_or_the_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "sweep_share", 1e9)
    seen = set()
    for step in range(200):
        folder = fill(tmp_path / str(step))
        was_killed = run_and_kill(lambda folder=folder: change(folder), step)
        is_pending = (folder / PENDING).exists()
        if is_pending:
            with pytest.raises(UnfinishedChangeError, match="was interrupted"):
                require_no_change(str(folder))
            # The process that rolls back may be killed, too.
            for second in range(0, 200, 3):
                if not run_and_kill(lambda folder=folder: restore(str(folder)), second):
                    break
            restore(str(folder))
        # The next writer removes leftovers.
        with Replacement(str(folder)):
            pass
        found = read_all(folder)
        assert found in (OLD, NEW), step
        assert not is_pending or found == OLD
        seen.add((is_pending, found == NEW))
        if not was_killed:
            break
    assert seen == {(False, False), (True, False), (False, True)}


def test_step_that_fails_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path)
    real, calls = transaction.move_file, []

    def fail_once(source: str, target: str) -> None:
        calls.append(target)
        if len(calls) == 4:
            raise OSError(errno.EIO, "Input/output error")
        real(source, target)

    monkeypatch.setattr(transaction, "move_file", fail_once)
    with pytest.raises(StorageError, match="cannot put the new files in place, input/output error"):
        change(tmp_path)
    assert read_all(tmp_path) == OLD


@pytest.mark.parametrize("at", [1, 2, 3])
def test_interrupt_after_any_step_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """The first sync follows the rename that begins the change."""
    fill(tmp_path)
    real, calls = transaction.sync_folder, []

    def interrupt_once(folder: str) -> None:
        calls.append(folder)
        if len(calls) == at:
            raise KeyboardInterrupt
        real(folder)

    monkeypatch.setattr(transaction, "sync_folder", interrupt_once)
    with pytest.raises(KeyboardInterrupt):
        change(tmp_path)
    assert read_all(tmp_path) == OLD
    assert not (tmp_path / PENDING).exists()


def test_old_files_that_cannot_be_put_back_are_left_to_restore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path)
    real, calls = transaction.move_file, []

    def fail_from_the_fourth(source: str, target: str) -> None:
        calls.append(target)
        if len(calls) >= 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(transaction, "move_file", fail_from_the_fourth)
        with pytest.raises(
            UnfinishedChangeError, match=rf"put the old files back, no space left.*\n.*tfr edit {tmp_path} --restore"
        ):
            change(tmp_path)
    with pytest.raises(UnfinishedChangeError, match="was interrupted"):
        require_no_change(str(tmp_path))
    assert restore(str(tmp_path))
    assert read_all(tmp_path) == OLD


def test_disk_without_hard_links_is_changed_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    fill(tmp_path)
    monkeypatch.setattr(os, "link", refuse)
    change(tmp_path)
    assert read_all(tmp_path) == NEW


def test_two_changes_at_once_are_refused(tmp_path: Path) -> None:
    fill(tmp_path)
    with (
        Replacement(str(tmp_path)),
        pytest.raises(StorageError, match=r"another process is changing this folder - at .*\n  wait until it is done"),
    ):
        Replacement(str(tmp_path))


def test_reader_is_refused_while_files_change_places(tmp_path: Path) -> None:
    (tmp_path / "x.tfrecord").write_bytes(b"")
    with Replacement(str(tmp_path)):
        assert find_shards(tmp_path) == [str(tmp_path / "x.tfrecord")]  # nothing has moved yet
        (tmp_path / PENDING).mkdir()
        with pytest.raises(UnfinishedChangeError, match="the folder is being changed"):
            find_shards(tmp_path)
    for address in (tmp_path, tmp_path / "x.tfrecord", f"{tmp_path}/y*.tfrecord"):
        with pytest.raises(
            UnfinishedChangeError, match=rf"was interrupted.*\n  put the old files back: tfr edit {tmp_path} --"
        ):
            find_shards(address)


def test_change_without_a_journal_is_left_to_the_user(tmp_path: Path) -> None:
    (tmp_path / PENDING).mkdir()
    with pytest.raises(StorageError, match=r"expected journal.json of an interrupted change, got none"):
        restore(str(tmp_path))


@pytest.mark.parametrize(
    "steps",
    [
        [{"path": "{outside}/precious", "was_there": True}],
        [{"path": "../outside/precious", "was_there": True}],
        [{"path": "../outside/precious", "was_there": False}],
        [{"path": "link/precious", "was_there": True}],
        [{"path": "link/precious", "was_there": False}],
        [{"path": "..", "was_there": True}],
        [{"path": "", "was_there": True}],
        [{"path": "a\0b", "was_there": True}],
        [{"path": "a\ud800", "was_there": True}],
        [{"path": "a"}],
        [{"path": 1, "was_there": True}],
        ["a"],
        {"path": "a"},
        None,
    ],
)
def test_forged_journal_touches_nothing(tmp_path: Path, steps: object) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "d"
    for place in (outside, folder / PENDING / "old"):
        place.mkdir(parents=True)
    (outside / "precious").write_bytes(b"precious")
    (folder / "link").symlink_to(outside)
    (folder / PENDING / "old" / "0").write_bytes(b"forged")
    if isinstance(steps, list) and isinstance(steps[0], dict) and isinstance(steps[0]["path"], str):
        steps[0]["path"] = steps[0]["path"].replace("{outside}", str(outside))
    (folder / PENDING / "journal.json").write_text(json.dumps({"steps": steps}))
    if isinstance(steps, list) and isinstance(steps[0], dict) and steps[0].get("was_there") is False:
        (folder / PENDING / "old" / "0").unlink()
    for work in (lambda: restore(str(folder)), lambda: Replacement(str(folder))):
        with pytest.raises(StorageError, match=r"expected journal.json of an interrupted change, got another one"):
            work()
    assert read_all(outside) == {"precious": b"precious"}
