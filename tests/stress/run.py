"""Eight threads read the same datasets at random, for a given time: python tests/stress/run.py --seconds 600.

Every thread opens passes over shared datasets, with a random number of reading threads: in file order, shuffled, in
windows; plain and compressed; with steps; with damage that is skipped or raised. It finishes, closes or drops them. The
main thread does so too, and gets Ctrl-C at random. Some passes lose the end of their file. Every batch is compared with
the one that the slow twin makes on one thread. At the end no thread may be left. Prints its seed, and what was done.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tfrkit as tfr
from tfrkit._limits import LIMITS
from tfrkit.errors import StorageError, TfrkitError
from tfrkit.testing.corruption import flip, frame_offsets

NUM_CONSUMERS = 8
COUNTS = (3000, 10, 0, 2000, 700)
DAMAGED = ((0, 1200), (3, 5), (3, 6), (4, 699))  # shard, record
SIZES = (7, 64, 300)

ORDERS: dict[str, Callable[[tfr.Dataset], tfr.Dataset]] = {
    "file": lambda ds: ds,
    "shuffled": lambda ds: ds.shuffle(seed=3),
    "window": lambda ds: ds.shuffle(seed=3, window=500, block=50),
    "taken": lambda ds: ds.skip(100).take(3000),
}
STEPS: dict[str, Callable[[tfr.Dataset], tfr.Dataset]] = {
    "plain": lambda ds: ds,
    "text": lambda ds: ds.decode(name="text"),
}
# Of reading: plain files; with damage that is skipped, or raised; compressed; compressed with damage that is skipped.
KINDS = ("sound", "skipped", "raised", "gzip", "gzip_skipped")

Batches = list[tuple[bytes, list[Any]]]


def write_shards(folder: Path, *, is_damaged: bool, is_packed: bool) -> Path:
    folder.mkdir()
    first = 0
    for shard, count in enumerate(COUNTS):
        path = folder / f"s-{shard:05}-of-{len(COUNTS):05}"
        with tfr.Writer(path) as writer:
            for number in range(first, first + count):
                writer.write({"id": number, "name": f"n{number}" * (number % 9), "values": np.arange(number % 5)})
        first += count
        data = path.read_bytes()
        for at, record in DAMAGED if is_damaged else ():
            if at == shard:
                data = flip(data, frame_offsets(data)[record] + 14)
        path.unlink()
        path.with_suffix(".gz" if is_packed else ".tfrecord").write_bytes(gzip.compress(data) if is_packed else data)
    return folder


def plain(batch: dict[str, Any]) -> tuple[bytes, list[Any]]:
    return batch["id"].tobytes(), list(batch["name"])


class Stress:
    """What the threads share: datasets, the batches to expect, and counts of what was done."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self.seed = seed
        self.counts: collections.Counter[str] = collections.Counter()
        self.failures: list[str] = []
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._datasets = {}
        for is_packed in (False, True):
            sound = write_shards(folder / f"sound{is_packed}", is_damaged=False, is_packed=is_packed)
            damaged = write_shards(folder / f"damaged{is_packed}", is_damaged=True, is_packed=is_packed)
            prefix = "gzip" if is_packed else ""
            self._datasets[prefix or "sound"] = tfr.open(sound)
            self._datasets[f"{prefix}_skipped".lstrip("_")] = tfr.open(damaged, on_error="skip")
            if not is_packed:
                self._datasets["raised"] = tfr.open(damaged)
        assert set(self._datasets) == set(KINDS)
        self._whole = folder / "soundFalse" / f"s-00000-of-{len(COUNTS):05}.tfrecord"
        self._expected: dict[tuple[str, str, str, int], tuple[Batches, bool]] = {}
        for key in itertools.product(KINDS, ORDERS, STEPS, SIZES):
            batches = self._make(key, threads=1)
            batches.uses_engine = False
            self._expected[key] = self._collect(iter(batches))

    def _make(self, key: tuple[str, str, str, int], **options: Any) -> Any:
        kind, order, step, size = key
        return STEPS[step](ORDERS[order](self._datasets[kind])).batch(size, **options)

    @staticmethod
    def _collect(batches: Iterator[Any]) -> tuple[Batches, bool]:
        made: Batches = []
        try:
            for batch in batches:
                made.append(plain(batch))
        except TfrkitError:
            return made, True
        return made, False

    def count(self, **what: int) -> None:
        with self._lock:
            self.counts.update(what)

    def run_pass(self, rng: random.Random) -> None:
        """Make one pass, or a part of it, and compare its batches."""
        key = rng.choice(KINDS), rng.choice(list(ORDERS)), rng.choice(list(STEPS)), rng.choice(SIZES)
        expected, raises = self._expected[key]
        threads = rng.choice([None, 1, 2, 3, 8])
        ahead_nbytes = rng.choice([0, 1 << 16, 1 << 28])
        stop = rng.randrange(len(expected) + 1) if rng.random() < 0.5 else None
        batches = iter(self._make(key, threads=threads, ahead_nbytes=ahead_nbytes))
        num_taken, is_over, has_raised = 0, False, False
        while stop is None or num_taken < stop:
            try:
                batch = next(batches)
            except StopIteration:
                is_over = True
                break
            except TfrkitError as error:
                has_raised = is_over = True
                if "payload checksum mismatch" not in str(error):
                    raise
                break
            wanted = expected[num_taken] if num_taken < len(expected) else None
            if plain(batch) != wanted:
                raise AssertionError(f"batch {num_taken} of {key} differs, threads={threads}, {ahead_nbytes=}")
            num_taken += 1
        if is_over and (num_taken, has_raised) != (len(expected), raises):
            raise AssertionError(f"{key} gave {num_taken} of {len(expected)} batches, {has_raised=}, {threads=}")
        if not is_over and rng.random() < 0.5:
            batches.close()  # else it is dropped
        self.count(passes=1, batches=num_taken, raised=has_raised, left_early=not is_over)

    def cut_file(self, rng: random.Random) -> None:
        """Truncate a file in the middle of a pass: batches before it are right, then an error, or nothing was lost."""
        path = self._folder / f"cut-{next(self._numbers)}.tfrecord"
        shutil.copyfile(self._whole, path)
        ds = tfr.open(path)
        order = rng.choice(["file", "shuffled"])
        intact = [plain(batch) for batch in ORDERS[order](ds).batch(7, threads=1)]
        batches = iter(ORDERS[order](ds).batch(7, threads=rng.choice([1, 2, 8])))
        try:
            for number, batch in enumerate(batches):
                if plain(batch) != intact[number]:
                    raise AssertionError(f"batch {number} of a truncated file differs")
                if number == 50:
                    os.truncate(path, rng.randrange(path.stat().st_size))
        except (StorageError, tfr.errors.ContainerError):
            self.count(truncated=1)
        finally:
            batches.close()
            path.unlink()
        self.count(cut_passes=1)

    def work(self, number: int, deadline: float) -> None:
        """Make passes until the deadline, on a thread of its own."""
        rng = random.Random(f"{self.seed}-{number}")
        try:
            while time.monotonic() < deadline and not self.failures:
                self.run_once(rng)
        except BaseException:  # noqa: BLE001  (reported by the main thread)
            self.failures.append(traceback.format_exc())

    def run_once(self, rng: random.Random) -> None:
        (self.cut_file if rng.random() < 0.03 else self.run_pass)(rng)


