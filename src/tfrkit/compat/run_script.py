"""Run an unchanged script as Python would, with compat in place of TensorFlow."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.abc import InspectLoader
from types import CodeType, ModuleType, TracebackType
from typing import Any

from tfrkit.compat import stand_ins
from tfrkit.compat.missing_modules import explain_module
from tfrkit.compat.namespace import MissingNameError
from tfrkit.compat.stand_ins import MissingModuleError
from tfrkit.errors import TfrkitError

# Python's exit code for an uncaught error.
_UNCAUGHT = 1
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

# Processes that multiprocessing spawns get our sys.path, but not our finders.
_FOR_CHILDREN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "children")


class _ScriptLoader(InspectLoader):
    """Loads a script from its source. No bytecode is cached, as Python caches none for a script."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self._source = source

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self._source)

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self._source, self.path)
        return code


def run_script(path: str, arguments: Sequence[str] = ()) -> None:
    """Run a script as `__main__`, with its arguments in `sys.argv` and its own folder first on `sys.path`.

    Returns when the script ends. Its `SystemExit` is passed on. An uncaught error is shown as Python shows it, from
    the script's first stack frame on, and becomes SystemExit(1). A name that compat does not offer and a module
    that is not installed raise TfrkitError with the line of the script. The process belongs to the script from here on:
    nothing that the script changes is restored.
    """
    loader = _ScriptLoader(os.path.abspath(path), read_script(path))
    stand_ins.install()
    module = ModuleType("__main__")
    vars(module).update({"__file__": loader.path, "__loader__": loader, "__cached__": None})
    sys.modules["__main__"] = module
    sys.argv = [path, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    sys.path.insert(1, _FOR_CHILDREN)
    try:
        loader.exec_module(module)
    except SystemExit:
        raise
    except BaseException as error:
        _remember(error)
        if not isinstance(error, Exception):
            raise  # the caller handles Ctrl-C and the like
        missing = _explain(error, loader.path, path)
        if missing is not None:
            raise missing from error
        trace = _cut_frames(error.__traceback__, loader.path)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        raise SystemExit(_UNCAUGHT) from None


def read_script(path: str) -> bytes:
    """Read a script; TfrkitError if it is not a Python script."""
    if os.path.isdir(path):
        raise TfrkitError("expected a Python script, got a folder", shard=path)
    with open(path, "rb") as file:
        source = file.read()
    if path.endswith(".ipynb"):
        raise TfrkitError(
            "expected a Python script, got a notebook",
            shard=path,
            hint=f"convert it: jupyter nbconvert --to script {path}",
        )
    if b"\0" in source:
        raise TfrkitError("expected a Python script, got a binary file", shard=path)
    return source


def _remember(error: BaseException) -> None:
    """Store the error where Python stores an uncaught one: open writers check it, and discard their files."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    sys.last_exc = error  # type: ignore[attr-defined, unused-ignore]


def _cut_frames(trace: TracebackType | None, script: str) -> TracebackType | None:
    """Drop stack frames before the script and inside tfrkit; keep all if TFR_DEBUG is set."""
    if os.environ.get("TFR_DEBUG", "") not in ("", "0"):
        return trace
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    at = trace
    while at is not None:
        while at.tb_next is not None and at.tb_next.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            at.tb_next = at.tb_next.tb_next
        at = at.tb_next
    return trace


def _explain(error: Exception, script: str, shown: str) -> TfrkitError | None:
    """Explain a missing name or module in one message; return None for errors of the script itself."""
    what: str
    hint: str | None
    if isinstance(error, (MissingNameError, MissingModuleError)):
        what, hint = error.what, error.advice
    elif isinstance(error, ModuleNotFoundError) and error.name:
        what, hint = explain_module(error.name)
    else:
        return None
    return TfrkitError(what, shard=_find_place(error, script, shown), hint=hint)


def _find_place(error: Exception, script: str, shown: str) -> str:
    """Return file and line in the script, or in a module next to it, that caused the error."""
    frames: list[Any] = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((_PACKAGE, "<frozen "))
    ]
    folder = os.path.dirname(script) + os.sep
    nearby = [frame for frame in frames if frame.filename.startswith(folder) and "site-packages" not in frame.filename]
    if not frames:
        return shown
    frame = (nearby or frames)[-1]
    return f"{shown if frame.filename == script else frame.filename}, line {frame.lineno}"
