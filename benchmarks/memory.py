"""Peak memory of a shuffled pass over 2 GB and 20 GB, and of one shuffled batch of a file of 3.7 GB.

    python benchmarks/memory.py                        # 1 GB of disk: larger datasets are hard links to one shard
    python benchmarks/memory.py --gigabytes 1 4 --folder /data/tmp

Needs tfrkit and NumPy, nothing else. Each pass runs in a fresh process, which reads RssAnon of /proc/self/status after
every batch: the memory of its own, without pages of mapped files, which the system takes back whenever it needs them.
The bar: both passes take the same, at most `ahead_nbytes` and 100 MB. "resident" counts mapped pages (VmHWM): Linux
6.18 maps up to a megabyte for each record that is picked, whatever madvise says, and they are given back at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from threads import describe_machine

import tfrkit as tfr
from tfrkit.batches.ahead import DEFAULT_AHEAD_NBYTES
from tfrkit.container.locate import save_index

ROW_NBYTES = 1900
SHARD_NBYTES = 1_000_000_000
ONE_BATCH_SHARDS = 37  # a tenth of the size of the other shards: 3.7 GB
MAX_MORE_NBYTES = 100_000_000  # than ahead_nbytes


def write_shard(path: Path, nbytes: int) -> None:
    """Write Examples of some numbers and 1,900 bytes."""
    rng = np.random.default_rng(7)
    num_rows = nbytes // (ROW_NBYTES + 150)
    blob = rng.bytes(ROW_NBYTES)
    with tfr.Writer(path) as writer:
        for start in range(0, num_rows, 4096):
            count = min(4096, num_rows - start)
            columns: dict[str, Any] = {f"f{k}": rng.random(count).astype(np.float32) for k in range(8)}
            writer.write_columns({"n": np.arange(start, start + count), "blob": [blob] * count, **columns})


def link_shards(folder: Path, whole: Path, count: int) -> list[str]:
    """Give a shard several names, each with an index, so that the dataset is that many times as large."""
    folder.mkdir()
    paths = [folder / f"m-{number:05}-of-{count:05}.tfrecord" for number in range(count)]
    for path in paths:
        os.link(whole, path)
        save_index(str(path))
    return [str(path) for path in paths]


def read_status(key: str) -> int:
    """Return a size of this process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:")) * 1024


def read_shuffled(paths: list[str], most: int | None) -> dict[str, float]:
    """Read a shuffled pass, or its first batches, in this process."""
    started = time.perf_counter()
    num_rows = peak = 0
    batches = iter(tfr.open(paths).shuffle(seed=1).batch(1024))
    for number, batch in enumerate(batches, 1):
        num_rows += len(batch["n"])
        peak = max(peak, read_status("RssAnon"))
        if number == most:
            break
    seconds = time.perf_counter() - started
    resident = read_status("VmHWM")
    batches.close()
    after = read_status("VmRSS")
    return {"rows": num_rows, "seconds": seconds, "own": peak, "resident": resident, "after": after}


def run(paths: list[str], most: int | None = None) -> dict[str, float]:
    asked = json.dumps([paths, most])
    done = subprocess.run([sys.executable, __file__, "--child"], input=asked, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=int, nargs="+", default=[2, 20])
    parser.add_argument("--folder", help="where to write, default the system's folder for temporary files")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(read_shuffled(*json.load(sys.stdin))))
        return
    with tempfile.TemporaryDirectory(prefix="tfrkit-memory-", dir=options.folder) as name:
        folder = Path(name)
        write_shard(folder / "whole", SHARD_NBYTES)
        write_shard(folder / "tenth", SHARD_NBYTES // 10)
        works = [
            (f"{count} GB, whole pass", link_shards(folder / str(count), folder / "whole", count), None)
            for count in options.gigabytes
        ]
        works.append(("3.7 GB, one batch", link_shards(folder / "one", folder / "tenth", ONE_BATCH_SHARDS), 1))
        print(f"Peak memory, shuffled, batches of 1024, default threads and ahead_nbytes. {describe_machine()}.\n")
        print("| work | rows | seconds | memory of its own, MB | resident, MB | after closing, MB |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        peaks = []
        for title, paths, most in works:
            found = run(paths, most)
            sizes = " | ".join(f"{found[key] / 1e6:.0f}" for key in ("own", "resident", "after"))
            print(f"| {title} | {found['rows']:,.0f} | {found['seconds']:.1f} | {sizes} |", flush=True)
            peaks.append(found["own"])
    limit = DEFAULT_AHEAD_NBYTES + MAX_MORE_NBYTES
    print(f"\nbar: at most {limit / 1e6:.0f} MB of its own: {'met' if max(peaks) <= limit else 'missed'}")


if __name__ == "__main__":
    main()
