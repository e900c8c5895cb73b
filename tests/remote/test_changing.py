"""Changed copies, repaired files and exports: from each place to each place the same files as on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contents import read_folder, read_place
from PIL import Image
from places import WRITABLE, Place

import tfrkit as tfr
from tfrkit.testing.commands import run_command

CHANGES: dict[str, list[str]] = {
    "edit": ["edit", "{source}", "-o", "{out}", "--where", "label = 1", "--set", "label = 0"],
    "drop": ["edit", "{source}", "-o", "{out}", "--where", "id < 7", "--drop"],
    "append": ["append", "{source}", "{more}", "-o", "{out}", "--split", "train"],
    "dedupe": ["dedupe", "{source}", "-o", "{out}", "--by", "label"],
}
EXPORTS: dict[str, list[str]] = {
    "jsonl": ["jsonl", "-o", "{out}/x.jsonl"],
    "csv": ["csv", "--select", "id", "--select", "label", "-o", "{out}/"],
    "npz": ["npz", "--select", "id", "--select", "label", "-o", "{out}/x.npz"],
    "images": ["images", "-o", "{out}"],
    "webdataset": ["webdataset", "-o", "{out}"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of pictures in two splits, another file with the same features, and a damaged file."""
    folder = tmp_path_factory.mktemp("made")
    chance = np.random.default_rng(1)

    def rows(start: int, stop: int) -> list[dict[str, Any]]:
        found = []
        for number in range(start, stop):
            path = folder / "x.png"
            Image.fromarray(chance.integers(0, 255, (8, 8, 3), np.uint8)).save(path)
            found.append({"id": number, "label": number % 3, "image": path.read_bytes()})
            path.unlink()
        return found

    tfr.build(rows(0, 60), folder / "data", splits={"test": 0.2}, shards={"train": 3, "test": 1}, jobs=1)
    with tfr.Writer(folder / "more.tfrecord") as writer:
        for row in rows(60, 70):
            writer.write(row)
    damaged = bytearray((folder / "more.tfrecord").read_bytes())
    damaged[300] ^= 1
    (folder / "damaged.tfrecord").write_bytes(damaged)
    return folder


def fill(words: list[str], **places: object) -> list[str]:
    return [word.format(**places) for word in words]


@pytest.mark.parametrize("name", WRITABLE)
def test_changed_copies_are_the_same_from_and_to_a_store(
    make_place: Callable[[str], Place], made: Path, tmp_path: Path, name: str
) -> None:
    place = make_place(name)
    with place.used():
        place.put_folder(made)
    for verb, words in CHANGES.items():
        local = {"source": made / "data", "more": made / "more.tfrecord"}
        remote = {"source": f"{place.address}/data/", "more": f"{place.address}/more.tfrecord"}
        expected = run_command(fill(words, **local, out=tmp_path / verb / "out"))
        assert expected.exit_code == 0, expected.stderr
        whole = read_folder(tmp_path / verb / "out")
        ran = run_command([*fill(words, **remote, out=f"{place.address}/{verb}/out"), *place.words()])
        assert (ran.exit_code, ran.stderr) == (0, expected.stderr)
        assert read_place(place, f"{verb}/out/") == whole
        if name == "s3-fault":
            ran = run_command([*fill(words, **remote, out=tmp_path / f"{verb}-here" / "out"), *place.words()])
            assert ran.exit_code == 0
            assert read_folder(tmp_path / f"{verb}-here" / "out") == whole
            ran = run_command([*fill(words, **local, out=f"{place.address}/{verb}-there/out"), *place.words()])
            assert ran.exit_code == 0
            assert read_place(place, f"{verb}-there/out/") == whole


PARTS: dict[str, list[str]] = {
    "count": ["count", "{source}", "--json"],
    "verify": ["verify", "{source}", "--json", "--jobs", "1"],
    "reshard": ["reshard", "{source}", "-o", "{out}", "--shards", "4", "--jobs", "1"],
    "csv": ["export", "csv", "{source}", "--select", "id", "--select", "label", "-o", "{out}/"],
}


