"""Functions that `test_torch.py` runs in another process: they start workers, are killed, or might hang.

``python torch_process.py FOLDER NAME...`` calls the functions of these names, and prints for each a line of JSON: what
it returned, or the text of its error. The pytest process has threads of TensorFlow and JAX, so forking there is unsafe.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tfrkit as tfr

NUM_ROWS = 53
BATCH = 12
SEED = 7
# Each pair of (workers, ranks), (workers, files) and (ranks, files) once.
GRID = [(workers, ranks, files) for i, workers in enumerate((1, 2, 5)) for j, ranks in enumerate((1, 2, 3))
        for files in [(1, 3, 7)[(i + j) % 3]]]  # fmt: skip


def make_row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "half": number / 2,
        "tokens": np.arange(number % 4, dtype=np.int64),
        "name": b"row\x00%d" % number,
        "pixels": np.full((2, 3), number % 256, np.uint8),
    }


def write_dataset(folder: Path, num_files: int, *, num_rows: int = NUM_ROWS, compression: str = "none") -> str:
    """Rows in turn over files; returns their pattern."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(num_files):
        path = folder / f"rows-{number:05d}-of-{num_files:05d}.tfrecord"
        with tfr.Writer(str(path), compression=compression) as writer:
            for row in range(number, num_rows, num_files):
                writer.write(make_row(row))
    return str(folder / "rows-*")


def open_shuffled(folder: str) -> tfr.Dataset:
    return tfr.open(f"{folder}/rows-*").shuffle(seed=SEED)


def ids_of(batches: Iterator[Any]) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def read_ranks(dataset: tfr.Dataset, ranks: int, even: str, **options: Any) -> dict[str, Any]:
    """One epoch as every rank reads it."""
    batches = dataset.batch(BATCH, per_rank=False)
    loaders = [batches.to_torch(rank=r, world_size=ranks, even=even, **options) for r in range(ranks)]
    return {"lengths": [len(loader) for loader in loaders], "ids": [ids_of(loader) for loader in loaders]}


# ---- one epoch, exactly once ---------------------------------------------------------------------------------------


def forked_grid(folder: str) -> Any:
    results = []
    for workers, ranks, files in GRID:
        dataset = open_shuffled(f"{folder}/{files}")
        read = read_ranks(
            dataset, ranks, ("drop", "pad")[workers % 2], num_workers=workers, multiprocessing_context="fork"
        )
        results.append({"workers": workers, "ranks": ranks, "files": files, **read})
    return results


def spawned(folder: str) -> Any:
    """Two epochs with two persistent workers, then one with five; the last is not shuffled."""
    dataset = open_shuffled(f"{folder}/3")
    options = {"multiprocessing_context": "spawn"}
    loader = dataset.batch(BATCH, per_rank=False).to_torch(
        num_workers=2, rank=1, world_size=2, even="drop", persistent_workers=True, **options
    )
    first, second = ids_of(loader), ids_of(loader)
    del loader
    plain = tfr.open(f"{folder}/3/rows-*").batch(BATCH).to_torch(num_workers=5, prefetch_factor=1, **options)
    return {"epochs": [first, second], "plain": ids_of(plain)}


# ---- going on ------------------------------------------------------------------------------------------------------


def resumes(folder: str) -> Any:
    """Stop after every step, resume with another number of workers: batches before and after, by step."""
    dataset = open_shuffled(f"{folder}/3")
    results = []
    for step in range(6):
        first = dataset.batch(BATCH).to_torch(num_workers=2, multiprocessing_context="fork")
        batches = iter(first)
        before = [next(batches)["id"].tolist() for _ in range(step)]
        state = json.loads(json.dumps(first.state_dict()))
        del batches
        second = dataset.batch(BATCH).to_torch(num_workers=(0, 1, 3)[step % 3])
        second.load_state_dict(state)
        results.append([before, ids_of(second), ids_of(second)])
    return results


def persistent(folder: str) -> Any:
    """Persistent workers follow set_epoch, an abandoned pass and a loaded state."""
    loader = open_shuffled(f"{folder}/1").batch(BATCH).to_torch(num_workers=2, persistent_workers=True)
    passes = {"0": ids_of(loader), "1": ids_of(loader)}
    loader.set_epoch(5)
    passes["5"] = ids_of(loader)
    batches = iter(loader)
    passes["6 start"] = [next(batches)["id"].tolist() for _ in range(2)]
    state = loader.state_dict()
    passes["7 start"] = [next(iter(loader))["id"].tolist()]
    loader.load_state_dict(state)
    passes["6 rest"] = ids_of(loader)
    passes["7"] = ids_of(loader)
    return passes


