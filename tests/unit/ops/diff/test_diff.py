from __future__ import annotations

import gzip
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

import tfrkit
from tfrkit.errors import CorruptRecordError, MissingFeatureError, SchemaError, StorageError
from tfrkit.ops.diff.diff import Difference, diff
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import encode_example, encode_sequence_example, write_frames


def make_record(number: int, **changes: tuple[str, list[object]]) -> bytes:
    features = {
        "id": ("bytes", [f"key {number}".encode()]),
        "label": ("int64", [number]),
        "x": ("float", [number / 2, 1.0]),
    }
    return encode_example({name.encode(): value for name, value in {**features, **changes}.items()})


def save(path: Path, records: Sequence[bytes], *, shards: int = 1, compress: bool = False) -> Path:
    path.mkdir()
    size = -(-len(records) // shards) or 1
    for number in range(shards):
        content = write_frames(records[number * size : (number + 1) * size])
        (path / f"x-{number:05d}-of-{shards:05d}.tfrecord").write_bytes(gzip.compress(content) if compress else content)
    return path


def counts(found: Difference) -> tuple[int, int, int, int]:
    return found.equal, found.changed, found.removed, found.added


@pytest.mark.parametrize("key", [None, "id", "label"])
@pytest.mark.parametrize(("shards", "compress"), [(1, False), (3, False), (7, True), (1, True)])
def test_same_records_in_other_shards_are_the_same(
    tmp_path: Path, key: str | None, shards: int, compress: bool
) -> None:
    records = [make_record(number) for number in range(100)]
    a = save(tmp_path / "a", records, shards=2)
    b = save(tmp_path / "b", records, shards=shards, compress=compress)
    found = diff(a, b, key=key)
    assert found.same
    assert counts(found) == (100, 0, 0, 0)
    assert (found.records_a, found.records_b, found.listed, found.features) == (100, 100, [], {})


@pytest.mark.parametrize("compress", [False, True])
def test_changes_by_position_are_listed_feature_by_feature(tmp_path: Path, compress: bool) -> None:
    records = [make_record(number) for number in range(20)]
    changed = list(records)
    changed[3] = make_record(3, label=("int64", [99]))
    changed[12] = make_record(12, x=("float", [6.0, 1.5]), id=("bytes", [b"a longer name"]))
    found = diff(save(tmp_path / "a", records), save(tmp_path / "b", changed[:18], shards=4, compress=compress))
    assert counts(found) == (16, 2, 2, 0)
    assert found.features == {"label": 1, "id": 1, "x": 1}
    first, second = [change for change in found.listed if change.change == "changed"]
    assert first.a is not None and first.b is not None
    assert (first.a.number, first.b.number, first.b.record, Path(first.b.shard).name[:7]) == (3, 3, 3, "x-00000")
    assert [(f.feature, f.change, f.a, f.b) for f in first.features] == [("label", "changed", "3", "99")]
    assert {f.feature: (f.a, f.b, f.note) for f in second.features} == {
        "id": ('"key 12"', '"a longer name"', ""),
        "x": ("[6.0, 1.0]", "[6.0, 1.5]", "1 of 2 values differ, by at most 0.5"),
    }
    removed = [change for change in found.listed if change.change == "removed"]
    assert [change.a.number for change in removed if change.a] == [18, 19]


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("key", ["id", "label"])
def test_changes_by_key_are_found_in_any_order(tmp_path: Path, key: str, compress: bool) -> None:
    records = [make_record(number) for number in range(50)]
    others = [
        make_record(number, x=("float", [0.25, 0.25])) if number in (7, 30) else records[number]
        for number in range(2, 50)
    ]
    others += [make_record(60), make_record(61)]
    random.Random(4).shuffle(others)
    found = diff(save(tmp_path / "a", records), save(tmp_path / "b", others, shards=3, compress=compress), key=key)
    assert counts(found) == (46, 2, 2, 2)
    changed = {change.key: change for change in found.listed if change.change == "changed"}
    assert sorted(change.a.number for change in changed.values() if change.a) == [7, 30]
    for change in changed.values():
        assert change.a is not None and change.b is not None
        assert others[change.b.number] == make_record(change.a.number, x=("float", [0.25, 0.25]))
    removed = [change.key for change in found.listed if change.change == "removed"]
    assert removed == (['"key 0"', '"key 1"'] if key == "id" else ["0", "1"])
    added = {change.key for change in found.listed if change.change == "added"}
    assert added == ({'"key 60"', '"key 61"'} if key == "id" else {"60", "61"})


def test_answer_equals_that_of_comparing_rows_one_by_one(tmp_path: Path) -> None:
    """The slow twin, over runs of records that differ in length, in bytes and not at all."""
    for seed in range(8):
        chance = random.Random(seed)
        sizes = [chance.choice([0, 1, 5, 300]) for _ in range(3000)]
        a = [bytes(size) for size in sizes]
        b = [bytes([1]) * size if chance.random() < 0.01 else bytes(size + (chance.random() < 0.01)) for size in sizes]
        folder = tmp_path / str(seed)
        folder.mkdir()
        found = diff(
            save(folder / "a", a, shards=3), save(folder / "b", b, shards=5, compress=seed % 2 == 0), max_listed=5000
        )
        wanted = [number for number, (one, other) in enumerate(zip(a, b, strict=True)) if one != other]
        assert [change.a.number for change in found.listed if change.a] == wanted
        assert found.equal == len(a) - len(wanted)


def test_records_with_the_same_values_in_other_bytes_are_no_difference(tmp_path: Path) -> None:
    one = encode_example({b"a": ("int64", [1]), b"b": ("float", [float("nan")])})
    # Two bytes of header, then an entry of twelve, then the other one.
    other = one[:2] + one[14:] + one[2:14]
    assert one != other
    found = diff(save(tmp_path / "a", [one] * 3), save(tmp_path / "b", [one, other, one]))
    assert found.same
    assert (found.equal, found.recoded) == (2, 1)


def test_schema_differences_are_named_once(tmp_path: Path) -> None:
    a = save(tmp_path / "a", [make_record(number, old=("int64", [1])) for number in range(5)])
    records = [make_record(number, new=("bytes", [b"x"]), label=("float", [float(number)])) for number in range(5)]
    records[2] = make_record(2, new=("bytes", [b"x"]), label=("float", [2.0]), x=("float", [9.0, 9.0]))
    found = diff(a, save(tmp_path / "b", records))
    assert {(change.feature, change.change, change.a, change.b) for change in found.schema} == {
        ("old", "removed", "int64", None),
        ("new", "added", None, "bytes"),
        ("label", "changed", "int64", "float"),
    }
    assert (counts(found), found.schema_only, found.same) == ((0, 1, 0, 0), 4, False)
    assert [feature.feature for feature in found.listed[0].features] == ["x"]


def test_values_of_another_kind_are_changed_unless_they_are_the_same_numbers(tmp_path: Path) -> None:
    a = save(tmp_path / "a", [make_record(number, v=("float", [number + 0.5])) for number in range(3)])
    text = save(tmp_path / "b", [make_record(number, v=("bytes", [b"%d.5" % number])) for number in range(3)])
    found = diff(a, text)
    assert (counts(found), found.schema_only) == ((0, 3, 0, 0), 0)
    assert (found.features, found.listed[0].features[0].note) == ({"v": 3}, "another kind")
    rounded = save(tmp_path / "c", [make_record(number, v=("int64", [number])) for number in range(3)])
    assert (diff(a, rounded).changed, diff(a, rounded).schema_only) == (3, 0)


def test_raw_records_are_compared_by_their_bytes(tmp_path: Path) -> None:
    found = diff(save(tmp_path / "a", [b"one", b"\xff\xfe"]), save(tmp_path / "b", [b"one", b"\xff\xfd", b"three"]))
    assert counts(found) == (1, 1, 0, 1)
    (feature,) = found.listed[0].features
    assert (feature.feature, feature.a, feature.b) == ("record", "ff fe (2 bytes)", "ff fd (2 bytes)")
    examples = save(tmp_path / "c", [make_record(1)])
    mixed = diff(tmp_path / "a", examples)
    assert [(change.a, change.b) for change in mixed.schema] == [("raw records", "example records")]


def test_sequence_examples_are_compared_frame_by_frame(tmp_path: Path) -> None:
    def make(number: int, steps: int, first: int = 0) -> bytes:
        frames = [("int64", [first if step == 1 else step]) for step in range(steps)]
        return encode_sequence_example({b"n": ("int64", [number])}, {b"f": frames})

    a = [make(1, 3, 1), make(2, 3, 1), make(3, 3, 1)]
    found = diff(save(tmp_path / "a", a), save(tmp_path / "b", [a[0], make(2, 3, 8), make(30, 4, 1)]), key=None)
    assert counts(found) == (1, 2, 0, 0)
    assert found.features == {"feature_lists.f": 2, "context.n": 1}
    notes = [feature.note for change in found.listed for feature in change.features if feature.feature != "context.n"]
    assert notes == ["1 of 3 frames differ: 1", "3 against 4 frames"]
    assert diff(tmp_path / "a", tmp_path / "b", key="n").removed == 1


def test_list_is_limited_and_counts_are_complete(tmp_path: Path) -> None:
    a = save(tmp_path / "a", [make_record(number) for number in range(10)])
    b = save(tmp_path / "b", [make_record(number + 1) for number in range(30)])
    found = diff(a, b, max_listed=3)
    assert counts(found) == (0, 10, 0, 20)
    assert [change.change for change in found.listed] == ["changed"] * 3 + ["added"] * 3
    assert diff(a, b, max_listed=0).listed == []


def test_key_that_comes_twice_is_named(tmp_path: Path) -> None:
    records = [make_record(number) for number in range(5)]
    a, b = save(tmp_path / "a", records), save(tmp_path / "b", [*records, records[3], records[1]])
    with pytest.raises(
        SchemaError, match=r"key 'id' expected once, got twice: .*\"key 1\" in records 1 and 6.*x-00000"
    ) as caught:
        diff(a, b, key="id")
    assert '"key 3" in records 3 and 5' in str(caught.value)
    with pytest.raises(SchemaError, match="key 'label' expected once, got twice: .*3 in records 3 and 5"):
        diff(b, a, key="label")


def test_missing_or_unusable_key_is_reported_with_its_record(tmp_path: Path) -> None:
    without = encode_example({b"label": ("int64", [5]), b"x": ("float", [1.0, 2.0])})
    a = save(tmp_path / "a", [make_record(0), make_record(1), without])
    with pytest.raises(SchemaError, match=r"key 'id' expected one value in every record, got none - at .*, record 2\n"):
        diff(a, a, key="id")
    with pytest.raises(SchemaError, match="key 'x' expected one integer or text per record"):
        diff(a, a, key="x")
    with pytest.raises(MissingFeatureError, match="no feature 'lable', did you mean 'label' - at "):
        diff(a, a, key="lable")
    raw = save(tmp_path / "raw", [b"\xff"])
    with pytest.raises(SchemaError, match="records have no features, so none can be the key"):
        diff(raw, raw, key="id")
    texts = save(tmp_path / "b", [make_record(0, label=("bytes", [b"zero"]))])
    with pytest.raises(SchemaError, match="key 'label' expected one kind, got int64 and bytes"):
        diff(a, texts, key="label")


def test_empty_datasets_differ_by_their_records(tmp_path: Path) -> None:
    empty, full = save(tmp_path / "a", []), save(tmp_path / "b", [make_record(0)])
    assert diff(empty, empty).same
    for key in (None, "id"):
        assert counts(diff(empty, full, key=key)) == (0, 0, 0, 1)
        assert counts(diff(full, empty, key=key)) == (0, 0, 1, 0)


def test_damage_and_missing_files_are_raised(tmp_path: Path) -> None:
    a = save(tmp_path / "a", [make_record(number) for number in range(5)])
    (path,) = save(tmp_path / "b", [make_record(number) for number in range(5)]).iterdir()
    content = path.read_bytes()
    path.write_bytes(flip(content, frame_offsets(content)[2] + 20))
    for key in (None, "id"):
        with pytest.raises(CorruptRecordError, match="payload checksum mismatch.*record 2"):
            diff(a, tmp_path / "b", key=key)
    with pytest.raises(StorageError, match="no such file"):
        diff(a, tmp_path / "nope")


def test_large_records_are_compared_too(tmp_path: Path) -> None:
    large = bytes(3 << 20)
    a = save(tmp_path / "a", [large, large, b"x"])
    found = diff(a, save(tmp_path / "b", [large, large[:-1] + b"\1", b"x"], shards=3))
    assert counts(found) == (2, 1, 0, 0)


def test_json_form_has_its_keys(tmp_path: Path) -> None:
    a, b = save(tmp_path / "a", [make_record(0)]), save(tmp_path / "b", [make_record(0, label=("int64", [5]))])
    content = diff(a, b, key="id").to_json()
    assert list(content) == [
        "same", "records_a", "records_b", "equal", "recoded", "schema_only", "changed", "added", "removed", "features",
        "schema", "changes",
    ]  # fmt: skip
    (change,) = content["changes"]
    place = {"number": 0, "shard": str(next(a.iterdir())), "record": 0}
    assert change == {
        "change": "changed",
        "a": place,
        "b": {**place, "shard": str(next(b.iterdir()))},
        "key": '"key 0"',
        "features": [{"feature": "label", "change": "changed", "a": "0", "b": "5", "note": ""}],
    }


def test_progress_is_reported(tmp_path: Path) -> None:
    class Watch:
        def __init__(self) -> None:
            self.seen: list[object] = []

        def begin(self, num_items: int, nbytes: int | None) -> None:
            self.seen.append(("begin", num_items, nbytes))

        def advance(self, num_items: int, nbytes: int, num_bad: int) -> None:
            self.seen.append((num_items, nbytes))

        def end(self) -> None:
            self.seen.append("end")

    a = save(tmp_path / "a", [make_record(0)] * 3)
    size = next(a.iterdir()).stat().st_size
    watch = Watch()
    diff(a, a, progress=watch)
    assert watch.seen == [("begin", 3, size), (3, size), "end"]


def test_tools_have_it() -> None:
    assert tfrkit.tools.diff is diff


def test_records_without_a_common_feature_are_changed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with tfrkit.Writer(tmp_path / f"{name}.tfrecord") as writer:
            for number in range(3):
                writer.write({name: number})
    found = diff(tmp_path / "a.tfrecord", tmp_path / "b.tfrecord")
    assert (found.changed, found.schema_only, found.equal) == (3, 0, 0)
