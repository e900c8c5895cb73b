from __future__ import annotations

from tfrkit._limits import LIMITS
from tfrkit.storage.pace import Gate, Pace


def test_slow_down_halves_the_requests_in_flight_and_successes_raise_them() -> None:
    gate = Gate()
    first = gate._limit
    gate.enter()
    gate.leave(is_busy=True)
    assert gate._limit == first / 2
    for _ in range(40):
        gate.enter()
        gate.leave(is_busy=False)
    assert first / 2 < gate._limit < first / 2 + 5


def test_pace_is_quick_after_quick_requests_and_not_after_a_wait() -> None:
    pace = Pace()
    block = LIMITS.block_nbytes
    assert pace.stream_blocks == LIMITS.stream_blocks
    pace.note_request(block // 4, 0.001)  # too small to know
    assert pace.stream_blocks == LIMITS.stream_blocks
    pace.note_request(block, 0.005)
    assert pace.stream_blocks == LIMITS.quick_stream_blocks
    pace.note_wait(0.5)
    assert pace.stream_blocks == LIMITS.stream_blocks
    for _ in range(100):
        pace.note_wait(0.001)
    assert pace.stream_blocks == LIMITS.quick_stream_blocks
    for _ in range(100):  # the network is another one now
        pace.note_request(block, 0.15)
    assert pace.stream_blocks == LIMITS.stream_blocks
