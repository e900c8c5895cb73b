from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit
from tfrkit._limits import LIMITS
from tfrkit.errors import (
    CodecError,
    CorruptRecordError,
    MissingFeatureError,
    NotATFRecordError,
    SchemaError,
    StorageError,
)
from tfrkit.ops.stats.sketches import DistinctSketch, hash_numbers
from tfrkit.ops.stats.stats import Stats
from tfrkit.testing.corruption import flip, frame_offsets, truncate
from tfrkit.testing.reference import encode_example, encode_sequence_example, write_frames
from tfrkit.view.stats import stats


def example(**features: tuple[str, list[Any]]) -> bytes:
    return encode_example({name.encode(): value for name, value in features.items()})


def png(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height)).save(file, format="PNG")
    return file.getvalue()


def write(path: Path, records: list[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(write_frames(records))
    return path


def feature_of(found: Stats, name: str) -> dict[str, Any]:
    return next(feature for feature in found.features if feature["name"] == name)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 7 records, so that a few records are many chunks."""
    monkeypatch.setattr(LIMITS, "chunk_records", 7)
    monkeypatch.setattr(LIMITS, "probed_records", 2)


# --- figures


def test_figures_of_every_kind_of_feature(tmp_path: Path) -> None:
    records = [
        example(
            label=("int64", [number % 3]),
            weight=("float", [number / 4]),
            tokens=("int64", list(range(number))),
            image=("bytes", [png(10 + number, 5)]),
            **({"text": ("bytes", [b"hello"])} if number % 2 else {}),
        )
        for number in range(6)
    ]
    found = stats(write(tmp_path / "a.tfrecord", records))
    assert (found.records, found.kind, found.skipped, found.ok) == (6, "example", 0, True)
    assert [feature["name"] for feature in found.features] == ["image", "label", "text", "tokens", "weight"]
    assert found.record_bytes["min"] == min(map(len, records))
    assert found.record_bytes["mean"] == pytest.approx(np.mean([len(record) for record in records]))
    label = feature_of(found, "label")
    assert (label["type"], label["present"], label["share"], label["distinct"]) == ("int64", 6, 1.0, 3)
    assert [(one["value"], one["count"]) for one in label["top"]] == [(0, 2), (1, 2), (2, 2)]
    assert label["meaning"] == "class id 0..2"
    weight = feature_of(found, "weight")["numbers"]
    assert (weight["min"], weight["max"], weight["mean"], weight["zeros"]) == (0.0, 1.25, 0.625, 1)
    assert weight["exact"] is True
    tokens = feature_of(found, "tokens")
    assert (tokens["lengths"]["min"], tokens["lengths"]["max"], tokens["lengths"]["mean"]) == (0, 5, 2.5)
    assert tokens["values"] == 15
    text = feature_of(found, "text")
    assert (text["present"], text["share"], text["text"], text["meaning"]) == (3, 0.5, True, "UTF-8 text")
    image = feature_of(found, "image")
    assert image["images"]["formats"] == {"PNG": 6}
    assert (image["images"]["width"]["min"], image["images"]["width"]["max"]) == (10, 15)
    assert image["meaning"] == "PNG 10x5 .. 15x5"
    json.dumps(found.to_json(), allow_nan=False)


def test_sequences_have_frames_and_lengths(tmp_path: Path) -> None:
    records = [
        encode_sequence_example(
            {b"id": ("int64", [number])},
            {b"f": [("float", [1.0, 2.0])] * number, b"id": [("int64", [5])] * 2},
        )
        for number in range(4)
    ]
    found = stats(write(tmp_path / "a.tfrecord", records))
    assert found.kind == "sequence_example"
    assert [(one["name"], one["list"]) for one in found.features] == [("id", False), ("f", True), ("id", True)]
    frames = feature_of(found, "f")
    assert (frames["frames"]["min"], frames["frames"]["max"]) == (0, 3)
    assert (frames["lengths"]["min"], frames["lengths"]["max"], frames["values"]) == (2, 2, 12)
    assert found.features[2]["numbers"]["mean"] == 5


def test_records_that_are_no_examples_have_sizes_only(tmp_path: Path) -> None:
    found = stats(write(tmp_path / "a.tfrecord", [b"first line", b"second", b"\xff\x00"]))
    assert (found.kind, found.records, found.features, found.skipped) == ("raw", 3, [], 0)
    assert (found.record_bytes["min"], found.record_bytes["max"]) == (2, 10)


def test_empty_file_has_no_records(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"")
    found = stats(tmp_path / "a.tfrecord")
    assert (found.records, found.features, found.record_bytes) == (0, [], None)


def test_unset_and_empty_features_are_distinguished(tmp_path: Path) -> None:
    unset = encode_example({b"a": None, b"b": ("int64", [])})
    found = stats(write(tmp_path / "a.tfrecord", [unset, encode_example({b"a": ("float", [1.0])}), b""]))
    a, b = found.features
    assert (a["type"], a["present"], a["unset"], a["values"]) == ("float", 2, 1, 1)
    assert (b["type"], b["present"], b["lengths"]["max"], b["values"]) == ("int64", 1, 0, 0)
    assert found.records == 3


def test_infinities_are_valid_json(tmp_path: Path) -> None:
    found = stats(write(tmp_path / "a.tfrecord", [example(x=("float", [float("inf"), float("nan"), 1.0]))]))
    numbers = found.features[0]["numbers"]
    assert (numbers["max"], numbers["mean"], numbers["nan"], numbers["infinite"]) == ("inf", 1.0, 1, 1)
    json.dumps(found.to_json(), allow_nan=False)


# --- what is rare


def test_feature_that_one_late_record_has_is_found(tmp_path: Path, small_chunks: None) -> None:
    records = [example(a=("int64", [number])) for number in range(50)]
    records[33] = example(a=("int64", [33]), rare=("float", [2.5]))
    found = stats(write(tmp_path / "a.tfrecord", records))
    rare = feature_of(found, "rare")
    assert (rare["present"], rare["share"], rare["numbers"]["max"]) == (1, 0.02, 2.5)
    assert feature_of(found, "a")["numbers"]["max"] == 49
    assert found.records == 50


def test_feature_of_two_kinds_is_mixed_and_has_no_figures(tmp_path: Path, small_chunks: None) -> None:
    records = [example(a=("int64", [number]), b=("int64", [1])) for number in range(40)]
    for number in (20, 21, 39):
        records[number] = example(a=("bytes", [b"x"]), b=("int64", [1]))
    found = stats(write(tmp_path / "a.tfrecord", records))
    a, b = found.features
    assert (a["type"], a["kinds"], a["present"], a["numbers"]) == ("mixed", {"int64": 37, "bytes": 3}, 40, None)
    assert (b["type"], b["values"]) == ("int64", 40)


def test_kinds_that_change_between_shards_are_mixed(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", [example(a=("int64", [1]))] * 3)
    write(tmp_path / "b.tfrecord", [example(a=("float", [1.0]))] * 2)
    assert stats(tmp_path).features[0]["kinds"] == {"int64": 3, "float": 2}


def test_other_record_among_examples_raises_with_its_place(tmp_path: Path, small_chunks: None) -> None:
    records = [example(a=("int64", [number])) for number in range(20)]
    records[11] = b"\xff\xff no message"
    path = write(tmp_path / "a.tfrecord", records)
    offset = frame_offsets(path.read_bytes())[11]
    with pytest.raises(CodecError, match=f"neither an Example .* - at .*a.tfrecord, record 11, byte {offset}\n.*skip"):
        stats(path)


def test_other_record_that_parses_as_an_empty_example_is_found(tmp_path: Path, small_chunks: None) -> None:
    records = [example(a=("int64", [number])) for number in range(20)]
    records[11] = b"\x98\x06\x01"  # field 99, which no Example has
    found = stats(write(tmp_path / "a.tfrecord", records), on_error="skip")
    assert (found.records, found.skipped) == (19, 1)
    assert [finding.record for finding in found.findings] == [11]
    assert found.features[0]["present"] == 19


def test_too_many_names_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "max_features", 5)
    path = write(tmp_path / "a.tfrecord", [encode_example({b"n%d" % number: ("int64", [1])}) for number in range(6)])
    with pytest.raises(SchemaError, match="at most 5 different features"):
        stats(path)
    assert len(stats(path, features=["n1", "n4"]).features) == 2


# --- choosing features


def test_chosen_features_are_the_only_ones(tmp_path: Path, small_chunks: None) -> None:
    records = [example(a=("int64", [number]), b=("float", [1.0]), c=("bytes", [b"x"])) for number in range(20)]
    records[19] = example(a=("int64", [19]), late=("float", [3.0]))
    found = stats(write(tmp_path / "a.tfrecord", records), features=["late", "a"])
    assert [(one["name"], one["present"]) for one in found.features] == [("a", 20), ("late", 1)]


def test_feature_that_no_record_has_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", [example(a=("int64", [1]))])
    with pytest.raises(MissingFeatureError, match="no record has feature 'b' - at .*a.tfrecord"):
        stats(path, features=["b"])


# --- damage


def test_damage_raises_with_its_place(tmp_path: Path) -> None:
    data = write_frames([example(a=("int64", [number])) for number in range(9)])
    offset = frame_offsets(data)[5]
    (tmp_path / "a.tfrecord").write_bytes(flip(data, offset + 14))
    with pytest.raises(CorruptRecordError, match=f"a.tfrecord, record 5, byte {offset}"):
        stats(tmp_path / "a.tfrecord")


@pytest.mark.parametrize("jobs", [1, 2])
def test_damage_is_stepped_over_and_listed(tmp_path: Path, small_chunks: None, jobs: int) -> None:
    data = write_frames([example(a=("int64", [number])) for number in range(30)])
    offsets = frame_offsets(data)
    (tmp_path / "a.tfrecord").write_bytes(flip(flip(data, offsets[5] + 14), offsets[20] + 14))
    (tmp_path / "b.tfrecord").write_bytes(gzip.compress(truncate(data, -3)))
    found = stats(tmp_path, on_error="skip", jobs=jobs)
    assert (found.records, found.skipped, found.ok) == (28 + 29, 3, False)
    assert [(Path(one.shard).name, one.record) for one in found.findings] == [
        ("a.tfrecord", 5),
        ("a.tfrecord", 20),
        ("b.tfrecord", 29),
    ]
    assert found.features[0]["present"] == 57


def test_file_that_is_no_tfrecord_is_an_error_or_a_finding(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", [example(a=("int64", [1]))])
    (tmp_path / "b.tfrecord").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(NotATFRecordError, match=r"b\.tfrecord"):
        stats(tmp_path)
    found = stats(tmp_path, on_error="skip")
    assert (found.records, found.skipped, len(found.findings)) == (1, 1, 1)
    with pytest.raises(NotATFRecordError, match=r"b\.tfrecord"):
        stats(tmp_path / "b.tfrecord", on_error="skip")


# --- threads


def make_dataset(folder: Path, *, compressed: bool) -> Path:
    random = np.random.default_rng(0)
    for shard in range(3):
        records = [
            example(
                label=("int64", [int(random.integers(0, 5))]),
                big=("int64", [int(random.integers(0, 1 << 40))]),
                x=("float", [float(random.normal())]),
                text=("bytes", [b"user-%d" % random.integers(0, 10_000)]),
            )
            for _ in range(3000)
        ]
        data = write_frames(records)
        folder.mkdir(exist_ok=True)
        (folder / f"train-{shard}.tfrecord").write_bytes(gzip.compress(data, 1) if compressed else data)
    return folder


@pytest.mark.parametrize("compressed", [False, True])
def test_figures_do_not_depend_on_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compressed: bool) -> None:
    monkeypatch.setattr(LIMITS, "chunk_records", 500)
    folder = make_dataset(tmp_path / "data", compressed=compressed)
    one = stats(folder, jobs=1).to_json()
    assert not next(feature for feature in one["features"] if feature["name"] == "x")["numbers"]["exact"]
    for jobs in (2, 3):
        assert stats(folder, jobs=jobs).to_json() == one


def test_number_of_different_values_is_that_of_one_sketch_over_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMITS, "chunk_records", 5000)
    values = np.random.default_rng(4).integers(0, 1 << 40, 9300)
    path = write(tmp_path / "a.tfrecord", [example(x=("int64", [value])) for value in values.tolist()])
    assert stats(path, jobs=1).features[0]["distinct"] == DistinctSketch(hash_numbers(values)).count


def test_compression_does_not_change_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "chunk_records", 500)
    plain = stats(make_dataset(tmp_path / "plain", compressed=False), jobs=2)
    packed = stats(make_dataset(tmp_path / "packed", compressed=True), jobs=2)
    assert plain.features == packed.features


def test_error_ends_the_threads_and_is_the_first_in_file_order(tmp_path: Path, small_chunks: None) -> None:
    data = write_frames([example(a=("int64", [number])) for number in range(400)])
    offsets = frame_offsets(data)
    (tmp_path / "a.tfrecord").write_bytes(flip(flip(data, offsets[390] + 14), offsets[200] + 14))
    with pytest.raises(CorruptRecordError, match="record 200"):
        stats(tmp_path, jobs=2)


def test_damage_among_records_that_differ_is_named_as_damage(tmp_path: Path) -> None:
    # Checksums are compared while decoding, which stops at the first record with another feature.
    odd = {5: example(b=("int64", [1])), 9: example(a=("float", [0.5])), 12: b"no Example at all"}
    data = write_frames([odd.get(number) or example(a=("int64", [number])) for number in range(40)])
    path = tmp_path / "a.tfrecord"
    path.write_bytes(flip(data, frame_offsets(data)[20] + 14))
    with pytest.raises(CorruptRecordError, match="payload checksum mismatch.*record 20"):
        stats(path)


class Watched:
    """Progress that records its calls."""

    def __init__(self) -> None:
        self.items = self.planned = 0
        self.has_ended = False

    def begin(self, num_items: int, nbytes: int | None) -> None:
        self.planned = num_items

    def advance(self, num_items: int, nbytes: int, num_bad: int) -> None:
        self.items += num_items

    def end(self) -> None:
        self.has_ended = True


def test_progress_counts_every_record(tmp_path: Path, small_chunks: None) -> None:
    path = write(tmp_path / "a.tfrecord", [example(a=("int64", [1]))] * 30)
    watched = Watched()
    stats(path, progress=watched)
    assert (watched.items, watched.planned, watched.has_ended) == (30, 30, True)


# --- against the slow way


def test_figures_equal_those_of_numpy_over_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "chunk_records", 700)
    random = np.random.default_rng(3)
    columns = {
        "i": random.integers(-50, 50, 3000),
        "f": np.round(random.normal(size=3000), 1).astype(np.float32),
    }
    path = tmp_path / "a.tfrecord"
    with tfrkit.Writer(str(path)) as writer:
        for i, f in zip(columns["i"].tolist(), columns["f"].tolist(), strict=True):
            writer.write({"i": i, "f": f})
    found = stats(path)
    for name, values in columns.items():
        feature = feature_of(found, name)
        numbers = feature["numbers"]
        assert numbers["exact"]
        assert (numbers["min"], numbers["max"], numbers["zeros"]) == (values.min(), values.max(), (values == 0).sum())
        assert numbers["mean"] == pytest.approx(values.astype(np.float64).mean(), rel=1e-12)
        assert numbers["std"] == pytest.approx(values.astype(np.float64).std(), rel=1e-12)
        assert feature["distinct"] == len(np.unique(values))
        for key, share in (("p5", 0.05), ("p50", 0.5), ("p95", 0.95)):
            assert numbers["quantiles"][key] == np.quantile(values, share, method="inverted_cdf")
        counts, _ = np.histogram(values, 20)
        assert [one["count"] for one in numbers["histogram"]] == counts.tolist()


# --- reports


def test_report_is_written_once_and_never_over_a_source(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", [example(a=("int64", [1]))])
    report = tmp_path / "report.html"
    assert stats(path, html=report).html == str(report)
    with pytest.raises(StorageError, match="the output exists already"):
        stats(path, html=report)
    stats(path, html=report, force=True)
    with pytest.raises(StorageError, match="one of the files to read"):
        stats(path, html=path, force=True)


def test_damage_leaves_no_report(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(flip(write_frames([example(a=("int64", [1]))]), 14))
    with pytest.raises(CorruptRecordError, match="record 0"):
        stats(tmp_path / "a.tfrecord", html=tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_rare_value_that_is_repeated_is_listed_if_counts_are_exact(tmp_path: Path) -> None:
    with tfrkit.Writer(tmp_path / "x.tfrecord") as writer:
        writer.write_columns({"x": np.array([*range(2000), 7])})
    [feature] = stats(tmp_path / "x.tfrecord").features
    assert [(one["value"], one["count"]) for one in feature["top"]][:1] == [(7, 2)]
