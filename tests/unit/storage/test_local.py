from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
from pathlib import Path

import pytest

from tfrkit import _native
from tfrkit.errors import StorageError
from tfrkit.storage.base import ByteReader, ByteWriter
from tfrkit.storage.local import LocalReader, LocalWriter, StdinReader, require_space
from tfrkit.testing.storage_suite import CONTENT, StorageTests


class TestLocalStorage(StorageTests):
    @pytest.fixture(autouse=True)
    def _use_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def store(self, name: str, data: bytes) -> None:
        (self.folder / name).write_bytes(data)

    def fetch(self, name: str) -> bytes | None:
        path = self.folder / name
        return path.read_bytes() if path.exists() else None

    def open_reader(self, name: str) -> ByteReader:
        return LocalReader(str(self.folder / name))

    def open_writer(self, name: str) -> ByteWriter:
        return LocalWriter(str(self.folder / name))

    def leftovers(self) -> list[str]:
        return sorted(os.listdir(self.folder))


def test_reader_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"folder|is a directory"):
        LocalReader(str(tmp_path))


def test_reader_path_through_a_file_raises(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(StorageError, match=r"cannot open, not a directory - at .*file/shard"):
        LocalReader(str(tmp_path / "file" / "shard"))


def test_reader_dangling_link_raises(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(StorageError, match=r"cannot open, no such file or directory - at .*link"):
        LocalReader(str(tmp_path / "link"))


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
def test_reader_unreadable_file_raises(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"x")
    path.chmod(0)
    with pytest.raises(StorageError, match=r"cannot open, permission denied - at .*secret"):
        LocalReader(str(path))


def test_reader_name_with_nul_raises() -> None:
    with pytest.raises((StorageError, ValueError), match=r"null byte|cannot open"):
        LocalReader("a\0b")


def test_reader_shrunk_file_fails_check(tmp_path: Path) -> None:
    path = tmp_path / "shard"
    path.write_bytes(CONTENT)
    reader = LocalReader(str(path))
    with path.open("r+b") as file:
        file.truncate(10)
    with (
        contextlib.closing(reader),
        pytest.raises(StorageError, match=rf"became shorter while it was read, {len(CONTENT)} bytes at first, 10 now"),
    ):
        reader.check_unchanged()


def test_reader_file_replaced_by_a_shorter_one_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "shard"
    path.write_bytes(CONTENT)
    with contextlib.closing(LocalReader(str(path))) as reader:
        span = reader.span()
        assert isinstance(span, _native.FileMap)
        (tmp_path / "new").write_bytes(b"other")
        os.replace(tmp_path / "new", path)
        reader.park()
        reader.check_unchanged()
        assert span[:] == CONTENT


def test_reader_removed_file_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "shard"
    path.write_bytes(CONTENT)
    with contextlib.closing(LocalReader(str(path))) as reader:
        span = reader.span()
        assert isinstance(span, _native.FileMap)
        path.unlink()
        reader.park()
        reader.check_unchanged()
        assert span[:] == CONTENT


@pytest.mark.parametrize("nbytes", [0, 10, 4096, 5000, len(CONTENT) - 1])
def test_map_of_cut_off_file_raises_and_gives_no_zeros(tmp_path: Path, nbytes: int) -> None:
    path = tmp_path / "shard"
    path.write_bytes(CONTENT)
    with contextlib.closing(LocalReader(str(path))) as reader:
        span = reader.span()
        assert isinstance(span, _native.FileMap)
        os.truncate(path, nbytes)
        if nbytes >= 10:
            assert span[:10] == CONTENT[:10]
        for _ in range(2):
            with pytest.raises(StorageError, match=rf"became shorter while it was read, .*, {nbytes} now - at .*shard"):
                span[:]


def test_map_torn_once_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "shard"
    path.write_bytes(CONTENT)
    with contextlib.closing(LocalReader(str(path))) as reader:
        span = reader.span()
        assert isinstance(span, _native.FileMap)
        os.truncate(path, 0)
        with pytest.raises(StorageError, match="became shorter"):
            span[:]
        path.write_bytes(CONTENT)
        with pytest.raises(StorageError, match="cannot be read any more, a part of it was lost"):
            span[:10]
        with pytest.raises(BufferError, match="was cut off"):
            memoryview(span)
        with pytest.raises(StorageError, match="cannot be read any more"):
            _native.check_frames(span, 0, len(span), 1, "all")


def test_map_slices_are_copies(tmp_path: Path) -> None:
    path = tmp_path / "shard"
    path.write_bytes(CONTENT)
    with contextlib.closing(LocalReader(str(path))) as reader:
        span = reader.span()
        assert isinstance(span, _native.FileMap)
        assert len(span) == len(CONTENT)
        for piece in (slice(None), slice(3, 9), slice(-4, None), slice(9, 3), slice(5, 1 << 40)):
            assert span[piece] == CONTENT[piece]
        with pytest.raises(ValueError, match="step 1"):
            span[::2]
        with pytest.raises(TypeError, match="incompatible function arguments"):
            span[0]  # type: ignore[index]
        view = memoryview(span)
        assert view.readonly and view.nbytes == len(CONTENT)


def test_map_holds_no_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "shard"
    path.write_bytes(CONTENT)
    before = set(os.listdir("/proc/self/fd"))
    with contextlib.closing(LocalReader(str(path))) as reader:
        span = reader.span()
        assert isinstance(span, _native.FileMap)
        reader.park()
        assert set(os.listdir("/proc/self/fd")) <= before
        assert span[:4] == CONTENT[:4]


def test_map_longer_than_its_file_raises(tmp_path: Path) -> None:
    path = tmp_path / "shard"
    path.write_bytes(CONTENT)
    with path.open("rb") as file:
        for size in (len(CONTENT) + 1, 0):
            with pytest.raises(ValueError, match="shorter than what is to be mapped"):
                _native.FileMap(file.fileno(), size, lambda is_torn: None)


def test_reader_pipe_has_no_size_and_reads_in_order(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    holder = os.open(path, os.O_RDWR)  # keeps both ends open, so that opening does not block
    os.write(holder, b"abcdef")
    reader = LocalReader(str(path))
    os.close(holder)
    assert reader.size is None
    assert reader.span() is None
    assert reader.read(4) == b"abcd"
    assert reader.read(4) == b"ef"
    with pytest.raises(StorageError, match="got a pipe"):
        reader.read_at(0, 1)
    reader.close()


def test_stdin_reader_reads_descriptor_to_its_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"abc")
    with path.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        reader = StdinReader()
        assert reader.size is None
        assert reader.read(2) == b"ab"
        assert reader.read(2) == b"c"
        assert reader.read(2) == b""
        with pytest.raises(StorageError, match="got a pipe"):
            reader.read_at(0, 1)
        reader.close()


def test_writer_in_missing_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot write, no such file or directory - at .*shard"):
        LocalWriter(str(tmp_path / "nowhere" / "shard"))


def test_writer_onto_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="expected a file, got a folder"):
        LocalWriter(str(tmp_path))


def test_writer_temporary_name_is_hidden_from_globs(tmp_path: Path) -> None:
    writer = LocalWriter(str(tmp_path / "train.tfrecord"))
    writer.write(b"x")
    assert list(tmp_path.glob("train*")) == []
    writer.discard()


def test_writer_result_obeys_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        writer = LocalWriter(str(tmp_path / "shard"))
        writer.commit()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "shard").stat().st_mode) == 0o640


