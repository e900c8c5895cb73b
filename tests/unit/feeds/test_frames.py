"""What happens without the libraries; with them, see the interop tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from tfrkit.features.schema import Schema
from tfrkit.feeds.arrow import to_arrow
from tfrkit.feeds.frames import to_pandas, to_polars
from tfrkit.feeds.huggingface import to_hf


@pytest.mark.parametrize(
    ("convert", "package", "extra"),
    [(to_pandas, "pandas", "pandas"), (to_polars, "polars", "polars"), (to_hf, "datasets", "hf")],
)
def test_missing_library_is_reported_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch, convert: Callable[..., Any], package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    stream = to_arrow(lambda: iter(()), Schema({"x": "int64"}))
    with pytest.raises(
        ImportError, match=rf"^{package} is not installed\n  install it: pip install 'tfrkit\[{extra}\]'$"
    ):
        convert(stream)
