from __future__ import annotations

import copy
import gzip
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit
from tfrkit import BytesColumn, Dataset, Ragged, Schema, Spec
from tfrkit.errors import (
    CodecError,
    CorruptRecordError,
    FeatureKindError,
    MissingFeatureError,
    SchemaError,
    ShapeError,
    SidecarWarning,
    StorageError,
)
from tfrkit.testing.corruption import flip, frame_offsets, make_frame
from tfrkit.testing.reference import Features, encode_example, encode_sequence_example, write_frames


def row(number: int) -> Features:
    return {
        b"label": ("int64", [number]),
        b"image": ("bytes", [b"x" * number]),
        b"ids": ("int64", list(range(number % 3))),
    }


FRAMES = write_frames([encode_example(row(number)) for number in range(30)])
OFFSETS = frame_offsets(FRAMES)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    """Writes shards, opens them, closes them at the end."""
    opened: list[Dataset] = []

    def store(*shards: bytes, **options: Any) -> Dataset:
        paths = []
        for number, data in enumerate(shards):
            paths.append(tmp_path / f"s{number}.tfrecord")
            paths[-1].write_bytes(data)
        opened.append(tfrkit.open(paths, **options))
        return opened[-1]

    yield store
    for ds in opened:
        ds.close()


def labels(rows: Any) -> list[int]:
    return [item["label"] for item in rows]


def run_python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)], capture_output=True, text=True, timeout=60
    )


# --- rows and batches ---------------------------------------------------------------------------------


def test_dataset_repr_and_properties(store: Any, tmp_path: Path) -> None:
    ds = store(FRAMES, gzip.compress(FRAMES))
    assert len(ds) == 60
    assert ds.kind == "example"
    assert ds.schema.names == ("ids", "image", "label")
    assert ds.files == [str(tmp_path / "s0.tfrecord"), str(tmp_path / "s1.tfrecord")]
    assert repr(ds) == "Dataset(s0.tfrecord, s1.tfrecord; 60 rows; features ids, image, label)"
    assert ds.errors == []


def test_rows_by_number_by_slice_and_in_order_agree(store: Any) -> None:
    ds = store(FRAMES[: OFFSETS[11]], b"", gzip.compress(FRAMES[OFFSETS[11] :]))
    rows = list(ds)
    assert labels(rows) == list(range(30))
    assert repr([ds[number] for number in range(30)]) == repr(rows)
    assert repr(ds[:]) == repr(rows)
    assert labels(ds[25:3:-7]) == [25, 18, 11, 4]
    assert labels(ds[[3, 1, 4, 1, -1]]) == [3, 1, 4, 1, 29]
    assert labels(ds[np.array([2, 0])]) == [2, 0]
    assert labels(ds[np.arange(30) % 10 == 3]) == [3, 13, 23]
    assert ds[[]] == ds[np.array([])] == ds[5:5] == []
    assert ds[np.int64(7)]["label"] == ds[-23]["label"] == 7


@pytest.mark.parametrize("index", [30, -31, [0, 30]])
def test_row_that_is_not_there_raises(store: Any, index: Any) -> None:
    with pytest.raises(IndexError, match=r"record -?\d+ of 30"):
        store(FRAMES)[index]


