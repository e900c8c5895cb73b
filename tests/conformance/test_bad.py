"""Damaged, hostile and odd files: one clear message, the right exit code, bounded memory and time.

Small ones are in bad/, named by their fault and made by bad/make_bad.py; cases.json holds the expected results:

    error, match    class and message of reading the rows; null: they read
    raw             records that `records()` still returns if the frames are sound; absent: that raises, too
    sound           records `verify` counts as sound
    info, verify    exit codes of the two commands

Large ones are made here when the test runs.
"""

from __future__ import annotations

import json
import os
import resource
import struct
import subprocess
import sys
import textwrap
import time
import zlib
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrkit as tfr
from tfrkit import errors
from tfrkit.errors import StorageError, TfrkitError
from tfrkit.testing import reference
from tfrkit.testing.corruption import make_frame

BAD = Path(__file__).parent / "bad"
CASES = json.loads((BAD / "cases.json").read_text())
Run = Callable[..., "subprocess.CompletedProcess[str]"]

MEGABYTE = 1 << 20


@pytest.fixture(params=CASES, ids=lambda case: case["file"])
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(request.param)


def test_every_file_has_a_case() -> None:
    files = {path.name for path in BAD.iterdir() if path.is_file()} - {"cases.json", "make_bad.py"}
    assert files == {case["file"] for case in CASES}


def read_rows(path: Path) -> list[Any]:
    with tfr.open(path) as ds:
        return [row for row in ds]  # noqa: C416  list() would ask for the length first


def read_records(path: Path) -> list[bytes]:
    with tfr.open(path) as ds:
        return [record for record in ds.records()]  # noqa: C416


def test_rows_raise_the_named_error(case: dict[str, Any]) -> None:
    if case["error"] is None:
        assert len(read_rows(BAD / case["file"])) == case["raw"]
        return
    with pytest.raises(getattr(errors, case["error"]), match=case["match"]):
        read_rows(BAD / case["file"])


def test_records_raise_or_are_all_there(case: dict[str, Any]) -> None:
    if "raw" in case:
        assert len(read_records(BAD / case["file"])) == case["raw"]
        return
    with pytest.raises(getattr(errors, case["error"]), match=case["match"]):
        read_records(BAD / case["file"])


def test_skip_gives_the_sound_records_and_lists_the_rest(case: dict[str, Any]) -> None:
    if case["error"] == "NotATFRecordError":
        with pytest.raises(errors.NotATFRecordError, match=case["match"]):
            tfr.open(BAD / case["file"], on_error="skip")
        return
    with tfr.open(BAD / case["file"], on_error="skip") as ds:
        assert len(list(ds.records())) == case.get("raw", case["sound"])
        assert bool(ds.errors) == ("raw" not in case)


def test_verify_counts_and_finds(case: dict[str, Any]) -> None:
    result = tfr.verify(BAD / case["file"])
    assert result.records == case["sound"]
    assert len(result.findings) == (case["verify"] == 1)


@pytest.mark.parametrize("command", ["info", "verify"])
def test_command_answers_once_and_exits_as_it_should(case: dict[str, Any], command: str, run_tfr: Run) -> None:
    done = run_tfr(command, BAD / case["file"], timeout=20)
    assert done.returncode == case[command], done.stderr
    assert "Traceback" not in done.stderr
    if done.returncode == 3:
        assert done.stdout == ""
        message, *hints = done.stderr.strip().splitlines()
        assert message.startswith("tfr: ")
        assert str(BAD / case["file"]) in message
        assert len(hints) <= 1
        assert all(hint.startswith("  ") for hint in hints)
    elif done.returncode == 1:
        assert case["file"] in done.stdout


# --- addresses


@pytest.mark.parametrize("command", ["info", "verify", "count", "head", "schema", "index"])
@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("folder", "found no TFRecord in this folder, only notes.txt - at .*folder"),
        ("train-*", r"no file matches - at .*train-\*"),
        ("nowhere.tfrecord", "cannot open, no such file or directory - at .*nowhere.tfrecord"),
        ("file/shard", "cannot open, (not a directory|no such file or directory) - at .*file/shard"),
        ("dangling", "cannot open, no such file or directory - at .*dangling"),
        ("loop", "cannot open, too many levels of symbolic links - at .*loop"),
    ],
)
def test_unknown_address_is_reported(command: str, address: str, message: str, tmp_path: Path, run_tfr: Run) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("nothing here\n")
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(StorageError, match=message):
        tfr.open(tmp_path / address)
    if command in ("info", "verify"):  # the others share this code path; one process each is enough
        done = run_tfr(command, tmp_path / address)
        # For `verify`, a file that cannot be opened is a finding; an address without files is a failure.
        assert done.returncode in ((3,) if command == "info" else (1, 3)), done
        assert str(tmp_path / address) in (done.stderr if done.returncode == 3 else done.stdout)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file; the other refusals are tested above")
