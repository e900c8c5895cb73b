"""The routes, through the ASGI test client."""

from __future__ import annotations

import io
import os
import wave
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image
from talk import Connect, encode, make_row, read_events, read_tiles, select

import tfrkit

pytest.importorskip("starlette")
IMAGE = quote("image/encoded", safe="")
MASK = quote("image/segmentation/class/encoded", safe="")


def test_start_has_counts_features_and_guesses(pictures: str, connect: Connect) -> None:
    start = connect(pictures, where="label = 1", record=3, lang="zh").get("/api/set").json()
    assert (start["lang"], start["start"]) == ("zh", {"where": "label = 1", "record": 3})
    assert start["can"] == {"sql": True, "export": None, "tags": True, "compare": False}
    (one,) = start["sets"]
    assert (one["kind"], one["count"], one["records"], one["is_complete"]) == ("example", 12, 12, True)
    values = {name: guess["value"] for name, guess in one["guesses"].items()}
    assert values == {
        "image": "image/encoded",
        "label": "label",
        "mask": "image/segmentation/class/encoded",
        "boxes": "image/object/bbox",
        "names": "image/object/class/text",
        "box_order": "xyxy",
        "box_units": "fraction",
        "shape": None,
    }
    label = next(feature for feature in one["features"] if feature["name"] == "label")
    assert (label["column"], label["can_sort"], label["can_plot"]) == ("label", True, True)


def test_guesses_are_overridden_by_parameters_of_the_same_names(pictures: str, connect: Connect) -> None:
    client = connect(pictures)
    (one,) = client.get("/api/set?label=note&mask=-").json()["sets"]
    assert one["guesses"]["label"] == {"value": "note", "options": ["label", "note"], "is_given": True} | {
        "options": one["guesses"]["label"]["options"]
    }
    assert one["guesses"]["mask"]["value"] is None
    (row,) = client.get("/api/rows?first=2&count=1&label=note&mask=-&boxes=-").json()["rows"]
    assert (row["caption"], row["boxes"], row["classes"]) == ([{"text": "record 2", "color": None}], [], [])


@pytest.mark.parametrize(
    ("address", "status", "error"),
    [
        ("/api/set?image=nothing", 400, "no feature 'nothing'"),
        ("/api/set?box_order=abc", 400, "box_order expected xyxy, yxyx, xywh, cxcywh, got 'abc'"),
        ("/api/set?shape=0x0", 400, "shape expected"),
        ("/api/rows?first=-1", 400, "first expected a number, got '-1'"),
        ("/api/rows?first=٣", 400, "first expected a number"),
        ("/api/rows?d=1", 404, "dataset 1 of 1"),
        ("/api/rows?sel=000000", 410, "the selection is no longer known"),
        ("/t?size=9999", 400, "size expected 32 to 512, got 9999"),
        ("/api/record/12", 404, "record 12 of 12"),
        ("/api/place/12", 404, "position expected below 12, got 12"),
        ("/api/record/x", 404, "no such address"),
        ("/api/nothing", 404, "no such address"),
        ("/w/nothing.js", 404, "no such file"),
        ("/w/app.py", 404, "no such file"),
        ("/i/0", 400, "feature expected a name, got nothing"),
        ("/i/0?feature=label", 415, None),
        ("/i/0?feature=nothing", 404, "record 0 has no feature 'nothing'"),
        (f"/i/0?feature={IMAGE}&frame=1", 404, "frame 1 of 1"),
        ("/m/0?feature=note", 415, None),
        ("/a/0?feature=note", 415, "feature 'note' holds no audio"),
        ("/raw/99", 404, "record 99 of 12"),
        ("/api/hex?shard=7&offset=0", 404, "shard 7 of 1"),
        ("/api/hex", 400, "shard expected a number, got nothing"),
        ("/api/select?order=up", 400, "order expected asc or desc, got 'up'"),
        ("/api/compare", 409, "one dataset is open, start with --compare to compare two"),
        ("/api/export", 405, "method is not allowed here"),
    ],
)
def test_wrong_request_is_answered_in_the_one_error_shape(
    address: str, status: int, error: str | None, pictures: str, connect: Connect
) -> None:
    answer = connect(pictures).get(address)
    assert answer.status_code == status
    shape = answer.json()
    assert (shape["ok"], shape["status"], set(shape)) == (False, status, {"ok", "error", "status", "where"})
    assert error is None or shape["error"].startswith(error)


