from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy
import numpy.typing


class FileMap:
    """A mapped file, read-only. Any thread."""

    def __init__(self, descriptor: int, size: int, check: Callable[[bool], bool | None]) -> None:
        """
        The first `size` bytes. `check(is_torn)` raises if the file became shorter, and always if it is torn; it returns whether the file was written to.
        """

    def release(self, start: int, stop: int) -> None:
        """Hint that [start, stop) is not needed for now."""

    def __getitem__(self, range: slice) -> bytes:
        """A copy of some bytes."""

    def __len__(self) -> int: ...

    def __buffer__(self, flags: int, /) -> memoryview: ...

class ByteViews:
    """
    Bytes values of a column that lie in mapped files. Any thread. A copy raises if its file was cut off or overwritten.
    """

    def __len__(self) -> int: ...

    def lengths(self) -> numpy.typing.NDArray[numpy.int64]:
        """The size of each value."""

    def copy(self, start: int, stop: int) -> list[bytes]:
        """Values [start, stop)."""

    def join(self) -> numpy.typing.NDArray[numpy.uint8]:
        """All values, one after the other."""

class Fault:
    """What is wrong with a frame or a record, and where."""

    @property
    def kind(self) -> str: ...

    @property
    def offset(self) -> int: ...

    @property
    def stored(self) -> int: ...

    @property
    def computed(self) -> int: ...

    @property
    def column(self) -> int: ...

    @property
    def name(self) -> bytes:
        """The first 256 bytes of the name of an unknown feature."""

    @property
    def resume(self) -> int:
        """End of the faulty frame if its length can be trusted, else 0."""

def crc32c(data: object, crc: int = 0) -> int:
    """CRC-32C of a buffer, continuing `crc`."""

def masked_crc32c(data: object) -> int:
    """CRC-32C of a buffer as a frame stores it."""

def crc32c_variants() -> list[str]:
    """Variants this machine runs, slowest first."""

def crc32c_with(variant: str, data: object) -> int:
    """CRC-32C by a named variant."""

def touch_pages(data: object, start: int, stop: int) -> None:
    """Map bytes [start, stop) of a file in, for another thread."""

def check_frames(data: object, start: int, stop: int, max_frames: int, verify: str) -> tuple[int, int, Fault | None]:
    """Step over frames: (num_frames, next, Fault or None)."""

def index_frames(data: object, start: int, stop: int, max_frames: int, verify: str) -> tuple[numpy.typing.NDArray[numpy.uint64], int, Fault | None]:
    """Offsets of frames: (offsets, next, Fault or None)."""

def find_next_frame(data: object, start: int, stop: int, is_final: bool) -> tuple[bool, int]:
    """
    The first frame from `start` whose two checksums hold: (found, offset).
    """

def read_frames(data: object, start: int, stop: int, max_frames: int, max_nbytes: int, verify: str) -> tuple[list[bytes], int, Fault | None]:
    """Records of a run of frames: (list of bytes, next, Fault or None)."""

def view_frames(data: object, start: int, stop: int, max_frames: int, max_nbytes: int, verify: str) -> tuple[list[memoryview], int, Fault | None]:
    """Views of a run of records: (list of memoryview, next, Fault or None)."""

def read_frame_at(data: object, offset: int, verify: str) -> bytes | Fault:
    """The record of the frame at `offset`, or its Fault."""

def frame_records(records: Sequence[bytes | bytearray | memoryview]) -> bytes:
    """Records as frames, one after the other."""

class FrameSearch:
    """
    Looks for frames in one buffer, in linear time over all calls. One thread at a time.
    """

    def __init__(self, data: object) -> None: ...

    def find_next(self, start: int, stop: int, is_final: bool, max_length: int) -> tuple[bool, int]:
        """
        The first frame that starts in [start, stop) and whose two checksums hold: (found, offset).
        """

    def check_frames(self, start: int, stop: int, max_frames: int) -> tuple[int, int, Fault | None]:
        """Step over sound frames: (num_frames, next, Fault or None)."""

    @property
    def num_checked(self) -> int:
        """Bytes that went through a checksum so far."""

class Permutation:
    """A keyed order of [0, size), computed, never stored."""

    def __init__(self, size: int, key: int) -> None: ...

    def at(self, position: int) -> int: ...

    def at_range(self, start: int, stop: int) -> numpy.typing.NDArray[numpy.uint64]: ...

    def at_many(self, positions: numpy.typing.NDArray[numpy.uint64]) -> numpy.typing.NDArray[numpy.uint64]: ...

    def position_of(self, item: int) -> int: ...

    def positions_of_range(self, start: int, stop: int) -> numpy.typing.NDArray[numpy.uint64]: ...

    @property
    def size(self) -> int: ...

