"""The limit of building: cp of the same files to the same disk."""

from __future__ import annotations

import shutil
import subprocess
from functools import partial
from pathlib import Path

import data
from tool_questions import SHUFFLED, link_sources
from work import Work


def make_works(root: Path, out: Path, *, threads: int) -> dict[str, Work]:
    """Return what is copied here, by the name of the work."""
    target = root / "built-cp"
    return {
        "shuffle_file": Work(
            {"cp": partial(copy_files, root, target, SHUFFLED * data.sizes_of(root).images)},
            prepare=partial(shutil.rmtree, target, ignore_errors=True),
        ),
        "jpeg_build": Work(
            {"cp -r": partial(copy, root / "photos", target, data.sizes_of(root).photos)},
            prepare=partial(shutil.rmtree, target, ignore_errors=True),
        ),
    }


def copy_files(root: Path, target: Path, count: int) -> int:
    """Copy the files that are shuffled."""
    target.mkdir()
    subprocess.run(["cp", *map(str, link_sources(root)), str(target)], check=True)
    return count


def copy(source: Path, target: Path, count: int) -> int:
    """Copy a folder."""
    subprocess.run(["cp", "-r", str(source), str(target)], check=True)
    return count
