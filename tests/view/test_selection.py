"""Selections, histograms, tags and exports, through the ASGI test client."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image
from talk import Connect, make_row, read_events, select

import tfrkit
from tfrkit.errors import StorageError
from tfrkit.view.keep import TAGS_FILE, Tags

pytest.importorskip("starlette")
pytest.importorskip("duckdb")


def list_records(client: Any, query: str) -> list[int]:
    id = select(client, query)
    return [row["record"] for row in client.get(f"/api/rows?sel={id}").json()["rows"]]


@pytest.mark.parametrize(
    "where",
    ["label = 1", "score > 1 and label <> 0", "note like '%1%'", "_record < 3 or _record = 11", "false", "true"],
)
def test_condition_selects_what_sql_selects(where: str, pictures: str, connect: Connect) -> None:
    rows = tfrkit.sql(f"select _record from '{pictures}' where {where} order by 1")
    assert list_records(connect(pictures), f"where={quote(where)}") == [row["_record"] for row in rows]


def test_selection_reports_sample_then_exact(pictures: str, connect: Connect) -> None:
    client = connect(pictures)
    events = read_events(client, "/api/select?where=label%20%3D%202")
    assert [name for name, _ in events if name != "progress"] == ["begin", "sample", "exact"]
    sample = dict(events)["sample"]
    assert (sample["of"], sample["matched"], sample["estimate"], sample["records"]) == (12, 4, 4, [2, 5, 8, 11])
    assert events[-1][1]["count"] == 4
    again = read_events(client, "/api/select?where=label%20%3D%202")
    assert [name for name, _ in again] == ["begin", "exact"]


@pytest.mark.parametrize(
    "where",
    [
        "labl = 1",
        "label = ",
        "1) union select 1 --",
        "label = 1; drop table x",
        "exists (select * from read_csv('/etc/passwd'))",
        "exists (select * from '/etc/passwd')",
        "(select count(*) from read_text('/etc/passwd')) > 0",
        "getenv('HOME') = ''",
    ],
)
def test_wrong_or_reaching_condition_fails(where: str, pictures: str, connect: Connect) -> None:
    name, shape = read_events(connect(pictures), f"/api/select?where={quote(where)}")[-1]
    assert name == "fail"
    assert (shape["ok"], shape["status"]) == (False, 400)
    assert "root:" not in str(shape)


def test_sorted_by_a_feature_in_both_directions(pictures: str, connect: Connect) -> None:
    client = connect(pictures)
    assert list_records(client, "sort=score&order=desc") == list(range(11, -1, -1))
    assert list_records(client, "sort=label&where=_record%20%3C%206") == [0, 3, 1, 4, 2, 5]
    assert read_events(client, "/api/select?sort=nothing")[-1][0] == "fail"


def test_neighbours_are_those_of_the_selection(pictures: str, connect: Connect) -> None:
    client = connect(pictures)
    id = select(client, "sort=score&order=desc")
    record = client.get(f"/api/record/4?sel={id}").json()
    assert (record["position"], record["previous"], record["next"]) == (7, 6, 8)
    assert client.get(f"/api/place/8?sel={id}").json()["record"] == 3
    id = select(client, "where=label%20%3D%200")
    assert client.get(f"/api/record/4?sel={id}").json()["position"] is None


def test_split_and_tag_narrow_a_condition(tmp_path: Path, connect: Connect) -> None:
    for split, numbers in (("train", range(8)), ("test", range(8, 12))):
        with tfrkit.Writer(tmp_path / f"data-{split}.tfrecord") as writer:
            for number in numbers:
                writer.write(make_row(number))
    client = connect(str(tmp_path))
    splits = client.get("/api/set").json()["sets"][0]["splits"]
    assert splits == {"test": 4, "train": 8} or splits == {"train": 8, "test": 4}
    first = 4 if next(iter(splits)) == "test" else 0
    assert list_records(client, "split=train") == list(range(first, first + 8))
    assert len(list_records(client, "split=test&where=label%20%3D%202")) == 2
    name, shape = read_events(client, "/api/select?split=no")[-1]
    assert (name, shape["error"]) == ("fail", f"no split 'no', there is {', '.join(splits)}")


def test_tags_are_kept_in_the_folder_of_exports(pictures: str, tmp_path: Path, connect: Connect) -> None:
    out = str(tmp_path / "out")
    client = connect(pictures, out=out)
    body = {"name": "hard", "records": [1, 4, 5], "on": True}
    assert client.post("/api/tag", json=body).json() == {"ok": True, "tags": {"hard": 3}}
    assert list_records(client, "tag=hard") == [1, 4, 5]
    client.post("/api/tag", json=body | {"records": [4], "on": False})
    assert list_records(client, "tag=hard") == [1, 5]
    assert client.get("/api/record/5").json()["tags"] == ["hard"]
    assert connect(pictures, out=out).get("/api/set").json()["tags"] == {"hard": 2}
    id = select(client, "where=label%20%3D%200")
    assert client.post("/api/tag", json={"name": "zero", "sel": id}).json()["tags"]["zero"] == 4


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "null", '{"a": [1]}', '{"a": {"0": 1}}', '{"a": {"x": [1]}}', '{"a": {"0": [true]}}', "[" * 99_999,
     '{"a": {"0": [-1]}}', f'{{"a": {{"0": [{10**30}]}}}}', f'{{"a": {{"{"9" * 5000}": []}}}}', "\udcff"],
)  # fmt: skip
def test_damaged_tags_are_an_error_that_names_the_file(text: str, tmp_path: Path) -> None:
    (tmp_path / TAGS_FILE).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(StorageError, match=r"(expected|not JSON).*tags\.json"):
        Tags(str(tmp_path))


@pytest.mark.parametrize(
    "body",
    [
        {"name": "../x", "records": [1]},
        {"name": "", "records": [1]},
        {"name": "a/b", "records": [1]},
        {"name": ".hidden", "records": [1]},
        {"name": "x", "records": "all"},
        {"name": "x", "records": [True]},
        {"name": "x", "records": [-1]},
        {"name": "x", "records": [99]},
        {"name": "x"},
        {},
        [],
        "text",
    ],
    ids=str,
)
def test_wrong_tag_is_refused(body: Any, pictures: str, connect: Connect) -> None:
    answer = connect(pictures).post("/api/tag", json=body)
    assert answer.status_code in (400, 404)
    assert answer.json()["ok"] is False


def test_export_of_a_selection_is_byte_for_byte(pictures: str, tmp_path: Path, connect: Connect) -> None:
    client = connect(pictures, out=str(tmp_path / "out"))
    id = select(client, "where=label%20%3D%201")
    made = client.post("/api/export", json={"as": "tfrecord", "name": "ones", "sel": id}).json()
    assert (made["ok"], made["records"]) == (True, 4)
    with tfrkit.open(pictures) as all_records, tfrkit.open(made["path"]) as exported:
        assert list(exported.records()) == [all_records.records()[number] for number in (1, 4, 7, 10)]
    whole = client.post("/api/export", json={"as": "tfrecord", "name": "all", "sel": None}).json()
    assert Path(whole["path"]).read_bytes() == Path(pictures).read_bytes()
    again = client.post("/api/export", json={"as": "tfrecord", "name": "all"})
    assert (again.status_code, again.json()["error"]) == (409, "the output exists already")
    assert again.json()["where"]["hint"] == "choose another name"


def test_export_as_images_and_as_a_list(pictures: str, tmp_path: Path, connect: Connect) -> None:
    client = connect(pictures, out=str(tmp_path / "out"))
    id = select(client, "where=_record%20in%20(2%2C%205)")
    made = client.post("/api/export", json={"as": "images", "name": "some", "sel": id}).json()
    files = sorted(Path(made["path"]).iterdir())
    assert [file.name for file in files] == ["000002.jpg", "000005.jpg"]
    assert files[1].read_bytes() == make_row(5)["image/encoded"]
    made = client.post("/api/export", json={"as": "list", "name": "some", "sel": id}).json()
    lines = [line.split("\t") for line in Path(made["path"]).read_text().splitlines()]
    assert [(line[0], line[1], line[2]) for line in lines] == [("2", pictures, "2"), ("5", pictures, "5")]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"as": "tfrecord", "name": "../../x"}, 400),
        ({"as": "tfrecord", "name": "/tmp/x"}, 400),
        ({"as": "tfrecord", "name": ".."}, 400),
        ({"as": "zip", "name": "x"}, 400),
        ({"as": "tfrecord"}, 400),
        ({"as": "tfrecord", "name": "x", "sel": "nothing"}, 410),
        ({"as": "tfrecord", "name": "x", "d": 5}, 404),
    ],
    ids=str,
)
def test_wrong_export_is_refused(body: Any, status: int, pictures: str, tmp_path: Path, connect: Connect) -> None:
    answer = connect(pictures, out=str(tmp_path / "out")).post("/api/export", json=body)
    assert answer.status_code == status


def test_export_without_a_folder_is_refused(pictures: str, connect: Connect) -> None:
    answer = connect(pictures).post("/api/export", json={"as": "tfrecord", "name": "x"})
    assert (answer.status_code, answer.json()["error"]) == (409, "no folder for exports, start with --out DIR")


def test_histograms_agree_with_sql_and_their_conditions_select_their_bars(tmp_path: Path, connect: Connect) -> None:
    path = str(tmp_path / "many.tfrecord")
    with tfrkit.Writer(path) as writer:
        for number in range(6000):
            writer.write({"label": number % 7, "x": (number % 100) / 8, "name": f"it's {number % 3}", "n": number})
    client = connect(path)
    id = select(client, "where=label%20%3C%202")
    events = read_events(client, f"/api/figures?sel={id}")
    assert [name for name, _ in events if name != "progress"] == ["sample", "exact"]
    sample, exact = dict(events)["sample"], dict(events)["exact"]
    assert (sample["is_exact"], sample["of"], sample["total"]) == (False, 4096, 6000)
    figures = {figure["feature"]: figure for figure in exact["figures"]}
    assert exact["is_exact"] and set(figures) == {"label", "x", "name", "n"}
    label = figures["label"]
    assert (label["type"], label["num_values"], label["values"][0]["count"]) == ("values", 7, 858)
    assert sum(bar["chosen"] for bar in label["values"]) == 858 + 857
    for feature in ("x", "n"):
        assert sum(bar["count"] for bar in figures[feature]["bins"]) == 6000
    for bar in (
        figures["x"]["bins"][0],
        figures["x"]["bins"][-1],
        figures["n"]["bins"][7],
        figures["name"]["values"][1],
    ):
        (counted,) = tfrkit.sql(f"select count(*) n from '{path}' where {bar['where']}")
        assert counted["n"] == bar["count"], bar


def test_constant_missing_and_special_numbers_have_figures(tmp_path: Path, connect: Connect) -> None:
    path = str(tmp_path / "odd.tfrecord")
    with tfrkit.Writer(path) as writer:
        for number in range(20):
            row: dict[str, Any] = {"same": 1.5, "special": float("nan") if number % 2 else float(number)}
            writer.write(row | ({"rare": number} if number < 5 else {}))
    ((name, data),) = read_events(connect(path), "/api/figures")
    figures = {figure["feature"]: figure for figure in data["figures"]}
    assert name == "exact"
    assert [bar["count"] for bar in figures["same"]["bins"]] == [20]
    assert sum(bar["count"] for bar in figures["special"]["bins"]) == 10
    assert (figures["special"]["min"], figures["special"]["max"]) == (0.0, 18.0)
    assert (figures["rare"]["count"], figures["rare"]["missing"]) == (5, 15)


def test_features_whose_names_differ_in_case_have_figures_and_orders_of_their_own(
    tmp_path: Path, connect: Connect
) -> None:
    path = str(tmp_path / "x.tfrecord")
    with tfrkit.Writer(path) as writer:
        for number in range(4):
            writer.write({"Kind": number, "kind": 7 - number})
    client = connect(path)
    ((_, data),) = read_events(client, "/api/figures")
    figures = {figure["feature"]: figure for figure in data["figures"]}
    assert [bar["value"] for bar in figures["Kind"]["values"]] == [0, 1, 2, 3]
    assert [bar["value"] for bar in figures["kind"]["values"]] == [4, 5, 6, 7]
    assert list_records(client, f"where={quote(figures['kind']['values'][0]['where'])}") == [3]
    assert list_records(client, "sort=kind") == [3, 2, 1, 0]


def test_export_of_raw_pixels_is_png(tmp_path: Path, connect: Connect) -> None:
    pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    with tfrkit.Writer(tmp_path / "x.tfrecord") as writer:
        writer.write({"image": pixels.tobytes(), "height": 4, "width": 4})
    client = connect(str(tmp_path / "x.tfrecord"), out=str(tmp_path / "out"))
    made = client.post("/api/export", json={"as": "images", "name": "raw"}).json()
    [file] = Path(made["path"]).iterdir()
    assert file.name == "000000.png" and np.array_equal(np.asarray(Image.open(file)), pixels)


def test_figures_count_the_records_of_both_passes() -> None:
    from tfrkit.view.figures import _Figures

    figures = object.__new__(_Figures)
    figures._session, figures._num_before = None, 0
    assert figures.num_read == 0
    figures._session = SimpleNamespace(scans=[])  # type: ignore[assignment]
    assert figures.num_read == 0
    figures._session = SimpleNamespace(scans=[SimpleNamespace(num_read=3), SimpleNamespace(num_read=5)])  # type: ignore[assignment]
    assert figures.num_read == 5
    figures._num_before = 12
    assert figures.num_read == 17