def two_passes_at_once(folder: str) -> Any:
    loader = open_shuffled(f"{folder}/1").batch(BATCH).to_torch(num_workers=2, multiprocessing_context="fork")
    first, second = iter(loader), iter(loader)
    return [[a["id"].tolist(), b["id"].tolist()] for a, b in zip(first, second, strict=True)]


def stateful(folder: str) -> Any:
    """torchdata's loader: stop after every step, resume in a new one; then its next epoch."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    def new_loader(workers: int) -> Any:
        dataset = open_shuffled(f"{folder}/3").batch(BATCH).to_torch_dataset()
        options = {"multiprocessing_context": "fork", "persistent_workers": True} if workers else {}
        return StatefulDataLoader(dataset, batch_size=None, num_workers=workers, **options)

    results = []
    for workers, steps in ((0, range(6)), (2, (0, 1, 4, 5))):
        for step in steps:
            first = new_loader(workers)
            batches = iter(first)
            before = [next(batches)["id"].tolist() for _ in range(step)]
            state = first.state_dict()
            del batches, first
            second = new_loader(workers)
            second.load_state_dict(state)
            results.append([workers, before, ids_of(second), ids_of(second)])
    return results


def stateful_rows(folder: str) -> Any:
    """torchdata's loader over rows, with a sampler: stop after two batches, resume in a new one."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    def new_loader() -> Any:
        torch.manual_seed(SEED)
        rows = tfr.open(f"{folder}/3/rows-*").select(["id", "half"]).to_torch()
        return StatefulDataLoader(rows, batch_size=BATCH, shuffle=True)

    whole = ids_of(new_loader())
    first = new_loader()
    batches = iter(first)
    before = [next(batches)["id"].tolist() for _ in range(2)]
    second = new_loader()
    second.load_state_dict(first.state_dict())
    return [whole, before + ids_of(second)]


def distributed_checkpoint(folder: str) -> Any:
    """The loader in a checkpoint of torch.distributed: 2 ranks save it, 4 resume and save, 1 resumes. Returns ids."""
    read = []
    for stage, (ranks, steps) in enumerate([(2, 2), (4, 1), (1, None)]):
        children = []
        for rank in range(ranks):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    _train_rank(folder, stage, rank, ranks, steps)
                    code = 0
                except BaseException:  # noqa: BLE001  (this process ends here)
                    traceback.print_exc()
                finally:
                    os._exit(code)
            children.append(child)
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * ranks
        read.append([json.loads(Path(folder, f"read-{stage}-{rank}.json").read_text()) for rank in range(ranks)])
    return read


def _train_rank(folder: str, stage: int, rank: int, ranks: int, steps: int | None) -> None:
    from torch.distributed import checkpoint

    store = f"file://{folder}/store-{stage}"
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=ranks)
    loader = open_shuffled(f"{folder}/3").batch(BATCH, per_rank=False).to_torch(even="drop")
    if stage:
        checkpoint.load({"loader": loader}, checkpoint_id=f"{folder}/checkpoint-{stage - 1}")
    batches = iter(loader)
    ids = ids_of(batches if steps is None else (next(batches) for _ in range(steps)))
    checkpoint.save({"loader": loader}, checkpoint_id=f"{folder}/checkpoint-{stage}")
    torch.distributed.destroy_process_group()
    Path(folder, f"read-{stage}-{rank}.json").write_text(json.dumps(ids))


# ---- what travels --------------------------------------------------------------------------------------------------


def write_large(folder: str) -> str:
    """Rows whose batches are too large for a pipe."""
    path = f"{folder}/large.tfrecord"
    if not Path(path).exists():
        with tfr.Writer(path) as writer:
            for number in range(40):
                writer.write({"id": number, "values": np.arange(100_000) + number})
    return path


def shared_memory(folder: str) -> Any:
    """Names of the memory that large batches of a worker lie in."""
    loader = tfr.open(write_large(folder)).batch(4).to_torch(num_workers=1, multiprocessing_context="fork")
    names = []
    for number, batch in enumerate(loader):
        assert batch["values"][3, -1] == 99_999 + 4 * number + 3
        address = batch["values"].data_ptr()
        for line in Path("/proc/self/maps").read_text().splitlines():
            start, stop = (int(part, 16) for part in line.split(" ", 1)[0].split("-"))
            if start <= address < stop:
                names.append(line.split(maxsplit=5)[5])
    return names


