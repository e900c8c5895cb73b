"""Unusual but valid wire bytes: our reader must return what protobuf returns.

Generated messages hold what real writers or old schemas may produce: duplicate map keys, values merged
from several pieces, packed and unpacked lists mixed, two kinds in one feature, unknown fields of every wire type,
groups, varints longer than they need to be.
"""

from __future__ import annotations

import random
import struct

import oracle
import pytest
import tensorflow as tf
from google.protobuf.internal.encoder import _VarintBytes
from google.protobuf.message import DecodeError

import tfrkit as tfr
from tfrkit import _native
from tfrkit.testing import reference

VARINT, FIXED64, LEN, GROUP, END_GROUP, FIXED32 = range(6)
NUM_MESSAGES = 3000


class WireWriter:
    """Writes valid protobuf wire bytes in unusual forms."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def varint(self, value: int, limit: int = 10) -> bytes:
        encoded = bytearray()
        value &= 2**64 - 1
        while value > 0x7F:
            encoded.append(value & 0x7F | 0x80)
            value >>= 7
        encoded.append(value)
        if self.rng.random() < 0.1:  # longer than needed, up to what protobuf allows
            for _ in range(self.rng.randint(0, limit - len(encoded))):
                encoded[-1] |= 0x80
                encoded.append(0)
        return bytes(encoded)

    def tag(self, number: int, wire_type: int) -> bytes:
        # Tags are 32-bit varints and have at most five bytes.
        encoded = bytearray()
        value = number << 3 | wire_type
        while value > 0x7F:
            encoded.append(value & 0x7F | 0x80)
            value >>= 7
        encoded.append(value)
        return bytes(encoded)

    def field(self, number: int, body: bytes) -> bytes:
        # Protobuf's parsers take lengths of at most five bytes.
        return self.tag(number, LEN) + self.varint(len(body), limit=5) + body

    def unknown(self, depth: int = 0) -> bytes:
        number = self.rng.choice((4, 7, 15, 16, 2047, 2**29 - 1))
        wire_type = self.rng.choice((VARINT, FIXED64, LEN, GROUP, FIXED32))
        body = {
            VARINT: lambda: self.varint(self.rng.getrandbits(64)),
            FIXED64: lambda: self.rng.randbytes(8),
            LEN: lambda: self.varint(3, limit=5) + self.rng.randbytes(3),
            FIXED32: lambda: self.rng.randbytes(4),
            GROUP: lambda: (
                (self.unknown(depth + 1) if depth < 4 and self.rng.random() < 0.6 else b"")
                + self.tag(number, END_GROUP)
            ),
        }[wire_type]()
        return self.tag(number, wire_type) + body

    def noise(self) -> bytes:
        return self.unknown() if self.rng.random() < 0.1 else b""

    def numbers(self, kind: str) -> bytes:
        """An Int64List or FloatList in packed and unpacked pieces."""
        body = b""
        for _ in range(self.rng.randint(0, 3)):
            values = oracle.random_values(self.rng, kind, self.rng.randint(0, 20))
            if kind == "int64":
                pieces, wire_type = [self.varint(value) for value in values], VARINT
            else:
                pieces, wire_type = [struct.pack("<f", value) for value in values], FIXED32
            if self.rng.random() < 0.5:
                body += self.field(1, b"".join(pieces))
            else:
                body += b"".join(self.tag(1, wire_type) + piece for piece in pieces)
            body += self.noise()
            if self.rng.random() < 0.05:  # a known number with a wire type it does not have is an unknown field
                body += self.tag(1, FIXED64) + self.rng.randbytes(8)
        return body

    def strings(self) -> bytes:
        body = b""
        for value in oracle.random_values(self.rng, "bytes", self.rng.randint(0, 4)):
            body += self.field(1, value) + self.noise()
        return body

    def feature(self) -> bytes:
        body = self.noise()
        for _ in range(self.rng.choice((0, 1, 1, 1, 1, 2, 3))):
            number = self.rng.randint(1, 3)
            inner = self.strings() if number == 1 else self.numbers("float" if number == 2 else "int64")
            body += self.field(number, inner) + self.noise()
        return body

    def entry(self, value: bytes | None = None) -> bytes:
        """A map entry: key and value in any order, missing, or given twice.

        It holds no unknown field: protobuf's C++ parser skips one there, its Python parser drops the entry.
        """
        names = ["a", "b", "label", "", "ключ", "a\x00b"]
        parts = [self.field(1, self.rng.choice(names).encode()) for _ in range(self.rng.choice((0, 1, 1, 1, 1, 1, 2)))]
        for _ in range(self.rng.choice((0, 1, 1, 1, 1, 1, 2))):
            parts.append(self.field(2, self.feature() if value is None else value))
        self.rng.shuffle(parts)
        return b"".join(parts)

    def features(self) -> bytes:
        return b"".join(self.field(1, self.entry()) + self.noise() for _ in range(self.rng.randint(0, 5)))

    def feature_lists(self) -> bytes:
        body = b""
        for _ in range(self.rng.randint(0, 4)):
            steps = b"".join(self.field(1, self.feature()) + self.noise() for _ in range(self.rng.randint(0, 3)))
            body += self.field(1, self.entry(steps)) + self.noise()
        return body

    def example(self) -> bytes:
        return self.noise() + b"".join(
            self.field(1, self.features()) + self.noise() for _ in range(self.rng.choice((0, 1, 1, 1, 2)))
        )

    def sequence_example(self) -> bytes:
        parts = [self.field(1, self.features()) for _ in range(self.rng.choice((0, 1, 1, 2)))]
        parts += [self.field(2, self.feature_lists()) for _ in range(self.rng.choice((0, 1, 1, 2)))]
        self.rng.shuffle(parts)
        return b"".join(part + self.noise() for part in parts)


def build_columns(kind: str, payload: bytes, specs: list[tuple[bytes, str, bool, int]]) -> list:
    builder = _native.ColumnBuilder(kind, specs)
    fault = builder.append_record(payload)
    assert fault is None, fault.kind
    return builder.finish()


def values_of(kind: str, values) -> list:
    if kind == "bytes":
        return list(tfr.BytesColumn(*values))
    return [oracle.float_bits(value) for value in values.tolist()] if kind == "float" else values.tolist()


def test_odd_examples_read_as_protobuf_reads_them(seed):
    wire = WireWriter(random.Random(seed))
    for _ in range(NUM_MESSAGES):
        payload = wire.example()
        expected = oracle.plain_example(payload)
        names = [*expected, "missing"]
        kinds = [expected[name][0] or "int64" if name in expected else "int64" for name in names]
        specs = [(name.encode(), kind, False, -1) for name, kind in zip(names, kinds, strict=True)]
        found = {}
        for name, kind, column in zip(names, kinds, build_columns("example", payload, specs), strict=True):
            values, _, _, presence, *_ = column
            state = 2 if presence is None else presence[0]
            if state:
                found[name] = (kind, values_of(kind, values)) if state == 2 else (None, [])
        assert found == expected, payload.hex()


def test_odd_sequences_read_as_protobuf_reads_them(seed):
    wire = WireWriter(random.Random(seed))
    for _ in range(NUM_MESSAGES):
        payload = wire.sequence_example()
        _, lists = oracle.plain_sequence(payload)
        # A column holds one kind: lists whose steps differ in kind belong to the test of mixed kinds.
        uniform = {name: steps for name, steps in lists.items() if len({step[0] for step in steps} - {None}) <= 1}
        kinds = {name: next((step[0] for step in steps if step[0]), "bytes") for name, steps in uniform.items()}
        specs = [(name.encode(), kinds[name], True, -1) for name in uniform]
        for name, column in zip(uniform, build_columns("sequence_example", payload, specs), strict=True):
            values, splits, list_splits, presence, *_ = column
            assert presence is None or presence[0] == 2, payload.hex()
            assert list_splits.tolist() == [0, len(uniform[name])], payload.hex()
            flat = values_of(kinds[name], values)
            steps = [flat[start:stop] for start, stop in zip(splits.tolist(), splits.tolist()[1:], strict=False)]
            assert steps == [step[1] for step in uniform[name]], payload.hex()


def test_survey_counts_match_protobuf(seed):
    wire = WireWriter(random.Random(seed))
    num_counted = 0
    for _ in range(NUM_MESSAGES):
        payload = wire.example()
        if _native.classify_record(payload) not in ("example", "loose_example"):
            continue  # e.g. an entry with neither key nor value: not written in practice, and ambiguous
        expected = oracle.plain_example(payload)
        survey = _native.Survey("example")
        assert survey.add_record(payload) is None
        num_counted += 1
        found = {feature["name"].decode(): feature for feature in survey.features()}
        assert found.keys() == expected.keys(), payload.hex()
        for name, (kind, values) in expected.items():
            counts = dict(zip((None, "bytes", "float", "int64"), found[name]["kind_counts"], strict=True))
            assert counts == {key: int(key == kind) for key in counts}, payload.hex()
            assert found[name]["num_values"] == len(values), payload.hex()
    assert num_counted > NUM_MESSAGES // 3


def test_truncated_messages_fail_where_protobuf_fails(seed):
    wire = WireWriter(random.Random(seed))
    for _ in range(200):
        payload = wire.example()
        for stop in range(len(payload)):
            piece = payload[:stop]
            try:
                tf.train.Example.FromString(piece)
                is_valid = True
            except DecodeError:
                is_valid = False
            builder = _native.ColumnBuilder("example", [(b"a", "int64", False, -1)])
            fault = builder.append_record(piece)
            found_kind = fault.kind if fault is not None else None
            assert (found_kind != "wire") == is_valid, (piece.hex(), found_kind)


def mutate(rng: random.Random, payload: bytes) -> bytes:
    """A few random changes: flipped bits, lost and inserted bytes, pieces copied elsewhere."""
    data = bytearray(payload)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, size = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 5))
        action = rng.randrange(4)
        if action == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif action == 1:
            del data[at : at + size]
        elif action == 2:
            data[at:at] = rng.choice((rng.randbytes(size), b"\x0a", b"\x12", b"\x1a", b"\x80", b"\x00"))
        else:
            start = rng.randrange(len(data) + 1)
            data[at:at] = data[start : start + size]
    return bytes(data)


def test_random_bytes_are_refused_or_read_as_protobuf_does(seed):
    """Bytes that are mostly malformed: the same ones are refused, and the others have the same values."""
    rng = random.Random(seed)
    wire = WireWriter(rng)
    num_valid = num_stricter = 0
    for _ in range(2 * NUM_MESSAGES):
        payload = mutate(rng, wire.example())
        # The reference reads every feature; columns leave those unread that were not requested.
        try:
            reference.parse_example(payload)
            is_refused = False
        except reference.ReferenceFault:
            is_refused = True
        try:
            expected = oracle.plain_example(payload)
        except DecodeError:
            # Protobuf refuses names that are not UTF-8; to us a name is bytes.
            assert is_refused or not is_utf8_throughout(payload), payload.hex()
            continue
        num_valid += 1
        if is_refused:  # a field number of 0 in an unknown group: protobuf for Python takes it, that for C++ does not
            num_stricter += 1
            continue
        if has_odd_entries(payload):
            continue
        builder = _native.ColumnBuilder("example", [(b"a", "int64", False, -1)])
        if builder.append_record(payload) is None:
            values, _, _, presence, *_ = builder.finish()[0]
            kind, wanted = expected.get("a", (None, []))
            assert values.tolist() == (wanted if kind == "int64" else []), payload.hex()
            assert (presence is None or presence[0] == 2) == (kind == "int64"), payload.hex()
    assert num_valid > NUM_MESSAGES // 10
    assert num_stricter <= NUM_MESSAGES // 50


def has_odd_entries(payload: bytes) -> bool:
    """Whether a map entry has unknown fields: protobuf for Python leaves such entries out, that for C++ does not."""
    features = [field.value for field in reference.read_fields(payload) if field[:2] == (1, 2)]
    entries = [field.value for data in features for field in reference.read_fields(data) if field[:2] == (1, 2)]
    return any(field[:2] not in ((1, 2), (2, 2)) for entry in entries for field in reference.read_fields(entry))


def is_utf8_throughout(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_what_both_read_parse_example_reads_the_same(seed):
    """TensorFlow's own fast parser, on unusual and on damaged bytes: where both read, both read the same."""
    rng = random.Random(seed)
    wire = WireWriter(rng)
    spec = {"a": tf.io.VarLenFeature(tf.int64)}
    num_read = 0
    for number in range(600):
        payload = wire.example() if number % 2 else mutate(rng, wire.example())
        builder = _native.ColumnBuilder("example", [(b"a", "int64", False, -1)])
        if builder.append_record(payload) is not None:
            continue
        try:
            theirs = tf.io.parse_single_example(payload, spec)["a"].values.numpy().tolist()
        except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
            # It takes fewer forms than protobuf does, and quotes bytes in its message that are no text.
            continue
        try:
            by_protobuf = list(tf.train.Example.FromString(payload).features.feature["a"].int64_list.value)
        except DecodeError:
            continue
        if by_protobuf != theirs:
            continue  # of a list in several packed pieces, the first of them empty, the fast parser reads nothing
        num_read += 1
        assert builder.finish()[0][0].tolist() == theirs, payload.hex()
    assert num_read > 100


