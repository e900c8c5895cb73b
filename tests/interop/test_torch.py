"""PyTorch: every row exactly once, the same batches for any number of workers and ranks, and resuming."""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch_process as process  # noqa: E402
from torch_process import BATCH, NUM_ROWS, SEED, ids_of, write_dataset  # noqa: E402

import tfrkit as tfr  # noqa: E402
from tfrkit.codec.columns import BytesColumn  # noqa: E402
from tfrkit.feeds.torch import TorchRows  # noqa: E402
from tfrkit.feeds.torch_tensors import Packing, RaggedTensor, convert_batch, view_slot  # noqa: E402

SEQUENCES = tfr.Schema({"id": "int64"}, feature_lists={"frame": "bytes", "words": ("int64", (None,))})
SCRIPT = Path(process.__file__)
TIMEOUT = 300


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("torch")
    for num_files in (1, 3, 7):
        write_dataset(root / str(num_files), num_files)
    write_dataset(root / "gzip", 2, compression="gzip")
    with tfr.Writer(str(root / "sequences.tfrecord"), schema=SEQUENCES) as writer:
        for number in range(8):
            lists = {"frame": [b"f%d" % n for n in range(number % 3)], "words": [np.arange(n) for n in range(number)]}
            writer.write({"context": {"id": number}, "feature_lists": lists})
    with tfr.Writer(str(root / "torn.tfrecord")) as writer:
        for number in range(10):
            if number in (1, 7):
                writer.write_record(b"\xff\xff not an Example")
            else:
                writer.write({"id": number})
    return root


# Warnings of PyTorch and torchdata: more workers than cores, a deprecated call.
IGNORED = ["ignore:This DataLoader will create", "ignore:'set_vital' is deprecated"]
# Functions of torch_process.py that share a process, because importing PyTorch takes longer than most of them.
FORKING = [
    "forked_grid",
    "two_passes_at_once",
    "persistent",
    "resumes",
    "stateful",
    "stateful_rows",
    "shared_memory",
    "same_values",
    "changed_in_collate",
    "skipping",
    "fork_while_threads_read",
    "loader_in_loader",
    "own_loader",
    "tokens",
]


@pytest.fixture(scope="session")
def run(folder: Path) -> Callable[[str], Any]:
    """Result of a function of torch_process.py, run in another process."""
    answers: dict[str, Any] = {}

    def run(name: str) -> Any:
        if name not in answers:
            names = FORKING if name in FORKING else [name]
            filters = [part for text in ["error", *IGNORED] for part in ("-W", text)]
            command = [sys.executable, *filters, str(SCRIPT), str(folder), *names]
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
            answers.update((answer["name"], answer) for answer in map(json.loads, done.stdout.splitlines()))
            assert name in answers, done.stderr[-4000:]
        assert "error" not in answers[name], answers[name]["error"]
        return answers[name]["result"]

    return run


def shuffled(folder: Path, num_files: int = 3) -> tfr.Dataset:
    return process.open_shuffled(str(folder / str(num_files)))


def epoch_ids(folder: Path, epoch: int, num_files: int = 3) -> list[list[int]]:
    """What NumPy reads."""
    batches = shuffled(folder, num_files).batch(BATCH)
    batches.set_epoch(epoch)
    return ids_of(batches)


def join_ranks(ids: list[list[list[int]]]) -> list[list[int]]:
    """Global batches of the parts that ranks got."""
    return [[number for part in parts for number in part] for parts in zip(*ids, strict=True)]


# ---- one epoch, exactly once ---------------------------------------------------------------------------------------


