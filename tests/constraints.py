"""Write tests/constraints.txt: the version of each package in the test environments, against surprises by new releases.

`make constraints` makes the environments without the file first, so it is also how the versions are raised.
"""

import re
import subprocess
import sys
from pathlib import Path

HEADER = """\
# Exact versions for the environments of the Makefile, written by `make constraints`. tfrkit itself asks for ranges
# (pyproject.toml); this file only keeps a release of somebody else's package from changing what a test run means.
"""
# pip comes with the interpreter, tfrkit is what is tested.
OURS = {"pip", "tfrkit"}


def installed(python: Path) -> dict[str, str]:
    """Name to version, without the local part: 2.13.0+cpu and 2.13.0 are one release in two builds."""
    output = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], check=True, capture_output=True, text=True
    ).stdout
    pairs = (line.split("==") for line in output.splitlines())
    return {re.sub(r"[-_.]+", "-", name).lower(): version.partition("+")[0] for name, version in pairs}


def release(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def main(environments: list[str]) -> None:
    pinned: dict[str, str] = {}
    for environment in environments:
        for name, version in installed(Path(environment) / "bin" / "python").items():
            # The older of two: the environment that has it is the one that cannot take the newer. setuptools also comes
            # with the interpreter, in a version that nobody asked for.
            older = max if name == "setuptools" else min
            pinned[name] = older(pinned.get(name, version), version, key=release)
    lines = [f"{name}=={version}" for name, version in sorted(pinned.items()) if name not in OURS]
    Path(__file__).with_name("constraints.txt").write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"tests/constraints.txt: {len(lines)} packages of {len(environments)} environments")


main(sys.argv[1:])