class OffsetPages:
    """Checks pages of offsets when they are first used. Any thread."""

    def __init__(self, offsets: numpy.typing.NDArray[numpy.uint64], sums: numpy.typing.NDArray[numpy.uint32], page: int) -> None: ...

    def find_damaged(self, start: int, stop: int) -> int:
        """
        The first damaged page with records of [start, stop); the number of pages if all are whole.
        """

class FrameTable:
    """Records by number out of one span. Any thread."""

    def __init__(self, data: object, offsets: numpy.typing.NDArray[numpy.uint64], verify: str, pages: OffsetPages | None = None) -> None: ...

    def read(self, number: int) -> bytes | Fault:
        """The record, or its Fault."""

    def __len__(self) -> int: ...

def sum_frames(data: object, start: int, stop: int, max_frames: int, max_nbytes: int, verify: str) -> tuple[numpy.typing.NDArray[numpy.uint64], int, int, Fault | None]:
    """
    Offsets of a run of frames and the sum of their digests: (offsets, digest, next, Fault or None).
    """

def deal_frames(data: object, start: int, stop: int, parts: numpy.typing.NDArray[numpy.uint32], num_parts: int, max_nbytes: int, verify: str) -> tuple[numpy.typing.NDArray[numpy.uint8], numpy.typing.NDArray[numpy.uint64], int, int, int, Fault | None]:
    """
    Frames of a run by part, `parts[i]` for the i-th: (frames, bytes of each part, digest, num_frames, next, Fault or None).
    """

def gather_picks(tables: Sequence[FrameTable], shards: numpy.typing.NDArray[numpy.uint32], records: numpy.typing.NDArray[numpy.uint64], verify: str) -> tuple[numpy.typing.NDArray[numpy.uint8], int, int, Fault | None]:
    """
    Frame `records[i]` of `tables[shards[i]]` for each i, in that order: (frames, digest, num_frames, Fault or None).
    """

class FrameEditor:
    """
    Drops and renames features of records, frames in and frames out. One thread at a time.
    """

    def __init__(self, drop: Sequence[bytes], keep: Sequence[bytes], rename: Sequence[tuple[bytes, bytes]], keeps_others: bool) -> None: ...

    def edit_frames(self, data: object, start: int, stop: int, max_nbytes: int, verify: str) -> tuple[numpy.typing.NDArray[numpy.uint8], int, int, Fault | None]:
        """
        Frames with edited records up to one that needs a closer look: (frames, num_frames, next, Fault or None).
        """

    def seen(self) -> list[bytes]:
        """Every name seen so far."""

class RecordPicker:
    """Records by number; asks `_get` for the rest."""

    def __getitem__(self, key, /):
        """Return self[key]."""

    def set_starts(self, starts: Sequence[int]) -> None:
        """
        Set the number of the first record of each shard, and the number of all records.
        """

    def set_table(self, shard: int, table: FrameTable | None) -> None:
        """
        Read the records of a shard from this table; None: ask `_get` for them.
        """

def is_local_disk(descriptor: int) -> bool:
    """
    Whether only this machine writes to the file system of an open file, so that its locks hold for all.
    """

def sync_disk(descriptor: int) -> None:
    """
    Write everything of the file system of an open file to its disk; OSError ENOSYS where the system cannot.
    """

def list_folder(path: bytes) -> tuple[bytes, numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]:
    """
    Sorted names, each with a zero byte after it (a folder: a slash and a zero byte); sizes, -1 for pipes and devices; times of change (ns).
    """

def resize_image(source: object, target: object, height: int, width: int, top: int, left: int, filter: str, antialias: bool) -> None:
    """
    Fill target, uint8 (height, width, channels), with a window of the source resized to height x width.
    """

def resize_bicubic(source: object, target: object) -> None:
    """
    Fill target, uint8 (height, width, 1 or 3), with the source resized as Pillow does it, bit for bit.
    """

def undo_png_filters(filtered: object, pixels: object) -> bool:
    """
    Fill pixels, uint8 (height, width, channels), with the rows of an inflated PNG; False where they are damaged.
    """

def allocate_bytes(nbytes: int) -> numpy.typing.NDArray[numpy.uint8]:
    """An array of unspecified bytes, from memory that is reused."""

