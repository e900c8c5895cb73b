"""Forged sidecars, journals and states, and links in outputs: nothing elsewhere is read, written or removed.

The forged files are in bad/forged, made by make_forged.py there; each case lies over a copy of old/version_1/dataset.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import tfrkit as tfr
from tfrkit.errors import StaleIndexError, TfrkitError

FORGED = Path(__file__).parent / "bad" / "forged"
DATASET = Path(__file__).parent / "old" / "version_1" / "dataset"
FIRST = "dataset-train.tfrecord-00000-of-00002"
Run = Callable[..., "subprocess.CompletedProcess[str]"]

# What `tfr verify` says, and its exit code. All rows are read in every case: only the files of the folder count.
SIDECARS: dict[str, tuple[int, str]] = {
    "manifest_leads_above": (0, "not listed in tfrkit.json"),
    "manifest_leads_absolute": (0, "not listed in tfrkit.json"),
    "manifest_leads_parent": (0, "not listed in tfrkit.json"),
    "manifest_of_fewer_records": (1, "expected 4 records as tfrkit.json says, got 5"),
    "manifest_of_huge_counts": (1, "expected 4,611,686,018,427,387,904 records as tfrkit.json says, got 5"),
    "manifest_too_deep": (1, "manifest cannot be used, it is not JSON: too deep"),
    "tfds_leads_above": (0, "ok, 20 records"),
    "tfds_leads_absolute": (0, "ok, 20 records"),
    "tfds_split_leads_above": (0, "ok, 20 records"),
    "tfds_of_huge_lengths": (1, "expected one of 2 shards as dataset_info.json says, got one of 1"),
    "tfds_of_20000_shards": (1, "expected one of 20000 shards as dataset_info.json says, got one of 2"),
    "tfds_names_code": (1, "its top-level feature has the unknown class 'os.system'"),
}
INDEXES: dict[str, str] = {
    "index_in_another_order": "index is damaged, offsets do not ascend in page 0",
    "index_of_one_record_again_and_again": "index is damaged, offsets do not ascend in page 0",
    "index_without_a_record": "index lists 6 records, expected 7",
    "index_past_the_end": "index offsets do not fit a shard, the last frame starts at 4611686018427387904",
    "index_into_a_payload": "index lists another place than the one of record 1",
}
CHANGES = ["change_replaces_above", "change_removes_above", "change_replaces_absolute"]
BUILDS: dict[str, int] = {"build_removes_above": 3, "build_plan_too_deep": 0}
STATES = ["past_the_end", "before_the_start", "of_text", "of_another_dataset", "of_a_huge_epoch"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with things of the user next to the dataset `d`, which comes from elsewhere."""
    (tmp_path / "precious").write_text("precious")
    with tfr.Writer(tmp_path / "secret.tfrecord") as writer:
        for number in range(7):
            writer.write({"name": "secret", "label": number, "x": [0.5]})
    return tmp_path


def forge(root: Path, case: str, *, has_dataset: bool = True) -> Path:
    folder = root / "d"
    if has_dataset:
        shutil.copytree(DATASET, folder)
    shutil.copytree(FORGED / case, folder, dirs_exist_ok=True)
    for path in folder.rglob("*.json"):
        path.write_bytes(path.read_bytes().replace(b"{root}", os.fsencode(root)))
    return folder


def check(ran: subprocess.CompletedProcess[str], root: Path) -> None:
    assert "Traceback" not in ran.stderr
    assert "secret" not in ran.stdout
    assert (root / "precious").read_text() == "precious"
    assert not any(path.name == "ran" for path in root.rglob("*"))


def test_every_case_has_an_answer() -> None:
    cases = {path.name for path in FORGED.iterdir() if path.is_dir()} - {"__pycache__", "states"}
    assert cases == {*SIDECARS, *INDEXES, *CHANGES, *BUILDS}
    assert {path.stem for path in (FORGED / "states").iterdir()} == {*STATES}


