"""tfrkit building datasets: the commands of its README, started as a program, start-up included."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import data
from work import Work

CAPTCHA_OPTIONS = (
    *("--label", "^(?P<text>[0-9A-Za-z]{5})", "--gray", "--resize", "224x224"),
    *("--shards", "5", "--seed", "0"),
)


def make_works(root: Path, *, threads: int) -> dict[str, Work]:
    """Return what tfrkit builds here, by the name of the work."""
    out, photos = root / "built-tfrkit", str(root / "photos")
    captchas = (str(root / "captchas"), *CAPTCHA_OPTIONS, "--split", f"test={data.sizes_of(root).test_captchas}")
    return {
        "captcha_build": build_work("captchas", out, threads, "file-names", *captchas),
        "jpeg_build": build_work("photos", out, threads, "class-folders", photos, "--check", "header"),
        "jpeg_build_checked": build_work("photos", out, threads, "class-folders", photos),
        "csv_build": build_work("table", out, threads, "table", str(root / "table.csv")),
        "parquet_build": build_work("table", out, threads, "table", str(root / "table.parquet")),
    }


def build_work(reader: str, out: Path, jobs: int, *arguments: str) -> Work:
    """Return the work of one command."""
    source, _, *options = arguments
    way = " ".join(["tfr build", source, *(option for option in options if option in ("--check", "header"))])
    return Work(
        {way: partial(run_build, out, jobs, arguments)},
        output=out,
        reader=reader,
        prepare=partial(shutil.rmtree, out, ignore_errors=True),
    )


def run_build(out: Path, jobs: int, arguments: tuple[str, ...]) -> int:
    """Run the command and return how many records it wrote."""
    program = str(Path(sys.executable).with_name("tfr"))
    quiet = ("--jobs", str(jobs), "--progress", "none", "--format", "json")
    done = subprocess.run(
        [program, "build", *arguments, "--out", str(out), *quiet], check=True, stdout=subprocess.PIPE, text=True
    )
    return int(json.loads(done.stdout)["written"])
