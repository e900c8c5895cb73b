"""Where each side runs: here, or in another environment for peers that do not go with the rest."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LIST = """
import importlib.metadata, json
print(json.dumps({found.metadata["Name"].lower().replace("_", "-"): found.version
                  for found in importlib.metadata.distributions()}))
"""


@dataclass(frozen=True)
class Environments:
    """Python interpreters and their packages, in search order."""

    installed: dict[str, dict[str, str]]

    def find_python(self, distribution: str) -> str | None:
        """Return the first Python that has a distribution."""
        name = distribution.lower().replace("_", "-")
        return next((python for python, versions in self.installed.items() if name in versions), None)

    def find_version(self, distribution: str) -> str | None:
        """Return the version that is used."""
        python = self.find_python(distribution)
        return self.installed[python][distribution.lower().replace("_", "-")] if python else None


def look_around(more: Sequence[Path]) -> Environments:
    """Return what there is, in this environment and in others."""
    pythons = [sys.executable, *map(str, more)]
    return Environments({python: list_installed(python) for python in pythons})


def list_installed(python: str) -> dict[str, str]:
    """Return distributions and their versions."""
    done = subprocess.run([python, "-c", LIST], check=True, capture_output=True, text=True)
    versions: dict[str, str] = json.loads(done.stdout)
    return versions
