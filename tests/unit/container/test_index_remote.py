from __future__ import annotations

from pathlib import Path

import pytest

import tfrkit as tfr
from tfrkit.container.index import read_index
from tfrkit.errors import StaleIndexError
from tfrkit.storage.resolve import open_reader
from tfrkit.testing.fake_store import use_fake_store


@pytest.mark.parametrize("is_lasting", [False, True])
def test_index_of_a_shard_with_a_byte_wrong_on_its_way_is_used(tmp_path: Path, is_lasting: bool) -> None:
    with tfr.Writer(tmp_path / "x.tfrecord", index=True) as writer:
        for number in range(1000):
            writer.write({"id": number, "data": b"x" * 100})
    num_wrong = 0

    def flip(key: str, number: int, data: bytes) -> bytes:
        nonlocal num_wrong
        if key != "x.tfrecord" or (num_wrong and not is_lasting):
            return data
        num_wrong += 1
        return bytes([data[0] ^ 1]) + data[1:]

    with use_fake_store() as store:
        store.add_folder(str(tmp_path))
        store.answer = flip
        shard = open_reader("s3://bucket/x.tfrecord")
        if is_lasting:
            with pytest.raises(StaleIndexError, match="same size but other bytes"):
                read_index("s3://bucket/_index/x.tfrecord.tfidx", shard=shard)
        else:
            assert read_index("s3://bucket/_index/x.tfrecord.tfidx", shard=shard).num_records == 1000
            assert num_wrong == 1
