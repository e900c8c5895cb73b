"""Hypothesis strategies: values, rows, and unusual bytes that protobuf accepts.

Three families. `features`, `examples` and `sequence_examples` generate parsed messages, which
`reference` encodes. `tables` generates rows as a user writes them, of one shape per column. `odd_examples` and
`odd_sequence_examples` generate wire bytes with everything the format allows: unknown fields, groups,
padded varints, split and repeated messages, partly packed lists.
"""

from __future__ import annotations

import struct
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tfrkit.testing import reference
from tfrkit.testing.reference import Feature, FeatureLists, Features, write_varint

# --- values ----------------------------------------------------------------------------------------

_EDGES = sorted({sign * (1 << power) + step for power in range(63) for step in (-1, 0, 1) for sign in (-1, 1)})
int64s = st.one_of(
    st.integers(-3, 300), st.sampled_from([*_EDGES, -(2**63), 2**63 - 1]), st.integers(-(2**63), 2**63 - 1)
)
float32s = st.floats(width=32)
_ODD_BYTES = [b"", b"\0", b"\xff\xfe", b"a" * 127, b"b" * 128, b"c" * 300]
small_bytes = st.one_of(st.binary(max_size=8), st.sampled_from(_ODD_BYTES))
_NAMES = ["a", "b", "label", "image/encoded", "", "\0", "a\0b", "é", "標籤", "x" * 127, "x" * 128]
# NUL is allowed; a surrogate cannot be encoded as UTF-8.
names = st.one_of(
    st.sampled_from(_NAMES),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
).map(str.encode)


def features(*, max_size: int = 6) -> st.SearchStrategy[Feature]:
    """Generate a Feature: without a kind, or of one of three kinds, possibly empty."""
    return st.one_of(
        st.none(),
        st.tuples(st.just("bytes"), st.lists(small_bytes, max_size=max_size)),
        st.tuples(st.just("float"), st.lists(float32s, max_size=max_size)),
        st.tuples(st.just("int64"), st.lists(int64s, max_size=max_size)),
    )


def examples() -> st.SearchStrategy[Features]:
    """Generate the features of one Example."""
    return st.dictionaries(names, features(), max_size=5)


def sequence_examples() -> st.SearchStrategy[tuple[Features, FeatureLists]]:
    """Generate the context and the feature lists of one SequenceExample."""
    lists = st.dictionaries(names, st.lists(features(max_size=3), max_size=4), max_size=3)
    return st.tuples(st.dictionaries(names, features(), max_size=3), lists)


# --- rows ------------------------------------------------------------------------------------------

_TENSOR_DTYPES = [
    "float64",
    "float16",
    "uint8",
    "int8",
    "int16",
    "int32",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex64",
]


