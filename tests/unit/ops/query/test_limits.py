from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

import tfrkit
from tfrkit.errors import QueryError
from tfrkit.ops.query.limits import find_memory, parse_memory, parse_timeout
from tfrkit.ops.query.query import sql

pytest.importorskip("duckdb")

# More than a day of counting, whatever the machine.
ENDLESS = "select count(*) from range(1000000000000000) where range % 7 = 3"
# A list cannot be spilled.
LARGE = "select list(range) from range(1000000000)"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with tfrkit.Writer("a.tfrecord") as writer:
        for number in range(1000):
            writer.write({"x": number})
    return tmp_path


@pytest.mark.parametrize("ask", [list, lambda answer: answer.save("out.csv"), lambda answer: answer.save("o.parquet")])
def test_query_longer_than_its_time_is_stopped(data: Path, ask: object) -> None:
    answer = sql(ENDLESS, timeout=0.05)
    with pytest.raises(QueryError, match=r"stopped, it took longer than 0\.05 seconds\n  give it more time: timeout"):
        ask(answer)  # type: ignore[operator]
    assert os.listdir(data) == ["a.tfrecord"]


def test_rows_of_a_query_in_time_all_come(data: Path) -> None:
    rows = sql("select x from 'a.tfrecord' order by x", timeout=60).tuples()
    assert next(rows) == (0,)
    assert len(list(rows)) == 999


def test_every_run_of_a_query_has_all_of_its_time(data: Path) -> None:
    with sql("select sum(x) s from 'a.tfrecord'", timeout=20) as answer:
        assert [list(answer) for _ in range(3)] == [[{"s": 499500}]] * 3


def test_arrow_stream_is_stopped_too(data: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    answer = sql("select range from range(1000000000000000) where range % 7 = 3", timeout=0.3)
    with pytest.raises(Exception, match="(?i)interrupt"):
        for _ in pyarrow.RecordBatchReader.from_stream(answer):
            pass


def test_timeout_holds_on_other_threads(data: Path) -> None:
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            list(sql(ENDLESS, timeout=0.05))
        except QueryError as error:
            errors.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(60)
    assert [str(error).split("\n")[0] for error in errors] == [
        "the query was stopped, it took longer than 0.05 seconds"
    ]


def test_query_out_of_memory_reports_its_limit(data: Path) -> None:
    with pytest.raises(
        QueryError,
        match=r"more memory than it may use, 34 MB and .* of temporary files, .*[Ff]ailed to .*\n  allow more: memory",
    ):
        list(sql(LARGE, memory=34_000_000))
    with pytest.raises(QueryError, match="may use, 40 MB and"):
        list(sql(LARGE, memory="40MB"))
    assert list(sql("select sum(x) s from 'a.tfrecord'", memory="40MB")) == [{"s": 499500}]


def test_what_does_not_fit_into_memory_is_put_down_and_removed(
    data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    answer = sql("select range, hash(range) h from range(4000000) order by h", memory="40MB")
    rows = answer.tuples()
    next(rows)
    assert any(path.stat().st_size for path in scratch.rglob("duckdb_temp*"))
    rows.close()  # type: ignore[attr-defined]
    answer.close()
    del rows, answer
    assert os.listdir(scratch) == []


def test_default_memory_is_half_of_what_the_process_may_use() -> None:
    assert parse_memory(None) == int(find_memory() / 2)
    assert sql("select 1")._session.memory == parse_memory(None)


@pytest.mark.skipif("TFRKIT_SANITIZE" in os.environ, reason="a sanitizer needs terabytes of address space")
def test_limit_of_the_process_is_known() -> None:
    program = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
from tfrkit.ops.query.limits import find_memory
print(find_memory())
"""
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert int(shown.stdout) <= 8 << 30


@pytest.mark.parametrize("megabytes", [100, 300, 600])
def test_little_address_space_is_an_error_and_no_crash(megabytes: int) -> None:
    program = f"""
import resource, tfrkit
from tfrkit.ops.query.engine import import_duckdb
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + ({megabytes} << 20),) * 2)
import_duckdb()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "MemoryError: out of memory: a query needs 768 MiB of address space, the limit" in ended.stderr


@pytest.mark.parametrize("wrong", [True, 1.5, b"2GB"])
def test_memory_of_another_type_raises(wrong: object) -> None:
    with pytest.raises(TypeError, match="memory expected a number of bytes or a size such as '2GB', got"):
        parse_memory(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [0, -1, 31_999_999, "1MB"])
def test_too_little_memory_raises(wrong: int | str) -> None:
    with pytest.raises(ValueError, match=f"memory expected at least 32MB, got {wrong}"):
        parse_memory(wrong)


def test_timeouts_that_cannot_be_raise() -> None:
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="timeout expected more than 0 seconds, got"):
            parse_timeout(wrong)
    with pytest.raises(TypeError, match="timeout expected a number of seconds, got '5'"):
        parse_timeout("5")  # type: ignore[arg-type]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("output", [[], ["-o", "out.parquet"]])
def test_signal_stops_a_running_query_at_once(tmp_path: Path, number: int, code: int, output: list[str]) -> None:
    command = subprocess.Popen(
        [sys.executable, "-m", "tfrkit", "sql", ENDLESS, *output],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Tests that run in the background of a shell are started with interrupts ignored, and pass that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 60
    while count_jiffies(command.pid) < 100 and time.monotonic() < deadline:  # a second of work: it counts by now
        pass
    command.send_signal(number)
    asked = time.monotonic()
    out, err = command.communicate(timeout=60)
    assert (command.returncode, out, err) == (code, b"", b"")
    assert time.monotonic() - asked < 20  # a busy machine takes its time to end a process
    assert os.listdir(tmp_path) == []


def count_jiffies(process: int) -> int:
    """Processor time of a process, in hundredths of a second."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
