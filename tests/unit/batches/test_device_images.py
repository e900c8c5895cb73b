"""Images of a batch for a device: where each is placed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrkit.batches.device_images import EncodedImages
from tfrkit.codec.columns import BytesColumn
from tfrkit.images.options import DecodeOptions
from tfrkit.images.resize import place

SIZES = [(8, 12), (20, 3), (4, 6)]


@pytest.mark.parametrize("fit", ["stretch", "crop", "pad"])
def test_places_of_a_batch_are_those_of_each_image(fit: Any) -> None:
    heights, widths = np.array(SIZES).T
    values = BytesColumn.from_values([b"", b"", b""])
    found = EncodedImages(values, DecodeOptions(size=(4, 6), fit=fit), heights, widths, {}, {}).place()
    for row, size in enumerate(SIZES):
        placed = place(size, (4, 6), fit)
        parts = [size, placed.whole, placed.start, placed.origin, placed.extent]
        assert found[:, :, row].T.tolist() == [list(part) for part in parts]
