"""Public names, import cost, and constructs that are forbidden in the sources."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import tfrkit
from tfrkit import errors

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "tfrkit"
SOURCES = sorted(SRC.rglob("*.py"))
NATIVE = sorted([*(ROOT / "native").rglob("*.cc"), *(ROOT / "native").rglob("*.h")])

# What `import tfrkit` must not load: frameworks, extras, and the heavy parts of the core that only some calls need.
HEAVY = [
    "tensorflow", "torch", "jax", "pyarrow", "pandas", "polars", "duckdb", "PIL", "typer", "rich", "click",
    "indexed_gzip", "rapidgzip", "hypothesis", "pytest", "asyncio", "multiprocessing", "google.protobuf",
    "starlette", "uvicorn", "ray", "dask", "distributed", "tfrkit.view",
]  # fmt: skip


def run_python(code: str, *options: str) -> str:
    done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_public_names_are_few_and_exist() -> None:
    assert len(tfrkit.__all__) <= 15
    assert len(set(tfrkit.__all__)) == len(tfrkit.__all__)
    for name in tfrkit.__all__:
        assert hasattr(tfrkit, name)


def test_public_names_are_documented() -> None:
    undocumented = [
        name for name in tfrkit.__all__ if callable(getattr(tfrkit, name)) and not getattr(tfrkit, name).__doc__
    ]
    assert undocumented == []


def test_import_loads_no_framework_and_nothing_heavy() -> None:
    loaded = json.loads(run_python("import json, sys, tfrkit; print(json.dumps(sorted(sys.modules)))"))
    before = json.loads(run_python("import json, sys, numpy; print(json.dumps(sorted(sys.modules)))"))
    assert sorted(set(loaded) & set(HEAVY) - set(before)) == []


def test_building_pictures_loads_nothing_of_reading_and_no_masked_arrays(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "a1.png")
    code = (
        "import json, sys, tfrkit\n"
        f"source = tfrkit.sources.file_names({str(tmp_path)!r}, label='(?P<class>a)')\n"
        f"tfrkit.build(source, {str(tmp_path / 'out')!r}, jobs=1)\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    loaded = json.loads(run_python(code))
    assert sorted(set(loaded) & {"tfrkit.dataset.dataset", "tfrkit.batches.loop", "numpy.ma", "pyarrow"}) == []


def test_names_that_are_imported_later_are_listed() -> None:
    assert run_python("import tfrkit; print(set(tfrkit.__all__) <= set(dir(tfrkit)))") == "True\n"


def test_import_of_third_parties_is_numpy_and_the_codecs() -> None:
    code = (
        "import json, sys, tfrkit\n"
        "tops = {name.split('.')[0] for name in sys.modules}\n"
        "print(json.dumps(sorted(t for t in tops if t not in sys.stdlib_module_names and not t.startswith('_'))))"
    )
    loaded = set(json.loads(run_python(code, "-I")))
    assert loaded <= {"tfrkit", "numpy", "isal", "zlib_ng", "backports", "sitecustomize", "zstandard"}


@pytest.mark.resources
def test_import_takes_less_time_than_that_of_numpy_alone() -> None:
    """Best of several runs, in CPU time relative to NumPy: absolute seconds differ by a factor of two between machines.

    NumPy is a dependency and takes about half of the 0.2 s allowed for `import tfrkit`.
    """
    code = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"
    whole = min(float(run_python(code.format("tfrkit"))) for _ in range(7))
    numpy = min(float(run_python(code.format("numpy"))) for _ in range(7))
    assert whole - numpy < numpy


def test_import_reads_and_writes_nothing_of_the_user(tmp_path: Path) -> None:
    run_python(f"import os; os.environ['XDG_CACHE_HOME'] = {str(tmp_path)!r}; import tfrkit")
    assert list(tmp_path.iterdir()) == []


# --- sources


def test_no_module_is_named_for_a_concept_not_found() -> None:
    forbidden = {"utils", "util", "helpers", "helper", "common", "misc", "core", "base_utils"}
    named = [path for path in [*SOURCES, *NATIVE] if path.stem in forbidden]
    assert named == []


def find_unmirrored(tests: Path, sources: Path) -> list[str]:
    """List unit tests that name no module of their folder, nor the first word of a group (voc: voc_det, voc_xml)."""
    unmirrored = []
    for test in sorted(tests.rglob("test_*.py")):
        name = test.stem.removeprefix("test_") + "_"
        modules = [path.stem.strip("_") + "_" for path in (sources / test.parent.relative_to(tests)).glob("[!.]*")]
        if not any(name.startswith(module) or module.startswith(name) for module in modules):
            unmirrored.append(str(test.relative_to(tests)))
    return unmirrored


def test_unit_tests_mirror_the_modules() -> None:
    assert find_unmirrored(ROOT / "tests" / "unit", SRC) == []


def test_unit_test_without_a_module_is_found(tmp_path: Path) -> None:
    names = ["src/a/one.py", "src/a/__init__.py", "src/a/xml_file.py", "src/a/pack/__init__.py"]
    names += [f"tests/a/test_{name}.py" for name in ("one", "one_more", "init", "xml", "pack", "ones", "xm")]
    for name in [*names, "tests/b/test_one.py"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = find_unmirrored(tmp_path / "tests", tmp_path / "src")
    assert found == ["a/test_ones.py", "a/test_xm.py", "b/test_one.py"]


def find_dangerous(path: Path) -> list[str]:
    """Places where code is evaluated, pickled or given to a shell."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec"):
                found.append(f"{path}:{node.lineno} {node.func.id}()")
            for keyword in node.keywords:
                if keyword.arg in ("shell", "allow_pickle") and getattr(keyword.value, "value", True):
                    found.append(f"{path}:{node.lineno} {keyword.arg}=True")
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            dangerous = [name for name in names if name.split(".")[0] in ("pickle", "marshal", "shelve")]
            found += [f"{path}:{node.lineno} {name}" for name in dangerous]
    return found


