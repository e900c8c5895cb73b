"""Batches on a PyTorch device: copied from pinned memory and decoded on a side stream, ahead of the training step.

Two threads prepare batches in turn, each on its own stream. Before a batch is delivered, the consumer's stream is made
to wait for the event that ends its work: the device never reads half a batch, and the host does not wait for it.
"""

from __future__ import annotations

import importlib.util
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfrkit._limits import LIMITS
from tfrkit._optional import import_or_explain
from tfrkit._threads import run_ahead
from tfrkit.batches.device_images import EncodedImages, Place
from tfrkit.codec.decode import Batch
from tfrkit.errors import CpuImagesWarning, warn_caller
from tfrkit.feeds.loader import make_ahead
from tfrkit.feeds.torch_tensors import Array, Packing, Slot, convert_column, load_torch

if TYPE_CHECKING:
    import torch

Decode = Callable[[list[Any], int], list[Any]]
"""Decodes JPEGs in host memory to images of (channels, height, width), uint8, on the device."""

_THREADS = 2
_AHEAD = 2  # batches whose copies are started ahead


class Placed(NamedTuple):
    """A batch whose work on the device has been started."""

    batch: Batch
    row: int
    event: Any  # marks the end of that work; None if there is nothing to wait for
    tensors: list[Any]  # tensors that the consumer's stream must keep alive


class _Work(NamedTuple):
    """Images of a batch to decode, and where they go."""

    images: EncodedImages
    encoded: Sequence[Any]
    placement: Array  # of `EncodedImages.place`
    out: Any


