"""Real files by other programs: one assertion per line of the corpus README."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import subprocess
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit.errors import CodecError, NotATFRecordError
from tfrkit.testing import reference

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
KINDS = {"Example": "example", "SequenceExample": "sequence_example"}
YDF = "google+yggdrasil-decision-forests/yggdrasil_decision_forests/test_data"
TFX = "tensorflow+tfx/tfx/components/testdata"

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus folder ../shared/corpus is not here")


def load_entries() -> list[dict[str, Any]]:
    if not CORPUS.is_dir():
        return []
    return [entry for entry in json.loads((CORPUS / "MANIFEST.json").read_text()) if entry["kind"] == "record"]


ENTRIES = load_entries()
TFRECORDS = [entry for entry in ENTRIES if entry["records"] is not None]


def name_of(entry: dict[str, Any]) -> str:
    return re.sub(r".*/(?=.*/)", "", entry["file"])


@pytest.fixture(params=TFRECORDS, ids=name_of)
def entry(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(request.param)


@pytest.fixture
def ds(entry: dict[str, Any]) -> Iterator[tfr.Dataset]:
    with tfr.open(CORPUS / entry["file"]) as dataset:
        yield dataset


def inflate(entry: dict[str, Any]) -> bytes:
    data = (CORPUS / entry["file"]).read_bytes()
    if entry["compression"] == "gzip":
        return gzip.decompress(data)
    return zlib.decompress(data) if entry["compression"] == "zlib" else data


def records_of(path: str) -> list[bytes]:
    with tfr.open(CORPUS / path) as dataset:
        return list(dataset.records())


# --- every file


def test_number_of_records_is_that_of_the_manifest(entry: dict[str, Any], ds: tfr.Dataset) -> None:
    assert len(ds) == entry["records"]
    assert sum(1 for _ in ds.records()) == entry["records"]


def test_kind_is_that_of_the_manifest(entry: dict[str, Any], ds: tfr.Dataset) -> None:
    if entry["records"]:
        assert ds.kind == KINDS.get(entry["payload"], "raw")


@pytest.mark.parametrize("entry", [e for e in TFRECORDS if e["bytes"] < 300_000], ids=name_of)
def test_records_equal_those_of_the_reference(entry: dict[str, Any]) -> None:
    """The reference reader is slow, so only the first 500,000 bytes of each file are compared."""
    data = inflate(entry)[:500_000]
    expected, offset = [], 0
    with contextlib.suppress(reference.ReferenceFault):  # where the data was cut
        while offset < len(data):
            record, offset = reference.read_frame(data, offset)
            expected.append(record)
    assert records_of(entry["file"])[: len(expected)] == expected


def test_rows_read_or_raw_says_so(entry: dict[str, Any], ds: tfr.Dataset) -> None:
    if entry["payload"] in KINDS:
        assert sum(1 for _ in ds) == entry["records"]
        assert sum(1 for _ in ds.batch(1000)) == -(-entry["records"] // 1000)
    elif entry["records"]:
        with pytest.raises(CodecError, match="expected records that are Examples, got raw records"):
            next(iter(ds))


@pytest.mark.filterwarnings("ignore::tfrkit.errors.GuessedKindWarning")
def test_rows_written_again_are_the_same_rows(entry: dict[str, Any], ds: tfr.Dataset, tmp_path: Path) -> None:
    if ds.kind == "raw" or entry["file"].startswith("octo-models"):  # whose sidecar, not copied, declares the bools
        pytest.skip("no rows, or rows of another schema")
    with tfr.Writer(tmp_path / "again.tfrecord") as writer:
        for row in ds:
            writer.write(row)
    for row, again in zip(ds, tfr.open(tmp_path / "again.tfrecord"), strict=True):
        np.testing.assert_equal(again, row)


def test_records_by_number_equal_records_in_order(entry: dict[str, Any], ds: tfr.Dataset) -> None:
    in_order = list(ds.records())
    for number in {0, entry["records"] // 2, entry["records"] - 1} if in_order else ():
        assert ds.records()[number] == in_order[number]


def test_verify_finds_nothing(entry: dict[str, Any]) -> None:
    result = tfr.verify(CORPUS / entry["file"])
    assert result.findings == []
    assert result.records == entry["records"]


@pytest.mark.parametrize("entry", [e for e in TFRECORDS if e["payload"] == "Example"], ids=name_of)
def test_features_equal_those_of_the_reference(entry: dict[str, Any], ds: tfr.Dataset) -> None:
    for number, record in enumerate(list(ds.records())[:5]):
        row, features = ds[number], reference.parse_example(record)
        assert {name.encode() for name in row} == set(features)
        for name, value in row.items():
            feature = features[name.encode()]
            if feature is None:
                assert value is None
            elif ds.schema.features[name].encoding == "list":
                # A features.json next to the shard may give the list more than one dimension.
                got = np.ravel(value).tolist() if isinstance(value, np.ndarray) else value
                got = got if isinstance(got, list) else [got]
                assert got == list(feature[1])


# --- the counts of the notes column


def count_notes(path: Path) -> dict[str, int]:
    counts: dict[str, int] = {}
    with tfr.open(path) as dataset:
        for record in dataset.records():
            if dataset.kind == "example":
                features = list(reference.parse_example(record).values())
            else:
                context, lists = reference.parse_sequence_example(record)
                features = [*context.values(), *(frame for frames in lists.values() for frame in frames)]
            for feature in features:
                if feature is None:
                    counts["feature_kind_not_set"] = counts.get("feature_kind_not_set", 0) + 1
                elif not feature[1]:
                    key = f"empty_{feature[0]}_list"
                    counts[key] = counts.get(key, 0) + 1
    return counts


def noted(entry: dict[str, Any]) -> dict[str, int]:
    return {name: int(count) for note in entry["notes"] for name, count in re.findall(r"(\w+)=(\d+)", note)}


@pytest.mark.parametrize("entry", [entry for entry in TFRECORDS if noted(entry)], ids=name_of)
def test_unset_and_empty_features_are_counted_as_noted(entry: dict[str, Any]) -> None:
    with tfr.open(CORPUS / entry["file"]) as dataset:
        rows = list(dataset)
        is_sequence = dataset.kind == "sequence_example"
    if is_sequence:
        rows = [row["context"] for row in rows]
    counts = noted(entry)
    num_unset = sum(value is None for row in rows for value in row.values())
    num_empty = sum(
        value is not None and not isinstance(value, (bytes, int, float)) and len(value) == 0
        for row in rows
        for value in row.values()
    )
    assert num_unset == counts.get("feature_kind_not_set", 0)
    assert num_empty == sum(count for name, count in counts.items() if name.startswith("empty_"))
    assert count_notes(CORPUS / entry["file"]) == counts


# --- the odd ones


def compression_of(path: str, run_tfr: Callable[..., subprocess.CompletedProcess[str]]) -> str:
    done = run_tfr("info", "--format", "json", CORPUS / path)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["compression"])


@pytest.mark.parametrize(
    ("path", "compression"),
    [
        ("podgorskiy+DareBlopy/test_utils/test-small-gzip-r00.tfrecords", "zlib"),
        (f"{YDF}/dataset/toy.tfe-tfrecord-00000-of-00002", "gzip"),
        (f"{YDF}/dataset/adult_test.recordio.gz", "gzip"),
        (
            "tensorflow+datasets/tensorflow_datasets/rl_unplugged/rlu_atari/dummy_data/Asterix/run_1-00000-of-00001",
            "gzip",
        ),
    ],
)
def test_compression_is_found_from_content_not_name(path: str, compression: str, run_tfr: Any) -> None:
    assert compression_of(path, run_tfr) == compression


def test_zlib_called_gzip_holds_the_values_of_its_plain_twin() -> None:
    folder = "podgorskiy+DareBlopy/test_utils"
    packed, loose = (records_of(f"{folder}/test-small-{name}r00.tfrecords") for name in ("gzip-", ""))
    # Written in two runs: the order of the keys differs in places.
    assert [reference.parse_example(record) for record in packed] == [
        reference.parse_example(record) for record in loose
    ]


def test_gzip_shards_hold_the_records_of_the_nocompress_shards() -> None:
    packed = records_of(f"{YDF}/dataset/toy.tfe-tfrecord-*")
    assert packed == records_of(f"{YDF}/dataset/toy.nocompress-tfe-tfrecord-*")
    assert len(packed) == 4


def test_fastq_gz_holds_the_records_of_the_plain_one() -> None:
    path = "google+nucleus/nucleus/testdata/test_reads.fastq.tfrecord"
    assert records_of(path) == records_of(f"{path}.gz")


def test_sushi_train_holds_train_and_val_in_another_order() -> None:
    folder = "Jwata+sushi_detector_dataset"
    parts = [f"{folder}/@34dd949a/data/sushi_{part}.record" for part in ("train", "val")]
    rows = [set(records_of(path)) for path in parts]
    whole = records_of(f"{folder}/@cf40be37/data/train.record")
    names = {reference.parse_example(record)[b"image/filename"][1][0] for record in whole}  # type: ignore[index]
    assert names == {
        reference.parse_example(record)[b"image/filename"][1][0]  # type: ignore[index]
        for part in rows
        for record in part
    }
    assert len(whole) == len(rows[0]) + len(rows[1])


@pytest.mark.parametrize("name", ["train_elwc.tfrecord", "train_numerical_elwc.tfrecord"])
def test_example_list_with_context_is_raw(name: str) -> None:
    with tfr.open(CORPUS / "tensorflow+ranking/tensorflow_ranking/examples/data" / name) as dataset:
        assert dataset.kind == "raw"


@pytest.mark.parametrize("entry", [e for e in TFRECORDS if e["payload"] == "tensorflow.Event"], ids=name_of)
def test_event_file_is_raw(entry: dict[str, Any]) -> None:
    with tfr.open(CORPUS / entry["file"]) as dataset:
        assert dataset.kind == "raw"
        assert dataset.records()[0]


@pytest.mark.parametrize(
    "entry", [e for e in TFRECORDS if any("FromString" in note for note in e["notes"])], ids=name_of
)
def test_record_that_parses_by_chance_is_not_detected_as_an_example(entry: dict[str, Any]) -> None:
    with tfr.open(CORPUS / entry["file"]) as dataset:
        assert dataset.kind == KINDS.get(entry["payload"], "raw") != "example"


def test_lfs_pointer_is_named_with_the_size_it_states(run_tfr: Any) -> None:
    path = CORPUS / "NVIDIA+DALI_extra/db/coco_dummy/small_coco.tfrecord"
    with pytest.raises(NotATFRecordError, match=r"got a Git LFS pointer to 3,493,730 bytes .* - at .*small_coco"):
        tfr.open(path)
    done = run_tfr("info", path)
    assert done.returncode == 3
    assert "Git LFS pointer" in done.stderr


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e["payload"] == "not TFRecord"], ids=name_of)
def test_decoy_is_refused(entry: dict[str, Any], run_tfr: Any) -> None:
    with pytest.raises(NotATFRecordError, match=r"^expected a TFRecord, "):
        tfr.open(CORPUS / entry["file"])
    assert run_tfr("info", CORPUS / entry["file"]).returncode == 3


def test_empty_file_is_a_shard_with_zero_records(run_tfr: Any) -> None:
    (entry,) = [e for e in ENTRIES if e["payload"] == "empty file"]
    with tfr.open(CORPUS / entry["file"]) as dataset:
        assert len(dataset) == 0
        assert list(dataset) == []
    assert run_tfr("info", CORPUS / entry["file"]).returncode == 0
    assert run_tfr("verify", CORPUS / entry["file"]).returncode == 0


INCOMPLETE = [
    (f"{TFX}/csv_example_gen/Split-eval/data_tfrecord-*-of-00012.gz", 424 + 425 + 425),
    ("tensorflow+lingvo/lingvo/tasks/mt/testdata/translate_ende_wmt32k-train-00511-of-00512", 8941),
    (
        "spotify+spotify-tensorflow/tests/resources/tf-test-resource/tf-records-taxi/part-00000-of-00004.tfrecords.gz",
        3750,
    ),
]


@pytest.mark.parametrize(("path", "count"), INCOMPLETE)
def test_incomplete_set_is_readable(path: str, count: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tfr.errors.IncompleteSetWarning)  # which some of them are opened with
        opened = tfr.open(CORPUS / path)
    with opened as dataset:
        assert len(dataset) == count


@pytest.mark.parametrize(("path", "count"), INCOMPLETE)
def test_incomplete_set_is_noted(path: str, count: int, run_tfr: Any) -> None:
    done = run_tfr("info", CORPUS / path)
    assert done.returncode == 0
    assert re.search(r"\d+ of \d+ shards", done.stdout + done.stderr)


def test_complete_set_carries_no_note(run_tfr: Any) -> None:
    (folder,) = {Path(e["file"]).parent for e in ENTRIES if "/evaluating/" in e["file"]}
    done = run_tfr("info", CORPUS / folder)
    assert done.returncode == 0
    assert not re.search(r"\d+ of \d+ shards", done.stdout + done.stderr)


def test_spec_next_to_a_shard_is_itself_a_shard_of_one_record() -> None:
    folder = "tensorflow+agents/tf_agents/examples/cql_sac/kumar20/dataset/test_data"
    assert len(records_of(f"{folder}/antmaze-medium-play-v0_0.tfrecord.spec")) == 1


def test_recorder_images_hold_base64_text_not_jpeg() -> None:
    with tfr.open(CORPUS / "google+tensorflow-recorder/tfrecorder/test_data/sample_tfrecords/*.gz") as dataset:
        assert len(dataset) == 6
        for row in dataset:
            assert re.fullmatch(rb"[A-Za-z0-9_=-]+", row["image"])
        assert dataset.schema.features["image"].logical != "image"
