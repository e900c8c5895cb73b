from __future__ import annotations

import hashlib
import os
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit
from tfrkit import BytesColumn, Ragged, Schema, Spec, Writer
from tfrkit.container.locate import save_index
from tfrkit.container.shards import Shard
from tfrkit.errors import FeatureKindError, LostRowsWarning, MissingFeatureError, ShapeError, StorageError
from tfrkit.testing.reference import parse_example, parse_sequence_example, read_frames


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out.tfrecord"


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(tmp_path: Path) -> Iterator[None]:
    yield
    assert [item.name for item in tmp_path.rglob("*.tmp")] == []


def write(path: Path, *rows: Any, **options: Any) -> list[bytes]:
    """Write some rows and return their records."""
    with Writer(path, **options) as writer:
        for row in rows:
            writer.write(row)
    return read_frames(path.read_bytes())


def read(path: Path, **options: Any) -> list[Any]:
    with tfrkit.open(path, **options) as ds:
        return [plain(row) for row in ds]


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def sequence(context: Any = None, **lists: Any) -> dict[str, Any]:
    return {"context": context or {}, "feature_lists": lists}


# --- rows ---------------------------------------------------------------------------------------------


def test_row_becomes_an_example_with_sorted_keys(path: Path) -> None:
    (record,) = write(path, {"b": [1, 2], "a": 0.5, "c": "x", "d": None})
    assert parse_example(record) == {
        b"a": ("float", [0.5]),
        b"b": ("int64", [1, 2]),
        b"c": ("bytes", [b"x"]),
        b"d": None,
    }
    assert record == write(path, {"d": None, "c": "x", "a": 0.5, "b": [1, 2]})[0]


def test_absent_unset_and_empty_are_distinct(path: Path) -> None:
    rows = [{"x": [1, 2], "n": 0}, {"n": 1}, {"x": None, "n": 2}, {"x": [], "n": 3}]
    records = write(path, *rows)
    assert [parse_example(record).get(b"x", "absent") for record in records] == [
        ("int64", [1, 2]),
        "absent",
        None,
        ("int64", []),
    ]
    assert read(path) == rows


@pytest.mark.parametrize("name", ["", "\0", "a\0b", "\u00e9", "n" * 1000])
def test_any_name_comes_back(path: Path, name: str) -> None:
    write(path, {name: 1}, {name: 2})
    assert read(path) == [{name: 1}, {name: 2}]


@pytest.mark.parametrize("row", [{1: 2}, {b"a": 2}, {None: 2}])
def test_name_of_another_type_raises(path: Path, row: Any) -> None:
    with pytest.raises(TypeError, match="feature name .* ?str"):
        write(path, row)
    with pytest.raises(TypeError, match="feature name .* ?str"), Writer(path) as writer:
        writer.write_columns({name: [value] for name, value in row.items()})


@pytest.mark.parametrize("name", ["\ud800", "a\udcff"])
def test_name_that_utf8_does_not_hold_raises(path: Path, name: str) -> None:
    # A key of a protobuf map is text: no other program would read such a record.
    with pytest.raises(ValueError, match="feature name .*UTF-8"):
        write(path, {name: 1})
    with pytest.raises(ValueError, match="feature name .*UTF-8"), Writer(path) as writer:
        writer.write_columns({name: [1]})
    with pytest.raises(ValueError, match="feature name .*UTF-8"):
        write(path, sequence({}, **{name: [1]}))


@pytest.mark.parametrize("row", [[1], None, "abc", 3, [("a", 1)]])
def test_row_that_is_no_dict_raises(path: Path, row: Any) -> None:
    with pytest.raises(TypeError, match="row expected a dict, got "):
        write(path, row)


@pytest.mark.parametrize("record", [b"ab", bytearray(b"ab"), memoryview(b"ab")])
def test_record_given_as_a_row_names_write_record(path: Path, record: Any) -> None:
    with pytest.raises(TypeError, match=r"row expected a dict, got \w+; write_record\(\) takes a record's bytes"):
        write(path, record)


def test_raw_records_are_written_as_they_are(path: Path) -> None:
    with Writer(path) as writer:
        writer.write_record(b"abc")
        writer.write_record(bytearray(b""))
        writer.write_record(memoryview(b"xyz")[1:])
        assert writer.num_records == 3
    assert read_frames(path.read_bytes()) == [b"abc", b"", b"yz"]


