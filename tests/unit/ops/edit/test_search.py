from __future__ import annotations

from pathlib import Path

import pytest

import tfrkit
from tfrkit.errors import QueryError
from tfrkit.ops.edit.search import RecordSearch, compose_condition
from tfrkit.ops.query.scan import QueryPolicy
from tfrkit.testing.corruption import flip, frame_offsets

pytest.importorskip("duckdb")


@pytest.fixture
def path(tmp_path: Path) -> str:
    made = str(tmp_path / "a.tfrecord")
    with tfrkit.Writer(made) as writer:
        for number in range(20):
            writer.write({"label": number % 4, "score": float(-number)})
    return made


def test_search_finds_records_in_file_order_or_sorted(path: str) -> None:
    search = RecordSearch([path], "label = 2")
    assert search.run().tolist() == [2, 6, 10, 14, 18]
    assert search.num_read == 20
    search.close()
    search = RecordSearch([path, path], "label = 2 and _record > 15", order_by="score desc")
    assert search.run().tolist() == [22, 26, 30, 34, 18, 38]
    search.close()


def test_search_may_skip_damage(path: str) -> None:
    data = Path(path).read_bytes()
    Path(path).write_bytes(flip(data, int(frame_offsets(data)[3]) + 1))
    search = RecordSearch([path], "label = 0", policy=QueryPolicy("all", "skip"))
    assert search.run().tolist() == [0, 3, 7, 11, 15]
    search.close()


@pytest.mark.parametrize("where", ["exists (select 1 from '/etc/passwd')", "label in (select 1 from 'b.tfrecord')"])
def test_condition_that_names_other_files_is_refused(where: str) -> None:
    with pytest.raises(QueryError, match="a condition expected columns of the records, got another table"):
        compose_condition(where)
