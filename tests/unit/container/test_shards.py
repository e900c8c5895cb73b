from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import pytest

import tfrkit
from tfrkit.container.names import name_shard, note_missing_shards
from tfrkit.container.shards import Shard, find_shards, looks_like_shard
from tfrkit.errors import NotATFRecordError, StorageError
from tfrkit.storage.local import LocalReader
from tfrkit.storage.memory import MemoryReader
from tfrkit.storage.transaction import PENDING
from tfrkit.testing.corruption import flip
from tfrkit.testing.reference import write_frames

FRAMES = write_frames([b"abc" * 10, b"", b"xyz"])


def open_shard(data: bytes) -> Shard:
    return Shard(MemoryReader(data, name="train.tfrecord"))


def fill(folder: Path, *names: str, data: bytes = FRAMES) -> list[str]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return [str(folder / name) for name in names]


# --- one shard ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "compression"),
    [
        (FRAMES, "none"),
        (b"", "none"),
        (gzip.compress(FRAMES, mtime=0), "gzip"),
        (gzip.compress(b"", mtime=0), "gzip"),
        (zlib.compress(FRAMES), "zlib"),
        (gzip.compress(FRAMES[:46], mtime=0) + gzip.compress(FRAMES[46:], mtime=0), "gzip"),
    ],
)
def test_compression_is_found_from_the_bytes(data: bytes, compression: str) -> None:
    shard = open_shard(data)
    assert shard.compression == compression
    assert shard.nbytes == len(data)
    assert shard.name == "train.tfrecord"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b'{"a": 1}', "JSON"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n", "Git LFS"),
        (b"\x03\0\0\0\0\0\0\0\x11\x82\x93", "got 11 bytes, fewer than the 16 of an empty record"),
        (bytes(range(1, 200)), "no frame starts at byte 0"),
        (gzip.compress(b"<html></html>", mtime=0), "gzip of"),
    ],
)
def test_foreign_file_says_what_it_seems_to_be(data: bytes, what: str) -> None:
    with pytest.raises(NotATFRecordError, match=rf"expected a TFRecord, .*({what}).* - at train.tfrecord"):
        open_shard(data)


def test_foreign_file_among_many_says_how_to_find_the_others(tmp_path: Path) -> None:
    paths = fill(tmp_path, "0.tfrecord", "1.tfrecord", "2.tfrecord")
    paths += fill(tmp_path, "3.tfrecord", data=b"a,b\n1,2\n" * 9)
    with pytest.raises(NotATFRecordError, match="got a text file .*3.tfrecord\n.*cannot be read: tfr verify") as caught:
        Shard.open_all(paths)
    assert str(caught.value).endswith(f"tfr verify {tmp_path}")


@pytest.mark.parametrize("offset", [0, 8, 11])
def test_damaged_first_header_is_still_a_tfrecord(offset: int) -> None:
    assert open_shard(flip(FRAMES, offset)).compression == "none"
    assert open_shard(gzip.compress(flip(FRAMES, offset))).compression == "gzip"
    assert open_shard(zlib.compress(flip(FRAMES, offset))).compression == "zlib"


def test_damaged_first_header_of_a_large_record_is_still_a_tfrecord() -> None:
    assert open_shard(flip(write_frames([bytes(5_000_000), b"next"]), 0)).compression == "none"


def test_zlib_of_something_else_is_not_a_tfrecord() -> None:
    with pytest.raises(NotATFRecordError, match="expected a TFRecord"):
        open_shard(zlib.compress(b"some text that is long enough to hold a header" * 10))


def test_pipe_returns_the_sniffed_bytes_again(tmp_path: Path) -> None:
    source, target = os.pipe()
    os.write(target, FRAMES)
    os.close(target)
    try:
        shard = Shard(LocalReader(f"/dev/fd/{source}"))
        assert shard.nbytes is None
        assert shard.reader.span() is None
        assert shard.reader.read(5) + shard.reader.read(1000) + shard.reader.read(1000) == FRAMES
        with pytest.raises(StorageError, match="expected a file, got a pipe"):
            shard.reader.read_at(0, 1)
        shard.close()
    finally:
        os.close(source)


# --- many ---------------------------------------------------------------------------------------------


def test_folder_gives_its_shards_sorted(tmp_path: Path) -> None:
    paths = fill(tmp_path, "b.tfrecord", "a.tfrecord", "deep/c.tfrecord-00000-of-00001")
    assert find_shards(tmp_path) == sorted(paths)
    assert find_shards(str(tmp_path)) == sorted(paths)


def test_folder_passes_over_what_is_no_shard(tmp_path: Path) -> None:
    (shard,) = fill(tmp_path, "a.tfrecord")
    fill(tmp_path, "features.json", "readme.txt", data=b"{}")
    fill(tmp_path, "_index/a.tfrecord.tfidx", ".a.tfrecord.tmp", "a.tfrecord.idx", data=b"0 46\n")
    assert find_shards(tmp_path) == [shard]


def test_folder_finds_a_shard_by_content(tmp_path: Path) -> None:
    paths = fill(tmp_path, "plain.data") + fill(tmp_path, "zipped.gz", data=gzip.compress(FRAMES))
    fill(tmp_path, "other.gz", data=gzip.compress(b"hello, this is no frame"))
    fill(tmp_path, "nothing.data", data=b"")
    assert find_shards(tmp_path) == paths


def test_empty_file_named_like_a_shard_is_one(tmp_path: Path) -> None:
    (path,) = fill(tmp_path, "a.tfrecord", data=b"")
    assert looks_like_shard(path)
    assert find_shards(tmp_path) == [path]


