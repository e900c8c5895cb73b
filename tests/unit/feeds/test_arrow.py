"""Streams and their lifetimes, with a consumer of our own; that real Arrow libraries agree is an interop test."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import signal
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tfrkit import _native
from tfrkit.codec.columns import Ragged
from tfrkit.errors import CodecError, CorruptRecordError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.feeds.arrow import ArrowStream, to_arrow, with_own_errors
from tfrkit.testing.arrow_consumer import (
    CArray,
    ReleaseArray,
    open_schema,
    open_stream,
    read_field,
    read_metadata,
    read_next,
    read_rows,
    read_values,
)

INTS = np.arange(6)
SCHEMA = Schema({"x": "int64"})


def stream_of(*columns: Any) -> ArrowStream:
    return to_arrow(lambda: ({"x": column} for column in columns), SCHEMA)


# -- schemas -----------------------------------------------------------------------------------------------------------


def test_schema_capsule_describes_every_column() -> None:
    schema = Schema(
        {
            "label": Spec("int64", logical="class_label", classes=("cat", "dög")),
            "boxes": Spec("float", (None, 4)),
            "text": Spec("bytes", logical="text", optional=True),
        },
        feature_lists={"frames": ("bytes", ())},
    )
    capsule = to_arrow(lambda: iter(()), schema).__arrow_c_schema__()
    c_schema = open_schema(capsule)
    assert read_field(c_schema) == (
        "",
        "+s",
        False,
        (
            "context",
            "+s",
            False,
            ("label", "l", False),
            ("boxes", "+L", True, ("item", "+w:4", True, ("item", "f", True))),
            ("text", "U", True),
        ),
        ("feature_lists", "+s", False, ("frames", "+L", True, ("item", "Z", True))),
    )
    label = c_schema.children[0].contents.children[0].contents
    assert json.loads(read_metadata(label)["tfrkit.feature"])["classes"] == ["cat", "dög"]
    assert read_metadata(c_schema) == {}


def test_schema_of_raw_records_raises() -> None:
    with pytest.raises(CodecError, match="expected records that are Examples, got mixed records"):
        to_arrow(lambda: iter(()), Schema({"x": "int64"}, kind="mixed"))


def test_repr_lists_the_columns() -> None:
    assert repr(stream_of()) == "ArrowStream(\n  x: int64 not null\n)"
    assert repr(to_arrow(lambda: iter(()), Schema())) == "ArrowStream()"


# -- passes ------------------------------------------------------------------------------------------------------------


def test_stream_sequence_examples_are_two_structs() -> None:
    schema = Schema({"x": "int64"}, feature_lists={"x": ("float", ())})
    lists = {"x": Ragged(np.ones(3, np.float32), np.array([0, 1, 3]))}
    assert read_rows(to_arrow(lambda: iter([{"context": {"x": INTS[:2]}, "feature_lists": lists}]), schema)) == [
        {"context": {"x": 0}, "feature_lists": {"x": [1.0]}},
        {"context": {"x": 1}, "feature_lists": {"x": [1.0, 1.0]}},
    ]


def test_empty_stream_has_no_rows() -> None:
    assert read_rows(stream_of()) == []
    assert read_rows(to_arrow(lambda: iter(()), Schema())) == []
    assert read_rows(stream_of(INTS[:0], INTS[:1], INTS[:0])) == [{"x": 0}]


def test_stream_each_consumer_starts_a_new_pass() -> None:
    passes = []

    def make_batches() -> Iterator[dict[str, Any]]:
        passes.append(len(passes))
        yield {"x": INTS}

    stream = to_arrow(make_batches, SCHEMA)
    capsule = stream.__arrow_c_stream__()
    assert passes == []  # nothing is read before the first request
    assert len(read_rows(stream)) == len(read_rows(stream)) == 6
    assert passes == [0, 1]
    assert next(stream.batches())["x"] is INTS
    del capsule


def test_stream_end_is_reported_again() -> None:
    capsule = stream_of(INTS).__arrow_c_stream__()
    stream = open_stream(capsule)
    array = read_next(stream)
    assert array is not None
    array.release(array)
    assert read_next(stream) is None
    assert read_next(stream) is None


def test_stream_is_read_and_released_on_other_threads() -> None:
    stream = stream_of(*[INTS] * 50)
    rows: list[int] = []
    threads = [threading.Thread(target=lambda: rows.append(len(read_rows(stream)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows == [300] * 4


# -- failures ----------------------------------------------------------------------------------------------------------


def fail_after_one() -> Iterator[dict[str, Any]]:
    yield {"x": INTS}
    raise CorruptRecordError("payload checksum mismatch", shard="a.tfrecord", record=3, offset=120, hint="look: tfr")


def test_failure_arrives_with_its_message_and_stays() -> None:
    capsule = to_arrow(fail_after_one, SCHEMA).__arrow_c_stream__()
    stream = open_stream(capsule)
    array = read_next(stream)
    assert array is not None
    array.release(array)
    message = "CorruptRecordError: payload checksum mismatch - at a.tfrecord, record 3, byte 120\n  look: tfr"
    for _ in range(2):  # the end of the generator must not look like the end of the data
        with pytest.raises(OSError, match="payload checksum") as caught:
            read_next(stream)
        assert caught.value.strerror == message


def test_failure_ends_a_stream() -> None:
    calls = []

    class Stumbling:
        def __iter__(self) -> Iterator[Any]:
            return self

        def __next__(self) -> Any:
            calls.append(len(calls))
            raise ValueError("once")

    field = (b"+s", b"", b"", False, ())
    capsule = _native.make_arrow_stream(field, iter(Stumbling()))
    for _ in range(2):
        with pytest.raises(OSError, match="ValueError: once"):
            read_next(open_stream(capsule))
    assert calls == [0]


def test_failure_within_our_own_consumers_is_raised_as_it_was() -> None:
    stream = to_arrow(fail_after_one, SCHEMA)
    with pytest.raises(CorruptRecordError, match="payload checksum mismatch") as caught, with_own_errors(stream) as own:
        read_rows(own)
    assert (caught.value.shard, caught.value.record, caught.value.offset) == ("a.tfrecord", 3, 120)
    with pytest.raises(KeyError, match="theirs"), with_own_errors(stream_of()) as own:
        raise KeyError("theirs")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("caf\udce9"), r"ValueError: caf\udce9"),
        (MemoryError(), "MemoryError: "),
        (ValueError("\0after"), "ValueError: "),
    ],
)
def test_failure_text_is_always_a_c_string(error: Exception, message: str) -> None:
    def make_batches() -> Iterator[dict[str, Any]]:
        raise error
        yield {}

    with pytest.raises(OSError, match="Error") as caught:
        read_rows(to_arrow(make_batches, SCHEMA))
    assert caught.value.strerror == message


def test_failure_that_is_no_exception_is_raised_as_it_was_too() -> None:
    class Terminated(BaseException):
        pass

    def make_batches() -> Iterator[dict[str, Any]]:
        raise Terminated
        yield {}

    with pytest.raises(Terminated), with_own_errors(to_arrow(make_batches, SCHEMA)) as own:
        read_rows(own)


def test_stream_that_is_not_read_to_its_end_is_no_failure() -> None:
    def make_batches() -> Iterator[dict[str, Any]]:
        yield {"x": INTS}
        raise AssertionError("not read so far")

    with pytest.raises(KeyError, match="theirs"), with_own_errors(to_arrow(make_batches, SCHEMA)) as own:
        capsule = own.__arrow_c_stream__()
        read_next(open_stream(capsule))
        del capsule
        raise KeyError("theirs")


def test_failure_on_a_none_batch_is_reported() -> None:
    with pytest.raises(OSError, match="AttributeError: 'NoneType' object has no attribute 'get'"):
        read_rows(to_arrow(lambda: iter([None]), SCHEMA))  # type: ignore[list-item]


def test_failure_by_ctrl_c_stays_one() -> None:
    def make_batches() -> Iterator[dict[str, Any]]:
        raise KeyboardInterrupt
        yield {}

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt, match="^$"):
            # The consumer only knows that something failed.
            with contextlib.suppress(OSError):
                read_rows(to_arrow(make_batches, SCHEMA))
            for _ in range(100):
                gc.collect()
    finally:
        signal.signal(signal.SIGINT, before)


# -- lifetimes ---------------------------------------------------------------------------------------------------------


def test_unused_capsules_are_released() -> None:
    started = 0
    ended = 0

    def make_batches() -> Iterator[dict[str, Any]]:
        nonlocal started, ended
        started += 1
        try:
            while True:
                yield {"x": INTS}
        finally:
            ended += 1

    stream = to_arrow(make_batches, SCHEMA)
    for _ in range(1000):
        capsule = stream.__arrow_c_stream__()
        array = read_next(open_stream(capsule))
        assert array is not None
        array.release(array)
        stream.__arrow_c_schema__()
    del capsule
    assert (started, ended) == (1000, 1000)


def take_one() -> tuple[CArray, weakref.ref[Any]]:
    """An array whose stream and batch are gone, and a weak reference to its buffer."""
    columns = [np.arange(1000)]
    alive = weakref.ref(columns[0])
    capsule = to_arrow(lambda: ({"x": columns.pop()} for _ in range(1)), SCHEMA).__arrow_c_stream__()
    array = read_next(open_stream(capsule))
    assert array is not None
    assert read_next(open_stream(capsule)) is None
    return array, alive


def test_array_keeps_its_buffers_until_it_is_released() -> None:
    array, alive = take_one()
    gc.collect()
    assert alive() is not None
    array.release(array)
    assert not array.release
    assert alive() is None


def test_array_child_taken_out_outlives_its_parent() -> None:
    array, alive = take_one()
    child = CArray()
    ctypes.memmove(ctypes.addressof(child), array.children[0], ctypes.sizeof(CArray))
    array.children[0].contents.release = ReleaseArray()
    array.release(array)
    gc.collect()
    assert alive() is not None
    assert read_values(("x", "l", False), child)[-1] == 999
    child.release(child)
    assert alive() is None


def test_array_is_released_on_another_thread() -> None:
    array, alive = take_one()
    thread = threading.Thread(target=array.release, args=(array,))
    thread.start()
    thread.join()
    assert alive() is None


# atexit handlers of the C library run after Python is finalized, like destructors of static C++ objects.
AT_EXIT = """
    import ctypes, numpy
    from tfrkit import Schema
    from tfrkit.feeds.arrow import to_arrow
    from tfrkit.testing.arrow_consumer import CArray, open_stream

    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    capsule = to_arrow(lambda: iter([{"x": numpy.arange(6)}]), Schema({"x": "int64"})).__arrow_c_stream__()
    array = CArray.from_address(libc.malloc(ctypes.sizeof(CArray)))
    stream = open_stream(capsule)
    assert stream.get_next(stream, array) == 0
    release = ctypes.cast(array.release, ctypes.c_void_p)
    assert libc.__cxa_atexit(release, ctypes.c_void_p(ctypes.addressof(array)), None) == 0
    print("done")
"""


# Threads that are reading a stream when the program ends.
IN_THE_MIDDLE = """
    import contextlib, itertools, threading, numpy
    from tfrkit import Schema
    from tfrkit.feeds.arrow import to_arrow
    from tfrkit.testing.arrow_consumer import read_rows

    have_begun = threading.Semaphore(0)

    def make_batches():
        yield {"x": numpy.arange(6)}
        have_begun.release()
        yield from ({"x": numpy.arange(6)} for _ in itertools.count())

    def consume():
        with contextlib.suppress(OSError):
            read_rows(to_arrow(make_batches, Schema({"x": "int64"})))

    for _ in range(3):
        threading.Thread(target=consume, daemon=True).start()
    for _ in range(3):
        have_begun.acquire()
    print("done")
"""


@pytest.mark.parametrize("script", [AT_EXIT, IN_THE_MIDDLE], ids=["released-after-exit", "read-at-exit"])
def test_exit_with_arrays_and_streams_in_use_is_clean(script: str) -> None:
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