def is_sound_jpeg(data: object) -> bool:
    """
    Whether a baseline JPEG has every block, by its codes; False if that is unknown.
    """

def is_damaged_jpeg(data: object) -> bool:
    """
    Whether a code of a baseline JPEG is invalid or a block is missing; False if that is unknown.
    """

def read_jpeg_header(data: object) -> tuple[int, int, int, int, bool, int] | None:
    """
    (height, width, components, bits, is progressive, Exif orientation), or None.
    """

def walk_jpeg_scans(data: object) -> tuple[int, bool]:
    """(number of scans, whether the end of the image is there)."""

class ColumnBuilder:
    """Records in, columns out. One thread at a time."""

    def __init__(self, kind: str, specs: Sequence[tuple[bytes, str, bool, int]], known: Sequence[tuple[bytes, bool]] | None = None) -> None:
        """
        `specs` holds (name bytes, kind, is_list, length or -1) for each column. With `known`, (name bytes, is_list) of what else records may have, any other name is a fault.
        """

    def append_frames(self, data: object, start: int, stop: int, max_rows: int, verify: str) -> tuple[int, int, Fault | None]:
        """Add a run of frames: (num_rows, next, Fault or None)."""

    def append_picks(self, tables: Sequence[FrameTable], shards: numpy.typing.NDArray[numpy.uint32], records: numpy.typing.NDArray[numpy.uint64], verify: str) -> tuple[int, Fault | None]:
        """
        Add record `records[i]` of `tables[shards[i]]` for each i, in that order: (num_rows, Fault or None).
        """

    def append_record(self, record: object) -> Fault | None:
        """Add one record: its Fault, or None."""

    def finish(self) -> list[tuple[Any, Any, Any, Any, Any]]:
        """
        Hand over (values, splits, list_splits, presence, frame_presence) for each column.
        """

    @property
    def num_rows(self) -> int: ...

    @property
    def has_others(self) -> bool:
        """Whether any record so far had a feature that no column was asked for."""

def hash_values(data: object, offsets: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.uint64]:
    """A 64-bit hash of each value, the same for the same bytes everywhere."""

class Survey:
    """Gathers what a schema is inferred from. One thread at a time."""

    def __init__(self, kind: str) -> None: ...

    def add_frames(self, data: object, start: int, stop: int, max_frames: int, verify: str) -> tuple[int, int, Fault | None]:
        """Add a run of frames: (num_frames, next, Fault or None)."""

    def add_record(self, record: object) -> Fault | None:
        """Add one record: its Fault, or None."""

    def features(self) -> list[dict[str, Any]]:
        """One dict of figures per feature."""

    @property
    def shapes(self) -> dict[str, int]:
        """Number of records of each shape."""

    @property
    def num_records(self) -> int: ...

def classify_record(record: object) -> str:
    """What a record looks like, judged strictly."""

def find_others(data: object, start: int, stop: int, max_frames: int, verify: str) -> tuple[int, list[tuple[int, int]], int, int, Fault | None]:
    """
    Records of a run that are not Examples: (num_frames, [(ordinal, offset)], number of records with more than MAX_NAMES names, next, Fault or None).
    """

MAX_NAMES: int = 262144

def read_strict_tensor(data: object) -> tuple[int, tuple[int, ...], int, int] | None:
    """
    (dtype, shape, start, nbytes of the content) if this is a serialized tensor beyond doubt, else None.
    """

class RowBuilder:
    """Records in, rows out. One thread at a time."""

    def __init__(self, kind: str, specs: Sequence[tuple[bytes, str, bool, int, bool]], known: Sequence[tuple[bytes, bool]] | None, forms: Sequence[tuple[str, str, tuple[int, ...] | None, Any, bool]], make_values: Callable[[int, tuple[Any, Any, Any, Any, Any], int], list[Any]], missing: object) -> None:
        """
        `specs` and `known` as for a ColumnBuilder; the last member of a spec is whether Python is spared the copy of bytes values. `forms` holds (name, form, shape or None, dtype to cast to or None, whether one value stands for itself) for each. What has the form 'python' is made by `make_values(column, its tuple, num_rows)`, which has `missing` where a row lacks the key.
        """

    def append_frames(self, data: object, start: int, stop: int, max_rows: int, verify: str) -> tuple[int, int, Fault | None]:
        """Add a run of frames: (num_rows, next, Fault or None)."""

    def append_picks(self, tables: Sequence[FrameTable], shards: numpy.typing.NDArray[numpy.uint32], records: numpy.typing.NDArray[numpy.uint64], verify: str) -> tuple[int, Fault | None]:
        """
        Add record `records[i]` of `tables[shards[i]]` for each i, in that order: (num_rows, Fault or None).
        """

    def append_record(self, record: object) -> Fault | None:
        """Add one record: its Fault, or None."""

    def append_pick(self, table: FrameTable, number: int, verify: str) -> Fault | None:
        """Add one record of a table: its Fault, or None."""

    def finish(self) -> list[dict[str, Any]]:
        """Hand over the rows."""

    @property
    def num_rows(self) -> int: ...

