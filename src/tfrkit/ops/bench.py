"""Measure the read speed of a dataset on this machine, its bottleneck, and the cost of each compression."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tfrkit import _native
from tfrkit._limits import DEFAULT_BENCH_NBYTES
from tfrkit._optional import find_missing_packages
from tfrkit.batches.stream import read_batches
from tfrkit.batches.survey import find_schema
from tfrkit.codec.decode import Decoder
from tfrkit.container.codecs import COMPRESSIONS, Compression
from tfrkit.container.compression import Deflater, InflateReader
from tfrkit.container.faults import list_damage
from tfrkit.container.records import Policy, read_records
from tfrkit.container.shards import Shard
from tfrkit.container.writer import frame_records
from tfrkit.errors import CodecError, TfrkitError
from tfrkit.features.schema import Schema
from tfrkit.images.decode import decode_image
from tfrkit.ops.bench_gpu import GpuDecoding, measure_seconds, time_gpu
from tfrkit.orders.order import Order, Shuffled, Whole, WindowShuffled, score_mixing
from tfrkit.passes.walk import open_shards, walk_frames
from tfrkit.storage.memory import MemoryReader
from tfrkit.storage.resolve import Address, require_local_address

_BATCH = 256
_PIECE = 1 << 20
_MAX_IMAGES = 500
_MAX_GPU_RECORDS = 1024
# Small, because xz compresses only about 2 MB per second.
_PACKED_NBYTES = 4 << 20


@dataclass(frozen=True)
class TimedStep:
    """Cost per record of one step of reading, on one core."""

    name: str
    seconds_per_record: float
    bytes_per_record: float

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.name,
            "us_per_record": round(self.seconds_per_record * 1e6, 3),
            "mb_per_s": round(self.bytes_per_record / self.seconds_per_record / 1e6, 1),
        }


@dataclass(frozen=True)
class CompressionCost:
    """Size and speed of a compression, for the sampled records, on one core."""

    compression: Compression
    nbytes: int
    write_seconds: float
    read_seconds: float
    num_records: int
    plain_nbytes: int

    def to_json(self) -> dict[str, Any]:
        return {
            "compression": self.compression,
            "bytes": self.nbytes,
            "ratio": round(self.nbytes / self.plain_nbytes, 4),
            "write_mb_per_s": round(self.plain_nbytes / self.write_seconds / 1e6, 1),
            "read_mb_per_s": round(self.plain_nbytes / self.read_seconds / 1e6, 1),
            "records_per_s": round(self.num_records / self.read_seconds),
        }


@dataclass
class Bench:
    """Measurements of the first `num_records` records."""

    num_records: int
    plain_nbytes: int
    steps: list[TimedStep]
    compressions: list[CompressionCost]
    mixing: dict[str, float]
    gpu: GpuDecoding
    missing: dict[str, str]

    @property
    def limit(self) -> str:
        """Name of the slowest step."""
        return max(self.steps, key=lambda step: step.seconds_per_record).name

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: records, bytes, limit, steps, compressions, mixing, gpu, missing."""
        return {
            "records": self.num_records,
            "bytes": self.plain_nbytes,
            "limit": self.limit,
            "steps": [step.to_json() for step in self.steps],
            "compressions": [cost.to_json() for cost in self.compressions],
            "mixing": self.mixing,
            "gpu": self.gpu.to_json(),
            "missing": self.missing,
        }


def bench(address: Address | Iterable[Address], *, sample_nbytes: int = DEFAULT_BENCH_NBYTES) -> Bench:
    """Time each step of reading the first `sample_nbytes` of a dataset, and each compression of these records.

    Steps are timed one by one on one core: disk (after dropping the file from the page cache), inflate, checksum,
    parse, decode of images, collate. With a GPU, images are decoded on it, too. Nothing is written.
    """
    require_local_address(address)
    with open_shards(address, incomplete="ignore") as shards:
        for shard in shards:
            if shard.nbytes is None:
                raise TfrkitError("expected files, got a pipe, which cannot be read twice", shard=shard.name)
        try:
            return _time_shards(shards, sample_nbytes)
        except CodecError as error:
            # The sample joins the records of all files in memory, so the error cannot name a file and record.
            hint = list_damage(*(shard.name for shard in shards[:3]))
            raise error.replace(shard=shards[0].name, record=None, offset=None, hint=hint) from None


def _time_shards(shards: list[Shard], sample_nbytes: int) -> Bench:
    every = chain.from_iterable(chain.from_iterable(read_records(shard, Policy()) for shard in shards))
    records = _cut_records(every, sample_nbytes)
    if not records:
        raise TfrkitError("no records to time", shard=shards[0].name)
    plain = frame_records(records)
    schema = find_schema(shards, Policy())
    few = _cut_records(records, _PACKED_NBYTES)
    costs = [_time_compression(compression, few, schema) for compression in COMPRESSIONS]
    ratio = next(cost.nbytes / cost.plain_nbytes for cost in costs if cost.compression == shards[0].compression)
    steps = _time_file(shards[0], len(records), len(plain), ratio)
    steps += _time_records(records, plain, schema)
    gpu = time_gpu(records[:_MAX_GPU_RECORDS], schema)
    return Bench(len(records), len(plain), steps, costs, _score_shuffles(len(records)), gpu, find_missing_packages())


