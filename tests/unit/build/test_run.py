"""Whole builds: files, reports and errors."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit import sources
from tfrkit.build import session
from tfrkit.engines.local import LocalEngine
from tfrkit.errors import ContainerError, SourceError, StorageError
from tfrkit.sources import image_features

LABEL = r"^(?P<class>[a-z]+)"
NAMES = [f"{name}{number:02d}.png" for name in ("apple", "orange") for number in range(10)]


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file but the report, which has a time in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith("report.json")
    }


def rows_of(path: Path) -> list[dict]:
    return list(tfr.open(path))


@pytest.fixture
def fruit(make_images):
    return make_images(NAMES)


# --- the folder


def test_folder_has_shards_index_labels_metadata_and_manifest(fruit, tmp_path):
    report = tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", splits={"test": 5}, shards=2, jobs=1)
    assert set(files_of(tmp_path / "out")) | {"report.json"} == {
        *(f"out-{split}.tfrecord-0000{i}-of-00002" for split in ("train", "test") for i in range(2)),
        *(f"_index/out-{split}.tfrecord-0000{i}-of-00002.tfidx" for split in ("train", "test") for i in range(2)),
        "_index/inputs.tsv.gz",
        "classes.txt",
        "label.labels.txt",
        "features.json",
        "dataset_info.json",
        "tfrkit.json",
        "report.json",
        "skipped.jsonl",
    }
    assert (report.found, report.written, report.ok) == (20, 20, True)
    assert {name: split["records"] for name, split in report.splits.items()} == {"train": 15, "test": 5}


def test_every_input_is_in_exactly_one_split(fruit, tmp_path):
    tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", splits={"test": 5}, jobs=1)
    train = {row["filename"] for row in rows_of(tmp_path / "out" / "out-train*")}
    test = {row["filename"] for row in rows_of(tmp_path / "out" / "out-test*")}
    assert len(test) == 5
    assert train | test == {name.encode() for name in NAMES}
    assert train & test == set()


def test_encoded_bytes_are_kept_and_the_output_is_hardly_larger(make_images, tmp_path):
    root = make_images(["a1.jpg", "b2.png"], size=(200, 150))
    (root / "a1.jpg").write_bytes((root / "a1.jpg").read_bytes() + b"\0" * 200_000)
    report = tfr.build(sources.file_names(root, LABEL), tmp_path / "out", jobs=1)
    for row in rows_of(tmp_path / "out"):
        assert row["image"] == (root / row["filename"].decode()).read_bytes()
    assert report.nbytes_out < 1.05 * report.nbytes_in


def test_manifest_records_source_and_options(fruit, tmp_path):
    tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", splits={"test": 5}, seed=7, jobs=1)
    manifest = json.loads((tmp_path / "out/tfrkit.json").read_text())
    assert manifest["recipe"]["source"] == "file-names"
    assert manifest["recipe"]["options"]["label"] == LABEL
    assert manifest["recipe"]["build"]["seed"] == 7
    assert manifest["splits"]["test"]["records"] == 5
    assert {feature["name"] for feature in manifest["schema"]["features"]} == set(rows_of(tmp_path / "out")[0])
    for shard in manifest["shards"]:
        data = (tmp_path / "out" / shard["name"]).read_bytes()
        assert (shard["nbytes"], shard["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())


def test_report_has_found_written_skipped_and_is_kept(fruit, tmp_path):
    report = tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", jobs=1)
    kept = json.loads((tmp_path / "out/report.json").read_text())
    assert kept == report.to_json()
    assert kept["found"] == kept["written"] == 20
    assert kept["counts"] == {"class": {"apple": 10, "orange": 10}}


def test_single_file_has_its_sidecars_where_no_glob_finds_them(fruit, tmp_path):
    out = tmp_path / "out" / "fruit.tfrecord"
    tfr.build(sources.file_names(fruit, LABEL), out, jobs=1)
    assert sorted(os.listdir(tmp_path / "out")) == ["_index", "fruit.tfrecord"]
    assert (tmp_path / "out/_index/fruit.tfrecord.classes.txt").read_text() == "0:apple\n1:orange\n"
    assert len(tfr.open(out)) == 20


def test_suffix_of_a_single_file_says_its_compression(fruit, tmp_path):
    tfr.build(sources.file_names(fruit, LABEL), tmp_path / "x.tfrecord.gz", jobs=1)
    assert (tmp_path / "x.tfrecord.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert len(tfr.open(tmp_path / "x.tfrecord.gz")) == 20


def test_keys_rename_features_in_records_and_schema(fruit, tmp_path):
    tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", keys={"image": "image/encoded"}, jobs=1)
    assert "image/encoded" in rows_of(tmp_path / "out")[0]
    assert "image" not in rows_of(tmp_path / "out")[0]
    assert "image/encoded" in (tmp_path / "out/features.json").read_text()


def test_key_that_is_not_there_names_the_nearest(fruit, tmp_path):
    with pytest.raises(SourceError, match=r"no feature 'imgae' to rename, there are .*\n  did you mean 'image'"):
        tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", keys={"imgae": "x"}, jobs=1)


def test_two_features_of_one_name_raise(fruit, tmp_path):
    with pytest.raises(SourceError, match="two features would be called 'width'"):
        tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", keys={"height": "width"}, jobs=1)


# --- exactness


@pytest.mark.parametrize("options", [{}, {"shards": 1}, {"compression": "gzip"}, {"shards": 7}], ids=str)
def test_bytes_do_not_depend_on_the_number_of_jobs(fruit, tmp_path, options):
    built = []
    for jobs in (1, 2, 5):
        out = tmp_path / str(jobs) / "out"
        tfr.build(sources.file_names(fruit, LABEL), out, splits={"test": 5}, jobs=jobs, **options)
        built.append(files_of(out))
    assert built[0] == built[1] == built[2]


def test_copied_inputs_give_the_same_bytes(fruit, tmp_path):
    tfr.build(sources.file_names(fruit, LABEL), tmp_path / "a/out", jobs=1)
    os.utime(fruit / NAMES[0], ns=(1, 1))
    tfr.build(sources.file_names(fruit, LABEL), tmp_path / "b/out", jobs=1)
    assert files_of(tmp_path / "a/out") == files_of(tmp_path / "b/out")


def test_seed_decides_the_order(fruit, tmp_path):
    orders = []
    for number, seed in enumerate((0, 0, 1)):
        tfr.build(sources.file_names(fruit, LABEL), tmp_path / str(number), seed=seed, jobs=1)
        orders.append([row["filename"] for row in rows_of(tmp_path / str(number))])
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0])


def test_arrays_that_are_not_split_keep_their_order(tmp_path):
    tfr.build(sources.arrays({"x": np.arange(50)}), tmp_path / "x.tfrecord", jobs=2)
    assert [row["x"] for row in rows_of(tmp_path / "x.tfrecord")] == list(range(50))


def test_arrays_that_are_split_are_mixed(tmp_path):
    tfr.build(sources.arrays({"x": np.arange(50)}), tmp_path / "out", splits={"test": 10}, jobs=1)
    rows = [row["x"] for row in rows_of(tmp_path / "out/out-train*")]
    assert rows != sorted(rows)


def test_order_can_be_chosen(fruit, tmp_path):
    tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", order="source", jobs=1)
    assert [row["filename"].decode() for row in rows_of(tmp_path / "out")] == sorted(NAMES)


# --- iterables


def test_generator_of_rows_becomes_a_dataset(tmp_path):
    rows = ({"x": number, "name": f"n{number}"} for number in range(30))
    report = tfr.build(rows, tmp_path / "out", splits={"test": 0.2}, shards={"train": 3, "test": 1}, jobs=2)
    assert report.written == 30
    assert sorted(row["x"] for row in rows_of(tmp_path / "out")) == list(range(30))
    assert report.splits["train"]["shards"] == 3


def test_schema_of_rows_is_kept_in_the_manifest(tmp_path):
    schema = {"label": tfr.Spec("int64", logical="class_label", classes=("a", "b"))}
    tfr.build([{"label": "b"}], tmp_path / "out", schema=schema, jobs=1)
    assert json.loads((tmp_path / "out/tfrkit.json").read_text())["schema"]["features"][0]["classes"] == ["a", "b"]


def test_schema_with_a_file_source_raises(fruit, tmp_path):
    with pytest.raises(ValueError, match="schema is only for an iterable of rows"):
        tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", schema={"x": "int64"})


def test_no_rows_at_all_raises_and_leaves_nothing(tmp_path):
    with pytest.raises(SourceError, match="nothing to build, looked for rows of the iterable"):
        tfr.build([], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_sequence_rows_are_written_as_sequences(tmp_path):
    rows = [{"context": {"id": i}, "feature_lists": {"f": [np.array([i, i + 1])]}} for i in range(3)]
    tfr.build(rows, tmp_path / "out", jobs=1)
    assert tfr.open(tmp_path / "out").kind == "sequence_example"
    assert not (tmp_path / "out/features.json").exists()


# --- bad inputs


@pytest.fixture
def spoiled(fruit):
    (fruit / "apple03.png").write_bytes(b"")
    (fruit / "orange05.png").write_bytes(b"no image")
    return fruit


@pytest.mark.parametrize("jobs", [1, 2])
def test_bad_files_are_all_named_and_nothing_appears(spoiled, tmp_path, jobs):
    with pytest.raises(SourceError, match="2 of 20 inputs are bad") as caught:
        tfr.build(sources.file_names(spoiled, LABEL), tmp_path / "out", jobs=jobs)
    assert [problem.key for problem in caught.value.problems] == ["apple03.png", "orange05.png"]
    assert not (tmp_path / "out").exists()


def test_bad_files_of_the_scan_and_of_reading_are_named_at_once(spoiled, make_images, tmp_path):
    make_images(["007.png"])
    with pytest.raises(SourceError, match="3 of 21 inputs are bad, nothing was written") as caught:
        tfr.build(sources.file_names(spoiled, LABEL), tmp_path / "out", jobs=1)
    assert {problem.key for problem in caught.value.problems} == {"007.png", "apple03.png", "orange05.png"}


@pytest.mark.parametrize("jobs", [1, 3])
def test_skipped_files_are_reported_with_reasons(spoiled, make_images, tmp_path, jobs):
    make_images(["007.png"])
    report = tfr.build(sources.file_names(spoiled, LABEL), tmp_path / "out", on_bad="skip", jobs=jobs)
    assert (report.found, report.written, len(report.skipped), report.ok) == (21, 18, 3, False)
    lines = [json.loads(line) for line in (tmp_path / "out/skipped.jsonl").read_text().splitlines()]
    assert {line["key"]: line["reason"] for line in lines} == {
        "007.png": f"label pattern {LABEL!r} does not match the file name",
        "apple03.png": "expected an image, got 0 bytes",
        "orange05.png": "expected an image, got 8 bytes that start with b'no image'",
    }


def test_shards_without_bad_files_are_kept_for_the_next_run(spoiled, tmp_path):
    source = sources.file_names(spoiled, LABEL)
    with pytest.raises(SourceError, match="shards without them are kept"):
        tfr.build(source, tmp_path / "out", shards=10, jobs=1)
    report = tfr.build(source, tmp_path / "out", shards=10, jobs=1, on_bad="skip")
    assert report.resumed == 8


def test_label_outside_the_map_stops_whatever_becomes_of_bad_files(fruit, tmp_path):
    with pytest.raises(SourceError, match="10 of 20 inputs are bad, nothing was written"):
        tfr.build(sources.file_names(fruit, LABEL, classes=["apple"]), tmp_path / "out", on_bad="skip", jobs=1)
    assert not (tmp_path / "out").exists()


def test_all_files_bad_is_an_error_even_when_they_are_skipped(make_images, tmp_path):
    root = make_images(["a1.png", "b2.png"])
    for name in ("a1.png", "b2.png"):
        (root / name).write_bytes(b"x")
    with pytest.raises(SourceError, match="nothing was written, all 2 inputs are bad, the first one: a1.png"):
        tfr.build(sources.file_names(root, LABEL), tmp_path / "out", on_bad="skip", jobs=1)


def test_unreadable_file_is_named(fruit, tmp_path, monkeypatch):
    read_file = image_features.read_file

    def refuse(root, key):
        if key == "apple01.png":
            raise PermissionError(13, "Permission denied")
        return read_file(root, key)

    monkeypatch.setattr(image_features, "read_file", refuse)
    with pytest.raises(SourceError, match="1 of 20 inputs is bad") as caught:
        tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", jobs=1)
    assert caught.value.problems[0].reason == "cannot read, permission denied"


# --- dry run


def test_dry_run_reports_everything_and_writes_nothing(spoiled, tmp_path):
    report = tfr.build(
        sources.file_names(spoiled, LABEL), tmp_path / "out", splits={"test": 5}, shards=2, dry_run=True, jobs=2
    )
    assert not (tmp_path / "out").exists()
    assert report.is_dry
    assert [problem.key for problem in report.problems] == ["apple03.png", "orange05.png"]
    assert report.splits["train"] == {"records": 15, "shards": 2, "nbytes": report.splits["train"]["nbytes"]}
    assert report.counts == {"class": {"apple": 10, "orange": 10}}
    assert report.to_json()["dry_run"] is True


def test_size_estimate_is_near_the_truth(fruit, tmp_path):
    images = sources.ImageOptions(resize=(40, 30))
    guess = tfr.build(sources.file_names(fruit, LABEL, images), tmp_path / "out", dry_run=True, jobs=1)
    truth = tfr.build(sources.file_names(fruit, LABEL, images), tmp_path / "out", jobs=1)
    assert guess.nbytes_out == pytest.approx(truth.nbytes_out, rel=0.03)


# --- what is there already


def test_finished_dataset_is_left_alone(fruit, tmp_path):
    def stamps():
        return {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*") if path.is_file()}

    source = sources.file_names(fruit, LABEL)
    tfr.build(source, tmp_path / "out", jobs=1)
    before = stamps()
    report = tfr.build(source, tmp_path / "out", jobs=1)
    assert report.already_there
    assert report.written == 20
    assert stamps() == before


def test_finished_dataset_with_other_options_names_the_change(fruit, tmp_path):
    tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", splits={"test": 5}, jobs=1)
    with pytest.raises(StorageError, match="a finished dataset exists, made from other inputs or options") as caught:
        tfr.build(sources.file_names(fruit, LABEL, charset="digits"), tmp_path / "out", splits={"test": 6}, seed=3)
    text = str(caught.value)
    assert "splits test was 5, is 6" in text
    assert "seed was 0, is 3" in text
    assert 'charset was "auto", is "digits"' in text
    assert "replace it: force=True" in text


def test_changed_inputs_are_named(fruit, make_images, tmp_path):
    tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", jobs=1)
    make_images(["apple99.png"])
    (fruit / "orange00.png").unlink()
    (fruit / "orange01.png").write_bytes((fruit / "orange01.png").read_bytes() + b"\0")
    with pytest.raises(StorageError, match="made from other inputs or options") as caught:
        tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", jobs=1)
    for words in ("1 input added: apple99.png", "1 input removed: orange00.png", "1 input changed: orange01.png"):
        assert words in str(caught.value)


def test_input_changed_after_the_build_is_detected_by_mtime(fruit, tmp_path):
    tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", jobs=1)
    later = (tmp_path / "out/tfrkit.json").stat().st_mtime_ns + 10**9
    os.utime(fruit / "apple00.png", ns=(later, later))
    with pytest.raises(StorageError, match="1 input changed: apple00.png"):
        tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", jobs=1)


def test_force_replaces_everything_of_the_old_dataset(fruit, tmp_path):
    tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", splits={"test": 5}, shards=4, jobs=1)
    tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", shards=1, force=True, jobs=1)
    tfr.build(sources.file_names(fruit, LABEL), tmp_path / "fresh/out", shards=1, jobs=1)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh/out")


def test_force_replaces_a_dataset_whose_manifest_cannot_be_read(fruit, tmp_path):
    source, out = sources.file_names(fruit, LABEL), tmp_path / "out"
    tfr.build(source, out, shards=2, jobs=1)
    whole = files_of(out)
    (out / "tfrkit.json").write_bytes(b"{\xff")
    with pytest.raises(ContainerError, match="manifest cannot be used, .*\n  replace the dataset: force=True"):
        tfr.build(source, out, shards=2, jobs=1)
    with pytest.raises(StorageError, match="the folder has another shard, which would be among the new ones"):
        tfr.build(source, out, shards=1, jobs=1, force=True)
    assert not (out / "_build").exists()
    tfr.build(source, out, shards=2, jobs=1, force=True)
    assert files_of(out) == whole


def test_overwrite_is_a_deprecated_alias_of_force(tmp_path):
    tfr.build([{"x": 1}], tmp_path / "x.tfrecord", jobs=1)
    with pytest.warns(DeprecationWarning, match="overwrite is deprecated, use force") as caught:
        tfr.build([{"x": 2}], tmp_path / "x.tfrecord", jobs=1, overwrite=True)
    assert caught[0].filename == __file__
    assert next(iter(tfr.open(tmp_path / "x.tfrecord")))["x"] == 2


def test_file_from_another_program_is_not_replaced(fruit, tmp_path):
    (tmp_path / "x.tfrecord").write_bytes(b"mine")
    with pytest.raises(StorageError, match="a file exists that this build did not make"):
        tfr.build(sources.file_names(fruit, LABEL), tmp_path / "x.tfrecord", jobs=1)
    assert (tmp_path / "x.tfrecord").read_bytes() == b"mine"
    tfr.build(sources.file_names(fruit, LABEL), tmp_path / "x.tfrecord", force=True, jobs=1)
    assert len(tfr.open(tmp_path / "x.tfrecord")) == 20


def test_shard_that_vanished_is_written_again(fruit, tmp_path):
    source = sources.file_names(fruit, LABEL)
    tfr.build(source, tmp_path / "out", shards=3, jobs=1)
    before = files_of(tmp_path / "out")
    (tmp_path / "out/out-train.tfrecord-00001-of-00003").unlink()
    tfr.build(source, tmp_path / "out", shards=3, jobs=1)
    assert files_of(tmp_path / "out") == before


def test_too_little_space_is_reported_before_anything_is_written(fruit, tmp_path, monkeypatch):
    import shutil

    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(
        StorageError,
        match=r"too little space, about \d+ MB are needed \(4 of them to spare\) and 0 MB are free - at .*\n  make ro",
    ):
        tfr.build(sources.file_names(fruit, LABEL), tmp_path / "out", jobs=1)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compression": "rar"}, "compression expected one of"),
        ({"on_bad": "ignore"}, "on_bad expected 'fail' or 'skip'"),
        ({"order": "random"}, "order expected 'seeded' or 'source'"),
        ({"jobs": 0}, "jobs expected from 1 up"),
        ({"group": "x"}, "group expected a source with file names, got rows"),
        ({"splits": {"test": 2}, "stratify": True}, "stratify expected a source with one class per record"),
    ],
    ids=str,
)
def test_options_that_mean_nothing_raise_and_leave_nothing(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        tfr.build([{"x": 1}, {"x": 2}, {"x": 3}], tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_output_in_the_place_of_a_file_raises(tmp_path):
    (tmp_path / "out").write_text("x")
    with pytest.raises(StorageError, match="cannot make the output folder, it is a file"):
        tfr.build([{"x": 1}], tmp_path / "out")


def test_rows_with_an_attribute_named_scan_are_not_a_source(tmp_path):
    """A DataFrame has an attribute for each of its columns."""

    class Frame(list):
        scan = [1, 2]

    tfr.build(Frame([{"scan": 1}, {"scan": 2}]), tmp_path / "out.tfrecord")
    assert [row["scan"] for row in tfr.open(tmp_path / "out.tfrecord")] == [1, 2]


# --- workers of a cluster


def test_workers_must_see_the_input_and_the_journal(fruit, tmp_path, monkeypatch):
    class Away(LocalEngine):
        is_local = False

        def require(self, **needs):
            required.append(needs)

    required: list[dict] = []
    monkeypatch.setattr(session, "open_engine", lambda *_, **__: contextlib.nullcontext(Away(1)))
    monkeypatch.chdir(tmp_path)
    tfr.build(sources.file_names("in", LABEL), "out")
    tfr.build([{"x": 1}], "made")  # rows of this process come from no path
    [seen, unseen] = required
    assert (seen["sees"], unseen["sees"]) == ([str(tmp_path / "in")], [])
    assert [len(needs["tokens"]) for needs in required] == [1, 1]
    assert [needs["is_local"] for needs in required] == [True, True]
