"""`tfr export`: each format, and the shared options."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

from tfrkit.testing.commands import run_command
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import encode_example, write_frames


def files_of(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_export_images_says_what_it_wrote(tfr, sample: Path) -> None:
    done = tfr("export", "images", "sample.tfrecord", "-o", "out")
    nbytes = sum(path.stat().st_size for path in (sample.parent / "out").iterdir())
    assert done.lines == [f"out: 10 records, 10 images, labels.csv, {nbytes:,} bytes"]
    assert done.err == ""
    assert files_of(sample.parent / "out") == {*(f"{number:06d}.png" for number in range(10)), "labels.csv"}


def test_export_images_of_one_record(tfr, sample: Path) -> None:
    tfr("export", "images", "sample.tfrecord", "-o", "out", "-n", "1")
    assert len(list((sample.parent / "out").rglob("*.png"))) == 1
    assert "0 is not in the range x>=1" in tfr("export", "images", "sample.tfrecord", "-o", "o", "-n", "0", code=2).err


def test_export_images_of_class_folders_is_the_identity(tfr, sample: Path) -> None:
    root = sample.parent
    tfr("export", "images", "sample.tfrecord", "-o", "in/cat", "--label", "weight")
    (root / "in/cat/labels.csv").rename(root / "labels.csv")
    tfr("build", "class-folders", "in", "-o", "built", "--jobs", "1", "--split", "test=3", "--progress", "none")
    report = tfr("export", "images", "built", "-o", "back", "--format", "json").json
    assert (report["records"], report["renamed"], report["skipped"]) == (10, [], [])
    assert {name.partition("/")[2] for name in files_of(root / "back")} == files_of(root / "in")


def test_export_lists_what_was_renamed_and_skipped_and_exits_1(tfr, tmp_path: Path, sample: Path) -> None:
    image = sample.read_bytes() and (b"\x89PNG\r\n\x1a\n" + bytes(30))
    rows = [{b"image": ("bytes", [image]), b"filename": ("bytes", [b"../\x1b[31mx"])}, {b"filename": ("bytes", [b"y"])}]
    records = [encode_example(row) for row in [*rows, *rows[:1] * 2]]
    (tmp_path / "a.tfrecord").write_bytes(write_frames(records))
    failed = tfr("export", "images", "a.tfrecord", "-o", "out", "--image", "image", code=3)
    assert "got none - at a.tfrecord, record 1, byte" in failed.err
    assert not (tmp_path / "out").exists()
    done = tfr("export", "images", "a.tfrecord", "-o", "out", "--image", "image", "--on-bad", "skip", code=1)
    assert done.lines[0].startswith("skipped: a.tfrecord, record 1, byte ")
    assert done.lines[1] == "renamed: ../\\x1b[31mx -> \\x1b[31mx"
    assert done.lines[-1].startswith("out: 3 records, 3 images, ")
    assert "\x1b" not in done.out


def test_export_jsonl_to_stdout_keeps_it_clean(tfr, sample: Path) -> None:
    done = tfr("export", "jsonl", "sample.tfrecord", "-o", "-", "--select", "label", "--select", "text")
    rows = [json.loads(line) for line in done.lines]
    assert [row["label"] for row in rows] == list(range(10))
    assert "text" not in rows[4]
    assert done.err.startswith("standard output: 10 records, 1 file, ")
    assert tfr("export", "jsonl", "sample.tfrecord", "-o", "-", "-q").err == ""


def test_export_reads_stdin(tfr, sample: Path) -> None:
    data = sample.read_bytes()
    done = tfr("export", "csv", "-", "-o", "-", "--select", "label", stdin=data)
    assert done.lines == ["label", *map(str, range(10))]
    broken = flip(data, frame_offsets(data)[3] + 20)
    assert "- at -, record 3, byte" in tfr("export", "jsonl", "-", "-o", "x", stdin=broken, code=3).err
    assert not sample.with_name("x").exists()


def test_export_to_stdout_reports_damage_before_the_first_line(tfr) -> None:
    data = write_frames([encode_example({b"x": ("int64", [number])}) for number in range(2000)])
    broken = flip(data, frame_offsets(data)[1999] + 14)
    done = tfr("export", "jsonl", "-", "-o", "-", stdin=broken, code=3)
    assert "record 1999, byte" in done.err
    assert done.out == ""


def test_export_parquet_and_npz(tfr, sample: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    tfr("export", "parquet", "sample.tfrecord", "-o", "x.parquet", "--compression", "gzip")
    table = parquet.read_table(sample.with_name("x.parquet"))
    assert table.column("label").to_pylist() == list(range(10))
    assert table.column("text").to_pylist()[3:5] == ["grüße 3", None]
    tfr("export", "npz", "sample.tfrecord", "-o", "x.npz", "--select", "tokens")
    with np.load(sample.with_name("x.npz"), allow_pickle=False) as arrays:
        assert arrays["tokens/row_splits"].tolist() == np.cumsum([0, *range(0, 30, 3)]).tolist()


def test_export_webdataset(tfr, sample: Path) -> None:
    done = tfr("export", "webdataset", "sample.tfrecord", "-o", "tars", "--shard-size", "20KB", "--format", "json")
    assert done.json["files"] == len(files_of(sample.parent / "tars")) > 1
    with tarfile.open(sample.parent / "tars" / "data-000000.tar") as archive:
        assert {name.partition(".")[2] for name in archive.getnames()} == {
            "png", "cls", "json", "tokens.npy", "txt"
        }  # fmt: skip


@pytest.mark.parametrize("kind", ["voc", "yolo", "coco"])
def test_export_of_boxes(tfr, tmp_path: Path, sample: Path, kind: str) -> None:
    assert "expected boxes" in tfr("export", kind, "sample.tfrecord", "-o", "out", code=3).err
    sides = {f"image/object/bbox/{side}".encode(): ("float", [value]) for side, value in
             zip(("xmin", "ymin", "xmax", "ymax"), (0.25, 0.25, 0.5, 0.75), strict=True)}  # fmt: skip
    from PIL import Image

    Image.new("RGB", (8, 8)).save(tmp_path / "x.png")
    row = {b"image/encoded": ("bytes", [(tmp_path / "x.png").read_bytes()]), **sides}
    row[b"image/object/class/text"] = ("bytes", [b"cat"])
    (tmp_path / "b.tfrecord").write_bytes(write_frames([encode_example(row)] * 2))
    assert tfr("export", kind, "b.tfrecord", "-o", "out", "--format", "json").json["records"] == 2
    expected = {"voc": "Annotations/000001.xml", "yolo": "labels/000001.txt", "coco": "annotations.json"}
    assert expected[kind] in files_of(tmp_path / "out")
    row[b"kind"] = row.pop(b"image/object/class/text")
    (tmp_path / "b.tfrecord").write_bytes(write_frames([encode_example(row)]))
    note = "no classes of boxes were found, all are 'object'; name their feature: --names FEATURE"
    assert note in tfr("export", kind, "b.tfrecord", "-o", "one").err
    assert note not in tfr("export", kind, "b.tfrecord", "-o", "two", "--names", "kind").err


def test_export_replaces_nothing_unasked(tfr, sample: Path) -> None:
    tfr("export", "images", "sample.tfrecord", "-o", "out")
    assert "replace it: --force" in tfr("export", "images", "sample.tfrecord", "-o", "out", code=3).err
    tfr("export", "images", "sample.tfrecord", "-o", "out", "--force")
    holds = tfr("export", "images", "sample.tfrecord", "-o", ".", "--force", code=3).err
    assert "the output holds the files to read" in holds


def test_export_refuses_what_it_cannot_do(tfr, sample: Path, raw: Path, sequences: Path) -> None:
    assert "Missing" in tfr("export", "images", "sample.tfrecord", code=2).err
    assert "expected records that are Examples" in tfr("export", "images", "lines.tfrecord", "-o", "x", code=3).err
    assert "expected records that are Examples" in tfr("export", "parquet", "lines.tfrecord", "-o", "x", code=3).err
    assert "got SequenceExamples" in tfr("export", "webdataset", "sequences.tfrecord", "-o", "x", code=3).err
    assert (
        "size expected" in tfr("export", "webdataset", "sample.tfrecord", "-o", "x", "--shard-size", "1Q", code=2).err
    )
    assert (
        "cannot write parquet to standard output" in tfr("export", "parquet", "sample.tfrecord", "-o", "-", code=3).err
    )
    assert not sample.with_name("x").exists()
    assert "no file matches" in tfr("export", "jsonl", "nothing-*", "-o", "x", code=3).err


def test_export_reads_folders_with_compressed_and_empty_shards(tfr, shards: Path) -> None:
    done = tfr("export", "jsonl", "data", "-o", "out/")
    assert done.lines[0].startswith("out/: 10 records, 1 file, ")
    assert len((shards.parent / "out" / "train.jsonl").read_text().splitlines()) == 10


@pytest.mark.parametrize(("kind", "name"), [("csv", "x.csv"), ("jsonl", "x.jsonl"), ("npz", "x.npz"), ("images", "x")])
def test_export_makes_missing_folders_and_leaves_none_where_it_fails(
    kind: str, name: str, sample: Path, tmp_path: Path
) -> None:
    output = tmp_path / "new" / "folder" / name
    assert run_command(["export", kind, str(sample), "-o", str(output)]).exit_code == 0
    assert output.exists()
    bad = tmp_path / "bad.tfrecord"
    bad.write_bytes(sample.read_bytes()[:-3])
    assert run_command(["export", kind, str(bad), "-o", str(tmp_path / "other" / "folder" / name)]).exit_code == 3
    assert not (tmp_path / "other").exists()