class BatchEngine:
    """
    One pass over shards: batches of columns, in order, made by native threads.
    """

    def __init__(self, kind: str, specs: Sequence[tuple[bytes, str, bool, int]], known: Sequence[tuple[bytes, bool]] | None, plain: Sequence[bool], verify: str, skips: bool, threads: int, ahead_nbytes: int, num_shards: int) -> None:
        """
        `specs` and `known` as for ColumnBuilder. A column that is `plain` comes as its values alone.
        """

    def copy_values(self, columns: Sequence[int]) -> None:
        """
        Copy large bytes values of these columns at once, instead of viewing them. Before `read_...`.
        """

    def read_in_order(self, batch_size: int) -> None:
        """Read all frames in file order; `set_span` gives the shards."""

    def read_pieces(self, batch_size: int) -> None:
        """
        Read all frames in order from pieces; `add_piece` gives them while the engine is hungry.
        """

    def add_piece(self, data: object, start: int, stop: int) -> None:
        """
        The next piece: whole frames in bytes [start, stop). It is a shard in faults, numbered from 0.
        """

    def fail_piece(self) -> None:
        """The next piece cannot be read."""

    def end_pieces(self) -> None:
        """No more pieces come."""

    @property
    def first_piece(self) -> int:
        """Pieces before it are read and dropped."""

    def read_plan(self, starts: numpy.typing.NDArray[numpy.uint64], order: Sequence[tuple[Any, ...]], *, size: int, start: int, batch_size: int, rank: int, world_size: int, pads: bool, num_batches: int, first: int, stride: int) -> None:
        """
        Read records by number; `set_table` gives the shards. `starts` has the number of the first record of each shard, and of all. `order` holds the steps from positions to numbers: ("slice", start, step), ("permutation", size, key), ("list", numbers).
        """

    def read_lists(self, starts: numpy.typing.NDArray[numpy.uint64]) -> None:
        """Read records by number, whose lists come by `feed`."""

    def feed(self, records: numpy.typing.NDArray[numpy.uint64], counts: numpy.typing.NDArray[numpy.uint64]) -> None:
        """
        The records of more batches, one after the other, and the number of rows of each.
        """

    def end_feed(self) -> None:
        """No more batches come."""

    def give_tensors(self, exchange: object) -> None:
        """
        Give plain columns as tensors of the framework whose `__dlpack_c_exchange_api__` this is; arrays if its version is not known.
        """

    def take(self) -> tuple[Any, Any, list[tuple[int, int, int, Fault | None]] | None] | None:
        """
        The next batch: (columns, number of rows, faults as (shard, record, offset, Fault or None for out of memory)); (shard, None, faults) at a shard that failed. None where shards are wanted, the engine is hungry or foreign, or the pass is over.
        """

    def take_wanted(self) -> list[int]:
        """Shards to open now."""

    def set_table(self, shard: int, table: FrameTable) -> None: ...

    def set_span(self, shard: int, span: object) -> None: ...

    def fail_shard(self, shard: int) -> None:
        """The shard cannot be opened."""

    def close(self) -> None:
        """Stop the threads and wait for them."""

    @property
    def is_hungry(self) -> bool:
        """Is it waiting for `feed` or `add_piece`?"""

    @property
    def is_foreign(self) -> bool:
        """
        Was this process forked after the threads were started? Then it has none of them.
        """

MAPS_ARE_GUARDED: bool = True

class NumberFigures:
    """Figures of a block of numbers."""

    @property
    def num_nan(self) -> int: ...

    @property
    def num_finite(self) -> int: ...

    @property
    def zeros(self) -> int:
        """Of either sign."""

    @property
    def low(self) -> Any:
        """None without a number."""

    @property
    def high(self) -> Any:
        """None without a number."""

    @property
    def mean(self) -> float:
        """Of the finite numbers."""

    @property
    def m2(self) -> float:
        """The sum of squared deviations from the mean."""

    @property
    def values(self) -> Any:
        """Different values, in ascending order."""

    @property
    def counts(self) -> Any:
        """Of `values`."""

    @property
    def is_whole(self) -> bool:
        """
        Does `values` hold all values? Else those that occur twice or more, with counts that are 1 less.
        """

    @property
    def level(self) -> int:
        """Each of `ranks` represents 2**level values."""

    @property
    def ranks(self) -> Any:
        """None if `is_whole`."""

    @property
    def hashes(self) -> Any:
        """The smallest hashes, in ascending order; None if `is_whole`."""

