"""Optional packages are imported, or explained."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tfrkit._optional import import_or_explain


def test_import_or_explain_installed_module_is_given() -> None:
    assert import_or_explain("json", "none") is json


def test_import_or_explain_missing_package_names_the_command() -> None:
    with pytest.raises(
        ImportError, match=r"no_such_package is not installed\n  install it: pip install 'tfrkit\[arrow\]'"
    ):
        import_or_explain("no_such_package.inner", "arrow")


def test_import_or_explain_broken_package_keeps_its_own_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tfrkit_test_broken.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_package'"):
        import_or_explain("tfrkit_test_broken", "arrow")
    assert "tfrkit_test_broken" not in sys.modules
