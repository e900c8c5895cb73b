"""Slices of splits: tfrkit takes the records that tensorflow-datasets takes, or says why not."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest

from tfrkit.errors import QueryError
from tfrkit.orders.slice_syntax import resolve_slices

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tfds = pytest.importorskip("tensorflow_datasets")
    from tensorflow_datasets.core import splits as tfds_splits

pytestmark = pytest.mark.filterwarnings("ignore")  # TFDS's own

# TFDS gives surprising results for these; tfrkit refuses them with this message.
REFUSED = (
    "so the slice has no bound there",
    "expected one unit in a slice",
    "stops at shard 0",
    "is outside the split, which has",
    "after its stop at",
)


def ask_tfds(spec: str, shards: dict[str, list[int]]) -> list[tuple[str, int, int]] | None:
    """(split, start, stop) of each slice, None where TFDS raises."""
    infos = {
        name: tfds_splits.SplitInfo(name=name, shard_lengths=lengths, num_bytes=0) for name, lengths in shards.items()
    }
    try:
        found = tfds.core.ReadInstruction.from_spec(spec).to_absolute(infos)
    except (ValueError, NotImplementedError):
        return None
    return [
        (str(part.splitname), part.from_ or 0, sum(shards[str(part.splitname)]) if part.to is None else part.to)
        for part in found
    ]


def ask_ours(spec: str, shards: dict[str, list[int]]) -> list[tuple[str, int, int]] | str:
    """(split, start, stop) of each slice, or the message."""
    sizes = {name: sum(lengths) for name, lengths in shards.items()}
    try:
        return [(part.split, part.start, part.stop) for part in resolve_slices(spec, sizes, shard_sizes=shards)]
    except QueryError as error:
        return str(error)


def assert_agree(spec: str, shards: dict[str, list[int]]) -> None:
    ours, theirs = ask_ours(spec, shards), ask_tfds(spec, shards)
    if isinstance(ours, str):
        assert theirs is None or any(words in ours for words in REFUSED), (spec, shards, ours, theirs)
    else:
        assert ours == theirs, (spec, shards)


def make_bound(rng: random.Random, unit: str, shards: list[int]) -> str:
    if rng.random() < 0.15:
        return ""
    sign = rng.choice(["", "", "-"])
    if unit == "%":
        return f"{sign}{rng.choice([rng.randrange(101), round(rng.uniform(0, 100), 3), 0.5, 12.5, 33.33])}%"
    limit = len(shards) if unit == "shard" else sum(shards)
    return f"{sign}{rng.randrange(limit + 2)}{unit}"


def make_spec(rng: random.Random, shards: dict[str, list[int]]) -> str:
    terms = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        name = rng.choice([*shards, *shards, *shards, "all", "other"])
        unit = rng.choice(["", "%", "%", "shard"])
        lengths = shards.get(name, [10])
        shape = rng.random()
        if shape < 0.1:
            terms.append(name)
        elif shape < 0.2:
            terms.append(f"{name}[{make_bound(rng, unit, lengths)}]")
        else:
            other = unit if rng.random() < 0.8 else rng.choice(["", "%", "shard"])
            terms.append(f"{name}[{make_bound(rng, unit, lengths)}:{make_bound(rng, other, lengths)}]")
    return rng.choice(["+", " + ", "+ "]).join(terms)


def test_random_specs_give_the_same_records(seed: int) -> None:
    rng = random.Random(seed)
    taken = 0
    for _ in range(5000):
        shards = {
            name: [rng.choice([0, 1, 3, 7, 10, 99, 1250]) for _ in range(rng.randrange(1, 5))]
            for name in ("train", "test", "unsupervised-2")
        }
        spec = make_spec(rng, shards)
        assert_agree(spec, shards)
        taken += isinstance(ask_ours(spec, shards), list)
    assert taken > 1500  # so that refusing everything does not pass


def test_every_percentage_is_rounded_alike() -> None:
    for size in [1, 2, 3, 7, 10, 25, 50, 99, 100, 101, 199, 200, 777, 1000, 60_000, 1_281_167]:
        for percent in range(201):
            for spec in (f"train[:{percent / 2:g}%]", f"train[{percent / 2:g}%:]", f"train[-{percent / 2:g}%:]"):
                assert_agree(spec, {"train": [size]})


@pytest.mark.parametrize(
    "spec",
    [
        "train[:75%]", "train[100:200]", "train[-10%:]", "train[10%:20%]+test[:5]", "train[:2shard]", "train[1shard]",
        "all", "all+test", "train[10:20%]", "train[:1_000]", "train[.5%:5.%]", "train[-1shard:]", "train[:-1shard]",
    ],
)  # fmt: skip
def test_documented_forms_are_taken(spec: str) -> None:
    shards: dict[str, list[int]] = {"train": [500, 400, 300], "test": [40]}
    found: Any = ask_ours(spec, shards)
    assert found == ask_tfds(spec, shards)
    assert isinstance(found, list)


@pytest.mark.parametrize(
    "spec",
    ["", "train[]", "train[:]", "train[5]", "train[5%]", "train[1:2:3]", "train [:5]", " train", "train+",
     "train[2.5:]", "train[: 5]", "train[x:]", "train[:101%]", "train[:1201]", "other", "all[:5]", "train[:1__0]",
     "train[--5:]", "train[5", "train]", "train[:1.2.3%]", "train[:5pct]"],
)  # fmt: skip
def test_what_tfds_refuses_is_refused(spec: str) -> None:
    shards: dict[str, list[int]] = {"train": [500, 400, 300], "test": [40]}
    assert ask_tfds(spec, shards) is None
    assert isinstance(ask_ours(spec, shards), str)
