"""Tar files of samples: those a build read come out again, and the same records give the same bytes."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit
from tfrkit.errors import CodecError, SchemaError
from tfrkit.ops.export.members import nest_keys
from tfrkit.ops.export.webdataset import export_webdataset


def encode(format: str = "PNG", color: tuple[int, int, int] = (1, 2, 3)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (6, 4), color).save(file, format)
    return file.getvalue()


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def write_tar(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def read_tars(*paths: Path) -> dict[str, Any]:
    """Name → content of every member, as WebDataset's decoders see it."""
    members: dict[str, Any] = {}
    for path in paths:
        with tarfile.open(path) as archive:
            for member in archive:
                assert (member.mtime, member.uid, member.gid, member.uname) == (0, 0, 0, "")
                file = archive.extractfile(member)
                assert file is not None
                members[member.name] = decode(member.name, file.read())
    return members


def decode(name: str, data: bytes) -> Any:
    kind = name.rpartition(".")[2].lower()
    if kind == "json":
        return json.loads(data)
    if kind in ("cls", "id", "index"):
        return int(data)
    if kind == "npy":
        array = np.load(io.BytesIO(data), allow_pickle=False)
        return array.dtype.str, array.shape, array.tolist()
    return data


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    with tfrkit.Writer(str(path)) as writer:
        for row in rows:
            writer.write(row)
    return path


SAMPLES = {
    "a/00.png": encode(),
    "a/00.cls": b"7",
    "a/00.txt": "héllo\n".encode(),
    "a/00.json": json.dumps({"n": 1, "f": 0.5, "deep": {"s": "x", "t": [1, 2]}, "list": [], "w": ["a", ""]}).encode(),
    "a/00.npy": npy(np.arange(3, dtype=np.float32)),
    "a/00.mask.npy": npy(np.zeros((2, 2), np.uint8)),
    "a/00.left.jpg": encode("JPEG"),
    "a/00.note.txt": b"n",
    "a/00.meta.json": b'{"k": 3}',
    "a/00.id": b"5",
    "a/00.pkl": b"\x80\x04.",
    "a/01.jpg": encode("JPEG"),
    "a/01.json": json.dumps({"n": 2, "list": [4]}).encode(),
    "a/01.npy": npy(np.arange(2, dtype=np.float32)),
    "ü.txt": b"only text",
}


@pytest.mark.parametrize("out", ["out", "out.tfrecord"])
def test_samples_come_back_from_a_build(tmp_path: Path, out: str) -> None:
    write_tar(tmp_path / "in" / "x.tar", SAMPLES)
    tfrkit.build(tfrkit.sources.webdataset(str(tmp_path / "in")), tmp_path / out, jobs=1)
    report = export_webdataset(tmp_path / out, tmp_path / "back.tar")
    assert read_tars(tmp_path / "back.tar") == {name: decode(name, data) for name, data in SAMPLES.items()}
    assert (report.records, report.files, report.num_renamed, report.notes) == (3, 1, 0, [])


def test_records_come_back_from_tars(tmp_path: Path) -> None:
    """TFRecord → WebDataset → TFRecord, for features of every form whose name survives."""
    rows = [
        {
            "__key__": f"k{number}",
            "image/encoded": encode(color=(number, 0, 0)),
            "image/class/label": number,
            "image/object/bbox/xmin": np.array([0.25] * number, np.float32),
            "image/caption": [f"text {number}", "ü"],
            "weight": 0.5 * number,
            "tokens": np.arange(number + 1),
            "tensor": np.full((2, number + 1), number, np.int16),
            "text": f"hello {number}",
            "blob": bytes([255, number]),
        }
        for number in range(3)
    ]
    source = write_rows(tmp_path / "a.tfrecord", rows)
    export_webdataset(source, tmp_path / "tars")
    tfrkit.build(tfrkit.sources.webdataset(str(tmp_path / "tars")), tmp_path / "b.tfrecord", jobs=1)
    with tfrkit.open(source) as first, tfrkit.open(tmp_path / "b.tfrecord") as second:
        for before, after in zip(first, second, strict=True):
            for name, value in before.items():
                assert np.array_equal(np.asarray(value), np.asarray(after[name])), name


def test_dataset_of_another_source_has_jpg_cls_and_json(tmp_path: Path) -> None:
    row = {"image": encode("JPEG"), "label": 3, "caption": "a cat", "filename": "cats/x.1.jpg", "height": 4, "f": 0.5}
    row |= {"image/object/n": [1, 2], "tokens": [1, 2], "raw": b"\xff"}
    report = export_webdataset(write_rows(tmp_path / "a", [row]), tmp_path / "x.tar")
    assert {name.partition(".")[2]: value for name, value in read_tars(tmp_path / "x.tar").items()} == {
        "jpg": row["image"],
        "cls": 3,
        "caption.txt": b"a cat",
        "json": {"filename": "cats/x.1.jpg", "height": 4, "f": 0.5},
        "image.json": {"object": {"n": [1, 2]}},
        "tokens.npy": ("<i8", (2,), [1, 2]),
        "raw": b"\xff",
    }
    assert set(read_tars(tmp_path / "x.tar")) >= {"cats/x_1.jpg"}
    assert report.notes == ["in .json, read back as json/NAME: 'f', 'filename', 'height'"]


