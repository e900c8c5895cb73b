"""Guarantees of all reshape verbs: all or nothing, nothing replaced without force, every record accounted for."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tfrkit
from tfrkit import tools
from tfrkit.container.index import read_index
from tfrkit.errors import ContainerError, CorruptRecordError, SchemaError, StorageError, TruncatedShardError
from tfrkit.ops.reshape import rewrite
from tfrkit.ops.reshape.rewrite import Rewritten
from tfrkit.outputs.shard import Tally
from tfrkit.passes import frame_sources
from tfrkit.sidecars.manifest import read_manifest
from tfrkit.storage.local import LocalReader
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import encode_example, write_frames

Verb = Callable[..., Rewritten]

RECORDS = [
    encode_example({b"label": ("int64", [number % 3]), b"x": ("bytes", [bytes([number]) * number])})
    for number in range(60)
]


def run_shuffle(source: Any, out: Any, **options: Any) -> Rewritten:
    return tools.shuffle(source, out, seed=1, **options)


def run_split(source: Any, out: Any, **options: Any) -> Rewritten:
    return tools.split(source, out, {"train": 0.8, "test": 0.2}, **options)


def run_reshard(source: Any, out: Any, **options: Any) -> Rewritten:
    return tools.reshard(source, out, shards=3, **options)


FOLDER_VERBS = [run_shuffle, run_split, run_reshard]
FILE_VERBS = [
    tools.merge,
    run_shuffle,
    tools.convert,
    lambda source, out, **options: tools.sample(source, out, 40, **options),
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "data.tfrecord").write_bytes(write_frames(RECORDS))
    return folder / "data.tfrecord"


def read(path: Path | str) -> list[bytes]:
    return list(tfrkit.open(path).records())


def everything_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("verb", FOLDER_VERBS)
def test_folder_holds_every_record_with_index_and_manifest(verb: Verb, source: Path, tmp_path: Path) -> None:
    made = verb(source, tmp_path / "out")
    assert sorted(read(tmp_path / "out")) == sorted(RECORDS)
    manifest = read_manifest(str(tmp_path / "out" / "tfrkit.json"))
    assert manifest is not None
    assert [entry.records for entry in manifest.entries.values()] == [file.records for file in made.files]
    for file in made.files:
        reader = LocalReader(file.path)
        folder, name = os.path.split(file.path)
        index = read_index(os.path.join(folder, "_index", f"{name}.tfidx"), shard=reader)
        assert index.offsets.tolist() == frame_offsets(Path(file.path).read_bytes())
        assert file.nbytes == reader.size
        reader.close()
    assert tools.verify(tmp_path / "out").ok
    assert not [name for name in everything_in(tmp_path) if name.endswith(".tmp")]


@pytest.mark.parametrize("verb", FILE_VERBS)
def test_file_holds_records_with_index(verb: Verb, source: Path, tmp_path: Path) -> None:
    made = verb(source, tmp_path / "out.tfrecord")
    records = read(tmp_path / "out.tfrecord")
    assert len(records) == made.records
    assert set(records) <= set(RECORDS)
    sidecars = {"_index", "_index/out.tfrecord.tfidx", "_index/out.tfrecord.tfrkit.json"}
    assert everything_in(tmp_path) == {"in", "in/data.tfrecord", "out.tfrecord", *sidecars}


@pytest.mark.parametrize("compression", ["gzip", "zlib", "xz", "zstd", "none"])
@pytest.mark.parametrize("verb", [run_split, run_shuffle])
def test_every_compression_reads_back_with_its_index(
    verb: Verb, compression: str, source: Path, tmp_path: Path
) -> None:
    made = verb(source, tmp_path / "out", compression=compression)
    assert sorted(read(tmp_path / "out")) == sorted(RECORDS)
    records = tfrkit.open([file.path for file in made.files]).records()
    assert sorted(records[number] for number in range(60)) == sorted(RECORDS)
    assert made.compression == compression


def test_compression_follows_the_source_then_the_name(source: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.tfrecord"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    assert tools.merge(packed, tmp_path / "a.tfrecord").compression == "gzip"
    assert tools.merge([packed, source], tmp_path / "b.tfrecord").compression == "none"
    assert tools.merge(source, tmp_path / "c.tfrecord.gz").compression == "gzip"
    assert tools.merge(packed, tmp_path / "d.tfrecord", compression="none").compression == "none"
    assert (tmp_path / "d.tfrecord").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("verb", FOLDER_VERBS)
@pytest.mark.parametrize("damage", ["payload", "cut", "gzip"])
def test_damage_names_the_place_and_leaves_nothing(verb: Verb, damage: str, source: Path, tmp_path: Path) -> None:
    data = source.read_bytes()
    offset = frame_offsets(data)[40]
    if damage == "payload":
        source.write_bytes(flip(data, offset + 14))
    else:
        data = data[: offset + 20]
        source.write_bytes(gzip.compress(data) if damage == "gzip" else data)
    kind = CorruptRecordError if damage == "payload" else TruncatedShardError
    with pytest.raises(kind, match=rf"record 40, byte {offset}\n  nothing was written .* tfr repair .*data.tfrecord"):
        verb(source, tmp_path / "deep" / "out")
    assert everything_in(tmp_path) == {"in", "in/data.tfrecord"}


@pytest.mark.parametrize("verb", FILE_VERBS[:3])
def test_damage_leaves_an_older_file_as_it_was(verb: Verb, source: Path, tmp_path: Path) -> None:
    (tmp_path / "out.tfrecord").write_bytes(write_frames([b"old"]))
    source.write_bytes(flip(source.read_bytes(), 20))
    with pytest.raises(CorruptRecordError, match="record 0"):
        verb(source, tmp_path / "out.tfrecord", force=True)
    assert read(tmp_path / "out.tfrecord") == [b"old"]
    assert everything_in(tmp_path) == {"in", "in/data.tfrecord", "out.tfrecord"}


@pytest.mark.parametrize("verb", FILE_VERBS)
def test_existing_file_is_replaced_with_force_only(verb: Verb, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tfrecord"
    out.write_bytes(write_frames([b"old"]))
    with pytest.raises(StorageError, match=r"the output exists already - at .*out.tfrecord\n  replace it: force=True"):
        verb(source, out)
    assert read(out) == [b"old"]
    verb(source, out, force=True)
    assert b"old" not in read(out)


@pytest.mark.parametrize("verb", FILE_VERBS)
def test_source_is_never_replaced(verb: Verb, source: Path) -> None:
    with pytest.raises(StorageError, match="the output is one of the files to read"):
        verb(source, source, force=True)
    assert read(source) == RECORDS


@pytest.mark.parametrize("verb", FOLDER_VERBS)
def test_folder_to_read_is_no_output(verb: Verb, source: Path) -> None:
    with pytest.raises(StorageError, match="the output is a folder to read from, it holds .*data.tfrecord"):
        verb(source, source.parent, force=True)
    assert everything_in(source.parent) == {"data.tfrecord"}


@pytest.mark.parametrize("verb", FOLDER_VERBS)
def test_full_folder_is_used_with_force_only_and_old_shards_go(verb: Verb, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tools.reshard(source, out, shards=7)
    (out / "notes.md").write_text("mine")
    with pytest.raises(StorageError, match="the output exists already"):
        verb(source, out)
    verb(source, out, force=True)
    assert sorted(read(out)) == sorted(RECORDS)
    assert (out / "notes.md").read_text() == "mine"
    assert not list(out.glob("*of-00007*"))
    assert not list((out / "_index").glob("*of-00007*"))


def test_foreign_shard_in_the_folder_is_refused_even_with_force(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "other.tfrecord").write_bytes(write_frames([b"x"]))
    with pytest.raises(StorageError, match=r"the folder has another shard.* - at .*other.tfrecord"):
        run_reshard(source, out, force=True)
    assert everything_in(out) == {"other.tfrecord"}


def test_empty_folder_is_used(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    run_reshard(source, f"{tmp_path}/out/")
    assert sorted(read(tmp_path / "out")) == sorted(RECORDS)
    assert not [name for name in everything_in(tmp_path) if name.endswith(".tmp")]


def test_too_little_space_is_reported_before_anything_is_written(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfrkit.storage.local.shutil.disk_usage", lambda _: (2000, 1000, 1000))
    with pytest.raises(StorageError, match="too little space"):
        run_reshard(source, tmp_path / "out")
    assert everything_in(tmp_path) == {"in", "in/data.tfrecord"}


def test_full_disk_leaves_nothing(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, pieces: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tfrkit.outputs.write_queue.os.writev", refuse)
    with pytest.raises(StorageError, match="cannot write, no space left on device, no partial file was left"):
        run_split(source, tmp_path / "out")
    assert everything_in(tmp_path) == {"in", "in/data.tfrecord"}


@pytest.mark.parametrize("verb", FOLDER_VERBS)
def test_interruption_leaves_nothing(verb: Verb, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(rewrite.Outputs, "put", interrupt)
    with pytest.raises(KeyboardInterrupt):
        verb(source, tmp_path / "out")
    assert everything_in(tmp_path) == {"in", "in/data.tfrecord"}


def test_lost_records_are_detected(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put = rewrite.Outputs.put
    monkeypatch.setattr(rewrite.Outputs, "put", lambda self, number, frames: put(self, number, bytes(frames)[:-17]))
    source.write_bytes(write_frames([b"a", b"b"]))
    with pytest.raises(ContainerError, match="merge read 2 records and wrote 1, nothing was kept"):
        tools.merge(source, tmp_path / "out.tfrecord")
    assert everything_in(tmp_path) == {"in", "in/data.tfrecord"}


def test_changed_records_are_detected(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put = rewrite.Outputs.put
    monkeypatch.setattr(
        rewrite.Outputs, "put", lambda self, number, frames: put(self, number, write_frames([b"a", b"c"]))
    )
    source.write_bytes(write_frames([b"a", b"b"]))
    with pytest.raises(ContainerError, match="merge wrote other records than it read, digest 0x"):
        tools.merge(source, tmp_path / "out.tfrecord")


def test_file_that_grows_between_counting_and_reading_is_detected(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = frame_sources.count_ahead

    def miscount(shards: Any, policy: Any) -> Any:
        return [replace(counted, num_records=counted.num_records - 1) for counted in count(shards, policy)]

    monkeypatch.setattr(frame_sources, "count_ahead", miscount)
    with pytest.raises(StorageError, match="the file changed, it has more than the 59 records"):
        run_reshard(source, tmp_path / "out")


def test_empty_source_gives_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"")
    assert tools.merge(tmp_path / "a.tfrecord", tmp_path / "b.tfrecord").records == 0
    assert tools.shuffle(tmp_path / "a.tfrecord", tmp_path / "c.tfrecord").records == 0
    assert tools.reshard(tmp_path / "a.tfrecord", tmp_path / "out", shards=4).records == 0
    assert read(tmp_path / "b.tfrecord") == read(tmp_path / "c.tfrecord") == []
    assert len(list((tmp_path / "out").glob("*tfrecord*"))) == 1


def test_class_names_go_with_the_records(source: Path, tmp_path: Path) -> None:
    (source.parent / "classes.txt").write_text("0:cat\n1:dog\n2:owl\n")
    run_split(source, tmp_path / "out")
    assert (tmp_path / "out" / "classes.txt").read_text() == "0:cat\n1:dog\n2:owl\n"
    tools.merge(source, tmp_path / "one.tfrecord")
    assert (tmp_path / "_index" / "one.tfrecord.classes.txt").read_text() == "0:cat\n1:dog\n2:owl\n"
    run_reshard(tmp_path / "one.tfrecord", tmp_path / "again")
    assert (tmp_path / "again" / "classes.txt").read_text() == "0:cat\n1:dog\n2:owl\n"


def name_classes(folder: Path, text: str) -> Path:
    """Write a class file, and records if the folder is new."""
    if not folder.exists():
        folder.mkdir()
        (folder / "more.tfrecord").write_bytes(write_frames(RECORDS))
    (folder / "classes.txt").write_text(text)
    return folder


def test_class_lists_of_different_lengths_are_not_carried_over(source: Path, tmp_path: Path) -> None:
    name_classes(source.parent, "0:cat\n")
    other = name_classes(tmp_path / "other", "0:cat\n1:dog\n")
    made = run_reshard([source, other], tmp_path / "out")
    assert "classes.txt was not carried over, it differs between input folders" in made.notes
    assert not (tmp_path / "out" / "classes.txt").exists()


def test_class_files_that_name_an_id_differently_are_refused(source: Path, tmp_path: Path) -> None:
    name_classes(source.parent, "0:cat\n1:dog\n")
    other = name_classes(tmp_path / "other", "0:cat\n1:fish\n")
    with pytest.raises(SchemaError, match="class 1 of feature 'label' is 'fish' here and 'dog' in the other files"):
        run_reshard([source, other], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_tfds_metadata_is_rewritten_for_the_new_shards(source: Path, tmp_path: Path) -> None:
    first = run_split(source, tmp_path / "digits", shards=2)
    assert first.splits == {"train": 48, "test": 12}
    info = json.loads((tmp_path / "digits" / "dataset_info.json").read_text())
    info["citation"] = "somebody, 1999"
    (tmp_path / "digits" / "dataset_info.json").write_text(json.dumps(info))
    run_reshard(tmp_path / "digits", tmp_path / "other")
    info = json.loads((tmp_path / "other" / "dataset_info.json").read_text())
    assert (info["name"], info["citation"]) == ("digits", "somebody, 1999")
    lengths = {split["name"]: split["shardLengths"] for split in info["splits"]}
    assert lengths == {"train": ["16", "16", "16"], "test": ["4", "4", "4"]}
    names = sorted(path.name for path in (tmp_path / "other").glob("*tfrecord*"))
    assert names[0] == "digits-test.tfrecord-00000-of-00003"
    assert len(names) == 6
    features = (tmp_path / "digits" / "features.json").read_text()
    assert (tmp_path / "other" / "features.json").read_text() == features
    assert tfrkit.open(tmp_path / "other").splits == {"test": 12, "train": 48}


def test_tally_adds_up_without_regard_to_order() -> None:
    one, two = Tally(1, 10, 2**64 - 1), Tally(2, 5, 7)
    assert one + two == two + one == Tally(3, 15, 6)


@pytest.mark.parametrize("verb", FOLDER_VERBS)
def test_same_arguments_give_the_same_bytes(verb: Verb, source: Path, tmp_path: Path) -> None:
    for name in ("one/x", "two/x"):
        verb(source, tmp_path / name, compression="gzip", jobs=1 if name == "one/x" else 3)
    one, two = tmp_path / "one" / "x", tmp_path / "two" / "x"
    assert everything_in(one) == everything_in(two)
    for path in one.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (two / path.relative_to(one)).read_bytes()


@pytest.mark.parametrize("verb", [run_shuffle, run_split, run_reshard])
def test_pipe_is_refused_where_records_have_to_be_counted(verb: Verb, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    try:
        os.write(writer, write_frames(RECORDS[:20]) + bytes(5000))
        with pytest.raises(StorageError, match="expected files, got a pipe"):
            verb(tmp_path / "pipe", tmp_path / "out")
    finally:
        os.close(writer)


def test_wrong_options_are_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="compression expected one of none, gzip"):
        tools.merge(source, tmp_path / "x", compression="rar")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="jobs expected from 1 up, got 0"):
        tools.merge(source, tmp_path / "x", jobs=0)
    with pytest.raises(ValueError, match="level of gzip must be"):
        tools.merge(source, tmp_path / "x", compression="gzip", level=99)
    assert everything_in(tmp_path) == {"in", "in/data.tfrecord"}
