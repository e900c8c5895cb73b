"""What Python parses of files that others wrote: each surface takes any bytes and raises errors of ours, or none.

A surface is a function of bytes with a few seeds. `fuzz_python.py` mutates the seeds with coverage as a guide;
`test_surfaces.py` does so with a fixed seed in every test run.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import shutil
import struct
import tempfile
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

import tfrkit as tfr
from tfrkit import _native
from tfrkit.batches.state import load_state
from tfrkit.build.journal import parse_done, read_inputs
from tfrkit.container import index as indexes
from tfrkit.container import shard_table
from tfrkit.container.identify import describe_foreign
from tfrkit.container.seekable import SeekableInflate
from tfrkit.errors import SidecarWarning, TfrkitError
from tfrkit.features import schema_json, schema_pbtxt, tfds_json
from tfrkit.images.png import decode_png, read_png
from tfrkit.images.sniff import sniff_image
from tfrkit.ops.query import engine, partials
from tfrkit.ops.query import text as query_text
from tfrkit.orders.slice_syntax import resolve_slices
from tfrkit.sidecars.manifest import read_manifest
from tfrkit.sources.coco_json import parse_coco
from tfrkit.sources.voc_xml import parse_voc_xml
from tfrkit.sources.yolo_files import parse_data_yaml, parse_yolo_labels
from tfrkit.storage import transaction
from tfrkit.storage.memory import MemoryReader
from tfrkit.testing import reference
from tfrkit.view.keep import Tags

RECORDS = [b"record %d " % number * 5 for number in range(30)]
FRAMES = reference.write_frames(RECORDS)


@dataclass(frozen=True)
class Surface:
    """A function of bytes, what it may raise, and valid inputs to start from."""

    take: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]
    may_raise: tuple[type[Exception], ...] = (TfrkitError,)

    def try_one(self, data: bytes) -> bool:
        """Return whether the bytes were accepted; an error that is not ours propagates."""
        try:
            self.take(data)
        except self.may_raise:
            return False
        return True


@functools.cache
def folder() -> Path:
    """A folder in memory, if there is one."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix=f"tfrkit-surfaces-{os.getpid()}-", dir=place))


def put(name: str, data: bytes) -> str:
    path = folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def to_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


# --- indexes and checkpoints ------------------------------------------------------------------------


