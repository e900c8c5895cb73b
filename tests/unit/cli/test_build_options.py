from __future__ import annotations

import pytest

from tfrkit.cli.build_options import parse_shards


def test_shards_are_one_number_or_one_for_each_split() -> None:
    assert parse_shards(None) is None
    assert parse_shards("3") == 3
    assert parse_shards("a=1,b=20") == {"a": 1, "b": 20}
    for text in ("x", "a=x", "a=1,b"):
        with pytest.raises(ValueError, match="--shards expected N or NAME=N"):
            parse_shards(text)
