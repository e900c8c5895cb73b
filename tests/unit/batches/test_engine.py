"""The native engine against its slow twin, Python's own threads: the same batches, errors and findings."""

from __future__ import annotations

import ctypes
import gzip
import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit.batches.engine import EnginePass, choose_workers
from tfrkit.batches.fetch import Fetcher
from tfrkit.codec.columns import BytesColumn, Ragged
from tfrkit.container.codecs import FORMATS
from tfrkit.container.deflate import Deflater
from tfrkit.errors import StorageError, TfrkitError
from tfrkit.testing.corruption import flip, frame_offsets, make_frame

NUM_ROWS = 211
COUNTS = [90, 0, 1, 100, 20]
THREADS = [1, 2, 5]

pytestmark = pytest.mark.skipif(not _native.MAPS_ARE_GUARDED, reason="no engine on this system")


def make_row(number: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": number,
        "score": np.float32(number) / 7,
        "box": np.arange(4, dtype=np.float32) + number,
        "tokens": np.arange(number % 5),
        "name": f"n{number}" * (number % 3),
        "words": [f"w{k}".encode() for k in range(number % 4)],
    }
    if number % 6:
        row["sometimes"] = -number
    return row


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    numbers = iter(range(NUM_ROWS))
    for shard, count in enumerate(COUNTS):
        with tfr.Writer(tmp_path / f"s-{shard:05}-of-{len(COUNTS):05}") as writer:
            for _ in range(count):
                writer.write(make_row(next(numbers)))
    return tmp_path


def damage(folder: Path, shard: int, record: int, at: int = 14) -> None:
    """Change a byte of a frame: of its payload, or of its header."""
    path = folder / f"s-{shard:05}-of-{len(COUNTS):05}"
    data = path.read_bytes()
    path.write_bytes(flip(data, frame_offsets(data)[record] + at))


def to_plain(column: Any) -> Any:
    """A column with everything that tells it from another one."""
    if isinstance(column, Ragged):
        presence = None if column.presence is None else column.presence.tolist()
        return "ragged", to_plain(column.values), column.row_splits.tolist(), presence
    if isinstance(column, BytesColumn):
        presence = None if column.presence is None else column.presence.tolist()
        return "bytes", column.data.tobytes(), column.offsets.tolist(), presence
    if isinstance(column, dict):
        return {name: to_plain(part) for name, part in column.items()}
    if column.dtype == object:
        return "objects", column.shape, column.tolist()
    return str(column.dtype), column.shape, column.tobytes()


def run(batches: Any) -> tuple[list[Any], tuple[type, str] | None]:
    """Every batch in plain form, in the order of its columns, and the error that ended the pass."""
    made: list[Any] = []
    try:
        for batch in batches:
            made.append([(name, to_plain(column)) for name, column in batch.items()])
    except (TfrkitError, MemoryError) as error:
        return made, (type(error), str(error))
    return made, None


def run_both(make: Callable[[], Any]) -> tuple[list[Any], tuple[type, str] | None]:
    fast, slow = make(), make()
    slow.uses_engine = False
    wanted = run(slow)
    assert run(fast) == wanted
    return wanted


ORDERS: dict[str, Callable[[tfr.Dataset], tfr.Dataset]] = {
    "file": lambda ds: ds,
    "shuffled": lambda ds: ds.shuffle(seed=3),
    "shuffled_twice": lambda ds: ds.shuffle(seed=3).shuffle(seed=4),
    "take": lambda ds: ds.skip(7).take(150),
    "split": lambda ds: ds.split({"a": 0.6, "b": 0.4}, seed=1)["a"].shuffle(seed=2),
    "window": lambda ds: ds.shuffle(seed=3, window=60, block=7),
    "repeated": lambda ds: ds.shuffle(seed=3).repeat(3),
    "folds": lambda ds: ds.folds(3, seed=1)[0][0],
    "filtered": lambda ds: ds.filter(lambda row: row["id"] % 3 != 0),
    "nothing": lambda ds: ds.take(0),
}


@pytest.mark.parametrize("threads", [*THREADS, None])
@pytest.mark.parametrize("name", ORDERS)
def test_engine_gives_the_batches_of_its_twin(folder: Path, name: str, threads: int | None) -> None:
    ds = ORDERS[name](tfr.open(folder))
    for size, drop_last in ((1, False), (16, False), (16, True), (1000, False)):
        made, error = run_both(lambda: ds.batch(size, drop_last=drop_last, threads=threads))  # noqa: B023
        assert error is None
        assert bool(made) == (name != "nothing" and not (drop_last and len(ds) < size))