@pytest.mark.parametrize("case", SIDECARS)
def test_forged_sidecar_leads_nowhere_and_verify_names_it(case: str, root: Path, run_tfr: Run) -> None:
    folder = forge(root, case)
    if case.startswith("tfds"):
        (folder / "tfrkit.json").unlink()
    code, answer = SIDECARS[case]
    verify = run_tfr("verify", folder)
    check(verify, root)
    assert (verify.returncode, answer in verify.stdout + verify.stderr) == (code, True), verify.stdout + verify.stderr
    rows = run_tfr("cat", folder)
    check(rows, root)
    assert rows.returncode == 0 and rows.stdout.count("record ") == 20


@pytest.mark.parametrize("case", INDEXES)
def test_forged_index_is_found(case: str, root: Path, run_tfr: Run) -> None:
    is_own = case == "index_into_a_payload"
    folder = forge(root, case, has_dataset=not is_own)
    verify = run_tfr("verify", folder)
    check(verify, root)
    assert verify.returncode == 1 and INDEXES[case] in verify.stdout


@pytest.mark.parametrize("case", [case for case in INDEXES if case != "index_into_a_payload"])
def test_forged_index_gives_no_wrong_row(case: str, root: Path) -> None:
    folder = forge(root, case)
    with tfr.open(DATASET / FIRST) as sound:
        right = [row["name"] for row in sound]
    with tfr.open(folder / FIRST) as ds:
        for number, name in enumerate(right):
            try:
                assert ds[number]["name"] == name
            except TfrkitError as error:
                assert (
                    isinstance(error, StaleIndexError) or "ends inside a frame" in str(error) or "got 6" in str(error)
                )


@pytest.mark.parametrize("case", CHANGES)
def test_forged_journal_of_a_change_touches_nothing(case: str, root: Path, run_tfr: Run) -> None:
    folder = forge(root, case)
    for arguments in (["--restore"], ["--where", "label = 1", "--set", "label = 2", "--in-place"]):
        ran = run_tfr("edit", folder, *arguments)
        check(ran, root)
        assert ran.returncode == 3 and "expected journal.json of an interrupted change, got another one" in ran.stderr


@pytest.mark.parametrize("case", BUILDS)
def test_forged_journal_of_a_build_touches_nothing(case: str, root: Path, run_tfr: Run) -> None:
    folder = forge(root, case, has_dataset=False)
    (root / "table.csv").write_text("a,b\n1,2\n3,4\n")
    ran = run_tfr("build", "table", root / "table.csv", "-o", folder)
    check(ran, root)
    assert ran.returncode == BUILDS[case]
    forced = run_tfr("build", "table", root / "table.csv", "-o", folder, "--force")
    check(forced, root)
    assert forced.returncode == 0
    with tfr.open(folder) as ds:
        assert sorted(row["a"] for row in ds) == [1, 3]


@pytest.mark.parametrize("case", STATES)
def test_forged_state_is_refused_and_no_row_is_lost(case: str) -> None:
    state = json.loads((FORGED / "states" / f"{case}.json").read_text())
    with tfr.open(DATASET) as ds:
        batches = iter(ds["train"].shuffle(seed=3).batch(4))
        with pytest.raises((TfrkitError, ValueError, TypeError)):
            batches.load_state_dict(state)
        assert sum(len(batch["name"]) for batch in batches) == 15


def test_link_in_an_output_folder_is_replaced_and_not_followed(root: Path, run_tfr: Run) -> None:
    source, out = DATASET / FIRST, root / "out"
    out.mkdir()
    (out / FIRST).symlink_to(root / "precious")
    ran = run_tfr("convert", source, "-o", f"{out}/", "--force")
    check(ran, root)
    assert ran.returncode in (0, 3), ran.stderr
    assert ran.returncode == 3 or (out / FIRST).read_bytes() == source.read_bytes()


def test_folder_that_becomes_a_link_meanwhile_is_not_followed(root: Path) -> None:
    out, elsewhere = root / "out", root / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (elsewhere / FIRST).write_text("precious")
    writer = tfr.Writer(out / FIRST)
    writer.write({"a": 1})
    out.rename(root / "moved")
    out.symlink_to(elsewhere)
    with pytest.raises(TfrkitError):
        writer.close()
    assert (elsewhere / FIRST).read_text() == "precious"
    assert [path.name for path in elsewhere.iterdir()] == [FIRST]
