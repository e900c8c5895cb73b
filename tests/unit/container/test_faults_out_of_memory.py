"""Running out of memory in a sound file, in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tfrkit as tfr

NBYTES = 64 << 20
LARGE = 5

pytestmark = pytest.mark.resources

LIMIT = """
    import os, resource, sys
    def limit(nbytes):
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + nbytes,) * 2)
"""
# Enough to map the file, which is a little larger than its largest record, and not enough for that record.
ROOM = NBYTES * 3 // 2


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "large.tfrecord"
    with tfr.Writer(path) as writer:
        for number in range(10):
            writer.write({"id": number, "b": bytes(NBYTES) if number == LARGE else b"x"})
    return path


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    program = textwrap.dedent(LIMIT) + textwrap.dedent(code)
    settings = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    return subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=False, env=settings
    )


READ = """
    import tfrkit as tfr
    ds = tfr.open(sys.argv[1], on_error={on_error!r})
    ds.schema
    limit({nbytes})
    try:
        print("read", {way})
    except MemoryError as error:
        print(error, ds.errors)
"""


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize(
    "way",
    [
        "sum(len(batch['id']) for batch in ds.batch(2, threads=1))",
        "sum(len(batch['id']) for batch in ds.batch(2, threads=2))",
        "sum(len(batch['id']) for batch in ds.shuffle(seed=1).batch(2, threads=1))",
        "len(list(ds))",
        "ds[5]",
    ],
)
def test_sound_record_is_neither_skipped_nor_called_damaged(path: Path, way: str, on_error: str) -> None:
    done = run(READ.format(way=way, on_error=on_error, nbytes=ROOM), path)
    assert "out of memory" in done.stdout, done.stderr
    assert f"large.tfrecord, record {LARGE}, byte" in done.stdout
    assert done.stdout.endswith("[]\n")


COMMAND = """
    import importlib
    from tfrkit.cli import main
    for name in {modules!r}: importlib.import_module(name)
    sys.argv = ["tfr", *[sys.argv[1] if word == "PATH" else word for word in {words!r}]]
    limit({nbytes})
    main.main()
"""


@pytest.mark.parametrize(
    ("words", "modules"),
    [
        (["stats", "PATH"], ["tfrkit.view.stats"]),
        (["stats", "--on-error", "skip", "PATH"], ["tfrkit.view.stats"]),
        (["verify", "--deep", "-j", "1", "PATH"], ["tfrkit.ops.verify.deep"]),
        (["export", "jsonl", "PATH", "-o", "out.jsonl"], ["tfrkit.ops.export.rows"]),
        (["cat", "PATH"], ["tfrkit.ops.reshape.sample"]),
    ],
)
def test_command_says_so_in_one_line_and_ends_with_3(path: Path, words: list[str], modules: list[str]) -> None:
    words = [str(path.parent / word) if word == "out.jsonl" else word for word in words]
    done = run(COMMAND.format(words=words, modules=modules, nbytes=ROOM), path)
    assert done.stderr.startswith("tfr: out of memory"), done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 3


def test_file_that_cannot_be_mapped_is_out_of_memory(path: Path) -> None:
    code = """
        import tfrkit as tfr
        ds = tfr.open(sys.argv[1])
        limit(1 << 20)
        try:
            ds[0]
        except MemoryError as error:
            print(error)
    """
    done = run(code, path)
    assert done.stdout.startswith("out of memory, cannot map "), done.stderr
