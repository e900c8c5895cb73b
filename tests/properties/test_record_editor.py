"""The native editor of records against its slow twin."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tfrkit import _native
from tfrkit.codec.edit_record import RecordEditor
from tfrkit.errors import TfrkitError
from tfrkit.features.schema import decode_name
from tfrkit.testing.reference import encode_example, encode_sequence_example, parse_example, write_frames
from tfrkit.testing.strategies import damaged, examples, odd_examples, odd_sequence_examples, sequence_examples

ALL = 1 << 40
records = st.one_of(
    examples().map(encode_example),
    sequence_examples().map(lambda parts: encode_sequence_example(*parts)),
    odd_examples(),
    odd_sequence_examples(),
    damaged(examples().map(encode_example)),
)


def names_of(record: bytes) -> list[str]:
    try:
        return [decode_name(name) for name in parse_example(record)]
    except ValueError:
        return []


@given(records, st.data())
def test_quick_edit_equals_slow_edit(record: bytes, data: st.DataObject) -> None:
    names = list(dict.fromkeys([*names_of(record), "a", "b"]))
    drop = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=2))
    others = [name for name in names if name not in drop]
    olds = data.draw(st.lists(st.sampled_from(others), unique=True, max_size=2)) if others else []
    rename = dict(zip(olds, data.draw(st.permutations(["a", "b", "new"])), strict=False))
    slow = RecordEditor(drop=frozenset(drop), rename=rename)
    quick = _native.FrameEditor(
        [name.encode("utf-8", "surrogateescape") for name in drop],
        [],
        [(old.encode("utf-8", "surrogateescape"), new.encode()) for old, new in rename.items()],
        True,
    )
    span = write_frames([record])
    frames, num_frames, stop, fault = quick.edit_frames(span, 0, len(span), ALL, "all")
    assert fault is None
    if num_frames:
        assert bytes(frames) == write_frames([slow.edit(record)])
        assert set(map(decode_name, quick.seen())) == slow.seen
        assert stop == len(span)
        return
    assert (len(frames), stop) == (0, 0)
    try:
        slow.edit(record)
    except TfrkitError:
        return
    raise AssertionError("the quick editor refused what the slow one takes")
