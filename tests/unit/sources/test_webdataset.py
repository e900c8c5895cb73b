"""Tar files of samples: members, refusals, and truncated tars."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit as tfr
from tfrkit.errors import SourceError
from tfrkit.sources.base import Scan
from tfrkit.sources.tar_samples import list_samples
from tfrkit.sources.webdataset import WebDataset, find_tars


def png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (6, 4)).save(buffer, "PNG")
    return buffer.getvalue()


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def write_tar(path: Path, members: dict[str, bytes] | list[tuple[str, bytes]], **options: Any) -> str:
    pairs = members.items() if isinstance(members, dict) else members
    with tarfile.open(path, "w", **options) as archive:
        for name, data in pairs:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return str(path)


def rows_of(scan: Scan) -> dict[str, Any]:
    reader: Any = pickle.loads(pickle.dumps(scan.reader))  # as it comes to a worker
    items = [scan.items.item(number) for number in range(scan.items.size)]
    return {item.key.partition(":")[2]: reader.read(item) for item in items}


def problems_of(scan: Scan) -> dict[str, str]:
    return {problem.key: problem.reason for problem in scan.problems}


def test_webdataset_members_become_features_by_their_suffix(tmp_path: Path) -> None:
    members = {
        "a/00.PNG": png(),
        "a/00.cls": b"7\n",
        "a/00.txt": "héllo".encode(),
        "a/00.json": json.dumps({"n": 1, "deep": {"s": "x"}, "list": [1, 2], "none": None}).encode(),
        "a/00.npy": npy(np.arange(3, dtype=np.float32)),
        "a/00.mask.npy": npy(np.zeros((2, 2), np.uint8)),
        "a/00.left.png": png(),
        "a/00.note.txt": b"n",
        "a/00.id": b"5",
        "a/00.pkl": b"\x80\x04.",
    }
    scan = WebDataset(write_tar(tmp_path / "x.tar", members)).scan("")
    assert scan.problems == []
    [row] = rows_of(scan).values()
    assert row["__key__"] == b"a/00"
    assert (row["image/encoded"], row["image/format"], row["image/width"]) == (png(), "png", 6)
    assert (row["image/class/label"], row["id"], row["text"], row["note"]) == (7, 5, "héllo".encode(), b"n")
    assert (row["json/n"], row["json/deep/s"], row["json/list"]) == (1, "x", [1, 2])
    assert row["left/height"] == 4
    assert row["npy"].tolist() == [0, 1, 2]
    assert row["pkl"] == b"\x80\x04."
    schema = scan.schema_after({})
    assert schema is not None
    assert set(row) == set(schema.features)
    assert (schema["npy"].kind, schema["npy"].shape) == ("float", (3,))
    assert (schema["mask"].encoding, schema["mask"].dtype, schema["mask"].shape) == ("tensor_proto", "uint8", (2, 2))
    with tfr.Writer(tmp_path / "x.tfrecord") as writer:
        writer.write(row)
    with tfr.open(tmp_path / "x.tfrecord") as ds:
        assert ds[0]["mask"].shape == (2, 2)


@pytest.mark.parametrize("names", [("train-0.tar", "val-0.tar"), ("train/0.tar", "val/0.tar")])
def test_webdataset_splits_of_the_files_are_kept_or_noted(tmp_path: Path, names: tuple[str, str]) -> None:
    for number, name in enumerate(names):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_tar(tmp_path / name, {f"{number}{letter}.txt": b"x" for letter in "ab"[number:]})
    scan = WebDataset(str(tmp_path)).scan("")
    assert scan.items.splits is None
    assert scan.notes[0] == "the splits that the files name were combined: train, val; keep them: split_names=True"
    scan = WebDataset(str(tmp_path), split_names=True).scan("")
    assert (scan.items.split_names, scan.items.splits.tolist()) == (("train", "val"), [0, 0, 1])  # type: ignore[union-attr]
    assert scan.notes[0].startswith("members")
    assert WebDataset(str(tmp_path / names[0])).scan("").notes[0] == "members: .txt 2"
    for name in ("north-0.tar", "south-0.tar"):
        write_tar(tmp_path / name, {"c.txt": b"x"})
    parts = WebDataset([str(tmp_path / "north-0.tar"), str(tmp_path / "south-0.tar")], split_names=True).scan("")
    assert parts.items.split_names == ("north", "south")
    with pytest.raises(SourceError, match=r"expected a file of a split.* - at .*north-0.tar"):
        WebDataset(str(tmp_path), split_names=True).scan("")


def test_webdataset_order_is_that_of_the_tars(tmp_path: Path) -> None:
    write_tar(tmp_path / "x-001.tar", [("z.txt", b"3")])
    write_tar(tmp_path / "x-000.tar", [("b.txt", b"1"), ("a.txt", b"2")])
    for path in (str(tmp_path), str(tmp_path / "x-*.tar"), str(tmp_path / "x-{000..001}.tar")):
        scan = WebDataset(path).scan("")
        assert [scan.items.key(number) for number in range(3)] == ["x-000.tar:b", "x-000.tar:a", "x-001.tar:z"]
        assert scan.order == "source"


def test_webdataset_missing_members_are_absent_features(tmp_path: Path) -> None:
    members = {
        "a.txt": b"x",
        "a.json": b'{"k": 1}',
        "b.txt": b"y",
        "b.cls": b"1",
        "c.txt": b"z",
        "c.json": b'{"k": 0.5}',
    }
    scan = WebDataset(write_tar(tmp_path / "x.tar", members)).scan("")
    rows = rows_of(scan)
    assert rows["a"] == {"__key__": b"a", "text": b"x", "json/k": 1.0}
    assert rows["b"] == {"__key__": b"b", "text": b"y", "image/class/label": 1}
    schema = scan.schema_after({})
    assert schema is not None
    optional = {name: spec.optional for name, spec in schema.features.items()}
    assert optional == {"__key__": False, "text": False, "json/k": True, "image/class/label": True}
    assert schema["json/k"].kind == "float"


def test_webdataset_arrays_of_different_dtypes_are_all_tensors(tmp_path: Path) -> None:
    members = {"a.npy": npy(np.arange(3)), "b.npy": npy(np.arange(4.0))}
    scan = WebDataset(write_tar(tmp_path / "x.tar", members)).scan("")
    with tfr.Writer(tmp_path / "x.tfrecord") as writer:
        for row in rows_of(scan).values():
            writer.write(row)
    with tfr.open(tmp_path / "x.tfrecord") as ds:
        assert [row["npy"].dtype.name for row in ds] == ["int64", "float64"]


def test_webdataset_json_of_different_types_blocks(tmp_path: Path) -> None:
    members = {"a.json": b'{"k": 1}', "b.json": b'{"k": "x"}', "c.json": b'{"k": 2}'}
    [problem] = WebDataset(write_tar(tmp_path / "x.tar", members)).scan("").problems
    assert problem.blocking
    assert problem.reason == "expected values of the same type, got integers and text; text in samples number 2"


def test_webdataset_unsafe_members_are_refused_with_their_samples(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        for name, kind in (
            ("ok.txt", tarfile.REGTYPE),
            ("../up.txt", tarfile.REGTYPE),
            ("a/../../up.txt", tarfile.REGTYPE),
            ("/abs.txt", tarfile.REGTYPE),
            ("link.txt", tarfile.SYMTYPE),
            ("hard.txt", tarfile.LNKTYPE),
            ("pipe.txt", tarfile.FIFOTYPE),
            ("folder", tarfile.DIRTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type = kind
            info.linkname = "/etc/passwd"
            archive.addfile(info, io.BytesIO(b""))
    scan = WebDataset(str(path)).scan("")
    assert problems_of(scan) == {
        "x.tar, member '../up.txt'": "name expected inside the archive, got one that leads out of it",
        "x.tar, member 'a/../../up.txt'": "name expected inside the archive, got one that leads out of it",
        "x.tar, member '/abs.txt'": "name expected inside the archive, got one that leads out of it",
        "x.tar, member 'link.txt'": "expected a file, got a link",
        "x.tar, member 'hard.txt'": "expected a file, got a link",
        "x.tar, member 'pipe.txt'": "expected a file, got no file",
    }
    assert list(rows_of(scan)) == ["ok"]


def test_webdataset_samples_that_come_twice_are_named(tmp_path: Path) -> None:
    members = [("a.txt", b"1"), ("b.txt", b"2"), ("a.cls", b"3"), ("c.txt", b"4"), ("c.txt", b"5"), ("d.txt", b"6")]
    scan = WebDataset(write_tar(tmp_path / "x.tar", members)).scan("")
    assert problems_of(scan) == {
        "x.tar, member 'a.cls'": "sample 'a' expected in one place of the tar, got two",
        "x.tar, member 'c.txt'": "sample 'c' expected one .txt, got two",
    }
    assert list(rows_of(scan)) == ["b", "d"]


def test_webdataset_bad_json_and_npy_are_named_while_scanning(tmp_path: Path) -> None:
    members = {
        "a.json": b"{",
        "b.npy": b"x",
        "c.npy": npy(np.array([{}], object)),
        "d.json": b"[1]",
        "e.json": b"\xff",
        "f.txt": b"",
    }
    scan = WebDataset(write_tar(tmp_path / "x.tar", members)).scan("")
    assert set(problems_of(scan)) == {f"x.tar, sample {key!r}" for key in "abcde"}
    assert "expected an array of numbers, got dtype object" in problems_of(scan)["x.tar, sample 'c'"]
    assert list(rows_of(scan)) == ["f"]


@pytest.mark.parametrize(
    ("name", "data", "match"),
    [
        ("a.cls", b"cat", r".cls expected one integer, got b'cat'"),
        ("a.cls", b"9" * 30, ".cls expected a signed 64-bit integer"),
        ("a.txt", b"\xff", ".txt 'utf-8' codec can't decode"),
        ("a.jpg", b"nope", ".jpg expected an image, got"),
    ],
)
def test_webdataset_member_that_is_not_what_it_says_is_a_bad_input(
    tmp_path: Path, name: str, data: bytes, match: str
) -> None:
    scan = WebDataset(write_tar(tmp_path / "x.tar", {name: data})).scan("")
    with pytest.raises(SourceError, match=match):
        rows_of(scan)


def test_tar_cut_anywhere_is_never_a_shorter_one(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    write_tar(path, [(f"s{number}.bin", bytes(600)) for number in range(3)])
    whole = path.read_bytes()
    for stop in range(1, 3 * 1536 + 512, 171):
        path.write_bytes(whole[:stop])
        try:
            found = list_samples(str(path), "x.tar")
        except SourceError as error:
            assert "not a valid tar file" in str(error)
        else:
            assert found.problems, f"cut at {stop}"


def test_tar_damaged_in_the_middle_is_never_a_shorter_one(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    write_tar(path, [(f"s{number}.bin", b"x" * 600) for number in range(3)])
    data = bytearray(path.read_bytes())
    data[1536:2048] = b"\x55" * 512
    path.write_bytes(data)
    [problem] = list_samples(str(path), "x.tar").problems
    assert (problem.key, problem.reason) == ("x.tar, byte 1536", "tar holds something else")


def test_tar_with_long_and_foreign_names_is_read(tmp_path: Path) -> None:
    name = "长" * 60 + "/" + "x" * 120
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        write_tar(tmp_path / "x.tar", {f"{name}.txt": b"1"}, format=form)
        assert list(rows_of(WebDataset(str(tmp_path / "x.tar")).scan(""))) == [name]


def test_tar_that_is_packed_or_no_tar_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(gzip.compress(b"x" * 10_000))
    with pytest.raises(
        SourceError, match="expected an uncompressed tar file, got one compressed with gzip .*\n  decompress it first"
    ):
        list_samples(str(path), "x.tar")
    path.write_bytes(b"hello" * 500)
    with pytest.raises(SourceError, match="not a valid tar file"):
        list_samples(str(path), "x.tar")


def test_find_tars_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no tar file there"):
        find_tars(str(tmp_path))
    with pytest.raises(SourceError, match=r"cannot open, no such file - at .*x-1.tar"):
        find_tars(str(tmp_path / "x-{1..3}.tar"))
    with pytest.raises(ValueError, match=r"ascending numbers, got \{9..3\}"):
        find_tars(str(tmp_path / "x-{9..3}.tar"))