def fix_index(data: bytes) -> bytes:
    """The same index with right checksums, which random mutation never hits."""
    if len(data) < 96:
        return data
    header = bytearray(data[:92])
    (num_records,) = struct.unpack_from("<Q", header, 40)
    (page,) = struct.unpack_from("<I", header, 80)
    num_pages = -(-num_records // page) if page else 0
    start = 96 + (num_pages + num_pages % 2) * 4
    middle = start + 8 * num_records
    body = data[96:]
    if middle <= len(data):
        offsets = data[start:middle]
        sums = b"".join(
            struct.pack("<I", _native.crc32c(offsets[at : at + 8 * page]))
            for at in range(0, len(offsets), 8 * page or 1)
        )
        sums = sums if page else b""
        body = sums + bytes(start - 96 - len(sums)) + data[start:]
        struct.pack_into("<Q", header, 64, len(data) - middle)
        first = _native.crc32c(sums if page else offsets)
        struct.pack_into("<II", header, 72, first, _native.crc32c(data[middle:]))
    return bytes(header) + struct.pack("<I", _native.crc32c(bytes(header))) + body


@functools.cache
def packed() -> bytes:
    """A gzip of several deflate blocks, so that there are checkpoints to forge."""
    noise = np.random.default_rng(0).integers(0, 255, 2 << 20, dtype=np.uint8).tobytes()
    return gzip.compress(reference.write_frame(noise) + FRAMES, 1, mtime=0)


def take_index(data: bytes) -> None:
    """An index that is accepted gives the right records, or an error of the checksums."""
    shard = MemoryReader(FRAMES, name="s")
    found = indexes._parse_index(fix_index(data), "s.tfidx", shard)
    for number in range(found.num_records):
        read = _native.read_frame_at(FRAMES, int(found.offsets[number]), "all")
        assert not isinstance(read, bytes) or read in RECORDS


def take_index_start(data: bytes) -> None:
    """An index in a store: its first bytes, then its pages when they are used."""
    whole = fix_index(data)
    found = indexes._parse_index(
        whole[:128], "s.tfidx", MemoryReader(FRAMES, name="s"), is_lazy=True, rest=MemoryReader(whole, name="s.tfidx")
    )
    found.require(0, found.num_records)
    for number in range(found.num_records):
        read = _native.read_frame_at(FRAMES, int(found.offsets[number]), "all")
        assert not isinstance(read, bytes) or read in RECORDS


def take_table(data: bytes) -> None:
    """A table of shards with right checksums and the right manifest."""
    manifest = shard_table.identify_manifest(MANIFEST)
    if len(data) >= 80:
        header, body = bytearray(data[:76]), data[80:]
        struct.pack_into("<I", header, 12, _native.crc32c(body))
        struct.pack_into("<Q16s", header, 40, *manifest)
        data = bytes(header) + struct.pack("<I", _native.crc32c(bytes(header))) + body
    table = shard_table.ShardTable(data, manifest)
    names = table.names()
    assert [table.name(number) for number in range(len(table))] == names
    for number, name in enumerate(names):
        assert name not in ("", ".", "..") and "/" not in name
        _ = table.etag(number), table.split(number), table.sha256(number), table.find(name)
    _ = table.has_gaps


def index_seeds() -> list[bytes]:
    shard = MemoryReader(FRAMES, name="s")
    offsets = np.array(reference.index_frames(FRAMES), np.uint64)
    made = indexes.ShardIndex(len(offsets), offsets, "none", len(FRAMES), None, len(FRAMES), "raw")
    path = folder() / "_index" / "s.tfidx"
    indexes.write_index(str(path), made, indexes.fingerprint_shard(shard))
    return [path.read_bytes()]


MANIFEST = json.dumps(
    {"format": "tfrkit.dataset", "version": 1, "shards": [
        {"name": f"x-{number:05}-of-00007", "split": "train" if number else None, "records": 3, "nbytes": 90,
         "etag": f'"{number}"', "sha256": "ab" * 32}
        for number in range(7)
    ]}
).encode()  # fmt: skip


def table_seeds() -> list[bytes]:
    return [shard_table.make_table(MANIFEST) or b""]


@functools.cache
def unpacked() -> bytes:
    return gzip.decompress(packed())


def take_checkpoints(data: bytes) -> None:
    """Forged checkpoints give the right bytes or an error, never others."""
    inflate = SeekableInflate(MemoryReader(packed(), name="s"), "gzip", data)
    for offset in (0, 1 << 20, len(unpacked()) - 50):
        got = inflate.read_at(offset, 40)
        # A window is part of the forgery: what it makes wrong, the checksums of frames find.
        assert len(got) <= 40


def checkpoint_seeds() -> list[bytes]:
    return [SeekableInflate(MemoryReader(packed(), name="s"), "gzip").export()]


# --- sidecars ------------------------------------------------------------------------------------------


def take_manifest(data: bytes) -> None:
    manifest = read_manifest(put("manifest/tfrkit.json", data))
    if manifest is not None:
        _ = manifest.entries, manifest.files, manifest.schema, manifest.changed_by, manifest.name, manifest.source_kind


@functools.cache
def dataset() -> dict[str, bytes]:
    """The sidecars of a small dataset, by name; its shards stay in a folder."""
    rows = [{"label": number % 3, "name": f"n{number}", "x": [0.5] * (number % 3)} for number in range(20)]
    place = folder() / "dataset"
    tfr.build(rows, place, splits={"test": 5}, seed=0, shards={"train": 2, "test": 1})
    return {path.name: path.read_bytes() for path in place.iterdir() if path.suffix in (".json", ".txt", ".pbtxt")}


def take_folder(data: bytes) -> None:
    """One sidecar of a dataset is replaced; the first byte chooses which."""
    files = dataset()
    names = sorted(files)
    name = names[data[0] % len(names)] if data else names[0]
    path = folder() / "dataset" / name
    path.write_bytes(data[1:])
    try:
        with warnings.catch_warnings(), tfr.open(str(path.parent)) as ds:
            warnings.simplefilter("ignore", SidecarWarning)
            assert sum(1 for _ in ds.records()) in (20, 15, 5)
            _ = ds.schema
    finally:
        path.write_bytes(files[name])


def folder_seeds() -> list[bytes]:
    files = dataset()
    return [bytes([number]) + files[name] for number, name in enumerate(sorted(files))]


def take_schema_json(data: bytes) -> None:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return
    schema = schema_json.from_json(content)
    assert schema_json.from_json(schema_json.to_json(schema)) == schema


def take_pbtxt(data: bytes) -> None:
    schema = schema_pbtxt.from_pbtxt(to_text(data)).schema
    schema_pbtxt.from_pbtxt(schema_pbtxt.to_pbtxt(schema))


def take_tfds(data: bytes) -> None:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return
    tfds_json.from_tfds(content)


def schema_seeds() -> list[bytes]:
    dataset()
    with tfr.open(str(folder() / "dataset")) as ds:
        return [json.dumps(schema_json.to_json(ds.schema)).encode()]


def pbtxt_seeds() -> list[bytes]:
    dataset()
    with tfr.open(str(folder() / "dataset")) as ds:
        return [schema_pbtxt.to_pbtxt(ds.schema).encode(), b'feature { name: "a" type: INT int_domain { min: 1 } }']


def tfds_seeds() -> list[bytes]:
    return [dataset()["features.json"]] if "features.json" in dataset() else [b'{"type": "Tensor"}']


# --- states and journals -------------------------------------------------------------------------------


def take_state(data: bytes) -> None:
    try:
        state = json.loads(data)
    except (ValueError, RecursionError):
        return
    position = load_state(state, "d", "o", 100)
    assert 0 <= position.row <= 100 and position.epoch >= 0


def take_journal(data: bytes) -> None:
    parse_done(data)
    read_inputs(put("inputs.gz", data))


def journal_seeds() -> list[bytes]:
    place = folder() / "journal"
    tfr.build([{"a": 1}], place, seed=0)
    return [path.read_bytes() for path in place.rglob("*") if path.is_file()] + [
        gzip.compress(b"3\t4\tname\n", mtime=0)
    ]


def take_change(data: bytes) -> None:
    """A change that was interrupted: its journal puts nothing outside of the folder."""
    place = folder() / "changed"
    put(f"changed/{transaction.PENDING}/journal.json", data)
    put(f"changed/{transaction.PENDING}/old/0", b"old")
    before = sorted(path.name for path in folder().iterdir())
    try:
        transaction.restore(str(place))
    finally:
        shutil.rmtree(place)
    assert sorted(path.name for path in folder().iterdir()) == [name for name in before if name != "changed"]


def take_tags(data: bytes) -> None:
    put("tags/tags.json", data)
    tags = Tags(str(folder() / "tags"))
    for name in tags.count():
        tags.find(0, name)
    assert isinstance(tags.of(0, 1), list)


# --- containers ----------------------------------------------------------------------------------------


def take_shard(data: bytes) -> None:
    """The first byte chooses a compression's name or none; records of damaged files have right checksums."""
    name = ("s.tfrecord", "s.tfrecord.gz", "s.tfrecord.zlib", "s.tfrecord.xz", "s.tfrecord.zst")[
        data[0] % 5 if data else 0
    ]
    with tfr.open(put(name, data[1:]), on_error="skip") as ds:
        for record, _ in zip(ds.records(), range(1000), strict=False):
            assert isinstance(record, bytes)


def shard_seeds() -> list[bytes]:
    small = FRAMES[:400]
    seeds = [b"\0" + small, b"\1" + gzip.compress(small, mtime=0), b"\2" + zlib.compress(small)]
    return [*seeds, b"\1" + gzip.compress(small[:200], mtime=0) + gzip.compress(small[200:], mtime=0)]


def take_head(data: bytes) -> None:
    describe_foreign(data, len(data), tail=data[-64:])
    sniff_image(data)


def head_seeds() -> list[bytes]:
    return [
        b"\x89PNG\r\n\x1a\n" + bytes(30),
        b"\x80\x04\x95",
        b"PK\x03\x04",
        b"GIF89a" + bytes(20),
        b"<!doctype html>",
        FRAMES[:64],
    ]


def take_png(data: bytes) -> None:
    png = read_png(memoryview(data), 1 << 20)
    if png is not None:
        decode_png(png)


def png_seeds() -> list[bytes]:
    import io

    from PIL import Image

    seeds = []
    for shape in ((5, 7, 3), (5, 7), (3, 3, 4)):
        out = io.BytesIO()
        Image.fromarray(np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)).save(out, "png")
        seeds.append(out.getvalue())
    return seeds


