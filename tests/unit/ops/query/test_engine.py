from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tfrkit.ops.query import engine as query_engine
from tfrkit.ops.query.engine import defer_signals, get_engine
from tfrkit.ops.query.query import sql
from tfrkit.testing.reference import encode_example, write_frames

duckdb = pytest.importorskip("duckdb")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, values in (("a", [1, 2]), ("b", [10, 20, 30])):
        records = [encode_example({b"x": ("int64", [value])}) for value in values]
        (tmp_path / f"{name}.tfrecord").write_bytes(write_frames(records))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_is_handled_after_the_block(number: signal.Signals) -> None:
    seen: list[str] = []

    def handle(number: int, frame: object) -> None:
        seen.append("signal")
        raise InterruptedError

    before = signal.signal(number, handle)
    try:
        with pytest.raises(InterruptedError), defer_signals():
            signal.raise_signal(number)
            seen.append("block")
        assert seen == ["block", "signal"]
        assert signal.getsignal(number) is handle
    finally:
        signal.signal(number, before)


def test_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with defer_signals():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_queries_share_an_engine() -> None:
    assert get_engine(duckdb) is get_engine(duckdb)


def test_concurrent_queries_see_their_own_tables(files: None) -> None:
    first, second = (sql("select sum(x) s from t", tables={"t": f"{name}.tfrecord"}) for name in "ab")
    assert list(first) == [{"s": 3}]
    assert list(second) == [{"s": 60}]
    rows = sql("select x from 'b.tfrecord'").tuples()
    assert next(rows) == (10,)
    assert list(first) == [{"s": 3}]
    assert list(rows) == [(20,), (30,)]


def test_tables_of_one_connection_are_not_those_of_another() -> None:
    engine = get_engine(duckdb)
    first, second = engine.connect(), engine.connect()
    first.execute("create temp view v as select 1 x")
    with pytest.raises(duckdb.CatalogException, match="v does not exist"):
        second.execute("select x from v")


def test_engine_takes_its_folder_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = query_engine.QueryEngine(duckdb, 64 << 20)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".lock", ".tmp"]
    assert engine.connect().execute("select 1").fetchall() == [(1,)]
    del engine
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_process_has_its_own_engine_and_exits_cleanly(files: None) -> None:
    program = """
import os, sys
from tfrkit.ops.query.query import sql
ask = lambda: list(sql("select sum(x) s from 'a.tfrecord'"))
assert ask() == [{"s": 3}]
child = os.fork()
assert ask() == [{"s": 3}]
if child == 0:
    sys.exit(7)  # in the usual way, with everything let go of
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)
