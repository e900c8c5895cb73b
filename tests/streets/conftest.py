"""The parts of this folder are a package, so that tests/interop asks the same makers."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