def run_interrupted(stress: Stress, deadline: float) -> None:
    """Make passes on the main thread, which gets Ctrl-C at random moments."""
    rng = random.Random(f"{stress.seed}-main")
    num_interrupts = 0
    is_armed = False  # interrupts come one at a time, and never outside of a pass

    def interrupt(number: int, frame: object) -> None:
        nonlocal is_armed, num_interrupts
        if is_armed:
            is_armed = False
            num_interrupts += 1
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    while time.monotonic() < deadline and not stress.failures:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, 0.3))
        try:
            is_armed = True
            # Python drops an interrupt that comes while an object is being deleted; then the next one is due.
            while is_armed and time.monotonic() < deadline:
                # Not `cut_file`: an interrupt could keep it from removing its file.
                stress.run_pass(rng)
            is_armed = False
        except KeyboardInterrupt:
            pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    stress.counts["interrupts"] = num_interrupts


def count_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def read_memory() -> int:
    """Return the anonymous memory of this process in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) >> 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    for category in (tfr.errors.SkippedRecordsWarning, tfr.errors.EmptyShardWarning):
        warnings.simplefilter("ignore", category)
    # Small files make many pieces, and are worth threads.
    LIMITS.inflate_nbytes, LIMITS.ahead_step_nbytes, LIMITS.inflater_nbytes = 1 << 14, 1 << 15, 1
    with tempfile.TemporaryDirectory() as folder:
        stress = Stress(Path(folder), args.seed)
        before, memory = count_threads(), read_memory()
        started = time.monotonic()
        deadline = started + args.seconds
        consumers = [
            threading.Thread(target=stress.work, args=(number, deadline)) for number in range(NUM_CONSUMERS - 1)
        ]
        for consumer in consumers:
            consumer.start()
        run_interrupted(stress, deadline)
        for consumer in consumers:
            consumer.join()
        if threading.active_count() > 1:
            stress.failures.append(f"threads are left: {threading.enumerate()}")
        for _ in range(100):  # a thread that was joined is listed for a moment more
            if count_threads() <= before:
                break
            time.sleep(0.01)
        else:
            stress.failures.append(f"{count_threads() - before} native threads are left")
        seconds = time.monotonic() - started
    facts = [f"{count:,} {name.replace('_', ' ')}" for name, count in sorted(stress.counts.items())]
    print(
        f"{seconds:.0f} s: {', '.join(facts)}; memory {memory} to {read_memory()} MiB; {len(stress.failures)} findings"
    )
    for failure in stress.failures:
        print(failure, file=sys.stderr)
    return bool(stress.failures)


if __name__ == "__main__":
    sys.exit(main())