def test_kind_that_changes_between_rows_raises_and_the_writer_continues(path: Path) -> None:
    with Writer(path) as writer:
        writer.write({"x": 1})
        with pytest.raises(
            FeatureKindError, match="feature 'x' expected int64 as in rows before, got bytes - at row 1"
        ):
            writer.write({"x": b"a"})
        writer.write({"x": 2})
    assert read(path) == [{"x": 1}, {"x": 2}]


@pytest.mark.parametrize(
    "rows",
    [
        [{"x": 1.0}, {"x": 0.1}],
        [{"x": 0.1}, {"x": 1.0}],
        [{"x": 0.5}, {"x": 1}, {"x": 0.1}],
        [{"x": 0.1}, {"x": 1}],
        [{"x": [0.5, 1.0]}, {"x": [0.1, 0.2]}],
    ],
)
def test_doubles_are_kept_whatever_row_comes_first(path: Path, rows: list[Any]) -> None:
    write(path, *rows, floats="float64")
    assert read(path) == rows


# --- failure ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib", "xz", "zstd"])
def test_block_that_fails_leaves_nothing(path: Path, compression: Any) -> None:
    with pytest.raises(KeyError, match="boom"), Writer(path, compression=compression) as writer:
        writer.write({"x": b"a" * 1_000_000})
        raise KeyError("boom")
    assert list(path.parent.iterdir()) == []


def test_block_that_fails_keeps_the_old_file(path: Path) -> None:
    write(path, {"x": 1})
    with pytest.raises(KeyError, match="boom"), Writer(path) as writer:
        writer.write({"x": 2})
        raise KeyError("boom")
    assert read(path) == [{"x": 1}]


def test_writer_not_closed_leaves_nothing_and_warns(path: Path) -> None:
    writer = Writer(path)
    writer.write({"x": 1})
    said = r"(?s)1 row lost, the writer was never closed - at .*with tfrkit.Writer"
    with pytest.warns(LostRowsWarning, match=said) as told:
        del writer
    assert told[0].filename == __file__
    assert list(path.parent.iterdir()) == []


