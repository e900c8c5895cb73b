"""The import table of CONTRIBUTING.md, as a test: read from the sources, nothing is imported."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "tfrkit"


def read_table() -> dict[str, set[str]]:
    """Layer: the layers it may import, from CONTRIBUTING.md. A layer may always import itself."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"## What may import what\n+```\n(.*?)```", text, re.DOTALL)
    table: dict[str, set[str]] = {}
    for line in re.sub(r"\n +", " ", block).splitlines():
        layers, allowed = line.split(":")
        table |= {layer.strip(): set(allowed.split()) - {"nothing"} for layer in layers.split(",")}
    return table


TABLE = read_table()
# The public modules and the test tools may import everything; no layer may import the test tools.
FREE = {"__init__", "testing"}
FRAMEWORKS = {
    "tensorflow",
    "torch",
    "jax",
    "pyarrow",
    "pandas",
    "polars",
    "duckdb",
    "datasets",
    "ray",
    "dask",
    "distributed",
}
# Optional packages may be imported inside functions only, and only in these layers.
# (`dataset` only names the types of what its feeds give.)
# `ray` and `spark` are for users of one framework, who import them by name.
MAY_USE_FRAMEWORKS = {"dataset", "feeds", "engines", "build", "ops", "cli", "compat", "features", "ray", "spark"}


def sources() -> list[Path]:
    return sorted(path for path in SRC.rglob("*.py") if path.suffix == ".py")


def layer_of(path: Path) -> str:
    """The folder of a file, or its name; a folder in `ops` is a layer of its own."""
    parts = path.relative_to(SRC).parts
    return ".".join(parts[:2]) if parts[0] == "ops" and len(parts) > 2 else parts[0].removesuffix(".py")


def imported_modules(path: Path) -> list[tuple[int, str]]:
    """(line, full module name) of every import, also those inside functions; relative ones made absolute."""
    package = ["tfrkit", *path.relative_to(SRC).parts[:-1]]
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package[: len(package) - node.level + 1], *([base] if base else [])])
            if base == "tfrkit":
                found += [(node.lineno, f"tfrkit.{alias.name}") for alias in node.names]
            else:
                found.append((node.lineno, base))
    return found


def find_edges(path: Path) -> list[tuple[int, str]]:
    """(line, layer) of every import of another layer of ours; seen from outside, `ops` is one."""
    layer = layer_of(path)
    edges = []
    for line, name in imported_modules(path):
        package, _, rest = name.partition(".")
        target = rest.split(".")[0]
        if target == "ops" and layer.startswith("ops") and (SRC / "/".join(rest.split(".")[:2])).is_dir():
            target = ".".join(rest.split(".")[:2])
        if package == "tfrkit" and target and target != layer:
            edges.append((line, target))
    return edges


def find_forbidden(path: Path) -> list[str]:
    layer = layer_of(path)
    if layer in FREE:
        return []
    if layer not in TABLE:
        return [f"{path}: {layer} is not in the import table of CONTRIBUTING.md: put the file in a layer"]
    allowed = TABLE[layer] | ({"_core"} if layer == "_native" else set())
    return [
        f"{path}:{line} {layer} imports {target}; it may import {', '.join(sorted(allowed)) or 'nothing of ours'}"
        for line, target in find_edges(path)
        if target not in allowed
    ]


def test_imports_obey_the_table() -> None:
    assert [wrong for path in sources() for wrong in find_forbidden(path)] == []


def test_table_allows_only_what_is_used() -> None:
    used = {(layer_of(path), target) for path in sources() for _, target in find_edges(path)}
    assert [(layer, target) for layer in TABLE for target in sorted(TABLE[layer]) if (layer, target) not in used] == []


def find_frameworks(path: Path) -> list[str]:
    """Frameworks a file imports at its top, or at all below the layers that may know them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_top = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in at_top if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in at_top if isinstance(node, ast.ImportFrom)}
    if layer_of(path).split(".")[0] not in MAY_USE_FRAMEWORKS | FREE:
        names |= {name for _, name in imported_modules(path)}
    return [f"{path}: {name}" for name in sorted({name.split(".")[0] for name in names} & FRAMEWORKS)]


def test_frameworks_are_imported_inside_functions_only() -> None:
    assert [found for path in sources() for found in find_frameworks(path)] == []


def test_nothing_imports_the_test_tools() -> None:
    users = [
        f"{path}:{line}"
        for path in sources()
        if layer_of(path) != "testing"
        for line, name in imported_modules(path)
        if name.startswith("tfrkit.testing")
    ]
    assert users == []


def test_test_reference_imports_nothing_of_ours() -> None:
    names = [name for _, name in imported_modules(SRC / "testing" / "reference.py")]
    assert [name for name in names if name.startswith("tfrkit") or name.split(".")[0] == "numpy"] == []


def test_table_would_catch_a_forbidden_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks themselves can fail."""
    path = tmp_path / "storage" / "bad.py"
    path.parent.mkdir()
    path.write_text("def f():\n    from ..codec import columns\n")
    monkeypatch.setitem(globals(), "SRC", tmp_path)
    assert imported_modules(path) == [(2, "tfrkit.codec")]
    (wrong,) = find_forbidden(path)
    assert "bad.py:2 storage imports codec; it may import" in wrong