class DeviceFeed:
    """Puts batches on a device. `on_cpu` counts the images that the CPU decoded, by reason.

    With `images_only` the other columns are unchanged.
    """

    def __init__(self, device: Any, *, images_only: bool = False, decode: Decode | None = None) -> None:
        torch = load_torch()
        self.device = torch.device(device)
        if self.device.type == "cuda":
            if not torch.cuda.is_available():
                raise RuntimeError(
                    f"device {str(device)!r} expected a GPU, PyTorch sees none\n"
                    "  leave device out of decode, to_torch and to_jax: the CPU decodes then"
                )
            if self.device.index is None:
                self.device = torch.device("cuda", torch.cuda.current_device())
        # Whether images are decoded on the device; otherwise the CPU decodes them before the copy.
        self.decodes = self.device.type == "cuda" or decode is not None
        self._decode = decode
        self._images_only = images_only
        self._streams = threading.local()
        self._lock = threading.Lock()
        self._num_images = self._num_decoded = 0
        self._first: tuple[str, Place] | None = None
        self.on_cpu: Counter[str] = Counter()

    def run(self, batches: Iterator[tuple[Batch, int]], *, has_images: bool = True) -> Iterator[tuple[Batch, int]]:
        """Yield each batch on the device, in order. Warns at the end about images that the CPU decoded."""
        torch = load_torch()
        jobs = (partial(self._place, batch, row) for batch, row in batches)
        # Starting a copy takes less time than passing it to a thread.
        ahead = run_ahead(jobs, threads=_THREADS) if has_images else make_ahead((job() for job in jobs), _AHEAD)
        for placed in ahead:
            if placed.event is not None:
                stream = torch.cuda.current_stream(self.device)
                stream.wait_event(placed.event)
                for tensor in placed.tensors:
                    tensor.record_stream(stream)
            yield placed.batch, placed.row
        self._warn()

    def is_image(self, column: Any) -> bool:
        """Whether a column of a batch was decoded by this feed."""
        return isinstance(column, load_torch().Tensor)

    def _place(self, batch: Batch, row: int) -> Placed:
        torch = load_torch()
        if self.device.type != "cuda":
            return Placed(self._convert(batch)[0], row, None, [])
        stream = getattr(self._streams, "stream", None)
        if stream is None:
            stream = self._streams.stream = torch.cuda.Stream(self.device)
        with torch.cuda.stream(stream):
            made, tensors = self._convert(batch)
            event = torch.cuda.Event()
            event.record(stream)
        return Placed(made, row, event, tensors)

    def _convert(self, batch: Batch) -> tuple[Batch, list[Any]]:
        images = {name: column for name, column in batch.items() if isinstance(column, EncodedImages)}
        decoded = {name: self._decode_images(column) for name, column in images.items()}
        if self._images_only:
            return {**batch, **decoded}, [*decoded.values()]
        made, memory = self._copy({name: column for name, column in batch.items() if name not in images})
        return {name: decoded[name] if name in decoded else made[name] for name in batch}, [memory, *decoded.values()]

    def _copy(self, batch: Batch) -> tuple[Batch, torch.Tensor]:
        """Copy all numbers to the device in one transfer: starting one takes longer than copying a small column."""
        torch = load_torch()
        packing = Packing(batch, with_bytes=False)
        host = torch.empty(packing.nbytes, dtype=torch.uint8, pin_memory=self.device.type == "cuda")
        packing.copy_to(host.numpy())
        memory = host.to(self.device, non_blocking=True)
        typed: dict[str, Any] = {}

        def look_up(slot: Any) -> Any:
            if not isinstance(slot, Slot):
                return slot
            if slot.char not in typed:
                typed[slot.char] = memory.view(_find_dtype(slot.char))
            whole, size = typed[slot.char], math.prod(slot.shape)
            piece = whole.narrow(0, slot.offset // whole.itemsize, size)
            return piece if len(slot.shape) == 1 else piece.view(slot.shape)

        return convert_column(packing.contents, look_up), memory

    def _decode_images(self, images: EncodedImages) -> torch.Tensor:
        torch = load_torch()
        assert images.options.size is not None
        shape = (len(images), *images.options.size, 1 if images.options.channels == "gray" else 3)
        out = torch.empty(shape, dtype=torch.uint8, device=self.device)
        refused: dict[int, RuntimeError] = {}
        rows = [row for row in range(len(images)) if row not in images.on_cpu]
        areas = (images.heights * images.widths).tolist()
        offsets = images.values.offsets
        data = torch.from_numpy(images.values.data)[int(offsets[0]) : int(offsets[-1])]
        work = _Work(images, data.split_with_sizes(np.diff(offsets).tolist()), images.place(), out)
        for call in _cut(rows, areas):
            self._decode_call(work, call, refused)
        if refused and len(refused) == len(rows) and not self._num_decoded:
            raise next(iter(refused.values()))  # all images failed, so the decoder itself does not work
        on_cpu = {**images.on_cpu, **{row: images.decode_on_cpu(row) for row in refused}}
        if on_cpu:
            pixels = torch.from_numpy(np.stack(list(on_cpu.values())))
            out[torch.tensor(list(on_cpu), device=self.device)] = pixels.to(self.device)
        self._count(images, refused)
        return out

    def _decode_call(self, work: _Work, rows: list[int], refused: dict[int, RuntimeError]) -> None:
        torch = load_torch()
        options, out = work.images.options, work.out
        encoded = [work.encoded[row] for row in rows]
        try:
            decoded = (self._decode or _load_decoder(self.device))(encoded, out.shape[3])
        except RuntimeError as error:
            if len(rows) == 1:
                refused[rows[0]] = error
                return
            middle = len(rows) // 2  # bisect to find the image that failed
            self._decode_call(work, rows[:middle], refused)
            self._decode_call(work, rows[middle:], refused)
            return
        resize = _load_resize(self.device)
        placement = work.placement[:, :, rows]
        made = resize(decoded, placement, tuple(out.shape[1:3]), antialias=options.antialias, fill=options.fill)
        if len(rows) == len(out):
            out.copy_(made)
        else:
            out[torch.tensor(rows, device=self.device)] = made
        with self._lock:
            self._num_decoded += len(rows)

    def _count(self, images: EncodedImages, refused: dict[int, RuntimeError]) -> None:
        reasons = {**images.reasons, **dict.fromkeys(refused, "JPEG that the GPU decoder refused")}
        with self._lock:
            self._num_images += len(images)
            self.on_cpu.update(reasons.values())
            for row, place in images.places.items():
                if self._first is None or place < self._first[1]:
                    self._first = reasons[row], place

    def _warn(self) -> None:
        if not self.on_cpu:
            return
        counts = ", ".join(f"{count:,} {reason}" for reason, count in self.on_cpu.most_common())
        where = ""
        if self._first is not None:
            reason, (shard, record, offset) = self._first
            where = f"\n  the first, {reason}: {shard}, record {record}, byte {offset}"
        warn_caller(
            CpuImagesWarning(
                f"{self.on_cpu.total():,} of {self._num_images:,} images were decoded on the CPU: {counts}{where}"
            )
        )


def resize_images(
    images: list[torch.Tensor], placement: Array, size: tuple[int, int], *, antialias: bool, fill: int
) -> torch.Tensor:
    """Resize images of any sizes into one tensor of (image, height, width, channels), uint8.

    For machines without Triton. Uses two matrix products: every row of the result is a weighted sum of image rows,
    every column a weighted sum of image columns, for images of all sizes at once. `placement` is `EncodedImages.place`.
    """
    torch = load_torch()
    device = images[0].device
    # Half precision represents 0 to 255 exactly and runs on tensor cores, which add in single precision.
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    heights, widths = ([image.shape[axis] for image in images] for axis in (1, 2))
    if len(set(heights)) == 1 and len(set(widths)) == 1:
        stacked = torch.stack(images).to(dtype)
    else:
        stacked = torch.zeros((len(images), images[0].shape[0], max(heights), max(widths)), dtype=dtype, device=device)
        for target, image in zip(stacked, images, strict=True):
            target[:, : image.shape[1], : image.shape[2]] = image
    placed = torch.from_numpy(placement).to(device, non_blocking=True)
    rows, columns = (
        _weigh(placed[axis], size[axis], stacked.shape[2 + axis], antialias=antialias) for axis in range(2)
    )
    made = rows.to(dtype)[:, None] @ stacked @ columns.to(dtype).mT[:, None]
    if fill:
        # Outside the image all weights are 0.
        covered = rows.sum(2)[:, None, :, None] * columns.sum(2)[:, None, None, :]
        made = made + (1 - covered.to(dtype)) * fill
    return made.add_(0.5).clamp_(0, 255).to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def _weigh(placement: torch.Tensor, size: int, source_size: int, *, antialias: bool) -> torch.Tensor:
    """Compute weights along one axis: (image, result pixel, source pixel); rows sum to 1, or to 0 outside the image.

    The weights are those of Pillow's triangle filter, which widens when an image is made smaller.
    """
    torch = load_torch()
    device = placement.device
    source, whole, start, origin, extent = (part[:, None, None] for part in placement)
    target = torch.arange(size, device=device)[None, :, None]
    position = torch.arange(source_size, device=device)[None, None, :]
    scale = source / whole
    centre = (target - origin + start + 0.5) * scale
    support = scale.clamp(min=1) if antialias else torch.ones_like(scale)
    weights = (1 - (position + 0.5 - centre).abs() / support).clamp_(min=0)
    weights *= (position < source) & (target >= origin) & (target < origin + extent)
    return weights / weights.sum(2, keepdim=True).clamp(min=1e-12)


def _cut(rows: list[int], areas: list[int]) -> Iterator[list[int]]:
    """Split rows into decoder calls of bounded memory. Images of a call are padded, so each counts as the largest."""
    call: list[int] = []
    largest = 0
    for row in rows:
        largest = max(largest, areas[row])
        if call and largest * (len(call) + 1) > LIMITS.device_pixels:
            yield call
            call, largest = [], areas[row]
        call.append(row)
    if call:
        yield call


@cache
def _find_dtype(char: str) -> Any:
    return load_torch().from_numpy(np.empty(0, char)).dtype


@cache
def _load_resize(device: Any) -> Callable[..., Any]:
    """Choose the Triton kernel if Triton is installed, as with PyTorch for Linux with CUDA, else matrix products."""
    if device.type == "cuda" and importlib.util.find_spec("triton") is not None:
        from tfrkit.feeds.triton_resize import resize_images as resize

        return resize
    return resize_images


@cache
def _load_decoder(device: Any) -> Decode:
    io = import_or_explain("torchvision", "torch").io

    def decode(encoded: list[Any], channels: int) -> list[Any]:
        mode = io.ImageReadMode.GRAY if channels == 1 else io.ImageReadMode.RGB
        images: list[Any] = io.decode_jpeg(encoded, mode=mode, device=device)
        return images

    return decode