def test_tiles_have_picture_mask_boxes_and_caption(pictures: str, connect: Connect) -> None:
    tiles = read_tiles(connect(pictures), "/t?first=3&count=4&size=64")
    assert [row["position"] for row, _ in tiles] == [3, 4, 5, 6]
    row, (picture, mask) = tiles[0]
    assert (row["record"], row["width"], row["height"], row["classes"]) == (3, 40, 30, [0, 1])
    assert row["caption"] == [{"text": "0", "color": None}]
    assert row["boxes"][0]["box"] == [0.25, 0.5, 0.75, 1.0]
    assert Image.open(io.BytesIO(picture)).size == (40, 30)
    numbers = np.asarray(Image.open(io.BytesIO(mask)))
    assert numbers.shape == (30, 40) and set(np.unique(numbers)) == {0, 1}
    (row, parts), *_ = read_tiles(connect(pictures), "/t?first=0&count=1&size=32&masks=0")
    assert [part["name"] for part in row["parts"]] == ["image"] and len(parts) == 1


def test_tiles_with_the_stamp_may_be_kept_by_the_browser(pictures: str, connect: Connect) -> None:
    client = connect(pictures)
    stamp = client.get("/api/set").json()["sets"][0]["stamp"]
    assert "immutable" in client.get(f"/t?count=1&v={stamp}").headers["cache-control"]
    assert client.get("/t?count=1&v=old").headers["cache-control"] == "no-store"


def test_record_has_all_features_as_what_they_are(pictures: str, connect: Connect) -> None:
    record = connect(pictures).get("/api/record/4").json()
    assert (record["position"], record["previous"], record["next"], record["ordinal"]) == (4, 3, 5, 4)
    shown = {feature["name"]: feature for feature in record["features"]}
    assert {name: feature["show"] for name, feature in shown.items()} == {
        "image/encoded": "image",
        "image/segmentation/class/encoded": "mask",
        "image/object/class/text": "text",
        **{f"image/object/bbox/{side}": "number" for side in ("xmin", "ymin", "xmax", "ymax")},
        "label": "number",
        "score": "number",
        "note": "text",
    }
    assert shown["note"]["value"] == "record 4"
    assert shown["label"]["values"] == [1]
    assert (shown["image/encoded"]["role"], shown["label"]["role"]) == ("image", "label")
    picture = record["picture"]
    assert (picture["width"], picture["height"], picture["mask"]["classes"]) == (40, 30, [0, 2])


def test_original_picture_mask_and_payload_are_served_in_a_sandbox(pictures: str, connect: Connect) -> None:
    client = connect(pictures)
    row = make_row(5)
    picture = client.get(f"/i/5?feature={IMAGE}")
    assert (picture.content, picture.headers["content-type"]) == (row["image/encoded"], "image/jpeg")
    assert picture.headers["content-security-policy"].startswith("sandbox")
    mask = client.get(f"/m/5?feature={MASK}")
    assert set(np.unique(np.asarray(Image.open(io.BytesIO(mask.content))))) == {0, 3}
    raw = client.get(f"/raw/5?feature={MASK}")
    assert raw.content == row["image/segmentation/class/encoded"]
    assert raw.headers["content-disposition"] == 'attachment; filename="record-5.bin"'
    with tfrkit.open(pictures) as dataset:
        assert client.get("/raw/5").content == dataset.records()[5]


