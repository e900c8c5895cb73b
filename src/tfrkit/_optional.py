"""Optional packages: imported when needed, with an install hint if missing."""

from __future__ import annotations

import importlib
from types import ModuleType


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
