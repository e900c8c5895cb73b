"""`tf.io.TFRecordWriter`, its options, and reading a file record by record."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import weakref
from collections.abc import Iterator
from types import TracebackType
from typing import Any, ClassVar

from tfrkit.compat.op_errors import FailedPreconditionError, explain_damage, explain_storage_error
from tfrkit.compat.tensor import to_bytes
from tfrkit.container.codecs import FORMATS, Compression, Level
from tfrkit.container.records import Policy, read_records
from tfrkit.container.shards import Shard
from tfrkit.errors import ContainerError, StorageError
from tfrkit.writer import Writer


class TFRecordCompressionType:
    """TensorFlow's names for its three compressions."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


_NAMES = {row.name: row.tensorflow for row in FORMATS.values() if row.tensorflow is not None}
_COMPRESSIONS: dict[Any, Compression] = {
    None: "none",
    TFRecordCompressionType.NONE: "none",
    TFRecordCompressionType.ZLIB: "zlib",
    TFRecordCompressionType.GZIP: "gzip",
    **{theirs: ours for ours, theirs in _NAMES.items()},
}


class TFRecordOptions:
    """Compression options of a file. Of the tuning options only `compression_level` (0 to 9) has an effect."""

    compression_type_map: ClassVar[dict[int, str]] = {
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
        TFRecordCompressionType.NONE: "",
    }

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: Any = None,
        input_buffer_size: Any = None,
        output_buffer_size: Any = None,
        window_bits: Any = None,
        compression_level: int | None = None,
        compression_method: Any = None,
        mem_level: Any = None,
        compression_strategy: Any = None,
    ) -> None:
        self.compression_type: str = _NAMES[find_compression(compression_type)]
        self.compression_level = compression_level

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """Return `""`, `"ZLIB"` or `"GZIP"` for options, a name or a number."""
        return _NAMES[find_compression(options)]


def find_compression(options: Any) -> Compression:
    """Return our compression name for options, a name such as "GZIP" or a number of TFRecordCompressionType."""
    kind = options.compression_type if isinstance(options, TFRecordOptions) else options
    if isinstance(kind, (str, int, type(None))) and kind in _COMPRESSIONS:
        return _COMPRESSIONS[kind]
    raise ValueError(f'compression_type expected "", "GZIP" or "ZLIB", got {kind!r}')


class TFRecordWriter:
    """Writes records to one file, which appears only when complete.

    TensorFlow leaves a partial file when a script fails; here the file appears under its name when it
    is closed, when the writer is garbage-collected, or when the interpreter ends, and not at all when a `with`
    block or the script ends in an error. An existing file stays until then.
    """

    def __init__(self, path: str | bytes | os.PathLike[str], options: Any = None) -> None:
        compression = find_compression(options)
        level: Level = "default"
        if isinstance(options, TFRecordOptions) and options.compression_level is not None and compression != "none":
            level = options.compression_level
        try:
            writer = Writer(to_path(path), compression=compression, level=level)
        except StorageError as error:
            raise explain_storage_error(error) from None
        self._writer = writer
        self._path = to_path(path)
        self._finish = weakref.finalize(self, _close_unless_child, writer, os.getpid())
        self._finish.atexit = False  # at exit, `_finish_at_exit` first checks whether the script failed
        if not _OPEN:
            atexit.register(_finish_at_exit)
        _OPEN.add(self)

    def write(self, record: bytes | bytearray | str) -> None:
        if isinstance(record, str):
            record = record.encode()
        if not isinstance(record, (bytes, bytearray)):
            raise TypeError(f"record expected bytes, got {type(record).__name__}\n  use example.SerializeToString()")
        if not self._finish.alive:
            raise FailedPreconditionError(None, None, "write to a closed writer")
        try:
            self._writer.write_record(record)
        except StorageError as error:
            raise explain_storage_error(error) from None

    def flush(self) -> None:
        """Do nothing, unless the writer is closed: the file appears when it is closed."""
        if not self._finish.alive:
            raise FailedPreconditionError(None, None, "flush of a closed writer")

    def close(self) -> None:
        """Make the file appear."""
        if self._finish.detach() is not None:
            try:
                self._writer.close()
            except StorageError as error:
                raise explain_storage_error(error) from None

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        elif self._finish.detach() is not None:
            self._writer.discard()


_OPEN: weakref.WeakSet[TFRecordWriter] = weakref.WeakSet()


def _close_unless_child(writer: Writer, process: int) -> None:
    """Close a writer that was not closed; a forked child leaves its parent's file alone."""
    if os.getpid() == process:
        writer.close()


def _finish_at_exit() -> None:
    """Close open writers, or discard them after an uncaught error."""
    has_failed = getattr(sys, "last_value", None) is not None and not hasattr(sys, "ps1")
    for writer in list(_OPEN):
        if writer._finish.alive and has_failed:
            writer.__exit__(RuntimeError, None, None)
            print(
                f"tfrkit: not written, the script failed before the writer was closed - at {writer._path}",
                file=sys.stderr,
            )
        else:
            writer._finish()


def to_path(path: Any) -> str:
    """Return a path as text; string tensors are accepted."""
    return os.fspath(path) if isinstance(path, (str, os.PathLike)) else os.fsdecode(to_bytes(path, "path"))


def read_file_records(path: str) -> Iterator[bytes]:
    """Read the records of one file in order, with TensorFlow's errors. Compression is detected from the bytes."""
    try:
        with contextlib.closing(Shard.open(path)) as shard:
            for records in read_records(shard, Policy()):
                yield from records
    except StorageError as error:
        raise explain_storage_error(error) from None
    except ContainerError as error:
        raise explain_damage(error) from None


def tf_record_iterator(path: Any, options: Any = None) -> Iterator[bytes]:
    """Read the records of one file as bytes. `options` may name the compression, which is detected anyway."""
    find_compression(options)
    return read_file_records(to_path(path))