def test_hostile_bytes_are_never_a_page(tmp_path: Path, connect: Connect) -> None:
    svg, page = b'<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>', b"<html><script>1</script>"
    path = str(tmp_path / "hostile.tfrecord")
    with tfrkit.Writer(path) as writer:
        for image in (svg, page, b"GIF89a", b"\xff\xd8\xff\xe0" + b"\0" * 40):
            writer.write({"image": image, "label": "\u202etxt<b>"})
    client = connect(path)
    for record, image in enumerate((svg, page)):
        assert client.get(f"/i/{record}?feature=image").status_code == 415
        raw = client.get(f"/raw/{record}?feature=image")
        assert (raw.content, raw.headers["content-type"]) == (image, "application/octet-stream")
        assert raw.headers["content-disposition"].startswith("attachment")
        assert raw.headers["x-content-type-options"] == "nosniff"
    for row, parts in read_tiles(client, "/t?first=0&count=4&image=image"):
        assert parts == [] and row["cause"]


def test_declared_bomb_is_a_tile_that_says_why(tmp_path: Path, connect: Connect) -> None:
    bomb = bytearray(encode(np.zeros((8, 8, 3), np.uint8), "PNG"))
    bomb[16:24] = (100_000).to_bytes(4, "big") * 2
    path = str(tmp_path / "bomb.tfrecord")
    with tfrkit.Writer(path) as writer:
        writer.write({"image": bytes(bomb)})
    ((row, parts),) = read_tiles(connect(path), "/t?first=0&count=1")
    assert parts == [] and row["cause"]


