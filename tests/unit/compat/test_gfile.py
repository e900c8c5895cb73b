"""Files by TensorFlow's names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrkit.compat import tensorflow as tf


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "b.txt").write_bytes("é one\r\ntwo\n".encode())
    (tmp_path / "a.txt").write_bytes(b"")
    return tmp_path


def test_names_of_both_versions_find_files(folder: Path) -> None:
    assert tf.gfile.Exists(str(folder))
    assert not tf.io.gfile.exists(folder / "nope")
    assert tf.gfile.IsDirectory(str(folder))
    assert tf.gfile.ListDirectory(str(folder)) == tf.io.gfile.listdir(folder) == ["a.txt", "b.txt"]
    assert tf.gfile.Glob([f"{folder}/b*", f"{folder}/a*"]) == [f"{folder}/a.txt", f"{folder}/b.txt"]
    assert [names for _, _, names in tf.gfile.Walk(folder)] != []
    assert tf.io.gfile.join("a", "b") == "a/b"


def test_files_are_read_and_written_as_text_or_bytes(folder: Path) -> None:
    with tf.gfile.GFile(str(folder / "c"), "w") as file:
        file.write("é\n")
        file.flush()
        assert file.size() == 3
    with tf.gfile.Open(str(folder / "c"), "ab") as file:
        file.write(b"\xff")
    assert tf.gfile.FastGFile(str(folder / "c"), "rb").read() == b"\xc3\xa9\n\xff"
    assert tf.io.gfile.GFile(folder / "b.txt").read() == "é one\r\ntwo\n"
    assert tf.io.gfile.GFile(folder / "b.txt").readlines() == ["é one\n", "two\n"]
    with tf.io.gfile.GFile(folder / "b.txt", "rb") as file:
        file.seek(3)
        assert (file.read(3), file.tell(), file.readline()) == (b"one", 6, b"\n")


def test_folders_and_files_are_made_moved_and_removed(folder: Path) -> None:
    tf.gfile.MakeDirs(str(folder / "x" / "y"))
    tf.gfile.MakeDirs(str(folder / "x" / "y"))
    tf.gfile.Copy(str(folder / "b.txt"), str(folder / "x" / "c.txt"))
    with pytest.raises(tf.errors.AlreadyExistsError, match="file exists - at .*c.txt"):
        tf.gfile.Copy(str(folder / "b.txt"), str(folder / "x" / "c.txt"))
    tf.gfile.Copy(str(folder / "b.txt"), str(folder / "x" / "c.txt"), overwrite=True)
    tf.gfile.Rename(str(folder / "x" / "c.txt"), str(folder / "d.txt"))
    tf.gfile.Remove(str(folder / "d.txt"))
    tf.gfile.DeleteRecursively(str(folder / "x"))
    assert tf.io.gfile.listdir(folder) == ["a.txt", "b.txt"]
    with pytest.raises(tf.errors.AlreadyExistsError, match="file exists"):
        tf.io.gfile.mkdir(folder)


def test_read_file_and_write_file_handle_whole_files(folder: Path) -> None:
    tf.io.write_file(str(folder / "new" / "x"), b"\0\1")
    assert tf.read_file(tf.constant(str(folder / "new" / "x"))).numpy() == b"\0\1"


def test_what_is_not_there_is_not_found(folder: Path) -> None:
    for act in (tf.io.gfile.GFile, tf.io.gfile.remove, tf.io.gfile.listdir, tf.io.read_file, tf.io.gfile.rmtree):
        with pytest.raises(tf.errors.NotFoundError, match="no such file or directory - at .*nope"):
            act(str(folder / "nope"))


def test_remote_addresses_are_refused() -> None:
    with pytest.raises(tf.errors.UnimplementedError, match="expected a local path.* - at gs://bucket/x"):
        tf.gfile.Exists("gs://bucket/x")


def test_stat_gives_size_and_kind(folder: Path) -> None:
    assert tf.gfile.Stat(str(folder / "b.txt")).length == 12
    assert tf.io.gfile.stat(folder).is_directory
    with pytest.raises(tf.errors.NotFoundError, match="no such file"):
        tf.gfile.Stat(str(folder / "nope"))
