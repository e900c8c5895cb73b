from __future__ import annotations

from tfrkit.storage.ranges import Range, coalesce


def test_near_ranges_are_joined_up_to_a_limit() -> None:
    near = [Range(0, 10), Range(14, 20), Range(40, 50)]
    assert [found for found, _ in coalesce(near, 4, 100)] == [(0, 20), (40, 50)]
    assert [found for found, _ in coalesce(near, 4, 15)] == [(0, 10), (14, 20), (40, 50)]
    assert [found for found, _ in coalesce([Range(0, 100), Range(50, 60)], 0, 10)] == [(0, 100)]


def test_ranges_are_joined_up_to_a_limit_of_their_length() -> None:
    ranges = [Range(10, 20), Range(22, 30)]
    assert coalesce(ranges, gap=2, limit=20) == [(Range(10, 30), [0, 1])]
    assert len(coalesce(ranges, gap=2, limit=19)) == len(coalesce(ranges, gap=1, limit=20)) == 2
