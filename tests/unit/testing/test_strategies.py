"""Unusual messages are well-formed, and every kind of them is made."""

from __future__ import annotations

from random import Random

from tfrkit.testing.reference import read_fields
from tfrkit.testing.strategies import OddWire

WIRE = OddWire(Random(1))


def test_field_has_its_number_and_value() -> None:
    for number in (1, 2, 3, 15, 16):
        for _ in range(50):
            [field] = read_fields(WIRE.field(number, b"value"))
            assert (field.number, field.wire_type, field.value) == (number, 2, b"value")


def test_numbers_are_those_of_64_bits() -> None:
    numbers = {WIRE._int64() for _ in range(500)}
    assert (min(numbers), max(numbers)) == (-(2**63), 2**63 - 1)


def test_lists_of_numbers_have_values_of_their_kind_alone() -> None:
    found: dict[int, set[int]] = {1: set(), 2: set(), 3: set()}
    for _ in range(4000):
        for part in read_fields(WIRE.feature()):
            if part.wire_type == 2 and part.number in found and isinstance(part.value, bytes):
                found[part.number] |= {field.wire_type for field in read_fields(part.value) if field.number == 1}
    assert (found[2], found[3]) == ({2, 5}, {0, 2})
    assert found[1] > {0, 2}


def test_entries_have_every_oddity() -> None:
    shapes = set()
    for _ in range(2000):
        fields = read_fields(WIRE._entry(of_lists=False))
        shapes.add(tuple(field.number for field in fields if field.wire_type == 2 and field.number in (1, 2)))
    assert shapes == {(1, 2), (2, 1), (1, 1, 2), (1, 2, 2), (1,), (2,)}