def check_epoch(read: dict[str, Any], expected: list[list[int]], ranks: int, even: str) -> None:
    assert [len(ids) for ids in read["ids"]] == read["lengths"]
    for parts in zip(*read["ids"], strict=True):
        assert len({len(part) for part in parts}) == 1
    joined = join_ranks(read["ids"])
    if even == "pad":
        extra = -len(expected[-1]) % ranks
        assert joined == [*expected[:-1], expected[-1] + expected[0][:extra]]
    else:
        kept = expected[-1][: len(expected[-1]) // ranks * ranks]
        assert joined == expected[:-1] + ([kept] if kept else [])


@pytest.mark.parametrize("even", ["drop", "pad"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 6])
@pytest.mark.parametrize("files", [1, 3, 7])
def test_ranks_without_workers_share_every_batch_evenly(folder: Path, files: int, ranks: int, even: str) -> None:
    expected = epoch_ids(folder, 0, files)
    assert sorted(number for batch in expected for number in batch) == list(range(NUM_ROWS))
    check_epoch(process.read_ranks(shuffled(folder, files), ranks, even), expected, ranks, even)


def test_forked_workers_give_the_same_batches_as_no_workers(folder: Path, run: Callable[[str], Any]) -> None:
    results = run("forked_grid")
    assert len(results) == 9
    for read in results:
        even = ("drop", "pad")[read["workers"] % 2]
        check_epoch(read, epoch_ids(folder, 0, read["files"]), read["ranks"], even)


def test_spawned_workers_give_the_same_batches_as_no_workers(folder: Path, run: Callable[[str], Any]) -> None:
    results = run("spawned")
    for epoch, ids in enumerate(results["epochs"]):
        halves = [batch[len(batch) // 2 : len(batch) // 2 * 2] for batch in epoch_ids(folder, epoch)]
        assert ids == halves
    assert results["plain"] == ids_of(tfr.open(str(folder / "3/rows-*")).batch(BATCH))


def test_each_pass_is_the_next_epoch(folder: Path) -> None:
    loader = shuffled(folder).batch(BATCH).to_torch()
    assert repr(loader) == "TorchLoader(12 rows, epoch 0, num_workers=0)"
    assert len(loader) == 5
    assert [loader.epoch, ids_of(loader), loader.epoch, ids_of(loader)] == [
        0,
        epoch_ids(folder, 0),
        1,
        epoch_ids(folder, 1),
    ]
    loader.set_epoch(9)
    assert ids_of(loader) == epoch_ids(folder, 9)


def test_drop_last_leaves_the_short_batch_out(folder: Path) -> None:
    loader = shuffled(folder).batch(BATCH, drop_last=True).to_torch()
    assert len(loader) == 4
    assert ids_of(loader) == epoch_ids(folder, 0)[:4]


def test_distributed_processes_find_their_rank(folder: Path, run: Callable[[str], Any]) -> None:
    expected = epoch_ids(folder, 0)
    assert join_ranks(run("distributed")) == [*expected[:-1], expected[-1] + expected[0][:1]]


def test_two_passes_at_once_are_two_epochs(folder: Path, run: Callable[[str], Any]) -> None:
    pairs = run("two_passes_at_once")
    assert [pair[0] for pair in pairs] == epoch_ids(folder, 0, 1)
    assert [pair[1] for pair in pairs] == epoch_ids(folder, 1, 1)


def test_workers_that_persist_follow_every_order(folder: Path, run: Callable[[str], Any]) -> None:
    passes = run("persistent")
    for epoch in (0, 1, 5, 7):
        assert passes[str(epoch)] == epoch_ids(folder, epoch, 1)
    assert passes["6 start"] + passes["6 rest"] == epoch_ids(folder, 6, 1)
    assert passes["7 start"] == epoch_ids(folder, 7, 1)[:1]


def test_skipped_records_leave_the_same_gaps_with_any_number_of_workers(run: Callable[[str], Any]) -> None:
    for num_batches, passes, records, said in run("skipping"):
        assert num_batches == 3
        assert passes == [[[0, 2, 3], [4, 5, 6], [8, 9]]] * 2
        assert records == [1, 7]
        assert len(said) == 1
        assert said[0].startswith("skipped 2 damaged places, the first: ")


def test_workers_forked_while_threads_read_do_not_hang(run: Callable[[str], Any]) -> None:
    assert run("fork_while_threads_read") == [5] * 5


# ---- going on ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "ranks"), [(BATCH, 1), (BATCH, 2), (4, 1), (30, 3)])
def test_resume_after_every_step_equals_no_stop(folder: Path, size: int, ranks: int) -> None:
    whole = [number for batch in epoch_ids(folder, 0) for number in batch]
    for step in range(6):
        first = shuffled(folder).batch(BATCH).to_torch()
        batches = iter(first)
        before = [number for _ in range(step) for number in next(batches)["id"].tolist()]
        state = first.state_dict()
        assert len(json.dumps(state)) < 1024
        batches.close()
        batches = shuffled(folder).batch(size, per_rank=False)
        loaders = [batches.to_torch(rank=r, world_size=ranks, even="drop") for r in range(ranks)]
        for loader in loaders:
            loader.load_state_dict(json.loads(json.dumps(state)))
        after = [number for batch in join_ranks([ids_of(loader) for loader in loaders]) for number in batch]
        missing = (len(whole) - len(before)) % size % ranks
        assert before + after == whole[: len(whole) - missing]
        assert [loader.epoch for loader in loaders] == [1] * ranks


def test_resume_with_other_numbers_of_workers_equals_no_stop(folder: Path, run: Callable[[str], Any]) -> None:
    for step, (before, after, following) in enumerate(run("resumes")):
        assert len(before) == step
        assert before + after == epoch_ids(folder, 0)
        assert following == epoch_ids(folder, 1)


def test_state_during_the_last_batch_resumes_with_an_empty_pass(folder: Path) -> None:
    loader = shuffled(folder).batch(BATCH).to_torch()
    states = [loader.state_dict() for _ in loader]
    assert (states[-1]["epoch"], states[-1]["row"]) == (0, NUM_ROWS)
    after = loader.state_dict()
    assert (after["epoch"], after["row"]) == (1, 0)
    resumed = shuffled(folder).batch(BATCH).to_torch()
    resumed.load_state_dict(states[-1])
    assert [ids_of(resumed), ids_of(resumed)] == [[], epoch_ids(folder, 1)]
    resumed.load_state_dict(after)
    assert ids_of(resumed) == epoch_ids(folder, 1)


def test_stateful_data_loader_resumes_where_it_stopped(folder: Path, run: Callable[[str], Any]) -> None:
    results = run("stateful")
    assert [(workers, len(before)) for workers, before, *_ in results] == [
        *((0, step) for step in range(6)),
        *((2, step) for step in (0, 1, 4, 5)),
    ]
    for _, before, after, following in results:
        assert before + after == epoch_ids(folder, 0)
        assert following == epoch_ids(folder, 1)


def test_stateful_data_loader_resumes_rows_under_a_sampler(run: Callable[[str], Any]) -> None:
    whole, resumed = run("stateful_rows")
    assert resumed == whole
    assert sorted(number for batch in whole for number in batch) == list(range(NUM_ROWS))


def test_distributed_checkpoint_resumes_with_other_numbers_of_ranks(folder: Path, run: Callable[[str], Any]) -> None:
    read = run("distributed_checkpoint")
    assert [len(ranks) for ranks in read] == [2, 4, 1]
    joined = [batch for ranks in read for batch in join_ranks(ranks)]
    assert joined == epoch_ids(folder, 0)


def test_state_of_another_dataset_raises(folder: Path) -> None:
    state = shuffled(folder, 1).batch(BATCH).to_torch().state_dict()
    loader = shuffled(folder, 3).batch(BATCH).to_torch()
    with pytest.raises(tfr.TfrkitError, match="the state is from another dataset"):
        loader.load_state_dict(state)


def test_state_of_another_order_raises(folder: Path) -> None:
    state = tfr.open(str(folder / "3/rows-*")).shuffle(seed=SEED + 1).batch(BATCH).to_torch().state_dict()
    with pytest.raises(tfr.TfrkitError, match="the state is from another order"):
        shuffled(folder).batch(BATCH).to_torch().load_state_dict(state)


def test_state_of_a_worker_raises(folder: Path) -> None:
    loader = shuffled(folder).batch(BATCH).to_torch()
    state = {**loader.state_dict(), "given": 2, "num_workers": 2}
    with pytest.raises(ValueError, match="expected a state of a loader, got that of one of its workers"):
        loader.load_state_dict(state)
    with pytest.raises(ValueError, match="the state is from one of 2 workers, there are 1"):
        loader.dataset.load_state_dict(state)


# ---- what a batch is -----------------------------------------------------------------------------------------------


def test_columns_become_tensors_over_the_same_memory(folder: Path) -> None:
    batch = next(iter(tfr.open(str(folder / "1/rows-*")).batch(4)))
    tensors = convert_batch(batch)
    assert tensors["id"].dtype == torch.int64
    assert tensors["half"].dtype == torch.float32
    assert tensors["id"].data_ptr() == batch["id"].ctypes.data
    assert tensors["name"] == [b"row\x000", b"row\x001", b"row\x002", b"row\x003"]
    ragged = tensors["tokens"]
    assert isinstance(ragged, RaggedTensor)
    assert ragged.values.data_ptr() == batch["tokens"].values.ctypes.data
    assert [row.tolist() for row in ragged.rows()] == [[], [0], [0, 1], [0, 1, 2]]
    assert ragged.lengths.tolist() == [0, 1, 2, 3]
    assert [row.tolist() for row in ragged.to_nested().unbind()] == [[], [0], [0, 1], [0, 1, 2]]


def test_batch_without_rows_keeps_its_columns(tmp_path: Path) -> None:
    with tfr.Writer(tmp_path / "torn.tfrecord") as writer:
        for number in range(6):
            writer.write({"id": number, "half": 0.5})
        for _ in range(2):
            writer.write_record(b"\xff\xff not an Example")
    ds = tfr.open(tmp_path / "torn.tfrecord", on_error="skip").shuffle(seed=0)
    with pytest.warns(tfr.errors.SkippedRecordsWarning, match="2 damaged places"):
        batches = list(ds.batch(1).to_torch())
    assert sorted(batch["id"].tolist() for batch in batches) == [[], [], [0], [1], [2], [3], [4], [5]]
    assert {(batch["id"].dtype, batch["half"].dtype) for batch in batches} == {(torch.int64, torch.float32)}


def test_tensors_of_a_batch_have_memory_of_their_own(folder: Path) -> None:
    batches = list(tfr.open(str(folder / "1/rows-*")).batch(4).to_torch())
    assert batches[0]["id"].untyped_storage().nbytes() == 4 * 8  # saving one does not save the others
    version = batches[0]["id"]._version
    batches[0]["half"] += 1
    batches[1]["id"] += 1
    assert batches[0]["id"]._version == version
    assert batches[0]["id"].tolist() == [0, 1, 2, 3]


def test_unsigned_long_long_is_uint64() -> None:
    array = np.arange(3, dtype=np.ulonglong)  # another type than np.uint64 on Linux, which is an unsigned long
    assert convert_batch({"a": array})["a"].dtype == torch.uint64


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "uint16", "uint32", "uint64", "float16", "complex64"])
def test_dtype_of_an_array_is_kept(dtype: str) -> None:
    array = np.arange(4).astype(dtype)
    tensor = convert_batch({"x": array})["x"]
    assert str(tensor.dtype) == f"torch.{dtype}"
    assert np.array_equal(tensor.numpy(), array)


def test_array_that_must_not_be_written_is_copied_without_a_warning() -> None:
    array = np.arange(3)
    array.flags.writeable = False
    tensor = convert_batch({"x": array})["x"]
    tensor += 1
    assert array.tolist() == [0, 1, 2]


def test_array_of_dates_stays_an_array() -> None:
    array = np.array(["2024-01-01"], "datetime64[D]")
    assert convert_batch({"x": array})["x"] is array


def test_frames_of_sequences_are_ragged_in_ragged(folder: Path) -> None:
    batch = next(iter(tfr.open(str(folder / "sequences.tfrecord"), schema=SEQUENCES).batch(4).to_torch()))
    assert batch["context"]["id"].tolist() == [0, 1, 2, 3]
    assert batch["feature_lists"]["frame"].rows() == [[], [b"f0"], [b"f0", b"f1"], []]
    words = batch["feature_lists"]["words"].rows()
    assert [[word.tolist() for word in row] for row in words] == [[], [[]], [[], [0]], [[], [0], [0, 1]]]


def test_batches_through_workers_hold_the_same_values(run: Callable[[str], Any]) -> None:
    assert run("same_values") == {"examples": [True, True, 5], "sequences": [True, True, 3]}


def test_large_batches_of_workers_lie_in_shared_memory(run: Callable[[str], Any]) -> None:
    names = run("shared_memory")
    assert len(names) == 10
    assert {name.split("_")[0] for name in names} == {"/dev/shm/torch"}


def test_what_a_collate_function_changes_arrives(run: Callable[[str], Any]) -> None:
    batches = run("changed_in_collate")
    assert batches[0] == [list(range(12)), list(range(1, 13))]
    assert batches[1] == [list(range(112, 124)), list(range(13, 25))]


def test_per_rank_batches_are_of_that_size_on_every_rank(folder: Path) -> None:
    batches = shuffled(folder).batch(6, per_rank=True)
    loaders = [batches.to_torch(rank=rank, world_size=2, even="drop") for rank in range(2)]
    assert [len(loader) for loader in loaders] == [5, 5]
    whole = [number for batch in epoch_ids(folder, 0) for number in batch]
    joined = join_ranks([ids_of(loader) for loader in loaders])
    assert [len(batch) for batch in joined] == [12, 12, 12, 12, 4]
    assert [number for batch in joined for number in batch] == whole[:52]


def test_shared_batch_warns_of_both_sizes(folder: Path) -> None:
    with pytest.warns(tfr.errors.RankBatchWarning, match=r"batch\(12\) over 2 ranks is 6 rows on each rank, 12 on all"):
        shuffled(folder).batch(BATCH).to_torch(rank=0, world_size=2)


def test_data_loader_around_a_loader_is_refused(run: Callable[[str], Any]) -> None:
    said = run("loader_in_loader")
    assert len(said) == 3
    assert all("this is a loader already: iterate over it, without a DataLoader around it" in text for text in said)


def test_data_loaders_of_a_trainer_give_every_row_once(folder: Path, run: Callable[[str], Any]) -> None:
    for name, (lengths, epochs) in run("own_loader").items():
        ranks = int(name.split()[0])
        for epoch, ids in enumerate(epochs):
            check_epoch({"ids": ids, "lengths": lengths}, epoch_ids(folder, epoch), ranks, "pad")


def test_token_budget_batches_are_dealt_to_ranks_and_resume(run: Callable[[str], Any]) -> None:
    result = run("tokens")
    alone = result["alone"]
    assert sorted(number for batch in alone for number in batch) == list(range(NUM_ROWS))
    for before, after in result["ranks"]:
        ranks = [first + second for first, second in zip(before, after, strict=True)]
        dealt = [batch for step in zip(*ranks, strict=True) for batch in step]
        assert dealt[: len(alone)] == alone
        assert dealt[len(alone) :] == alone[: len(dealt) - len(alone)]


# ---- datasets ------------------------------------------------------------------------------------------------------


def test_datasets_are_pytorchs_own_kinds_and_pickle(folder: Path) -> None:
    batches = shuffled(folder).batch(BATCH).to_torch_dataset()
    rows = TorchRows(shuffled(folder))
    assert isinstance(batches, torch.utils.data.IterableDataset)
    assert isinstance(rows, torch.utils.data.Dataset)
    copied = pickle.loads(pickle.dumps(rows))
    assert [copied[number]["id"] for number in range(NUM_ROWS)] == [
        number for b in epoch_ids(folder, 0) for number in b
    ]


def test_rows_are_read_one_by_one_or_many_at_once(folder: Path) -> None:
    rows = TorchRows(tfr.open(str(folder / "1/rows-*")))
    assert len(rows) == NUM_ROWS
    row = rows[5]
    assert (row["id"], row["half"], row["name"]) == (5, 2.5, b"row\x005")
    assert torch.equal(row["pixels"], torch.full((2, 3), 5, dtype=torch.uint8))
    assert [row["id"] for row in rows.__getitems__([3, 1, 52])] == [3, 1, 52]
    with pytest.raises(IndexError, match="record 53 of 53"):
        rows[NUM_ROWS]


def test_rows_under_a_sampler_in_a_spawned_worker(run: Callable[[str], Any]) -> None:
    result = run("rows_in_workers")
    order = [number for file in range(3) for number in range(file, NUM_ROWS, 3)]
    picked = order[::2]
    assert result["ids"] == [picked[:10], picked[10:20], picked[20:]]
    assert result["name"][0] == "row\x000"
    assert result["pixels"] == [[10, 2, 3], "torch.uint8"]


# ---- wrong arguments -----------------------------------------------------------------------------------------------


def test_rank_without_world_size_raises(folder: Path) -> None:
    with pytest.raises(TypeError, match="rank and world_size go together, got rank 1 and world_size None"):
        shuffled(folder).batch(BATCH).to_torch(rank=1)


@pytest.mark.parametrize("name", ["shuffle", "sampler", "drop_last", "collate_fn", "in_order"])
def test_option_that_is_decided_before_raises(folder: Path, name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} is set before PyTorch's loader, got True"):
        shuffled(folder).batch(BATCH).to_torch(**{name: True})


def test_batch_that_does_not_divide_between_ranks_raises(folder: Path) -> None:
    with pytest.raises(ValueError, match="a batch of 12 rows cannot be divided between 5 ranks"):
        shuffled(folder).batch(BATCH).to_torch(rank=0, world_size=5)


# ---- the end -------------------------------------------------------------------------------------------------------


def start(name: str, folder: Path, workers: int = 2) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "WORKERS": str(workers)},
        start_new_session=True,
    )