# --- annotations and queries ----------------------------------------------------------------------------


def take_yolo(data: bytes) -> None:
    parse_yolo_labels(to_text(data))
    parse_data_yaml(to_text(data), "data.yaml")


def take_slices(data: bytes) -> None:
    for found in resolve_slices(to_text(data), {"train": 100, "test": 7}, shard_sizes={"train": [50, 50], "test": [7]}):
        assert 0 <= found.start <= found.stop <= 100


@functools.cache
def query_engine() -> engine.QueryEngine:
    """One DuckDB with little memory for all queries: to start one takes a hundred times as long as a query."""
    engine._idle[:] = [engine.QueryEngine(engine.import_duckdb(), 256 << 20)]
    return engine._idle[0]


def take_query(data: bytes) -> None:
    query_engine()
    path = folder() / "rows.tfrecord"
    if not path.exists():
        with tfr.Writer(path) as writer:
            for number in range(5):
                writer.write({"a": number, "b": "text"})
    for _ in zip(tfr.sql(to_text(data).replace("T", f"'{path}'"), timeout=2, jobs=1), range(100), strict=False):
        pass


def take_sql_text(data: bytes) -> None:
    """What is read from the text of a query, and the queries for workers that are made of it."""
    connection = query_engine().connect()
    parsed = query_text.parse_query(connection, to_text(data))
    if query_text.find_copied_table(parsed) is not None:
        query_text.ask_for_numbers(connection, parsed)
    partials.cut_aggregates(connection, parsed, ["a", "b"], ["a"])
    partials.cut_rows(connection, parsed, "T", with_filter=True)


