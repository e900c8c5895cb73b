from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrkit
from tfrkit._limits import LIMITS
from tfrkit.errors import (
    CorruptRecordError,
    FeatureKindError,
    MissingFeatureError,
    QueryError,
    SchemaError,
    ShapeError,
    StorageError,
)
from tfrkit.ops.edit import edit as edit_module
from tfrkit.ops.edit.edit import edit
from tfrkit.ops.index import make_index
from tfrkit.ops.verify.verify import verify
from tfrkit.testing.reference import encode_example, encode_sequence_example, write_frames

pytest.importorskip("duckdb")


def make_row(number: int) -> dict[str, Any]:
    return {"id": number, "label": number // 10, "name": f"n{number}", "image": bytes(range(200)), "xy": [0.5, number]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Train in three shards of ten, each with its label; test in one of eight."""
    rows = [make_row(number) for number in range(38)]
    tfrkit.build(rows, tmp_path / "d", splits={"test": 8}, seed=0, shards={"train": 3, "test": 1})
    return tmp_path / "d"


def read_all(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def shard_of(folder: Path, number: int) -> Path:
    """The shard that holds the row of an id."""
    for path in sorted(folder.glob("d-*-of-*")):
        if any(row["id"] == number for row in tfrkit.open(path)):
            return path
    raise AssertionError(number)


def test_copy_changes_one_feature_of_one_record_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    before = read_all(folder)
    made = edit(folder, tmp_path / "out", where="id = 17", set={"label": "3"})
    assert (made.changed, made.dropped, made.records, made.is_written) == (1, 0, 38, True)
    assert read_all(folder) == before
    after = read_all(tmp_path / "out")
    touched = shard_of(folder, 17).name
    index = f"_index/{touched}.tfidx"
    assert {name for name in before if before[name] != after[name]} == {touched, index, "tfrkit.json"} - (
        {index} if before[index] == after[index] else set()
    )
    assert after.keys() == before.keys()
    old, new = tfrkit.open(folder), tfrkit.open(tmp_path / "out")
    assert old.splits == new.splits
    pairs = zip(old.records(), new.records(), strict=True)
    assert sum(bytes(one) != bytes(other) for one, other in pairs) == 1
    labels = {row["id"]: row["label"] for row in new}
    assert labels == {**{row["id"]: row["label"] for row in old}, 17: 3}
    assert verify(tmp_path / "out", sha256=True).findings == []


def test_in_place_is_the_copy_byte_for_byte(folder: Path, tmp_path: Path) -> None:
    edit(folder, tmp_path / "out", where="label = 1", set={"label": "label + 1", "name": "upper(name)"})
    kept = {path: path.stat().st_ino for path in folder.glob("d-*")}
    made = edit(folder, where="label = 1", set={"label": "label + 1", "name": "upper(name)"}, in_place=True)
    assert made.changed == 10
    assert read_all(folder) == read_all(tmp_path / "out")
    touched = {Path(file.path) for file in made.files if file.changed}
    assert {path for path, inode in kept.items() if path.stat().st_ino != inode} == touched


def test_values_that_are_there_already_are_no_change(folder: Path, tmp_path: Path) -> None:
    before = read_all(folder)
    for options in ({"output": tmp_path / "out"}, {"in_place": True}, {"dry_run": True}):
        made = edit(folder, where="label = 1", set={"label": "1"}, **options)  # type: ignore[arg-type]
        assert (made.changed, made.is_written) == (0, False)
        assert made.notes[-1] == "10 records match, and have these values already"
    made = edit(folder, tmp_path / "out", set={"label": "greatest(label, 1)"})
    assert made.changed == 10
    assert read_all(folder) == before


@pytest.mark.parametrize("options", [{"output": "out"}, {"in_place": True}, {"dry_run": True}])
def test_condition_that_is_true_for_none_writes_nothing(folder: Path, options: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(folder.parent)
    before = read_all(folder.parent)
    made = edit("d", where="label = 99", set={"label": "1"}, **options)
    assert (made.changed, made.is_written, made.notes) == (0, False, ["the condition is true for no record"])
    assert read_all(folder.parent) == before


def test_drop_keeps_counts_in_sidecars(folder: Path) -> None:
    made = edit(folder, where="label in (0, 3)", drop=True, in_place=True)
    assert (made.dropped, made.records) == (18, 20)
    assert verify(folder, sha256=True).findings == []
    manifest = json.loads((folder / "tfrkit.json").read_text())
    assert {row["name"]: row["records"] for row in manifest["shards"]} == {
        Path(file.path).name: file.records for file in made.files
    }
    assert sum(split["records"] for split in manifest["splits"].values()) == 20
    info = json.loads((folder / "dataset_info.json").read_text())
    for split in info["splits"]:
        rows = [row for row in manifest["shards"] if row["split"] == split["name"]]
        assert split["shardLengths"] == [str(row["records"]) for row in rows]
        assert int(split["numBytes"]) == sum(row["nbytes"] for row in rows)
    assert manifest["changes"][0]["options"] == {"where": "label in (0, 3)", "drop": True}
    assert manifest["changes"][0]["dropped"] == 18


def test_edited_dataset_is_not_taken_for_a_finished_build(folder: Path) -> None:
    rows = [make_row(number) for number in range(38)]
    edit(folder, where="id = 1", set={"label": "3"}, in_place=True)
    with pytest.raises(StorageError, match="a finished dataset exists, made from other inputs or options"):
        tfrkit.build(rows, folder, splits={"test": 8}, seed=0, shards={"train": 3, "test": 1})


def test_drop_of_everything_and_of_a_whole_split(folder: Path) -> None:
    with pytest.raises(QueryError, match="true for all 38 records, expected some to be left"):
        edit(folder, where="id >= 0", drop=True, in_place=True)
    ids = [row["id"] for row in tfrkit.open(folder)["test"]]
    made = edit(folder, where=f"id in {tuple(ids)}", drop=True, in_place=True)
    assert made.notes == ["no record of split 'test' is left"]
    assert tfrkit.open(folder).splits == {"train": 30, "test": 0}
    assert verify(folder).findings == []


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ({"lable": "1"}, MissingFeatureError, "no feature 'lable', did you mean 'label'.*\n.*features: id, image"),
        ({"label": "'1'"}, FeatureKindError, r"got VARCHAR\n  .*give a number; text of digits: \(...\)::bigint"),
        ({"label": "1.5"}, FeatureKindError, r"expected int64, got DECIMAL\(2,1\)"),
        ({"label": "[1]"}, ShapeError, r"'label' expected one value, got a list \(INTEGER\[\]\)"),
        (
            {"label": "1::hugeint << 70"},
            FeatureKindError,
            "int64, got 1180591620717411303424, which does not fit - at ",
        ),
        ({"label": "null"}, SchemaError, "is in every record, got NULL for it - at .*, record 0"),
        ({"xy": "1.5"}, ShapeError, "expected a list of float values, got one value"),
        ({"xy": "[1.5]"}, ShapeError, "'xy' expected 2 values, got 1 - at .*d-t.*, record 0"),
        ({"xy": "[1.5, null]"}, SchemaError, "'xy' expected values, got NULL in a list"),
        ({"xy": "[1e300, 0]"}, FeatureKindError, r"32-bit float, got 1e\+300, which does not fit"),
        ({"xy": "[16777217, 0]"}, FeatureKindError, r"'xy' would round 16777217 to 16777216\.0 in a float32 list"),
        (
            {"xy": "[0, 0.1]"},
            FeatureKindError,
            r"round 0\.1 to 0\.1000.* in a float32.*\n  round it: \(...\)::float\[\]",
        ),
        ({"xy": "[0, 0.1::double]"}, FeatureKindError, r"'xy' would round 0\.1 to 0\.10000000149011612"),
        ({"name": "label"}, FeatureKindError, r"'name' expected bytes, got BIGINT\n.*::varchar"),
        ({"label": "label +"}, QueryError, "syntax error.* - at character 8 of the value of 'label'"),
        ({"label": "lable + 1"}, QueryError, "no column lable, did you mean label - at character 1 of the value of"),
        ({"label": "1, 2"}, QueryError, "expected one expression, got several, '1, 2'\n  one for each feature"),
        ({"label": "1 from x"}, QueryError, 'syntax error at or near "from" - at character 3 of the value'),
        ({"label": "unnest([1, 2])"}, QueryError, r"expected one value for each record, got unnest\(\)"),
        ({"name": "name::int::varchar"}, QueryError, "could not convert string 'n"),
    ],
)
def test_wrong_values_are_refused(folder: Path, values: dict[str, str], kind: Any, message: str) -> None:
    before = read_all(folder)
    with pytest.raises(kind, match=message):
        edit(folder, set=values, in_place=True)
    assert read_all(folder) == before


def test_wrong_conditions_point_at_their_place(folder: Path) -> None:
    with pytest.raises(
        QueryError, match=r'"=" - at character 9 of the condition\n  label = = 3\n          \^'
    ) as caught:
        edit(folder, where="label = = 3", drop=True, dry_run=True)
    assert caught.value.position == 8
    with pytest.raises(QueryError, match="no column lable, did you mean label - at character 1 of the condition"):
        edit(folder, where="lable = 3 -- a comment", drop=True, dry_run=True)
    with pytest.raises(QueryError, match="a bracket is closed that was not opened - at character 2 of"):
        edit(folder, where="1); select (2", drop=True, dry_run=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "expected values to set, or drop, got neither"),
        ({"set": {"label": "1"}, "drop": True, "where": "true"}, "got both"),
        ({"drop": True}, "expected a condition for records to drop, got none"),
        ({"set": {"label": "1"}}, "expected a place for the result, got none"),
        ({"set": {"label": "1"}, "in_place": True, "output": "x"}, "either an output or in place, got both"),
        ({"set": {"label": "1"}, "output": "-"}, "got standard output"),
        ({"set": {"label": "1"}, "output": "x.tfrecord"}, "4 files go into a folder, got the name of one file"),
    ],
)
def test_wrong_arguments(folder: Path, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        edit(folder, **options)


def test_floats_are_rounded_by_a_cast_and_stored_if_exact(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with tfrkit.Writer(path, floats="float32") as writer:
        writer.write({"f": 0.3})
    values = ["0.1::float", "0.25", "f * 2", "'nan'::float", "'-inf'::float"]
    found = []
    for number, value in enumerate(values):
        edit(path, tmp_path / f"{number}.tfrecord", set={"f": value})
        found.append(next(iter(tfrkit.open(tmp_path / f"{number}.tfrecord")))["f"])
    assert [f"{one:.6g}" for one in found] == ["0.1", "0.25", "0.6", "nan", "-inf"]


def test_classes_are_set_by_name_and_held_against_the_list(tmp_path: Path) -> None:
    schema = tfrkit.Schema({"label": tfrkit.Spec("int64", logical="class_label", classes=("cat", "dog"))})
    tfrkit.build([{"label": number % 2} for number in range(6)], tmp_path / "d", schema=schema)
    edit(tmp_path / "d", where="label_name = 'dog'", set={"label": "'cat'"}, in_place=True)
    assert [row["label"] for row in tfrkit.open(tmp_path / "d")] == [0] * 6
    for value, message in (
        ("2", "'label' expected a class id from 0 to 1, got 2 - at .*, record 0"),
        ("-1", "got -1"),
        ("'dgo'", "has no class 'dgo', did you mean 'dog'"),
    ):
        with pytest.raises(SchemaError, match=message):
            edit(tmp_path / "d", set={"label": value}, in_place=True)


PACK: dict[str, Callable[[bytes], bytes]] = {"none": bytes, "gzip": gzip.compress, "zlib": zlib.compress}


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib", "zstd", "xz"])
def test_compression_of_a_bare_file_stays(tmp_path: Path, compression: Any) -> None:
    path = tmp_path / "x.tfrecord"
    with tfrkit.Writer(path, compression=compression) as writer:
        for number in range(50):
            writer.write(make_row(number))
    head = path.read_bytes()[:2]
    make_index(path)
    edit(path, where="id = 7", set={"label": "77"}, in_place=True)
    assert path.read_bytes()[:2] == head or compression in ("none", "zlib")
    rows = list(tfrkit.open(path))
    assert [row["label"] for row in rows] == [77 if number == 7 else number // 10 for number in range(50)]
    assert verify(path).findings == []  # its index too
    edit(path, tmp_path / "y.tfrecord", where="id < 40", drop=True)
    assert len(tfrkit.open(tmp_path / "y.tfrecord")) == 10
    assert sorted(os.listdir(tmp_path)) == ["_index", "x.tfrecord", "y.tfrecord"]


def test_bare_file_without_an_index_gets_none(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    path.write_bytes(write_frames([encode_example({b"a": ("int64", [number])}) for number in range(5)]))
    edit(path, where="a = 2", set={"a": "20"}, in_place=True)
    assert os.listdir(tmp_path) == ["x.tfrecord"]
    assert [row["a"] for row in tfrkit.open(path)] == [0, 1, 20, 3, 4]


def test_index_of_dali_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    path.write_bytes(write_frames([encode_example({b"a": ("int64", [number])}) for number in range(5)]))
    make_index(path, dali=True)
    edit(path, where="a = 2", set={"a": "2000000"}, in_place=True)
    expected = tmp_path / "x.tfrecord.idx"
    written = expected.read_text()
    make_index(path, dali=True)
    assert expected.read_text() == written


def test_name_in_both_parts_of_a_sequence_example_has_to_say_which(tmp_path: Path) -> None:
    frames = {b"x": [("int64", [1, 2]), ("int64", [3])]}
    path = tmp_path / "a.tfrecord"
    path.write_bytes(write_frames([encode_sequence_example({b"x": ("int64", [n])}, frames) for n in range(3)]))
    before = path.read_bytes()
    both = r"'x' is in both parts, context\.x and feature_lists\.x\n  name it: context\.x"
    with pytest.raises(QueryError, match=both):
        edit(path, set={"x": "9"}, in_place=True)
    for name in ("feature_lists.x", "feature_lists/x"):
        with pytest.raises(FeatureKindError, match=f"'{name}' is a list of frames"):
            edit(path, set={name: "9"}, in_place=True)
    assert path.read_bytes() == before
    edit(path, set={"context.x": "context.x + 9"}, in_place=True)
    expected = [encode_sequence_example({b"x": ("int64", [n + 9])}, frames) for n in range(3)]
    assert path.read_bytes() == write_frames(expected)


def test_sequence_examples_raw_records_and_absent_features(tmp_path: Path) -> None:
    frames = {b"tokens": [("int64", [1, 2]), ("int64", [3])]}
    path = tmp_path / "seq.tfrecord"
    path.write_bytes(write_frames([encode_sequence_example({b"label": ("int64", [n])}, frames) for n in range(4)]))
    edit(path, where="context.label = 2", set={"context.label": "context.label * 10"}, in_place=True)
    expected = [encode_sequence_example({b"label": ("int64", [n])}, frames) for n in (0, 1, 20, 3)]
    assert list(map(bytes, tfrkit.open(path).records())) == expected
    with pytest.raises(FeatureKindError, match="'tokens' is a list of frames"):
        edit(path, set={"tokens": "1"}, in_place=True)
    path = tmp_path / "raw.tfrecord"
    path.write_bytes(write_frames([b"alpha", b"beta", b"gamma"]))
    edit(path, where="record like '%a%' and record <> 'beta'", set={"record": "upper(record)"}, in_place=True)
    edit(path, where="record = 'beta'", drop=True, in_place=True)
    assert list(map(bytes, tfrkit.open(path).records())) == [b"ALPHA", b"GAMMA"]
    with pytest.raises(MissingFeatureError, match="no feature 'label', the records are not Examples"):
        edit(path, set={"label": "1"}, in_place=True)
    path = tmp_path / "gaps.tfrecord"
    path.write_bytes(
        write_frames(
            [encode_example({b"a": ("int64", [1])}), encode_example({b"a": ("int64", [2]), b"b": ("int64", [5])})]
        )
    )
    edit(path, set={"b": "case when a = 1 then 9 end"}, in_place=True)
    assert [row.get("b") for row in tfrkit.open(path)] == [9, None]


def test_damage_is_named_and_nothing_is_changed(folder: Path) -> None:
    shard = sorted(folder.glob("d-train*"))[1]
    data = bytearray(shard.read_bytes())
    data[1000] ^= 1
    shard.write_bytes(data)
    (folder / "_index" / f"{shard.name}.tfidx").unlink()
    before = read_all(folder)
    with pytest.raises(
        CorruptRecordError, match=rf"checksum mismatch.* - at {shard}, record 3, byte \d+\n  nothing was"
    ):
        edit(folder, where="id = 17", set={"label": "1"}, in_place=True)
    assert read_all(folder) == before


def test_disk_without_room_is_refused_before_anything_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_all(folder)
    monkeypatch.setattr(LIMITS, "spare_nbytes", 1 << 60)
    with pytest.raises(StorageError, match="too little space"):
        edit(folder, where="id = 17", set={"label": "1"}, in_place=True)
    assert read_all(folder) == before


def test_links_and_several_folders_are_refused_in_place(folder: Path, tmp_path: Path) -> None:
    real = sorted(folder.glob("d-train*"))[0]
    (tmp_path / "link.tfrecord").symlink_to(real)
    with pytest.raises(StorageError, match=rf"expected a file, got a link to {real}"):
        edit(tmp_path / "link.tfrecord", set={"label": "1"}, in_place=True)
    with pytest.raises(StorageError, match="expected shards of one folder, got 2"):
        edit([folder, tmp_path / "link.tfrecord"], set={"label": "1"}, dry_run=True)


def test_part_of_a_folder_in_place_leaves_the_rest_of_the_manifest(folder: Path, tmp_path: Path) -> None:
    before = json.loads((folder / "tfrkit.json").read_text())
    edit(f"{folder}/d-test*", where="id > 0", set={"label": "0"}, in_place=True)
    after = json.loads((folder / "tfrkit.json").read_text())
    assert [row["name"] for row in after["shards"]] == [row["name"] for row in before["shards"]]
    assert verify(folder, sha256=True).findings == []
    # A copy of a part has a manifest of that part.
    edit(
        f"{folder}/d-train*",
        tmp_path / "part",
        where="id > 20",
        set={"label": "0"},
    )
    assert tfrkit.open(tmp_path / "part").splits == {"train": 30}
    assert verify(tmp_path / "part", sha256=True).findings == []
    assert [split["name"] for split in json.loads((tmp_path / "part/dataset_info.json").read_text())["splits"]] == [
        "train"
    ]


def test_text_of_a_comment_and_a_quoted_name(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    path.write_bytes(write_frames([encode_example({b"image/height": ("int64", [n])}) for n in range(3)]))
    edit(
        path,
        where='"image/height" = 1 -- the second',
        set={"image/height": '"image/height" + 1 -- more'},
        in_place=True,
    )
    assert [row["image/height"] for row in tfrkit.open(path)] == [0, 2, 2]


def test_shard_that_is_not_touched_is_copied_whatever_it_is(folder: Path, tmp_path: Path) -> None:
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("d-*")}
    for path in (folder / "_index").glob("*.tfidx"):
        path.unlink()  # made for the copy
    made = edit(folder, tmp_path / "out", where="id = 3", set={"label": "1"})
    [touched] = [Path(file.path).name for file in made.files if file.changed]
    for name, digest in digests.items():
        assert (hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == digest) == (name != touched)
    assert verify(tmp_path / "out").findings == []


def test_placeholders_and_gaps_are_no_classes(tmp_path: Path) -> None:
    classes = ("unused 0", "cat", "unused 2", "dog", "eel")
    schema = tfrkit.Schema({"label": tfrkit.Spec("int64", logical="class_label", classes=classes)})
    tfrkit.build([{"label": 1}, {"label": 3}], tmp_path / "d", schema=schema)
    for value in ("0", "2", "5"):
        with pytest.raises(SchemaError, match=f"'label' expected a class id of 1, 3 to 4, got {value}"):
            edit(tmp_path / "d", set={"label": value}, in_place=True)
    with pytest.raises(SchemaError, match="no class 'unused 0'"):
        edit(tmp_path / "d", set={"label": "'unused 0'"}, in_place=True)
    assert edit(tmp_path / "d", set={"label": "'eel'"}, in_place=True).changed == 2


@pytest.mark.parametrize("is_same_shard", [True, False])
def test_change_by_another_process_meanwhile_is_not_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch, is_same_shard: bool
) -> None:
    own = shard_of(folder, 17)
    # For another shard only the manifest would be lost, with its list of changes.
    won = next(number for number in (17, *range(38)) if (shard_of(folder, number) == own) == is_same_shard)
    real = edit_module.find_matches

    def find(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(edit_module, "find_matches", real)
        found = real(*args, **kwargs)
        edit(folder, where=f"id = {won}", set={"name": "'won'"}, in_place=True)
        return found

    monkeypatch.setattr(edit_module, "find_matches", find)
    with pytest.raises(StorageError, match="changed since it was opened") as caught:
        edit(folder, where="id = 17", set={"label": "3"}, in_place=True)
    assert caught.value.hint == "another process changed it meanwhile; run this again"
    assert [row["name"] for row in tfrkit.open(folder) if row["id"] == won] == [b"won"]


def test_records_are_dropped_from_every_stretch_of_a_shard(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "dealt_records", 4)
    made = edit(folder, where="id % 3 = 0", drop=True, in_place=True)
    assert (made.dropped, made.records) == (13, 25)
    left = [row["id"] for row in tfrkit.sql(f"select id from '{folder}' order by id")]
    assert left == [number for number in range(38) if number % 3]


def test_condition_on_a_name_that_several_features_share_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "case.tfrecord"
    records = [encode_example({b"Label": ("int64", [i]), b"label": ("int64", [10 * i])}) for i in range(5)]
    path.write_bytes(write_frames(records))
    with pytest.raises(
        QueryError, match=r"got 'Label' and 'label'.* - at character 1 of the condition\n  write Label_1"
    ):
        edit(path, where="label = 2", set={"label": "5"}, dry_run=True)
    with pytest.raises(QueryError, match=r"got 'Label' and 'label'.* - at character 1 of the value of 'label'"):
        edit(path, where="Label_1 = 2", set={"label": "label + 1"}, dry_run=True)
    edit(path, tmp_path / "new.tfrecord", where="Label_1 = 2", set={"label": "label_2 + 1"})
    assert [row["label"] for row in tfrkit.open(tmp_path / "new.tfrecord")] == [0, 10, 21, 30, 40]
