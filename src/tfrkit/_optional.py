"""Optional packages: imported when needed, with an install hint if missing."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

FAST_PACKAGES = {
    "isal": "reading gzip and zlib takes about twice as long, writing them for speed five times",
    "zlib_ng": "writing gzip and zlib takes about twice as long",
    "simplejpeg": "decoding JPEGs takes three to five times as long, and damage inside progressive ones is not found",
}
"""Packages that are used where they are installed: what is missed without each. Records and pixels are the same."""


def find_missing_packages() -> dict[str, str]:
    """Return the packages of `FAST_PACKAGES` that are not installed."""
    return {name.replace("_", "-"): cost for name, cost in FAST_PACKAGES.items() if not importlib.util.find_spec(name)}


def import_or_explain(name: str, extra: str) -> ModuleType:
    """Import the module `name`, or raise an ImportError with the command that installs it.

    `extra` is the extra of tfrkit that installs it. The hint is only for a missing package: an installed package that
    fails to import raises its own error.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise ImportError(
            f"{package} is not installed\n  install it: pip install 'tfrkit[{extra}]'", name=error.name
        ) from error