@pytest.mark.parametrize(
    ("name", "verb"),
    [*((name, "reshard") for name in WRITABLE), *(("s3-moto", verb) for verb in PARTS if verb != "reshard")],
)
def test_parts_that_meet_in_a_store_give_the_result_of_one_machine(
    make_place: Callable[[str], Place], made: Path, tmp_path: Path, name: str, verb: str
) -> None:
    place = make_place(name)
    with place.used():
        place.put_folder(made)
    source, out = f"{place.address}/data/", f"{place.address}/out"
    (tmp_path / "out").mkdir()
    expected = run_command([*fill(PARTS[verb], source=source, out=tmp_path / "out"), *place.words()])
    words = fill([*PARTS[verb], "--parts", "{meet}"], source=source, out=out, meet=f"{place.address}/meet")
    printed = []
    for part in ("0/2", "1/2", "0/2"):
        ran = run_command([*words, "--part", part, *place.words()])
        assert ran.exit_code == expected.exit_code == 0, ran.stderr
        printed.append(ran.stdout.replace(out, str(tmp_path / "out")))
    assert printed[0] == ""
    assert expected.stdout in printed
    assert read_place(place, "out/") == read_folder(tmp_path / "out")
    assert not [name for name in read_place(place, "meet/") if "/" in name], "intermediate files are left"


def test_change_in_place_of_a_store_is_refused(make_place: Callable[[str], Place], made: Path) -> None:
    place = make_place("s3-fault")
    place.put_folder(made)
    words = [*CHANGES["drop"][:2], *CHANGES["drop"][4:], "--in-place"]
    ran = run_command([*fill(words, source=f"{place.address}/data/"), *place.words()])
    assert ran.exit_code == 2
    assert "in place expected a local path, got a remote address (s3://)" in ran.stderr
    assert "write a copy to another address: -o" in ran.stderr


@pytest.mark.parametrize("name", WRITABLE)
def test_repaired_files_are_the_same_in_a_store(
    make_place: Callable[[str], Place], made: Path, tmp_path: Path, name: str
) -> None:
    place = make_place(name)
    source = made / "damaged.tfrecord"
    expected = run_command(["repair", str(source), "-o", str(tmp_path / "x.tfrecord.gz"), "--json"])
    words = ["repair", str(source), "-o", f"{place.address}/x.tfrecord.gz", "--json", *place.words()]
    ran = run_command(words)
    assert (ran.exit_code, ran.stderr) == (expected.exit_code, expected.stderr)
    assert read_place(place) == {"x.tfrecord.gz": (tmp_path / "x.tfrecord.gz").read_bytes()}
    ran = run_command(words)
    assert "the output exists already" in ran.stderr
    run_command(["repair", str(source), str(made / "more.tfrecord"), "-o", f"{place.address}/all/", *place.words()])
    assert set(read_place(place, "all/")) == {"damaged.tfrecord", "more.tfrecord"}


@pytest.mark.parametrize("name", WRITABLE)
def test_exports_are_the_same_in_a_store(
    make_place: Callable[[str], Place], made: Path, tmp_path: Path, name: str
) -> None:
    place = make_place(name)
    for kind, words in EXPORTS.items():
        first, *rest = words
        line = ["export", first, str(made / "data"), *rest]
        (tmp_path / kind).mkdir()
        expected = run_command(fill(line, out=tmp_path / kind / "out"))
        assert expected.exit_code == 0, expected.stderr
        for _ in range(2):
            ran = run_command([*fill(line, out=f"{place.address}/{kind}/out"), *place.words()])
            assert ran.exit_code == 0, ran.stderr
            line.append("--force")
        line.pop(), line.pop()
        assert read_place(place, f"{kind}/out/") == read_folder(tmp_path / kind / "out")
        ran = run_command([*fill(line, out=f"{place.address}/{kind}/out"), *place.words()])
        assert ran.exit_code == 3
        assert "the output exists already" in ran.stderr
