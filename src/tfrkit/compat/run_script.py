"""Run an unchanged script as Python would, with TensorFlow's names meaning compat's."""

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

# Processes that multiprocessing starts anew have our sys.path, but not our finders.
_FOR_CHILDREN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "children")


class _ScriptLoader(InspectLoader):
    """Holds a script that is compiled already. Nothing is cached beside the script, as Python does for a script."""

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

    Returns when the script has run to its end. Its `SystemExit` passes. An uncaught error is shown as Python shows
    it, from the script's first frame on, and becomes SystemExit(1). A name that compat does not offer and a module
    that is not installed raise TfrkitError with the line of the script. The process is the script's from here on:
    nothing of what it changes is put back.
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
            raise  # Ctrl-C and its like are the caller's to end
        missing = _explain(error, loader.path, path)
        if missing is not None:
            raise missing from error
        trace = _cut_frames(error.__traceback__, loader.path)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        raise SystemExit(_UNCAUGHT) from None


def read_script(path: str) -> bytes:
    """The bytes of a script; TfrkitError for what is none."""
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
    """Leave the error where Python leaves one that ended a script: open writers look there, and give up their files."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    sys.last_exc = error  # type: ignore[attr-defined, unused-ignore]


def _cut_frames(trace: TracebackType | None, script: str) -> TracebackType | None:
    """The frames from the script on, without those inside tfrkit; all of them where TFR_DEBUG is set."""
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
    """One message for what tfrkit lacks or the machine has not installed; None for errors of the script itself."""
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
    """File and line of the script, or of the module beside it, that asked."""
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
