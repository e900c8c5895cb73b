from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit
from tfrkit.errors import MissingFeatureError, SchemaError, StorageError
from tfrkit.ops.choose_records import choose_records
from tfrkit.ops.sheet import SheetReport, sheet
from tfrkit.pictures.colors import FAULT, FAULT_MAT, MASK_SHARE, MAT, PAGE, class_color, voc_palette
from tfrkit.pictures.tiles import SheetLayout
from tfrkit.testing.corruption import flip, frame_offsets

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def encode(color: Any, size: tuple[int, int] = (64, 64), mode: str = "RGB", format: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new(mode, size, color).save(file, format=format)
    return file.getvalue()


def write(path: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    with tfrkit.Writer(str(path), **options) as writer:
        for row in rows:
            writer.write(row)
    return path


class Drawn:
    """A written sheet: its report and pixels by tile."""

    def __init__(self, report: SheetReport, path: Path, columns: int = 6, side: int = 128) -> None:
        self.report = report
        with Image.open(path) as image:
            self.image = image.convert("RGB")
        self._layout = SheetLayout(len(report.tiles), columns, side)

    def at(self, place: int, x: int, y: int) -> tuple[int, ...]:
        """The colour of a pixel of a tile."""
        left, top = self._layout.locate(place)
        found = self.image.getpixel((left + x, top + y))
        assert isinstance(found, tuple)
        return found

    def has_caption(self, place: int) -> bool:
        left, top = self._layout.locate(place)
        below = self.image.crop((left, top + 128, left + 90, top + 128 + self._layout.caption_height))
        return below.getextrema() != tuple((level, level) for level in PAGE)


def draw(source: Path, **options: Any) -> Drawn:
    output = source.with_suffix(".png")
    return Drawn(sheet(source, output, force=True, **options), output, options.get("columns", 6))


# --- pixels


def test_each_tile_shows_its_image(tmp_path: Path) -> None:
    rows = [{"image": encode(color), "label": at} for at, color in enumerate([RED, GREEN, BLUE])]
    drawn = draw(write(tmp_path / "a", rows))
    assert [drawn.at(place, 64, 64) for place in range(3)] == [RED, GREEN, BLUE]
    assert [tile.label for tile in drawn.report.tiles] == ["0", "1", "2"]
    assert drawn.report.ok
    assert all(drawn.has_caption(place) for place in range(3))


def test_wide_image_keeps_its_proportions_in_the_middle_of_its_square(tmp_path: Path) -> None:
    drawn = draw(write(tmp_path / "a", [{"image": encode(RED, (256, 128))}]))
    assert drawn.at(0, 64, 33) == drawn.at(0, 64, 94) == drawn.at(0, 0, 64) == drawn.at(0, 127, 64) == RED
    assert drawn.at(0, 64, 30) == drawn.at(0, 64, 97) == MAT


def test_small_image_grows_by_a_whole_factor(tmp_path: Path) -> None:
    drawn = draw(write(tmp_path / "a", [{"image": encode(RED, (50, 50))}]))
    assert drawn.at(0, 15, 15) == drawn.at(0, 112, 112) == RED
    assert drawn.at(0, 12, 64) == MAT


def test_jpeg_is_near_its_colour(tmp_path: Path) -> None:
    drawn = draw(write(tmp_path / "a", [{"image": encode(RED, (900, 900), format="JPEG")}]))
    assert drawn.at(0, 64, 64)[0] > 250
    assert max(drawn.at(0, 64, 64)[1:]) < 5


@pytest.mark.parametrize(
    "row",
    [
        {"image_raw": bytes(RED) * 64, "height": 8, "width": 8, "channels": 3},
        {"image_raw": bytes(RED) * 64, "height": 8, "width": 8},
        {"data": bytes(RED) * 64, "shape": [8, 8, 3]},
        {"data": b"\xff" * 64 + b"\0" * 128, "shape": [3, 8, 8]},
        {"image": np.full((8, 8, 3), RED, np.uint8)},
        {"image": np.full((8, 8, 3), (1, 0, 0), np.float32)},
        {"image/pixels": np.tile(np.array(RED, np.int64), 64), "image/height": 8, "image/width": 8},
    ],
    ids=["sizes", "no-channels", "shape", "channels-first", "tensor", "floats", "list"],
)
def test_raw_pixels_are_shown_when_their_size_is_known(tmp_path: Path, row: dict[str, Any]) -> None:
    drawn = draw(write(tmp_path / "a", [row]))
    assert drawn.at(0, 64, 64) == RED
    assert drawn.report.ok


def test_raw_gray_pixels_are_gray(tmp_path: Path) -> None:
    drawn = draw(write(tmp_path / "a", [{"image": b"\x40" * 32, "height": 4, "width": 8, "channels": 1}]))
    assert drawn.at(0, 64, 64) == (64, 64, 64)


def test_raw_pixels_of_a_built_dataset_are_shown_with_their_text(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("ab12", "cd34"):
        Image.new("L", (40, 20), 200).save(folder / f"{name}.png")
    options = tfrkit.sources.ImageOptions(resize=(32, 16), gray=True)
    source = tfrkit.sources.file_names(folder, label="^(?P<text>.{4})", images=options)
    tfrkit.build(source, str(tmp_path / "out"), jobs=1)
    report = sheet(tmp_path / "out", tmp_path / "x.png")
    assert sorted(tile.label for tile in report.tiles) == ["ab12", "cd34"]
    assert Drawn(report, tmp_path / "x.png").at(0, 64, 64) == (200, 200, 200)


def test_sequence_shows_its_first_frame(tmp_path: Path) -> None:
    row = {
        "context": {"clip/label/string": "run", "clip/label/index": 0},
        "feature_lists": {"image/encoded": [encode(BLUE), encode(RED)]},
    }
    drawn = draw(write(tmp_path / "a", [row]))
    assert drawn.at(0, 64, 64) == BLUE
    assert drawn.report.tiles[0].label == "run"


# --- labels


def test_class_names_come_from_classes_txt_next_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("0:apple\n1:orange\n")
    rows = [{"image": encode(RED), "label": number} for number in (1, 0, 7)]
    report = draw(write(tmp_path / "a", rows)).report
    assert [tile.label for tile in report.tiles] == ["orange", "apple", "7"]


def test_class_names_come_from_the_schema(tmp_path: Path) -> None:
    for name in ("apple", "orange"):
        (tmp_path / "in" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8), RED).save(tmp_path / "in" / name / "1.png")
    tfrkit.build(tfrkit.sources.class_folders(tmp_path / "in"), str(tmp_path / "out"), jobs=1)
    (tmp_path / "out" / "classes.txt").unlink()
    report = sheet(tmp_path / "out", tmp_path / "x.png", label="image/class/label")
    assert sorted(tile.label for tile in report.tiles) == ["apple", "orange"]


def test_unreadable_class_names_are_noted_and_ids_are_shown(tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("0:apple\n5:orange\n")
    report = draw(write(tmp_path / "a", [{"image": encode(RED), "label": 0}])).report
    assert report.tiles[0].label == "0"
    assert report.notes == [
        f"class names were not used, class ids expected without gaps - at {tmp_path / 'classes.txt'}"
    ]


def test_heads_of_one_character_read_as_a_text(tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("a\nb\nc\n")
    row = {"image": encode(RED), "label0": 2, "label1": 0, "label2": 1}
    assert draw(write(tmp_path / "a", [row, row])).report.tiles[0].label == "cab"


def test_label_and_image_can_be_named(tmp_path: Path) -> None:
    row = {"image": encode(RED), "thumb": encode(GREEN), "label": 3, "place": "garden"}
    drawn = draw(write(tmp_path / "a", [row]), image="thumb", label="place")
    assert drawn.at(0, 64, 64) == GREEN
    assert drawn.report.tiles[0].label == "garden"
    with pytest.raises(MissingFeatureError, match=r"no feature 'thmub', did you mean 'thumb' - at .*\n  see what is"):
        sheet(tmp_path / "a", tmp_path / "b.png", image="thmub")


# --- boxes and masks


def test_box_has_a_border_in_the_colour_of_its_class(tmp_path: Path) -> None:
    row = {
        "image/encoded": encode((9, 9, 9), (128, 128)),
        "image/object/bbox/xmin": np.array([0.25, 0.8], np.float32),
        "image/object/bbox/xmax": np.array([0.5, 0.9], np.float32),
        "image/object/bbox/ymin": np.array([0.5, 0.8], np.float32),
        "image/object/bbox/ymax": np.array([0.75, 0.9], np.float32),
        "image/object/class/text": [b"cat", b"cat"],
        "image/object/class/label": [3, 3],
    }
    drawn = draw(write(tmp_path / "a", [row]))
    color = class_color(3)
    assert drawn.at(0, 32, 80) == drawn.at(0, 64, 80) == drawn.at(0, 60, 95) == color
    assert drawn.at(0, 40, 80) == drawn.at(0, 28, 80) == drawn.at(0, 68, 80) == (9, 9, 9)
    assert drawn.report.tiles[0].label == "cat x2"


def test_image_without_objects_says_so_where_others_show_their_classes(tmp_path: Path) -> None:
    def row(*boxes: float) -> dict[str, Any]:
        sides = ("xmin", "ymin", "xmax", "ymax")
        return {
            "image/encoded": encode(RED),
            "image/filename": "some.png",
            **{f"image/object/bbox/{side}": np.array(boxes[i : i + 1], np.float32) for i, side in enumerate(sides)},
            "image/object/class/text": np.array([b"cat"][: bool(boxes)], "S3"),
        }

    report = draw(write(tmp_path / "a", [row(0.1, 0.1, 0.5, 0.5), row()])).report
    assert [tile.label for tile in report.tiles] == ["cat", "no objects"]
    # Without any boxes in the dataset it is the name of the file.
    plain = [{"image/encoded": encode(RED), "image/filename": "some.png"}]
    assert draw(write(tmp_path / "b", plain)).report.tiles[0].label == "some.png"


def test_small_box_at_the_upper_edge_is_visible_next_to_its_name(tmp_path: Path) -> None:
    sides = {"xmin": 0.1, "ymin": 0.0, "xmax": 0.2, "ymax": 0.06}
    row = {
        "image/encoded": encode((9, 9, 9), (128, 128)),
        **{f"image/object/bbox/{side}": np.array([value], np.float32) for side, value in sides.items()},
        "image/object/class/text": [b"a long name"],
        "image/object/class/label": [3],
    }
    drawn = draw(write(tmp_path / "a", [row]))
    # The middle of the box shows the picture, and not the ground of the name.
    assert drawn.at(0, 19, 4) == (9, 9, 9)
    assert drawn.at(0, 13, 4) == class_color(3)


@pytest.mark.parametrize(
    ("sides", "cause"),
    [
        (([0.5], [0.1], [0.4], [0.9]), "box 0 expected corners from 0 to 1 in order, got 0.5, 0.1, 0.4, 0.9"),
        (([12.0], [0.1], [40.0], [0.9]), "box 0 expected corners from 0 to 1 in order, got 12, 0.1, 40, 0.9"),
        (([0.1, 0.2], [0.1], [0.4], [0.9]), "boxes expected four lists of equal length, got 2, 1, 1, 1"),
    ],
)
def test_box_that_cannot_be_drawn_is_a_crossed_tile(tmp_path: Path, sides: Any, cause: str) -> None:
    names = [f"image/object/bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax")]
    boxes = {name: np.array(values, np.float32) for name, values in zip(names, sides, strict=True)}
    report = draw(write(tmp_path / "a", [{"image/encoded": encode(RED), **boxes}]), box_units="fraction").report
    assert report.tiles[0].cause == cause


def test_boxes_in_pixels_are_drawn_without_an_option(tmp_path: Path) -> None:
    sides = dict(zip(("xmin", "ymin", "xmax", "ymax"), (16.0, 8.0, 48.0, 56.0), strict=True))
    row = {f"image/object/bbox/{side}": np.array([value], np.float32) for side, value in sides.items()}
    drawn = draw(write(tmp_path / "a", [{"image/encoded": encode(BLUE), "image/object/class/label": [2], **row}]))
    assert drawn.report.findings == []
    assert [drawn.at(0, x, 64) for x in (30, 32, 64)] == [BLUE, class_color(2), BLUE]


def test_mask_is_drawn_over_the_image_in_palette_colours(tmp_path: Path) -> None:
    mask = np.zeros((64, 64), np.uint8)
    mask[:, :32] = 15
    file = io.BytesIO()
    Image.fromarray(mask).save(file, format="PNG")
    (tmp_path / "classes.txt").write_text("".join(f"class {number}\n" for number in range(21)))
    row = {"image/encoded": encode(GREEN), "image/segmentation/class/encoded": file.getvalue()}
    drawn = draw(write(tmp_path / "a", [row]))
    mixed = np.array(GREEN) * (1 - MASK_SHARE) + voc_palette()[15] * MASK_SHARE
    assert drawn.at(0, 20, 64) == tuple(int(level + 0.5) for level in mixed)
    assert drawn.at(0, 100, 64) == GREEN
    assert drawn.report.tiles[0].label == "class 15"


def test_raw_mask_is_drawn_over_raw_pixels(tmp_path: Path) -> None:
    row = {
        "image/encoded": bytes(GREEN) * 64,
        "image/height": 8,
        "image/width": 8,
        "image/segmentation/class/encoded": bytes([1] * 32 + [0] * 32),
    }
    drawn = draw(write(tmp_path / "a", [row]))
    assert drawn.at(0, 64, 20) != GREEN
    assert drawn.at(0, 64, 100) == GREEN


def test_mask_of_another_size_is_a_crossed_tile(tmp_path: Path) -> None:
    row = {"image": encode(RED, (64, 32)), "image/mask": encode(1, (32, 32), mode="L")}
    report = draw(write(tmp_path / "a", [row])).report
    assert report.tiles[0].cause == "mask expected the size of its image, 64x32, got 32x32"


def test_masks_of_objects_have_the_colours_of_their_boxes(tmp_path: Path) -> None:
    sides = {"xmin": 0.0, "ymin": 0.0, "xmax": 1.0, "ymax": 1.0}
    boxes = {f"image/object/bbox/{side}": np.array([value], np.float32) for side, value in sides.items()}
    row = {
        "image/encoded": encode((0, 0, 0)),
        **boxes,
        "image/object/class/label": [2],
        "image/object/mask": [encode(1, mode="L")],
    }
    source = write(tmp_path / "a", [row, {**row, "image/object/mask": [encode(1, mode="L")] * 2}])
    wanted = tuple(int(level * MASK_SHARE + 0.5) for level in class_color(2))
    assert draw(source).at(0, 64, 64) == wanted


# --- damage


def test_image_that_does_not_decode_is_a_crossed_tile_and_the_rest_is_shown(tmp_path: Path) -> None:
    broken = encode(RED, (90, 90))
    rows = [{"image": encode(RED), "label": 1}, {"image": broken[: len(broken) // 2], "label": 2}, {"image": b""}]
    drawn = draw(write(tmp_path / "a", rows))
    assert drawn.at(0, 64, 64) == RED
    for place in (1, 2):
        assert drawn.at(place, 0, 0) == drawn.at(place, 127, 127) == drawn.at(place, 20, 20) == FAULT
        assert drawn.at(place, 64, 10) == FAULT_MAT
    report = drawn.report
    assert not report.ok
    assert [tile.label for tile in report.tiles] == ["1", "2", ""]
    assert [finding.record for finding in report.findings] == [1, 2]
    assert "does not decode" in report.findings[0].cause
    assert report.findings[1].cause == "expected an image, got 0 bytes"
    assert report.findings[1].offset == frame_offsets((tmp_path / "a").read_bytes())[2]


def test_damaged_payload_is_a_crossed_tile_at_its_place(tmp_path: Path) -> None:
    source = write(tmp_path / "a", [{"image": encode(RED), "label": number} for number in range(4)])
    data = source.read_bytes()
    source.write_bytes(flip(data, frame_offsets(data)[2] + 30))
    drawn = draw(source)
    assert drawn.at(2, 0, 0) == FAULT
    assert [drawn.at(place, 64, 64) for place in (0, 1, 3)] == [RED] * 3
    assert "checksum mismatch" in str(drawn.report.tiles[2].cause)
    assert drawn.report.records == 4


def test_damaged_length_and_cut_off_end_are_tiles_of_their_own(tmp_path: Path) -> None:
    source = write(tmp_path / "a", [{"image": encode(RED), "label": number} for number in range(5)])
    data = source.read_bytes()
    source.write_bytes(flip(data, frame_offsets(data)[1])[:-3])
    drawn = draw(source)
    assert [tile.number for tile in drawn.report.tiles] == [0, 1, 2, None, None]
    assert [tile.label for tile in drawn.report.tiles[:3]] == ["0", "2", "3"]
    assert drawn.at(3, 0, 0) == drawn.at(4, 0, 0) == FAULT
    assert len(drawn.report.findings) == 2


def test_torn_gzip_shows_what_comes_before_the_tear(tmp_path: Path) -> None:
    noise = np.random.default_rng(0)
    source = write(tmp_path / "a", [{"image": encode(RED), "noise": noise.bytes(20_000)} for _ in range(9)])
    packed = gzip.compress(source.read_bytes())
    source.write_bytes(packed[: len(packed) * 2 // 3])
    report = draw(source).report
    assert 2 < report.records < 9
    assert report.tiles[-1].number is None
    assert not report.ok


def test_bomb_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    bomb = bytearray(encode(0, (8, 8), mode="L"))
    bomb[16:24] = (40_000).to_bytes(4, "big") * 2
    report = draw(write(tmp_path / "a", [{"image": bytes(bomb)}])).report
    assert "got 40000x40000" in str(report.tiles[0].cause)


# --- which records


def test_records_are_spread_evenly_with_first_and_last() -> None:
    assert choose_records(10, 4, None) == [0, 3, 6, 9]
    assert choose_records(1000, 1, None) == [0]
    assert choose_records(5, 5, None) == choose_records(5, 36, 1) == [0, 1, 2, 3, 4]
    assert len(set(choose_records(37, 36, None))) == 36


def test_records_by_seed_are_pinned_and_ascend() -> None:
    chosen = choose_records(1000, 5, 7)
    assert chosen == [16, 170, 474, 775, 798]
    assert choose_records(1000, 5, 8) != chosen


def test_chosen_records_and_seed_are_reported(tmp_path: Path) -> None:
    source = write(tmp_path / "a", [{"image": encode((number, 0, 0)), "label": number} for number in range(50)])
    report = draw(source, count=5, columns=2, seed=7).report
    assert [tile.number for tile in report.tiles] == choose_records(50, 5, 7)
    assert [tile.label for tile in report.tiles] == [str(number) for number in choose_records(50, 5, 7)]
    assert (report.seed, report.records) == (7, 50)
    assert report.to_json()["tiles"][0] == {
        "number": report.tiles[0].number,
        "label": report.tiles[0].label,
        "cause": None,
    }


def test_equal_calls_give_equal_bytes(tmp_path: Path) -> None:
    source = write(tmp_path / "a", [{"image": encode(RED), "label": number} for number in range(9)])
    sheet(source, tmp_path / "1.png", seed=1, count=4)
    sheet(source, tmp_path / "2.png", seed=1, count=4)
    assert (tmp_path / "1.png").read_bytes() == (tmp_path / "2.png").read_bytes()


# --- refusals


def test_output_is_not_replaced_by_accident(tmp_path: Path) -> None:
    source = write(tmp_path / "a.png", [{"image": encode(RED)}])
    with pytest.raises(StorageError, match="the output is one of the files to read"):
        sheet(source, tmp_path / "a.png", force=True)
    (tmp_path / "b.png").write_bytes(b"precious")
    with pytest.raises(StorageError, match=r"the output exists already - at .*b\.png\n  replace it: force=True"):
        sheet(source, tmp_path / "b.png")
    assert (tmp_path / "b.png").read_bytes() == b"precious"
    sheet(source, tmp_path / "b.png", force=True)
    assert (tmp_path / "b.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, "expected at least one picture and one column, got 0 and 6"),
        ({"columns": 0}, "expected at least one picture and one column, got 36 and 0"),
        ({"size": 16}, "size expected 32 to 1024 pixels, got 16"),
        ({"count": 99, "size": 1024}, r"sheet expected at most 67108864 pixels, got 6218x\d+\n  fewer or smaller"),
    ],
)
def test_sheet_of_a_wrong_size_is_refused(tmp_path: Path, options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sheet(write(tmp_path / "a", [{"image": encode(RED)}] * 99), tmp_path / "x.png", **options)


def test_output_that_is_no_png_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"output expected a name that ends in \.png, got '.*x\.jpg'"):
        sheet(write(tmp_path / "a", [{"image": encode(RED)}]), tmp_path / "x.jpg")


def test_dataset_without_images_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no feature looks like an image, there is 'label', 'text' - at .*"):
        sheet(write(tmp_path / "a", [{"label": 1, "text": "x"}]), tmp_path / "x.png")
    with tfrkit.Writer(str(tmp_path / "raw")) as writer:
        writer.write_record(b"\xff\xfe no message")
    with pytest.raises(SchemaError, match="expected Examples with images, got other records"):
        sheet(tmp_path / "raw", tmp_path / "x.png")
    (tmp_path / "empty.tfrecord").write_bytes(b"")
    with pytest.raises(StorageError, match="expected at least one readable record, got none"):
        sheet(tmp_path / "empty.tfrecord", tmp_path / "x.png")
    assert not (tmp_path / "x.png").exists()