def same_values(folder: str) -> Any:
    """Batches of all kinds of columns through workers, against those made here."""
    from tfrkit.feeds.torch_tensors import RaggedTensor

    def is_equal(a: Any, b: Any) -> bool:
        if type(a) is not type(b):
            return False
        if isinstance(a, torch.Tensor):
            return a.dtype == b.dtype and torch.equal(a, b)
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(is_equal(a[name], b[name]) for name in a)
        if isinstance(a, (list, tuple, RaggedTensor)):
            return len(a) == len(b) and all(map(is_equal, a, b))
        return bool(a == b)

    def add_odd_columns(batch: Any) -> Any:  # a function that cannot be pickled is fine for forked workers
        batch["text"] = np.array(["ä" * len(name) for name in batch["name"]], object)
        batch["arrays"] = [np.full((n, 2), n, np.uint16) for n in range(len(batch["id"]))]
        if batch["id"][0] == 0:
            batch["large"] = np.arange(12 * 50_000).reshape(12, 50_000)  # too much for a pipe
        batch["swapped"] = batch["id"].astype(">i4")
        batch["tensor"] = torch.arange(len(batch["id"]))
        return batch

    results = {}
    dataset = tfr.open(f"{folder}/3/rows-*")
    for name, batches in {
        "examples": dataset.batch(BATCH).map(add_odd_columns),
        "sequences": tfr.open(f"{folder}/sequences.tfrecord").batch(3),
    }.items():
        here = list(batches.to_torch())
        batches.set_epoch(0)
        there = list(batches.to_torch(num_workers=2, multiprocessing_context="fork"))
        plain = list(
            torch.utils.data.DataLoader(
                batches.to_torch_dataset(), batch_size=None, num_workers=2, multiprocessing_context="fork"
            )
        )
        results[name] = [is_equal(here, there), is_equal(here, plain), len(here)]
    return results


def changed_in_collate(folder: str) -> Any:
    """Values from a user's collate function arrive unchanged."""
    loader = torch.utils.data.DataLoader(
        tfr.open(f"{folder}/1/rows-*").batch(BATCH).to_torch_dataset(),
        batch_size=None,
        num_workers=1,
        collate_fn=lambda batch: {**batch, "more": batch["id"] + 1} if batch["id"][0] == 0 else _grow(batch),
        multiprocessing_context="fork",
    )
    return [[batch["id"].tolist(), batch["more"].tolist()] for batch in loader]


def _grow(batch: dict[str, Any]) -> dict[str, Any]:
    batch["more"] = batch["id"] + 1
    batch["id"] += 100  # in place: the tensor is in shared memory
    return batch


def loader_in_loader(folder: str) -> Any:
    """Errors of a DataLoader around a loader, without and with workers."""
    loader = tfr.open(f"{folder}/3/rows-*").batch(BATCH).to_torch()
    said = []
    for options in ({}, {"num_workers": 1, "multiprocessing_context": "fork"}, {"batch_size": None}):
        try:
            next(iter(torch.utils.data.DataLoader(loader, **options)))
        except TypeError as error:
            said.append(str(error))
    return said


def own_loader(folder: str) -> Any:
    """DataLoaders as a trainer makes them, on ranks, with persistent or new workers: three epochs."""
    results = {}
    for ranks, workers, persistent in [(1, 0, False), (1, 2, False), (2, 2, False), (2, 2, True), (3, 1, False)]:
        datasets = [
            open_shuffled(f"{folder}/3").batch(BATCH, per_rank=False).to_torch_dataset(rank=r, world_size=ranks)
            for r in range(ranks)
        ]
        options = {"multiprocessing_context": "fork", "persistent_workers": persistent} if workers else {}
        loaders = [torch.utils.data.DataLoader(d, batch_size=None, num_workers=workers, **options) for d in datasets]
        epochs = []
        for epoch in range(3):
            for dataset in datasets:
                if workers and not persistent:
                    dataset.set_epoch(epoch)
            epochs.append([ids_of(loader) for loader in loaders])
        results[f"{ranks} {workers} {persistent}"] = [[len(loader) for loader in loaders], epochs]
    return results


def tokens(folder: str) -> Any:
    """Batches by a budget on ranks with workers; stopped after some steps and resumed with other workers."""
    dataset = open_shuffled(f"{folder}/3")
    loop = dataset.batch(max_tokens=8, bucket="tokens", pad=0)
    alone = ids_of(loop)
    results = []
    for ranks, workers, step in [(1, 0, 3), (1, 2, 1), (2, 2, 2), (3, 1, 4)]:
        before, after = [], []
        for rank in range(ranks):
            options = {"num_workers": workers, **({"multiprocessing_context": "fork"} if workers else {})}
            first = loop.to_torch(rank=rank, world_size=ranks, **options)
            first.set_epoch(0)
            batches = iter(first)
            before.append([next(batches)["id"].tolist() for _ in range(step)])
            second = loop.to_torch(rank=rank, world_size=ranks)
            second.load_state_dict(first.state_dict())
            after.append(ids_of(second))
            del batches
        results.append([before, after])
    return {"alone": alone, "ranks": results}


