"""What tfrkit costs: peak memory of a streaming pass, index size and build time, installed size."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def measure(root: Path) -> dict[str, Any]:
    return {}
