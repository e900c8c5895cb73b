"""Every read verb gives the same JSON from each server as from disk, over real files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from places import NAMES, Place
from servers import FaultServer

from tfrkit.testing.commands import run_command

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
MANIFEST = CORPUS / "MANIFEST.json"
FILES = (
    [row["file"] for row in json.loads(MANIFEST.read_text()) if row["kind"] == "record"] if MANIFEST.exists() else []
)
# Every twelfth file: all kinds of records and compressions are among them.
SAMPLE = FILES[::12]

CALLS: dict[str, list[str]] = {
    "info": ["{path}", "--format", "json"],
    "head": ["{path}", "-n", "2", "--format", "json"],
    "tail": ["{path}", "-n", "2", "--format", "json"],
    "cat": ["{path}", "--format", "jsonl"],
    "count": ["{path}", "--format", "json"],
    "schema": ["{path}"],
    "verify": ["{path}", "--format", "json"],
    "verify --deep": ["{path}", "--format", "json"],
    "stats": ["{path}", "--format", "json"],
    "sql": ["select count(*) as n from '{path}'", "--format", "json"],
    "diff": ["{path}", "{path}", "--format", "json"],
}


def ask(calls: Sequence[str], folder: str, files: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
    """Run commands over files of a folder; the folder is left out of the answers."""
    answers = {}
    for name in calls:
        for file in files:
            words = [word.replace("{path}", f"{folder}/{file}") for word in CALLS[name]]
            ran = run_command([*name.split(), *words, *options])
            answers[f"{name} {file}"] = (ran.exit_code, clean(ran.stdout, folder), clean(ran.stderr, folder))
    return answers


def clean(text: str, folder: str) -> str:
    # Times of commands differ.
    return re.sub(r'"seconds": [\d.e-]+', '"seconds": 0', text.replace(folder, "FOLDER"))


def differences(ours: dict[str, Any], theirs: dict[str, Any]) -> list[Any]:
    return [(name, ours[name], theirs[name]) for name in theirs if ours[name] != theirs[name]]


pytestmark = pytest.mark.skipif(not FILES, reason="the corpus folder ../shared/corpus is not here")


@pytest.mark.parametrize("call", CALLS)
def test_verb_over_all_files_of_the_corpus_is_the_same_from_s3_as_from_disk(
    fault_server: FaultServer, make_place: Callable[[str], Place], call: str
) -> None:
    place = make_place("s3-fault")
    fault_server.mount(f"bucket/{place.folder.rstrip('/')}", CORPUS)
    theirs = ask([call], str(CORPUS), FILES, [])
    assert differences(ask([call], place.address, FILES, place.words()), theirs) == []


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with some files of the corpus, and the answers of all commands from disk."""
    folder = tmp_path_factory.mktemp("sample")
    for file in SAMPLE:
        for path in [CORPUS / file, *(CORPUS / file).parent.glob("*.json")]:
            copy = folder / path.relative_to(CORPUS)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    return folder, ask([*CALLS], str(folder), SAMPLE, [])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "s3-fault"])
def test_verbs_over_a_sample_of_the_corpus_are_the_same_from_each_server_as_from_disk(
    make_place: Callable[[str], Place], sample: tuple[Path, dict[str, Any]], name: str
) -> None:
    folder, answers = sample
    place = make_place(name)
    place.put_folder(folder)
    assert differences(ask([*CALLS], place.address, SAMPLE, place.words()), answers) == []
