"""The JSON of a report: what the statistics page and the file of `tfr stats --html` draw."""

from __future__ import annotations

import base64
import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit
from tfrkit.errors import StorageError
from tfrkit.ops.stats.bytes import MAX_PAIRS
from tfrkit.ops.stats.picks import NUM_EXAMPLES, NUM_SAMPLES
from tfrkit.ops.stats.stats import collect_stats
from tfrkit.ops.verify.verify import verify
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.view.report import make_report

Json = dict[str, Any]


def encode(color: Any, size: tuple[int, int] = (64, 48)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, color).save(file, "PNG")
    return file.getvalue()


def make_row(number: int, label: int) -> Json:
    return {
        "image": encode((number * 7 % 256, label * 60, 90), (60 + number % 3, 40)),
        "label": label,
        "tokens": list(range(number % 4)),
        "score": number / 2,
        "same": 5,
    }


def write(path: Path, rows: list[Json]) -> Path:
    with tfrkit.Writer(str(path)) as writer:
        for row in rows:
            writer.write(row)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two splits; class 2 is rare, and not in the test split."""
    labels = [0] * 30 + [1] * 15 + [2] * 3
    write(tmp_path / "a-train.tfrecord", [make_row(number, label) for number, label in enumerate(labels)])
    write(tmp_path / "a-test.tfrecord", [make_row(number + 50, number % 2) for number in range(16)])
    return tmp_path


def read(address: Any, **options: Any) -> Json:
    report = make_report(collect_stats(str(address), has_picks=True, **options))
    json.dumps(report, allow_nan=False)  # a page can read it
    return report


def decode(picture: Json) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(picture["data"])))


def find(report: Json, name: str) -> Json:
    return next(feature for feature in report["features"] if feature["name"] == name)


def test_splits_are_counted_side_by_side(folder: Path) -> None:
    report = read(folder)
    names = [split["name"] for split in report["splits"]]
    assert sorted(names) == ["test", "train"]
    (classes,) = report["classes"]
    at = names.index("train")
    assert [entry["count"] for entry in classes["classes"]] == [38, 23, 3]
    assert [entry["splits"][at] for entry in classes["classes"]] == [30, 15, 3]
    assert classes["sums"] == [{"train": 48, "test": 16}[name] for name in names]
    score = find(report, "score")["numbers"]
    assert sum(bin["splits"][at] for bin in score["bins"]) == 48
    assert [sum(bin["splits"][i] for i in (0, 1)) for bin in score["bins"]] == [bin["count"] for bin in score["bins"]]


def test_lists_have_a_histogram_of_their_values_and_one_of_their_lengths(folder: Path) -> None:
    tokens = find(read(folder), "tokens")
    assert [bin["count"] for bin in tokens["lengths"]["bins"]] == [16, 16, 16, 16]
    assert [bin["from"] for bin in tokens["numbers"]["bins"]] == [0, 1, 2]


def test_lengths_of_lists_that_belong_together_are_plotted_once(tmp_path: Path) -> None:
    rows = [{"x": [1] * (1 + number % 3), "y": [2] * (1 + number % 3)} for number in range(9)]
    report = read(write(tmp_path / "a", rows))
    assert ["bins" in find(report, name)["lengths"] for name in ("x", "y")] == [True, False]


def test_warnings_come_worst_first_and_are_facts(folder: Path) -> None:
    data = (folder / "a-test.tfrecord").read_bytes()
    (folder / "a-test.tfrecord").write_bytes(flip(data, frame_offsets(data)[3] + 20))
    found = read(folder, on_error="skip")["warnings"]
    assert [one["level"] for one in found] == sorted((one["level"] for one in found), key=["bad", "warn", "note"].index)
    assert found[0] == {"level": "bad", "kind": "damage", "n": 1}
    assert {"level": "warn", "kind": "absent", "feature": "label", "split": "test", "n": 1, "names": ["2"]} in found
    assert found[-1] == {"level": "note", "kind": "constant", "n": 1, "names": ["same"]}


def test_list_of_equal_values_is_not_the_same_in_every_record(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a", [{"x": [1] * (number % 3)} for number in range(8)]))["warnings"] == []


def test_clean_dataset_has_no_warnings(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a", [{"x": number % 2} for number in range(8)]))["warnings"] == []


def test_rarest_classes_come_first_with_pictures_of_their_records(folder: Path) -> None:
    rarest = read(folder)["rarest"]
    assert rarest["feature"] == "label"
    assert [(one["text"], one["count"]) for one in rarest["classes"]] == [("2", 3), ("1", 23), ("0", 38)]
    assert [len(one["pictures"]) for one in rarest["classes"]] == [3, NUM_EXAMPLES, NUM_EXAMPLES]
    for one in rarest["classes"]:
        for picture in one["pictures"]:
            assert abs(decode(picture).convert("RGB").getpixel((20, 20))[1] - int(one["value"]) * 60) < 4  # type: ignore[index]
            assert picture["caption"] == one["text"]


def test_pictures_of_a_compressed_file_are_the_same(folder: Path) -> None:
    plain = read(folder / "a-train.tfrecord")
    data = (folder / "a-train.tfrecord").read_bytes()
    (folder / "a-train.tfrecord").write_bytes(gzip.compress(data))
    packed = read(folder / "a-train.tfrecord")
    assert packed["rarest"] == plain["rarest"]
    assert packed["samples"] == plain["samples"] != []


def test_file_that_is_gone_before_its_pictures_are_read_is_no_report_without_pictures(folder: Path) -> None:
    collected = collect_stats(str(folder), has_picks=True)
    (folder / "a-test.tfrecord").unlink()
    with pytest.raises(StorageError, match=r"a-test\.tfrecord"):
        make_report(collected)


def test_report_does_not_depend_on_threads(folder: Path) -> None:
    assert read(folder, jobs=1) == read(folder, jobs=2)


def test_number_of_pictures_is_bounded(tmp_path: Path) -> None:
    path = write(tmp_path / "a", [{"image": encode((n, n, n), (8, 8)), "label": n % 40} for n in range(100)])
    report = read(path)
    assert len(report["samples"]) == NUM_SAMPLES
    levels = [decode(picture).getpixel((4, 4))[0] for picture in report["samples"]]  # type: ignore[index]
    assert min(levels) < 25 and max(levels) > 75  # from all over the file
    assert len(report["rarest"]["classes"]) == 8


def test_image_that_does_not_decode_has_its_cause(tmp_path: Path) -> None:
    (picture,) = read(write(tmp_path / "a", [{"image": encode((1, 2, 3))[:60]}]))["samples"]
    assert picture["data"] is None and picture["cause"]


def test_sizes_of_pictures_are_counted_by_pair(folder: Path) -> None:
    pictures = find(read(folder), "image")["pictures"]
    assert pictures["step"] == 1
    assert {(one["width"], one["height"]) for one in pictures["sizes"]} == {(60, 40), (61, 40), (62, 40)}
    assert sum(one["count"] for one in pictures["sizes"]) == 64


def test_many_sizes_are_rounded_and_none_is_lost(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    header = bytearray(encode((0, 0, 0)))
    rows = []
    for width, height in random.integers(1, 4000, (3000, 2)).tolist():
        header[16:24] = width.to_bytes(4, "big") + height.to_bytes(4, "big")
        rows.append({"image": bytes(header)})
    for jobs in (1, 2):
        pictures = find(read(write(tmp_path / "a", rows), jobs=jobs), "image")["pictures"]
        assert pictures["step"] > 1
        assert len(pictures["sizes"]) <= MAX_PAIRS
        assert sum(one["count"] for one in pictures["sizes"]) == 3000


def test_names_of_classes_replace_their_numbers_once(tmp_path: Path) -> None:
    rows = [
        {"image": encode((9, 9, 9)), "image/class/label": n % 3, "image/class/text": "abc"[n % 3]} for n in range(10)
    ]
    (classes,) = read(write(tmp_path / "a", rows))["classes"]
    assert classes["feature"] == "image/class/text"


def test_copies_are_pairs_with_pictures_and_leaks_first(tmp_path: Path) -> None:
    random = np.random.default_rng(4)

    def noise() -> Json:
        file = io.BytesIO()
        Image.fromarray(random.integers(0, 255, (40, 40, 3), np.uint8)).save(file, "PNG")
        return {"image": file.getvalue(), "label": 1}

    rows = [noise() for _ in range(6)]
    write(tmp_path / "a-train.tfrecord", [*rows[:4], rows[0]])
    write(tmp_path / "a-test.tfrecord", [*rows[4:], rows[1]])
    found = collect_stats(str(tmp_path), has_picks=True)
    assert make_report(found)["copies"] is None
    report = make_report(found, verify(str(tmp_path), deep=True))
    assert [pair["kind"] for pair in report["copies"]["pairs"]] == ["leak", "duplicate"]
    one, other = report["copies"]["pairs"][0]["records"]
    assert one["data"] == other["data"] is not None
    assert {one["split"], other["split"]} == {"train", "test"}
    assert {"level": "bad", "kind": "found_leak", "n": 1} in report["warnings"]


def test_paths_of_files_are_not_in_the_report(folder: Path) -> None:
    data = (folder / "a-test.tfrecord").read_bytes()
    (folder / "a-test.tfrecord").write_bytes(flip(data, frame_offsets(data)[3] + 20))
    report = make_report(collect_stats(str(folder), has_picks=True, on_error="skip"), verify(str(folder), deep=True))
    assert len(report["findings"]) == 1
    assert str(folder) not in json.dumps(report)


@pytest.mark.parametrize("kind", ["raw", "empty", "sequence", "text"])
def test_datasets_without_pictures_have_a_report(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.tfrecord"
    rows: list[Any] = {
        "raw": [b"\xff\xfe\xfd" * 9] * 4,
        "empty": [],
        "sequence": [{"context": {"id": 3}, "feature_lists": {"x": [[1.0], [2.0]]}}] * 3,
        "text": [{"label": b"a\xff"}, {"label": b"b"}] * 3,
    }[kind]
    with tfrkit.Writer(str(path)) as writer:
        for row in rows:
            writer.write_record(row) if kind == "raw" else writer.write(row)
    report = read(path)
    assert report["records"] == len(rows)
    assert report["samples"] == [] and report["rarest"] is None


def test_page_gets_the_sample_first_then_all_records_with_their_numbers(folder: Path, connect: Any) -> None:
    from talk import read_events

    client = connect(str(folder))
    name, report = read_events(client, "/api/report")[-1]
    assert name == "exact"
    assert report["records"] == 64
    numbers = [picture["number"] for one in report["rarest"]["classes"] for picture in one["pictures"]]
    labels = [str(client.viewer.sets[0].read_row(number)["label"]) for number in numbers]
    assert labels == [one["text"] for one in report["rarest"]["classes"] for _ in one["pictures"]]


def test_page_of_a_large_dataset_starts_with_a_sample(tmp_path: Path, connect: Any) -> None:
    from talk import read_events

    path = write(tmp_path / "a.tfrecord", [{"x": number} for number in range(6000)])
    events = read_events(connect(str(path)), "/api/report")
    assert [name for name, _ in events if name != "progress"] == ["sample", "exact"]
    assert [data["records"] for name, data in events if name != "progress"] == [4096, 6000]


def test_damage_in_the_report_leads_to_its_place(folder: Path, connect: Any) -> None:
    from talk import read_events

    path = folder / "a-test.tfrecord"
    data = path.read_bytes()
    path.write_bytes(flip(data, frame_offsets(data)[3] + 20))
    client = connect(str(path))
    (finding,) = read_events(client, "/api/report")[-1][1]["findings"]
    assert finding["number"] == 3
    assert client.get("/api/record/3").json()["damage"]["offset"] == frame_offsets(data)[3]


def test_classes_of_equal_size_have_no_rarest(tmp_path: Path) -> None:
    assert read(write(tmp_path / "x.tfrecord", [make_row(number, number % 2) for number in range(4)]))["rarest"] is None
    assert read(write(tmp_path / "y.tfrecord", [make_row(number, 1) for number in range(4)]))["rarest"] is None
