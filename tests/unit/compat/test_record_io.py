"""Writers, options and record iterators."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tfrkit
from tfrkit.compat import tensorflow as tf


def write(path: Path, records: list[bytes], options: Any = None) -> None:
    with tf.io.TFRecordWriter(str(path), options) as writer:
        for record in records:
            writer.write(record)


@pytest.mark.parametrize(
    ("options", "compression"),
    [
        (None, "none"),
        ("", "none"),
        ("GZIP", "gzip"),
        ("ZLIB", "zlib"),
        (tf.io.TFRecordOptions(), "none"),
        (tf.io.TFRecordOptions(compression_type="GZIP", compression_level=9), "gzip"),
        (tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.NONE), "none"),
        (tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.ZLIB), "zlib"),
        (tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP), "gzip"),
        (tf.compat.v1.python_io.TFRecordCompressionType.GZIP, "gzip"),
    ],
)
def test_written_records_are_read_in_any_compression(tmp_path: Path, options: Any, compression: str) -> None:
    path = tmp_path / "x.tfrecord"
    records = [b"", b"abc", bytes(1000)]
    write(path, records, options)
    assert list(tf.python_io.tf_record_iterator(str(path), options)) == records
    assert [bytes(record) for record in tfrkit.open(path).records()] == records
    starts = {"gzip": b"\x1f\x8b", "zlib": b"\x78", "none": b"\0"}
    assert path.read_bytes().startswith(starts[compression])


def test_compression_is_detected_despite_a_wrong_option(tmp_path: Path) -> None:
    write(tmp_path / "x", [b"a"], "GZIP")
    assert list(tf.io.tf_record_iterator(tmp_path / "x")) == [b"a"]
    assert list(tf.io.tf_record_iterator(tmp_path / "x", tf.io.TFRecordOptions("ZLIB"))) == [b"a"]


@pytest.mark.parametrize("given", ["gzip", "xz", 7, ["GZIP"]])
def test_unknown_compression_is_refused(tmp_path: Path, given: Any) -> None:
    with pytest.raises(ValueError, match=r'compression_type expected "", "GZIP" or "ZLIB", got'):
        tf.io.TFRecordWriter(str(tmp_path / "x"), given)


def test_record_that_is_no_bytes_is_refused(tmp_path: Path) -> None:
    with tf.io.TFRecordWriter(tmp_path / "x") as writer:
        writer.write(bytearray(b"a"))
        writer.write("é")
        with pytest.raises(TypeError, match=r"record expected bytes, got Example\n  use example.SerializeToString"):
            writer.write(tf.train.Example())
    assert list(tf.io.tf_record_iterator(tmp_path / "x")) == [b"a", "é".encode()]


def test_closed_writer_refuses_records(tmp_path: Path) -> None:
    writer = tf.io.TFRecordWriter(tmp_path / "x")
    writer.close()
    writer.close()
    with pytest.raises(tf.errors.FailedPreconditionError, match="write to a closed writer"):
        writer.write(b"a")
    with pytest.raises(tf.errors.FailedPreconditionError, match="flush of a closed writer"):
        writer.flush()


def test_file_appears_when_the_writer_is_closed_not_before(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"before")
    writer = tf.io.TFRecordWriter(path)
    writer.write(b"a")
    writer.flush()
    assert path.read_bytes() == b"before"
    writer.close()
    assert list(tf.io.tf_record_iterator(path)) == [b"a"]


def test_file_appears_when_the_writer_is_not_closed(tmp_path: Path) -> None:
    tf.io.TFRecordWriter(tmp_path / "x").write(b"a")
    gc.collect()
    assert list(tf.io.tf_record_iterator(tmp_path / "x")) == [b"a"]


def test_file_does_not_appear_when_a_with_block_fails(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="oops"), tf.io.TFRecordWriter(tmp_path / "x") as writer:
        writer.write(b"a")
        raise KeyError("oops")
    assert list(tmp_path.iterdir()) == []


def run_script(folder: Path, lines: str) -> subprocess.CompletedProcess[str]:
    code = (
        "from tfrkit.compat import tensorflow as tf\n"
        "writer = tf.python_io.TFRecordWriter('x.tfrecords')\nwriter.write(b'abc')\n" + lines
    )
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)\n", "held = [writer]; held.append(held)\n"])
def test_script_that_never_closes_still_gets_its_file(tmp_path: Path, end: str) -> None:
    done = run_script(tmp_path, end)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tf.io.tf_record_iterator(tmp_path / "x.tfrecords")) == [b"abc"]
    assert [path.name for path in tmp_path.iterdir()] == ["x.tfrecords"]


def test_script_that_fails_leaves_no_half_file_and_says_so(tmp_path: Path) -> None:
    done = run_script(tmp_path, "1 / 0\n")
    assert done.returncode == 1
    assert "not written, the script failed before the writer was closed - at x.tfrecords" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_child_process_does_not_finish_its_parents_file(tmp_path: Path) -> None:
    lines = "import os, sys\nif os.fork() == 0:\n    del writer\n    os._exit(0)\nos.wait()\nwriter.write(b'def')\n"
    assert run_script(tmp_path, lines).stderr == ""
    assert list(tf.io.tf_record_iterator(tmp_path / "x.tfrecords")) == [b"abc", b"def"]


def test_missing_file_and_folder_are_not_found(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match="no such file or directory - at .*nope"):
        next(tf.io.tf_record_iterator(str(tmp_path / "nope")))
    with pytest.raises(tf.errors.NotFoundError, match="no such file or directory - at .*x"):
        tf.io.TFRecordWriter(str(tmp_path / "nope" / "x"))


def test_damage_is_data_loss_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write(path, [b"abc", b"def"])
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    records = tf.io.tf_record_iterator(path)
    with pytest.raises(tf.errors.DataLossError, match="payload checksum mismatch.*record 1, byte 19"):
        list(records)
    path.write_bytes(data[:-3])
    with pytest.raises(tf.errors.DataLossError, match="shard ends inside a frame"):
        list(tf.io.tf_record_iterator(path))
    path.write_text("this is text, not records")
    with pytest.raises(tf.errors.DataLossError, match="expected a TFRecord, got"):
        list(tf.io.tf_record_iterator(path))


def test_errors_are_made_as_tensorflows() -> None:
    error = tf.errors.OutOfRangeError(None, None, "end")
    assert error.message == str(error) == "end"
    assert isinstance(error, tf.errors.OpError)
    assert isinstance(error, tfrkit.TfrkitError)
