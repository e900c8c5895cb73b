"""The limit: native/bench/frame_loop, a loop that maps a file, checks both checksums of each frame and does no more."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import partial
from pathlib import Path

from work import Work

PROJECT = Path(__file__).resolve().parent.parent


def make_works(root: Path, out: Path, *, threads: int) -> dict[str, Work]:
    """Return what the C loop does here, by the name of the work."""
    program = build(root.parent / "native")
    return {
        "verify_small": Work({"frame_loop": partial(run, program, root / "small.tfrecord")}),
        "records_large": Work({"frame_loop": partial(run, program, root / "images.tfrecord")}),
    }


def build(folder: Path) -> Path:
    """Compile the loop with the flags of a release; a second time only what changed is compiled."""
    cmake = shutil.which("cmake")
    if cmake is None:
        raise SystemExit("the C loop needs cmake: pip install -r benchmarks/requirements.txt")
    configure = [cmake, "-S", str(PROJECT), "-B", str(folder), "-DTFRKIT_NATIVE_TESTS=ON", "-DCMAKE_BUILD_TYPE=Release"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([cmake, "--build", str(folder), "--target", "frame_loop"], check=True, stdout=subprocess.DEVNULL)
    return next(path for path in folder.rglob("frame_loop") if path.is_file())


def run(program: Path, path: Path) -> tuple[int, float]:
    """Return records and seconds of one pass, as the program measures them itself."""
    done = subprocess.run([str(program), str(path), "all", "1"], check=True, capture_output=True, text=True)
    row = json.loads(done.stdout)
    return row["records"], row["seconds"]
