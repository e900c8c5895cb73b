"""`tf.data.experimental`: steps as functions for `dataset.apply`, reading by pattern, writing a dataset."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tfrkit.compat.dataset import AUTOTUNE, INFINITE, UNKNOWN, Dataset
from tfrkit.compat.graph import Node, do_nothing
from tfrkit.compat.op_errors import FailedPreconditionError
from tfrkit.compat.parse_example import parse_example
from tfrkit.compat.record_dataset import TFRecordDataset
from tfrkit.compat.record_io import TFRecordWriter as FileWriter
from tfrkit.compat.steps import Pull
from tfrkit.compat.tensor import Tensor, to_tensor

Step = Callable[[Dataset], Dataset]
_END = object()


def ignore_errors(log_warning: bool = False) -> Step:
    """Return a step for `Dataset.apply` that skips elements with errors."""
    return lambda dataset: dataset.ignore_errors(log_warning)


def unbatch() -> Step:
    """Return a step for `Dataset.apply` that splits batches into elements."""
    return lambda dataset: dataset.unbatch()


def enumerate_dataset(start: Any = 0) -> Step:
    """Return a step for `Dataset.apply` that numbers the elements."""
    return lambda dataset: dataset.enumerate(start)


def take_while(predicate: Callable[..., Any]) -> Step:
    """Return a step for `Dataset.apply` that ends the dataset where `predicate` is false."""
    return lambda dataset: dataset.take_while(predicate)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Step:
    """Return a step for `Dataset.apply` that shuffles, then repeats."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Step:
    """Return a step for `Dataset.apply` that applies a function to each element, then makes batches."""
    return lambda dataset: dataset.map(map_func).batch(batch_size, drop_remainder)


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: Any = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Step:
    """Return a step for `Dataset.apply` that interleaves datasets."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)


def assert_cardinality(expected_cardinality: Any) -> Step:
    """Declare the number of elements; reading raises an error if the actual number differs."""
    expected = int(expected_cardinality)

    def count(elements: Iterator[Any]) -> Iterator[Any]:
        num_seen = 0

        def step() -> Any:
            nonlocal num_seen
            element = next(elements, _END)
            num_seen += element is not _END
            if num_seen > expected or (element is _END and num_seen < expected):
                raise FailedPreconditionError(None, None, f"dataset expected {expected} elements, got {num_seen}")
            if element is _END:
                raise StopIteration
            return element

        return Pull(step)

    return lambda dataset: dataset._then(count, expected)


def cardinality(dataset: Dataset) -> Any:
    """`dataset.cardinality()`."""
    return dataset.cardinality()


def get_single_element(dataset: Dataset) -> Any:
    """`dataset.get_single_element()`."""
    return dataset.get_single_element()


def count_up(start: Any = 0, step: Any = 1, dtype: Any = "int64") -> Dataset:
    """Count up without end."""
    first, stride = int(start), int(step)
    return Dataset(lambda: (to_tensor(np.int64(n), dtype) for n in itertools.count(first, stride)), INFINITE)


def parse_example_dataset(features: Any, num_parallel_calls: Any = 1, deterministic: Any = None) -> Step:
    """Return a step for `Dataset.apply` that parses batches of serialized Examples."""
    return lambda dataset: dataset.map(lambda records: parse_example(records, features))


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: Any,
    features: Any,
    reader: Any = None,
    label_key: Any = None,
    reader_args: Any = None,
    num_epochs: Any = None,
    shuffle: bool = True,
    shuffle_buffer_size: Any = 10000,
    shuffle_seed: Any = None,
    prefetch_buffer_size: Any = None,
    reader_num_threads: Any = None,
    parser_num_threads: Any = None,
    sloppy_ordering: Any = False,
    drop_final_batch: Any = False,
) -> Dataset:
    """Read parsed batches from the files that match a pattern, endlessly unless `num_epochs` is given."""
    files = Dataset.list_files(file_pattern, shuffle, shuffle_seed)
    if label_key is not None and label_key not in features:
        raise ValueError(f"label_key expected one of the features {sorted(features)}, got {label_key!r}")
    num_open = 1 if reader_num_threads in (None, AUTOTUNE) else reader_num_threads
    open_file = TFRecordDataset if reader is None else reader
    records = files.interleave(lambda path: open_file(path, *(reader_args or ())), num_open)
    if shuffle:
        records = records.shuffle(shuffle_buffer_size, shuffle_seed)
    drops = drop_final_batch or num_epochs is None
    batches = records.repeat(num_epochs).batch(batch_size, drops)
    parsed = parse_example_dataset(features)(batches)
    if label_key is None:
        return parsed
    return parsed.map(lambda part: ({name: part[name] for name in part if name != label_key}, part[label_key]))


class TFRecordWriter:
    """Writes a dataset of strings to one file, which appears only when complete."""

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        self._path = filename
        self._compression = compression_type

    def write(self, dataset: Dataset) -> Node:
        """Write all elements immediately; running the result in a Session does nothing more."""
        if not isinstance(dataset, Dataset):
            raise TypeError(f"write expected a dataset, got {type(dataset).__name__}")
        with FileWriter(self._path, self._compression) as writer:
            for element in dataset:
                if not isinstance(element, Tensor) or element.dtype.kind != "O" or element.ndim:
                    raise TypeError(f"write expected a dataset of single strings, got {element!r:.80}")
                writer.write(element.numpy())
        return do_nothing()


EXPERIMENTAL: dict[str, Any] = {
    "AUTOTUNE": AUTOTUNE,
    "Counter": count_up,
    "INFINITE_CARDINALITY": INFINITE,
    "TFRecordWriter": TFRecordWriter,
    "UNKNOWN_CARDINALITY": UNKNOWN,
    "assert_cardinality": assert_cardinality,
    "cardinality": cardinality,
    "enumerate_dataset": enumerate_dataset,
    "get_single_element": get_single_element,
    "ignore_errors": ignore_errors,
    "make_batched_features_dataset": make_batched_features_dataset,
    "map_and_batch": map_and_batch,
    "parallel_interleave": parallel_interleave,
    "parse_example_dataset": parse_example_dataset,
    "shuffle_and_repeat": shuffle_and_repeat,
    "take_while": take_while,
    "unbatch": unbatch,
}
