"""Hostile names and values: terminals, web pages, folders and spreadsheets get them as text, never as orders."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

import tfrkit as tfr

Run = Callable[..., "subprocess.CompletedProcess[str]"]

HOSTILE = [
    "\x1b[31mred\x1b[2J",  # orders to a terminal
    "\x9b31m",  # the same in one byte of Latin-1
    "\x1b]0;title\x07",
    "\u202egnp.exe",  # right to left
    "\u2066hidden\u2069",
    "two\nlines",
    "back\rover",
    "nul\0byte",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "../../escape",
    "/etc/passwd",
    "..",
    "=cmd|' /C calc'!A0",
    "${HOME}`id`$(id)",
    "%s%n{0.__class__}",
    "a" * 3000,
]
BIDI = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")


def find_orders(text: str) -> list[str]:
    """The characters that a terminal would obey."""
    return [char for char in text if (unicodedata.category(char) == "Cc" and char not in "\n\t") or char in BIDI]


def draw() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (4, 4)).save(out, "png")
    return out.getvalue()


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each hostile text as a feature name, as a value, as a class and as a file name."""
    path = tmp_path_factory.mktemp("hostile") / "x.tfrecord"
    with tfr.Writer(path) as writer:
        for number, text in enumerate(HOSTILE):
            named = dict.fromkeys(HOSTILE, number)
            writer.write({**named, "image": draw(), "text": text, "class": text, "filename": text})
    return path


COMMANDS = [
    ["info"],
    ["head"],
    ["tail"],
    ["cat"],
    ["schema"],
    ["schema", "--as", "tf"],
    ["stats"],
    ["verify"],
    ["verify", "--deep"],
    ["count"],
    ["sample", "-n", "5"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_text_has_no_orders_to_a_terminal(command: list[str], shard: Path, run_tfr: Run) -> None:
    ran = run_tfr(command[0], shard, *command[1:])
    assert "Traceback" not in ran.stderr
    assert find_orders(ran.stdout + ran.stderr) == []
    assert ran.stdout


def test_tables_of_queries_have_no_orders_to_a_terminal(shard: Path, run_tfr: Run) -> None:
    ran = run_tfr("sql", f"select * from '{shard}'")
    assert ran.returncode == 0
    assert find_orders(ran.stdout + ran.stderr) == []


def test_names_of_shards_have_no_orders_to_a_terminal(tmp_path: Path, run_tfr: Run) -> None:
    path = tmp_path / "\x1b[31mred.tfrecord"
    path.write_bytes(b"not a tfrecord, but it has a hostile name")
    for command in ("info", "verify", "count", "head"):
        ran = run_tfr(command, path)
        assert ran.returncode != 0
        assert find_orders(ran.stdout + ran.stderr) == []


@pytest.mark.parametrize("command", [["stats", "--html"]])
def test_pages_have_text_and_no_elements(command: list[str], shard: Path, tmp_path: Path, run_tfr: Run) -> None:
    page = tmp_path / "page.html"
    ran = run_tfr(command[0], shard, *command[1:], page)
    assert ran.returncode == 0
    text = page.read_text()
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert 'href="javascript' not in text


def test_lines_of_json_hold_the_names_exactly(shard: Path, tmp_path: Path, run_tfr: Run) -> None:
    assert run_tfr("export", "jsonl", shard, "-o", tmp_path / "x.jsonl").returncode == 0
    rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_bytes().splitlines()]
    assert [row["text"] for row in rows] == HOSTILE
    assert set(HOSTILE) <= rows[0].keys()


def test_csv_holds_the_names_exactly_and_safe_csv_no_formulas(shard: Path, tmp_path: Path, run_tfr: Run) -> None:
    for option, marks in (([], ""), (["--safe-csv"], "'")):
        out = tmp_path / f"x{len(option)}.csv"
        assert run_tfr("export", "csv", shard, "-o", out, *option).returncode == 0
        with out.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        formula = f"{marks}=cmd|' /C calc'!A0"
        assert formula in header
        assert formula in [row[header.index("text")] for row in rows]
        if option:
            assert not any(
                cell[:1] in "=+@-" for row in [header, *rows] for cell in row if cell and not cell[1:].isdigit()
            )


@pytest.mark.parametrize("kind", ["images", "webdataset"])
def test_exported_files_stay_in_their_folder(kind: str, shard: Path, tmp_path: Path, run_tfr: Run) -> None:
    before = sorted(tmp_path.rglob("*"))
    run_tfr("export", kind, shard, "-o", tmp_path / "deep" / "out", "--name", "filename", "--label", "class")
    outside = [path for path in tmp_path.rglob("*") if not str(path).startswith(str(tmp_path / "deep"))]
    assert outside == before == []
    inside = list((tmp_path / "deep").rglob("*"))
    assert all(str(path.resolve()).startswith(str(tmp_path / "deep")) for path in inside)


@pytest.mark.parametrize(("source", "image"), [("class-folders", b"ca\xff/1.png"), ("frames", b"ca\xff/clip/1.png")])
def test_class_folder_whose_name_is_not_utf8_stops_the_build(
    tmp_path: Path, run_tfr: Run, source: str, image: bytes
) -> None:
    for path in (image, image.replace(b"ca\xff", b"dog")):
        place = tmp_path / "q" / os.fsdecode(path)
        place.parent.mkdir(parents=True)
        place.write_bytes(draw())
    done = run_tfr("build", source, str(tmp_path / "q"), "-o", str(tmp_path / "out"), "--on-bad", "skip")
    assert done.returncode == 3
    assert "class name expected UTF-8 text, got 'ca\\udcff'\n    rename the folder\n" in done.stderr
    assert not (tmp_path / "out").exists()
