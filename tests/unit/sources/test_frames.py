"""Clips: folders of frames, and tables of frames."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit as tfr
from tfrkit.errors import SourceError
from tfrkit.images.encode import ImageOptions
from tfrkit.sources.base import Scan
from tfrkit.sources.frames import Frames, has_gap, natural_key
from tfrkit.sources.frames_table import FramesTable


def save_image(path: Path, color: int = 0, size: tuple[int, int] = (8, 6)) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (color, 0, 0)).save(path)
    return path.read_bytes()


def rows_of(scan: Scan) -> dict[str, Any]:
    reader: Any = pickle.loads(pickle.dumps(scan.reader))  # as it comes to a worker
    items = [scan.items.item(number) for number in range(scan.items.size)]
    return {item.key: reader.read(item) for item in items}


def write(row: Any, path: Path) -> Any:
    with tfr.Writer(path) as writer:
        writer.write(row)
    with tfr.open(path) as ds:
        return ds[0]


# --- folders


def test_natural_key_numbers_are_compared_as_numbers() -> None:
    names = ["f10.png", "f9.png", "f009.png", "f1_2.png", "f1_10.png", "a.png", "f.png", "10.png", "9.png"]
    assert sorted(names, key=natural_key) == [
        "9.png", "10.png", "a.png", "f1_2.png", "f1_10.png", "f009.png", "f9.png", "f10.png", "f.png",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("names", "gap"),
    [(["1.png", "2.png"], False), (["f7.jpg", "f9.jpg"], True), (["a.png", "b.png"], False), (["5.png"], False)],
)
def test_has_gap_uses_the_last_number(names: list[str], gap: bool) -> None:
    assert has_gap(names) == gap


def test_frames_follow_the_numbers_in_their_names(tmp_path: Path) -> None:
    stored = {number: save_image(tmp_path / f"clip/f{number}.png", number) for number in (10, 9, 1, 2)}
    scan = Frames(tmp_path, frame_rate=25).scan("")  # type: ignore[arg-type]
    [row] = rows_of(scan).values()
    assert row["feature_lists"]["image/encoded"] == [stored[number] for number in (1, 2, 9, 10)]
    assert row["feature_lists"]["image/timestamp"] == [0, 40_000, 80_000, 120_000]
    assert row["context"]["clip/length"] == 4
    assert (row["context"]["image/width"], row["context"]["image/height"]) == (8, 6)
    schema = scan.schema_after({})
    assert schema is not None
    assert set(row["context"]) == set(schema.features)
    assert set(row["feature_lists"]) == set(schema.feature_lists)
    assert schema.kind == "sequence_example"
    assert any("clips whose frame numbers have gaps: 1 - clip" in note for note in scan.notes)
    back = write(row, tmp_path / "x.tfrecord")
    assert [bytes(frame) for frame in back["feature_lists"]["image/encoded"]] == row["feature_lists"]["image/encoded"]


def test_frames_in_class_folders_have_labels(tmp_path: Path) -> None:
    for clip in ("walk/a", "run/b", "跑/c"):
        save_image(tmp_path / clip / "1.png")
    scan = Frames(str(tmp_path), label_offset=1).scan("")
    rows = rows_of(scan)
    assert {key: row["context"]["clip/label/index"] for key, row in rows.items()} == {
        "run/b": 1,
        "walk/a": 2,
        "跑/c": 3,
    }
    assert rows["跑/c"]["context"]["clip/label/string"] == "跑".encode()
    assert scan.items.labels is not None
    assert scan.items.labels.tolist() == [1, 2, 3]
    assert scan.counts == {"class": {"run": 1, "walk": 1, "跑": 1}}


def test_frames_unknown_class_blocks(tmp_path: Path) -> None:
    save_image(tmp_path / "walk/a/1.png")
    [problem] = Frames(str(tmp_path), classes=["run"]).scan("").problems
    assert problem.blocking
    assert problem.reason == "class 'walk' is not one of the 1 of the given names"


@pytest.mark.parametrize(
    ("files", "match"),
    [
        (["a/1.png", "b/c/1.png"], "clips expected at one depth, got 'a' and 'b/c'"),
        (["a/b/c/1.png"], "clips expected one or two folders deep"),
    ],
)
def test_frames_folders_of_another_depth_are_refused(tmp_path: Path, files: list[str], match: str) -> None:
    for file in files:
        save_image(tmp_path / file)
    with pytest.raises(SourceError, match=match):
        Frames(str(tmp_path)).scan("")


def test_frames_outside_of_folders_are_named(tmp_path: Path) -> None:
    save_image(tmp_path / "a/1.png")
    save_image(tmp_path / "stray.png")
    [problem] = Frames(str(tmp_path)).scan("").problems
    assert (problem.key, problem.reason) == ("stray.png", "frame is not in a folder, expected one folder for each clip")


def test_frames_of_different_sizes_are_a_bad_clip_unless_resized(tmp_path: Path) -> None:
    save_image(tmp_path / "a/1.png")
    save_image(tmp_path / "a/2.png", size=(9, 6))
    with pytest.raises(
        SourceError, match=r"frames expected one format and size, got png 8x6 .* and png 9x6 .* at '2.png'"
    ):
        rows_of(Frames(str(tmp_path)).scan(""))
    [row] = rows_of(Frames(str(tmp_path), images=ImageOptions(resize=(4, 4))).scan("")).values()
    assert [len(frame) for frame in row["feature_lists"]["image/encoded"]] == [48, 48]


def test_frames_damaged_frame_is_named(tmp_path: Path) -> None:
    save_image(tmp_path / "a/1.png")
    (tmp_path / "a/2.png").write_bytes(b"nope")
    with pytest.raises(SourceError, match=r"frame '2.png' expected an image, got"):
        rows_of(Frames(str(tmp_path)).scan(""))


# --- tables


def scan_table(tmp_path: Path, text: str, **options: Any) -> Scan:
    (tmp_path / "t.csv").write_text(text)
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    return FramesTable(str(tmp_path / "t.csv"), **options).scan(str(scratch))


TABLE = "clip,t,x,note,who\nb,2,0.5,p,me\na,10,1.5,,you\na,9,2.5,q,you\nb,1,3.5,r,me\n"


def test_frames_table_rows_are_grouped_and_ordered(tmp_path: Path) -> None:
    scan = scan_table(tmp_path, TABLE, group="clip", order="t", context=["who"])
    rows = rows_of(scan)
    assert list(rows) == ["a", "b"]
    assert rows["a"]["context"] == {"clip": b"a", "who": b"you"}
    assert [int(value) for value in rows["a"]["feature_lists"]["t"]] == [9, 10]
    assert [float(value) for value in rows["b"]["feature_lists"]["x"]] == [3.5, 0.5]
    assert rows["a"]["feature_lists"]["note"] == [b"q", None]
    schema = scan.schema_after({})
    assert schema is not None
    assert (set(schema.features), set(schema.feature_lists)) == ({"clip", "who"}, {"t", "x", "note"})
    back = write(rows["b"], tmp_path / "x.tfrecord")
    assert np.concatenate([np.atleast_1d(frame) for frame in back["feature_lists"]["t"]]).tolist() == [1, 2]


def test_frames_table_without_order_keeps_that_of_the_table(tmp_path: Path) -> None:
    rows = rows_of(scan_table(tmp_path, TABLE, group="clip"))
    assert [int(value) for value in rows["a"]["feature_lists"]["t"]] == [10, 9]


def test_frames_table_loads_images(tmp_path: Path) -> None:
    stored = [save_image(tmp_path / f"{number}.png", number) for number in range(2)]
    scan = scan_table(tmp_path, "c,p\na,1.png\na,0.png\n", group="c", image_column="p")
    [row] = rows_of(scan).values()
    assert row["feature_lists"]["image/encoded"] == [stored[1], stored[0]]
    assert (row["context"]["image/format"], row["context"]["image/width"]) == ("png", 8)
    scan = scan_table(tmp_path, "c,p\na,1.png\na,gone.png\n", group="c", image_column="p")
    with pytest.raises(SourceError, match=r"frame 'gone.png' cannot be opened, no such file.*\n.*image_root"):
        rows_of(scan)


def test_frames_table_context_with_two_values_blocks(tmp_path: Path) -> None:
    scan = scan_table(tmp_path, TABLE, group="clip", context=["x"])
    assert [problem.blocking for problem in scan.problems] == [True, True]
    assert "context column 'x' expected one value in a clip, got 0.5 and 3.5" in scan.problems[0].reason


@pytest.mark.parametrize(
    ("text", "options", "match"),
    [
        (
            "c,t\na,1\na,1\n",
            {"group": "c", "order": "t"},
            "different values in column 't', got 1 twice - at .*, line 3",
        ),
        ("c,t\na,1\n,2\n", {"group": "c"}, "group column 'c' is empty in row 1"),
        ("c,t\na,1\na,\n", {"group": "c", "order": "t"}, "order column 't' expected one value in every row"),
        ("c,t\na,1\n", {"group": "clip"}, "no column 'clip'"),
        ("c,t\n0.5,1\n", {"group": "c"}, "group column 'c' expected integers or text"),
    ],
)
def test_frames_table_columns_that_do_not_do_are_refused(
    tmp_path: Path, text: str, options: dict[str, Any], match: str
) -> None:
    with pytest.raises(SourceError, match=match):
        scan_table(tmp_path, text, **options)
