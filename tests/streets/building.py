"""`tfr build` and the verbs, run in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streets.placing import place
from streets.storages import Storage
from streets.truth import Made, Truth
from tfrkit.testing.commands import Ran, run_command
from tfrkit.testing.fake_store import use_fake_store


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


# Stores a folder of inputs; returns its address, and the options of a command that reads it.
PutInputs = Callable[[Path], tuple[str, list[str]]]
_stores: list[PutInputs] = []


def build_from(folder: Path, storage: Storage, truth: Truth, kind: str, source: Path, *options: str) -> Made:
    """Build a dataset with a command; in `from_store`, from a copy of the inputs in a store."""
    out = output_of(folder, storage)
    words = [str(source), *options]
    if _stores:
        address, more = _stores[-1](folder)
        words = [*(word.replace(str(folder), address) for word in words), *more]
    run_tfr("build", kind, *words, "-o", out, *output_options(storage), "--jobs", 1, "--quiet")
    return place(out, truth, storage)


def make_from_store(make: Callable[[Path, Storage], Made], folder: Path, storage: Storage, put: PutInputs) -> Made:
    """Make a dataset from inputs that `put` stores."""
    _stores.append(put)
    try:
        return make(folder, storage)
    finally:
        _stores.pop()


def from_store(make: Callable[[Path, Storage], Made]) -> Callable[[Path, Storage], Made]:
    """Return a maker that builds from inputs in a store in memory."""

    def make_it(folder: Path, storage: Storage) -> Made:
        with use_fake_store() as store:

            def put(inputs: Path) -> tuple[str, list[str]]:
                store.add_folder(str(inputs), "inputs/")
                return "s3://bucket/inputs", []

            return make_from_store(make, folder, storage, put)

    return make_it
