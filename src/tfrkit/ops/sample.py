"""The first rows of a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from tfrkit.batches.access import Records
from tfrkit.batches.rows import RowReader
from tfrkit.batches.survey import find_schema
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard, find_shards
from tfrkit.storage.resolve import Address


def head_rows(address: Address | Iterable[Address], count: int) -> Iterator[Any]:
    """The first `count` rows, or payload bytes where the records are not Examples."""
    shards = [Shard.open(path) for path in find_shards(address)]
    policy = Policy()
    records = Records(shards, policy)
    schema = find_schema(shards, policy)
    if schema.kind == "raw":
        yield from islice(records, count)
    else:
        yield from islice(RowReader(shards, records, schema, policy).rows(), count)