def test_nothing_is_evaluated_pickled_or_given_to_a_shell() -> None:
    assert [found for path in SOURCES for found in find_dangerous(path)] == []


def find_guesses(path: Path) -> list[str]:
    """Places where the kind of an object is guessed from the names it has."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return [f"{path}:{node.lineno}" for node in calls if getattr(node.func, "id", "") == "hasattr"]


def test_builds_ask_a_reader_for_its_kind() -> None:
    assert [found for path in (SRC / "build").rglob("*.py") for found in find_guesses(path)] == []


def test_guesses_are_found(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("if hasattr(reader, 'read'): pass")
    assert find_guesses(path) == [f"{path}:1"]


def names_everything(node: ast.expr | None) -> bool:
    """Whether an except clause, or the argument of suppress, takes every exception; also as one of a tuple."""
    if isinstance(node, ast.Tuple):
        return any(names_everything(element) for element in node.elts)
    return node is None or getattr(node, "id", getattr(node, "attr", None)) in ("Exception", "BaseException")


def find_swallowed(path: Path) -> list[str]:
    """Places where every exception is caught and none raised again."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ExceptHandler):
            is_last_resort = path == SRC / "cli" / "main.py" and "print_exc" in ast.dump(node)
            raises = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
            if names_everything(node.type) and not raises and not is_last_resort:
                found.append(f"{path}:{node.lineno}")
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "suppress":
            found += [f"{path}:{node.lineno}" for argument in node.args if names_everything(argument)]
    return found


def test_no_exception_is_swallowed_wholesale() -> None:
    """`except Exception` may clean up but must re-raise. Exception: the CLI entry point prints the traceback and
    fails."""
    assert [found for path in SOURCES for found in find_swallowed(path)] == []


