"""The import table of the style guide, as a test: read from the sources, nothing is imported."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src" / "tfrkit"

# Layer: the layers it may import. A layer may always import itself.
TABLE: dict[str, set[str]] = {
    "errors": set(),
    "_types": set(),
    "_native": set(),
    "_version": set(),
    "_ahead": set(),
    "_familiar": set(),
    "_optional": {"errors"},
    "storage": {"_native", "errors", "_types", "_optional"},
    "images": {"_native", "errors", "_types", "_optional"},
    "features": {"errors", "_types"},
    "codec": {"features", "_native", "errors", "_types"},
    "container": {"storage", "_native", "errors", "_types"},
    # Which record stands where: index arithmetic for reading (splits, shuffles, batches) and for building.
    "orders": {"codec", "_native", "errors", "_types"},
    # What lies beside shards: read and written here alone.
    "sidecars": {"_version", "orders", "container", "features", "storage", "errors", "_types"},
    # Rows of an iterable are spooled by the writer that everybody uses, before their number is known.
    # Cells of CSV are parsed by the core.
    "sources": {
        "sidecars",
        "writer",
        "features",
        "images",
        "storage",
        "container",
        "codec",
        "_ahead",
        "_native",
        "_optional",
        "errors",
        "_types",
    },
    "batches": {
        "sidecars",
        "_ahead",
        "orders",
        "container",
        "codec",
        "features",
        "images",
        "storage",
        "_native",
        "errors",
        "_types",
    },
    # A shard task is the write street for one file, so it goes through `writer`. The schema of records that came
    # without one is read off what was written, by `batches`.
    "build": {
        "sidecars",
        "_ahead",
        "_version",
        "batches",
        "orders",
        "sources",
        "writer",
        "container",
        "codec",
        "features",
        "storage",
        "errors",
        "_types",
    },
    # Verbs that query or export go through Arrow (feeds); those that write go through `writer`.
    "ops": {
        "sidecars",
        "_ahead",
        "_version",
        "batched",
        "feeds",
        "orders",
        "batches",
        "build",
        "sources",
        "writer",
        "_native",
        "_optional",
        "container",
        "codec",
        "features",
        "images",
        "storage",
        "errors",
        "_types",
    },
    # A feed takes columns apart (codec), and Arrow is handed their buffers by native code.
    "feeds": {"_ahead", "batches", "orders", "codec", "features", "_native", "_optional", "errors", "_types"},
    # The face of the read street: `batched` is what Dataset.batch gives, `feeding` its ways into other libraries,
    # `opening` makes Datasets.
    "batched": {"_familiar", "feeds", "batches", "orders", "features", "errors", "_types"},
    "feeding": {"batched", "feeds", "batches", "orders", "features"},
    "dataset": {
        "_familiar",
        "feeding",
        "batched",
        "ops",
        "batches",
        "orders",
        "container",
        "features",
        "storage",
        "errors",
        "_types",
    },
    "opening": {"_familiar", "dataset", "batches", "orders", "container", "features", "storage", "errors", "_types"},
    # The write street for one file: what `dataset` is for reading. It puts codec and container together.
    "writer": {"sidecars", "container", "codec", "features", "storage", "_native", "errors", "_types"},
    # Old scripts look at records one by one, as messages (_native), and decode pictures inside parse functions.
    "compat": {"dataset", "writer", "container", "codec", "features", "images", "_native", "errors", "_types"},
    # One sub-command of `tfr build` for each source.
    "cli": {"dataset", "ops", "build", "sources", "features", "errors", "_version"},
    # `python -m tfrkit`.
    "__main__": {"cli"},
    # The verbs as functions.
    "tools": {"ops"},
    "viewer": {"dataset", "ops", "features", "images", "errors"},
}
# The public face and the test tools see everything; nothing of ours may import the test tools.
FREE = {"__init__", "testing"}
FRAMEWORKS = {"tensorflow", "torch", "jax", "pyarrow", "pandas", "polars", "duckdb", "datasets", "ray", "dask"}
# Optional packages may be imported inside functions only, and only in these layers.
# (`feeding` only names the types of what it gives.)
MAY_USE_FRAMEWORKS = {"feeding", "feeds", "build", "ops", "cli", "compat", "viewer", "features"}


def sources() -> list[Path]:
    return sorted(path for path in SRC.rglob("*.py") if path.suffix == ".py")


def layer_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


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


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(SRC)))
def test_imports_obey_the_table(path: Path) -> None:
    layer = layer_of(path)
    if layer in FREE:
        return
    assert layer in TABLE, f"{layer} is not in the import table of STYLE.md: put the file in a layer"
    wrong = []
    for line, name in imported_modules(path):
        parts = name.split(".")
        if parts[0] == "tfrkit" and len(parts) > 1:
            target = parts[1]
            if target == "_core":
                if layer != "_native":
                    wrong.append(f"{path}:{line} imports _core; only _native.py does")
            elif target != layer and target not in TABLE[layer]:
                allowed = ", ".join(sorted(TABLE[layer])) or "nothing of ours"
                wrong.append(f"{path}:{line} {layer} imports {target}; it may import {allowed}")
    assert wrong == []


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(SRC)))
def test_frameworks_are_imported_inside_functions_only(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_top = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in at_top if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in at_top if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} & FRAMEWORKS == set()
    if layer_of(path) not in MAY_USE_FRAMEWORKS | FREE:
        used = {name.split(".")[0] for _, name in imported_modules(path)}
        assert used & FRAMEWORKS == set(), f"{path} knows a framework below feeds"


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
    """A check that has never failed proves nothing."""
    path = tmp_path / "storage" / "bad.py"
    path.parent.mkdir()
    path.write_text("def f():\n    from ..codec import columns\n")
    monkeypatch.setitem(globals(), "SRC", tmp_path)
    assert imported_modules(path) == [(2, "tfrkit.codec")]
    with pytest.raises(AssertionError, match=r"bad\.py:2 storage imports codec; it may import"):
        test_imports_obey_the_table(path)
