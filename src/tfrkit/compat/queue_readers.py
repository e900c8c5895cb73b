"""Input queues of TensorFlow 1: file names, a reader, batches. They are read when a Session runs, without threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from tfrkit.compat import gfile
from tfrkit.compat.collate import batch_elements, pad_elements
from tfrkit.compat.elements import count_rows, row, to_element
from tfrkit.compat.graph import Node, Run, is_deferred
from tfrkit.compat.op_errors import InvalidArgumentError, OutOfRangeError
from tfrkit.compat.randomness import next_stream, random_of
from tfrkit.compat.record_io import find_compression, read_file_records, to_path
from tfrkit.compat.tensor import to_tensor, wrap

_FRAME_OVERHEAD = 8 + 4 + 4  # length, its checksum, the checksum of the record
_MAX_EMPTY_FILES = 10_000


class Queue:
    """A queue of values, for some epochs or endless, optionally shuffled each epoch."""

    def __init__(self, find_values: Callable[[], Sequence[Any]], num_epochs: int | None, random: Random | None) -> None:
        self._values = self._cycle(find_values, num_epochs, random)

    @staticmethod
    def _cycle(
        find_values: Callable[[], Sequence[Any]], num_epochs: int | None, random: Random | None
    ) -> Iterator[Any]:
        values = find_values()
        for _ in itertools.count() if num_epochs is None else range(int(num_epochs)):
            order = list(values)
            if random is not None:
                random.shuffle(order)
            yield from order

    def dequeue_value(self) -> Any:
        """Return the next value; raise OutOfRangeError after the last epoch."""
        for value in self._values:
            return value
        raise OutOfRangeError(None, None, "queue is closed and has no values left")

    def dequeue(self, name: Any = None) -> Node:
        """Return a node that gives the next value in each run."""
        return Node(lambda: to_tensor(self.dequeue_value()))


def string_input_producer(
    string_tensor: Any, num_epochs: int | None = None, shuffle: bool = True, seed: Any = None, **unused: Any
) -> Queue:
    """Make a queue of file names."""

    def find_paths() -> list[str]:
        paths = [to_path(path) for path in Run().compute(string_tensor)]
        if not paths:
            raise InvalidArgumentError(None, None, "string_input_producer expected at least one file name, got none")
        return paths

    if not is_deferred(string_tensor) and len(string_tensor) == 0:
        raise ValueError("string_input_producer expected at least one file name, got none")
    return Queue(find_paths, num_epochs, random_of(next_stream(seed), 0) if shuffle else None)


def slice_input_producer(
    tensor_list: Any, num_epochs: int | None = None, shuffle: bool = True, seed: Any = None, **unused: Any
) -> list[Node]:
    """Return the rows of tensors, the next one in each run."""
    tensors = [to_tensor(tensor) for tensor in tensor_list]
    random = random_of(next_stream(seed), 0) if shuffle else None
    number = Node(Queue(lambda: range(len(tensors[0])), num_epochs, random).dequeue_value)
    return [Node(lambda row, tensor=tensor: tensor[row], number) for tensor in tensors]


def match_filenames_once(pattern: Any, name: Any = None) -> Node:
    """List paths that match a pattern, sorted; listed on first use."""
    found: list[Any] = []

    def find() -> Any:
        if not found:
            found.append(gfile.matching_files(pattern))
        return found[0]

    return Node(find)


class TFRecordReader:
    """Reads records from the files in a queue."""

    def __init__(self, name: Any = None, options: Any = None) -> None:
        find_compression(options)
        self._path = ""
        self._offset = 0
        self._records: Iterator[bytes] = iter(())

    def read(self, queue: Queue, name: Any = None) -> tuple[Node, Node]:
        """Return (key, record), the next one in each run; the key is the file and the offset of the record's frame."""
        pair = Node(lambda: self._next(queue))
        return pair[0], pair[1]

    def read_up_to(self, queue: Queue, num_records: Any, name: Any = None) -> tuple[Node, Node]:
        """Return (keys, records) of at most `num_records` records of one file, the next ones in each run."""

        def read() -> tuple[Any, Any]:
            pairs = [self._next(queue)]
            pairs += itertools.islice(iter(self._next_here, None), int(num_records) - 1)
            return batch_elements([key for key, _ in pairs]), batch_elements([record for _, record in pairs])

        node = Node(read)
        return node[0], node[1]

    def _next(self, queue: Queue) -> tuple[Any, Any]:
        for _ in range(_MAX_EMPTY_FILES + 1):
            pair = self._next_here()
            if pair is not None:
                return pair
            self._path, self._offset = queue.dequeue_value(), 0
            self._records = read_file_records(self._path)
        raise OutOfRangeError(
            None, None, f"files expected records, got none in {_MAX_EMPTY_FILES} files one after the other"
        )

    def _next_here(self) -> tuple[Any, Any] | None:
        """Return the next record of the open file, or None at its end."""
        for record in self._records:
            key = f"{self._path}:{self._offset}"
            self._offset += _FRAME_OVERHEAD + len(record)
            return wrap(key), wrap(record)
        return None


