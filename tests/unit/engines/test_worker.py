from __future__ import annotations

import os
import threading
from dataclasses import dataclass

from tfrkit.engines import worker
from tfrkit.engines.futures import make_entry
from tfrkit.engines.worker import WorkerReply, find_difference, make_terms, run_call
from tfrkit.errors import SourceError


@dataclass(frozen=True)
class Where:
    path: str = "x"
    key: str = "x"

    def run(self, tick):
        tick(2, 10, 0)
        tick(1, 5, 1)
        return os.getcwd()


class Fail(Where):
    def run(self, tick):
        raise SourceError("broken on purpose", shard="x")


class FailWithoutPickle(Where):
    def run(self, tick):
        error = RuntimeError("odd")
        error.lock = threading.Lock()
        raise error


def call(task, terms=None):
    import pickle

    return WorkerReply(*run_call(tuple(terms or make_terms()), pickle.dumps(task), "pickle"))


def test_task_runs_in_the_folder_of_the_driver_and_counts_are_added_up(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    terms = make_terms()
    monkeypatch.chdir("/")
    answer = call(Where(), terms)
    assert (answer.kind, answer.content, answer.counts) == ("done", str(tmp_path), (3, 15, 1))
    assert answer.seconds > 0


def test_answer_is_a_plain_tuple():
    import pickle

    assert type(run_call(tuple(make_terms()), pickle.dumps(Where()), "pickle")) is tuple


def test_error_of_a_task_is_an_answer():
    answer = call(Fail())
    assert answer.kind == "failed"
    assert isinstance(answer.content, SourceError)


def test_error_that_does_not_pickle_is_sent_as_text():
    assert repr(call(FailWithoutPickle()).content) == "RuntimeError('RuntimeError: odd')"


def test_other_version_is_refused_before_the_task_is_opened():
    terms = make_terms()._replace(version="9.9")
    answer = WorkerReply(*run_call(tuple(terms), b"no pickle", "pickle"))
    assert (answer.kind, answer.counts) == ("refused", (0, 0, 0))
    assert "expected 9.9 as on the driver" in answer.content
    assert f"process {os.getpid()}" in answer.content


def test_other_core_of_the_same_platform_is_refused():
    terms = make_terms()
    assert find_difference(terms) is None
    assert "another native core" in find_difference(terms._replace(core=(terms.core[0], "0" * 16)))
    assert find_difference(terms._replace(core=("_core.other-platform.so", "0" * 16))) is None


def test_worker_that_does_not_see_a_path_is_refused(tmp_path):
    assert find_difference(make_terms(sees=[str(tmp_path)])) is None
    assert find_difference(make_terms(sees=[str(tmp_path / "mnt")])) == f"does not see {tmp_path / 'mnt'}"


def test_worker_with_another_folder_of_the_same_name_is_refused(tmp_path):
    token = tmp_path / "token"
    token.write_bytes(b"one")
    assert find_difference(make_terms(tokens=[(str(token), b"one")])) is None
    reason = f"does not see {tmp_path}, where this job keeps its files"
    assert find_difference(make_terms(tokens=[(str(token), b"two")])) == reason
    assert find_difference(make_terms(tokens=[(str(tmp_path / "none"), b"")])) == reason


def test_worker_without_tfrkit_answers_with_a_sentence(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "tfrkit.engines.worker", None)
    kind, reason = make_entry(make_terms(), "pickle")(b"")
    assert kind == "refused"
    assert "tfrkit.engines.worker" in reason


def test_core_is_identified_by_its_file():
    name, digest = worker.identify_core()
    assert name.startswith("_core")
    assert len(digest) == 16