def test_unreadable_file_is_reported(tmp_path: Path, run_tfr: Run) -> None:
    path = tmp_path / "secret.tfrecord"
    path.write_bytes(reference.write_frame(b""))
    path.chmod(0)
    with pytest.raises(StorageError, match=r"cannot open, permission denied - at .*secret\.tfrecord"):
        tfr.open(path)
    assert run_tfr("info", path).returncode == 3


# --- large files, each in its own process with memory measured


def run_measured(code: str, *arguments: object, limit: int | None = None) -> tuple[dict[str, Any], float]:
    """JSON printed by a piece of Python, its peak memory in bytes above a bare import, and its seconds."""
    prelude = """
        import json, resource, sys
        import tfrkit as tfr
        from tfrkit.errors import TfrkitError
        def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        before = peak()
        result = {}
    """
    postlude = """
        result["peak"] = peak() - before
        print(json.dumps(result))
    """
    program = "\n".join(textwrap.dedent(part) for part in (prelude, code, postlude))

    def set_limit() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=set_limit,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1]), time.monotonic() - start


READ = """
try:
    with tfr.open(sys.argv[1]) as ds:
        result["records"] = sum(1 for _ in ds.records())
except TfrkitError as error:
    result["error"] = type(error).__name__
    result["message"] = str(error)
"""


@pytest.fixture(scope="session")
def gzip_bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10 GB of zeros as 10 MB of gzip: one member of 100 MB, deflated once, given a hundred times."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = bytes(MEGABYTE)
    member = b"".join(packer.compress(block) for _ in range(100)) + packer.flush()
    path = tmp_path_factory.mktemp("bomb") / "bomb.tfrecord.gz"
    path.write_bytes(member * 100)
    return path


@pytest.fixture(scope="session")
def framed_bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same after a valid header with a length of 10 GB, in one stream."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    block = bytes(MEGABYTE)
    header = make_frame(b"", length=10_000 * MEGABYTE)[:12]
    pieces = [packer.compress(header)]
    pieces += [packer.compress(block) for _ in range(600)]
    pieces.append(packer.flush())
    path = tmp_path_factory.mktemp("bomb") / "framed.tfrecord.gz"
    path.write_bytes(b"".join(pieces))
    return path


