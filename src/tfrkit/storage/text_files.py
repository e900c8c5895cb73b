"""Small text and JSON files: bounded reads, atomic writes."""

from __future__ import annotations

import json
import os
from typing import Any

from tfrkit.storage.local import LocalWriter
from tfrkit.storage.lookup import UnusableFileError, read_file


def read_text(path: str) -> str | None:
    """Return the text of a file, or None if it does not exist.

    Raises `UnusableFileError` for a file that cannot be used, and `StorageError` if the disk or the system failed.
    """
    data = read_file(path)
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnusableFileError(
            f"expected UTF-8 text, got byte {data[error.start]:#04x} at {error.start}", shard=path
        ) from None


def read_json(path: str) -> Any:
    """Return the content of a JSON file, or None if it does not exist. Raises as `read_text` does."""
    text = read_text(path)
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f"line {error.lineno} column {error.colno}" if isinstance(error, json.JSONDecodeError) else "too deep"
        raise UnusableFileError(f"it is not JSON: {where}", shard=path) from None


def write_json(path: str, content: Any) -> None:
    """Write an indented JSON file atomically."""
    write_text(path, format_json(content))


def format_json(content: Any) -> str:
    """Format content as indented JSON with a final line feed."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_text(path: str, text: str) -> None:
    """Write a text file atomically."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with LocalWriter(path) as writer:
        # Keep the bytes of file names that are not UTF-8.
        writer.write(text.encode("utf-8", "surrogateescape"))
        writer.commit()
