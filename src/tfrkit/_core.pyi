from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy
import numpy.typing
from numpy.typing import NDArray


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
    def resume(self) -> int:
        """End of the faulty frame where its length can be believed, else 0."""

def crc32c(data: object, crc: int = 0) -> int:
    """CRC-32C of a buffer, continuing `crc`."""

def masked_crc32c(data: object) -> int:
    """CRC-32C of a buffer as a frame stores it."""

def crc32c_variants() -> list[str]:
    """Variants this machine runs, slowest first."""

def crc32c_with(variant: str, data: object) -> int:
    """CRC-32C by a named variant."""

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

def read_frames_at(data: object, offsets: numpy.typing.NDArray[numpy.uint64], verify: str) -> tuple[list[bytes], Fault | None]:
    """Records of the frames at `offsets`: (list of bytes, Fault or None)."""

def read_frame_at(data: object, offset: int, verify: str) -> bytes | Fault:
    """The record of the frame at `offset`, or its Fault."""

def frame_records(records: Sequence[bytes | bytearray | memoryview]) -> bytes:
    """Records as frames, one after the other."""

class Permutation:
    """A keyed order of [0, size), computed, never stored."""

    def __init__(self, size: int, key: int) -> None: ...

    def at(self, position: int) -> int: ...

    def at_range(self, start: int, stop: int) -> numpy.typing.NDArray[numpy.uint64]: ...

    def position_of(self, item: int) -> int: ...

    @property
    def size(self) -> int: ...

class FrameTable:
    """Records by number out of one span. Any thread."""

    def __init__(self, data: object, offsets: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], verify: str, descriptor: int) -> None: ...

    def read(self, number: int) -> bytes | Fault | None:
        """The record, its Fault, or None if the file shrank."""

    def __len__(self) -> int: ...

class ColumnBuilder:
    """Records in, columns out. One thread at a time."""

    def __init__(self, kind: str, specs: Sequence[tuple[bytes, str, bool, int]]) -> None:
        """
        `specs` holds (name bytes, kind, is_list, length or -1) for each column.
        """

    def append_frames(self, data: object, start: int, stop: int, max_rows: int, verify: str) -> tuple[int, int, Fault | None]:
        """Add a run of frames: (num_rows, next, Fault or None)."""

    def append_frames_at(self, data: object, offsets: numpy.typing.NDArray[numpy.uint64], verify: str) -> tuple[int, int, Fault | None]:
        """Add the frames at `offsets`: (num_rows, next, Fault or None)."""

    def append_record(self, record: object) -> Fault | None:
        """Add one record: its Fault, or None."""

    def finish(self) -> list[tuple[Any, Any, Any, Any, Any]]:
        """
        Hand over (values, splits, list_splits, presence, frame_presence) for each column.
        """

    @property
    def num_rows(self) -> int: ...

class Survey:
    """Gathers what a schema is inferred from. One thread at a time."""

    def __init__(self, kind: str) -> None: ...

    def add_frames(self, data: object, start: int, stop: int, max_frames: int, verify: str) -> tuple[int, int, Fault | None]:
        """Add a run of frames: (num_frames, next, Fault or None)."""

    def add_record(self, record: object) -> Fault | None:
        """Add one record: its Fault, or None."""

    def features(self) -> list[dict[str, Any]]:
        """One dict of figures a feature."""

    @property
    def shapes(self) -> dict[str, int]:
        """How many records look like what."""

    @property
    def num_records(self) -> int: ...

def classify_record(record: object) -> str:
    """What a record looks like, judged strictly."""

def find_others(data: object, start: int, stop: int, max_frames: int, verify: str) -> tuple[int, list[tuple[int, int]], int, Fault | None]:
    """
    Records of a run that are no Examples: (num_frames, [(ordinal, offset)], next, Fault or None).
    """

def read_strict_tensor(data: object) -> tuple[int, tuple[int, ...], int, int] | None:
    """
    (dtype, shape, start, nbytes of the content) if this is a serialized tensor beyond doubt, else None.
    """

class RowEncoder:
    """Rows in, frames out. One thread at a time."""

    def __init__(self, floats: str, coerce: Callable[[str, Any, str | None], tuple[str, Any]]) -> None:
        """
        `coerce(name, value, expected kind or None)` answers (kind, buffer or list of bytes) or raises.
        """

    def write(self, row: dict[str, Any]) -> int:
        """Append a row; how many bytes wait to be taken."""

    def write_sequence(self, context: Sequence[tuple[str, Any]], lists: Sequence[tuple[str, Any]]) -> int:
        """Append a SequenceExample; how many bytes wait to be taken."""

    def write_columns(self, columns: Sequence[tuple[bytes, str, Any, Any, int, Any, Any]], num_rows: int) -> int:
        """Append many rows; how many bytes wait to be taken."""

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
