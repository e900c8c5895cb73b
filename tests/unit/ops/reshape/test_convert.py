from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

import tfrkit
from tfrkit import tools
from tfrkit.errors import CodecError, FeatureKindError, MissingFeatureError, SchemaError, StorageError
from tfrkit.ops.reshape.convert import convert
from tfrkit.testing.reference import encode_example, encode_sequence_example, write_frames

RECORDS = [
    encode_example(
        {
            b"label": ("int64", [number % 3]),
            b"image": ("bytes", [bytes(range(200)) * 3]),
            b"size": ("bytes", [b"%d" % number]),
        }
    )
    for number in range(50)
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.tfrecord"
    path.write_bytes(write_frames(RECORDS))
    return path


@pytest.mark.parametrize("level", ["fast", "default", "small"])
def test_gzip_is_one_member_and_back_again_is_the_identity(source: Path, tmp_path: Path, level: Any) -> None:
    made = convert(source, tmp_path / "out.tfrecord", compression="gzip", level=level)
    inflate = zlib.decompressobj(31)
    assert inflate.decompress((tmp_path / "out.tfrecord").read_bytes()) == source.read_bytes()
    assert (inflate.eof, inflate.unused_data) == (True, b"")
    assert made.nbytes < source.stat().st_size
    convert(tmp_path / "out.tfrecord", tmp_path / "back.tfrecord", compression="none")
    assert (tmp_path / "back.tfrecord").read_bytes() == source.read_bytes()


def test_folder_keeps_the_names_of_its_files(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "train-00000-of-00002.tfrecord").write_bytes(write_frames(RECORDS[:20]))
    (folder / "train-00001-of-00002.tfrecord").write_bytes(gzip.compress(write_frames(RECORDS[20:])))
    (folder / "empty.tfrecord").write_bytes(b"")
    made = convert(folder, tmp_path / "out", compression="zlib")
    assert [(Path(file.path).name, file.split, file.records) for file in made.files] == [
        ("empty.tfrecord", None, 0),
        ("train-00000-of-00002.tfrecord", "train", 20),
        ("train-00001-of-00002.tfrecord", "train", 30),
    ]
    assert list(tfrkit.open(f"{tmp_path}/out/train*").records()) == RECORDS
    assert zlib.decompress((tmp_path / "out" / "empty.tfrecord").read_bytes()) == b""


def test_files_of_one_name_are_named_with_their_folders(tmp_path: Path) -> None:
    for number, name in enumerate(("train", "test")):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "x.tfrecord").write_bytes(write_frames(RECORDS[: 20 + number]))
    convert(tmp_path / "in", tmp_path / "out", compression="gzip")
    ds = tfrkit.open(tmp_path / "out")
    assert {name: len(ds[name]) for name in ds.splits} == {"train": 20, "test": 21}
    assert sorted(path.name for path in (tmp_path / "out").glob("*.tfrecord")) == [
        "test-x.tfrecord",
        "train-x.tfrecord",
    ]


