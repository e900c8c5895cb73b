"""How reading compressed shards grows with threads: 16 shards, and one file with inflate checkpoints in its index.

    python benchmarks/compressed.py                    # 1 M Examples of 20 numbers in a temporary folder
    python benchmarks/compressed.py --rows 200000 --threads 1 2 --out compressed.md

Needs tfrkit and NumPy, nothing else. Every way of reading is first held against one thread: the same rows in the same
order. `cores` is processor time divided by wall time: how many cores were busy. On a machine that does other work, the
wall time says little; equal processor time and more busy cores show that work is shared.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from threads import NUM_COLUMNS, describe_machine, digest, parse_options, read

import tfrkit as tfr
from tfrkit.container.locate import save_index

COMPRESSIONS = {"gzip": "gz", "zlib": "zlib", "zstd": "zst"}
NUM_SHARDS = 16


def write_shards(folder: Path, compression: str, num_rows: int, num_shards: int, *, has_index: bool) -> list[str]:
    """Write Examples of numbers, of few digits, so that they compress about as well as real ones."""
    rng = np.random.default_rng(7)
    share = num_rows // num_shards
    paths = []
    for shard in range(num_shards):
        columns: dict[str, Any] = {f"i{k}": rng.integers(0, 1 << (2 * k + 3), share) for k in range(NUM_COLUMNS // 2)}
        columns |= {f"f{k}": rng.integers(0, 999, share).astype(np.float32) for k in range(NUM_COLUMNS // 2)}
        columns["i0"] = np.arange(shard * share, (shard + 1) * share)
        path = folder / f"c{num_shards}-{shard:05}-of-{num_shards:05}.tfrecord.{COMPRESSIONS[compression]}"
        with tfr.Writer(path, compression=compression) as writer:
            writer.write_columns(columns)
        if has_index:
            save_index(str(path))
        paths.append(str(path))
    return paths


def read_batches(ds: tfr.Dataset, threads: int, size: int) -> int:
    return read(ds.batch(size, threads=threads))[0]


def read_records(ds: tfr.Dataset, threads: int, size: int) -> int:
    del size
    return sum(1 for _ in ds.records(threads=threads))


def read_shuffled(ds: tfr.Dataset, threads: int, size: int) -> int:
    return read(ds.shuffle(seed=1).batch(size, threads=threads))[0]


def digest_shuffled(ds: tfr.Dataset, threads: int, size: int) -> str:
    return digest(ds.shuffle(seed=1).batch(size, threads=threads))


def digest_batches(ds: tfr.Dataset, threads: int, size: int) -> str:
    return digest(ds.batch(size, threads=threads))


def digest_records(ds: tfr.Dataset, threads: int, size: int) -> str:
    del size
    state = hashlib.blake2b(digest_size=8)
    for record in ds.records(threads=threads):
        state.update(record)
    return state.hexdigest()


WAYS: dict[str, tuple[Callable[[tfr.Dataset, int, int], int], Callable[[tfr.Dataset, int, int], str]]] = {
    "batches": (read_batches, digest_batches),
    "records": (read_records, digest_records),
    "shuffled": (read_shuffled, digest_shuffled),  # the shards are inflated before the clock starts
}


def measure(title: str, paths: list[str], way: str, options: argparse.Namespace) -> Iterator[str]:
    """Lines of a Markdown table."""
    run, find_digest = WAYS[way]
    ds = tfr.open(paths)
    _ = ds.schema  # found once, not in each pass
    wanted = find_digest(ds, 1, options.batch)
    yield f"| {title}, {way}: threads | M rows/s | : one thread | cores | processor s |"
    yield "| ---: | ---: | ---: | ---: | ---: |"
    first = None
    for threads in options.threads:
        if find_digest(ds, threads, options.batch) != wanted:
            raise SystemExit(f"{title}, {way}, {threads} threads: other rows than one thread gives")
        found = []
        for _ in range(options.rounds):
            wall, used = time.perf_counter(), time.process_time()
            num_rows = run(ds, threads, options.batch)
            wall, used = time.perf_counter() - wall, time.process_time() - used
            found.append((num_rows / wall, used / wall, used))
        rate, cores, used = max(found)
        first = first or rate
        yield f"| {threads} | {rate / 1e6:.2f} | {rate / first:.2f} | {cores:.1f} | {used:.2f} |"


def main() -> None:
    options = parse_options(__doc__, rows=1_000_000)
    lines = [
        "# Compressed shards on threads",
        "",
        f"{options.rows:,} Examples of {NUM_COLUMNS} numbers, batches of {options.batch}, checksums on, page cache. "
        f"{describe_machine()}. Made by `benchmarks/compressed.py`.",
    ]
    print("\n".join(lines))
    for compression in COMPRESSIONS:
        with tempfile.TemporaryDirectory(prefix="tfrkit-compressed-") as folder:
            stores = {f"{compression}, {NUM_SHARDS} shards": (NUM_SHARDS, False)}
            if compression != "zstd":  # which has no checkpoints
                stores[f"{compression}, one file with checkpoints"] = (1, True)
            for title, (num_shards, has_index) in stores.items():
                paths = write_shards(Path(folder), compression, options.rows, num_shards, has_index=has_index)
                for way in WAYS:
                    for line in ["", *measure(title, paths, way, options)]:
                        print(line, flush=True)
                        lines.append(line)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
