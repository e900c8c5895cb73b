from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from tfrkit.pictures.colors import FAULT
from tfrkit.pictures.tiles import SheetLayout
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import encode_example, write_frames


def png(color: tuple[int, int, int]) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 40), color).save(file, format="PNG")
    return file.getvalue()


def colors_of(path: Path, layout: SheetLayout) -> list[object]:
    """The colour in the middle of each tile."""
    half = layout.side // 2
    with Image.open(path) as image:
        places = [layout.locate(place) for place in range(layout.num_tiles)]
        return [image.getpixel((x + half, y + half)) for x, y in places]


def test_sheet_shows_records_in_file_order(tfr, tmp_path: Path) -> None:
    colors = [(number * 20, 0, 255) for number in range(10)]
    records = [encode_example({b"image": ("bytes", [png(color)]), b"label": ("int64", [7])}) for color in colors]
    (tmp_path / "a.tfrecord").write_bytes(write_frames(records))
    done = tfr("sheet", "a.tfrecord", "-o", "sheet.png", "-n", "4", "--columns", "2", "--size", "64")
    layout = SheetLayout(4, 2, 64)
    assert done.lines == [f"sheet.png: 4 of 10 records, {layout.width}x{layout.height} pixels"]
    assert done.err == ""
    assert colors_of(tmp_path / "sheet.png", layout) == [colors[number] for number in (0, 3, 6, 9)]
    seeded = tfr("sheet", "a.tfrecord", "-o", "sheet.png", "-n", "4", "--seed", "5", "--force", "--format", "json").json
    assert seeded["seed"] == 5
    assert [tile["label"] for tile in seeded["tiles"]] == ["7"] * 4
    assert (seeded["records"], seeded["findings"], seeded["notes"]) == (10, [], [])
    numbers = [tile["number"] for tile in seeded["tiles"]]
    assert colors_of(tmp_path / "sheet.png", SheetLayout(4, 6, 128)) == [colors[number] for number in numbers]


def test_sheet_of_damaged_records_comes_out_and_exits_1(tfr, sample: Path) -> None:
    data = sample.read_bytes()
    offset = frame_offsets(data)[3]
    sample.write_bytes(flip(data, offset + 20))
    done = tfr("sheet", "sample.tfrecord", "-o", "sheet.png", code=1)
    assert done.lines[0].startswith(f"sample.tfrecord, record 3, byte {offset}: payload checksum mismatch, stored 0x")
    assert done.lines[1].startswith("sheet.png: 9 of 10 records, ")
    x, y = SheetLayout(10, 6, 128).locate(3)
    with Image.open(sample.with_name("sheet.png")) as image:
        assert image.getpixel((x, y)) == FAULT
    rows = tfr("sheet", "sample.tfrecord", "-o", "sheet.png", "--force", "--format", "csv", code=1).lines
    assert rows[0] == "shard,record,offset,cause"
    assert rows[1].startswith(f"sample.tfrecord,3,{offset},")


def test_sheet_is_not_replaced_without_force(tfr, sample: Path) -> None:
    tfr("sheet", "sample.tfrecord", "-o", "sheet.png")
    assert "replace it: --force" in tfr("sheet", "sample.tfrecord", "-o", "sheet.png", code=3).err
    tfr("sheet", "sample.tfrecord", "-o", "sheet.png", "--force")


def test_sheet_refuses_what_it_cannot_do(tfr, sample: Path, raw: Path) -> None:
    assert "--output" in tfr("sheet", "sample.tfrecord", code=2).err
    assert "ends in .png" in tfr("sheet", "sample.tfrecord", "-o", "x.gif", code=2).err
    assert "did you mean 'label'" in tfr("sheet", "sample.tfrecord", "-o", "x.png", "--label", "lable", code=3).err
    assert "got other records" in tfr("sheet", "lines.tfrecord", "-o", "x.png", code=3).err
    assert "a pipe" in tfr("sheet", "-", "-o", "x.png", stdin=sample.read_bytes(), code=3).err
    assert not sample.with_name("x.png").exists()


def test_sheet_reads_folders_with_compressed_and_empty_shards(tfr, shards: Path) -> None:
    assert tfr("sheet", "data", "-o", "sheet.png", "--format", "json").json["records"] == 10


def test_smallest_tile_is_of_32_pixels(tfr, sample: Path) -> None:
    tfr("sheet", "sample.tfrecord", "-o", "sheet.png", "--size", "32")
    assert "31 is not in the range 32<=x<=1024" in tfr("sheet", "sample.tfrecord", "--size", "31", code=2).err