def test_writer_write_after_commit_raises(tmp_path: Path) -> None:
    writer = LocalWriter(str(tmp_path / "shard"))
    writer.commit()
    with pytest.raises(ValueError, match="finished file"):
        writer.write(b"late")


def test_writer_full_disk_raises_and_leaves_nothing(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    writer = LocalWriter(str(tmp_path / "shard"))
    assert writer._temporary is not None
    with open("/dev/full", "wb") as full:
        os.dup2(full.fileno(), writer._temporary.descriptor)
    with pytest.raises(
        StorageError,
        match="cannot write, no space left on device, no partial file was left - at .*shard\n  make room there",
    ):
        writer.write(b"x")
    assert os.listdir(tmp_path) == []


def test_writer_relative_path_without_folder_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    writer = LocalWriter("shard")
    writer.write(b"x")
    writer.commit()
    assert (tmp_path / "shard").read_bytes() == b"x"


def test_writer_context_without_commit_leaves_nothing(tmp_path: Path) -> None:
    with LocalWriter(str(tmp_path / "new" / "shard"), make_folders=True) as writer:
        writer.write(b"x")
    assert os.listdir(tmp_path) == []


def test_writer_context_with_commit_leaves_the_file(tmp_path: Path) -> None:
    with LocalWriter(str(tmp_path / "new" / "shard"), make_folders=True) as writer:
        writer.write(b"x")
        writer.commit()
    assert (tmp_path / "new" / "shard").read_bytes() == b"x"


def test_folder_on_no_disk_has_no_lack_of_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # /proc and some network disks report 0 bytes: what cannot be written there has its own error.
    sizes = {"total": 0, "used": 0, "free": 0}
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: tuple(sizes.values()))
    require_space(str(tmp_path / "new" / "a"), 100)
    sizes["total"] = 1 << 40
    with pytest.raises(StorageError, match="too little space"):
        require_space(str(tmp_path / "new" / "a"), 100)
