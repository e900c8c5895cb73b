"""`tf.data`: datasets as chains of generators over values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tfrkit.compat import gfile
from tfrkit.compat.collate import batch_elements, pad_elements
from tfrkit.compat.graph import Node, is_deferred
from tfrkit.compat.iterators import GraphIterator, ValueIterator
from tfrkit.compat.namespace import explain_missing
from tfrkit.compat.randomness import next_stream, random_of
from tfrkit.compat.record_io import find_compression, read_files_records, to_path
from tfrkit.compat.tensor import RaggedTensor, SparseTensor, to_numpy, to_tensor, wrap

AUTOTUNE = -1


class Dataset:
    """Elements one after the other, read anew by each iteration. Elements are tensors, or dicts and tuples of them.

    Nothing runs in parallel: options that ask for it are accepted.
    """

    def __init__(self, start: Callable[[], Iterator[Any]]) -> None:
        self._start = start

    def __iter__(self) -> ValueIterator:
        return ValueIterator(self._start())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise explain_missing(f"tf.data.Dataset.{name}")

    # --- sources

    @staticmethod
    def from_tensor_slices(tensors: Any, name: Any = None) -> Dataset:
        """The rows of tensors."""
        parts = _to_parts(tensors)
        lengths = {len(leaf) for leaf in _leaves(parts)}
        if len(lengths) != 1:
            raise ValueError(f"from_tensor_slices expected tensors of one length, got {sorted(lengths)}")
        return Dataset(lambda: (_row(parts, number) for number in range(min(lengths))))

    @staticmethod
    def from_tensors(tensors: Any, name: Any = None) -> Dataset:
        """One element."""
        return Dataset(lambda: iter([_to_parts(tensors)]))

    @staticmethod
    def range(*bounds: int) -> Dataset:
        """Numbers, as Python's range."""
        return Dataset(lambda: (wrap(np.int64(number)) for number in range(*map(int, bounds))))

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: Any = None, name: Any = None) -> Dataset:
        """Paths that match a pattern, in a random order unless told otherwise."""
        paths = gfile.glob(file_pattern)
        if not paths:
            raise ValueError(f"list_files found no file that matches {file_pattern}")
        listed = Dataset.from_tensor_slices(paths)
        return listed if shuffle is False else listed.shuffle(len(paths), seed)

    # --- steps

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None, deterministic: Any = None) -> Dataset:
        """What a function makes of each element."""
        return Dataset(lambda: (to_element(_call(map_func, element)) for element in self._start()))

    def filter(self, predicate: Callable[..., Any], name: Any = None) -> Dataset:
        """The elements a function says yes to."""
        return Dataset(lambda: (element for element in self._start() if bool(_call(predicate, element))))

    def shuffle(self, buffer_size: int, seed: Any = None, reshuffle_each_iteration: bool | None = None) -> Dataset:
        """Elements in a random order, each drawn from the next `buffer_size`. Seeded orders are not TensorFlow's."""
        size = int(buffer_size)
        if size < 1:
            raise ValueError(f"buffer_size expected 1 or more, got {size}")
        stream, turns = next_stream(seed), itertools.count()
        return Dataset(lambda: self._shuffled(size, stream, 0 if reshuffle_each_iteration is False else next(turns)))

    def _shuffled(self, size: int, stream: str | None, turn: int) -> Iterator[Any]:
        random = random_of(stream, turn)
        waiting: list[Any] = []
        for element in self._start():
            if len(waiting) < size:
                waiting.append(element)
                continue
            place = random.randrange(size)
            drawn, waiting[place] = waiting[place], element
            yield drawn
        random.shuffle(waiting)
        yield from waiting

    def batch(
        self, batch_size: int, drop_remainder: bool = False, num_parallel_calls: Any = None, deterministic: Any = None
    ) -> Dataset:
        """Elements stacked; the last batch may be smaller."""
        return Dataset(lambda: (batch_elements(group) for group in self._groups(batch_size, drop_remainder)))

    def padded_batch(
        self, batch_size: int, padded_shapes: Any = None, padding_values: Any = None, drop_remainder: bool = False
    ) -> Dataset:
        """Elements filled up to one shape, then stacked."""
        return Dataset(
            lambda: (
                pad_elements(group, padded_shapes, padding_values) for group in self._groups(batch_size, drop_remainder)
            )
        )

    def _groups(self, size: int, drop_remainder: bool) -> Iterator[list[Any]]:
        if int(size) < 1:
            raise ValueError(f"batch_size expected 1 or more, got {size}")
        elements = self._start()
        while group := list(itertools.islice(elements, int(size))):
            if len(group) == int(size) or not drop_remainder:
                yield group

    def repeat(self, count: int | None = None) -> Dataset:
        """The elements again, `count` times or for ever."""
        turns = itertools.count() if count is None or int(count) < 0 else range(int(count))

        def start() -> Iterator[Any]:
            for _ in itertools.count() if isinstance(turns, itertools.count) else turns:
                is_empty = True
                for element in self._start():
                    is_empty = False
                    yield element
                if is_empty:
                    return

        return Dataset(start)

    def take(self, count: int) -> Dataset:
        """The first elements; all for -1."""
        return Dataset(lambda: itertools.islice(self._start(), None if int(count) < 0 else int(count)))

    def skip(self, count: int) -> Dataset:
        """Without the first elements; none for -1."""
        if int(count) < 0:
            return Dataset(lambda: iter(()))
        return Dataset(lambda: itertools.islice(self._start(), int(count), None))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Every `num_shards`-th element from `index` on."""
        if not 0 <= int(index) < int(num_shards):
            raise ValueError(f"index expected within 0 to {int(num_shards) - 1}, got {index}")
        return Dataset(lambda: itertools.islice(self._start(), int(index), None, int(num_shards)))

    def enumerate(self, start: int = 0) -> Dataset:
        """(number, element) pairs."""
        return Dataset(lambda: ((wrap(np.int64(number)), e) for number, e in enumerate(self._start(), start)))

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """What a function makes of the dataset."""
        return transformation_func(self)

    def prefetch(self, buffer_size: Any = None) -> Dataset:
        """The same."""
        return self

    def cache(self, filename: Any = "") -> Dataset:
        """The same; nothing is kept."""
        return self

    def with_options(self, options: Any) -> Dataset:
        """The same."""
        return self

    # --- reading

    def as_numpy_iterator(self) -> Iterator[Any]:
        """The elements in plain NumPy."""
        return (to_numpy(element) for element in self._start())

    def make_one_shot_iterator(self) -> GraphIterator:
        """An iterator for a Session."""
        return GraphIterator(self._start, is_started=True)

    def make_initializable_iterator(self) -> GraphIterator:
        """An iterator for a Session, started by running its `initializer`."""
        return GraphIterator(self._start, is_started=False)


class TFRecordDataset(Dataset):
    """The records of files, one file after the other, as strings."""

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None
    ) -> None:
        if is_deferred(filenames):
            raise TypeError("filenames expected paths, got a value of a graph\n  give the paths themselves")
        find_compression(compression_type)
        super().__init__(lambda: map(wrap, read_files_records(_paths(filenames))))


def _paths(filenames: Any) -> Iterator[str]:
    """One path, several, or a dataset of paths."""
    if isinstance(filenames, (Dataset, list, tuple)) or getattr(filenames, "ndim", 0) == 1:
        yield from map(to_path, filenames)
    else:
        yield to_path(filenames)


def make_one_shot_iterator(dataset: Dataset) -> GraphIterator:
    """`dataset.make_one_shot_iterator()`."""
    return dataset.make_one_shot_iterator()


def make_initializable_iterator(dataset: Dataset, shared_name: Any = None) -> GraphIterator:
    """`dataset.make_initializable_iterator()`."""
    return dataset.make_initializable_iterator()


def to_element(value: Any) -> Any:
    """What a function returned, as an element; lists count as tuples."""
    if isinstance(value, dict):
        return {name: to_element(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(to_element(part) for part in value)
    if isinstance(value, Node):
        raise TypeError("a function of a dataset expected to return values, got a value of a graph made outside of it")
    return value if isinstance(value, (SparseTensor, RaggedTensor)) else to_tensor(value)


def _call(function: Callable[..., Any], element: Any) -> Any:
    return function(*element) if isinstance(element, tuple) else function(element)


def _to_parts(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _to_parts(part) for name, part in value.items()}
    return tuple(_to_parts(part) for part in value) if isinstance(value, tuple) else to_tensor(value)


def _leaves(parts: Any) -> Iterator[Any]:
    if isinstance(parts, (dict, tuple)):
        for part in parts.values() if isinstance(parts, dict) else parts:
            yield from _leaves(part)
    elif parts.ndim == 0:
        raise ValueError("from_tensor_slices expected tensors with rows, got a single value")
    else:
        yield parts


def _row(parts: Any, number: int) -> Any:
    if isinstance(parts, dict):
        return {name: _row(part, number) for name, part in parts.items()}
    return tuple(_row(part, number) for part in parts) if isinstance(parts, tuple) else parts[number]