def test_writer_not_closed_without_rows_is_quiet(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        writer = Writer(path)
        del writer
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("suffix", ["bz2", "LZ4", "zip", "7z", "br", "snappy"])
def test_suffix_of_a_compression_that_is_not_written_is_refused(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(ValueError, match=rf"compression \.{suffix.lower()} cannot be written, only \.gz, "):
        Writer(tmp_path / f"x.tfrecord.{suffix}")
    with pytest.raises(ValueError, match="cannot be written, only"):
        tfrkit.build([{"x": 1}], tmp_path / f"x.{suffix}")
    assert list(tmp_path.iterdir()) == []


FORGETFUL = """
import sys, tfrkit
writer = tfrkit.Writer(sys.argv[1])
for number in range(1000):
    writer.write({"x": number})
"""


@pytest.mark.parametrize("ending", ["", "raise SystemExit(0)", "def hold():\n    return writer\n"])
def test_a_script_that_ends_with_an_open_writer_says_what_is_lost(path: Path, ending: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORGETFUL + ending, path], capture_output=True, text=True, timeout=60, check=True
    )
    assert f"LostRowsWarning: 1,000 rows lost, the writer was never closed - at {path}" in done.stderr
    assert "write in a with block" in done.stderr
    assert list(path.parent.iterdir()) == []


def test_a_process_forked_from_an_open_writer_leaves_its_file_alone(path: Path) -> None:
    script = (
        "import os, sys, tfrkit\n"
        "writer = tfrkit.Writer(sys.argv[1])\n"
        "writer.write({'x': 1})\n"
        "if os.fork() == 0:\n"
        "    sys.exit(0)\n"
        "os.wait()\n"
        "writer.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    assert read(path) == [{"x": 1}]


@pytest.mark.parametrize(
    ("name", "given", "stored"),
    [
        ("x.tfrecord", None, "none"),
        ("x.tfrecord.gz", None, "gzip"),
        ("x.GZ", None, "gzip"),
        ("x.tfrecord.gzip", None, "gzip"),
        ("x.tfrecord.zlib", None, "zlib"),
        ("x.tfrecord.xz", None, "xz"),
        ("x.tfrecord.zst", None, "zstd"),
        ("x.tfrecord.zstd", None, "zstd"),
        ("x.gz", "none", "none"),
        ("x.tfrecord.gz", "zlib", "zlib"),
        ("x.tfrecord", "gzip", "gzip"),
        ("gz", None, "none"),
        ("x.gz", "", "none"),
        ("x.tfrecord", "GZIP", "gzip"),
        ("x.tfrecord", "gz", "gzip"),
        ("x.tfrecord", "Zlib", "zlib"),
        ("x.tfrecord", "NONE", "none"),
    ],
)
def test_compression_is_the_option_or_follows_the_suffix(tmp_path: Path, name: str, given: Any, stored: str) -> None:
    path = tmp_path / name
    with Writer(path, compression=given) as writer:
        writer.write({"x": 1})
    assert Shard.open(str(path)).compression == stored
    assert read(path) == [{"x": 1}]


def test_file_appears_only_at_the_end(path: Path) -> None:
    with Writer(path) as writer:
        writer.write({"x": b"a" * 1_000_000})
        assert not path.exists()
    assert path.exists()


@pytest.mark.parametrize(
    "bad",
    [{"a": 2, "z": object()}, {"a": b"x"}, {"z": 1 << 70}, {"a": 0.1}, {1: 2}, sequence({"a": 5}, f=[1, object()])],
)
def test_row_that_fails_is_not_in_the_file(path: Path, bad: Any) -> None:
    with Writer(path) as writer:
        writer.write({"a": 1})
        with pytest.raises((TypeError, ValueError, OverflowError, FeatureKindError), match="feature"):
            writer.write(bad)
        assert writer.num_records == 1
        writer.write({"a": 3})
    assert read(path) == [{"a": 1}, {"a": 3}]


@pytest.mark.parametrize("bad", [{"a": 2.0, "b": object()}, sequence({"a": 2.0}, f=[1, object()])])
def test_row_that_fails_does_not_fix_kinds(path: Path, bad: Any) -> None:
    with Writer(path) as writer:
        with pytest.raises(TypeError, match="feature"):
            writer.write(bad)
        writer.write({"a": b"x"})
    assert read(path) == [{"a": b"x"}]


def test_closed_writer_takes_nothing(path: Path) -> None:
    writer = Writer(path)
    writer.close()
    writer.close()
    for call in (writer.write, writer.write_columns, writer.write_record):
        with pytest.raises(ValueError, match="write to a closed writer - at .*out.tfrecord"):
            call({})  # type: ignore[operator]
    assert path.read_bytes() == b""


def test_discarded_writer_takes_nothing(path: Path) -> None:
    writer = Writer(path)
    writer.write({"x": 1})
    writer.discard()
    writer.discard()
    writer.close()
    with pytest.raises(ValueError, match="write to a closed writer"):
        writer.write({"x": 1})
    assert not path.exists()


class FullDisk:
    """A byte writer that is full after `room` bytes."""

    name = "full"

    def __init__(self, room: int) -> None:
        self._room = room
        self.is_discarded = False
        self.is_committed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._room -= len(data)
        if self._room < 0:
            self.discard()
            raise StorageError("cannot write, no space left on device, no partial file was left", shard=self.name)

    def commit(self) -> None:
        self.is_committed = not self.is_discarded

    def discard(self) -> None:
        self.is_discarded = True


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_writer_whose_disk_is_full_is_closed_for_good(monkeypatch: pytest.MonkeyPatch, compression: Any) -> None:
    disk = FullDisk(100)
    monkeypatch.setattr("tfrkit.writer.open_writer", lambda path: disk)
    writer = Writer("full", compression=compression)
    noise = np.random.default_rng(0).bytes(1 << 19)
    with pytest.raises(StorageError, match="no space left on device"):
        writer.write_record(noise)
    with pytest.raises((ValueError, StorageError), match="closed|failed|no space"):
        writer.write({"x": 1})
    # A caller that continues regardless must not find the file.
    with pytest.raises((ValueError, StorageError), match="closed|failed|no space"):
        writer.close()
    assert not disk.is_committed


def test_disk_that_is_full_leaves_nothing(tmp_path: Path) -> None:
    code = """
        import os, sys, tfrkit
        try:
            with tfrkit.Writer(sys.argv[1]) as writer:
                for _ in range(20):
                    writer.write_record(os.urandom(100_000))
        except tfrkit.errors.StorageError as error:
            print(error)
    """

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))

    target = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(target)], capture_output=True, text=True, preexec_fn=limit
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "cannot write, file too large, no partial file was left" in done.stdout
    assert list(tmp_path.iterdir()) == []


