"""What the numbers were measured on."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path
from typing import Any

from environments import Environments

PACKAGES = (
    "tfrkit",
    "tensorflow-cpu",
    "numpy",
    "isal",
    "zlib-ng",
    "simplejpeg",
    "pillow",
    "torch",
    "pandas",
    "pyarrow",
)


def describe(peers: tuple[str, ...], environments: Environments) -> dict[str, Any]:
    """Return machine, date and versions; a package that is not installed is None."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    versions |= {package: environments.find_version(package) for package in (*PACKAGES, *peers)}
    return {
        "machine": f"{processor_name()}, {os.cpu_count()} cores, {memory_gib()} GiB, {platform.system()} "
        f"{platform.release().partition('-')[0]}",
        "date": datetime.date.today().isoformat(),
        "versions": versions,
    }


def processor_name() -> str:
    """Return the processor's name for people."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def memory_gib() -> int:
    """Return the size of memory."""
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
