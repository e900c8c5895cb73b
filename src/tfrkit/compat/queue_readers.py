"""Input queues of TensorFlow 1: file names, a reader, batches. Read when a Session runs, with no threads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random
from typing import Any

from tfrkit.compat import gfile
from tfrkit.compat.collate import batch_elements
from tfrkit.compat.elements import to_element
from tfrkit.compat.graph import Node, Run
from tfrkit.compat.op_errors import OutOfRangeError, UnimplementedError
from tfrkit.compat.randomness import next_stream, random_of
from tfrkit.compat.record_io import find_compression, read_file_records, to_path
from tfrkit.compat.tensor import to_tensor, wrap

_FRAME_OVERHEAD = 8 + 4 + 4  # length, its checksum, the checksum of the record


class Queue:
    """Values one after the other, for one or more epochs or for ever, in a new order each epoch if asked."""

    def __init__(self, values: list[Any], num_epochs: int | None, random: Random | None) -> None:
        self._values = self._cycle(values, num_epochs, random)

    @staticmethod
    def _cycle(values: list[Any], num_epochs: int | None, random: Random | None) -> Iterator[Any]:
        for _ in itertools.count() if num_epochs is None else range(int(num_epochs)):
            order = list(values)
            if random is not None:
                random.shuffle(order)
            yield from order

    def dequeue_value(self) -> Any:
        """The next value; OutOfRangeError after the last epoch."""
        for value in self._values:
            return value
        raise OutOfRangeError(None, None, "queue is closed and has no values left")


def string_input_producer(
    string_tensor: Any, num_epochs: int | None = None, shuffle: bool = True, seed: Any = None, **unused: Any
) -> Queue:
    """A queue of file names."""
    paths = [to_path(path) for path in string_tensor]
    if not paths:
        raise ValueError("string_input_producer expected at least one file name, got none")
    return Queue(paths, num_epochs, random_of(next_stream(seed), 0) if shuffle else None)


def slice_input_producer(
    tensor_list: Any, num_epochs: int | None = None, shuffle: bool = True, seed: Any = None, **unused: Any
) -> list[Node]:
    """The rows of tensors, one each run."""
    tensors = [to_tensor(tensor) for tensor in tensor_list]
    queue = Queue(list(range(len(tensors[0]))), num_epochs, random_of(next_stream(seed), 0) if shuffle else None)
    number = Node(queue.dequeue_value)
    return [Node(lambda row, tensor=tensor: tensor[row], number) for tensor in tensors]


def match_filenames_once(pattern: Any, name: Any = None) -> list[str]:
    """Paths that match a pattern, sorted."""
    return gfile.glob(pattern)


class TFRecordReader:
    """Reads records of the files that a queue names."""

    def __init__(self, name: Any = None, options: Any = None) -> None:
        find_compression(options)
        self._path = ""
        self._offset = 0
        self._records: Iterator[bytes] = iter(())

    def read(self, queue: Queue, name: Any = None) -> tuple[Node, Node]:
        """(key, record), new ones each run; the key is the file and the byte where the record starts."""
        pair = Node(lambda: self._next(queue))
        return pair[0], pair[1]

    def _next(self, queue: Queue) -> tuple[Any, Any]:
        num_empty = 0
        while True:
            for record in self._records:
                key = f"{self._path}:{self._offset}"
                self._offset += _FRAME_OVERHEAD + len(record)
                return wrap(key), wrap(record)
            if num_empty > 10_000:
                raise OutOfRangeError(None, None, "files expected records, got none in 10000 files one after the other")
            num_empty += 1
            self._path, self._offset = queue.dequeue_value(), 0
            self._records = read_file_records(self._path)


def batch(
    tensors: Any,
    batch_size: int,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    allow_smaller_final_batch: bool = False,
    **unused: Any,
) -> Any:
    """Values of several runs as one batch, in order."""
    return _batches(tensors, batch_size, 1, None, enqueue_many, allow_smaller_final_batch)


def shuffle_batch(
    tensors: Any,
    batch_size: int,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: Any = None,
    enqueue_many: bool = False,
    allow_smaller_final_batch: bool = False,
    **unused: Any,
) -> Any:
    """Values of several runs as one batch, each drawn from `capacity` that wait. Orders are not TensorFlow's."""
    if int(min_after_dequeue) >= int(capacity):
        raise ValueError(f"min_after_dequeue expected less than capacity {capacity}, got {min_after_dequeue}")
    random = random_of(next_stream(seed), 0)
    return _batches(tensors, batch_size, int(capacity), random, enqueue_many, allow_smaller_final_batch)


def _batches(
    tensors: Any, size: int, capacity: int, random: Random | None, enqueue_many: bool, keeps_rest: bool
) -> Any:
    if enqueue_many:
        raise UnimplementedError(None, None, "batch offers enqueue_many=False only, got True")
    drawn = _draw(tensors, capacity, random)

    def take() -> Any:
        elements = list(itertools.islice(drawn, int(size)))
        if not elements or (len(elements) < int(size) and not keeps_rest):
            raise OutOfRangeError(None, None, f"queue has {len(elements)} elements left, expected {int(size)}")
        return batch_elements(elements)

    batches = Node(take)
    if isinstance(tensors, dict):
        return {name: batches[name] for name in tensors}
    return [batches[number] for number in range(len(tensors))] if isinstance(tensors, (list, tuple)) else batches


def _draw(tensors: Any, capacity: int, random: Random | None) -> Iterator[Any]:
    """Elements as a queue of this capacity hands them out, until the values they are made of end."""
    waiting: list[Any] = []
    is_open = True
    while is_open or waiting:
        while is_open and len(waiting) < capacity:
            try:
                waiting.append(to_element(Run().compute(tensors)))
            except OutOfRangeError:
                is_open = False
        if waiting:
            place = 0 if random is None else random.randrange(len(waiting))
            waiting[place], waiting[-1] = waiting[-1], waiting[place]
            yield waiting.pop()


class Coordinator:
    """Tells threads to stop; there are none."""

    def __init__(self, *values: Any, **options: Any) -> None:
        self._is_stopped = False

    def should_stop(self) -> bool:
        return self._is_stopped

    def request_stop(self, ex: Any = None) -> None:
        self._is_stopped = True

    def join(self, threads: Any = None, **options: Any) -> None:
        """Nothing to wait for."""


def start_queue_runners(sess: Any = None, coord: Any = None, **options: Any) -> list[Any]:
    """No threads: queues are filled when they are read."""
    return []
