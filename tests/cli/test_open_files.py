"""Every verb on more shards than the limit of open files."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tfrkit.container.writer import frame_records
from tfrkit.testing.reference import encode_example

MAX_FILES = 160
NUM_SHARDS = 200
A_SHARD = 6
NUM_RECORDS = NUM_SHARDS * A_SHARD
SUM = NUM_RECORDS * (NUM_RECORDS - 1) // 2
# Above 32 MiB in total, so that the schema is inferred from a sample.
PAYLOAD = b"x" * 33_000

RUN_COMMANDS = """
import json, sys
from tfrkit.testing.commands import run_command
for arguments in json.load(sys.stdin):
    ran = run_command(arguments)
    print(json.dumps([ran.exit_code, ran.stdout, ran.stderr]))
"""

READ_ALL = """
import pickle, sys
import tfrkit as tfr
ds = tfr.open("out")
num_records = int(sys.stdin.read())
assert ds[0]["id"] == 0
assert [ds[number]["id"] for number in range(num_records)] == list(range(num_records))
again = pickle.loads(pickle.dumps(ds))
for one in (ds.shuffle(0), again.shuffle(0)):
    ids = sorted(int(x) for batch in one.select(["id"]).batch(num_records // 2) for x in batch["id"])
    assert ids == list(range(num_records))
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Uncompressed shards with records large enough for a shuffle by random access."""
    folder = tmp_path_factory.mktemp("many")
    for shard in range(NUM_SHARDS):
        records = [
            encode_example({b"id": ("int64", [number]), b"label": ("int64", [number % 2]), b"x": ("bytes", [PAYLOAD])})
            for number in range(shard * A_SHARD, (shard + 1) * A_SHARD)
        ]
        (folder / f"d.tfrecord-{shard:05d}-of-{NUM_SHARDS:05d}").write_bytes(frame_records(records))
    return folder


def run_limited(script: str, stdin: str, cwd: Path) -> str:
    """Output of a script in a process with a low limit of open files."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (MAX_FILES, MAX_FILES))

    done = subprocess.run(
        [sys.executable, "-c", script],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, "XDG_CACHE_HOME": str(cwd / "cache"), "PYTHONUTF8": "1"},
        timeout=300,
        check=False,
        preexec_fn=limit,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_commands(commands: list[list[Any]], cwd: Path) -> list[str]:
    """Output of several `tfr` commands run in one process; none may fail."""
    texts = [[str(argument) for argument in command] for command in commands]
    ran = [json.loads(line) for line in run_limited(RUN_COMMANDS, json.dumps(texts), cwd).splitlines()]
    assert [(text, err) for text, (code, _, err) in zip(texts, ran, strict=True) if code] == []
    return [out for _, out, _ in ran]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_verbs_that_read_more_shards_than_open_files_work(compression: str, many: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    *_, added, counted = run_commands(
        [
            ["reshard", many, "-o", out, "--shards", NUM_SHARDS - 1, "--compression", compression],
            ["head", out, "-n", 1],
            ["tail", out, "-n", 1],
            ["sample", out, "-n", 3],
            ["schema", out],
            ["info", out],
            ["verify", out],
            ["verify", out, "--deep"],
            ["stats", out],
            ["merge", out, "-o", "one.tfrecord"],
            ["diff", out, "one.tfrecord"],
            ["diff", out, "one.tfrecord", "--key", "id"],
            ["export", "parquet", out, "-o", "out.parquet"],
            ["export", "jsonl", out, "-o", "out.jsonl"],
            ["export", "npz", out, "-o", "out.npz"],
            ["export", "webdataset", out, "-o", "tars"],
            ["index", out],
            ["sql", f"select sum(id) as s from '{out}'", "--format", "json"],
            ["count", out, "--format", "json"],
        ],
        tmp_path,
    )
    assert json.loads(added)["rows"] == [{"s": SUM}]
    assert json.loads(counted)["records"] == NUM_RECORDS


WRITES = {
    "shuffle": (["shuffle"], NUM_SHARDS),
    "shuffle from the files": (["shuffle", "--memory", "70MB"], NUM_SHARDS),
    "shuffle packed": (["shuffle", "--compression", "gzip"], NUM_SHARDS),
    "split": (["split", "--split", "train=.5,test=.5", "--shards", NUM_SHARDS // 2], NUM_SHARDS),
    "split by a feature": (
        ["split", "--split", "train=.5,test=.5", "--shards", NUM_SHARDS // 2, "--stratify", "label"],
        NUM_SHARDS,
    ),
    "reshard by size": (["reshard", "--shard-size", "100KB"], 397),
    "convert": (["convert", "--compression", "gzip"], NUM_SHARDS),
    "repair": (["repair"], NUM_SHARDS),
}


@pytest.mark.parametrize("verb", WRITES)
def test_verb_that_writes_more_shards_than_open_files_loses_nothing(verb: str, many: Path, tmp_path: Path) -> None:
    [name, *options], num_shards = WRITES[verb]
    query = f"select count(*) as n, sum(id) as s from '{tmp_path}/out'"
    _, printed = run_commands(
        [[name, many, "-o", tmp_path / "out", *options], ["sql", query, "--format", "json"]], tmp_path
    )
    assert json.loads(printed)["rows"] == [{"n": NUM_RECORDS, "s": SUM}]
    assert len([path for path in (tmp_path / "out").iterdir() if "-of-" in path.name]) == num_shards


@pytest.mark.parametrize("compression", ["none", "gzip", "xz", "zstd"])
def test_dataset_of_more_shards_than_open_files_is_read_in_any_order(
    compression: str, many: Path, tmp_path: Path
) -> None:
    run_commands(
        [["reshard", many, "-o", tmp_path / "out", "--shards", NUM_SHARDS, "--compression", compression]], tmp_path
    )
    run_limited(READ_ALL, str(NUM_RECORDS), tmp_path)


def test_build_into_more_shards_than_open_files_works(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"x": {number}}}\n' for number in range(NUM_RECORDS)))
    _, printed = run_commands(
        [
            ["build", "table", "rows.jsonl", "-o", "out", "--shards", NUM_SHARDS],
            ["count", "out", "--format", "json"],
        ],
        tmp_path,
    )
    assert json.loads(printed)["records"] == NUM_RECORDS