def rows_in_workers(folder: str) -> Any:
    """A map-style dataset under a sampler, spawned."""
    from tfrkit.feeds.torch import TorchRows

    rows = TorchRows(tfr.open(f"{folder}/3/rows-*").select(["id", "half", "name", "pixels"]))
    loader = torch.utils.data.DataLoader(
        rows, batch_size=10, sampler=range(0, NUM_ROWS, 2), num_workers=1, multiprocessing_context="spawn"
    )
    batches = list(loader)
    return {
        "ids": [batch["id"].tolist() for batch in batches],
        "name": [value.decode() for value in batches[0]["name"]],
        "pixels": [list(batches[0]["pixels"].shape), str(batches[0]["pixels"].dtype)],
    }


def fork_while_threads_read(folder: str) -> Any:
    """Validation forks its workers while the threads of training read the same compressed files."""
    dataset = tfr.open(f"{folder}/gzip/rows-*")
    train, test = dataset.split({"train": 0.9, "test": 0.1}, seed=0)
    counts = []
    for _ in range(5):
        for number, _batch in enumerate(train.shuffle(seed=1).batch(4, threads=2).to_torch()):
            if number == 2:
                loader = test.batch(2).to_torch(num_workers=2, multiprocessing_context="fork")
                counts.append(sum(len(batch["id"]) for batch in loader))
    return counts


def skipping(folder: str) -> Any:
    """Two records that do not decode are skipped in workers, and listed and warned about in the parent."""
    results = []
    for workers in (0, 1, 2):
        dataset = tfr.open(f"{folder}/torn.tfrecord", on_error="skip")
        options = {"multiprocessing_context": "fork"} if workers else {}
        loader = dataset.batch(4).to_torch(num_workers=workers, **options)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", tfr.errors.TfrkitWarning)
            ids = [ids_of(loader), ids_of(loader)]
        said = [str(warning.message) for warning in caught if issubclass(warning.category, tfr.errors.TfrkitWarning)]
        results.append([len(loader), ids, sorted(finding.record for finding in dataset.errors), said])
    return results


def distributed(folder: str) -> Any:
    """Two torch.distributed processes each get their own part without arguments."""
    store = f"{folder}/store"
    pid = os.fork()
    rank = 0 if pid else 1
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    mine = ids_of(open_shuffled(f"{folder}/3").batch(BATCH, per_rank=False).to_torch())
    gathered: list[Any] = [None, None]
    torch.distributed.all_gather_object(gathered, mine)
    torch.distributed.destroy_process_group()
    if rank:
        os._exit(0)
    os.waitpid(pid, 0)
    return gathered


# ---- the end -------------------------------------------------------------------------------------------------------


def train_and_die(folder: str) -> Any:
    """Log every batch and save the state; the first two runs kill themselves in the middle of an epoch."""
    log, saved = Path(folder, "log.jsonl"), Path(folder, "state.json")
    loader = open_shuffled(f"{folder}/3").batch(BATCH).to_torch(num_workers=2, multiprocessing_context="fork")
    if saved.exists():
        loader.load_state_dict(json.loads(saved.read_text()))
    num_steps = 0
    while loader.epoch < 2:
        for batch in loader:
            with log.open("a") as file:
                file.write(json.dumps(batch["id"].tolist()) + "\n")
            temporary = saved.with_suffix(".tmp")
            temporary.write_text(json.dumps(loader.state_dict()))
            temporary.replace(saved)
            num_steps += 1
            if num_steps == 3 and len(log.read_text().splitlines()) < 8:
                tell_workers()
                os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def die_with_shared_memory(folder: str) -> Any:
    """Die with large batches in hand and on their way."""
    for _ in tfr.open(write_large(folder)).batch(4).to_torch(num_workers=2, multiprocessing_context="fork"):
        tell_workers()
        os.kill(os.getpid(), signal.SIGKILL)


def fail_in_the_middle(folder: str) -> Any:
    for _ in _read_some(folder):
        tell_workers()
        raise ValueError("the consumer failed")


def wait_in_the_middle(folder: str) -> Any:
    for _ in _read_some(folder):
        tell_workers()
        signal.pause()


def _read_some(folder: str) -> Iterator[Any]:
    loader = open_shuffled(f"{folder}/3").batch(2, threads=2).to_torch(num_workers=int(os.environ["WORKERS"]))
    for number, batch in enumerate(loader):
        if number == 2:
            yield batch


def tell_workers() -> None:
    """Print the ids of the processes that this one has started."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    print(json.dumps([int(child) for child in children]), flush=True)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        function: Callable[[str], Any] = globals()[name]
        try:
            answer = {"result": function(sys.argv[1])}
        except Exception:
            if name.endswith("in_the_middle"):
                raise
            answer = {"error": traceback.format_exc()}
        print(json.dumps({"name": name, **answer}), flush=True)
