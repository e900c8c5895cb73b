"""`tf.data`: datasets as chains of iterators over values."""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tfrkit.compat import gfile, steps
from tfrkit.compat.collate import pad_elements
from tfrkit.compat.elements import (
    call,
    check_element,
    count_rows,
    require_positive,
    row,
    to_element,
    to_parts,
)
from tfrkit.compat.graph import Node, compute_now, is_deferred
from tfrkit.compat.iterators import GraphIterator, ValueIterator
from tfrkit.compat.namespace import explain_missing
from tfrkit.compat.op_errors import InvalidArgumentError, OpError
from tfrkit.compat.parsed_rows import MapRecords, batch_items, to_value
from tfrkit.compat.randomness import next_stream, random_of
from tfrkit.compat.recognise import opens_files
from tfrkit.compat.shapes import TensorShape, TensorSpec
from tfrkit.compat.structure import leaves, map_parts, spread
from tfrkit.compat.tensor import to_numpy, to_tensor, wrap

AUTOTUNE = -1
INFINITE = -1
UNKNOWN = -2
# TensorFlow takes the number of processors, so its order differs from machine to machine.
_CYCLE_LENGTH = 16


class Dataset:
    """A sequence of elements, read again by each iteration. Elements are tensors, or dicts and tuples of them.

    Nothing runs in parallel: options that request it are accepted and ignored. An error is raised for its element; the
    next call returns the element after it.
    """

    _has_records = False  # items may be records and rows that `to_value` makes values of, and may be read ahead

    def __init__(
        self,
        open_items: Callable[[], Iterator[Any]],
        size: int = UNKNOWN,
        outline: Callable[[], Any] | None = None,
        *,
        has_records: bool = False,
    ) -> None:
        self._open_items = open_items
        self._has_records = has_records
        self._size = size
        # An element made of nodes, for a Session that needs the structure before the files are known.
        self._outline = outline or (lambda: Node(lambda: None))

    def _then(
        self,
        step: Callable[[Iterator[Any]], Iterator[Any]],
        size: int | None = None,
        outline: Callable[[], Any] | None = None,
    ) -> Dataset:
        """Return a dataset that applies a step; size and outline are those of this dataset unless given."""
        size = self._size if size is None else size
        return Dataset(lambda: step(self._start()), size, outline or self._outline)

    def _reordered(self, step: Callable[[Iterator[Any]], Iterator[Any]], size: int | None = None) -> Dataset:
        """Return a dataset that applies a step that does not look at the elements."""
        size = self._size if size is None else size
        return Dataset(lambda: step(self._open_items()), size, self._outline, has_records=self._has_records)

    def _start(self) -> Iterator[Any]:
        items = self._open_items()
        return map(to_value, items) if self._has_records else items

    def _size_of(self, count: Callable[[int], int]) -> int:
        return self._size if self._size < 0 else count(self._size)

    def __iter__(self) -> ValueIterator:
        return ValueIterator(self._start())

    def __len__(self) -> int:
        if self._size < 0:
            raise TypeError(f"the dataset length is {'infinite' if self._size == INFINITE else 'unknown'}")
        return self._size

    def __bool__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise explain_missing(f"tf.data.Dataset.{name}")

    # --- sources

    @staticmethod
    def from_tensor_slices(tensors: Any, name: Any = None) -> Dataset:
        """Make a dataset of the rows of tensors."""
        if is_deferred(tensors):
            return Dataset(
                lambda: Dataset.from_tensor_slices(compute_now(tensors))._start(),
                outline=lambda: map_parts(lambda _: Node(lambda: None), tensors),
            )
        parts = to_parts(tensors)
        count = count_rows(parts, "from_tensor_slices")
        return Dataset(lambda: (row(parts, number) for number in range(count)), count)

    @staticmethod
    def from_tensors(tensors: Any, name: Any = None) -> Dataset:
        """Make a dataset of one element."""
        parts = to_parts(tensors)
        return Dataset(lambda: iter([parts]), 1)

    @staticmethod
    def range(*bounds: Any, output_type: Any = "int64", name: Any = None) -> Dataset:
        """Make a dataset of numbers, with the arguments of Python's range."""
        numbers = range(*map(int, bounds))
        return Dataset(lambda: (to_tensor(np.int64(number), output_type) for number in numbers), len(numbers))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = (),
        output_signature: Any = None,
        name: Any = None,
    ) -> Dataset:
        """Make a dataset from a generator function, which is called for each iteration."""
        if not callable(generator):
            raise TypeError(f"generator expected a function that returns an iterable, got {type(generator).__name__}")
        if (output_types is None) == (output_signature is None):
            raise TypeError("from_generator expected output_signature, or output_types, and not both")
        specs = output_signature
        if specs is None:
            shapes = spread(output_shapes, output_types, "output_shapes")
            specs = map_parts(lambda dtype, shape: TensorSpec(TensorShape(shape), dtype), output_types, shapes)
        given = to_numpy(to_element(tuple(args or ())))
        check = functools.partial(check_element, specs=specs)
        return Dataset(lambda: map(check, iter(generator(*given))))

    @staticmethod
    def zip(*datasets: Any, name: Any = None) -> Dataset:
        """Combine the elements of several datasets, in the same tuple or dict, until one ends."""
        given = datasets[0] if len(datasets) == 1 else datasets
        for part in leaves(given):
            if not isinstance(part, Dataset):
                raise TypeError(f"zip expected a tuple or dict of datasets, got {type(part).__name__}")

        sizes = [dataset._size for dataset in leaves(given)]
        finite = [size for size in sizes if size != INFINITE]
        return Dataset(
            lambda: steps.together(map_parts(lambda dataset: dataset._start(), given)),
            UNKNOWN if UNKNOWN in sizes else min(finite, default=INFINITE),
            lambda: map_parts(lambda dataset: dataset._outline(), given),
        )

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: Any = None, name: Any = None) -> Dataset:
        """List paths that match a pattern, in a random order by default."""
        paths = gfile.glob(file_pattern)
        if not paths:
            raise InvalidArgumentError(None, None, f"list_files found no file that matches {file_pattern}")
        listed = Dataset.from_tensor_slices(paths)
        return listed if shuffle is False else listed.shuffle(len(paths), seed)

    # --- steps on single elements

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: Any = None,
        deterministic: Any = None,
        synchronous: Any = None,
        use_unbounded_threadpool: Any = False,
        name: Any = None,
    ) -> Dataset:
        """Apply a function to each element."""

        def change(element: Any) -> Any:
            return to_element(call(map_func, element))

        def outline() -> Any:
            return call(map_func, self._outline())

        if self._has_records:
            return Dataset(
                lambda: MapRecords(self._open_items(), map_func, change), self._size, outline, has_records=True
            )
        return self._then(lambda elements: map(change, elements), outline=outline)

    def filter(self, predicate: Callable[..., Any], name: Any = None) -> Dataset:
        """Keep the elements for which a function returns true."""
        return self._then(lambda elements: filter(lambda element: bool(call(predicate, element)), elements), UNKNOWN)

    def take_while(self, predicate: Callable[..., Any], name: Any = None) -> Dataset:
        """Keep the elements before the first for which a function returns false."""
        return self._then(
            lambda elements: itertools.takewhile(lambda element: bool(call(predicate, element)), elements), UNKNOWN
        )

    def enumerate(self, start: Any = 0, name: Any = None) -> Dataset:
        """Return (number, element) pairs."""
        first = int(start)
        return self._then(
            lambda elements: steps.together((map(_to_number, itertools.count(first)), elements)),
            outline=lambda: (Node(lambda: None), self._outline()),
        )

    def ignore_errors(self, log_warning: bool = False, name: Any = None) -> Dataset:
        """Leave out elements whose record is damaged or does not parse."""
        level = logging.WARNING if log_warning else logging.DEBUG

        def report(error: Exception) -> None:
            logging.getLogger("tfrkit.compat").log(level, "element left out: %s", error)

        return self._reordered(lambda items: steps.skip_errors(items, (OpError, ValueError), report), UNKNOWN)

    def apply(self, transformation_func: Callable[[Dataset], Any], name: Any = None) -> Any:
        """Apply a function to the dataset itself."""
        return transformation_func(self)

    # --- steps on the order and number of elements

    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = None, name: Any = None
    ) -> Dataset:
        """Shuffle, drawing each element from a buffer of `buffer_size`. Seeded orders are not TensorFlow's."""
        size = require_positive("buffer_size", buffer_size)
        stream, turns = next_stream(seed), itertools.count()
        return self._reordered(
            lambda items: steps.shuffle(
                items, size, random_of(stream, 0 if reshuffle_each_iteration is False else next(turns))
            )
        )

    def repeat(self, count: Any = None, name: Any = None) -> Dataset:
        """Repeat the elements `count` times, or endlessly."""
        times = -1 if count is None else int(count)
        size = self._size_of(lambda size: size * times) if times > 0 else INFINITE if times and self._size else 0
        return Dataset(
            lambda: steps.repeat(self._open_items, times), size, self._outline, has_records=self._has_records
        )

    def take(self, count: Any, name: Any = None) -> Dataset:
        """Keep the first `count` elements; all for -1."""
        wanted = int(count)
        if wanted < 0:
            return self
        size = wanted if self._size == INFINITE else self._size_of(lambda size: min(size, wanted))
        return self._reordered(lambda items: steps.take(items, wanted), size)

    def skip(self, count: Any, name: Any = None) -> Dataset:
        """Skip the first `count` elements; all for -1."""
        first = int(count)
        if first < 0:
            return Dataset(lambda: iter(()), 0)
        return self._reordered(
            lambda items: steps.every(items, first), self._size_of(lambda size: max(0, size - first))
        )

    def shard(self, num_shards: Any, index: Any, name: Any = None) -> Dataset:
        """Keep every `num_shards`-th element, starting at `index`."""
        count, first = require_positive("num_shards", num_shards), int(index)
        if not 0 <= first < count:
            raise InvalidArgumentError(None, None, f"index expected within 0 to {count - 1}, got {first}")
        size = self._size_of(lambda size: len(range(first, size, count)))
        return self._reordered(lambda items: steps.every(items, first, count), size)

    def concatenate(self, dataset: Dataset, name: Any = None) -> Dataset:
        """Append the elements of another dataset."""
        sizes = (self._size, dataset._size)
        size = INFINITE if INFINITE in sizes else UNKNOWN if UNKNOWN in sizes else sum(sizes)
        has_records = self._has_records and dataset._has_records
        parts = [part._open_items if has_records else part._start for part in (self, dataset)]
        return Dataset(
            lambda: itertools.chain(*(start() for start in parts)), size, self._outline, has_records=has_records
        )

    def cache(self, filename: Any = "", name: Any = None) -> Dataset:
        """Keep elements in memory once an iteration has reached the end; later iterations reuse them."""
        return Dataset(steps.keep(self._open_items), self._size, self._outline, has_records=self._has_records)

    def prefetch(self, buffer_size: Any = None, name: Any = None) -> Dataset:
        """Return the same elements: nothing is prefetched."""
        return self

    def with_options(self, options: Any, name: Any = None) -> Dataset:
        """Return the same elements: options are ignored."""
        return self

    # --- several elements as one, and one as several

    def batch(
        self,
        batch_size: Any,
        drop_remainder: Any = False,
        num_parallel_calls: Any = None,
        deterministic: Any = None,
        name: Any = None,
    ) -> Dataset:
        """Stack elements; the last batch may be smaller."""
        return self._grouped(batch_size, drop_remainder, batch_items)

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: Any = False,
        name: Any = None,
    ) -> Dataset:
        """Pad elements to one shape, then stack them."""
        return self._grouped(
            batch_size,
            drop_remainder,
            lambda items: pad_elements([to_value(item) for item in items], padded_shapes, padding_values),
        )

    def _grouped(self, batch_size: Any, drop_remainder: Any, join: Callable[[list[Any]], Any]) -> Dataset:
        count, drops = require_positive("batch_size", batch_size), bool(drop_remainder)
        size = self._size_of(lambda size: size // count if drops else -(-size // count))
        return Dataset(
            lambda: map(join, steps.group(self._open_items(), count, drop_remainder=drops)), size, self._outline
        )

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: Any = False, name: Any = None
    ) -> Dataset:
        """Return windows of `size` elements: each has a dataset for every part of an element."""
        count, step = require_positive("size", size), require_positive("stride", stride)
        jump, drops = require_positive("shift", count if shift is None else shift), bool(drop_remainder)
        reach = (count - 1) * step
        num_windows = self._size_of(lambda size: -(-max(0, size - reach) // jump) if drops else -(-size // jump))
        return self._then(
            lambda elements: map(_split_window, steps.window(elements, count, jump, step, drop_remainder=drops)),
            num_windows,
        )

    def unbatch(self, name: Any = None) -> Dataset:
        """Split each element into its rows."""

        def rows(element: Any) -> Iterator[Any]:
            return (row(element, number) for number in range(count_rows(element, "unbatch")))

        return self._then(lambda elements: steps.flatten(elements, rows), UNKNOWN)

    def flat_map(self, map_func: Callable[..., Any], name: Any = None) -> Dataset:
        """Return the elements of the datasets that a function returns, one dataset after the other."""
        return self.interleave(map_func, 1)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = None,
        block_length: Any = None,
        num_parallel_calls: Any = None,
        deterministic: Any = None,
        name: Any = None,
    ) -> Dataset:
        """Return the elements of the datasets that a function returns, taking turns between `cycle_length` of them."""
        cycle = _CYCLE_LENGTH if cycle_length in (None, AUTOTUNE) else require_positive("cycle_length", cycle_length)
        block = require_positive("block_length", 1 if block_length is None else block_length)
        # Only such a function may be called before its elements are due.
        has_records = opens_files(map_func, _find_reader())

        def open_element(element: Any) -> Iterator[Any]:
            made = call(map_func, element)
            if not isinstance(made, Dataset):
                raise TypeError(f"map_func expected to return a dataset, got {type(made).__name__}")
            return made._open_items() if has_records and made._has_records else made._start()

        return Dataset(
            lambda: steps.interleave(self._start(), open_element, cycle, block),
            UNKNOWN,
            lambda: call(map_func, self._outline())._outline(),
            has_records=has_records,
        )

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any], name: Any = None) -> Any:
        """Fold the elements into a state with a function of (state, element)."""
        state = to_element(initial_state)
        for element in self._start():
            state = to_element(reduce_func(state, element))
        return state

    # --- reading

    def cardinality(self, name: Any = None) -> Any:
        """Return the number of elements: -1 if endless, -2 if unknown without reading."""
        return wrap(np.int64(self._size))

    def get_single_element(self, name: Any = None) -> Any:
        """Return the only element."""
        found = list(itertools.islice(self._start(), 2))
        if len(found) != 1:
            raise InvalidArgumentError(None, None, f"dataset expected one element, got {'more' if found else 'none'}")
        return found[0]

    def as_numpy_iterator(self, name: Any = None) -> Iterator[Any]:
        """Iterate over the elements as plain NumPy values."""
        return map(to_numpy, self._start())

    def make_one_shot_iterator(self) -> GraphIterator:
        """Make an iterator for a Session."""
        return GraphIterator(self._start, self._outline, is_started=True)

    def make_initializable_iterator(self, shared_name: Any = None) -> GraphIterator:
        """Make an iterator for a Session, started by running its `initializer`."""
        return GraphIterator(self._start, self._outline, is_started=False)


def make_one_shot_iterator(dataset: Dataset) -> GraphIterator:
    """`dataset.make_one_shot_iterator()`."""
    return dataset.make_one_shot_iterator()


def make_initializable_iterator(dataset: Dataset, shared_name: Any = None) -> GraphIterator:
    """`dataset.make_initializable_iterator()`."""
    return dataset.make_initializable_iterator()


def _find_reader() -> type[Dataset]:
    from tfrkit.compat.record_dataset import TFRecordDataset  # a cycle: it is a dataset

    return TFRecordDataset


def _to_number(number: int) -> Any:
    return wrap(np.int64(number))


def _split_window(elements: list[Any]) -> Any:
    """Make a dataset for each part of several elements."""
    return map_parts(lambda *parts: Dataset(lambda: iter(parts), len(parts)), *elements)
