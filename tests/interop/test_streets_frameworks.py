"""The makers of tests/streets through PyTorch, tf.data, JAX, pandas and polars: values, dtypes and counts survive."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from streets.cells import make
from streets.makers import MAKERS
from streets.storages import STORAGES
from streets.truth import Feature, Made, Row, Value, freeze, freeze_row

import tfrkit as tfr

pytestmark = pytest.mark.filterwarnings("ignore")  # of the frameworks

STORED = ("file_gzip", "folder_north_gzip", "folder_plain")


def _numbers(made: Made) -> dict[str, Feature]:
    """Numeric features of fixed shape, present in every row: an array in each framework."""
    return {
        name: feature
        for name, feature in made.truth.features.items()
        if feature.dtype != "bytes" and None not in feature.shape and not feature.optional and not name.endswith("[]")
    }


def _open(made: Made) -> tfr.Dataset:
    return tfr.open(made.path).select(list(_numbers(made)))


def ask_torch(made: Made) -> list[Row]:
    """As a DataLoader collates them."""
    from torch.utils.data import default_collate

    rows = _open(made).to_torch()
    batches = [default_collate([rows[k]]) for k in range(len(rows))]
    return _unfold(iter(batches), made)


def ask_torch_batches(made: Made) -> list[Row]:
    return _unfold(iter(_open(made).batch(5).to_torch()), made)


def ask_torch_device(made: Made) -> list[Row]:
    """As the batches lie on a device, which here is the CPU: all numbers by one copy."""
    return _unfold(iter(_open(made).batch(5).to_torch(device="cpu")), made)


def ask_torch_dataset(made: Made) -> list[Row]:
    """As a trainer's own DataLoader returns them."""
    from torch.utils.data import DataLoader

    return _unfold(iter(DataLoader(_open(made).batch(5).to_torch_dataset(), batch_size=None)), made)


def ask_tf(made: Made) -> list[Row]:
    return [
        {name: _from_array(row[name].numpy(), feature) for name, feature in _numbers(made).items()}
        for row in _open(made).to_tf()
    ]


def ask_jax(made: Made) -> list[Row]:
    import jax

    jax.config.update("jax_enable_x64", True)  # without, integers beyond 32 bits are refused
    try:
        return _unfold(iter([_open(made).to_jax()]), made)
    finally:
        jax.config.update("jax_enable_x64", False)


def ask_pandas(made: Made) -> list[Row]:
    return _from_records(_open(made).to_pandas().to_dict("records"), made)


def ask_polars(made: Made) -> list[Row]:
    return _from_records(_open(made).to_polars().to_dicts(), made)


FEEDS: dict[str, Callable[[Made], list[Row]]] = {
    "to_torch": ask_torch,
    "torch_batches": ask_torch_batches,
    "torch_device": ask_torch_device,
    "torch_dataset": ask_torch_dataset,
    "to_tf": ask_tf,
    "to_jax": ask_jax,
    "to_pandas": ask_pandas,
    "to_polars": ask_polars,
}
# Their rows are DataFrames, or they have none.
EXAMPLES = [name for name in MAKERS if name not in ("bare_raw", "writer_sequence", "frames", "frames_table")]


PAIRS = [(made, stored) for made in EXAMPLES for stored in STORED if MAKERS[made].can_store(STORAGES[stored])]


@pytest.mark.parametrize(("made", "stored"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_every_framework_gets_what_went_in(made: str, stored: str, tmp_path: Path) -> None:
    dataset = make(made, stored, tmp_path)
    names = _numbers(dataset)
    expected = [{name: row[name] for name in names} for row in dataset.rows]
    wrong = []
    for feed, ask in FEEDS.items():
        found = ask(dataset)
        if found != expected:
            wrong.append(f"{made}-{stored}-{feed}: {_first_difference(found, expected)}")
    assert not wrong, "\n".join(wrong)


def _from_array(value: Any, feature: Feature) -> Value:
    if isinstance(value, (int, float)):
        return freeze(value, feature)
    array = np.asarray(value)
    return (str(array.dtype), array.shape, array.tobytes())


def _from_records(records: list[dict[str, Any]], made: Made) -> list[Row]:
    names = _numbers(made)
    return [freeze_row({name: _to_list(row[name]) for name in names}, names) for row in records]


def _to_list(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [_to_list(item) for item in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _unfold(batches: Iterator[Any], made: Made) -> list[Row]:
    rows: list[Row] = []
    for batch in batches:
        columns = {name: np.asarray(batch[name]) for name in _numbers(made)}
        size = len(next(iter(columns.values())))
        rows += [
            {name: _from_array(column[k], made.truth[name]) for name, column in columns.items()} for k in range(size)
        ]
    return rows


def _first_difference(found: list[Row], expected: list[Row]) -> str:
    if len(found) != len(expected):
        return f"{len(found)} rows, expected {len(expected)}"
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        for name in other:
            if one[name] != other[name]:
                return f"row {number}: {name} is {one[name]!r:.80}, expected {other[name]!r:.80}"
    return ""