def test_tiles_of_a_file_that_was_truncated_meanwhile_say_why(pictures: str, connect: Connect) -> None:
    client = connect(pictures)
    assert read_tiles(client, "/t?first=0&count=1")[0][0]["cause"] is None
    os.truncate(pictures, os.path.getsize(pictures) // 2)
    tiles = read_tiles(client, "/t?first=8&count=4")
    assert len(tiles) == 4
    assert all("shorter" in tile["cause"] for tile, _ in tiles)


def test_hex_explains_the_frame_field_by_field(pictures: str, connect: Connect) -> None:
    page = connect(pictures).get("/api/hex/0?count=4096").json()
    assert page["is_frame"] and len(bytes.fromhex(page["hex"])) == page["total"]
    fields = {field["path"]: field for field in page["fields"]}
    assert fields['features.feature["label"].int64_list.value']["value"] == "0"
    assert [field["what"] for field in page["fields"] if field["path"] == "frame"] == [
        "length",
        "length checksum",
        "payload checksum",
    ]
    assert not any(field["is_bad"] for field in page["fields"])


def test_values_are_paged(tmp_path: Path, connect: Connect) -> None:
    path = str(tmp_path / "long.tfrecord")
    with tfrkit.Writer(path) as writer:
        writer.write({"tokens": np.arange(5000), "text": "abcdef" * 5000, "x": [float("nan"), float("inf")]})
    client = connect(path)
    shown = {feature["name"]: feature for feature in client.get("/api/record/0").json()["features"]}
    assert (shown["tokens"]["count"], len(shown["tokens"]["values"]), shown["tokens"]["is_cut"]) == (5000, 256, True)
    assert (len(shown["text"]["value"]), shown["text"]["is_cut"]) == (10_000, True)
    assert shown["x"]["values"] == [{"float": "nan"}, {"float": "inf"}]
    page = client.get("/api/values/0?feature=tokens&first=4000&count=3").json()
    assert (page["total"], page["values"]) == (5000, [4000, 4001, 4002])
    assert client.get("/api/values/0?feature=text&first=1&count=3").json()["values"] == ["bcd"]


def test_sequence_and_raw_records_are_shown(tmp_path: Path, connect: Connect) -> None:
    frames = [encode(np.full((8, 8, 3), 50 * number, np.uint8), "PNG") for number in range(3)]
    path = str(tmp_path / "clip.tfrecord")
    with tfrkit.Writer(path) as writer:
        writer.write({"context": {"id": 7}, "feature_lists": {"frames": frames, "steps": [[1], [2, 3], [4]]}})
    client = connect(path)
    record = client.get("/api/record/0").json()
    shown = {feature["name"]: feature for feature in record["features"]}
    assert (shown["id"]["part"], shown["frames"]["part"]) == ("context", "feature_lists")
    assert [item["show"] for item in shown["frames"]["items"]] == ["image"] * 3
    assert client.get("/i/0?feature=frames&frame=2").content == frames[2]
    assert record["picture"]["frames"] == 3
    path = str(tmp_path / "raw.tfrecord")
    with tfrkit.Writer(path) as writer:
        writer.write_record(b"no message \xff")
    client = connect(path)
    assert client.get("/api/set").json()["sets"][0]["kind"] == "raw"
    (row,) = client.get("/api/rows").json()["rows"]
    assert row["card"][0]["name"] == "record"
    assert client.get("/api/record/0").json()["features"][0]["show"] == "bytes"


def test_raw_pixels_have_a_guessed_shape_that_can_be_changed(tmp_path: Path, connect: Connect) -> None:
    path = str(tmp_path / "raw_pixels.tfrecord")
    with tfrkit.Writer(path) as writer:
        for number in range(3):
            writer.write({"data": bytes([number * 40, 0xFF]) * (224 * 112)})
    client = connect(path)
    guess = client.get("/api/set").json()["sets"][0]["guesses"]
    assert (guess["image"]["value"], guess["shape"]["value"]) == ("data", "224x224")
    assert "224x224" in guess["shape"]["options"]
    ((row, _),) = read_tiles(client, "/t?first=0&count=1")
    assert (row["width"], row["height"]) == (224, 224)
    ((row, _),) = read_tiles(client, "/t?first=0&count=1&shape=112x448&image=data")
    assert (row["width"], row["height"]) == (448, 112)
    picture = client.get("/i/0?feature=data&shape=112x448&image=data")
    assert Image.open(io.BytesIO(picture.content)).size == (448, 112)


def test_boxes_in_pixels_are_found_and_shown_as_fractions(tmp_path: Path, connect: Connect) -> None:
    row: dict[str, Any] = make_row(0)
    for side, at in zip(("xmin", "ymin", "xmax", "ymax"), (10.0, 3.0, 20.0, 30.0), strict=True):
        row[f"image/object/bbox/{side}"] = [at]
    path = str(tmp_path / "pixels.tfrecord")
    with tfrkit.Writer(path) as writer:
        writer.write(row)
    client = connect(path)
    assert client.get("/api/set").json()["sets"][0]["guesses"]["box_units"]["value"] == "pixels"
    (shown,) = client.get("/api/rows").json()["rows"]
    assert shown["boxes"][0]["box"] == [0.25, 0.1, 0.5, 1.0]
    (shown,) = client.get("/api/rows?box_units=fraction").json()["rows"]
    assert shown["boxes"] == [] and "box 0 expected corners" in shown["cause"]


def test_comparison_has_the_rows_of_diff(pictures: str, tmp_path: Path, connect: Connect) -> None:
    other = str(tmp_path / "other.tfrecord")
    with tfrkit.Writer(other) as writer:
        for number in range(12):
            writer.write(make_row(number) | ({"label": 9} if number in (3, 7) else {}))
    client = connect(pictures, other=other)
    found = tfrkit.tools.diff(pictures, other)
    answer = client.get("/api/compare").json()
    assert (answer["is_same"], answer["total"], answer["summary"]["changed"]) == (False, 2, found.changed)
    assert [(row["kind"], row["left"], row["right"], row["features"]) for row in answer["rows"]] == [
        ("changed", 3, 3, ["label"]),
        ("changed", 7, 7, ["label"]),
    ]
    id = select(client, "diff=1&d=1")
    assert [row["record"] for row in client.get(f"/api/rows?d=1&sel={id}").json()["rows"]] == [3, 7]


def test_audio_is_served_in_ranges(tmp_path: Path, connect: Connect) -> None:
    sound = b"RIFF\x24\0\0\0WAVEfmt " + bytes(range(100))
    path = str(tmp_path / "sound.tfrecord")
    with tfrkit.Writer(path) as writer:
        writer.write({"audio": sound})
    client = connect(path)
    assert client.get("/api/record/0").json()["features"][0]["show"] == "audio"
    whole = client.get("/a/0?feature=audio")
    assert (whole.content, whole.headers["content-type"]) == (sound, "audio/wav")
    for text, part in (("bytes=4-7", sound[4:8]), ("bytes=100-", sound[100:]), ("bytes=-5", sound[-5:])):
        answer = client.get("/a/0?feature=audio", headers={"range": text})
        assert (answer.status_code, answer.content) == (206, part)
    many = client.get("/a/0?feature=audio", headers={"range": "bytes=" + ",".join(["0-0"] * 1000)})
    assert many.status_code == 200


def test_samples_of_a_sound_are_played_at_their_rate(tmp_path: Path, connect: Connect) -> None:
    path = str(tmp_path / "samples.tfrecord")
    samples = np.sin(np.arange(2000) / 9).astype(np.float32)
    with tfrkit.Writer(path, floats="float32") as writer:
        writer.write({"audio": samples, "sample_rate": 8000})
    client = connect(path)
    described = client.get("/api/record/0").json()["features"][0]
    assert (described["show"], described["sound"]) == ("numbers", "a/0?feature=audio")
    answer = client.get("/" + described["sound"])
    assert answer.headers["content-type"] == "audio/wav"
    with wave.open(io.BytesIO(answer.content)) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getnframes()) == (8000, 1, 2000)
        read = np.frombuffer(sound.readframes(2000), "<i2")
    np.testing.assert_allclose(read / 32_767, samples, atol=1e-4)
    assert client.get("/a/0?feature=sample_rate").status_code == 415