@pytest.mark.parametrize("index", [1.0, None, [[1]], [0.5], [True, False], object()])
def test_index_of_another_type_raises(store: Any, index: Any) -> None:
    with pytest.raises(TypeError, match="expected a number, a slice or a list of numbers, got "):
        store(FRAMES)[index]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_batches_are_columns(store: Any, threads: int) -> None:
    ds = store(FRAMES[: OFFSETS[11]], gzip.compress(FRAMES[OFFSETS[11] :]))
    batches = list(ds.batch(8, threads=threads))
    assert [len(batch["label"]) for batch in batches] == [8, 8, 8, 6]
    assert np.concatenate([batch["label"] for batch in batches]).tolist() == list(range(30))
    assert isinstance(batches[0]["image"], BytesColumn)
    assert isinstance(batches[0]["ids"], Ragged)
    assert [len(batch["label"]) for batch in ds.batch(8, drop_last=True, threads=threads)] == [8, 8, 8]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"size": 0}, ValueError, "size expected at least 1, got 0"),
        ({"size": -1}, ValueError, "size expected at least 1, got -1"),
        ({"size": 1.5}, TypeError, "whole number|integer"),
        ({"size": "2"}, TypeError, "whole number|integer"),
        ({"size": 2, "threads": 0}, ValueError, "threads expected at least 1, got 0"),
        ({"size": 2, "threads": 1.5}, TypeError, "whole number|integer"),
    ],
)
def test_wrong_batch_size_raises_before_reading(
    store: Any, arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        store(FRAMES).batch(**arguments)


def test_empty_dataset_has_nothing(store: Any) -> None:
    ds = store(b"", gzip.compress(b""))
    assert (len(ds), list(ds), list(ds.batch(3)), list(ds.records()), ds[:], ds.kind) == (0, [], [], [], [], "example")


def test_raw_records_are_read_as_bytes(store: Any) -> None:
    ds = store(write_frames([b"hello", b"", b"\xff"]))
    assert ds.kind == "raw"
    assert list(ds.records()) == [b"hello", b"", b"\xff"]
    assert ds.records()[-1] == b"\xff"
    for read in (lambda: ds[0], lambda: list(ds), lambda: list(ds.batch(2))):
        with pytest.raises(CodecError, match=r"expected records that are Examples, got raw records\n.*ds.records\(\)"):
            read()


def test_sequences_are_read_in_two_parts(store: Any) -> None:
    records = [
        encode_sequence_example({b"id": ("int64", [1])}, {b"f": [("int64", [1, 2]), ("int64", [3])]}),
        encode_sequence_example({b"id": ("int64", [2])}, {b"f": []}),
    ]
    ds = store(write_frames(records))
    assert ds.kind == "sequence_example"
    first, second = ds
    assert first["context"] == {"id": 1}
    assert [frame.tolist() for frame in first["feature_lists"]["f"]] == [[1, 2], [3]]
    assert second["feature_lists"]["f"] == []
    (batch,) = ds.batch(2)
    assert batch["context"]["id"].tolist() == [1, 2]
    assert batch["feature_lists"]["f"].row_splits.tolist() == [0, 2, 2]


def test_feature_of_two_kinds_raises_and_can_be_left_out(store: Any) -> None:
    ds = store(
        write_frames(
            [
                encode_example({b"a": ("int64", [1]), b"b": ("int64", [1])}),
                encode_example({b"a": ("bytes", [b"x"]), b"b": ("int64", [2])}),
            ]
        )
    )
    with pytest.raises(SchemaError, match="feature 'a' expected one kind, got .* in different records") as caught:
        list(ds)
    assert "one at a time" not in str(caught.value)  # that fails just the same
    assert list(ds.select(["b"])) == [{"b": 1}, {"b": 2}]


# --- projection and schema ----------------------------------------------------------------------------


def test_only_chosen_features_are_decoded(store: Any) -> None:
    ds = store(FRAMES, features=["label", "ids"])
    assert list(ds.schema) == list(ds[1]) == list(next(iter(ds.batch(2)))) == ["label", "ids"]
    assert list(ds.select(["image"])[1]) == ["image"]
    assert store(FRAMES, features=[])[0] == {}
    assert len(list(store(FRAMES, features=[]).batch(10))) == 3


def test_feature_of_a_wrong_kind_may_stay_undecoded(store: Any) -> None:
    bad = encode_example({b"label": ("int64", [99]), b"image": ("float", [0.5])})
    ds = store(FRAMES + make_frame(bad), features=["label"])
    assert ds[30] == {"label": 99}


def test_wrong_name_is_reported_with_the_nearest(store: Any) -> None:
    with pytest.raises(MissingFeatureError, match="no feature 'lable', did you mean 'label'"):
        store(FRAMES).select(["lable"])
    with pytest.raises(MissingFeatureError, match="no feature 'lable', did you mean 'label'"):
        list(store(FRAMES, features=["lable"]))


def test_name_given_as_a_string_raises(store: Any) -> None:
    with pytest.raises(TypeError, match="expected a list of names, got the string 'label'"):
        store(FRAMES, features="label")
    with pytest.raises(TypeError, match="expected a list of names, got the string 'label'"):
        store(FRAMES).select("label")


def test_given_schema_is_used(store: Any) -> None:
    ds = store(FRAMES, schema=Schema({"label": Spec("int64", dtype="uint8"), "ids": ("int64", (None,))}))
    assert list(ds[4]) == ["label", "ids"]
    assert next(iter(ds.batch(3)))["label"].dtype == np.uint8


@pytest.mark.parametrize(
    ("schema", "error", "message"),
    [
        (Schema({"lable": "int64"}), MissingFeatureError, "no feature 'lable', did you mean 'label'"),
        (Schema({"label": "float"}), FeatureKindError, "feature 'label' expected float, got int64"),
        (Schema({"label": ("int64", (4,))}), ShapeError, "feature 'label' expected 4 values, got 1"),
        (Schema({"ids": "int64"}), ShapeError, "feature 'ids' expected 1 values?, got "),
        (Schema({"image": ("float64", (2,))}), CodecError, "feature 'image' .*tensor"),
        (
            Schema({"image": Spec("bytes", (2,), encoding="raw", dtype="uint16")}),
            ShapeError,
            "feature 'image' expected 4 bytes",
        ),
    ],
)
def test_schema_that_does_not_fit_names_feature_wanted_and_found(
    store: Any, schema: Schema, error: type[Exception], message: str
) -> None:
    for read in (lambda ds: list(ds), lambda ds: list(ds.batch(2)), lambda ds: ds[0:3]):
        with pytest.raises((error, SchemaError), match=message) as caught:
            read(store(FRAMES, schema=schema))
        assert "the schema was taken from other records" not in str(caught.value)
        assert "pass schema=" not in str(caught.value)


def test_schema_may_be_given_as_a_dict(store: Any) -> None:
    assert store(FRAMES, schema={"label": "int64"})[4] == {"label": 4}


@pytest.mark.parametrize("schema", ["label", ["label"], 3])
def test_schema_of_another_type_raises_at_once(store: Any, schema: Any) -> None:
    with pytest.raises(TypeError, match="expected a Schema|schema expected"):
        store(FRAMES, schema=schema)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verify": "yes"}, "verify expected 'all', 'lengths' or 'none', got 'yes'"),
        ({"on_error": "ignore"}, "on_error expected 'raise' or 'skip', got 'ignore'"),
        ({"max_errors": -1, "on_error": "skip"}, "max_errors expected .*, got -1"),
    ],
)
def test_wrong_option_raises(store: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        store(FRAMES, **options)


# --- damage -------------------------------------------------------------------------------------------


def test_damage_raises_by_default(store: Any) -> None:
    ds = store(flip(FRAMES, OFFSETS[9] + 14))
    for read in (
        lambda: list(ds),
        lambda: list(ds.batch(4)),
        lambda: list(ds.batch(4, threads=2)),
        lambda: ds[9],
        lambda: list(ds.records()),
    ):
        with pytest.raises(CorruptRecordError, match=f"record 9, byte {OFFSETS[9]}"):
            read()
    assert ds[8]["label"] == 8
    assert ds[10]["label"] == 10


@pytest.mark.parametrize("offset", [2, 14])
def test_skipped_damage_is_listed_once_and_every_way_of_reading_agrees(store: Any, offset: int) -> None:
    ds = store(FRAMES, flip(FRAMES, OFFSETS[9] + offset), on_error="skip")
    wanted = [*range(30), *range(9), *range(10, 30)]
    assert labels(ds) == wanted
    assert [label for batch in ds.batch(7, threads=3) for label in batch["label"].tolist()] == wanted
    assert len(ds) == len(list(ds.records())) == 59
    assert labels(ds[:]) == wanted
    (finding,) = ds.errors
    assert (os.path.basename(finding.shard), finding.record, finding.offset) == ("s1.tfrecord", 9, OFFSETS[9])


def test_skipped_records_that_do_not_decode_agree_too(store: Any) -> None:
    ds = store(FRAMES + make_frame(b"\xff\xff") + FRAMES, on_error="skip")
    assert labels(ds) == labels(ds[:]) == [*range(30), *range(30)]
    assert len(ds.errors) == 1


def test_errors_beyond_max_errors_raise(store: Any) -> None:
    data = flip(flip(FRAMES, OFFSETS[9] + 14), OFFSETS[20] + 14)
    assert len(list(store(data, on_error="skip", max_errors=2))) == 28
    ds = store(data, on_error="skip", max_errors=1)
    for read in (lambda: list(ds), lambda: len(ds), lambda: list(ds.batch(3)), lambda: list(ds.records())):
        with pytest.raises(CorruptRecordError, match="record 20"):
            read()


def test_payload_damage_is_not_found_without_payload_checks(store: Any) -> None:
    data = flip(FRAMES, OFFSETS[10] - 1)  # a byte of the checksum of record 9
    for verify in ("lengths", "none"):
        ds = store(data, verify=verify)
        assert labels(ds) == list(range(30))
        assert ds[9]["label"] == 9


# --- files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["batch(2)", "__iter__()", "records().__iter__()"])
@pytest.mark.parametrize("nbytes", [0, 1000])
def test_file_that_shrinks_while_it_is_read_does_not_kill_the_process(tmp_path: Path, how: str, nbytes: int) -> None:
    path = tmp_path / "s.tfrecord"
    with tfrkit.Writer(path) as writer:
        writer.write_columns({"x": np.zeros((2000, 125))})
    code = f"""
        import os, sys, tfrkit
        rows = iter(tfrkit.open(sys.argv[1]).{how})
        next(rows)
        os.truncate(sys.argv[1], {nbytes})
        try:
            sum(1 for _ in rows)
        except tfrkit.errors.StorageError as error:
            print(error)
    """
    done = run_python(code, path)
    assert done.returncode == 0, f"killed by signal {-done.returncode}"
    assert "the file became shorter while it was read" in done.stdout


def test_many_shards_need_few_descriptors(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"s{number:03}.tfrecord").write_bytes(FRAMES[: OFFSETS[2]])
    code = """
        import resource, sys, tfrkit
        ds = tfrkit.open(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_NOFILE, (230, 230))
        ds = tfrkit.open(sys.argv[1])
        print(len(ds), len(list(ds)), len(list(ds.batch(50, threads=4))), len({ds[i]["label"] for i in range(600)}))
    """
    done = run_python(code, tmp_path)
    assert (done.stdout, done.stderr) == ("600 600 12 2\n", "")


def test_pickled_dataset_opens_and_counts_nothing_until_it_is_read(tmp_path: Path) -> None:
    for number in range(3):
        frames = write_frames([encode_example(row(3 * number + at)) for at in range(3)])
        (tmp_path / f"{number}.tfrecord").write_bytes(gzip.compress(frames) if number == 1 else frames)
    ds = tfrkit.open(tmp_path)
    assert ds.schema.names
    uncounted = pickle.dumps(ds)
    assert len(ds) == 9
    stored = pickle.dumps(ds)
    (tmp_path / "0.tfrecord").unlink()
    again = pickle.loads(stored)
    assert len(again) == 9
    assert again[8]["label"] == 8
    with pytest.raises(StorageError, match="cannot open, no such file or directory - at .*0.tfrecord"):
        again[0]
    (tmp_path / "0.tfrecord").write_bytes(b"")
    for pickled in (stored, uncounted):
        with pytest.raises(StorageError, match="the file changed since it was opened, .* bytes at first, 0 now"):
            pickle.loads(pickled)[0]


def test_dataset_survives_pickle_and_copy(store: Any) -> None:
    ds = store(FRAMES, gzip.compress(FRAMES), features=["label"], on_error="skip")
    assert len(ds) == 60
    for again in (pickle.loads(pickle.dumps(ds)), copy.copy(ds), copy.deepcopy(ds)):
        with again:
            assert again.files == ds.files
            assert labels(again) == labels(ds)
            assert again[40] == {"label": 10}


def test_dataset_works_after_a_fork(store: Any) -> None:
    ds = store(FRAMES, gzip.compress(FRAMES))
    assert ds[5]["label"] == ds[35]["label"] == 5
    child = os.fork()
    if child == 0:
        is_right = labels(ds[::7]) == [number % 30 for number in range(0, 60, 7)] and len(list(ds)) == 60
        os._exit(0 if is_right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert labels(ds[::7]) == [number % 30 for number in range(0, 60, 7)]


def test_eight_threads_read_what_one_does(store: Any) -> None:
    ds = store(FRAMES, gzip.compress(FRAMES))
    failures: list[object] = []

    def read(seed: int) -> None:
        for number in np.random.default_rng(seed).integers(0, 60, 100).tolist():
            if ds[number]["label"] != number % 30:
                failures.append(number)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_pipe_gives_its_records_once(tmp_path: Path) -> None:
    source, target = os.pipe()
    os.write(target, FRAMES)
    os.close(target)
    try:
        with tfrkit.open(f"/dev/fd/{source}", schema=Schema({"label": "int64"})) as ds:
            assert labels(ds) == list(range(30))
            with pytest.raises(StorageError, match="pipe, which can be read only once"):
                list(ds)
    finally:
        os.close(source)


def test_dataset_dropped_without_close_warns_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.tfrecord"
    path.write_bytes(FRAMES)
    code = """
        import sys, tfrkit
        assert len(list(tfrkit.open(sys.argv[1]))) == 30
        assert tfrkit.open(sys.argv[1])[3]["label"] == 3
        next(iter(tfrkit.open(sys.argv[1]).batch(2)))
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), str(path)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_views_are_the_records_without_a_copy(tmp_path: Path, compression: Any) -> None:
    path = tmp_path / "v.tfrecord"
    with tfrkit.Writer(path, compression=compression) as writer:
        for record in (b"abc", b"", b"\0" * 3_000_000, b"d"):
            writer.write_record(record)
    records = tfrkit.open(path).records()
    views = list(records.views())
    assert [bytes(view) for view in views] == [record for record in records]  # noqa: C416  list() asks for the length
    assert all(isinstance(view, memoryview) and view.readonly for view in views)


def test_max_errors_exceeded_says_so_and_not_to_skip(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with tfrkit.Writer(path) as writer:
        for number in range(4):
            writer.write({"id": number, "x": b"x" * 50})
    data = path.read_bytes()
    for record in (1, 2):
        data = flip(data, frame_offsets(data)[record] + 40)
    path.write_bytes(data)
    ds = tfrkit.open(path, on_error="skip", max_errors=1)
    with pytest.raises(CorruptRecordError, match=r"this is damaged place 2, max_errors allows 1") as caught:
        list(ds.records())
    assert "on_error" not in str(caught.value)


def test_an_open_file_is_no_list_of_paths(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with tfrkit.Writer(path) as writer:
        writer.write({"id": 1})
    with (
        path.open("rb") as file,
        pytest.raises(TypeError, match=r"(?s)got an open file \(BufferedReader\).*file\.name"),
    ):
        tfrkit.open(file)  # type: ignore[arg-type]


# ---- sidecars ---------------------------------------------------------------------------------


def test_length_comes_from_the_manifest_and_a_wrong_one_is_an_error_when_picked(tmp_path: Path) -> None:
    tfrkit.build([{"a": number} for number in range(5)], tmp_path / "o", jobs=1)
    manifest = tmp_path / "o" / "tfrkit.json"
    manifest.write_text(manifest.read_text().replace('"records": 5', '"records": 4'))
    ds = tfrkit.open(tmp_path / "o")
    assert len(ds) == 4
    with pytest.raises(StorageError, match=r"expected 4 records as counted before or by its manifest, got 5 - at .*"):
        _ = ds[0]
    # With skipped damage, readable records are counted.
    assert len(tfrkit.open(tmp_path / "o", on_error="skip")) == 5


def test_manifest_that_does_not_fit_is_warned_of_and_not_used(tmp_path: Path) -> None:
    tfrkit.build([{"a": number} for number in range(5)], tmp_path / "o", jobs=1)
    [shard] = tfrkit.open(tmp_path / "o").files
    with tfrkit.Writer(shard) as writer:
        writer.write({"a": b"other"})
    ds = tfrkit.open(tmp_path / "o")
    assert len(ds) == 1
    with pytest.warns(SidecarWarning, match="its facts about the records are not used - at .*tfrecord") as warned:
        assert ds[0] == {"a": b"other"}
    assert [one.filename for one in warned] == [__file__]
