"""JAX: device arrays, shardings, and resuming."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import tfrkit as tfr  # noqa: E402

NUM_ROWS = 20


@pytest.fixture
def dataset(tmp_path: Path) -> tfr.Dataset:
    path = str(tmp_path / "a.tfrecord")
    with tfr.Writer(path) as writer:
        for number in range(NUM_ROWS):
            row = {"id": number, "half": number / 2, "tokens": np.arange(number % 3), "name": b"n%d" % number}
            writer.write({**row, "pixels": np.full((2, 2), number, np.uint8)})
    return tfr.open(path)


def ids_of(batches: Any) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def test_numbers_are_device_arrays_and_the_rest_stays(dataset: tfr.Dataset) -> None:
    batch = next(iter(dataset.batch(3).to_jax()))
    for name, dtype, shape in [("id", "int32", (3,)), ("half", "float32", (3,)), ("pixels", "uint8", (3, 2, 2))]:
        assert isinstance(batch[name], jax.Array)
        assert (str(batch[name].dtype), batch[name].shape) == (dtype, shape)
    assert batch["half"].tolist() == [0.0, 0.5, 1.0]
    assert isinstance(batch["name"], tfr.BytesColumn)
    assert [row.tolist() for row in batch["tokens"]] == [[], [0], [0, 1]]


def test_ragged_feature_passes_through_jit_as_a_tree(dataset: tfr.Dataset) -> None:
    ragged = next(iter(dataset.batch(3).to_jax()))["tokens"]
    assert isinstance(ragged.values, jax.Array)
    total = jax.jit(lambda ragged: ragged.values.sum() + ragged.row_splits[-1])(ragged)
    assert int(total) == 1 + 3


def test_each_pass_is_the_next_epoch(dataset: tfr.Dataset) -> None:
    batches = dataset.shuffle(seed=3).batch(6)
    expected = [ids_of(batches), ids_of(batches)]
    loader = dataset.shuffle(seed=3).batch(6).to_jax()
    assert len(loader) == 4
    assert [ids_of(loader), ids_of(loader)] == expected
    loader.set_epoch(1)
    assert ids_of(loader) == expected[1]


def test_resume_after_every_step_equals_no_stop(dataset: tfr.Dataset) -> None:
    whole = ids_of(dataset.shuffle(seed=3).batch(6).to_jax())
    for step in range(5):
        loader = dataset.shuffle(seed=3).batch(6).to_jax()
        batches = iter(loader)
        before = [next(batches)["id"].tolist() for _ in range(step)]
        state = json.loads(json.dumps(loader.state_dict()))
        assert state["row"] == sum(map(len, before))
        resumed = dataset.shuffle(seed=3).batch(6).to_jax()
        resumed.load_state_dict(state)
        assert before + ids_of(resumed) == whole


def test_ranks_get_their_part_of_every_batch(dataset: tfr.Dataset) -> None:
    parts = [ids_of(dataset.batch(6, per_rank=False).to_jax(rank=rank, world_size=2)) for rank in range(2)]
    assert [a + b for a, b in zip(*parts, strict=True)] == ids_of(dataset.batch(6))


def test_state_of_another_order_raises(dataset: tfr.Dataset) -> None:
    state = dataset.shuffle(seed=4).batch(6).to_jax().state_dict()
    with pytest.raises(tfr.TfrkitError, match="the state is from another order"):
        dataset.shuffle(seed=3).batch(6).to_jax().load_state_dict(state)


def test_damage_comes_after_the_batches_before_it(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with tfr.Writer(str(path)) as writer:
        for number in range(6):
            writer.write({"id": number})
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    seen = []
    with pytest.raises(tfr.errors.CorruptRecordError, match="payload checksum mismatch.*record 5"):
        for batch in tfr.open(str(path)).batch(2).to_jax():
            seen.append(batch["id"].tolist())
    assert seen == [[0, 1], [2, 3]]


def test_integers_beyond_32_bits_raise_instead_of_being_cut_off(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    with tfr.Writer(path) as writer:
        writer.write({"id": 2**31})
    with pytest.raises(
        tfr.errors.SchemaError, match="feature 'id' expected integers that fit in 32 bits.*got 2147483648"
    ):
        next(iter(tfr.open(path).batch(1).to_jax()))


def test_integers_at_the_limits_of_32_bits_are_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    with tfr.Writer(path) as writer:
        writer.write({"id": 2**31 - 1})
        writer.write({"id": -(2**31)})
    assert next(iter(tfr.open(path).batch(2).to_jax()))["id"].tolist() == [2**31 - 1, -(2**31)]


def test_rank_without_world_size_raises(dataset: tfr.Dataset) -> None:
    with pytest.raises(TypeError, match="rank and world_size go together, got rank 0 and world_size None"):
        dataset.batch(2).to_jax(rank=0)


def test_whole_dataset_is_a_dict_of_arrays(dataset: tfr.Dataset) -> None:
    assert dataset.to_jax()["id"].tolist() == list(range(NUM_ROWS))


def test_sharding_spreads_a_batch_over_devices(dataset: tfr.Dataset) -> None:
    """In its own process: the number of devices is fixed when JAX starts."""
    script = textwrap.dedent("""
        import sys
        import jax
        import numpy as np
        import tfrkit as tfr

        mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
        dataset = tfr.open(sys.argv[1])
        for batch in dataset.batch(8, drop_last=True).to_jax(sharding=sharding):
            assert len(batch["pixels"].sharding.device_set) == 4
            assert [len(shard.data) for shard in batch["id"].addressable_shards] == [2] * 4
            assert isinstance(batch["tokens"].values, np.ndarray)
            print(batch["id"].tolist())
        try:
            list(dataset.batch(6).to_jax(sharding=sharding))
        except tfr.errors.ShapeError as error:
            print(error)
    """)
    done = subprocess.run(
        [sys.executable, "-c", script, dataset.files[0]],
        capture_output=True,
        text=True,
        timeout=120,
        env={"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu", **_environment()},
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [json.loads(line) for line in lines[:2]] == [list(range(8)), list(range(8, 16))]
    assert lines[2].startswith("feature 'half' of shape (6,) cannot be divided by the sharding")
    assert lines[-1].endswith("leave out a last batch of fewer rows: batch(size, drop_last=True)")


def _environment() -> dict[str, str]:
    import os

    return {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "JAX_PLATFORMS")}


def test_device_without_a_gpu_raises_one_sentence(dataset: tfr.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    if any(found.platform != "cpu" for found in jax.devices()):
        pytest.skip("there is a GPU")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match="^device 'cuda' expected a GPU, PyTorch sees none\n  leave .* and to_jax:"):
        dataset.batch(3).to_jax(device="cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(RuntimeError, match="^device 'cuda:0' expected a GPU, JAX sees none, only PyTorch does\n"):
        dataset.batch(3).to_jax(device="cuda:0")
