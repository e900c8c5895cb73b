"""`tf.data.TFRecordDataset`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfrkit.compat import steps
from tfrkit.compat.dataset import AUTOTUNE, Dataset
from tfrkit.compat.elements import require_positive
from tfrkit.compat.graph import compute_now
from tfrkit.compat.record_io import find_compression, read_file_records, to_path


class TFRecordDataset(Dataset):
    """The records of files as strings: one file after the other, or alternating between `num_parallel_reads` files.

    After damage, reading continues with the next file: the start of the next record is unknown.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: Any = None,
    ) -> None:
        find_compression(compression_type)
        num_open = 1 if num_parallel_reads in (None, AUTOTUNE) else num_parallel_reads
        cycle = require_positive("num_parallel_reads", num_open)

        def open_file(path: Any) -> Iterator[Any]:
            return read_file_records(to_path(path))

        super().__init__(
            lambda: steps.interleave(_paths(compute_now(filenames)), open_file, cycle, 1), has_records=True
        )


def _paths(filenames: Any) -> Iterator[Any]:
    """Iterate over one path, several, or a dataset of paths."""
    if isinstance(filenames, (Dataset, list, tuple)) or getattr(filenames, "ndim", 0) == 1:
        return iter(filenames)
    return iter([filenames])
