from __future__ import annotations

import numpy as np
import pytest

from tfrkit.build.journal import BadItem, ShardResult, write_done
from tfrkit.build.plan import PlannedShard
from tfrkit.build.schedule import Schedule, cut_shards, make_read_tasks
from tfrkit.build.task import CheckTask, JoinTask, ShardTask
from tfrkit.features.schema import Schema
from tfrkit.sources.base import ColumnReader, Items, RowReader, Scan

SHARDS = [PlannedShard("a", "train", np.arange(0, 40)), PlannedShard("b", "test", np.arange(40, 50))]


def make_schedule(tmp_path, jobs=2, may_cut=True, shards=SHARDS, on_bad="fail") -> Schedule:
    def make_task(shard, path):
        return ShardTask(path, Items(50).take(shard.numbers), reader=None, on_bad=on_bad)

    weights = {shard.name: float(len(shard.numbers)) for shard in shards}
    return Schedule(shards, str(tmp_path), make_task, weights, jobs, may_cut)


@pytest.mark.parametrize("jobs", [1, 2, 3, 8])
def test_one_job_or_equal_shards_cut_as_little_as_possible(jobs):
    assert cut_shards([1.0] * 8 * jobs, jobs) == [1] * 8 * jobs


def test_one_shard_is_cut_for_all_workers():
    assert cut_shards([5.0], 2) == [16]
    assert cut_shards([5.0], 1) == [1]


def test_shards_of_nearly_equal_weight_stay_whole():
    """Copying and hashing parts again costs more than a short wait of one worker."""
    assert cut_shards([1.0, 0.99, 1.01, 0.98], 2) == [1, 1, 1, 1]
    assert cut_shards([1.0, 1.0, 1.0, 0.5], 2)[2] > 1


def test_only_what_comes_last_is_cut():
    assert cut_shards([1.0] * 5, 2) == [1, 1, 1, 1, 4]


@pytest.mark.parametrize("weights", [[], [0.0, 0.0], [1.0, 0.0]])
def test_shards_without_weight_are_not_a_problem(weights):
    assert all(parts >= 1 for parts in cut_shards(weights, 4))


@pytest.mark.parametrize("seed", range(20))
def test_workers_end_at_nearly_the_same_time(seed):
    """Greedy scheduling keeps every worker busy to within an eighth of its share."""
    rng = np.random.default_rng(seed)
    jobs = int(rng.integers(2, 9))
    weights = rng.exponential(1.0, int(rng.integers(1, 30)))
    parts = cut_shards(weights.tolist(), jobs)
    order = np.argsort(-weights)
    busy = np.zeros(jobs)
    for shard in order:
        for _ in range(parts[shard]):
            busy[np.argmin(busy)] += weights[shard] / parts[shard]
    assert busy.max() <= weights.sum() / jobs * 1.4


def test_tasks_of_a_shard_in_parts_cover_it_in_order(tmp_path):
    tasks = list(make_schedule(tmp_path).begin())
    parts = [task for task in tasks if task.path.endswith("/a")]
    assert len(parts) > 1
    assert np.concatenate([task.items.numbers for task in parts]).tolist() == list(range(40))
    assert len({task.output for task in parts}) == len(parts)


def test_compressed_shards_are_not_cut(tmp_path):
    assert [task.num_parts for task in make_schedule(tmp_path, may_cut=False).begin()] == [1, 1]


def test_parts_are_joined_when_the_last_one_is_done(tmp_path):
    schedule = make_schedule(tmp_path)
    parts = [task for task in schedule.begin() if task.path.endswith("/a")]
    followed = [schedule.follow(task, ShardResult("a")) for task in parts]
    assert [len(tasks) for tasks in followed] == [0] * (len(parts) - 1) + [1]
    assert followed[-1] == [JoinTask(parts[0].path, len(parts))]


def test_parts_with_a_bad_input_are_not_joined_and_all_bad_are_named(tmp_path):
    schedule = make_schedule(tmp_path)
    parts = [task for task in schedule.begin() if task.path.endswith("/a")]
    for number, task in enumerate(parts):
        bad = [BadItem(f"x{number}", "broken")] if number in (0, 2) else []
        assert schedule.follow(task, ShardResult("a", bad=bad)) == []
    assert schedule.bad == [(BadItem("x0", "broken"), "train"), (BadItem("x2", "broken"), "train")]


def test_shard_that_is_there_is_checked_and_kept(tmp_path):
    (tmp_path / "b").write_bytes(b"12345")
    result = ShardResult("b", num_records=10, nbytes=5, sha256="x")
    write_done(str(tmp_path / "b"), result)
    schedule = make_schedule(tmp_path)
    check = next(schedule.begin())
    assert check == CheckTask(str(tmp_path / "b"))
    assert schedule.follow(check, result) == []
    assert schedule.num_resumed == 1
    assert schedule.results == {"b": result}


def test_shard_that_is_not_what_its_marker_says_is_written_again(tmp_path):
    (tmp_path / "b").write_bytes(b"12345")
    write_done(str(tmp_path / "b"), ShardResult("b", nbytes=5, sha256="x"))
    schedule = make_schedule(tmp_path, may_cut=False)
    check = next(schedule.begin())
    (task,) = schedule.follow(check, None)
    assert isinstance(task, ShardTask)
    assert task.path == str(tmp_path / "b")


def test_marker_of_another_size_is_ignored(tmp_path):
    (tmp_path / "b").write_bytes(b"123")
    write_done(str(tmp_path / "b"), ShardResult("b", nbytes=5, sha256="x"))
    schedule = make_schedule(tmp_path)
    assert not any(isinstance(task, CheckTask) for task in schedule.begin())
    assert sum(len(shard.numbers) for shard in schedule.missing) == 50


def test_read_tasks_cover_every_item_once():
    class Reader(RowReader):
        def read(self, item):
            return {}

    class Columns(ColumnReader):
        pass

    scan = Scan("", Items(37), Reader(), Schema({}))
    tasks = list(make_read_tasks(scan, 2))
    assert sorted(np.concatenate([task.items.numbers for task in tasks]).tolist()) == list(range(37))
    assert list(make_read_tasks(Scan("", Items(0), Reader(), Schema({})), 2)) == []
    assert list(make_read_tasks(Scan("", Items(5), Columns(), Schema({})), 2)) == []