# --- places -------------------------------------------------------------------------------------------


def test_place_that_cannot_be_written_raises_at_once(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot write, no such file or directory - at "):
        Writer(tmp_path / "no" / "such" / "folder")
    with pytest.raises(StorageError, match="expected a file, got a folder - at "):
        Writer(tmp_path)


def test_two_writers_to_one_path_do_not_mix(path: Path) -> None:
    first, second = Writer(path), Writer(path)
    first.write({"x": 1})
    second.write({"x": 2})
    first.close()
    assert read(path) == [{"x": 1}]
    second.close()
    assert read(path) == [{"x": 2}]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_follow_the_umask(path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        Writer(path).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_symlink_is_followed(tmp_path: Path, path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"")
    path.symlink_to(target)
    write(path, {"x": 1})
    assert path.is_symlink()
    assert target.stat().st_size > 0


def test_pipe_is_not_replaced_by_a_file(path: Path) -> None:
    # The same rename would replace /dev/null by a regular file.
    os.mkfifo(path)
    with pytest.raises(StorageError, match="expected a file, got a pipe"), Writer(path) as writer:
        writer.write({"x": 1})
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"compression": "lz4"}, ValueError, "compression expected one of none, gzip, zlib, xz, zstd, got 'lz4'"),
        ({"compression": "gzip", "level": "huge"}, ValueError, "level of gzip must be .*, got 'huge'"),
        ({"level": "huge"}, ValueError, "level .*'huge'"),
        ({"floats": "double"}, ValueError, "floats expected .*, got 'double'"),
        ({"schema": "x"}, TypeError, "schema expected"),
    ],
)
def test_wrong_option_raises_and_leaves_nothing(path: Path, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Writer(path, **options)
    assert list(path.parent.iterdir()) == []


def test_index_is_written_when_requested(path: Path) -> None:
    write(path, {"x": 1}, {"x": 2}, index=True)
    assert (path.parent / "_index" / "out.tfrecord.tfidx").exists()
    with tfrkit.open(path) as ds:
        assert len(ds) == 2


def test_index_of_a_replaced_file_does_not_stay(path: Path) -> None:
    write(path, {"x": 1}, {"x": 2}, index=True)
    write(path, {"x": 1}, {"x": 2}, {"x": 3})
    with tfrkit.open(path) as ds:
        assert len(ds) == 3
        assert ds[2] == {"x": 3}


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib", "xz", "zstd"])
def test_equal_rows_give_equal_bytes(path: Path, compression: Any) -> None:
    rows = [{"x": number, "y": b"a" * number} for number in range(100)]
    with Writer(path, compression=compression) as writer:
        for row in rows:
            writer.write(row)
    first = path.read_bytes()
    with Writer(path, compression=compression) as writer:
        writer.write_columns({"y": [row["y"] for row in rows], "x": np.arange(100)})
    assert path.read_bytes() == first
    assert read(path) == rows


# --- columns ------------------------------------------------------------------------------------------


def test_columns_without_values_do_not_fix_kinds(path: Path) -> None:
    for columns in ({"x": []}, {"x": np.empty(0, np.float32)}, {"x": [None, None]}):
        with Writer(path) as writer:
            writer.write_columns(columns)
            writer.write({"x": b"a"})
        assert read(path)[-1] == {"x": b"a"}


def test_unset_column_after_bytes_is_no_other_kind(path: Path) -> None:
    with Writer(path) as writer:
        writer.write({"x": b"a"})
        writer.write_columns({"x": [None, None]})
    assert read(path) == [{"x": b"a"}, {"x": None}, {"x": None}]


def test_integer_column_after_floats_becomes_floats_as_rows_do(path: Path) -> None:
    with Writer(path) as writer:
        writer.write({"x": 1.5})
        writer.write_columns({"x": [1, 2]})
    assert read(path) == [{"x": 1.5}, {"x": 1.0}, {"x": 2.0}]


def test_empty_lists_take_the_kind_of_rows_before(path: Path) -> None:
    with Writer(path) as writer:
        writer.write({"x": [b"a", b"b"]})
        writer.write_columns({"x": [[], [b"c"]]})
    assert read(path) == [{"x": [b"a", b"b"]}, {"x": []}, {"x": [b"c"]}]


@pytest.mark.parametrize("schema", [None, Schema({"x": "int64"})])
@pytest.mark.parametrize("num_rows", [3, 4_000])
def test_columns_that_fail_leave_no_rows(path: Path, schema: Schema | None, num_rows: int) -> None:
    with Writer(path, schema=schema) as writer:
        writer.write({"x": 0})
        with pytest.raises((TypeError, FeatureKindError), match=f"feature 'x' .* - at row {num_rows}"):
            writer.write_columns({"x": [1] * (num_rows - 1) + ["a"]})
        assert writer.num_records == 1
    assert read(path) == [{"x": 0}]


def test_columns_that_fail_after_a_flush_end_the_writer(path: Path) -> None:
    # Rows already passed to the disk cannot be removed, so the file must not appear.
    writer = Writer(path)
    with pytest.raises((TypeError, FeatureKindError), match="feature 'x' .* - at row 39999"):
        writer.write_columns({"x": [1] * 39_999 + ["a"]})
    with pytest.raises((TypeError, FeatureKindError), match="feature 'x' .* - at row 39999"):
        writer.close()
    assert not path.exists()


@pytest.mark.parametrize("schema", [None, Schema({"x": "int64", "y": "int64"})])
@pytest.mark.parametrize("num_rows", [1, 20_000])
def test_columns_of_different_lengths_raise(path: Path, schema: Schema | None, num_rows: int) -> None:
    with Writer(path, schema=schema) as writer:
        with pytest.raises(
            ShapeError, match=f"columns expected one length, got {num_rows} rows of 'x' and {num_rows + 1}"
        ):
            writer.write_columns({"x": np.arange(num_rows), "y": np.arange(num_rows + 1)})
        assert writer.num_records == 0


@pytest.mark.parametrize("column", [5, b"abc", np.array(5), (item for item in [1]), {"a": [1]}])
def test_value_that_is_no_column_raises(path: Path, column: Any) -> None:
    with Writer(path) as writer, pytest.raises(TypeError, match=r"feature 'x' expected a column .*, got "):
        writer.write_columns({"x": column})


def test_batch_of_sequences_is_not_taken_for_columns(path: Path) -> None:
    with Writer(path) as writer:
        with pytest.raises(TypeError, match="feature 'context' expected a column .*, got dict"):
            writer.write_columns(sequence({"a": [1, 2]}, f=[[1], [2]]))
        assert writer.num_records == 0


@pytest.mark.parametrize("columns", [[1], None, [("x", [1])]])
def test_columns_that_are_no_dict_raise(path: Path, columns: Any) -> None:
    with Writer(path) as writer, pytest.raises(TypeError, match="columns expected a dict of columns, got "):
        writer.write_columns(columns)


def test_no_columns_are_no_rows(path: Path) -> None:
    with Writer(path) as writer:
        writer.write_columns({})
        assert writer.num_records == 0


def test_batches_of_a_dataset_can_be_written_again(path: Path, tmp_path: Path) -> None:
    write(
        path,
        {"a": 1, "b": b"x", "c": [1, 2], "d": [b"p"], "e": 0.5, "t": np.zeros((2, 2))},
        {"a": 2, "b": b"y", "c": [], "d": [b"p", b"q"], "t": np.ones((2, 2))},
        {"a": 2, "b": b"", "c": [3], "d": [], "e": None},
    )
    again = tmp_path / "again"
    with tfrkit.open(path) as ds, Writer(again) as writer:
        for batch in ds.batch(2):
            writer.write_columns(batch)
    assert again.read_bytes() == path.read_bytes()


# --- SequenceExamples ---------------------------------------------------------------------------------


def test_sequence_row_becomes_a_sequence_example(path: Path) -> None:
    (record,) = write(path, sequence({"id": 1}, f=[[1, 2], [3]], e=[], g=[b"a", None]))
    assert parse_sequence_example(record) == (
        {b"id": ("int64", [1])},
        {b"e": [], b"f": [("int64", [1, 2]), ("int64", [3])], b"g": [("bytes", [b"a"]), None]},
    )


@pytest.mark.parametrize(
    "rows",
    [
        [
            sequence({"a": 1}, f=[1, 2], g=[[1, 2], [3]], h=[b"a", b"b"], x=[0.5]),
            sequence({"a": 2}, f=[], g=[], h=[b"c"], x=[]),
        ],
        [sequence({"a": 1}, f=[1]), sequence({"a": 1}), sequence({"a": 1}, f=[])],
        [sequence(), sequence({"a": 1}, f=[1])],
        [sequence({"a": 1}, f=[1]), sequence({}, f=[2])],
        [sequence({"a": 1}, a=[1, 2])],
        [sequence({}, f=[[1, 2], None, [3]])],
        [sequence({}, f=[[b"a", b"b"], [b"c"]])],
    ],
)
def test_sequences_come_back(path: Path, rows: list[Any]) -> None:
    write(path, *rows)
    assert read(path) == rows
    with tfrkit.open(path) as ds:
        assert [plain(ds[number]) for number in range(len(rows))] == rows


def test_arrays_as_frames_come_back(path: Path) -> None:
    frames = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    write(path, sequence({}, a=frames, b=list(frames), c=np.arange(6).reshape(3, 2), d=np.arange(3)))
    with tfrkit.open(path) as ds:
        lists = ds[0]["feature_lists"]
    assert lists["a"].dtype == np.uint8
    np.testing.assert_array_equal(lists["a"], frames)
    np.testing.assert_array_equal(lists["b"], frames)
    assert lists["c"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert lists["d"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("frames", [None, 3, "abc", b"abc", {"a": 1}, iter([1])])
@pytest.mark.parametrize("schema", [None, Schema({}, feature_lists={"f": "int64"})])
def test_list_of_frames_of_another_type_raises(path: Path, frames: Any, schema: Schema | None) -> None:
    with (
        Writer(path, schema=schema) as writer,
        pytest.raises(TypeError, match="feature list 'f' expected a sequence of frames, got "),
    ):
        writer.write(sequence({}, f=frames))


def test_example_may_have_features_called_like_the_parts_of_a_sequence(path: Path) -> None:
    rows = [{"context": 1, "feature_lists": b"x"}]
    write(path, *rows)
    assert read(path) == rows


# --- with a schema ------------------------------------------------------------------------------------


def test_schema_asks_for_plain_lists(path: Path) -> None:
    schema = Schema({"x": Spec("int64", (3,), dtype="uint8")})
    (record,) = write(path, {"x": np.array([1, 2, 3], np.uint8)}, schema=schema)
    assert parse_example(record) == {b"x": ("int64", [1, 2, 3])}
    with tfrkit.open(path, schema=schema) as ds:
        assert ds[0]["x"].dtype == np.uint8


@pytest.mark.parametrize("kind", ["int64", "float", "bytes"])
def test_schema_types_an_empty_list_in_the_first_row(path: Path, kind: Any) -> None:
    (record,) = write(path, {"x": []}, schema=Schema({"x": (kind, (None,))}))
    assert parse_example(record) == {b"x": (kind, [])}


def test_schema_types_an_empty_frame_in_the_first_row(path: Path) -> None:
    (record,) = write(path, sequence({}, f=[[], [b"a"]]), schema=Schema({}, feature_lists={"f": ("bytes", (None,))}))
    assert parse_sequence_example(record)[1] == {b"f": [("bytes", []), ("bytes", [b"a"])]}


def test_schema_refuses_a_wrong_name_with_the_nearest(path: Path) -> None:
    with pytest.raises(MissingFeatureError, match="no feature 'lable', did you mean 'label'"):
        write(path, {"lable": 1}, schema=Schema({"label": "int64"}))
    assert not path.exists()


def test_schema_holds_for_frames(path: Path) -> None:
    schema = Schema({"a": "int64"}, feature_lists={"f": ("int64", (2,))})
    write(path, sequence({"a": 1}, f=[[1, 2], [3, 4]]), schema=schema)
    for bad, message in (
        (sequence({"a": 1}, f=[[1, 2], [3]]), r"feature 'f' expected shape \(2,\), got \(1,\)"),
        (sequence({"a": 1}, ff=[[1, 2]]), "no feature 'ff', did you mean 'f'"),
        (sequence({"a": 1}), "feature 'f' expected in every row, got none"),
        (sequence({}, f=[]), "feature 'a' expected in every row, got none"),
    ):
        with pytest.raises((ShapeError, MissingFeatureError), match=message):
            write(path, bad, schema=schema)


def test_schema_of_another_kind_of_record_raises(path: Path) -> None:
    with pytest.raises(
        (FeatureKindError, MissingFeatureError, TypeError), match="sequence|SequenceExample|feature 'f'"
    ):
        write(path, {"a": 1}, schema=Schema({"a": "int64"}, feature_lists={"f": "int64"}))
    with pytest.raises((FeatureKindError, MissingFeatureError, TypeError), match="example|SequenceExample"):
        write(path, sequence({"a": 1}), schema=Schema({"a": "int64"}))


def test_schema_keeps_the_presence_of_columns(path: Path) -> None:
    schema = Schema({"n": "int64", "r": Spec("int64", (None,), optional=True), "b": Spec("bytes", optional=True)})
    states = np.array([2, 0, 1], np.uint8)
    column = BytesColumn.from_values([b"a", b"", b""])
    column.presence = states
    with Writer(path, schema=schema) as writer:
        writer.write_columns({"n": [0, 1, 2], "r": Ragged(np.arange(2), np.array([0, 2, 2, 2]), states), "b": column})
    records = [parse_example(record) for record in read_frames(path.read_bytes())]
    assert [record.get(b"r", "absent") for record in records] == [("int64", [0, 1]), "absent", None]
    assert [record.get(b"b", "absent") for record in records] == [("bytes", [b"a"]), "absent", None]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_digest_is_fed_every_byte_of_the_file(tmp_path: Path, compression: Any) -> None:
    digest = hashlib.sha256()
    with Writer(tmp_path / "x.tfrecord", compression=compression, digest=digest) as writer:
        for number in range(1000):
            writer.write({"x": bytes([number % 256]) * 1000})
    assert digest.hexdigest() == hashlib.sha256((tmp_path / "x.tfrecord").read_bytes()).hexdigest()


@pytest.mark.parametrize("num_rows", [0, 1, 1000])
def test_index_of_the_writer_is_that_of_a_scan(tmp_path: Path, num_rows: int) -> None:
    index = tmp_path / "_index/x.tfrecord.tfidx"
    with Writer(tmp_path / "x.tfrecord", index=True) as writer:
        for number in range(num_rows):
            writer.write({"x": bytes(number)})
        writer.write_columns({"y": np.arange(num_rows)})
    made = index.read_bytes()
    index.unlink()
    save_index(str(tmp_path / "x.tfrecord"))
    assert made == index.read_bytes()


def test_wide_rows_are_written_as_any_row_is(path: Path) -> None:
    rows: list[Any] = [
        {"a": 1, "b": 0.5, "c": b"x"},
        {"a": [], "b": None, "c": [b"y", b"z"], "d": []},
        {"a": np.arange(3), "b": np.float32(2), "c": "text", "d": [1, 2]},
        {"context": 1, "feature_lists": 2, "c": b""},
    ]
    written = write(path, *rows)
    with Writer(path) as writer:
        for row in rows:
            writer._coercer.untyped = []
            writer._write_any(row)
    assert read_frames(path.read_bytes()) == written


def test_wide_row_that_fails_leaves_no_trace_in_the_next(path: Path) -> None:
    with Writer(path) as writer:
        with pytest.raises(TypeError, match="got set - at row 0"):
            writer.write({"a": [], "b": 1, "c": {1, 2}})
        writer.write({"a": [1], "b": 1, "c": 2})
        assert len(writer._untyped) == 0
        with pytest.raises(FeatureKindError, match="row 1"):
            writer.write({"a": [], "b": b"", "c": 2})
        writer.write({"a": [], "b": 1, "c": 2})
    assert [parse_example(record)[b"a"] for record in read_frames(path.read_bytes())] == [("int64", [1]), ("int64", [])]
    with pytest.raises(ValueError, match="closed writer"):
        writer.write({"a": [1], "b": 1, "c": 2})