def test_pixels_stay_bytes_unless_requested_as_an_image(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "a", [{"data": bytes(range(255, 243, -1)), "height": 2, "width": 2}])
    export_webdataset(source, tmp_path / "1.tar")
    assert read_tars(tmp_path / "1.tar")["00000000.data"] == bytes(range(255, 243, -1))
    export_webdataset(source, tmp_path / "2.tar", image="data")
    assert read_tars(tmp_path / "2.tar")["00000000.png"].startswith(b"\x89PNG")


def test_tars_are_cut_at_a_size_and_by_split(tmp_path: Path) -> None:
    for split, count in (("train", 25), ("test", 5)):
        write_rows(tmp_path / f"x-{split}.tfrecord", [{"blob": bytes([255]) * 3000, "n": n} for n in range(count)])
    report = export_webdataset(tmp_path / "x-*", tmp_path / "out", shard_size="50KB")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["test-000000.tar", "train-000000.tar", "train-000001.tar", "train-000002.tar"]
    assert report.files == 4
    train = read_tars(*(tmp_path / "out" / name for name in names[1:]))
    assert sorted(value["n"] for name, value in train.items() if name.endswith(".json")) == list(range(25))


def test_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "a", [{"n": number, "x/y": [1, 2]} for number in range(5)])
    export_webdataset(source, tmp_path / "1.tar")
    export_webdataset(source, tmp_path / "2.tar")
    assert (tmp_path / "1.tar").read_bytes() == (tmp_path / "2.tar").read_bytes()


def test_hostile_keys_are_made_safe_and_reported(tmp_path: Path) -> None:
    keys = ["../up", "/abs", "a.b", "__meta", "x", "X", "x"]
    rows = [{"__key__": key, "n": number} for number, key in enumerate(keys)]
    report = export_webdataset(write_rows(tmp_path / "a", rows), tmp_path / "x.tar")
    members = read_tars(tmp_path / "x.tar")
    assert list(members) == [f"{key}.n.cls" for key in ("up", "abs", "a_b", "meta", "x", "X-2", "x-3")]
    assert report.num_renamed == 6
    assert [problem.reason for problem in tfrkit.sources.webdataset(str(tmp_path / "x.tar")).scan("").problems] == []


def test_bytes_that_are_not_text_are_reported(tmp_path: Path) -> None:
    rows = [{"a/list": [b"\xff", b"x"]}, {"a/list": [b"y"]}]
    report = export_webdataset(write_rows(tmp_path / "a", rows), tmp_path / "x.tar")
    assert read_tars(tmp_path / "x.tar")["00000000.a.json"] == {"list": [{"base64": "/w=="}, "x"]}
    assert "feature 'a/list' has bytes that are not text" in report.notes[0]


def test_what_is_no_sample_is_refused_or_skipped(tmp_path: Path) -> None:
    rows = [{"context": {"a": 1}, "feature_lists": {"b": [[1], [2]]}}]
    with pytest.raises(SchemaError, match="expected Examples, got SequenceExamples"):
        export_webdataset(write_rows(tmp_path / "a", rows), tmp_path / "out")
    source = write_rows(tmp_path / "b", [{"x": 1}, {}, {"x": 2}])
    with pytest.raises(CodecError, match="expected at least one feature, got none - at .*, record 1, byte"):
        export_webdataset(source, tmp_path / "out")
    report = export_webdataset(source, tmp_path / "out", on_bad="skip")
    assert (report.records, [finding.record for finding in report.skipped]) == (2, [1])
    with pytest.raises(SchemaError, match="features 'A' and 'a' would both be"):
        export_webdataset(write_rows(tmp_path / "c", [{"A": b"\xff", "a": b"\xff"}]), tmp_path / "c.tar")
    with pytest.raises(ValueError, match="size expected a number of bytes"):
        export_webdataset(source, tmp_path / "out2", shard_size="big")


def test_keys_with_slashes_are_inner_objects_where_that_can_be() -> None:
    assert nest_keys({"a/b": 1, "a/c/d": 2}) == {"a": {"b": 1, "c": {"d": 2}}}
    assert nest_keys({"a": 1, "a/b": 2}) == {"a": 1, "a/b": 2}
    assert nest_keys({"/x": 1, "y/": 2}) == {"/x": 1, "y/": 2}
