"""`tfr build` and the verbs, run in this process."""

from __future__ import annotations

from pathlib import Path

from streets.placing import place
from streets.storages import Storage
from streets.truth import Made, Truth
from tfrkit.testing.commands import Ran, run_command


def run_tfr(*arguments: object, codes: tuple[int, ...] = (0,)) -> Ran:
    """Run a command; an exit code outside `codes` raises with its output."""
    words = [str(argument) for argument in arguments]
    ran = run_command(words)
    if ran.exit_code not in codes:
        raise AssertionError(f"tfr {' '.join(words[:2])} ended with {ran.exit_code}: {ran.stderr.strip():.400}")
    return ran


def output_of(folder: Path, storage: Storage) -> Path:
    return folder / ("data.tfrecord" if storage.layout == "file" else "data")


def output_options(storage: Storage) -> list[str]:
    """Splits, shards and compression as options of a command."""
    options = ["--compression", storage.compression]
    if storage.splits:
        options += ["--split", ",".join(f"{name}={share}" for name, share in storage.splits.items())]
    if storage.layout == "folder":
        options += ["--shards", str(storage.shards)]
    return options


def build_from(folder: Path, storage: Storage, truth: Truth, kind: str, source: Path, *options: str) -> Made:
    """Build a dataset with a command."""
    out = output_of(folder, storage)
    run_tfr("build", kind, source, "-o", out, *output_options(storage), "--jobs", 1, "--quiet", *options)
    return place(out, truth, storage)
