"""Every command on every real file: the right answer or a clear refusal, never a traceback.

One test per command, called in this process: 78 files times 20 commands would take ten minutes otherwise.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrkit as tfr
from tfrkit.testing.commands import Ran, find_commands, run_command

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus folder ../shared/corpus is not here")


def load_entries() -> list[dict[str, Any]]:
    if not CORPUS.is_dir():
        return []
    return [entry for entry in json.loads((CORPUS / "MANIFEST.json").read_text()) if entry["kind"] == "record"]


ENTRIES = load_entries()

# Calls, with {path} for the file and {out} for a place that is not there yet. A command that does not exist is skipped;
# one that is not listed is called with a path and, if required, an output.
CALLS: dict[str, list[str]] = {
    "info": ["{path}", "--format", "json"],
    "head": ["{path}", "-n", "2", "--format", "json"],
    "tail": ["{path}", "-n", "2", "--format", "json"],
    "cat": ["{path}", "--format", "jsonl"],
    "count": ["{path}", "--format", "json"],
    "schema": ["{path}"],
    "verify": ["{path}", "--format", "json"],
    "verify --deep": ["{path}", "--format", "json"],
    "repair": ["{path}", "-o", "{out}.tfrecord", "--format", "json"],
    "sheet": ["{path}", "-o", "{out}.png", "-n", "4"],
    "view": ["{path}", "--no-browser", "--idle", "0.001"],
    "stats": ["{path}", "--format", "json"],
    "sql": ["select count(*) as n from '{path}'", "--format", "json"],
    "diff": ["{path}", "{path}", "--format", "json"],
    "split": ["{path}", "-o", "{out}", "--split", "train=.8,test=.2"],
    "shuffle": ["{path}", "-o", "{out}", "--seed", "1"],
    "merge": ["{path}", "-o", "{out}.tfrecord"],
    "reshard": ["{path}", "-o", "{out}", "--shards", "2"],
    "sample": ["{path}", "-n", "3", "-o", "{out}.tfrecord"],
    "convert": ["{path}", "-o", "{out}.tfrecord.gz", "--compression", "gzip"],
    "edit": ["{path}", "--drop", "--where", "_record = 0", "-o", "{out}.tfrecord"],
    "append": ["{path}", "{copy}", "-o", "{out}.tfrecord"],
    "dedupe": ["{path}", "-o", "{out}.tfrecord"],
    "export images": ["{path}", "-o", "{out}"],
    "export parquet": ["{path}", "-o", "{out}.parquet"],
    "export csv": ["{path}", "-o", "{out}.csv"],
    "export jsonl": ["{path}", "-o", "{out}.jsonl"],
    "export npz": ["{path}", "-o", "{out}.npz"],
    "export webdataset": ["{path}", "-o", "{out}"],
    "export voc": ["{path}", "-o", "{out}"],
    "export yolo": ["{path}", "-o", "{out}"],
    "export coco": ["{path}", "-o", "{out}"],
}
# These write next to the file, measure time, or take a script.
NOT_CALLED = {"index", "bench", "build", "run", "completion"}


NAMES = [name for name in find_commands() if name.split()[0] not in NOT_CALLED]
CALLED = [*NAMES, "verify --deep"]


def make_call(name: str, path: Path, out: Path) -> list[str]:
    words = CALLS.get(name, ["{path}", "-o", "{out}"])
    copy = out.parent / "copy" / path.name
    if "{copy}" in words:
        copy.parent.mkdir()
        shutil.copy(path, copy)
    return [*name.split(), *(word.format(path=path, out=out, copy=copy) for word in words)]


def count_made(out: Path) -> int:
    """Number of records in the output of a command."""
    paths = sorted(path for path in out.parent.glob(f"{out.name}*"))
    total = 0
    for path in paths:
        files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
        shards = [file for file in files if "tfrecord" in file.name and not file.name.endswith((".json", ".tfidx"))]
        for shard in shards:
            with tfr.open(shard) as dataset:
                total += sum(1 for _ in dataset.records())
    return total


# Check of the output, for commands with a one-line check.
ANSWERS: dict[str, Callable[[dict[str, Any], Ran, Path], bool]] = {
    "count": lambda entry, ran, out: json.loads(ran.stdout)["records"] == entry["records"],
    "info": lambda entry, ran, out: json.loads(ran.stdout)["records"] == entry["records"],
    "verify": lambda entry, ran, out: json.loads(ran.stdout)["records"] == entry["records"] and ran.exit_code == 0,
    "verify --deep": lambda entry, ran, out: json.loads(ran.stdout)["records"] == entry["records"],
    "head": lambda entry, ran, out: len(json.loads(ran.stdout)) == min(2, entry["records"]),
    "sql": lambda entry, ran, out: str(entry["records"]) in ran.stdout,
    "diff": lambda entry, ran, out: ran.exit_code == 0,
    "view": lambda entry, ran, out: ran.exit_code == 0 and ran.stdout.startswith("http://127.0.0.1:"),
    "repair": lambda entry, ran, out: count_made(out) == entry["records"] and ran.exit_code == 0,
    "shuffle": lambda entry, ran, out: count_made(out) == entry["records"],
    "merge": lambda entry, ran, out: count_made(out) == entry["records"],
    "split": lambda entry, ran, out: count_made(out) == entry["records"],
    "reshard": lambda entry, ran, out: count_made(out) == entry["records"],
    "convert": lambda entry, ran, out: count_made(out) == entry["records"],
    "sample": lambda entry, ran, out: count_made(out) == min(3, entry["records"]),
    "edit": lambda entry, ran, out: count_made(out) == max(0, entry["records"] - 1),
    "append": lambda entry, ran, out: count_made(out) == entry["records"] * 2,
    "dedupe": lambda entry, ran, out: min(1, entry["records"]) <= count_made(out) <= entry["records"],
}


def judge(entry: dict[str, Any], name: str, ran: Ran, out: Path) -> str | None:
    """Description of a wrong exit, or None."""
    lines = ran.stderr.splitlines()
    if "Traceback" in ran.output:
        return f"trace: {ran.stderr[-300:]}"
    if ran.exit_code not in (0, 1, 2, 3):
        return f"exit code {ran.exit_code}: {ran.output[-300:]}"
    if ran.exit_code > 1:  # 2: split of a file with one record
        if not lines or not lines[0].startswith("tfr: ") or len(lines) > 2 or "Error" in lines[0]:
            return f"message: {ran.stderr[-300:]}"
        return None
    if entry["records"] is None:
        return None if name.startswith("verify") and ran.exit_code == 1 else "took what is no TFRecord"
    answer = ANSWERS.get(name)
    if answer is not None and not answer(entry, ran, out):
        return f"answer: {ran.stdout[:300]} {ran.stderr[:300]}"
    return None


# Commands that must succeed on every file.
NEVER_REFUSED = {
    "info",
    "head",
    "tail",
    "cat",
    "count",
    "schema",
    "verify",
    "verify --deep",
    "repair",
    "merge",
    "shuffle",
    "view",
}


@pytest.mark.parametrize("name", CALLED)
def test_command_on_every_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda descriptor: None)  # fsync is not needed in tests
    faults = []
    num_refused = 0
    for number, entry in enumerate(ENTRIES):
        out = tmp_path / f"made{number}"
        ran = run_command(make_call(name, CORPUS / entry["file"], out))
        if "pip install 'tfrkit[" in ran.stderr:
            pytest.skip(ran.stderr.splitlines()[0])
        fault = judge(entry, name, ran, out)
        if fault is None and ran.exit_code > 1 and entry["records"] and name in NEVER_REFUSED:
            fault = f"refused: {ran.stderr}"
        num_refused += ran.exit_code > 1
        if fault is not None:
            faults.append(f"{entry['file']}: {fault}")
        for path in tmp_path.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert not faults, f"{len(faults)} of {len(ENTRIES)} files\n" + "\n".join(faults)
    assert num_refused < len(ENTRIES)
