"""Whether a GPU decodes the images of a dataset faster than the CPU of this machine, and why."""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tfrkit._threads import count_cores
from tfrkit.batches.decode import DecodeStage
from tfrkit.batches.loop import Batching, BatchLoop
from tfrkit.batches.shard_set import ShardSet
from tfrkit.batches.stages import DecodeFeatures
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.container.writer import frame_records
from tfrkit.errors import CpuImagesWarning
from tfrkit.features.schema import Schema
from tfrkit.storage.memory import MemoryReader

SIZE = (224, 224)
_BATCH = 64
_NEEDS = ("torch", "torchvision")


@dataclass(frozen=True)
class GpuDecoding:
    """Images per second of both ways, None if there is no GPU, and what follows from them."""

    cpu_images_per_s: float | None
    gpu_images_per_s: float | None
    verdict: str

    def to_json(self) -> dict[str, Any]:
        speeds = (self.cpu_images_per_s, self.gpu_images_per_s)
        cpu, gpu = (None if speed is None else round(speed) for speed in speeds)
        return {"cpu_images_per_s": cpu, "gpu_images_per_s": gpu, "verdict": self.verdict}


def time_gpu(records: list[bytes], schema: Schema, *, device: str = "cuda", **options: Any) -> GpuDecoding:
    """Decode the images of these records to 224x224, on all cores and on the GPU. `options` are for `DeviceFeed`."""
    names = [name for name, spec in schema.features.items() if spec.logical == "image" and spec.shape == ()]
    if not names:
        return GpuDecoding(None, None, "no images, so a GPU has nothing to decode")
    missing = [name for name in _NEEDS if importlib.util.find_spec(name) is None]
    if missing and not options:
        return GpuDecoding(None, None, f"not with a GPU: {' and '.join(missing)} not installed, the CPU decodes")
    from tfrkit.feeds.torch_device import DeviceFeed
    from tfrkit.feeds.torch_tensors import load_torch

    if device == "cuda" and not load_torch().cuda.is_available():
        return GpuDecoding(None, None, "not with a GPU: PyTorch sees none, the CPU decodes")
    shard_set = ShardSet([Shard(MemoryReader(frame_records(records)))], Policy(), schema)

    def new_loop(on: str | None) -> BatchLoop:
        stage = DecodeStage(dict.fromkeys(names, SIZE), device=on).bind(schema)
        return BatchLoop(shard_set, Batching(_BATCH), features=names, stages=[DecodeFeatures(stage)])

    on_cpu, on_gpu = new_loop(None), new_loop("cuda").leave_images()
    feed = DeviceFeed(device, **options)

    def read_gpu() -> None:
        _read(feed.run(on_gpu.run(epoch=0)))
        if device == "cuda":
            load_torch().cuda.synchronize()

    num_images = len(records) * len(names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CpuImagesWarning)
        read_gpu()  # loads the decoder
        num_left = feed.on_cpu.total()
        gpu = num_images / min(measure_seconds(read_gpu) for _ in range(2))
    cpu = num_images / min(measure_seconds(lambda: _read(on_cpu.run(epoch=0))) for _ in range(2))
    return GpuDecoding(cpu, gpu, _judge(cpu, gpu, num_left / num_images, feed.on_cpu.most_common(1)))


def _judge(cpu: float, gpu: float, share_left: float, reasons: list[tuple[str, int]]) -> str:
    cores = count_cores()
    speeds = f"it decodes {gpu:,.0f} images/s to {SIZE[0]}x{SIZE[1]}, {cores} core{'s' * (cores != 1)} {cpu:,.0f}"
    verdict = "faster on the GPU" if gpu > cpu else "not faster on the GPU"
    left = f"; {share_left:.0%} stay on the CPU, most: {reasons[0][0]}" if reasons else ""
    return f"{verdict}: {speeds}{left}"


def _read(batches: Iterable[Any]) -> None:
    for _ in batches:
        pass


def measure_seconds(work: Callable[[], object]) -> float:
    """Return the duration of a call in seconds, above 0."""
    before = time.perf_counter()
    work()
    return max(1e-9, time.perf_counter() - before)