def _cut_records(records: Iterable[bytes], nbytes: int) -> list[bytes]:
    """Return the first records, until they have `nbytes`."""
    taken: list[bytes] = []
    for record in records:
        taken.append(record)
        nbytes -= len(record)
        if nbytes <= 0:
            break
    return taken


def _time_file(shard: Shard, num_records: int, plain_nbytes: int, ratio: float) -> list[TimedStep]:
    """Time the steps disk and inflate. `ratio` is the stored size divided by the inflated size."""
    per_record = plain_nbytes / num_records
    wanted = min(shard.nbytes or 0, max(1, round(plain_nbytes * ratio)))
    _drop_cache(shard)
    seconds = measure_seconds(lambda: _read_through(shard, wanted))
    steps = [TimedStep("disk", seconds / wanted * ratio * per_record, per_record)]
    if shard.compression == "none":
        return steps
    inflated = 0

    def inflate() -> None:
        nonlocal inflated
        reader = InflateReader(shard.reader, shard.compression)
        while inflated < plain_nbytes and (piece := reader.read(_PIECE)):
            inflated += len(piece)

    seconds = measure_seconds(inflate)
    return [*steps, TimedStep("inflate", seconds / max(1, inflated) * per_record, per_record)]


def _drop_cache(shard: Shard) -> None:
    """Drop a file from the page cache, so that reading it measures the disk."""
    descriptor = shard.reader.descriptor()
    if descriptor >= 0 and hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _read_through(shard: Shard, nbytes: int) -> None:
    for offset in range(0, nbytes, _PIECE):
        shard.reader.read_at(offset, min(_PIECE, nbytes - offset))


def _time_records(records: list[bytes], plain: bytes, schema: Schema) -> list[TimedStep]:
    num_records, per_record = len(records), len(plain) / len(records)
    seconds = _time_best(lambda: list(walk_frames([Shard(MemoryReader(plain))], Policy(), _native.check_frames)))
    steps = [TimedStep("checksum", seconds / num_records, per_record)]
    if schema.kind == "raw":
        return steps
    decoder = Decoder(schema)
    builder = decoder.new_builder()
    parse_seconds = collate_seconds = 0.0
    start = 0
    while start < len(plain):
        before = time.perf_counter()
        _, start, fault = builder.append_frames(plain, start, len(plain), _BATCH, "none")
        between = time.perf_counter()
        if fault is not None:
            break
        decoder.take_batch(builder)
        parse_seconds += between - before
        collate_seconds += time.perf_counter() - between
    steps.append(TimedStep("parse", parse_seconds / num_records, per_record))
    decode = _time_images(plain, schema, num_records, per_record)
    if decode is not None:
        steps.append(decode)
    steps.append(TimedStep("collate", collate_seconds / num_records, per_record))
    return steps


def _time_images(plain: bytes, schema: Schema, num_records: int, per_record: float) -> TimedStep | None:
    names = [name for name, spec in schema.features.items() if spec.logical == "image" and spec.shape == ()]
    if not names:
        return None
    shard = Shard(MemoryReader(plain))
    decoder = Decoder(schema.select(names))
    seconds, num_rows = 0.0, 0
    for batch, count in read_batches([shard], decoder, Policy(), batch_size=16, drop_last=False, threads=1):
        columns = batch.get("context", batch)
        before = time.perf_counter()
        for name in names:
            for value in columns[name]:
                if isinstance(value, bytes):
                    decode_image(value)
        seconds += time.perf_counter() - before
        num_rows += count
        if num_rows >= _MAX_IMAGES:
            break
    return TimedStep("decode", seconds / max(1, num_rows), per_record)


def _time_compression(compression: Compression, records: list[bytes], schema: Schema) -> CompressionCost:
    packed = plain = frame_records(records)
    if compression != "none":

        def deflate() -> None:
            nonlocal packed
            deflater = Deflater(compression, "default")
            packed = bytes(deflater.write(plain)) + deflater.finish()

        write_seconds = measure_seconds(deflate)
    else:
        write_seconds = _time_best(lambda: bytearray(plain))

    def read() -> None:
        shard = Shard(MemoryReader(packed))
        if schema.kind == "raw":
            for _ in read_records(shard, Policy()):
                pass
            return
        for _ in read_batches([shard], Decoder(schema), Policy(), batch_size=_BATCH, drop_last=False, threads=1):
            pass

    return CompressionCost(compression, len(packed), write_seconds, _time_best(read), len(records), len(plain))


def _score_shuffles(num_records: int) -> dict[str, float]:
    window = max(1, num_records // 10)
    orders: dict[str, Order] = {
        "exact": Shuffled(Whole(num_records), 0),
        "window": WindowShuffled(Whole(num_records), 0, block=max(1, window // 64), window=window),
        "none": Whole(num_records),
    }
    return {name: round(score_mixing(order), 3) for name, order in orders.items()}


def _time_best(work: Callable[[], object]) -> float:
    return min(measure_seconds(work) for _ in range(3))