def test_file_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tfrecord").write_bytes(write_frames(RECORDS))
    with pytest.raises(StorageError, match="a file would be written twice - at .*x.tfrecord"):
        convert([tmp_path / "x.tfrecord", tmp_path / "x.tfrecord"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_features_are_dropped_renamed_and_cast(source: Path, tmp_path: Path) -> None:
    convert(source, tmp_path / "out.tfrecord", drop=["image"], rename={"label": "class"}, cast={"size": "int64"})
    rows = list(tfrkit.open(tmp_path / "out.tfrecord"))
    assert rows == [{"class": number % 3, "size": number} for number in range(50)]


def test_ids_without_names_keep_their_numbers_and_get_names(source: Path, tmp_path: Path) -> None:
    convert(source, tmp_path / "out.tfrecord", classes={"label": ["cat", "dog", "fish"]})
    assert (tmp_path / "out.tfrecord").read_bytes() == source.read_bytes()
    assert tfrkit.open(tmp_path / "out.tfrecord").schema["label"].classes == ("cat", "dog", "fish")
    with pytest.raises(SchemaError, match="class 2 of feature 'label' is not in the new classes - at .*, record 2"):
        convert(source, tmp_path / "few.tfrecord", classes={"label": ["cat", "dog"]})
    assert not (tmp_path / "few.tfrecord").exists()


@pytest.mark.parametrize("rename", [None, {"label": "kind"}], ids=["", "renamed"])
def test_ids_follow_their_names_into_new_classes(source: Path, tmp_path: Path, rename: dict[str, str] | None) -> None:
    convert(source, tmp_path / "named.tfrecord", classes={"label": ["cat", "dog", "fish"]})
    convert(
        tmp_path / "named.tfrecord",
        tmp_path / "out.tfrecord",
        classes={"label": ["ant", "fish", "dog", "cat"]},
        rename=rename,
    )
    ds = tfrkit.open(tmp_path / "out.tfrecord")
    name = "kind" if rename else "label"
    assert ds.schema[name].classes == ("ant", "fish", "dog", "cat")
    assert [row[name] for row in ds] == [[3, 2, 1][number % 3] for number in range(50)]


def test_new_classes_of_boxes_start_where_the_old_ones_start(tmp_path: Path) -> None:
    """Ids of detection datasets start at 1; the files of names follow, and gaps stay gaps."""
    schema = tfrkit.Schema({"ids": tfrkit.Spec("int64", (None,), classes=("unused 0", "cat", "dog"))})
    tfrkit.build([{"ids": [1, 2, 1]}, {"ids": [2]}], tmp_path / "in", schema=schema)
    (tmp_path / "in" / "classes.txt").write_text("1:cat\n2:dog\n")
    (tmp_path / "in" / "label_map.pbtxt").write_text("item { id: 1 name: 'cat' }\nitem { id: 2 name: 'dog' }\n")
    convert(tmp_path / "in", f"{tmp_path}/out/", classes={"ids": ["dog", "cow", "cat"]})
    ds = tfrkit.open(tmp_path / "out")
    assert [row["ids"].tolist() for row in ds] == [[3, 1, 3], [1]]
    assert ds.schema["ids"].classes == ("unused 0", "dog", "cow", "cat")
    assert (tmp_path / "out" / "classes.txt").read_text() == "1:dog\n2:cow\n3:cat\n"
    assert "id: 3\n  name: 'cat'" in (tmp_path / "out" / "label_map.pbtxt").read_text()


def test_classes_of_what_holds_no_ids_are_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(FeatureKindError, match="feature 'size' expected class ids, got bytes - at .*, record 0"):
        convert(source, tmp_path / "out.tfrecord", classes={"size": ["a"]})
    with pytest.raises(ValueError, match="feature 'label' expected a new kind or new classes, got both"):
        convert(source, tmp_path / "out.tfrecord", classes={"label": ["a"]}, cast={"label": "bytes"})
    with pytest.raises(MissingFeatureError, match="no feature 'lable', did you mean 'label'"):
        convert(source, tmp_path / "out.tfrecord", classes={"lable": ["a", "b", "c"]})


def test_kept_features_are_copied_as_they_are(source: Path, tmp_path: Path) -> None:
    convert(source, tmp_path / "out.tfrecord", keep=["label", "image", "size"])
    assert (tmp_path / "out.tfrecord").read_bytes() == source.read_bytes()


def test_sequence_examples_are_edited(tmp_path: Path) -> None:
    records = [
        encode_sequence_example({b"name": ("bytes", [b"x"])}, {b"frame": [("int64", [number])] * 2})
        for number in range(3)
    ]
    (tmp_path / "in.tfrecord").write_bytes(write_frames(records))
    convert(tmp_path / "in.tfrecord", tmp_path / "out.tfrecord", cast={"frame": "float"}, drop=["name"])
    rows = list(tfrkit.open(tmp_path / "out.tfrecord"))
    assert [list(map(float, row["feature_lists"]["frame"])) for row in rows] == [[0, 0], [1, 1], [2, 2]]


def test_name_that_no_record_has_is_reported_and_nothing_written(source: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingFeatureError, match="no feature 'lable', did you mean 'label', in no record"):
        convert(source, tmp_path / "out.tfrecord", drop=["lable"])
    assert [path.name for path in tmp_path.iterdir()] == ["in.tfrecord"]


def test_new_name_or_part_in_an_edit_names_what_to_write(source: Path, tmp_path: Path) -> None:
    renamed = "no feature 'new', in no record .*\n  features are named as they are before they are renamed"
    with pytest.raises(MissingFeatureError, match=renamed):
        convert(source, tmp_path / "out.tfrecord", rename={"label": "new"}, cast={"new": "bytes"})
    record = encode_sequence_example({b"x": ("int64", [1])}, {b"x": [("int64", [1])]})
    (tmp_path / "seq.tfrecord").write_bytes(write_frames([record]))
    both = "no feature 'context.x'.*\n  context and feature lists are edited alike: x"
    with pytest.raises(MissingFeatureError, match=both):
        convert(tmp_path / "seq.tfrecord", tmp_path / "out.tfrecord", drop=["context.x"])


def test_value_that_does_not_fit_names_the_record(source: Path, tmp_path: Path) -> None:
    source.write_bytes(write_frames([*RECORDS, encode_example({b"size": ("bytes", [b"large"])})]))
    with pytest.raises(
        FeatureKindError, match=r"feature 'size' cannot be cast.*b'large'.* - at .*in.tfrecord, record 50"
    ):
        convert(source, tmp_path / "out.tfrecord", cast={"size": "int64"})
    assert [path.name for path in tmp_path.iterdir()] == ["in.tfrecord"]


def test_two_features_of_one_name_name_the_record(source: Path, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="two features would be called 'size'.*record 0"):
        convert(source, tmp_path / "out.tfrecord", rename={"label": "size"})


def test_records_that_are_no_examples_are_copied_but_not_edited(tmp_path: Path) -> None:
    (tmp_path / "raw.tfrecord").write_bytes(write_frames([b"text"] * 5))
    assert convert(tmp_path / "raw.tfrecord", tmp_path / "out.tfrecord", compression="xz").records == 5
    with pytest.raises(CodecError, match="expected an Example.*record 0"):
        convert(tmp_path / "raw.tfrecord", tmp_path / "other.tfrecord", drop=["x"])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"cast": {"size": "double"}}, "cast of 'size' expected one of bytes, float, int64, got 'double'"),
        ({"drop": ["a"], "rename": {"a": "b"}}, "feature 'a' is left out and cannot be edited or kept"),
        ({"keep": ["a"], "cast": {"b": "int64"}}, "feature 'b' is left out"),
        ({"rename": {"a": "x", "b": "x"}}, "two features would be called 'x'"),
    ],
)
def test_edits_that_contradict_each_other_are_refused(
    source: Path, tmp_path: Path, options: dict[str, Any], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        convert(source, tmp_path / "out.tfrecord", **options)


def test_tfds_metadata_follows_the_edits(source: Path, tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("0:cat\n1:dog\n2:owl\n")
    tools.split(source, tmp_path / "data", {"train": 0.5, "test": 0.5})
    convert(tmp_path / "data", tmp_path / "out", rename={"label": "class"}, drop=["image"])
    features = json.loads((tmp_path / "out" / "features.json").read_text())["featuresDict"]["features"]
    assert sorted(features) == ["class", "size"]
    info = json.loads((tmp_path / "out" / "dataset_info.json").read_text())
    assert [split["name"] for split in info["splits"]] == ["test", "train"]
    made = convert(tmp_path / "data", tmp_path / "packed", compression="gzip")
    assert "TFDS reads no shards compressed with gzip; dataset_info.json was left out" in made.notes
    assert (tmp_path / "packed" / "features.json").exists()
    assert not (tmp_path / "packed" / "dataset_info.json").exists()
    assert tfrkit.open(tmp_path / "packed").splits == {"test": 25, "train": 25}
