"""Pages of an index: checked when used, and indexes of version 1."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit import _native
from tfrkit.container.faults import describe_fault
from tfrkit.container.index import index_path, load_index, read_index
from tfrkit.container.index_pages import IndexPages, sum_pages
from tfrkit.errors import StaleIndexError
from tfrkit.storage.local import LocalReader

OLD = Path(__file__).parents[2] / "conformance" / "index_v1"
NUM_RECORDS = 5000  # three pages of 2,048


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    with tfr.Writer(tmp_path / "x.tfrecord", index=True) as writer:
        writer.write_columns({"id": np.arange(NUM_RECORDS)})
    return tmp_path / "x.tfrecord"


def spoil(shard: Path, record: int) -> None:
    """Change a bit of the offset of one record in the index."""
    path = Path(index_path(str(shard)))
    data = bytearray(path.read_bytes())
    data[96 + 16 + 8 * record] ^= 4
    path.write_bytes(data)


def refuse(what: str) -> StaleIndexError:
    return StaleIndexError(what)


def test_only_pages_that_are_used_are_checked() -> None:
    offsets = np.arange(10, dtype=np.uint64) * np.uint64(20)
    sums = np.frombuffer(sum_pages(offsets, 4), np.uint32)
    changed = offsets.copy()
    changed[5] += np.uint64(1)
    pages = IndexPages(changed, sums, 4, refuse)
    pages.require(0, 4)
    pages.require(8, 10)
    pages.require(5, 5)
    for start, stop in ((5, 6), (3, 5), (0, 10)):
        with pytest.raises(StaleIndexError, match="offsets checksum mismatch in page 1, of the records from 4 on"):
            pages.require(start, stop)
    with pytest.raises(IndexError, match="out of range"):
        pages.require(0, 11)


@pytest.mark.parametrize("change", [{5: 60}, {5: 80}, {5: 95}, {4: 75}, {4: 60}])
def test_offsets_that_do_not_ascend_are_refused_under_a_right_checksum(change: dict[int, int]) -> None:
    offsets = np.arange(10, dtype=np.uint64) * np.uint64(20)
    for record, offset in change.items():
        offsets[record] = offset
    pages = IndexPages(offsets, np.frombuffer(sum_pages(offsets, 4), np.uint32), 4, refuse)
    pages.require(0, 4)
    pages.require(8, 10)
    with pytest.raises(
        StaleIndexError, match="index is damaged, offsets do not ascend in page 1, of the records from 4"
    ):
        pages.require(6, 7)
    table = _native.FrameTable(bytes(300), offsets, "all", pages.checker)
    fault = table.read(6)
    assert isinstance(fault, _native.Fault)
    assert describe_fault(fault) == "index is damaged, the offsets in the page of this record do not ascend"


def test_wrong_pages_are_refused() -> None:
    offsets = np.zeros(10, np.uint64)
    with pytest.raises(ValueError, match="as many checksums as pages"):
        _native.OffsetPages(offsets, np.zeros(2, np.uint32), 4)
    with pytest.raises(ValueError, match="at least one record"):
        _native.OffsetPages(offsets, np.zeros(2, np.uint32), 0)
    with pytest.raises(TypeError, match="expected OffsetPages or None"):
        _native.FrameTable(b"", offsets, "all", "pages")  # type: ignore[arg-type]


def test_damaged_page_stops_the_records_of_its_own_only(shard: Path) -> None:
    spoil(shard, 3000)
    ds = tfr.open(shard)
    assert len(ds) == NUM_RECORDS
    assert ds[0]["id"] == 0 and ds[4999]["id"] == 4999
    assert [row["id"] for row in ds[[10, 4500, 20]]] == [10, 4500, 20]
    message = r"(?s)index is damaged, offsets checksum mismatch in .*rebuild: tfr index"
    with pytest.raises(StaleIndexError, match=message):
        ds[2500]
    with pytest.raises(StaleIndexError, match=message):
        ds[[10, 2500]]
    for uses_engine in (True, False):
        batches = ds.shuffle(1).batch(64)
        batches.uses_engine = uses_engine
        with pytest.raises(StaleIndexError, match=message):
            list(batches)


def test_whole_index_is_checked_for_callers_that_need_all_of_it(shard: Path) -> None:
    spoil(shard, 3000)
    reader = LocalReader(str(shard))
    lazy = read_index(index_path(str(shard)), shard=reader, is_lazy=True)
    assert lazy.num_records == NUM_RECORDS and lazy.pages is not None
    with pytest.raises(StaleIndexError, match="offsets checksum mismatch in page 1"):
        load_index(reader)
    reader.close()


@pytest.mark.parametrize("name", ["plain.tfrecord", "packed.tfrecord.gz"])
@pytest.mark.filterwarnings("error")
def test_index_of_version_1_is_still_read(tmp_path: Path, name: str) -> None:
    shutil.copytree(OLD, tmp_path / "old")
    path = str(tmp_path / "old" / name)
    stored = Path(index_path(path)).read_bytes()
    assert stored[8:12] == b"\1\0\0\0"
    reader = LocalReader(path)
    index = load_index(reader, is_lazy=True)
    reader.close()
    assert index is not None and index.num_records == 300 and index.pages is None
    ds = tfr.open(path)
    assert [row["id"] for row in ds[[299, 0, 150]]] == [299, 0, 150]
    assert sorted(int(x) for batch in ds.shuffle(3).batch(32) for x in batch["id"]) == list(range(300))
    Path(index_path(path)).write_bytes(stored[:-1] + bytes([stored[-1] ^ 1]))
    with pytest.warns(tfr.errors.StaleIndexWarning, match="index is damaged"):
        assert tfr.open(path)[7]["id"] == 7