@pytest.mark.parametrize(
    "code",
    [
        "try: f()\nexcept: pass",
        "try: f()\nexcept (ValueError, Exception): pass",
        "with suppress(Exception): f()",
        "with contextlib.suppress(OSError, BaseException): f()",
    ],
)
def test_swallowed_exceptions_are_found(tmp_path: Path, code: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(code)
    assert len(find_swallowed(path)) == 1


def test_only_the_bindings_know_python() -> None:
    guilty = [
        str(path.relative_to(ROOT))
        for path in NATIVE
        if "bindings" not in path.parts and re.search(r"#include\s*[<\"](Python\.h|nanobind)", path.read_text())
    ]
    assert guilty == []


def test_core_does_not_throw_or_log() -> None:
    """A standard-library exception may be raised and caught within one file but must not leave it."""
    guilty = []
    core = [path for path in NATIVE if path.is_relative_to(ROOT / "native" / "core")]
    assert core
    for path in core:
        text = path.read_text()
        for number, line in enumerate(text.splitlines(), 1):
            code = line.split("//")[0]
            if "throw std::bad_alloc()" in code and "catch (const std::bad_alloc&)" in text:
                continue
            if re.search(r"\b(throw\b|printf\s*\(|std::cout|std::cerr)", code):
                guilty.append(f"{path.name}:{number}")
    assert guilty == []


# Room of native/core: the rooms it may include. native/os may include base, native/engine the core and native/os.
NATIVE_ROOMS = {
    "base": set(),
    "frames": {"base"},
    "wire": {"base"},
    "columns": {"base", "frames", "wire"},
    "stats": {"base", "wire"},
    "images": {"base"},
    "tables": {"base"},
    "os": {"base"},
    "engine": {"base", "frames", "wire", "columns", "os"},
}


def test_native_rooms_include_only_those_below() -> None:
    guilty = []
    for path in NATIVE:
        room = path.parent.name
        if path.parents[1].name != "core" and room not in ("os", "engine"):
            continue
        for included in re.findall(r'#include "(?:core/)?(\w+)/\w+\.h"', path.read_text()):
            if included != room and included not in NATIVE_ROOMS[room]:
                guilty.append(f"{room}/{path.name} includes {included}")
    assert guilty == []


# --- errors


def error_classes() -> list[type[errors.TfrkitError]]:
    return [
        value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.TfrkitError)
    ]


def test_error_tree_is_the_drawn_one() -> None:
    drawn = set(re.findall(r"(\w+Error)", (errors.__doc__ or "")))
    assert drawn == {kind.__name__ for kind in error_classes()}


@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__name__)
def test_error_message_has_the_form_of_the_guide(kind: type[errors.TfrkitError]) -> None:
    error = kind("what, stored 1, computed 2", shard="a.tfrecord", record=3, offset=4, hint="next step")
    assert str(error) == "what, stored 1, computed 2 - at a.tfrecord, record 3, byte 4\n  next step"
    assert (error.shard, error.record, error.offset) == ("a.tfrecord", 3, 4)


def raised_messages() -> list[tuple[str, str]]:
    """(place, first piece of text) of every error of ours raised in the sources with a literal message."""
    names = {kind.__name__ for kind in error_classes()} | {"ValueError", "TypeError", "OverflowError", "IndexError"}
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args):
                continue
            if getattr(node.exc.func, "id", None) not in names:
                continue
            text = _literal(node.exc.args[0])
            if text:
                found.append((f"{path.relative_to(SRC)}:{node.lineno}", text))
    return found


def _literal(node: Any) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""


def test_messages_are_lower_case_without_full_stop_or_manners() -> None:
    wrong = []
    for place, text in raised_messages():
        first = text.split("\n")[0]
        # A name of a class or a format may start a sentence; an ordinary word may not be capitalised.
        if re.match(r"[A-Z][a-z]+ ", first) and not re.match(
            r"(Example|Git|SequenceExample|Python|TensorFlow|NumPy) ", first
        ):
            wrong.append(f"{place} starts with a capital: {first}")
        if first.endswith(".") and not first.endswith("..."):
            wrong.append(f"{place} ends with a full stop: {first}")
        if re.search(r"\b(please|sorry|error:|oops|invalid)\b", first, re.IGNORECASE):
            wrong.append(f"{place} has a word the guide forbids: {first}")
    assert wrong == []
    assert len(raised_messages()) > 20


def test_tests_patch_limits_and_no_private_constants() -> None:
    """A size that a test makes small stands in `tfrkit._limits`."""
    patch = re.compile(r'setattr\(\s*(?:\w+, "|"[\w.]+\.)_[A-Z][A-Z_]+"')
    found = [path.name for path in (ROOT / "tests").rglob("*.py") if patch.search(path.read_text(encoding="utf-8"))]
    assert found == []