def test_image_that_cannot_be_shown_is_bytes_and_its_cause_once(tmp_path: Path, connect: Connect) -> None:
    path = str(tmp_path / "odd.tfrecord")
    with tfrkit.Writer(path) as writer:
        writer.write({"image_raw": bytes([255]) * 99, "height": 8, "width": 8})
    shown = connect(path).get("/api/record/0").json()
    assert shown["cause"] == "pixels expected 8x8, got 99 values"
    assert {feature["name"]: feature["show"] for feature in shown["features"]}["image_raw"] == "bytes"


def test_image_of_raw_pixels_that_can_be_shown_is_an_image(tmp_path: Path, connect: Connect) -> None:
    path = str(tmp_path / "even.tfrecord")
    with tfrkit.Writer(path) as writer:
        writer.write({"image_raw": bytes([255]) * 192, "height": 8, "width": 8})
    shown = connect(path).get("/api/record/0").json()
    assert shown["cause"] is None
    assert {feature["name"]: feature["show"] for feature in shown["features"]}["image_raw"] == "image"


def test_count_of_a_counted_dataset_is_one_event(pictures: str, connect: Connect) -> None:
    assert read_events(connect(pictures), "/api/count") == [
        ("count", {"d": 0, "count": 12, "records": 12, "is_complete": True})
    ]


def test_json_never_has_what_is_no_json() -> None:
    from tfrkit.view.app import dump

    with pytest.raises(ValueError, match="not JSON compliant"):
        dump({"x": float("nan")})


def test_changed_values_are_shown_in_part() -> None:
    from tfrkit.view.viewer import _show_change

    assert _show_change({"feature": "x", "a": "y" * 300, "b": 1}) == "x: " + "y" * 200 + " → 1"