def test_folder_without_shards_raises(tmp_path: Path) -> None:
    fill(tmp_path, "readme.txt", data=b"hello")
    with pytest.raises(StorageError, match="found no TFRecord in this folder, only readme.txt - at "):
        find_shards(tmp_path)
    fill(tmp_path, "read_tfrecord.py", "sub/notes_tfrecord.txt", "zzz", data=b"import this\n")
    named = "only read_tfrecord.py, readme.txt, sub/notes_tfrecord.txt and 1 more - at "
    with pytest.raises(StorageError, match=f"found no TFRecord in this folder, {named}"):
        find_shards(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(StorageError, match="found no TFRecord in this folder, it has no files - at "):
        find_shards(tmp_path / "empty")


@pytest.mark.parametrize(
    "name",
    [
        *("a-000000-of-100000", "a.tfrecord-123456-of-1000000.gz"),
        *("a.tfrecord", "a.tfrecords", "a.tfrec", "a.TFRecord.gz", "a-00000-of-00005", "a.tfrecord-00000-of-00005"),
        *("a-00000-of-00005.tfrecord", "a.tfrecord-00000-of-00005.zst", "a.record", "00000-of-00005"),
    ],
)
def test_shard_by_its_name_is_one_whatever_it_holds(tmp_path: Path, name: str) -> None:
    fill(tmp_path, name, data=b"<html></html>")
    assert find_shards(tmp_path) == [str(tmp_path / name)]


@pytest.mark.parametrize(
    "name", ["read_tfrecord.py", "notes_tfrecord.txt", "a.tfrecord.json", "a-00000-of-00005.csv", "a.tfrecord.bak"]
)
def test_similar_name_is_a_shard_only_by_what_it_holds(tmp_path: Path, name: str) -> None:
    fill(tmp_path, name, data=b"import tensorflow as tf\n")
    assert not looks_like_shard(str(tmp_path / name))
    fill(tmp_path, name)
    assert looks_like_shard(str(tmp_path / name))
    fill(tmp_path, name, data=gzip.compress(FRAMES))
    assert looks_like_shard(str(tmp_path / name))


def test_damaged_shard_of_a_similar_name_does_not_vanish(tmp_path: Path) -> None:
    fill(tmp_path, "train_tfrecord_3", data=flip(FRAMES, 2))
    assert find_shards(tmp_path) == [str(tmp_path / "train_tfrecord_3")]


def test_list_keeps_its_order(tmp_path: Path) -> None:
    a, b = fill(tmp_path, "a.tfrecord", "b.tfrecord")
    assert find_shards([b, a]) == [b, a]
    assert find_shards(path for path in (b, Path(a))) == [b, a]


def test_glob_is_sorted(tmp_path: Path) -> None:
    fill(tmp_path, "t-2", "t-10", "t-1")
    assert [os.path.basename(path) for path in find_shards(f"{tmp_path}/t-*")] == ["t-1", "t-10", "t-2"]


def test_glob_does_not_stumble_over_an_index_folder(tmp_path: Path) -> None:
    (shard,) = fill(tmp_path, "a.tfrecord")
    fill(tmp_path, "_index/a.tfrecord.tfidx", data=b"TFRKIDX\n")
    assert find_shards(f"{tmp_path}/*") == [shard]


def test_name_with_glob_characters_that_exists_is_taken_literally(tmp_path: Path) -> None:
    (path,) = fill(tmp_path, "a[1]*.tfrecord")
    assert find_shards(path) == [path]


@pytest.mark.parametrize(("address", "message"), [("nope*", "no file matches"), ("nope", "no such file or directory")])
def test_address_of_nothing_raises(tmp_path: Path, address: str, message: str) -> None:
    with pytest.raises(StorageError, match=message):
        find_shards(str(tmp_path / address))


def test_empty_list_raises() -> None:
    with pytest.raises(StorageError, match="expected at least one path, got an empty list"):
        find_shards([])


@pytest.mark.parametrize("address", [None, 3])
def test_address_of_another_type_raises(address: object) -> None:
    with pytest.raises(TypeError, match="expected a path"):
        find_shards(address)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("number", "num_shards", "name"),
    [
        (0, 1, "d-00000-of-00001"),
        (99_998, 99_999, "d-99998-of-99999"),
        (7, 100_000, "d-000007-of-100000"),
        (999_999, 1_000_000, "d-0999999-of-1000000"),
    ],
)
def test_shard_names_have_five_digits_or_more_if_needed(number: int, num_shards: int, name: str) -> None:
    assert name_shard("d", number, num_shards) == name
    if num_shards > 1:
        total = name.rpartition("-")[2]
        [note] = note_missing_shards([name])
        assert note.startswith(f"1 of {num_shards} shards, missing d-")
        assert note.endswith(f" - at d-*-of-{total}")


def test_standard_input_is_not_refused_for_a_change_of_the_folder_that_we_are_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / PENDING).mkdir()
    (tmp_path / "x.tfrecord").write_bytes(write_frames([b"a"]))
    monkeypatch.chdir(tmp_path)
    assert find_shards(["-"]) == ["-"]
    with pytest.raises(StorageError, match="a change of this folder was interrupted"):
        find_shards(["x.tfrecord"])


def test_links_that_lead_nowhere_are_no_shards_unless_their_name_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(write_frames([b"one"]))
    (tmp_path / "self").symlink_to("self")
    assert find_shards(tmp_path) == [str(tmp_path / "a.tfrecord")]
    (tmp_path / "lost.tfrecord").symlink_to("gone")
    with pytest.raises(StorageError, match="no such file or directory - at .*lost.tfrecord"):
        len(tfrkit.open(tmp_path))