VOC = b"<annotation><filename>a.jpg</filename><size><width>12</width><height>8</height></size><object><name>x</name>"
VOC += b"<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>5</xmax><ymax>6</ymax></bndbox></object></annotation>"
COCO = b'{"images":[{"id":1,"file_name":"a","width":9,"height":9}],"categories":[{"id":1,"name":"x"}],"annotations":'
COCO += b'[{"id":1,"image_id":1,"category_id":1,"bbox":[1,1,2,2],"segmentation":[[1,1,3,1,3,3]],"iscrowd":0}]}'
STATE = json.dumps({"tfrkit_state": 1, "dataset": "d", "order": "o", "epoch": 2, "row": 50}).encode()
QUERIES = [b"select a, count(*) from T group by a", b"select * from T where b like 't%' order by a limit 3"]
INPUT = (TfrkitError, ValueError, TypeError)  # what a caller passes, not what a file holds

SURFACES: dict[str, Surface] = {
    "index": Surface(take_index, index_seeds),
    "index_start": Surface(take_index_start, index_seeds),
    "table": Surface(take_table, table_seeds, (shard_table.UnusableTableError,)),
    "checkpoints": Surface(take_checkpoints, checkpoint_seeds),
    "manifest": Surface(take_manifest, lambda: [dataset()["tfrkit.json"]]),
    "folder": Surface(take_folder, folder_seeds),
    "schema_json": Surface(take_schema_json, schema_seeds),
    "pbtxt": Surface(take_pbtxt, pbtxt_seeds),
    "tfds": Surface(take_tfds, tfds_seeds),
    "state": Surface(take_state, lambda: [STATE], INPUT),
    "journal": Surface(take_journal, journal_seeds),
    "change": Surface(take_change, lambda: [b'{"steps": [{"path": "b", "was_there": true}]}']),
    "tags": Surface(take_tags, lambda: [b'{"hard": {"0": [1, 5]}}']),
    "shard": Surface(take_shard, shard_seeds),
    "head": Surface(take_head, head_seeds),
    "png": Surface(take_png, png_seeds),
    "voc": Surface(lambda data: parse_voc_xml(data, "a.xml"), lambda: [VOC]),
    "coco": Surface(lambda data: parse_coco(data, "c.json", masks=True), lambda: [COCO]),
    "yolo": Surface(take_yolo, lambda: [b"0 0.5 0.5 0.2 0.2\n", b"names: [a, b]\ntrain: images\n"]),
    "slices": Surface(take_slices, lambda: [b"train[10%:20%]+test[:-3]", b"train[1shard:]"], INPUT),
    "query": Surface(take_query, lambda: QUERIES, INPUT),
    "sql_text": Surface(take_sql_text, lambda: [*QUERIES, QUERIES[0][:-1] + b"9" * 5000], (TfrkitError, duckdb.Error)),
}
