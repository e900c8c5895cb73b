from __future__ import annotations

import hashlib
import itertools
import random
import tracemalloc

import numpy as np
import pytest

from tfrkit._limits import LIMITS
from tfrkit.ops.duplicates import NEAR_LONG_BITS, Fingerprints, Match, count_bits


def digest_of(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def add(prints: Fingerprints, texts: list[str], *, split: int = 0, hashes: list[tuple[int, int]] | None = None) -> None:
    """Records of some contents; `hashes` are short and long hashes, of which the long one has 64 bits that matter."""
    num_records = len(texts)
    short, long = np.zeros(num_records, np.uint64), np.zeros((num_records, 4), np.uint64)
    for number, (one, two) in enumerate(hashes or ()):
        short[number], long[number, 0] = one, two
    prints.add(
        [digest_of(text) if text else b"" for text in texts],
        short,
        long,
        np.full(num_records, hashes is not None),
        split=split,
    )


def test_no_records_have_no_matches() -> None:
    assert list(Fingerprints().find_matches()) == []
    prints = Fingerprints()
    add(prints, [])
    add(prints, ["a"])
    assert list(prints.find_matches()) == []


def test_equal_records_match_the_first_of_them() -> None:
    prints = Fingerprints()
    add(prints, ["a", "b", "a", "", "a", "", "b"])
    assert sorted(prints.find_matches()) == [Match(0, 2, None), Match(0, 4, None), Match(1, 6, None)]


def test_equal_records_match_the_first_in_each_split() -> None:
    prints = Fingerprints()
    add(prints, ["a", "b", "a"], split=0)
    add(prints, ["a", "a", "c"], split=1)
    add(prints, ["c", "a"], split=2)
    assert set(prints.find_matches()) == {
        Match(0, 2, None),
        Match(0, 3, None),
        Match(0, 4, None),
        Match(3, 4, None),
        Match(0, 7, None),
        Match(3, 7, None),
        Match(5, 6, None),
    }


def test_near_hashes_match_with_their_distance() -> None:
    prints = Fingerprints()
    near, far = 0b111, 0b1111
    hashes = [(0, 0), (near << 20, 0b11), (far << 20, 0), (1 << 63, (1 << 40) - 1)]
    add(prints, ["a", "b", "c", "d"], hashes=hashes)
    found = set(prints.find_matches())
    # 0 and 2 differ in four bits of the short hash; 0 and 3 in forty of the long one.
    assert found == {Match(0, 1, 2), Match(1, 2, 2)}
    assert NEAR_LONG_BITS < 40


def test_exact_copy_is_not_reported_again_as_near() -> None:
    prints = Fingerprints()
    add(prints, ["a", "a"], hashes=[(5, 5), (5, 5)])
    add(prints, ["a", "b"], split=1, hashes=[(5, 5), (5, 5)])
    assert set(prints.find_matches()) == {
        Match(0, 1, None),
        Match(0, 2, None),
        Match(0, 3, 0),
        Match(2, 3, 0),
    }


def test_near_search_finds_every_pair_that_comparing_all_finds() -> None:
    rng = random.Random(11)
    bases = [rng.getrandbits(64) for _ in range(40)]
    hashes = []
    for _ in range(400):
        short = rng.choice(bases)
        for _ in range(rng.randrange(6)):
            short ^= 1 << rng.randrange(64)
        hashes.append((short, rng.getrandbits(20)))
    prints = Fingerprints()
    add(prints, [str(number) for number in range(200)], hashes=hashes[:200])
    add(prints, [str(number) for number in range(200, 400)], split=1, hashes=hashes[200:])
    nearest: dict[tuple[int, int], tuple[int, int]] = {}
    for one, two in itertools.combinations(range(400), 2):
        distance = (hashes[one][1] ^ hashes[two][1]).bit_count()
        if (hashes[one][0] ^ hashes[two][0]).bit_count() <= 3 and distance <= NEAR_LONG_BITS:
            key = (two, one // 200)
            nearest[key] = min(nearest.get(key, (999, 0)), (distance, one))
    expected = {Match(one, two, distance) for (two, _), (distance, one) in nearest.items()}
    assert len(expected) > 100
    assert set(prints.find_matches()) == expected


def test_crowd_of_alike_hashes_is_compared_with_neighbours_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "max_neighbours", 2)
    prints = Fingerprints()
    add(prints, [str(number) for number in range(50)], hashes=[(0, 0)] * 50)
    assert len({match.later for match in prints.find_matches()}) == 49


@pytest.mark.parametrize("shape", [(5,), (5, 4)])
def test_bits_are_counted(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(3).integers(0, 2**63, shape, np.uint64)
    expected = [int(value).bit_count() for value in values.reshape(-1)]
    assert count_bits(values).reshape(-1).tolist() == expected


@pytest.mark.parametrize("piece", [1, 7, 1 << 18])
def test_result_does_not_depend_on_the_size_of_pieces(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    chance = random.Random(4)
    texts = [f"r{chance.randrange(60)}" if number % 9 else "" for number in range(200)]
    hashes = [(chance.getrandbits(64) & 0xFFFF00000000FFFF, chance.getrandbits(8)) for _ in texts]

    def find() -> list[Match]:
        prints = Fingerprints()
        for start in range(0, 200, 50):
            add(prints, texts[start : start + 50], split=start // 100, hashes=hashes[start : start + 50])
        add(prints, [f"r{number}" for number in range(70)], split=2)
        return list(prints.find_matches())

    expected = find()
    monkeypatch.setattr(LIMITS, "compared_records", piece)
    assert find() == expected
    assert len(expected) > 100


@pytest.mark.resources
def test_records_without_images_take_few_bytes() -> None:
    number = 200_000
    chance = np.random.default_rng(1)
    tracemalloc.start()
    try:
        prints = Fingerprints()
        for _ in range(4):
            data = chance.bytes(16 * number // 4)
            digests = [data[at : at + 16] for at in range(0, len(data), 16)]
            empty = np.zeros(len(digests), np.uint64)
            prints.add(digests, empty, np.zeros((len(digests), 4), np.uint64), empty.astype(bool), split=0)
        del digests, data, empty
        assert tracemalloc.get_traced_memory()[0] < 20 * number
        tracemalloc.reset_peak()
        assert list(prints.find_matches()) == []
        assert tracemalloc.get_traced_memory()[1] < 60 * number
    finally:
        tracemalloc.stop()
