"""A Triton kernel that resizes a batch of images of any sizes.

The kernel is compiled at the first batch, which takes a second or two, and cached on disk by Triton.
"""

# mypy: ignore-errors

from __future__ import annotations

from functools import cache

import numpy as np
import triton
import triton.language as tl

from tfrkit.feeds.torch_tensors import load_torch


@triton.jit
def _resize(
    pointers,
    placement,
    out,
    num_images,
    height,
    width,
    fill,
    CHANNELS: tl.constexpr,
    ANTIALIAS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute one row of one resized image, with Pillow's triangle filter."""
    image = tl.program_id(0)
    row = tl.program_id(1)
    column = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    pixels = tl.load(pointers + image).to(tl.pointer_type(tl.uint8))
    # (axis, part, image): size, whole, start, origin, extent.
    source_y = tl.load(placement + 0 * num_images + image)
    scale_y = source_y.to(tl.float32) / tl.load(placement + 1 * num_images + image).to(tl.float32)
    start_y = tl.load(placement + 2 * num_images + image)
    origin_y = tl.load(placement + 3 * num_images + image)
    extent_y = tl.load(placement + 4 * num_images + image)
    source_x = tl.load(placement + 5 * num_images + image)
    scale_x = source_x.to(tl.float32) / tl.load(placement + 6 * num_images + image).to(tl.float32)
    start_x = tl.load(placement + 7 * num_images + image)
    origin_x = tl.load(placement + 8 * num_images + image)
    extent_x = tl.load(placement + 9 * num_images + image)
    support_y = tl.maximum(scale_y, 1.0) if ANTIALIAS else 1.0
    support_x = tl.maximum(scale_x, 1.0) if ANTIALIAS else 1.0
    centre_y = ((row - origin_y + start_y).to(tl.float32) + 0.5) * scale_y
    centre_x = ((column - origin_x + start_x).to(tl.float32) + 0.5) * scale_x
    is_inside = (row >= origin_y) & (row < origin_y + extent_y)
    is_inside &= (column >= origin_x) & (column < origin_x + extent_x)
    first_y = tl.maximum((centre_y - support_y).to(tl.int64), 0)
    last_y = tl.minimum((centre_y + support_y).to(tl.int64) + 1, source_y)
    first_x = tl.maximum((centre_x - support_x).to(tl.int64), 0)
    num_x = (2 * support_x).to(tl.int64) + 2
    area = source_y * source_x
    total = tl.zeros([BLOCK], tl.float32)
    sum_0 = tl.zeros([BLOCK], tl.float32)
    sum_1 = tl.zeros([BLOCK], tl.float32)
    sum_2 = tl.zeros([BLOCK], tl.float32)
    for y in range(first_y, last_y):
        weight_y = tl.maximum(1 - tl.abs(y.to(tl.float32) + 0.5 - centre_y) / support_y, 0.0)
        for step in range(num_x):
            x = first_x + step
            is_read = is_inside & (x < source_x)
            weight = tl.maximum(1 - tl.abs(x.to(tl.float32) + 0.5 - centre_x) / support_x, 0.0) * weight_y
            weight = tl.where(is_read, weight, 0.0)
            here = pixels + y * source_x + x
            total += weight
            sum_0 += weight * tl.load(here, mask=is_read, other=0).to(tl.float32)
            if CHANNELS == 3:
                sum_1 += weight * tl.load(here + area, mask=is_read, other=0).to(tl.float32)
                sum_2 += weight * tl.load(here + 2 * area, mask=is_read, other=0).to(tl.float32)
    target = out + ((image.to(tl.int64) * height + row) * width + column) * CHANNELS
    is_written = column < width
    divisor = tl.maximum(total, 1e-12)
    tl.store(target, tl.where(is_inside, sum_0 / divisor + 0.5, fill).to(tl.uint8), mask=is_written)
    if CHANNELS == 3:
        tl.store(target + 1, tl.where(is_inside, sum_1 / divisor + 0.5, fill).to(tl.uint8), mask=is_written)
        tl.store(target + 2, tl.where(is_inside, sum_2 / divisor + 0.5, fill).to(tl.uint8), mask=is_written)


def resize_images(images, placement: np.ndarray, size: tuple[int, int], *, antialias: bool, fill: int):
    """Resize images of any sizes into one tensor of (image, height, width, channels), uint8.

    REQUIRES: every image is a contiguous uint8 tensor of (channels, height, width), all on one device.
    """
    torch = load_torch()
    device = images[0].device
    count, channels = len(images), images[0].shape[0]
    facts = np.empty((11, count), np.int64)
    facts[0] = [image.data_ptr() for image in images]
    facts[1:] = placement.reshape(10, count)
    facts_there = torch.from_numpy(facts).pin_memory().to(device, non_blocking=True)
    out = torch.empty((count, *size, channels), dtype=torch.uint8, device=device)
    block = _choose_block(size[1])
    grid = (count, size[0], triton.cdiv(size[1], block))
    _resize[grid](
        facts_there[0],
        facts_there[1:],
        out,
        count,
        *size,
        float(fill),
        CHANNELS=channels,
        ANTIALIAS=antialias,
        BLOCK=block,
        num_warps=4,
    )
    return out


@cache
def _choose_block(width: int) -> int:
    return min(256, triton.next_power_of_2(width))
