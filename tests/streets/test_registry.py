"""A verb, a source or a feed that is added later fails here until it joins the streets by one line."""

from __future__ import annotations

import pytest

import tfrkit as tfr
from streets.askers import ASKERS
from streets.cells import list_askers, list_pairs
from streets.makers import MAKERS
from streets.storages import COMPRESSIONS, STORAGES
from tfrkit.container.compression import COMPRESSIONS as KNOWN_COMPRESSIONS
from tfrkit.testing.commands import find_commands

# Why something is not in the streets.
ELSEWHERE = {
    "bench": "measures time; what it reads is what `open` reads",
    "completion": "reads no data: tests/shells/test_tab.py",
    "run": "runs a script; what scripts read and write: tests/cli/test_run.py, tests/docs/test_tutorials.py",
    "to_torch": "tests/interop/test_streets_frameworks.py",
    "to_tf": "tests/interop/test_streets_frameworks.py",
    "to_jax": "tests/interop/test_streets_frameworks.py",
    "to_pandas": "tests/interop/test_streets_frameworks.py",
    "to_polars": "tests/interop/test_streets_frameworks.py",
    "to_grain": "rows by number, as `open` gives them: tests/interop/test_grain.py",
    "to_hf": "the Arrow stream of to_arrow: tests/interop/test_frames.py",
}


def _covered() -> set[str]:
    makers = {name for maker in MAKERS.values() for name in maker.covers}
    return makers | {name for asker in ASKERS.values() for name in asker.covers}


def test_every_command_is_in_a_street() -> None:
    assert set(find_commands()) - _covered() - ELSEWHERE.keys() == set()


def test_every_source_is_in_a_street() -> None:
    assert {f"sources.{name}" for name in tfr.sources.__all__} - _covered() - ELSEWHERE.keys() == set()


def test_every_feed_is_in_a_street() -> None:
    feeds = {name for name in dir(tfr.Dataset) if name.startswith("to_")}
    assert feeds - _covered() - ELSEWHERE.keys() == set()


def test_every_compression_is_a_storage_of_files_and_of_folders() -> None:
    assert COMPRESSIONS == KNOWN_COMPRESSIONS
    assert {storage.compression for storage in STORAGES.values() if storage.layout == "file"} == set(COMPRESSIONS)


def test_what_is_elsewhere_exists_and_is_in_no_street() -> None:
    known = {*find_commands(), *(name for name in dir(tfr.Dataset) if name.startswith("to_"))}
    assert ELSEWHERE.keys() <= known
    assert ELSEWHERE.keys() & _covered() == set()


@pytest.mark.parametrize("asked", ASKERS)
def test_every_asker_meets_every_maker_and_every_storage(asked: str) -> None:
    met = [(made, stored) for made, stored in list_pairs() if asked in list_askers(made, stored)]
    assert {made for made, _ in met} == set(MAKERS)
    assert {stored for _, stored in met} == set(STORAGES)