def join_entries(map_message) -> bytes:
    """Serialize a message that is one map, each entry by protobuf, entries in the order of their keys' bytes.

    Protobuf's C++ and Python runtimes both call their order deterministic and differ where one key is the beginning of
    another; the order of the bytes is the one of C++.
    """
    (field, entries), *_ = [*((field, value) for field, value in map_message.ListFields()), (None, {})]
    pieces = {}
    for name in entries:
        single = type(map_message)()
        getattr(single, field.name)[name].CopyFrom(entries[name])
        pieces[name.encode()] = single.SerializeToString(deterministic=True)
    return b"".join(pieces[name] for name in sorted(pieces))


def protobuf_bytes(message) -> bytes:
    """Serialize a message; an empty context is left out, because a row cannot express it."""
    wire = WireWriter(random.Random(0))
    wire.varint = lambda value, limit=10: _VarintBytes(value)
    fields = ("features",) if isinstance(message, tf.train.Example) else ("context", "feature_lists")
    return b"".join(
        wire.field(number, join_entries(getattr(message, name)))
        for number, name in enumerate(fields, start=1)
        if message.HasField(name) and (name != "context" or message.context.feature)
    )


@pytest.mark.parametrize("kind", ["example", "sequence"])
def test_written_bytes_are_protobufs_deterministic_bytes(tmp_path, seed, kind):
    """A decoded row encodes to the same bytes as protobuf writes."""
    make = oracle.random_examples if kind == "example" else oracle.random_sequences
    message_type = tf.train.Example if kind == "example" else tf.train.SequenceExample
    payloads = make(random.Random(seed), 300)
    oracle.write_with_tensorflow(tmp_path / "theirs", payloads, "none")
    with tfr.open(tmp_path / "theirs") as theirs, tfr.Writer(tmp_path / "ours") as writer:
        for row in theirs:
            writer.write(row)
    with tfr.open(tmp_path / "ours") as ours:
        for record, payload in zip(ours.records(), payloads, strict=True):
            assert record == protobuf_bytes(message_type.FromString(payload)), payload.hex()