def wait_for_end(pids: list[int]) -> None:
    """Return when all of these processes are gone; fail if that takes too long."""
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            ended, _, _ = select.select([descriptor], [], [], TIMEOUT)
            assert ended, f"process {pid} is still there"
        finally:
            os.close(descriptor)


def test_killed_training_resumes_where_it_stopped(folder: Path, tmp_path: Path) -> None:
    write_dataset(tmp_path / "3", 3)
    codes = []
    while not codes or codes[-1] != 0:
        child = start("train_and_die", tmp_path)
        output, errors = child.communicate(timeout=TIMEOUT)
        codes.append(child.returncode)
        assert child.returncode in (0, -signal.SIGKILL), errors[-4000:]
        if child.returncode:
            workers = json.loads(output.splitlines()[-1])
            assert len(workers) >= 2
            wait_for_end(workers)
    assert codes == [-signal.SIGKILL, -signal.SIGKILL, 0]
    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert logged == epoch_ids(folder, 0) + epoch_ids(folder, 1)


def test_killed_training_leaves_no_shared_memory(folder: Path) -> None:
    child = start("die_with_shared_memory", folder)
    output, errors = child.communicate(timeout=TIMEOUT)
    assert child.returncode == -signal.SIGKILL, errors[-4000:]
    workers = json.loads(output.splitlines()[-1])
    assert len(workers) >= 2
    wait_for_end(workers)
    # PyTorch names a block by the process that made it.
    pids = {str(pid) for pid in (child.pid, *workers)}
    assert [name for name in os.listdir("/dev/shm") if name.startswith("torch_") and name.split("_")[1] in pids] == []


