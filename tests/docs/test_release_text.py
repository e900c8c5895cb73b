"""The text of a release in two languages, from notes and their Chinese summary."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "release" / "text.py"
NOTES = {"seek.feature": "Seeks are fast.", "seek.fix": "Seeks end."}
SUMMARY = "<!-- head -->\n\n## 新功能\n\n- 定位很快。 <!-- seek -->\n\n## 修复\n\n- 定位会结束。 <!-- seek -->\n"


def write_text(folder: Path, summary: str) -> subprocess.CompletedProcess[str]:
    for name, text in {
        **{f"changes/{name}.md": text for name, text in NOTES.items()},
        "release/summary.zh.md": summary,
        "README.md": "# x\n\n- **Fast.** [Numbers](n.md)\n\nmore\n",
        "README.zh.md": "# x\n\n- **快。** 见[数字](n.md)\n\n其他\n",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-X", "utf8", str(SCRIPT), "1.2.3", "."]
    return subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", timeout=60)


def test_each_language_has_its_own_text(tmp_path: Path) -> None:
    assert write_text(tmp_path, SUMMARY).returncode == 0
    english, chinese = ((tmp_path / name).read_text(encoding="utf-8") for name in ("RELEASE.md", "RELEASE.zh.md"))
    assert english.endswith("- **Fast.** Numbers\n\n## New (1)\n\n- Seeks are fast.\n\n## Fixed (1)\n\n- Seeks end.\n")
    assert chinese.endswith("- **快。** 见数字\n\n## 新功能\n\n- 定位很快。\n\n## 修复\n\n- 定位会结束。\n")
    assert "tfrkit==1.2.3" in english and "tfrkit==1.2.3" in chinese


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("- 定位会结束。 <!-- seek -->\n", "", "notes that no line sums up: seek.fix"),
        ("很快。 <!-- seek -->", "很快。 <!-- seek sekk -->", "names of no note: sekk.feature"),
        ("很快。 <!-- seek -->", "很快。 <!-- seek seek -->", "notes that two lines sum up: seek.feature"),
        ("很快。 <!-- seek -->", "很快。", "expected the names of notes after this line: - 定位很快。"),
    ],
    ids=["missing", "unknown", "twice", "unnamed"],
)
def test_summary_that_does_not_fit_the_notes_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    done = write_text(tmp_path, SUMMARY.replace(old, new))
    assert (done.returncode, message in done.stderr) == (1, True), done.stderr
    assert not (tmp_path / "RELEASE.md").exists()
