"""Arguments under the names they had in TensorFlow 1."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def also_called(**names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function accept arguments under old names too: `also_called(dim="axis")`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*values: Any, **options: Any) -> Any:
            return function(*values, **{names.get(name, name): value for name, value in options.items()})

        call.old_names = names  # type: ignore[attr-defined]
        return call

    return decorate
