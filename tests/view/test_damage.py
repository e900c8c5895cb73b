"""Damaged records in filters, histograms and exports: left out of all of them, counted and named."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from talk import Connect, make_row, read_events, select

import tfrkit
from tfrkit.testing.corruption import flip, frame_offsets

pytest.importorskip("starlette")
pytest.importorskip("duckdb")

NOT_AN_EXAMPLE = b"\xff\xff not an Example"


def write(path: Path, *, other: int | None = None, num_rows: int = 30) -> str:
    """Write rows with `id` and `label`; the record `other` is no Example."""
    with tfrkit.Writer(path) as writer:
        for number in range(num_rows):
            if number == other:
                writer.write_record(NOT_AN_EXAMPLE)
            else:
                writer.write({"id": number, "label": number % 3, "name of": f"n{number}"})
    return str(path)


def flip_payload(path: str, record: int) -> int:
    data = Path(path).read_bytes()
    offset = int(frame_offsets(data)[record])
    Path(path).write_bytes(flip(data, offset + 20))
    return offset


@pytest.fixture(params=["payload", "other", "payload and header", "other and header", "payload and other"])
def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, list[int]]:
    """A path, and the ids of the damaged records: 10 with a wrong checksum or no Example, 20 with a wrong header."""
    path = write(tmp_path / "a.tfrecord", other=None if request.param.startswith("payload") else 10)
    lost = [10]
    if request.param == "payload and other":
        path = write(tmp_path / "a.tfrecord", other=20)
        lost.append(20)
    if request.param.startswith("payload"):
        flip_payload(path, 10)
    if request.param.endswith("header"):
        data = Path(path).read_bytes()
        Path(path).write_bytes(flip(data, int(frame_offsets(data)[20]) + 1))
        lost.append(20)
    return path, lost


def read_ids(client: Any, id: str) -> list[int]:
    rows = client.get(f"/api/rows?sel={id}").json()["rows"]
    return [int(row["card"][0]["text"]) if row["card"] else -1 for row in rows]


@pytest.mark.parametrize(
    ("where", "is_true"),
    [
        ("label = 1", lambda n: n % 3 == 1),
        ("id = 10", lambda n: n == 10),
        ("id >= 8 and id < 22", lambda n: 8 <= n < 22),
        ("true", lambda n: True),
    ],
)
def test_sample_exact_and_exports_agree(
    where: str, is_true: Any, damaged: tuple[str, list[int]], tmp_path: Path, connect: Connect
) -> None:
    path, lost = damaged
    client = connect(path, out=str(tmp_path / "out"))
    events = read_events(client, f"/api/select?where={quote(where)}")
    expected = [number for number in range(30) if is_true(number) and number not in lost]
    sample, exact = dict(events)["sample"], dict(events)["exact"]
    assert sample["matched"] == exact["count"] == len(expected)
    assert exact["damaged"] == len(lost)
    assert [(one["file"], one["record"]) for one in exact["damage"]] == [("a.tfrecord", number) for number in lost]
    assert read_ids(client, exact["sel"]) == expected
    for kind in ("tfrecord", "list"):
        made = client.post("/api/export", json={"as": kind, "name": "x", "sel": exact["sel"]}).json()
        assert (made["records"], made["damaged"]) == (len(expected), len(lost))
    assert len((tmp_path / "out" / "x.txt").read_text().splitlines()) == len(expected)
    if expected:
        with tfrkit.open(tmp_path / "out" / "x.tfrecord") as exported:
            assert [row["id"] for row in exported] == expected


def test_numbers_in_a_condition_are_those_of_the_records(tmp_path: Path, connect: Connect) -> None:
    path = write(tmp_path / "a.tfrecord")
    flip_payload(path, 10)
    client = connect(path)
    for where in ("_record between 9 and 12", "_record between 9 and 12 and id >= 0"):
        assert read_ids(client, select(client, f"where={quote(where)}")) == [9, 11, 12]
    assert read_ids(client, select(client, "sort=id&order=desc"))[17:22] == [12, 11, 9, 8, 7]


@pytest.mark.parametrize("is_damaged", [False, True])
def test_files_and_splits_in_a_condition_are_those_of_the_dataset(
    is_damaged: bool, tmp_path: Path, connect: Connect
) -> None:
    paths = [write(tmp_path / f"{name}.tfrecord") for name in ("data-test", "data-train")]
    lost = 2 * is_damaged
    for path in paths[:lost]:
        flip_payload(path, 10)
    client = connect(str(tmp_path))
    for where in ("_split = 'train'", "_file like '%train.tfrecord'", "_split = 'train' and id >= 0"):
        events = dict(read_events(client, f"/api/select?where={quote(where)}"))
        assert events["sample"]["matched"] == events["exact"]["count"] == 30 - is_damaged
        items = client.get(f"/api/rows?sel={events['exact']['sel']}").json()["rows"]
        assert {row["record"] for row in items} <= set(range(30, 60))
    assert read_events(client, "/api/select?where=_split%20is%20null")[-1][1]["count"] == 0


def test_sample_numbers_are_those_of_the_dataset(tmp_path: Path, connect: Connect) -> None:
    path = str(tmp_path / "a.tfrecord")
    with tfrkit.Writer(path) as writer:
        for number in range(9000):
            writer.write({"id": number})
    events = dict(read_events(connect(path), "/api/select?where=_record%20%3E%3D%208998%20and%20id%20%3E%200"))
    assert events["sample"]["matched"] <= 2
    assert set(events["sample"]["records"]) <= {8998, 8999}
    assert events["exact"]["count"] == 2


def test_histograms_leave_damaged_records_out(damaged: tuple[str, list[int]], connect: Connect) -> None:
    path, lost = damaged
    events = read_events(connect(path), "/api/figures")
    name, exact = events[-1]
    assert name == "exact", exact
    assert (exact["damaged"], exact["of"]) == (len(lost), 30 - len(lost))
    assert [one["record"] for one in exact["damage"]] == lost
    (label,) = [figure for figure in exact["figures"] if figure["feature"] == "label"]
    expected = [sum(n % 3 == k and n not in lost for n in range(30)) for k in range(3)]
    assert {bar["value"]: bar["count"] for bar in label["values"]} == dict(enumerate(expected))
    for sample in (data for event, data in events if event == "sample"):
        (figure,) = [figure for figure in sample["figures"] if figure["feature"] == "label"]
        assert sum(bar["count"] for bar in figure["values"]) == 30 - len(lost)


def test_damage_after_the_sample_is_found_by_the_pass_over_all_records(tmp_path: Path, connect: Connect) -> None:
    path = write(tmp_path / "a.tfrecord", num_rows=9000)
    flip_payload(path, 4001)
    client = connect(path)
    assert dict(read_events(client, "/api/select?where=label%20%3D%202"))["exact"]["count"] == 2999
    ((_, exact),) = [event for event in read_events(connect(path), "/api/figures") if event[0] == "exact"]
    assert (exact["damaged"], exact["damage"][0]["record"]) == (1, 4001)
    assert "payload checksum" in exact["damage"][0]["cause"]


@pytest.mark.parametrize("address", ["/api/figures", "/api/select?where=label%20%3D%201", "/api/report"])
def test_no_message_names_the_file_of_the_sample(address: str, tmp_path: Path, connect: Connect) -> None:
    """Also for records of which the sample cannot be queried: their features have two kinds."""
    other = write(tmp_path / "other.tfrecord", other=7)
    with tfrkit.Writer(tmp_path / "kind.tfrecord") as writer:
        writer.write({"id": 30, "label": 0.5})
    kinds = tmp_path / "kinds.tfrecord"
    kinds.write_bytes(Path(write(tmp_path / "a.tfrecord")).read_bytes() + (tmp_path / "kind.tfrecord").read_bytes())
    for path in (other, str(kinds)):
        text = connect(path).get(address).text
        assert "sample.tfrecord" not in text and ".tfrkit-view" not in text


def test_record_that_is_no_example_is_shown_as_damage(tmp_path: Path, connect: Connect) -> None:
    client = connect(write(tmp_path / "a.tfrecord", other=7))
    assert read_events(client, "/api/damage")[-1] == ("done", {"count": 1})
    row = client.get("/api/rows").json()["rows"][7]
    assert (row["damage"]["file"], row["damage"]["record"]) == ("a.tfrecord", 7)
    record = client.get("/api/record/7").json()
    assert record["damage"]["hint"].startswith("list all damage: tfr verify")
    assert len(record["features"]) == 1


def test_export_of_everything_counts_damaged_records(
    damaged: tuple[str, list[int]], tmp_path: Path, connect: Connect
) -> None:
    path, lost = damaged
    client = connect(path, out=str(tmp_path / "out"))
    for kind in ("tfrecord", "list"):
        made = client.post("/api/export", json={"as": kind, "name": "all", "sel": None}).json()
        assert (made["records"], made["damaged"]) == (30 - len(lost), len(lost))
    id = select(client, "damaged=1")
    made = client.post("/api/export", json={"as": "list", "name": "bad", "sel": id}).json()
    assert made["records"] + made["damaged"] == len(lost)


def test_images_have_the_names_that_tfr_export_images_gives_them(tmp_path: Path, connect: Connect) -> None:
    path = str(tmp_path / "a.tfrecord")
    picture = make_row(0)["image/encoded"]
    names = ["a/x.jpg", "b/x.jpg", "../b/x.jpg", "y", None]
    with tfrkit.Writer(path) as writer:
        for name in names:
            writer.write({"image/encoded": picture} | ({"image/filename": name} if name else {}))
        writer.write({"image/filename": "none.jpg"})
    client = connect(path, out=str(tmp_path / "out"))
    made = client.post("/api/export", json={"as": "images", "name": "some", "sel": None}).json()
    assert (made["records"], made["damaged"], made["without_image"]) == (5, 0, 1)
    tfrkit.tools.export_images(path, tmp_path / "other", layout="flat", on_bad="skip")

    def list_files(folder: Path) -> list[str]:
        return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())

    assert list_files(tmp_path / "out" / "some") == list_files(tmp_path / "other")
    assert "a/x.jpg" in list_files(tmp_path / "other")


def test_numbers_after_lost_bytes_are_marked_as_verify_marks_them(tmp_path: Path, connect: Connect) -> None:
    path = write(tmp_path / "a.tfrecord")
    data = Path(path).read_bytes()
    starts = frame_offsets(data)
    zeros = data[: starts[5]] + bytes(starts[15] - starts[5]) + data[starts[15] :]
    Path(path).write_bytes(flip(flip(zeros, starts[2] + 20), starts[20] + 20))
    expected = [(one.record, one.is_record_certain) for one in tfrkit.tools.verify(path).findings]
    assert expected == [(2, True), (5, True), (11, False)]
    client = connect(path)
    exact = dict(read_events(client, "/api/select?damaged=1"))["exact"]
    rows = client.get(f"/api/rows?sel={exact['sel']}").json()["rows"]
    assert [(row["damage"]["record"], row["damage"]["record_certain"]) for row in rows] == expected
    # Read one by one before the check, they have the same numbers.
    fresh = connect(path)
    places = [fresh.get(f"/api/place/{position}").json()["damage"] for position in (2, 5, 11)]
    assert [(one["record"], one["record_certain"]) for one in places] == expected
    events = read_events(fresh, "/api/report?deep=1")
    findings = dict(events)["exact"]["findings"]
    assert [(one["record"], one.get("record_certain", True)) for one in findings[:3]] == expected