@pytest.mark.parametrize("threads", THREADS)
def test_engine_makes_the_next_epoch_as_its_twin_does(folder: Path, threads: int) -> None:
    fast, slow = (tfr.open(folder).shuffle(seed=5).batch(32, threads=threads) for _ in range(2))
    slow.uses_engine = False
    epochs = [run(fast) for _ in range(3)]
    assert epochs == [run(slow) for _ in range(3)]
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize("threads", THREADS)
def test_buckets_and_token_budgets_are_fed_to_the_engine(folder: Path, threads: int) -> None:
    ds = tfr.open(folder).shuffle(seed=1)
    assert run_both(lambda: ds.batch(8, bucket="tokens", threads=threads))[1] is None
    made, _ = run_both(lambda: ds.batch(max_tokens=24, bucket="tokens", threads=threads))
    assert len({len(batch) for batch in made}) == 1


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("features", [["id"], ["words", "sometimes"], ["tokens", "box"]])
def test_chosen_features_come_alike(folder: Path, features: list[str], threads: int) -> None:
    ds = tfr.open(folder).select(features)
    assert run_both(lambda: ds.batch(10, threads=threads))[1] is None


@pytest.mark.parametrize("threads", THREADS)
def test_sequences_come_alike(tmp_path: Path, threads: int) -> None:
    with tfr.Writer(tmp_path / "s.tfrecord") as writer:
        for number in range(60):
            frames = [np.arange(k % 3) for k in range(number % 4)]
            writer.write({"context": {"id": number}, "feature_lists": {"frames": frames}})
    ds = tfr.open(tmp_path / "s.tfrecord")
    assert ds.batch(7).explain_no_engine(is_stream=True) is None
    for chosen in (ds, ds.shuffle(seed=1)):
        assert run_both(lambda: chosen.batch(7, threads=threads))[1] is None  # noqa: B023


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("even", ["pad", "drop"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_ranks_and_workers_share_alike(folder: Path, world_size: int, even: Any, threads: int) -> None:
    ds = tfr.open(folder)
    for chosen in (ds, ds.shuffle(seed=2)):
        for rank in range(world_size):
            fast, slow = (
                chosen.batch(12, threads=threads).share(rank=rank, world_size=world_size, even=even) for _ in range(2)
            )
            slow.uses_engine = False
            assert run(fast) == run(slow)
            for worker in range(2):
                parts = [
                    [(batch["id"].tolist(), stop) for batch, stop in loop.run(epoch=1, worker=worker, num_workers=2)]
                    for loop in (fast, slow)
                ]
                assert parts[0] == parts[1]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", ["file", "shuffled", "window"])
def test_pass_goes_on_from_every_state(folder: Path, name: str, threads: int) -> None:
    batches = ORDERS[name](tfr.open(folder)).batch(32, threads=threads)
    whole, states = [], []
    iterator = iter(batches)
    for batch in iterator:
        whole.append(batch["id"].tolist())
        states.append(iterator.state_dict())
    for number, state in enumerate(states):
        again = iter(batches)
        again.load_state_dict(state)
        assert [batch["id"].tolist() for batch in again] == whole[number + 1 :]


# --- damage


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("at", [14, 9, 2], ids=["payload", "length-checksum", "length"])
def test_damage_in_file_order_raises_the_same_error_after_the_same_batches(folder: Path, at: int, threads: int) -> None:
    damage(folder, 3, 41, at)
    made, error = run_both(lambda: tfr.open(folder).batch(16, threads=threads))
    assert error is not None and "record 41" in error[1]
    assert len(made) == (90 + 1 + 41) // 16


@pytest.mark.parametrize("threads", THREADS)
def test_damage_in_a_shuffled_pass_raises_the_same_error(folder: Path, threads: int) -> None:
    damage(folder, 3, 41)
    fast, slow = (tfr.open(folder).shuffle(seed=1).batch(16, threads=threads) for _ in range(2))
    slow.uses_engine = False
    (made, error), (wanted, wanted_error) = run(fast), run(slow)
    assert error is not None and error == wanted_error
    assert made == wanted
    assert len(made) == len(run(tfr.open(folder).shuffle(seed=1).batch(16, threads=1))[0])


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", ["file", "shuffled", "window", "take"])
def test_skipped_damage_is_listed_alike(folder: Path, name: str, threads: int) -> None:
    damage(folder, 0, 3)
    damage(folder, 3, 41)
    damage(folder, 3, 42)
    results = []
    for uses_engine in (True, False):
        ds = tfr.open(folder, on_error="skip")
        batches = ORDERS[name](ds).batch(16, threads=threads)
        batches.uses_engine = uses_engine
        with pytest.warns(tfr.errors.SkippedRecordsWarning, match="3 damaged places"):
            made = run(batches)
        results.append((made, sorted((found.record, found.offset, found.cause) for found in ds.errors)))
    assert results[0] == results[1]
    assert len(results[0][1]) == 3


@pytest.mark.parametrize("threads", THREADS)
def test_record_that_is_no_example_is_skipped_alike(folder: Path, threads: int) -> None:
    (folder / "t-last.tfrecord").write_bytes(make_frame(b"\xff\xff"))
    for name in ("file", "shuffled"):
        results = []
        for uses_engine in (True, False):
            ds = tfr.open(folder, on_error="skip")
            batches = ORDERS[name](ds).batch(16, threads=threads)
            batches.uses_engine = uses_engine
            with pytest.warns(tfr.errors.SkippedRecordsWarning, match="1 damaged place"):
                made = run(batches)
            results.append((made, [found.cause for found in ds.errors]))
        assert results[0] == results[1]
        assert "protobuf" in results[0][1][0]


@pytest.mark.parametrize("threads", THREADS)
def test_shard_that_is_cut_off_raises_at_its_end(folder: Path, threads: int) -> None:
    path = folder / f"s-00003-of-{len(COUNTS):05}"
    path.write_bytes(path.read_bytes()[:-3])
    made, error = run_both(lambda: tfr.open(folder).batch(16, threads=threads))
    assert error is not None and "shard ends inside a frame" in error[1]
    assert len(made) == (91 + 99) // 16


@pytest.mark.parametrize("threads", THREADS)
def test_shard_that_is_gone_raises_when_its_batch_comes(folder: Path, threads: int) -> None:
    ds = tfr.open(folder)
    batches = ds.batch(16, threads=threads)
    (folder / f"s-00003-of-{len(COUNTS):05}").unlink()
    made = []
    with pytest.raises(StorageError, match="no such file"):
        for batch in batches:
            made += batch["id"].tolist()
    assert made == list(range(80))


# --- threads


def count_threads(most: int = -1) -> int:
    """Threads of this process, once they are `most` or fewer: one that was joined is listed for a moment more."""
    for _ in range(100_000):
        if most < 0 or len(os.listdir("/proc/self/task")) <= most:
            break
        os.sched_yield()
    return len(os.listdir("/proc/self/task"))


def large(tmp_path: Path) -> tfr.Dataset:
    with tfr.Writer(tmp_path / "large.tfrecord") as writer:
        writer.write_columns({"id": np.arange(100_000), "blob": [b"x" * 50] * 100_000})
    return tfr.open(tmp_path / "large.tfrecord")


@pytest.mark.parametrize("name", ["file", "shuffled"])
def test_no_thread_is_left_after_a_pass_that_stops_early(tmp_path: Path, name: str) -> None:
    batches = ORDERS[name](large(tmp_path)).batch(100, threads=4)
    before = count_threads()
    iterator = iter(batches)
    next(iterator)
    assert count_threads() == before + 4
    iterator.close()
    assert count_threads(before) == before
    for batch in batches:
        assert len(batch["id"])
        break
    del batch
    assert count_threads(before) == before


def test_small_dataset_starts_no_thread_by_default(folder: Path) -> None:
    before = count_threads()
    iterator = iter(tfr.open(folder).shuffle(seed=1).batch(8))
    next(iterator)
    assert count_threads() == before
    iterator.close()


def test_workers_by_default_are_no_more_than_have_work() -> None:
    mib = 1 << 20
    assert [choose_workers(8, nbytes, is_given=False) for nbytes in (0, mib, 3 * mib, 99 * mib)] == [0, 0, 3, 8]
    assert [choose_workers(threads, 0, is_given=True) for threads in (1, 2, 8)] == [0, 2, 8]


def test_several_passes_over_one_dataset_run_side_by_side(folder: Path) -> None:
    import threading

    ds = tfr.open(folder)
    wanted = {seed: run(ds.shuffle(seed=seed).batch(9, threads=1)) for seed in range(8)}
    results: dict[int, Any] = {}

    def read(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(5):
            batches = ds.shuffle(seed=seed).batch(9, threads=3)
            stopped = iter(batches)
            for _ in range(int(rng.integers(0, 20))):
                next(stopped)
            stopped.close()
            batches.set_epoch(0)
            results[seed] = run(batches)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == wanted


def run_script(script: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", ["ds", "ds.shuffle(seed=1)"])
def test_forked_process_goes_on_with_an_engine_of_its_own(tmp_path: Path, name: str) -> None:
    large(tmp_path)
    script = f"""
import os, sys, tfrkit as tfr
ds = tfr.open(sys.argv[1] + "/large.tfrecord")
wanted = [batch["id"].tolist() for batch in {name}.batch(1000, threads=3)]
iterator = iter({name}.batch(1000, threads=3))
made = [next(iterator)["id"].tolist() for _ in range(5)]
child = os.fork()
made += [batch["id"].tolist() for batch in iterator]
assert made == wanted, "other batches"
del iterator
if child == 0:
    os._exit(0)
_, status = os.waitpid(child, 0)
print("child", status)
"""
    done = run_script(script, tmp_path)
    assert (done.returncode, done.stdout) == (0, "child 0\n"), done.stderr


@pytest.mark.parametrize("threads", [1, 2])
def test_interrupt_ends_a_pass_and_its_threads(tmp_path: Path, threads: int) -> None:
    large(tmp_path)
    script = f"""
import signal, sys, tfrkit as tfr
ds = tfr.open(sys.argv[1] + "/large.tfrecord")
signal.setitimer(signal.ITIMER_REAL, 0.3)
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    while True:
        for batch in ds.shuffle(seed=1).batch(50_000, threads={threads}):
            pass
except KeyboardInterrupt:
    print("interrupted")
"""
    done = run_script(script, tmp_path)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


def test_program_that_ends_in_the_middle_of_a_pass_ends_well(tmp_path: Path) -> None:
    large(tmp_path)
    script = """
import sys, tfrkit as tfr
iterator = iter(tfr.open(sys.argv[1] + "/large.tfrecord").shuffle(seed=1).batch(10, threads=4))
print(len(next(iterator)["id"]))
"""
    done = run_script(script, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "10\n", "")


# --- columns as tensors of a framework


class ManagedTensor(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("flags", ctypes.c_uint64),
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


ImportTensor = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(ManagedTensor), ctypes.POINTER(ctypes.c_void_p))


class Exchange(ctypes.Structure):
    """DLPackExchangeAPI, as far as it is used."""

    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("previous", ctypes.c_void_p),
        ("unused", ctypes.c_void_p * 2),
        ("import_tensor", ImportTensor),
    ]


class Framework:
    """A framework whose tensors are arrays."""

    def __init__(self) -> None:
        self.num_made = 0
        self._keep: list[Exchange] = []

    def exchange(self, *versions: int) -> Any:
        """Return the capsule for these versions, the newest first."""
        previous = None
        import_tensor = ImportTensor(self._import)
        for major in reversed(versions):
            self._keep.append(Exchange((major, 3), previous, (None, None), import_tensor))
            previous = ctypes.addressof(self._keep[-1])
        new_capsule = ctypes.pythonapi.PyCapsule_New
        new_capsule.argtypes, new_capsule.restype = (
            (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p),
            ctypes.py_object,
        )
        return new_capsule(previous, b"dlpack_exchange_api", None)

    def _import(self, given: Any, out: Any) -> int:
        tensor = given.contents
        assert (tensor.version[0], tensor.flags, list(tensor.device), tensor.ndim) == (1, 0, [1, 0], 1)
        assert (tensor.strides[0], tensor.lanes, tensor.byte_offset) == (1, 1, 0)
        dtype = {(0, 64): np.int64, (2, 32): np.float32}[tensor.code, tensor.bits]
        nbytes = tensor.shape[0] * tensor.bits // 8
        made = np.frombuffer(ctypes.string_at(tensor.data, nbytes), dtype)
        tensor.deleter(ctypes.addressof(tensor))
        self.num_made += 1
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
        out[0] = id(made)
        return 0


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", ["file", "shuffled", "window"])
def test_framework_gets_the_columns_of_one_number_per_row(folder: Path, name: str, threads: int) -> None:
    framework = Framework()
    batches = ORDERS[name](tfr.open(folder)).batch(16, threads=threads)
    given = list(batches.run(epoch=0, exchange=framework.exchange(1)))
    wanted = list(batches.run(epoch=0))
    assert [(to_plain(batch), stop) for batch, stop in given] == [(to_plain(batch), stop) for batch, stop in wanted]
    assert [batch["score"].dtype for batch, _ in given] == [np.float32] * len(wanted)
    assert framework.num_made == 2 * len(wanted)


@pytest.mark.parametrize(("versions", "is_used"), [((1,), True), ((2, 1), True), ((2,), False)])
def test_framework_with_another_version_gets_arrays(folder: Path, versions: tuple[int, ...], is_used: bool) -> None:
    framework = Framework()
    batches = tfr.open(folder).batch(16)
    given = [batch["id"].tolist() for batch, _ in batches.run(epoch=0, exchange=framework.exchange(*versions))]
    assert given == [batch["id"].tolist() for batch in batches]
    assert (framework.num_made > 0) == is_used


def test_steps_get_arrays(folder: Path) -> None:
    framework = Framework()
    batches = tfr.open(folder).map(double).batch(16)
    for batch, _ in batches.run(epoch=0, exchange=framework.exchange(1)):
        assert isinstance(batch["id"], np.ndarray)
    assert framework.num_made == 0


# --- steps in Python, fed by the engine


def double(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "twice": 2 * row["id"]}


def first_half(batch: dict[str, Any]) -> dict[str, Any]:
    return {"id": batch["id"][: len(batch["id"]) // 2 + 1]}


def stumble(row: dict[str, Any]) -> dict[str, Any]:
    if row["id"] == 130:
        raise ZeroDivisionError("row 130")
    return row


STEPS: dict[str, Callable[[tfr.Dataset, int, int | None], Any]] = {
    "pad": lambda ds, size, threads: ds.batch(size, pad=0, threads=threads),
    "pad_and_cut": lambda ds, size, threads: ds.batch(size, pad={"tokens": (9, 3)}, truncate=True, threads=threads),
    "too_short": lambda ds, size, threads: ds.skip(3).batch(size, pad={"tokens": (9, 3)}, threads=threads),
    "rows": lambda ds, size, threads: ds.map(double).batch(size, threads=threads),
    "batches": lambda ds, size, threads: ds.batch(size, threads=threads).map(first_half),
    "text": lambda ds, size, threads: ds.decode(name="text").batch(size, pad=0, threads=threads),
    "text_of_rows": lambda ds, size, threads: ds.map(double).decode(name="text").batch(size, threads=threads),
    "buckets": lambda ds, size, threads: ds.batch(size, bucket="tokens", pad=0, threads=threads),
    "tokens": lambda ds, size, threads: ds.batch(max_tokens=8 * size, bucket="tokens", pad=0, threads=threads),
}


@pytest.mark.parametrize("threads", [*THREADS, None])
@pytest.mark.parametrize("order", ["file", "shuffled", "window", "split", "nothing"])
@pytest.mark.parametrize("name", STEPS)
def test_steps_give_the_batches_of_the_twin(folder: Path, name: str, order: str, threads: int | None) -> None:
    ds = ORDERS[order](tfr.open(folder))
    for size in (3, 16):
        made, error = run_both(lambda: STEPS[name](ds, size, threads))  # noqa: B023
        assert (error is not None) == (name == "too_short" and order != "nothing")
        assert error is None or "padded to 3 values, got 4 - at" in error[1]
        assert bool(made) == (order != "nothing") or error is not None


@pytest.mark.parametrize("threads", THREADS)
def test_arrays_that_python_decodes_are_fed_by_the_engine(tmp_path: Path, threads: int) -> None:
    schema = tfr.Schema({"image": tfr.Spec("bytes", (None, 2), encoding="raw", dtype="uint8")})
    with tfr.Writer(tmp_path / "raw.tfrecord", schema=schema) as writer:
        for number in range(40):
            writer.write({"image": np.full((number, 2), number, np.uint8)})
    ds = tfr.open(tmp_path / "raw.tfrecord", schema=schema)
    for chosen in (ds, ds.shuffle(seed=1)):
        fast, slow = (chosen.batch(7, threads=threads) for _ in range(2))
        slow.uses_engine = False
        assert fast.fetcher.decoder.needs_python
        assert fast.explain_no_engine(is_stream=False) is None
        found, wanted = ([[image.tolist() for image in batch["image"]] for batch in loop] for loop in (fast, slow))
        assert found == wanted
        assert sum(map(len, found)) == 40


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("order", ["file", "shuffled"])
def test_error_of_a_step_comes_after_the_batches_before_it(folder: Path, order: str, threads: int) -> None:
    ds = ORDERS[order](tfr.open(folder))
    [wanted] = [k for k, batch in enumerate(ds.batch(4)) if 130 in batch["id"]]
    batches = iter(ds.map(stumble).batch(4, threads=threads))
    num_made = 0
    with pytest.raises(ZeroDivisionError, match="row 130"):
        for _ in batches:
            num_made += 1
    assert num_made == wanted
    assert list(batches) == []


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("order", ["file", "shuffled", "window"])
def test_damage_before_steps_raises_after_the_same_batches(folder: Path, order: str, threads: int) -> None:
    damage(folder, 3, 41)
    made, error = run_both(lambda: ORDERS[order](tfr.open(folder)).map(double).batch(4, pad=0, threads=threads))
    assert error is not None and "record 41" in error[1]
    intact = run(ORDERS[order](tfr.open(folder)).map(double).batch(4, pad=0, threads=1))
    assert made == intact[0]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("order", ["file", "shuffled", "window", "repeated"])
def test_rows_after_skipped_damage_keep_their_numbers(folder: Path, order: str, threads: int) -> None:
    with tfr.Writer(folder / "t-last.tfrecord") as writer:
        writer.write_record(b"\xff\xff not an Example")
        for number in range(211, 260):
            writer.write({**make_row(number), "name": b"\xff" if number % 4 == 0 else "fine"})
    results = []
    for uses_engine in (True, False):
        ds = tfr.open(folder, on_error="skip")
        batches = ORDERS[order](ds).decode(name="text").map(double).batch(64, threads=threads)
        batches.uses_engine = uses_engine
        with pytest.warns(tfr.errors.SkippedRecordsWarning, match="13 damaged places"):
            made = [batch["id"].tolist() for batch in batches]
        results.append((made, sorted((found.shard, found.record, found.offset, found.cause) for found in ds.errors)))
    assert results[0] == results[1]
    assert [record for _, record, _, _ in results[0][1]] == [0, *range(2, 50, 4)]


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("at", [14, 9], ids=["payload", "length-checksum"])
@pytest.mark.parametrize("order", ["file", "shuffled", "window"])
def test_findings_after_skipped_damage_name_the_record_in_the_file(
    tmp_path: Path, order: str, at: int, compression: str
) -> None:
    path = tmp_path / "shard"
    with tfr.Writer(path) as writer:
        for number in range(20):
            writer.write({"name": b"\xff" if number in (10, 15) else b"fine"})
        writer.write_record(b"\xff\xff not an Example")
        writer.write({"name": b"\xff"})
    frames = path.read_bytes()
    offsets = frame_offsets(frames)
    damaged = flip(flip(frames, offsets[3] + at), offsets[12] + at)
    path.write_bytes(gzip.compress(damaged) if compression == "gzip" else damaged)
    for uses_engine in (True, False):
        for threads in (1, 2):
            ds = tfr.open(path, on_error="skip", schema={"name": bytes})
            batches = ORDERS[order](ds).decode(name="text").batch(4, threads=threads)
            batches.uses_engine = uses_engine
            with pytest.warns(tfr.errors.SkippedRecordsWarning, match="6 damaged places"):
                assert sum(len(batch["name"]) for batch in batches) == 16
            assert {found.record: found.offset for found in ds.errors} == {
                record: offsets[record] for record in (3, 10, 12, 15, 20, 21)
            }


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("order", ["file", "shuffled"])
def test_pass_with_steps_goes_on_from_every_state(folder: Path, order: str, threads: int) -> None:
    batches = ORDERS[order](tfr.open(folder)).map(double).batch(32, pad=0, threads=threads)
    whole, states = [], []
    iterator = iter(batches)
    for batch in iterator:
        whole.append(batch["twice"].tolist())
        states.append(iterator.state_dict())
    for number, state in enumerate(states):
        again = iter(batches)
        again.load_state_dict(state)
        assert [batch["twice"].tolist() for batch in again] == whole[number + 1 :]


@pytest.mark.parametrize("order", ["file", "shuffled"])
def test_no_thread_is_left_after_steps_that_stop_early(tmp_path: Path, order: str) -> None:
    batches = ORDERS[order](large(tmp_path)).map(double).batch(100, threads=4)
    before = count_threads()
    iterator = iter(batches)
    next(iterator)
    assert before + 2 < count_threads() <= before + 6  # two that read, up to four for steps
    iterator.close()
    assert count_threads(before) == before
    for batch in batches:
        assert len(batch["id"])
        break
    del batch
    assert count_threads(before) == before


def test_interrupt_ends_steps_and_their_threads(tmp_path: Path) -> None:
    large(tmp_path)
    script = """
import signal, sys, threading, time, tfrkit as tfr
ds = tfr.open(sys.argv[1] + "/large.tfrecord")
signal.setitimer(signal.ITIMER_REAL, 0.5)
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    while True:
        for batch in ds.map(dict).batch(1000, threads=2):
            pass
except KeyboardInterrupt:
    # The signal may come while the threads of a pass are joined: they end by themselves then.
    until = time.monotonic() + 10
    while threading.active_count() > 1 and time.monotonic() < until:
        time.sleep(0.01)
    print("interrupted", threading.active_count())
"""
    done = run_script(script, tmp_path)
    assert (done.returncode, done.stdout) == (0, "interrupted 1\n"), done.stderr


# --- which passes it takes


def test_reason_is_named_where_python_makes_the_batches(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    ds = tfr.open(folder)
    assert ds.batch(8).explain_no_engine(is_stream=True) is None
    assert ds.batch(8, pad=0).map(dict).explain_no_engine(is_stream=True) is None
    skipping = tfr.open(folder, on_error="skip").batch(8)
    assert "rows after damage" in (skipping.explain_no_engine(is_stream=True) or "")
    assert skipping.explain_no_engine(is_stream=False) is None
    path = tmp_path_factory.mktemp("gzip") / "a.tfrecord.gz"
    with tfr.Writer(path, compression="gzip") as writer:
        writer.write({"id": 1})
    assert tfr.open(path).batch(8).explain_no_engine(is_stream=False) is None
    assert "in turn" in (tfr.open(path).batch(8).explain_no_engine(is_stream=True, threads=1) or "")
    assert tfr.open(path).batch(8).explain_no_engine(is_stream=True, threads=2) is None
    mixed = tfr.open([folder, path], schema={"id": int})
    assert "others are mapped" in (mixed.batch(8).explain_no_engine(is_stream=True, threads=2) or "")


def pack(folder: Path, compression: str) -> None:
    """Compress all shards but the first, which shows that plain and compressed shards mix."""
    for path in sorted(folder.iterdir())[1:]:
        deflater = Deflater(FORMATS[compression].name)
        path.write_bytes(deflater.write(path.read_bytes()) + deflater.finish())


@pytest.mark.parametrize("held_nbytes", [1 << 20, 6000, 0], ids=["held", "some-held", "not-held"])
@pytest.mark.parametrize("compression", ["gzip", "zstd"])
@pytest.mark.parametrize("order", ["shuffled", "window", "take"])
def test_picks_of_compressed_shards_come_alike(
    folder: Path, order: str, compression: str, held_nbytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMITS, "held_nbytes", held_nbytes)
    pack(folder, compression)
    for threads in THREADS:
        made, error = run_both(lambda: ORDERS[order](tfr.open(folder)).batch(16, threads=threads))  # noqa: B023
        assert (error, bool(made)) == (None, True)
        run_both(lambda: ORDERS[order](tfr.open(folder)).map(double).batch(16, pad=0, threads=threads))  # noqa: B023


@pytest.mark.parametrize("held_nbytes", [1 << 20, 0], ids=["held", "not-held"])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_damage_in_compressed_shards_is_met_alike(
    folder: Path, on_error: Any, held_nbytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMITS, "held_nbytes", held_nbytes)
    damage(folder, 3, 41)
    pack(folder, "gzip")
    _, error = run_both(lambda: tfr.open(folder, on_error=on_error).shuffle(seed=1).batch(16, threads=2))
    assert error is None if on_error == "skip" else error is not None and "record 41" in error[1]
    if on_error == "raise":
        return  # counting the records raises
    [last] = folder.glob("s-00004*")
    last.write_bytes(last.read_bytes()[:-30])  # the stream ends early
    made, error = run_both(lambda: tfr.open(folder, on_error="skip").shuffle(seed=1).batch(16, threads=2))
    assert (error, bool(made)) == (None, True)


def test_compressed_shards_are_inflated_by_the_engine_without_python_picks(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack(folder, "gzip")
    monkeypatch.setattr(Fetcher, "fetch", None)
    batches = list(tfr.open(folder).shuffle(seed=1).batch(16, threads=2))
    assert sum(len(batch["id"]) for batch in batches) == NUM_ROWS


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = count_threads()
    yield
    assert count_threads(before) <= before


def test_arrays_of_a_batch_own_their_memory_and_may_be_written_to(tmp_path: Path) -> None:
    batches = large(tmp_path).batch(40_000, threads=2)
    kept = [batch["id"] for batch in batches]
    del batches
    assert all(array.dtype == np.int64 and array.flags.writeable and array.flags.c_contiguous for array in kept)
    assert np.array_equal(np.concatenate(kept), np.arange(100_000))
    kept[0][0] = 7
    assert kept[0][0] == 7
    copied = pickle.loads(pickle.dumps(kept[1]))
    assert copied.dtype == np.int64 and np.array_equal(copied, kept[1])


def count_resident(path: Path) -> int:
    """Return the kilobytes of a mapped file that are in the page tables of this process."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    kilobytes = 0
    for line in lines:
        if line.endswith(str(path)):
            kilobytes += next(int(rest.split()[1]) for rest in lines if rest.startswith("Rss:"))
    return kilobytes


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs smaps")
def test_pages_of_a_shuffled_pass_are_given_back_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "large.tfrecord"
    with tfr.Writer(path) as writer:
        for number in range(250):
            writer.write({"n": number, "value": bytes([number]) * 80_000})
    batches = iter(tfr.open(path).shuffle(seed=1).batch(50, threads=2))
    rows = [next(batches)]
    assert count_resident(path) > 1000
    rows += batches
    assert count_resident(path) < 100  # the last page is not whole
    assert sorted(np.concatenate([batch["n"] for batch in rows])) == list(range(250))


class _Hungry:
    """An engine that waits for the first pieces."""

    first_piece = 0

    def __init__(self, num_wanted: int) -> None:
        self.num_wanted = num_wanted
        self.num_pieces = 0
        self.is_ended = False

    @property
    def is_hungry(self) -> bool:
        return self.num_pieces < self.num_wanted

    def add_piece(self, data: bytes, start: int, stop: int) -> None:
        self.num_pieces += 1

    def end_pieces(self) -> None:
        self.is_ended = True


@pytest.mark.parametrize(
    ("nbytes", "num_wanted", "is_ready", "num_fed"),
    # An eighth of 800 bytes may be held.
    [(45, 0, True, 3), (50, 0, True, 2), (45, 0, False, 0), (45, 2, False, 2), (45, 5, True, 5), (45, 9, True, 6)],
)
def test_pieces_are_fed_while_there_is_room_or_the_engine_waits(
    nbytes: int, num_wanted: int, is_ready: bool, num_fed: int
) -> None:
    engine = _Hungry(num_wanted)
    feeding = object.__new__(EnginePass)
    feeding._engine = engine  # type: ignore[assignment]
    feeding._held, feeding._num_dropped, feeding._held_nbytes, feeding._ahead_nbytes = deque(), 0, 0, 800
    feeding._pieces = iter([SimpleNamespace(nbytes=nbytes, data=b"", start=0, stop=0)] * 6)  # type: ignore[list-item]
    feeding._feed_pieces(SimpleNamespace(has_next=lambda: is_ready))  # type: ignore[arg-type]
    assert (engine.num_pieces, engine.is_ended) == (num_fed, num_fed == 6)