class BytesFigures:
    """Figures of a block of bytes values."""

    @property
    def sizes(self) -> NumberFigures:
        """Figures of the sizes."""

    @property
    def keys(self) -> Any:
        """`hash_values` of different values, in ascending order."""

    @property
    def counts(self) -> Any:
        """Of `keys`."""

    @property
    def is_whole(self) -> bool:
        """As in NumberFigures."""

    @property
    def rows(self) -> Any:
        """The first row of each key."""

    @property
    def hashes(self) -> Any:
        """As in NumberFigures."""

    @property
    def images(self) -> Any:
        """Rows that begin like an image."""

def summarize_ints(values: numpy.typing.NDArray[numpy.int64], sizes: tuple[int, int, int], limit: int | None = None) -> NumberFigures:
    """
    Figures of a block of numbers. `sizes` is (max_values, num_hashes, max_ranks); hashes above `limit` are left out.
    """

def summarize_floats(values: numpy.typing.NDArray[numpy.float32], sizes: tuple[int, int, int], limit: int | None = None) -> NumberFigures:
    """
    Figures of a block of numbers. `sizes` is (max_values, num_hashes, max_ranks); hashes above `limit` are left out.
    """

def summarize_bytes(data: object, offsets: numpy.typing.NDArray[numpy.int64], sizes: tuple[int, int, int], limit: int | None = None) -> BytesFigures:
    """
    Figures of a block of bytes values, with `sizes` and `limit` as in `summarize_ints`.
    """

def merge_unique(one: numpy.typing.NDArray[numpy.uint64], other: numpy.typing.NDArray[numpy.uint64], most: int) -> tuple[numpy.typing.NDArray[numpy.uint64], int]:
    """
    The first different values of two arrays that are in ascending order, and the number of different values.
    """

@overload
def merge_sorted(one: numpy.typing.NDArray[numpy.int64], other: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]: ...

@overload
def merge_sorted(one: numpy.typing.NDArray[numpy.float32], other: numpy.typing.NDArray[numpy.float32]) -> numpy.typing.NDArray[numpy.float32]: ...

@overload
def merge_sorted(one: numpy.typing.NDArray[numpy.uint64], other: numpy.typing.NDArray[numpy.uint64]) -> numpy.typing.NDArray[numpy.uint64]:
    """All values of two arrays that are in ascending order, in that order."""

@overload
def merge_counts(one: numpy.typing.NDArray[numpy.int64], one_counts: numpy.typing.NDArray[numpy.int64], other: numpy.typing.NDArray[numpy.int64], other_counts: numpy.typing.NDArray[numpy.int64]) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]: ...

@overload
def merge_counts(one: numpy.typing.NDArray[numpy.float32], one_counts: numpy.typing.NDArray[numpy.int64], other: numpy.typing.NDArray[numpy.float32], other_counts: numpy.typing.NDArray[numpy.int64]) -> tuple[numpy.typing.NDArray[numpy.float32], numpy.typing.NDArray[numpy.int64]]: ...

@overload
def merge_counts(one: numpy.typing.NDArray[numpy.uint64], one_counts: numpy.typing.NDArray[numpy.int64], other: numpy.typing.NDArray[numpy.uint64], other_counts: numpy.typing.NDArray[numpy.int64]) -> tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.int64]]:
    """
    Values with counts of two tables, in ascending order: (values, counts). No table has a value twice.
    """

def read_message(kind: str, record: object) -> tuple[list[tuple[bytes, str | None, list[Any]]] | None, list[tuple[bytes, list[tuple[str | None, list[Any]]]]] | None] | Fault:
    """
    (features, feature lists) of a record as [(name, kind or None, values)] and [(name, [(kind or None, values)])], None for a part that is not there; or its Fault.
    """

def pack_bytes(values: list[Any] | tuple[Any, ...]) -> tuple[numpy.typing.NDArray[numpy.uint8], numpy.typing.NDArray[numpy.int64]] | None:
    """
    A list or tuple of bytes joined: (data, offsets); None when a value is something else.
    """

