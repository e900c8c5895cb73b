"""Load a file or a table in memory into the spool."""

from __future__ import annotations

import os
from typing import Any

from tfrkit.errors import SourceError
from tfrkit.sources.table_arrow import load_arrow_file, load_memory
from tfrkit.sources.table_options import TableOptions
from tfrkit.sources.table_spool import LoadedTable, TableSpooler
from tfrkit.sources.table_text import load_csv, load_json_lines
from tfrkit.sources.walk import require_file
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import describe_os_error
from tfrkit.storage.inputs import copy_of, fetch_input
from tfrkit.storage.local import open_to_read


def load_table(data: Any, options: TableOptions, scratch: str, *, kind: str | None = None) -> LoadedTable:
    """Load a whole table into the spool. `kind` is the format of a file that `open_table_file` returned before."""
    folder = os.path.join(scratch, "columns")
    os.makedirs(folder, exist_ok=True)
    spooler = TableSpooler(folder, options.floats)
    if not isinstance(data, str):
        return load_memory(data, options, spooler)
    if kind is None:
        kind = open_table_file(data, options.format, scratch)
    if kind == "csv":
        return load_csv(data, options, spooler)
    if kind == "jsonl":
        return load_json_lines(data, options, spooler)
    return load_arrow_file(data, options, spooler)


def open_table_file(path: str, table_format: str, scratch: str) -> str:
    """Require a file, copy a remote one to the scratch folder, and return the format of the table."""
    if not has_scheme(path):
        require_file(path, "a CSV, JSON lines, Parquet or Arrow file")
    else:
        try:
            fetch_input(path, scratch)
        except OSError as error:
            raise SourceError(f"cannot open, {describe_os_error(error)}", shard=path) from None
    return find_table_format(path) if table_format == "auto" else table_format


def find_table_format(path: str) -> str:
    """Detect the format of a table file from its first bytes, or else from its name."""
    with open_to_read(copy_of(path)) as file:
        head = file.read(4096)
    if head[:4] == b"PAR1":
        return "parquet"
    if head[:6] == b"ARROW1" or (head[:4] == b"\xff\xff\xff\xff" and path.endswith((".arrow", ".arrows", ".feather"))):
        return "arrow"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "jsonl" if text[:1] in (b"{", b"[") or path.endswith((".jsonl", ".ndjson", ".json")) else "csv"
