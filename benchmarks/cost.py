"""What tfrkit costs: peak memory of a streaming pass, size and speed of an index, time to start, installed size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import start
from packaging.requirements import Requirement
from plain_frames import iterate_frames

SMALL_NBYTES = 10_000_000

# Peak memory only ever rises within a process, so every pass gets a fresh one. Two figures, because Linux counts the
# pages of a mapped file as the process's memory although it can take them back at any time: `peak` counts them,
# `own` (VmHWM of anonymous memory is not kept, so it is sampled after each batch) does not.
PASS = """
import json, resource, sys
import tfrkit as tfr
def own():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1])
    return 0
imported = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
how, path = sys.argv[1:]
highest = own()
with tfr.open(path) as ds:
    items = ds.records() if how == "records" else ds.batch(64)
    for number, item in enumerate(items):
        if number % 64 == 0:
            highest = max(highest, own())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"import": imported, "peak": peak, "own": highest}))
"""


# The largest of a program and the processes it started.
RUN = """
import json, resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(json.dumps(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
"""


def measure(root: Path) -> dict[str, Any]:
    """Return all figures; sizes in MB of 1,000,000 bytes."""
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.tfrecord"
        copy_head(root / "images.tfrecord", small, SMALL_NBYTES)
        memory = [
            measure_memory(how, path, title)
            for how, title in (("records", "ds.records()"), ("columns", "ds.batch(64)"))
            for path in (small, root / "images.tfrecord")
        ]
        index = measure_index(root / "small.tfrecord", Path(folder))
    return {
        "memory": memory,
        "build_memory": measure_build_memory(root / "captchas"),
        "index": index,
        "start": start.measure(root),
        "installed": measure_installed(),
    }


def copy_head(source: Path, target: Path, nbytes: int) -> None:
    """Copy whole frames until a size is reached."""
    with target.open("wb") as out:
        for frame in iterate_frames(source):
            if out.tell() + len(frame) > nbytes:
                break
            out.write(frame)


def measure_memory(how: str, path: Path, title: str) -> dict[str, Any]:
    """Return the peak memory of a process that passes over a file once."""
    done = subprocess.run([sys.executable, "-c", PASS, how, str(path)], check=True, capture_output=True, text=True)
    kilobytes = json.loads(done.stdout)
    figures = {f"{name}_mb": round(value * 1024 / 1e6, 1) for name, value in kilobytes.items()}
    return {"title": title, "file_mb": round(path.stat().st_size / 1e6), **figures}


def measure_build_memory(source: Path) -> list[dict[str, Any]]:
    """Return the peak memory of builds of few and of a hundred times as many pictures, links to the same few files."""
    files = sorted(source.iterdir())
    num_few = max(1, len(files) // 5)
    figures = []
    for count in (num_few, 100 * num_few):
        with tempfile.TemporaryDirectory(dir=source.parent) as folder:
            pictures = Path(folder) / "pictures"
            pictures.mkdir()
            for number in range(count):
                file = files[number % num_few]
                os.link(file, pictures / f"{file.stem}_{number}.png")
            program = str(Path(sys.executable).with_name("tfr"))
            command = [program, "build", "file-names", str(pictures), "--out", f"{folder}/built"]
            command += ["--label", "^(?P<text>.{5})", "--jobs", "2", "--progress", "none"]
            done = subprocess.run([sys.executable, "-c", RUN, *command], check=True, capture_output=True, text=True)
        figures.append({"items": count, "peak_mb": round(json.loads(done.stdout) * 1024 / 1e6, 1)})
    return figures


def measure_index(path: Path, folder: Path) -> str:
    """Return size and speed of an index of small records."""
    from tfrkit.ops.index import make_index

    link = folder / "linked.tfrecord"
    link.symlink_to(path.resolve())
    seconds = []
    for _ in range(3):
        before = time.perf_counter()
        make_index(link)
        seconds.append(time.perf_counter() - before)
    (index,) = folder.rglob("*.tfidx")
    import tfrkit as tfr

    with tfr.open(link) as ds:
        num_records = len(ds)
    size = path.stat().st_size
    return (
        f"{index.stat().st_size:,} bytes for {num_records:,} records ({index.stat().st_size / num_records:.3f} bytes "
        f"a record), made in {min(seconds):.3f} s ({size / min(seconds) / 1e9:.1f} GB/s of the file)"
    )


def measure_installed() -> dict[str, float]:
    """Return megabytes on disk of tfrkit and of TensorFlow, alone and with what they need."""
    import tfrkit

    own = {Path(tfrkit.__file__).parent, Path(sys.modules["tfrkit._core"].__file__ or "").parent}
    alone = sum(size_of(folder) for folder in own)
    needed = sum(size_of_distribution(name) for name in closure("tfrkit") - {"tfrkit"})
    tensorflow = closure("tensorflow-cpu")
    return {
        "tfrkit alone": alone,
        "tfrkit with everything it needs": alone + needed,
        "tensorflow-cpu alone": size_of_distribution("tensorflow-cpu"),
        "tensorflow-cpu with everything it needs": sum(size_of_distribution(name) for name in tensorflow),
    }


def size_of(folder: Path) -> float:
    """Return the megabytes of a folder."""
    return (
        sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        / 1e6
    )


def size_of_distribution(name: str) -> float:
    """Return the megabytes of an installed distribution."""
    files = [Path(str(file.locate())) for file in metadata.files(name) or () if "__pycache__" not in file.parts]
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6


def closure(name: str) -> set[str]:
    """Return a distribution and everything it needs here, by name."""
    found: set[str] = set()
    wanted = [name]
    while wanted:
        one = wanted.pop()
        if one in found:
            continue
        try:
            requirements = metadata.requires(one) or []
        except metadata.PackageNotFoundError:
            continue
        found.add(one)
        for text in requirements:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                wanted.append(requirement.name.lower().replace("_", "-"))
    return found