@pytest.mark.parametrize("workers", [0, 2])
def test_interrupted_loop_ends_at_once_and_leaves_nothing(folder: Path, workers: int) -> None:
    child = start("wait_in_the_middle", folder, workers)
    assert child.stdout is not None
    pids = json.loads(child.stdout.readline())
    assert len(pids) >= workers
    os.killpg(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=TIMEOUT)
    assert child.returncode != 0
    assert "KeyboardInterrupt" in errors
    wait_for_end(pids)


@pytest.mark.parametrize("workers", [0, 2])
def test_failed_consumer_ends_at_once_and_leaves_nothing(folder: Path, workers: int) -> None:
    child = start("fail_in_the_middle", folder, workers)
    output, errors = child.communicate(timeout=TIMEOUT)
    assert child.returncode == 1
    assert errors.rstrip().endswith("ValueError: the consumer failed")
    wait_for_end(json.loads(output.splitlines()[0]))


@pytest.mark.parametrize("rows", [slice(0, 3), slice(1, 3), slice(1, 2), slice(0, 0)])
def test_packed_bytes_are_those_of_the_column(rows: slice) -> None:
    column = BytesColumn.from_values([b"a", b"", b"bcd"])[rows]
    packing = Packing({"x": column, "n": np.arange(5)})
    block = np.zeros(packing.nbytes, np.uint8)
    packing.copy_to(block)
    slots = packing.contents["x"]
    data, offsets = view_slot(block, slots.data), view_slot(block, slots.offsets)
    assert list(BytesColumn(data, offsets)) == [b"a", b"", b"bcd"][rows]