@st.composite
def arrays(draw: st.DrawFn, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Generate an array of arbitrary bits."""
    count = int(np.prod(shape))
    if dtype == "bool":
        return np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), dtype=bool).reshape(shape)
    nbytes = count * np.dtype(dtype).itemsize
    return np.frombuffer(draw(st.binary(min_size=nbytes, max_size=nbytes)), dtype=dtype).reshape(shape)


@st.composite
def cells(draw: st.DrawFn) -> st.SearchStrategy[Any]:
    """Return a strategy for the cells of one column, all of one kind."""
    form = draw(st.sampled_from(["int", "float", "bytes", "ints", "floats", "strings", "tensor"]))
    if form == "int":
        return int64s
    if form == "float":
        return float32s
    if form == "bytes":
        return small_bytes
    if form == "ints":
        return st.lists(int64s, min_size=0, max_size=5).map(lambda values: np.array(values, dtype=np.int64))
    if form == "floats":
        return st.lists(float32s, max_size=5).map(lambda values: np.array(values, dtype=np.float32))
    if form == "strings":
        # A bare [] has no kind; an empty array of objects is an empty list of bytes.
        return st.lists(small_bytes, max_size=4).map(lambda values: values or np.empty(0, object))
    # Rank 2, because an array of rank 1 may also be a plain list of the same numbers.
    return arrays(draw(st.sampled_from([*_TENSOR_DTYPES, "int64", "float32"])), (draw(st.integers(1, 3)), 2))


@st.composite
def tables(draw: st.DrawFn, *, min_rows: int = 0, max_rows: int = 12, max_columns: int = 4) -> list[dict[str, Any]]:
    """Generate the rows of a table: each column keeps its kind, some cells are None, some are absent."""
    columns = draw(st.lists(names.map(bytes.decode), max_size=max_columns, unique=True))
    cell_strategies = {name: draw(cells()) for name in columns}
    rows = []
    for _ in range(draw(st.integers(min_rows, max_rows))):
        row = {}
        for name in columns:
            state = draw(st.sampled_from(["there", "there", "there", "none", "absent"]))
            if state == "there":
                row[name] = draw(cell_strategies[name])
            elif state == "none":
                row[name] = None
        rows.append(row)
    return rows


# --- odd wire bytes --------------------------------------------------------------------------------


class OddWire:
    """Generates well-formed but unusual messages.

    Driven by a `Random` instead of Hypothesis's own draws: a record takes hundreds of decisions, and one draw per
    record is a hundred times faster. A failing record is printed in full.
    """

    def __init__(self, random: Random) -> None:
        self._random = random

    def _sometimes(self, one_in: int) -> bool:
        return self._random.randrange(one_in) == 0

    def _int64(self) -> int:
        values = [self._random.randrange(-3, 300), self._random.choice(_EDGES), self._random.randrange(-(2**63), 2**63)]
        return self._random.choice([*values, 2**63 - 1, -(2**63)])

    def _float(self) -> bytes:
        return self._random.choice([self._random.randbytes(4), struct.pack("<f", self._random.randrange(-9, 9) / 4)])

    def _bytes(self) -> bytes:
        return self._random.choice([*_ODD_BYTES, self._random.randbytes(self._random.randrange(9))])

    def name(self) -> bytes:
        return self._random.choice(_NAMES).encode()

    def varint(self, value: int, *, max_bytes: int = 10) -> bytes:
        """Return a varint, sometimes padded."""
        shortest = write_varint(value)
        if len(shortest) >= max_bytes or not self._sometimes(10):
            return shortest
        extra = self._random.randint(1, max_bytes - len(shortest))
        return shortest[:-1] + bytes([shortest[-1] | 0x80]) + b"\x80" * (extra - 1) + b"\0"

    def field(self, number: int, value: bytes) -> bytes:
        tag = self.varint(number << 3 | 2, max_bytes=5)
        return tag + self.varint(len(value), max_bytes=5) + value

    def unknown_field(self, known: tuple[int, ...], *, depth: int = 0) -> bytes:
        """Return a field that readers skip: another number, or a known number with another wire type."""
        wire_type = self._random.choice([0, 1, 2, 5, 3] if depth < 3 else [0, 1, 2, 5])
        number = self._random.choice([4, 5, 15, 16, 2047, 2**29 - 1] + ([] if wire_type == 2 else list(known)))
        tag = self.varint(number << 3 | wire_type, max_bytes=5)
        if wire_type == 0:
            return tag + self.varint(self._random.randrange(2**64))
        if wire_type == 2:
            value = self._random.randbytes(self._random.randrange(7))
            return tag + write_varint(len(value)) + value
        if wire_type == 3:
            inner = [self.unknown_field((1, 2), depth=depth + 1) for _ in range(self._random.randrange(3))]
            return tag + b"".join(inner) + write_varint(number << 3 | 4)
        return tag + self._random.randbytes(8 if wire_type == 1 else 4)

    def message(self, pieces: list[bytes], known: tuple[int, ...]) -> bytes:
        """Return a message with some unknown fields between its fields."""
        out = []
        for piece in [*pieces, b""]:
            if self._sometimes(12):
                out.append(self.unknown_field(known))
            out.append(piece)
        return b"".join(out)

    def feature(self) -> bytes:
        """Return a Feature whose oneof may be set more than once, with partly packed lists."""
        pieces = []
        for _ in range(self._random.choice([0, 1, 1, 1, 1, 2, 3])):
            kind = self._random.choice([1, 2, 3])
            values = [self._value(kind) for _ in range(self._random.randrange(4))]
            # Field 1 may also be a lone fixed32 in a float list and a lone varint in an int64 list.
            pieces.append(self.field(kind, self.message(values, (1,) if kind == 1 else ())))
        return self.message(pieces, (1, 2, 3))

    def _value(self, kind: int) -> bytes:
        if kind == 1:
            return self.field(1, self._bytes())
        count, is_packed = self._random.randrange(5), self._sometimes(2)
        if kind == 2:
            many = b"".join(self._float() for _ in range(count))
            return self.field(1, many) if is_packed else b"\x0d" + self._float()
        ints = [self.varint(self._int64() & (2**64 - 1)) for _ in range(count + 1)]
        return self.field(1, b"".join(ints)) if is_packed else b"\x08" + ints[0]

    def _feature_list(self) -> bytes:
        return self.message([self.field(1, self.feature()) for _ in range(self._random.randrange(4))], (1,))

    def _entry(self, *, of_lists: bool) -> bytes:
        make = self._feature_list if of_lists else self.feature
        pieces = [self.field(1, self.name()), self.field(2, make())]
        oddity = self._random.randrange(20)
        if oddity == 0:
            pieces.reverse()
        elif oddity == 1:
            pieces.insert(0, self.field(1, self.name()))
        elif oddity == 2:
            pieces.append(self.field(2, make()))
        elif oddity in (3, 4):
            pieces.pop(oddity - 3)
        return self.message(pieces, (1, 2))

    def map(self, number: int, *, of_lists: bool) -> list[bytes]:
        """Return a map as fields of a record, possibly in several pieces and with an entry given twice."""
        entries = [self.field(1, self._entry(of_lists=of_lists)) for _ in range(self._random.randrange(5))]
        if entries and self._sometimes(4):
            entries.append(self._random.choice(entries))
        cut = self._random.randrange(len(entries) + 1) if self._sometimes(4) else len(entries)
        groups = [entries[:cut], entries[cut:]] if cut < len(entries) else [entries]
        return [self.field(number, self.message(group, (1,))) for group in groups]

    def example(self) -> bytes:
        return self.message(self.map(1, of_lists=False), (1,))

    def sequence_example(self) -> bytes:
        pieces = self.map(1, of_lists=False) + self.map(2, of_lists=True)
        if self._sometimes(4):
            self._random.shuffle(pieces)
        return self.message(pieces, (1, 2))

    def damage(self, record: bytes) -> bytes:
        """Flip one bit, or remove or repeat a part: the result is mostly malformed."""
        if not record:
            return self._random.randbytes(self._random.randrange(12))
        offset = self._random.randrange(len(record))
        how = self._random.choice(["flip", "cut", "end", "double"])
        if how == "flip":
            return record[:offset] + bytes([record[offset] ^ 1 << self._random.randrange(8)]) + record[offset + 1 :]
        if how == "end":
            return record[:offset]
        stop = min(len(record), offset + self._random.randint(1, 4))
        return record[:offset] + record[stop:] if how == "cut" else record[:stop] + record[offset:]


_seeds = st.integers(0, 2**64 - 1).map(Random)


def odd_examples() -> st.SearchStrategy[bytes]:
    """Generate well-formed, unusual bytes of an Example."""
    return _seeds.map(lambda random: OddWire(random).example())


def odd_sequence_examples() -> st.SearchStrategy[bytes]:
    """Generate well-formed, unusual bytes of a SequenceExample."""
    return _seeds.map(lambda random: OddWire(random).sequence_example())


def damaged(records: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Generate unusual bytes with one bit flipped, or a part removed or repeated."""
    return st.builds(lambda record, random: OddWire(random).damage(record), records, _seeds)


@st.composite
def tensors(draw: st.DrawFn) -> bytes:
    """Generate serialized tensors, valid and slightly wrong ones."""
    dtype = draw(st.sampled_from([*reference.ELEMENT_SIZES, reference.DT_STRING, 0, 11, 20, 99]))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    count = int(np.prod(shape)) + draw(st.sampled_from([0, 0, 0, 0, 1]))
    if dtype == reference.DT_STRING:
        return reference.encode_tensor(dtype, shape, [draw(small_bytes) for _ in range(count)])
    nbytes = count * reference.ELEMENT_SIZES.get(dtype, 1)
    return reference.encode_tensor(dtype, shape, draw(st.binary(min_size=nbytes, max_size=nbytes)))
