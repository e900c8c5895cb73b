from __future__ import annotations

from pathlib import Path

import pytest

from tfrkit import _threads


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({}, None),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "100\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000\n"}, None),
    ],
)
def test_limit_of_the_control_group_is_read(tmp_path: Path, files: dict[str, str], wanted: float | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert _threads._read_quota(str(tmp_path)) == wanted


def test_cores_are_no_more_than_the_control_group_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_threads.os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    for quota, wanted in ((None, 8), (0.2, 1), (2.5, 3), (64.0, 8)):
        monkeypatch.setattr(_threads, "_read_quota", lambda root: quota)  # noqa: B023
        assert _threads.count_cores() == wanted
