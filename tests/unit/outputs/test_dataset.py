"""Outputs whose last steps fail, and outputs that are links."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrkit
from tfrkit.errors import TfrkitError
from tfrkit.ops.export.images import export_images
from tfrkit.ops.export.npz import export_npz
from tfrkit.ops.export.rows import export_csv
from tfrkit.ops.query.query import sql
from tfrkit.ops.repair import repair
from tfrkit.ops.reshape.convert import convert
from tfrkit.ops.reshape.reshard import reshard
from tfrkit.ops.reshape.shuffle import shuffle
from tfrkit.testing.reference import encode_example, write_frames

Write = Callable[..., Any]
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")

FILES: dict[str, tuple[str, Write]] = {
    "convert": ("out.tfrecord", lambda out, **how: convert("in.tfrecord", out, **how)),
    "shuffle": ("out.tfrecord", lambda out, **how: shuffle("in.tfrecord", out, seed=1, **how)),
    "repair": ("out.tfrecord", lambda out, **how: repair("in.tfrecord", out, **how)),
    "npz": ("out.npz", lambda out, **how: export_npz("in.tfrecord", out, **how)),
    "csv": ("out.csv", lambda out, **how: export_csv("in.tfrecord", out, **how)),
    "sql parquet": ("out.parquet", lambda out, **how: sql("select x from 'in.tfrecord'").save(out, **how)),
    "sql tfrecord": ("out.tfrecord", lambda out, **how: sql("select x from 'in.tfrecord'").save(out, **how)),
}
FOLDERS: dict[str, tuple[str, Write]] = {
    "reshard": ("out", lambda out, **how: reshard("in.tfrecord", out, shards=2, **how)),
    "images": ("out", lambda out, **how: export_images("in.tfrecord", out, **how)),
}


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    records = [encode_example({b"x": ("int64", [number]), b"image": ("bytes", [PNG])}) for number in range(4)]
    (tmp_path / "in.tfrecord").write_bytes(write_frames(records))
    return tmp_path


def read_all(folder: Path) -> dict[str, bytes]:
    """All files, including hidden ones, except the lock file in an index folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def fail_moves(monkeypatch: pytest.MonkeyPatch, first: int) -> Iterator[None]:
    """Let the nth rename fail once."""
    count = 0

    def wrap(move: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        def fail(source: Any, target: Any) -> None:
            nonlocal count
            count += 1
            if count == first:
                raise OSError(errno.EIO, "Input/output error")
            move(source, target)

        return fail

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", wrap(os.replace))
        patched.setattr(os, "rename", wrap(os.rename))
        yield


@pytest.mark.parametrize("verb", [*FILES, *FOLDERS])
@pytest.mark.parametrize("is_there", [False, True])
def test_rename_that_fails_leaves_what_was_there(
    records: Path, monkeypatch: pytest.MonkeyPatch, verb: str, is_there: bool
) -> None:
    name, write = {**FILES, **FOLDERS}[verb]
    if is_there:
        write(name)
    before = read_all(records)
    num_failed = 0
    for number in range(1, 100):
        for _ in fail_moves(monkeypatch, number):
            try:
                write(name, force=is_there)
                is_done = True
            except TfrkitError as error:
                is_done = False
                assert "input/output error" in str(error), str(error)
        if is_done:
            break
        num_failed += 1
        # Images are added to an existing folder one by one: other files in it stay.
        assert verb == "images" or read_all(records) == before, number
    assert num_failed >= 1
    assert not [path for path in read_all(records) if ".tmp" in path or ".tfrkit.lock" in path]
    assert {"in.tfrecord"} < set(read_all(records))


@pytest.mark.parametrize("verb", ["convert", "npz", "shuffle", "reshard", "csv"])
def test_no_descriptors_left_leaves_nothing_hidden(records: Path, verb: str) -> None:
    name, write = {**FILES, **FOLDERS}[verb]
    num_failed = 0
    for spare in range(40):
        try:
            with few_descriptors(spare):
                write(name)
            break
        except (TfrkitError, OSError) as error:
            assert "too many open files" in str(error).lower(), str(error)
            num_failed += 1
        assert sorted(os.listdir(records)) == ["in.tfrecord"], spare
    assert num_failed >= 2
    assert not [path for path in read_all(records) if ".tmp" in path or ".tfrkit.lock" in path]


@contextlib.contextmanager
def few_descriptors(spare: int) -> Iterator[None]:
    """Limit the number of open descriptors."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(number) for number in os.listdir("/proc/self/fd"))
    held = [os.open(os.devnull, os.O_RDONLY)]
    while held[-1] < highest:  # gaps between those that are open
        held.append(os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(highest, held[-1]) + 1 + spare, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for descriptor in held:
            os.close(descriptor)


@pytest.mark.parametrize("verb", [*FILES, *FOLDERS])
@pytest.mark.parametrize("is_dangling", [True, False])
def test_link_as_output_stays_and_what_it_names_is_written(records: Path, verb: str, is_dangling: bool) -> None:
    name, write = {**FILES, **FOLDERS}[verb]
    write(f"plain-{name}")
    (records / "elsewhere").mkdir()
    place = records / "elsewhere" / name
    if not is_dangling:
        place.mkdir() if verb in FOLDERS else place.write_bytes(b"old")
    (records / name).symlink_to(place)
    write(name, force=True)
    assert (records / name).is_symlink()
    if verb in FILES:
        assert place.read_bytes() == (records / f"plain-{name}").read_bytes()
    else:
        assert len(read_all(place)) == len(read_all(records / f"plain-{name}"))
    if name.endswith(".tfrecord"):
        assert len(tfrkit.open(name)) == 4
        assert len(tfrkit.open(place)) == 4


def test_writers_and_builds_go_through_a_link_to_nothing(records: Path) -> None:
    for name, write in {
        "a.tfrecord": lambda: tfrkit.Writer("a.tfrecord").close(),
        "b.tfrecord": lambda: tfrkit.build([{"x": 1}], "b.tfrecord", force=True),
    }.items():
        (records / name).symlink_to(records / f"real-{name}")
        write()
        assert (records / name).is_symlink()
        assert (records / f"real-{name}").is_file()
