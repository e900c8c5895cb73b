"""Read Parquet and Arrow files as record batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfrkit.storage.local import open_to_read


def is_parquet(path: str) -> bool:
    """Return whether a file starts with Parquet's magic bytes."""
    with open_to_read(path) as file:
        return file.read(4) == b"PAR1"


def read_arrow_batches(path: str, arrow: Any, *, rows: int) -> tuple[Any, Iterator[Any]]:
    """Read the schema and the record batches of a Parquet or Arrow IPC (Feather) file, detected by its first bytes."""
    with open_to_read(path) as file:
        magic = file.read(8)
    if magic[:4] == b"PAR1":
        parquet = arrow.parquet.ParquetFile(path, page_checksum_verification=True)
        return parquet.schema_arrow, parquet.iter_batches(batch_size=rows)
    if magic[:6] == b"ARROW1":
        reader = arrow.ipc.open_file(arrow.memory_map(path))
        return reader.schema, (reader.get_batch(i) for i in range(reader.num_record_batches))
    stream = arrow.ipc.open_stream(path)
    return stream.schema, iter(stream)
