"""Tar files without dates and owners, so that the same members give the same bytes.

`tarfile` spends 100 microseconds on the header of a member, and a sample may have ten members of a hundred bytes.
Headers of short ASCII names are therefore made here; a test compares them with those of tarfile.
"""

from __future__ import annotations

import tarfile
from typing import BinaryIO

_BLOCK_NBYTES = 512
_RECORD_NBYTES = 20 * _BLOCK_NBYTES  # the size of an archive is a multiple of this
_MAX_NAME = 100
_MAX_SIZE = 8**11  # eleven octal digits
# Parts of a header: name, fixed bytes, size, and fixed bytes around the checksum, which is computed with blanks there.
_PLAIN = tarfile.TarInfo().tobuf(tarfile.USTAR_FORMAT)
_SIZE_AT, _SUM_AT = 124, 148
_BEFORE_SIZE = _PLAIN[_MAX_NAME:_SIZE_AT]
_BETWEEN = _PLAIN[_SIZE_AT + 12 : _SUM_AT]
_BEHIND = _PLAIN[_SUM_AT + 8 :]
_PLAIN_SUM = sum(_BEFORE_SIZE) + sum(_BETWEEN) + 8 * ord(" ") + sum(_BEHIND)


class TarWriter:
    """Writes members in order into a file that the caller opens and closes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.nbytes = 0

    def add(self, name: str, data: bytes) -> None:
        """Write a member."""
        padding = -len(data) % _BLOCK_NBYTES
        header = make_header(name, len(data))
        self._file.write(header + data + bytes(padding) if len(data) < _RECORD_NBYTES else header)
        if len(data) >= _RECORD_NBYTES:
            self._file.write(data)
            self._file.write(bytes(padding))
        self.nbytes += len(header) + len(data) + padding

    def close(self) -> None:
        """Write the end mark."""
        end = 2 * _BLOCK_NBYTES
        end += -(self.nbytes + end) % _RECORD_NBYTES
        self._file.write(bytes(end))
        self.nbytes += end


def make_header(name: str, nbytes: int) -> bytes:
    """Make the header of a file: readable by all, mtime 0, no owner."""
    if name.isascii() and len(name) <= _MAX_NAME and nbytes < _MAX_SIZE:
        encoded = name.encode().ljust(_MAX_NAME, b"\0")
        size = b"%011o\0" % nbytes
        checksum = _PLAIN_SUM + sum(encoded) + sum(size)
        return b"".join((encoded, _BEFORE_SIZE, size, _BETWEEN, b"%06o\0 " % checksum, _BEHIND))
    info = tarfile.TarInfo(name)
    info.size = nbytes
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
