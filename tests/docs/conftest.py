"""The tests of this folder import what writes and runs the pages, which is in docs/."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
