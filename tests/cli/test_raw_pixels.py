"""Raw pixels without a shape: what `info` guesses, and what `--shape` makes of them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit

GRAY = 224 * 224


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    with tfrkit.Writer(path) as writer:
        for row in rows:
            writer.write(row)
    return path


def noise(nbytes: int, seed: int) -> bytes:
    return np.random.default_rng(seed).integers(0, 256, nbytes, dtype=np.uint8).tobytes()


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return write(tmp_path / "raw.tfrecord", [{"image": noise(GRAY, n), "label": n} for n in range(6)])


@pytest.fixture
def rgb(tmp_path: Path) -> Path:
    return write(tmp_path / "rgb.tfrecord", [{"image": noise(32 * 48 * 3, n), "label": n} for n in range(3)])


class TestInfo:
    def test_square_is_guessed(self, tfr, raw: Path) -> None:
        assert "raw bytes, 50176 each: 224x224 gray?" in tfr("info", raw).out
        [feature] = [one for one in tfr("info", raw, "--json").json["features"] if one["name"] == "image"]
        assert feature["pixel_shapes"][0] == [224, 224, 1]

    def test_unlikely_size_is_not_guessed(self, tfr, rgb: Path) -> None:
        assert "raw bytes, 4608 each\n" in tfr("info", rgb).out
        assert all(one["pixel_shapes"] == [] for one in tfr("info", rgb, "--json").json["features"])

    def test_size_features_take_precedence_over_a_guess(self, tfr, tmp_path: Path) -> None:
        # 900 bytes could be 30x30.
        rows = [{"image": noise(900, n), "height": 15, "width": 20} for n in range(2)]
        out = tfr("info", write(tmp_path / "x.tfrecord", rows)).out
        assert "raw bytes, 900 each: 20x15 RGB (shape 15x20x3)\n" in out

    def test_sound_is_no_picture(self, tfr, tmp_path: Path) -> None:
        rows = [{"image": b"fLaC" + noise(1020, n)} for n in range(2)]
        assert "FLAC audio\n" in tfr("info", write(tmp_path / "x.tfrecord", rows)).out

    def test_sizes_of_records_are_shown(self, tfr, tmp_path: Path) -> None:
        path = write(tmp_path / "x.tfrecord", [{"x": b"a" * n} for n in (10, 20, 60)])
        sizes = [len(record) for record in tfrkit.open(path).records()]
        expected = {"min": min(sizes), "mean": sum(sizes) / 3, "max": max(sizes)}
        assert tfr("info", path, "--json").json["record_bytes"] == pytest.approx(expected, abs=0.1)
        assert (
            f"record size: {min(sizes)} to {max(sizes)} bytes, {round(sum(sizes) / 3)} on average"
            in tfr("info", path).lines
        )

    def test_sizes_are_those_of_all_files_compressed_or_not(self, tfr, shards: Path, sample: Path) -> None:
        alone = tfr("info", sample, "--json").json["record_bytes"]
        assert tfr("info", shards, "--json").json["record_bytes"] == alone

    def test_file_without_records_has_no_size(self, tfr, tmp_path: Path) -> None:
        (tmp_path / "empty.tfrecord").write_bytes(b"")
        assert tfr("info", "empty.tfrecord", "--json").json["record_bytes"] is None
        assert "record size" not in tfr("info", "empty.tfrecord").out

    def test_frames_of_sequences_are_shown(self, tfr, sequences: Path) -> None:
        rows = {line.split()[0]: line.split()[1:4] for line in tfr("info", sequences).lines[3:]}
        assert rows["feature"] == ["type", "present", "frames"]
        assert rows["name"] == ["bytes", "all", "context"]
        assert rows["frame"] == ["int64", "all", "1..3"]


class TestSheet:
    def test_without_a_shape_one_message_names_the_guess(self, tfr, raw: Path, tmp_path: Path) -> None:
        ran = tfr("sheet", raw, "-o", "s.png", code=3)
        assert ran.err.splitlines() == [
            "tfr: feature 'image' holds raw bytes, 50176 each (224x224 gray?), and their height and width are unknown"
            f" - at {raw}",
            "  give their shape: --shape 224x224",
        ]
        assert not (tmp_path / "s.png").exists()

    def test_shape_shows_them(self, tfr, raw: Path, tmp_path: Path) -> None:
        assert "6 of 6 records" in tfr("sheet", raw, "-o", "s.png", "--shape", "224x224").out
        assert (tmp_path / "s.png").exists()

    @pytest.mark.parametrize("shape", ["32x48", "32x48x3"])
    def test_channels_are_found_or_given(self, tfr, rgb: Path, shape: str) -> None:
        assert "3 of 3 records" in tfr("sheet", rgb, "-o", "s.png", "--shape", shape).out

    def test_shape_that_does_not_fit_names_near_ones(self, tfr, raw: Path) -> None:
        ran = tfr("sheet", raw, "-o", "s.png", "--shape", "224x225", code=2)
        assert f"shape 224x225 expected 50400 or 151200 bytes, got 50176 - at {raw}" in ran.err
        assert "shapes that fit: 224x224" in ran.err

    def test_one_record_of_another_length_is_a_finding(self, tfr, tmp_path: Path) -> None:
        rows = [{"image": noise(n, 1)} for n in (100, 99, 300)]
        write(tmp_path / "x.tfrecord", rows)
        ran = tfr("sheet", "x.tfrecord", "-o", "s.png", "--shape", "10x10", code=1)
        [line] = [line for line in ran.lines if "record 1" in line]
        assert line.endswith("shape 10x10 expected 100 or 300 bytes, got 99")

    def test_invalid_shape_is_wrong_usage(self, tfr, raw: Path) -> None:
        assert "such as 224x224x3, got 'big'" in tfr("sheet", raw, "-o", "s.png", "--shape", "big", code=2).err

    def test_shape_of_encoded_images_is_wrong_usage(self, tfr, sample: Path) -> None:
        err = tfr("sheet", sample, "-o", "s.png", "--shape", "7x12", code=2).err
        assert "shape is that of raw pixels, and feature 'image' holds encoded images" in err

    def test_damaged_png_is_not_called_raw_pixels(self, tfr, tmp_path: Path) -> None:
        file = io.BytesIO()
        Image.new("RGB", (20, 10)).save(file, "PNG")
        whole = file.getvalue()
        damaged = b"\x00" + whole[1:]
        # The schema comes from a sample, so the damaged value is met late.
        images = [whole] * 40 + [damaged]
        write(tmp_path / "x.tfrecord", [{"image": image, "height": 10, "width": 20} for image in images])
        ran = tfr("sheet", "x.tfrecord", "-o", "s.png", "-n", "50", code=1)
        [line] = [line for line in ran.lines if "record 40" in line]
        assert "expected an image, got" in line
        assert "raw pixels" not in ran.out


def test_four_channels_are_not_guessed(tfr, raw: Path, tmp_path: Path) -> None:
    half = ("--shape", "112x112")
    for ran in (
        tfr("sheet", raw, "-o", "s.png", *half, code=2),
        tfr("export", "images", raw, "-o", "out", *half, code=2),
    ):
        assert "shape 112x112 expected 12544 or 37632 bytes, got 50176" in ran.err
        assert "224x224, 112x112x4" in ran.err
    assert "got 50176" in tfr("verify", raw, "--deep", *half, code=1).out
    assert "6 of 6" in tfr("sheet", raw, "-o", "s.png", "--shape", "112x112x4").out


def test_four_bytes_per_pixel_from_features_are_not_called_colours(tfr, tmp_path: Path) -> None:
    rows = [{"image": np.ones((10, 20), np.float32).tobytes(), "height": 10, "width": 20}] * 2
    path = write(tmp_path / "x.tfrecord", rows)
    tfr("sheet", path, "-o", "s.png", code=1)
    tfr("export", "images", path, "-o", "out", code=3)
    assert "RGBA" not in tfr("info", path).out


class TestExport:
    def test_without_a_shape_one_message_names_the_guess(self, tfr, raw: Path, tmp_path: Path) -> None:
        ran = tfr("export", "images", raw, "-o", "out", "--on-bad", "skip", code=3)
        assert "holds raw bytes, 50176 each (224x224 gray?)" in ran.err
        assert ran.err.splitlines()[1:] == ["  give their shape: --shape 224x224"]
        assert not (tmp_path / "out").exists()

    def test_pixels_come_out_as_they_are(self, tfr, rgb: Path, tmp_path: Path) -> None:
        ran = tfr("export", "images", rgb, "-o", "out", "--shape", "32x48x3")
        assert ran.lines[-1].startswith("out: 3 records, 3 images, labels.csv, ")
        for number, row in enumerate(tfrkit.open(rgb)):
            with Image.open(tmp_path / "out" / f"{number:06d}.png") as image:
                assert (image.size, image.tobytes()) == ((48, 32), row["image"])

    def test_pixels_that_begin_as_a_file_are_pixels(self, tfr, tmp_path: Path) -> None:
        data = b"BM" + noise(98, 1)
        write(tmp_path / "x.tfrecord", [{"image": data}, {"image": noise(100, 2)}])
        tfr("export", "images", "x.tfrecord", "-o", "out", "--shape", "10x10")
        with Image.open(tmp_path / "out" / "000000.png") as image:
            assert image.tobytes() == data

    def test_shape_that_does_not_fit_names_near_ones(self, tfr, rgb: Path) -> None:
        ran = tfr("export", "images", rgb, "-o", "out", "--shape", "32x40", code=2)
        assert "shape 32x40 expected 1280 or 3840 bytes, got 4608" in ran.err
        assert "32x48x3" in ran.err

    def test_some_images_are_spread_evenly(self, tfr, raw: Path, tmp_path: Path) -> None:
        ran = tfr("export", "images", raw, "-o", "out", "--shape", "224x224", "-n", "3")
        assert ran.lines[-1].startswith("out: 3 of 6 records, 3 images, labels.csv, ")
        assert sorted(path.name for path in (tmp_path / "out").glob("*.png")) == [
            "000000.png",
            "000002.png",
            "000005.png",
        ]

    def test_where_chooses_records(self, tfr, raw: Path, tmp_path: Path) -> None:
        pytest.importorskip("duckdb")
        arguments = ("export", "images", raw, "--shape", "224x224")
        made = tfr(*arguments, "-o", "out", "--where", "label % 2 = 1", "--json").json
        assert (made["records"], made["available"], made["images"], made["tables"]) == (3, 6, 3, ["labels.csv"])
        assert (tmp_path / "out" / "labels.csv").read_text().split()[1:] == [
            "000001.png,1",
            "000003.png,3",
            "000005.png,5",
        ]
        assert "2 of 6 records" in tfr(*arguments, "-o", "two", "--where", "label > 1", "-n", "2").out

    def test_where_over_several_files_counts_on(self, tfr, shards: Path, tmp_path: Path) -> None:
        pytest.importorskip("duckdb")
        tfr("export", "images", shards, "-o", "out", "--where", "label in (2, 8)", "--layout", "flat")
        assert sorted(path.name for path in (tmp_path / "out").glob("*.png")) == ["000002.png", "000008.png"]

    def test_condition_that_is_never_true_or_wrong_makes_nothing(self, tfr, raw: Path, tmp_path: Path) -> None:
        pytest.importorskip("duckdb")
        arguments = ("export", "images", raw, "-o", "out", "--shape", "224x224", "--where")
        assert "the condition is true for none of 6" in tfr(*arguments, "label = 77", code=3).err
        err = tfr(*arguments, "1 = 1 and labl = 1", code=3).err
        assert "no column labl, did you mean label - at character 11 of the condition" in err
        assert not (tmp_path / "out").exists()


class TestVerify:
    def test_shape_that_fits_is_ok(self, tfr, raw: Path) -> None:
        assert tfr("verify", raw, "--deep", "--shape", "224x224").out == "ok, 6 records\n"

    def test_other_lengths_are_findings(self, tfr, tmp_path: Path) -> None:
        write(tmp_path / "x.tfrecord", [{"image": noise(n, n)} for n in (100, 99, 300, 200)])
        found = tfr("verify", "x.tfrecord", "--deep", "--shape", "10x10", "--json", code=1).json["findings"]
        assert [(one["record"], one["kind"]) for one in found] == [(1, "size"), (3, "size")]
        assert found[0]["cause"] == "feature 'image': shape 10x10 expected 100 or 300 bytes, got 99"

    def test_channels_are_held_too(self, tfr, tmp_path: Path) -> None:
        write(tmp_path / "x.tfrecord", [{"image": noise(n, n)} for n in (100, 300)])
        assert len(tfr("verify", "x.tfrecord", "--deep", "--shape", "10x10x3", "--json", code=1).json["findings"]) == 1

    def test_shape_without_deep_is_wrong_usage(self, tfr, raw: Path) -> None:
        err = tfr("verify", raw, "--shape", "224x224", code=2).err
        assert err.splitlines() == [
            "tfr: shape is for a deep check, which compares raw pixels with it",
            "  look deep: --deep",
        ]
