"""Mutate what Python parses, with coverage as a guide.

python tests/trust/fuzz_python.py [--seconds 30] [surface ...]

Prints executions, rate and findings of each surface; the input of a finding stays in build-fuzz/python. Needs atheris.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent.parent / "build-fuzz" / "python"


def fuzz_here(name: str, options: list[str]) -> None:
    """Fuzz one surface in this process, which libFuzzer ends."""
    import atheris

    with atheris.instrument_imports(include=["tfrkit", "json", "xml"]):
        from surfaces import SURFACES
    surface = SURFACES[name]
    corpus = BUILD / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(surface.seeds()):
        (corpus / f"seed{number}").write_bytes(seed)
    arguments = ["fuzz", *options, f"-artifact_prefix={BUILD}/{name}-", "-print_final_stats=1", str(corpus)]
    atheris.Setup(arguments, lambda data: surface.try_one(data) and None)
    atheris.Fuzz()


def fuzz(name: str, seconds: int) -> tuple[int, float, bool]:
    """Fuzz one surface in a process of its own: executions, CPU seconds, and whether there is a finding."""
    options = [f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=2048", "-max_len=4096"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    log = BUILD / f"{name}.log"
    with log.open("wb") as file:
        code = subprocess.run([sys.executable, __file__, "--here", name, *options], stdout=file, stderr=file).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = log.read_text(errors="replace")
    executed = re.findall(r"number_of_executed_units:\s+(\d+)", text) or re.findall(r"^#(\d+)\s", text, re.MULTILINE)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return int(executed[-1]) if executed else 0, spent, code != 0


def add_to_totals(name: str, executions: int) -> int:
    path = BUILD / "totals.json"
    totals = json.loads(path.read_text()) if path.exists() else {}
    totals[name] = totals.get(name, 0) + executions
    path.write_text(json.dumps(totals, indent=1, sort_keys=True))
    return sum(totals.values())


def main() -> int:
    if sys.argv[1:2] == ["--here"]:
        fuzz_here(sys.argv[2], sys.argv[3:])
        return 0
    from surfaces import SURFACES

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("surfaces", nargs="*", help=f"of {', '.join(SURFACES)}; default: all")
    parser.add_argument("--seconds", type=int, default=30, help="for each surface")
    options = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    num_findings = total = 0
    print(f"{'surface':<14}{'executions':>12}{'per CPU s':>12}  findings", flush=True)
    for name in options.surfaces or SURFACES:
        executions, spent, has_finding = fuzz(name, options.seconds)
        num_findings += has_finding
        total = add_to_totals(name, executions)
        print(f"{name:<14}{executions:>12,}{executions / spent:>12,.0f}  {'1' if has_finding else 'none'}", flush=True)
        if has_finding:
            print(f"  see {BUILD / name}.log and {BUILD / name}-*", flush=True)
    print(f"{num_findings} findings; {total:,} executions in this folder so far")
    return 1 if num_findings else 0


if __name__ == "__main__":
    sys.exit(main())
