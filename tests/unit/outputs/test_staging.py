"""Outputs that appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrkit.errors import StorageError
from tfrkit.outputs.staging import StagedFile, StagedFolder


def stage(path: Path, *, force: bool = False, sources: tuple[str, ...] = ()) -> StagedFolder:
    return StagedFolder(str(path), sources=sources, force=force, nbytes=0)


def list_all(path: Path) -> list[str]:
    return sorted(str(found.relative_to(path)) for found in path.rglob("*"))


def test_folder_appears_on_commit_only(tmp_path: Path) -> None:
    with stage(tmp_path / "out") as folder:
        folder.write("a/b.txt", b"x")
        assert not (tmp_path / "out").exists()
        folder.commit()
    assert list_all(tmp_path) == ["out", "out/a", "out/a/b.txt"]
    assert (folder.files, folder.nbytes) == (1, 1)


def test_discarded_folder_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="stop"), stage(tmp_path / "out") as folder:
        folder.write("a", b"x")
        raise RuntimeError("stop")
    assert list_all(tmp_path) == []


def test_nonempty_folder_needs_force_and_keeps_its_files(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_bytes(b"")
    with pytest.raises(StorageError, match=r"exists already - at .*\n  replace it: force=True"):
        stage(tmp_path / "out")
    with stage(tmp_path / "out", force=True) as folder:
        folder.write("new", b"")
        assert list_all(tmp_path / "out") == ["old"]
        folder.commit()
    assert list_all(tmp_path) == ["out", "out/new", "out/old"]


def test_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with stage(tmp_path / "out") as folder:
        folder.write("new", b"")
        folder.commit()
    assert list_all(tmp_path) == ["out", "out/new"]


def test_folder_of_the_sources_is_never_replaced(tmp_path: Path) -> None:
    source = tmp_path / "data" / "x.tfrecord"
    source.parent.mkdir()
    source.write_bytes(b"")
    with pytest.raises(StorageError, match="holds the files to read"):
        stage(tmp_path / "data", force=True, sources=(str(source),))


def test_folder_you_are_in_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    for output in (tmp_path / "a", Path(".")):
        with pytest.raises(StorageError, match="the folder you are in"):
            stage(output, force=True)


def test_file_in_the_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"")
    with pytest.raises(StorageError, match="expected a folder, got a file"):
        stage(tmp_path / "out", force=True)


def test_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    with stage(tmp_path / "out") as folder:
        folder.write("a", b"x")
        folder.commit()
    assert (tmp_path / "out").is_symlink()
    assert list_all(tmp_path / "real") == ["a"]


def test_second_file_of_one_name_is_refused(tmp_path: Path) -> None:
    with stage(tmp_path / "out") as folder:
        folder.write("a", b"x")
        with pytest.raises(StorageError, match="cannot write, file exists"):
            folder.write("a", b"y")


def test_file_appears_on_commit_only_and_is_replaced_with_force_only(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for round_number in range(2):
        with StagedFile(str(path), sources=(), force=round_number == 1, nbytes=0) as staged:
            staged.file.write(bytes([round_number]))
            staged.commit()
        assert path.read_bytes() == bytes([round_number])
    with pytest.raises(StorageError, match="exists already"):
        StagedFile(str(path), sources=(), force=False, nbytes=0)
    with StagedFile(str(path), sources=(), force=True, nbytes=0) as staged:
        staged.file.write(b"half")
    assert path.read_bytes() == b"\1"
    assert list_all(tmp_path) == ["x"]


def test_source_is_never_the_output(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(StorageError, match="one of the files to read"):
        StagedFile(str(tmp_path / "x"), sources=[str(tmp_path / "x")], force=True, nbytes=0)


def test_full_disk_is_reported_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="too little space"):
        StagedFile(str(tmp_path / "x"), sources=(), force=False, nbytes=1 << 60)
    with pytest.raises(StorageError, match="too little space"):
        StagedFolder(str(tmp_path / "x"), sources=(), force=False, nbytes=1 << 60)
    assert list_all(tmp_path) == []


def test_forced_folder_replaces_files_of_the_same_name_and_keeps_the_others(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "a").mkdir(parents=True)
    (out / "thesis.txt").write_text("mine")
    (out / "a" / "1.png").write_text("old")
    (out / "a" / "2.png").write_text("other")
    with StagedFolder(str(out), sources=[], force=True, nbytes=0) as folder:
        folder.write("a/1.png", b"new")
        folder.write("b/3.png", b"third")
        folder.commit()
    files = {str(path.relative_to(out)): path.read_text() for path in out.rglob("*") if path.is_file()}
    assert files == {"thesis.txt": "mine", "a/1.png": "new", "a/2.png": "other", "b/3.png": "third"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_forced_folder_does_not_write_through_a_link_that_leads_out(tmp_path: Path) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / "a").symlink_to(elsewhere)
    with StagedFolder(str(out), sources=[], force=True, nbytes=0) as folder:
        folder.write("a/1.png", b"new")
        with pytest.raises(StorageError, match="a link leads out of the output folder"):
            folder.commit()
    assert list(elsewhere.iterdir()) == []
