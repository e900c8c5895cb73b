"""`GFile`: an open file with TensorFlow's methods, for bytes or UTF-8 text depending on its mode."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any


class OpenedFile:
    """Reads or writes one file; without a "b" in the mode, values are text.

    As in TensorFlow, a line read from a file ends in a line feed, even if the file has a carriage return before it.
    """

    def __init__(self, path: str, mode: str) -> None:
        self.name = path
        self.mode = mode
        self._is_text = "b" not in mode
        self._file = open(path, mode.replace("b", "") + "b")  # noqa: SIM115 - closed by close

    def read(self, n: int = -1) -> Any:
        """Read the rest of the file, or at most `n` bytes."""
        return self._given(self._file.read(n))

    def readline(self) -> Any:
        """Read the next line; an empty one at the end of the file."""
        line = self._file.readline()
        return self._given(line[:-2] + b"\n" if line.endswith(b"\r\n") else line)

    def readlines(self) -> list[Any]:
        return list(self)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.readline, self._given(b""))

    def write(self, file_content: Any) -> None:
        self._file.write(file_content.encode() if isinstance(file_content, str) else file_content)

    def seek(self, offset: int, whence: int = 0) -> None:
        self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return os.stat(self.name).st_size

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> OpenedFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Scripts may leave files open, as TensorFlow allows.
        if hasattr(self, "_file"):
            self._file.close()

    def _given(self, data: bytes) -> Any:
        return data.decode() if self._is_text else data
