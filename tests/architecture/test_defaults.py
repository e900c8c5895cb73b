"""Defaults that texts repeat."""

from __future__ import annotations

from tfrkit._limits import DEFAULT_SHARD_NBYTES
from tfrkit.build.run import build
from tfrkit.ops.reshape.split import split


def test_docstrings_name_the_default_size_of_a_shard() -> None:
    size = f"{DEFAULT_SHARD_NBYTES >> 20}MiB"
    for function in (build, split):
        assert f"efault {size}." in (function.__doc__ or "").replace(" MiB", "MiB"), function.__name__