@pytest.mark.resources
@pytest.mark.parametrize("bomb", ["gzip_bomb", "framed_bomb"])
def test_gzip_bomb_is_refused_in_little_memory_and_time(bomb: str, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(bomb)
    result, seconds = run_measured(READ, path)
    assert result["error"] in ("CorruptRecordError", "NotATFRecordError", "TruncatedShardError", "CompressionError")
    assert str(path) in result["message"]
    assert result["peak"] < 200 * MEGABYTE
    assert seconds < 20  # on a busy machine; alone it is a fraction of one


@pytest.mark.resources
@pytest.mark.parametrize("command", ["info", "count", "head"])
def test_gzip_bomb_given_to_the_command_fails_at_once(command: str, gzip_bomb: Path, run_tfr: Run) -> None:
    done = run_tfr(command, gzip_bomb, timeout=20)
    assert done.returncode == 3, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.resources
def test_gzip_bomb_verified_is_a_finding(gzip_bomb: Path, run_tfr: Run) -> None:
    done = run_tfr("verify", gzip_bomb, timeout=20)
    assert done.returncode == 1, (done.stdout, done.stderr)


@pytest.mark.resources
@pytest.mark.parametrize("length", [2**63, 2**40, 2**33])
def test_length_beyond_the_file_costs_no_memory(length: int, tmp_path: Path) -> None:
    path = tmp_path / "long.tfrecord"
    path.write_bytes(reference.write_frame(b"sound") + make_frame(b"abc", length=length))
    result, _ = run_measured(READ, path, limit=2 << 30)
    assert result["error"] == "TruncatedShardError"
    assert f"expected {length} bytes of payload, got 3" in result["message"]
    assert result["peak"] < 50 * MEGABYTE


@pytest.mark.resources
def test_record_of_a_gigabyte_reads(tmp_path: Path) -> None:
    path = tmp_path / "gigabyte.tfrecord"
    size = 1 << 30
    header = make_frame(b"", length=size)[:12]
    # Checksum of the zeros by the fast code; other tests compare it with the slow one.
    crc = 0
    block = bytes(16 * MEGABYTE)
    from tfrkit import _native

    for _ in range(size // len(block)):
        crc = _native.crc32c(block, crc)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    with path.open("wb") as file:
        file.write(header)
        file.seek(12 + size)  # a hole: no disk is used
        file.write(struct.pack("<I", masked))
        file.write(reference.write_frame(b"next"))
    code = """
    with tfr.open(sys.argv[1]) as ds:
        result["lengths"] = [len(record) for record in ds.records()]
        result["num"] = len(ds)
        result["next"] = ds.records()[1].decode()
    """
    result, seconds = run_measured(textwrap.dedent(code), path)
    assert result["lengths"] == [size, 4]
    assert (result["num"], result["next"]) == (2, "next")
    assert result["peak"] < 2.2 * size  # the mapped file and the one bytes object
    assert seconds < 60
    result, _ = run_measured("result['ok'] = tfr.verify(sys.argv[1]).ok", path)
    assert result["ok"]
    assert result["peak"] < 1.2 * size


@pytest.mark.resources
def test_ten_million_empty_records_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "empty_records.tfrecord"
    count = 10_000_000
    with path.open("wb") as file:
        block = reference.write_frame(b"") * 100_000
        for _ in range(count // 100_000):
            file.write(block)
    code = """
    with tfr.open(sys.argv[1]) as ds:
        result["num"] = sum(1 for _ in ds.records())
        result["streaming"] = peak() - before
        result["len"] = len(ds)
        result["last"] = len(ds.records()[-1])
    """
    result, seconds = run_measured(textwrap.dedent(code), path)
    assert result["num"] == result["len"] == count
    assert result["last"] == 0
    assert result["streaming"] < 120 * MEGABYTE
    assert result["peak"] < 400 * MEGABYTE  # 8 bytes per record for the index, twice while it is saved
    assert seconds < 60
    path.unlink()


@pytest.mark.resources
def test_streaming_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    peaks = []
    for megabytes in (10, 300):
        path = tmp_path / f"{megabytes}.tfrecord"
        block = reference.write_frame(bytes(1000)) * 1000
        with path.open("wb") as file:
            for _ in range(megabytes):
                file.write(block)
        code = """
        with tfr.open(sys.argv[1]) as ds:
            result["num"] = sum(1 for _ in ds.records())
        """
        result, _ = run_measured(textwrap.dedent(code), path)
        assert result["num"] == megabytes * 1000
        peaks.append(result["peak"])
        path.unlink()
    assert peaks[1] < peaks[0] + 40 * MEGABYTE


# --- hostile messages


@pytest.mark.resources
def test_many_headers_with_right_checksums_are_searched_in_linear_time(tmp_path: Path) -> None:
    """Each header claims the rest of the file: checking every one from its start would be quadratic."""
    size = 4 * MEGABYTE
    headers = bytearray()
    while len(headers) < size:
        headers += make_frame(b"", length=size - len(headers) - 16 + 4)[:12] if len(headers) % 4096 == 0 else bytes(4)
    path = tmp_path / "headers.tfrecord"
    path.write_bytes(reference.write_frame(b"sound") + bytes(headers))
    start = time.process_time()
    with tfr.open(path, on_error="skip") as ds:
        deque(ds.records(), maxlen=0)
        assert ds.errors
    assert time.process_time() - start < 5


def test_twenty_thousand_names_in_one_record_read(tmp_path: Path) -> None:
    features: reference.Features = {b"%06d" % i: ("int64", [i]) for i in range(20_000)}
    path = tmp_path / "names.tfrecord"
    with tfr.Writer(path) as writer:
        writer.write_record(reference.encode_example(features))
    with tfr.open(path) as ds:
        row = ds[0]
    assert len(row) == 20_000
    assert row["019999"] == 19_999


def test_error_never_shows_more_than_64_bytes_of_content(tmp_path: Path) -> None:
    path = tmp_path / "shard.tfrecord"
    path.write_bytes(b"\x00secret" * 1000)
    with pytest.raises(TfrkitError, match="expected a TFRecord") as caught:
        tfr.open(path)
    assert len(str(caught.value).replace(str(path), "")) < 300