def batch(
    tensors: Any,
    batch_size: Any,
    num_threads: Any = 1,
    capacity: Any = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: Any = None,
    name: Any = None,
) -> Any:
    """Batch the values of several runs, in order; with `dynamic_pad`, padded to one shape."""
    drawn = _draw([tensors], 1, None, enqueue_many)
    return _batches([tensors], batch_size, drawn, allow_smaller_final_batch, dynamic_pad)


def batch_join(
    tensors_list: Any,
    batch_size: Any,
    capacity: Any = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: Any = None,
    name: Any = None,
) -> Any:
    """Like `batch`, for several readers that take turns."""
    drawn = _draw(tensors_list, 1, None, enqueue_many)
    return _batches(tensors_list, batch_size, drawn, allow_smaller_final_batch, dynamic_pad)


def shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: Any,
    min_after_dequeue: Any,
    num_threads: Any = 1,
    seed: Any = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: Any = None,
    name: Any = None,
) -> Any:
    """Batch values, each drawn at random from a buffer of `capacity`. Orders are not TensorFlow's."""
    return shuffle_batch_join(
        [tensors], batch_size, capacity, min_after_dequeue, seed, enqueue_many, shapes, allow_smaller_final_batch
    )


def shuffle_batch_join(
    tensors_list: Any,
    batch_size: Any,
    capacity: Any,
    min_after_dequeue: Any,
    seed: Any = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: Any = None,
    name: Any = None,
) -> Any:
    """Like `shuffle_batch`, for several readers that take turns."""
    if int(min_after_dequeue) >= int(capacity):
        raise ValueError(f"min_after_dequeue expected less than capacity {capacity}, got {min_after_dequeue}")
    drawn = _draw(tensors_list, int(capacity), random_of(next_stream(seed), 0), enqueue_many)
    return _batches(tensors_list, batch_size, drawn, allow_smaller_final_batch, False)


def _batches(tensors_list: Any, batch_size: Any, drawn: Iterator[Any], keeps_rest: bool, pads: bool) -> Any:
    size = int(batch_size)

    def take() -> Any:
        elements = list(itertools.islice(drawn, size))
        if not elements or (len(elements) < size and not keeps_rest):
            raise OutOfRangeError(None, None, f"queue has {len(elements)} elements left, expected {size}")
        return pad_elements(elements, None, None) if pads else batch_elements(elements)

    batches, tensors = Node(take), tensors_list[0]
    if isinstance(tensors, dict):
        return {name: batches[name] for name in tensors}
    if not isinstance(tensors, (list, tuple)):
        return batches
    if not tensors:
        raise ValueError("expected at least one tensor to batch, got none")
    parts = [batches[number] for number in range(len(tensors))]
    return parts if len(parts) > 1 else parts[0]  # as in TensorFlow: a single tensor is not in a list


def _draw(tensors_list: Any, capacity: int, random: Random | None, enqueue_many: bool) -> Iterator[Any]:
    """Yield elements as a queue of this capacity returns them, until its inputs end."""
    waiting: list[Any] = []
    filling = _enqueue(list(tensors_list), enqueue_many)
    while True:
        waiting += itertools.islice(filling, max(0, capacity - len(waiting)))
        if not waiting:
            return
        place = 0 if random is None else random.randrange(len(waiting))
        waiting[place], waiting[-1] = waiting[-1], waiting[place]
        yield waiting.pop()


def _enqueue(sources: list[Any], enqueue_many: bool) -> Iterator[Any]:
    """Yield one element of each source in turn; with `enqueue_many`, all rows of that element."""
    while sources:
        for tensors in list(sources):
            try:
                element = to_element(Run().compute(tensors))
            except OutOfRangeError:
                sources.remove(tensors)
                continue
            if enqueue_many:
                yield from (row(element, number) for number in range(count_rows(element, "enqueue_many")))
            else:
                yield element


class _StopOnException:
    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if isinstance(error, Exception):
            self._coordinator.request_stop(error)
        return isinstance(error, Exception)


class Coordinator:
    """Stops the threads of a script together. Queues have no threads here: they are filled when they are read."""

    def __init__(self, *values: Any, **options: Any) -> None:
        self._is_stopped = False
        self._error: BaseException | None = None

    def should_stop(self) -> bool:
        return self._is_stopped

    def request_stop(self, ex: Any = None) -> None:
        """Ask threads to stop. `join` raises the error, unless it is the end of a queue."""
        self._is_stopped = True
        if isinstance(ex, BaseException) and not isinstance(ex, OutOfRangeError) and self._error is None:
            self._error = ex

    def stop_on_exception(self) -> _StopOnException:
        """Return a `with` block in which an error stops all threads; `join` raises the error."""
        return _StopOnException(self)

    def join(self, threads: Any = None, **options: Any) -> None:
        """Wait for threads to end, and raise the reported error, if any."""
        for thread in threads or ():
            thread.join()
        if self._error is not None:
            raise self._error


def start_queue_runners(sess: Any = None, coord: Any = None, **options: Any) -> list[Any]:
    """Start no threads: queues are filled when they are read."""
    return []
