"""Imports of an unchanged script: `import tensorflow` means `tfrkit.compat`, whether TensorFlow is installed or not.

Two finders are added to Python's own. The first handles all of `tensorflow`, and the modules of `object_detection`
that compat has; other modules of an installed Object Detection API are found as usual. The last is used if no other
finder succeeds: for slim's `datasets.dataset_utils` and for `absl`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tfrkit.compat.namespace import MissingNameError, Namespace, explain_missing

_OURS = "tfrkit.compat"
_FIRST = {
    name: f"{_OURS}.{name}"
    for name in (
        "object_detection",
        "object_detection.dataset_tools",
        "object_detection.dataset_tools.tf_record_creation_util",
        "object_detection.utils",
        "object_detection.utils.dataset_util",
        "object_detection.utils.label_map_util",
    )
}
_LAST = {"datasets": f"{_OURS}.slim.datasets", "datasets.dataset_utils": f"{_OURS}.slim.datasets.dataset_utils"}
_LAST_NAMES = {"absl.app": "app", "absl.flags": "flags", "absl.logging": "logging"}


class MissingModuleError(ModuleNotFoundError):
    """A module of TensorFlow that compat does not offer; `what` and `advice` are those of `MissingNameError`."""

    def __init__(self, missing: MissingNameError) -> None:
        # Without `name`: with one, Python may replace this error by its own.
        super().__init__(str(missing))
        self.what = missing.what
        self.advice = missing.advice


class _StandIn(Loader):
    """Loads a module that already exists."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is complete."""


class FirstFinder(MetaPathFinder):
    """Finds modules before any installed package."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname.partition(".")[0] == "tensorflow":
            return _make_spec(fullname, find_names(fullname), ())
        if fullname in _FIRST:
            return _make_spec(fullname, vars(importlib.import_module(_FIRST[fullname])), _find_folders(fullname))
        return None


class LastFinder(MetaPathFinder):
    """Finds modules that are neither installed nor next to the script."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname in _LAST:
            return _make_spec(fullname, vars(importlib.import_module(_LAST[fullname])), ())
        if fullname == "absl":
            return _make_spec(fullname, {}, ())
        if fullname in _LAST_NAMES:
            return _make_spec(fullname, find_names(f"tensorflow.{_LAST_NAMES[fullname]}"), ())
        top = fullname.partition(".")[0]
        if top in ("absl", "datasets") and isinstance(getattr(sys.modules.get(top), "__loader__", None), _StandIn):
            # The missing module belongs to the real package, so report that package as missing.
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)
        return None


def install() -> None:
    """Make imports of TensorFlow in this process import compat."""
    if not any(isinstance(finder, FirstFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, FirstFinder())
        sys.meta_path.append(LastFinder())


def find_names(fullname: str) -> dict[str, Any]:
    """Return the names of `tensorflow` or one of its modules; MissingModuleError if compat does not have it."""
    from tfrkit.compat import tensorflow
    from tfrkit.compat.inner_names import CORE, PYTHON
    from tfrkit.compat.names import NAMES

    found: Any = {**NAMES, "python": PYTHON, "core": CORE, "__getattr__": tensorflow.__getattr__}
    path = "tf"
    for name in fullname.split(".")[1:]:
        path = f"{path}.{name}"
        found = found.get(name)
        if not isinstance(found, Namespace):
            raise MissingModuleError(explain_missing(path, NAMES if path.count(".") == 1 else ()))
        found = {**vars(found), "__getattr__": found.__getattr__}
    return dict(found)


def _make_spec(fullname: str, names: dict[str, Any], folders: Sequence[str]) -> ModuleSpec:
    module = ModuleType(fullname)
    vars(module).update({name: value for name, value in names.items() if name not in _OF_THE_SPEC})
    spec = ModuleSpec(fullname, _StandIn(module), is_package=True)
    spec.submodule_search_locations = list(folders)
    return spec


_OF_THE_SPEC = ("__name__", "__loader__", "__package__", "__spec__", "__path__", "__file__", "__cached__")


def _find_folders(fullname: str) -> list[str]:
    """Return the folders of that package on `sys.path`."""
    inner = fullname.replace(".", os.sep)
    return [folder for folder in (os.path.join(entry or ".", inner) for entry in sys.path) if os.path.isdir(folder)]