class RowEncoder:
    """Rows in, frames out. One thread at a time."""

    def __init__(self, floats: str, coerce: Callable[[str, Any, str | None], tuple[str, Any]]) -> None:
        """
        `coerce(name, value, expected kind or None)` returns (kind, buffer or list of bytes) or raises.
        """

    def write(self, row: dict[str, Any]) -> int:
        """Append a row; return the number of bytes that wait to be taken."""

    def encode_message(self, features: dict[str, tuple[str, list[Any]]]) -> bytes:
        """
        The bytes of an Example of features by name: (name of the field of the list, values).
        """

    def write_sequence(self, context: Sequence[tuple[str, Any]], lists: Sequence[tuple[str, Any]]) -> int:
        """
        Append a SequenceExample; return the number of bytes that wait to be taken.
        """

    def write_columns(self, columns: Sequence[tuple[bytes, str, Any, Any, int, Any, Any]], num_rows: int) -> int:
        """Append many rows; return the number of bytes that wait to be taken."""

    def write_record(self, record: object) -> int:
        """Append a record as it is."""

    def kind_of(self, name: object, kind: str | None = None, is_list: bool = False) -> str | None:
        """
        The kind a feature has had so far, or None; sets it where there was none.
        """

    def take(self) -> numpy.typing.NDArray[numpy.uint8]:
        """The frames made so far, which are then forgotten here."""

    def rollback(self, num_records: int, num_pending: int) -> None:
        """Forget the records after the first `num_records`."""

    @property
    def num_pending(self) -> int:
        """Bytes that wait to be taken."""

    @property
    def num_records(self) -> int: ...

class ColumnFrames:
    """Whole columns, and any of their rows as frames."""

    def __init__(self, columns: Sequence[tuple[bytes, str, Any, Any, Any, Any]], num_rows: int) -> None:
        """
        Columns are (name, kind, values, byte offsets, splits, missing), sorted by name.
        """

    def take(self, rows: numpy.typing.NDArray[numpy.int64]) -> tuple[numpy.typing.NDArray[numpy.uint8], numpy.typing.NDArray[numpy.uint64]]:
        """
        Rows in this order: (frames, where each one starts). Threads may call it at the same time.
        """

def parse_csv(rows: object, separator: str, kinds: Sequence[str], missing: Sequence[bytes]) -> tuple[int, list[tuple[Any, Any, Any, int, int]]] | int | None:
    """
    Rows of CSV to columns: (number of rows, [(values, offsets, missing, number of missing cells, number of cells that a simpler kind might hold)]); the index of a column with a cell that is not of its kind; None where a row needs a closer look.
    """

def find_csv_row_end(rows: object, separator: str, *, first: bool) -> int:
    """
    The offset after the first or last line feed outside of quotes, 0 without one. `rows` starts at the start of a row.
    """

class MessageBase:
    def __init__(self, /, *args, **kwargs):
        """Initialize self.  See help(type(self)) for accurate signature."""

class BytesListBase(MessageBase):
    def __init__(self, /, *args, **kwargs):
        """Initialize self.  See help(type(self)) for accurate signature."""

class FloatListBase(MessageBase):
    def __init__(self, /, *args, **kwargs):
        """Initialize self.  See help(type(self)) for accurate signature."""

class Int64ListBase(MessageBase):
    def __init__(self, /, *args, **kwargs):
        """Initialize self.  See help(type(self)) for accurate signature."""

class FeatureBase(MessageBase):
    def __init__(self, /, *args, **kwargs):
        """Initialize self.  See help(type(self)) for accurate signature."""

class FeaturesBase(MessageBase):
    def __init__(self, /, *args, **kwargs):
        """Initialize self.  See help(type(self)) for accurate signature."""

class ExampleBase(MessageBase):
    def __init__(self, /, *args, **kwargs):
        """Initialize self.  See help(type(self)) for accurate signature."""

def make_arrow_schema(field: tuple[Any, ...]) -> object:
    """
    A capsule with the ArrowSchema of (format, name, metadata, nullable, children).
    """

def make_arrow_stream(field: tuple[Any, ...], batches: Iterator[tuple[Any, ...]]) -> object:
    """
    A capsule with an ArrowArrayStream over (length, number of nulls, buffers, children) of each batch.
    """

def find_invalid_utf8(data: object, offsets: numpy.typing.NDArray[numpy.int64]) -> int:
    """The number of the first value that is not UTF-8, or -1."""
