"""Damage in its place, counting in the background, and the corpus."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from talk import Connect, make_row, read_events, select

import tfrkit
from tfrkit._limits import LIMITS
from tfrkit.errors import StorageError, TfrkitError
from tfrkit.testing.commands import run_command
from tfrkit.testing.corruption import flip, frame_offsets, truncate
from tfrkit.view.describe import _describe_value
from tfrkit.view.opened import Opened

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.tfrecord"
    with tfrkit.Writer(path) as writer:
        for number in range(10):
            writer.write({"label": number})
    return path


def damage_header(path: Path, record: int) -> int:
    data = path.read_bytes()
    offset = int(frame_offsets(data)[record])
    path.write_bytes(flip(data, offset + 1))
    return offset


def list_items(opened: Opened) -> list[int]:
    return [opened.item_at(position) for position in range(opened.num_items)]


def test_items_of_a_sound_file_are_its_records(plain: Path) -> None:
    opened = Opened([str(plain)])
    assert list_items(opened) == list(range(10))
    assert [opened.position_of(number) for number in range(10)] == list(range(10))
    assert opened.read_row(7) == {"label": 7}
    opened.close()


@pytest.mark.parametrize("record", [0, 4, 9])
def test_broken_header_is_an_item_between_its_neighbours(record: int, plain: Path) -> None:
    offset = damage_header(plain, record)
    opened = Opened([str(plain)])
    items = list_items(opened)
    assert items == [*range(record), -1, *range(record, 9)]
    assert [opened.position_of(item) for item in items] == list(range(10))
    assert [opened.read_row(item)["label"] for item in items if item >= 0] == [n for n in range(10) if n != record]
    assert (opened.broken[0].record, opened.broken[0].offset) == (record, offset)
    opened.close()


def test_two_broken_places_in_two_shards_keep_their_places(tmp_path: Path) -> None:
    for shard in range(2):
        path = tmp_path / f"s-{shard:05d}-of-00002.tfrecord"
        with tfrkit.Writer(path) as writer:
            for number in range(5):
                writer.write({"label": shard * 5 + number})
        data = path.read_bytes()
        offsets = frame_offsets(data)
        path.write_bytes(flip(flip(data, int(offsets[1]) + 1), int(offsets[3]) + 1))
    opened = Opened([str(tmp_path)])
    shown = ["damage" if item < 0 else opened.read_row(item)["label"] for item in list_items(opened)]
    assert shown == [0, "damage", 2, "damage", 4, 5, "damage", 7, "damage", 9]
    opened.close()


def test_truncated_shard_ends_in_a_broken_item(plain: Path) -> None:
    data = plain.read_bytes()
    plain.write_bytes(truncate(data, len(data) - 3))
    opened = Opened([str(plain)])
    assert list_items(opened) == [*range(9), -1]
    opened.close()


def test_damage_is_shown_with_its_bytes(plain: Path, connect: Connect) -> None:
    pytest.importorskip("starlette")
    offset = damage_header(plain, 3)
    client = connect(str(plain))
    (one,) = client.get("/api/set").json()["sets"]
    assert (one["count"], one["records"], one["damage"], one["is_damaged"]) == (10, 9, 1, True)
    rows = client.get("/api/rows").json()["rows"]
    assert [row["record"] for row in rows] == [0, 1, 2, None, *range(3, 9)]
    damage = rows[3]["damage"]
    assert (damage["file"], damage["record"], damage["offset"]) == ("plain.tfrecord", 3, offset)
    assert "length" in damage["cause"]
    place = client.get("/api/place/3").json()
    assert (place["record"], place["previous"], place["next"]) == (None, 2, 4)
    page = client.get(f"/api/hex?shard=0&offset={offset}&at=-8&count=64").json()
    assert bytes.fromhex(page["hex"]) == plain.read_bytes()[offset - 8 : offset + 56]
    assert next(field for field in page["fields"] if field["what"] == "length checksum")["is_bad"]


def test_wrong_payload_checksum_keeps_its_number_and_is_found_by_a_check(plain: Path, connect: Connect) -> None:
    pytest.importorskip("starlette")
    data = plain.read_bytes()
    offset = int(frame_offsets(data)[6])
    plain.write_bytes(flip(data, offset + 14))
    client = connect(str(plain))
    rows = client.get("/api/rows").json()["rows"]
    assert [row["record"] for row in rows] == list(range(10))
    assert [row["position"] for row in rows if row["damage"]] == [6]
    assert "payload checksum" in rows[6]["damage"]["cause"]
    client = connect(str(plain))
    events = read_events(client, "/api/damage")
    (found,) = [data for name, data in events if name == "found"]
    assert (found["record"], found["offset"], found["position"]) == (6, offset, 6)
    assert events[-1] == ("done", {"count": 1})
    id = select(client, "damaged=1")
    assert [row["record"] for row in client.get(f"/api/rows?sel={id}").json()["rows"]] == [6]
    page = client.get("/api/hex/6").json()
    assert page["fields"][-1]["what"] == "payload checksum" and page["fields"][-1]["is_bad"]


def test_filter_on_a_damaged_file_selects_its_sound_records(plain: Path, connect: Connect) -> None:
    pytest.importorskip("starlette")
    pytest.importorskip("duckdb")
    damage_header(plain, 3)
    client = connect(str(plain))
    id = select(client, "where=label%20%3E%206")
    rows = client.get(f"/api/rows?sel={id}").json()["rows"]
    assert [row["card"][0]["text"] for row in rows] == ["7", "8", "9"]
    id = select(client, "damaged=1")
    assert [row["record"] for row in client.get(f"/api/rows?sel={id}").json()["rows"]] == [None]


def test_torn_gzip_shows_what_inflates(plain: Path, tmp_path: Path) -> None:
    path = tmp_path / "torn.tfrecord.gz"
    whole = gzip.compress(plain.read_bytes() * 50)
    path.write_bytes(whole[: len(whole) // 2])
    opened = Opened([str(path)])
    assert opened.num_records > 0 and len(opened.broken) == 1
    assert list_items(opened)[-1] == -1
    opened.close()


def test_front_is_served_while_the_rest_is_counted(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from tfrkit.batches.access import Records

    monkeypatch.setattr(LIMITS, "quick_count_nbytes", 0)
    release = threading.Event()
    count = Records._count_shards
    monkeypatch.setattr(Records, "_count_shards", lambda records: (release.wait(30), count(records))[1])
    opened = Opened([str(plain)])
    assert (opened.is_complete, opened.num_records) == (False, 10)
    assert opened.read_row(3) == {"label": 3}
    offset = opened.locate(4).offset
    with pytest.raises(IndexError, match="record 10 of 10, more are being counted"):
        opened.read(10)
    release.set()
    opened.require_complete()
    assert opened.is_complete and opened.read_row(9) == {"label": 9}
    assert opened.locate(4).offset == offset
    opened.close()


def test_pipe_is_refused_clearly(tmp_path: Path) -> None:
    with pytest.raises((StorageError, ValueError), match="pipe"):
        Opened(["-"])


def load_entries() -> list[dict[str, Any]]:
    if not CORPUS.is_dir():
        return []
    return [entry for entry in json.loads((CORPUS / "MANIFEST.json").read_text()) if entry["kind"] == "record"]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus folder ../shared/corpus is not here")
def test_every_file_of_the_corpus_agrees_with_info_and_head(connect: Connect) -> None:
    pytest.importorskip("starlette")
    faults = []
    for entry in load_entries():
        path = str(CORPUS / entry["file"])
        info = run_command(["info", path, "--format", "json"])
        if entry["records"] is None:
            with pytest.raises(TfrkitError):
                Opened([path])
            continue
        client = connect(path)
        (one,) = client.get("/api/set").json()["sets"]
        described = json.loads(info.stdout)
        kind = "raw" if described["kind"] == "mixed" else described["kind"]
        if (one["records"], one["kind"]) != (entry["records"], kind):
            faults.append(f"{entry['file']}: {one['records']} {one['kind']}, not {entry['records']} {kind}")
        if entry["records"] and one["kind"] != "raw":
            head = json.loads(run_command(["head", path, "-n", "1", "--format", "json"]).stdout)[0]
            row = {**head.get("context", {}), **head.get("feature_lists", {})} if kind == "sequence_example" else head
            record = client.get("/api/record/0").json()
            if sorted(feature["name"] for feature in record["features"]) != sorted(row):
                faults.append(f"{entry['file']}: other features than tfr head")
            if client.get("/t?first=0&count=2").status_code != 200:
                faults.append(f"{entry['file']}: no tiles")
    assert not faults, "\n".join(faults)


def test_mask_and_boxes_of_a_tile_survive_compression(tmp_path: Path) -> None:
    for suffix in (".gz", ".zlib", ".xz", ".zst"):
        path = tmp_path / f"a.tfrecord{suffix}"
        with tfrkit.Writer(path) as writer:
            for number in range(3):
                writer.write(make_row(number))
        opened = Opened([str(path)])
        assert opened.num_records == 3
        assert opened.read_row(2)["note"] == b"record 2"
        opened.close()


def test_feature_that_the_schema_lacks_is_still_shown(tmp_path: Path, connect: Connect) -> None:
    pytest.importorskip("starlette")
    path = tmp_path / "late.tfrecord.gz"
    with tfrkit.Writer(path) as writer:
        for number in range(5000):
            writer.write({"label": number} | ({"late": "a text"} if number == 4999 else {}))
    client = connect(str(path))
    assert [feature["name"] for feature in client.get("/api/set").json()["sets"][0]["features"]] == ["label"]
    shown = {feature["name"]: feature for feature in client.get("/api/record/4999").json()["features"]}
    assert (shown["label"]["values"], shown["late"]["value"]) == ([4999], "a text")
    assert client.get("/raw/4999?feature=late").content == b"a text"
    assert [feature["name"] for feature in client.get("/api/record/4998").json()["features"]] == ["label"]


def test_split_of_a_record_is_that_of_its_shard(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"x-{split}.tfrecord") for split in ("test", "train")]
    for path in paths:
        with tfrkit.Writer(path) as writer:
            writer.write({"x": 1})
            writer.write({"x": 2})
    opened = Opened(paths)
    assert [opened.find_split(record) for record in range(4)] == ["test", "test", "train", "train"]
    opened.close()


def test_value_that_is_missing_is_not_cut(plain: Path) -> None:
    for value in (None, b"x", [1, 2]):
        assert _describe_value("x", "", value, None, 0, {})["is_cut"] is False
