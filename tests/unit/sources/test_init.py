"""Names of `tfr.sources`, loaded lazily."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tfrkit import sources


@pytest.mark.parametrize("name", sources.__all__)
def test_every_source_is_a_documented_class(name):
    assert isinstance(getattr(sources, name), type)
    assert getattr(sources, name).__doc__


@pytest.mark.parametrize("name", [name for name in sources.__all__ if name != "ImageOptions"])
def test_every_source_has_the_contract(name):
    source = getattr(sources, name)
    assert all(hasattr(source, part) for part in ("kind", "title", "options", "scan"))


def test_importing_a_module_does_not_hide_the_source_of_its_name():
    assert sources.file_names is sys.modules["tfrkit.sources.file_names"].FileNames


def test_names_are_listed():
    assert set(sources.__all__) <= set(dir(sources))


def test_nothing_is_loaded_before_it_is_used():
    code = "import sys, tfrkit; print([n for n in sys.modules if n.startswith('tfrkit.sources.')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
