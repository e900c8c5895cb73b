"""tf.data: a dataset of batches that tfrkit decodes in parallel and delivers in order.

TensorFlow requests each batch by its number, so no generator serializes the work, and a batch depends only on its
number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tfrkit._optional import import_or_explain
from tfrkit._threads import choose_threads
from tfrkit.batches.loop import BatchLoop
from tfrkit.codec.decode import Batch
from tfrkit.feeds.tensorflow_layout import Leaf, find_leaves, flatten_batch, merge_leaves


def batches_to_tf(loop: BatchLoop, *, epochs: int | None = None) -> Any:
    """Return a tf.data.Dataset of dicts of tensors, one for each batch.

    Numbers have static shapes, and a static number of rows if all batches have the same. Bytes and text are
    tf.string. Features of varying length are tf.RaggedTensor. SequenceExamples are {"context": ..., "feature_lists":
    ...}. To know all that, the first and the last batch are read once.

    Each pass over the dataset is the next epoch. With `epochs`, every pass reads the same `epochs` epochs, and
    tf.train.Checkpoint can save and restore the position.
    """
    tf = _load_tensorflow()
    leaves = _find_layout(loop, _count_batches(loop, loop.epoch))
    make = _BatchMaker(loop, leaves)
    types = [kind for leaf in leaves for kind in _types_of(leaf)]
    threads = choose_threads(loop.batching.threads)
    cardinality = None
    if epochs is None:
        start = tf.data.Dataset.from_tensors(np.int64(0))
        start = start.map(lambda _: tf.numpy_function(_EpochCounter(loop), [], [tf.int64, tf.int64]))
        numbers = start.flat_map(lambda epoch, count: tf.data.Dataset.range(count).map(lambda number: (epoch, number)))
        if not loop.count_varies:
            cardinality = len(loop)
    else:
        if epochs < 1:
            raise ValueError(f"epochs expected at least 1, got {epochs}")
        # The start of each epoch in the sequence of all batches.
        first = loop.epoch
        counts = [_count_batches(loop, epoch) for epoch in range(first, first + epochs)]
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        cardinality = int(starts[-1])

        def place(number: Any) -> tuple[Any, Any]:
            epoch = tf.searchsorted(starts, number[None], side="right", out_type=tf.int64)[0] - 1
            return epoch + first, number - tf.gather(starts, epoch)

        numbers = tf.data.Dataset.range(cardinality).map(place)

    def build(epoch: Any, number: Any) -> Any:
        # Not stateful: the result depends only on the two numbers, so TensorFlow can save checkpoints.
        flat = tf.numpy_function(make, [epoch, number], types, stateful=False)
        return _assemble(leaves, flat)

    batches = numbers.map(build, num_parallel_calls=threads, deterministic=True)
    if cardinality is not None:
        batches = batches.apply(tf.data.experimental.assert_cardinality(cardinality))
    return batches.prefetch(threads)


def rows_to_tf(loop: BatchLoop, *, epochs: int | None = None) -> Any:
    """Return a tf.data.Dataset of rows, read in the batches of `loop`. A dataset of batches is faster."""
    tf = _load_tensorflow()
    rows = _unbatch(batches_to_tf(loop, epochs=epochs))
    if loop.may_skip:
        return rows
    return rows.apply(tf.data.experimental.assert_cardinality(loop.num_rows * (epochs or 1)))


def _unbatch(batches: Any) -> Any:
    """Return the rows of batches. Tensors without values go round `unbatch`, which ends the process for them."""
    tf = _load_tensorflow()
    layout = batches.element_spec
    specs = tf.nest.flatten(layout)
    is_empty = [isinstance(spec, tf.TensorSpec) and 0 in spec.shape.as_list()[1:] for spec in specs]
    if True not in is_empty:
        return batches.unbatch()

    def leave_out(batch: Any) -> Any:
        tensors = tf.nest.flatten(batch)
        numbers = tf.range(tf.shape(tensors[is_empty.index(True)])[0])
        return (numbers, *(one for one, skip in zip(tensors, is_empty, strict=True) if not skip))

    def put_back(_: Any, *tensors: Any) -> Any:
        left = iter(tensors)
        rows = [
            tf.zeros([size or 0 for size in spec.shape.as_list()[1:]], spec.dtype) if skip else next(left)
            for spec, skip in zip(specs, is_empty, strict=True)
        ]
        return tf.nest.pack_sequence_as(layout, rows)

    return batches.map(leave_out).unbatch().map(put_back)


class _EpochCounter:
    """Returns the epoch of a pass and its number of batches. Called at the start of each pass."""

    def __init__(self, loop: BatchLoop) -> None:
        self._loop = loop
        self.__name__ = "next_epoch"

    def __call__(self) -> Any:
        epoch = self._loop.epoch
        self._loop.epoch += 1
        return np.int64(epoch), np.int64(_count_batches(self._loop, epoch))


class _BatchMaker:
    """Makes one batch by epoch and number. Called from TensorFlow's threads."""

    def __init__(self, loop: BatchLoop, leaves: Sequence[Leaf]) -> None:
        self._loop = loop
        self._leaves = leaves
        self.__name__ = "make_batch"

    def __call__(self, epoch: Any, number: Any) -> list[Any]:
        batch = self._loop.make_batch(int(number), epoch=int(epoch))
        if self._loop.may_skip and number == _count_batches(self._loop, int(epoch)) - 1:
            self._loop.policy.warn_of_skipped()
        return flatten_batch(batch, self._leaves)


def _count_batches(loop: BatchLoop, epoch: int) -> int:
    return loop.plan(epoch=epoch).num_batches if loop.count_varies else len(loop)


def _find_layout(loop: BatchLoop, num_batches: int) -> list[Leaf]:
    """Find the layout of all batches from the first and the last."""
    first: Batch = loop.make_batch(0, epoch=loop.epoch)
    last = loop.make_batch(num_batches - 1, epoch=loop.epoch) if num_batches > 1 else first
    num_rows = None if loop.may_skip else loop.plan(epoch=loop.epoch).num_equal_rows
    pad = loop.batching.pad
    return merge_leaves(find_leaves(first, num_rows=num_rows, pad=pad), find_leaves(last, num_rows=num_rows, pad=pad))


def _types_of(leaf: Leaf) -> list[Any]:
    tf = _load_tensorflow()
    values = tf.string if leaf.dtype is None else tf.as_dtype(leaf.dtype)
    return [values, *[tf.int64] * leaf.depth]


def _assemble(leaves: Sequence[Leaf], flat: Sequence[Any]) -> Any:
    """Assemble the tensors of a batch in the graph, with their static shapes."""
    tf = _load_tensorflow()
    batch: dict[str, Any] = {}
    place = 0
    for leaf in leaves:
        values, splits = flat[place], flat[place + 1 : place + 1 + leaf.depth]
        place += 1 + leaf.depth
        values.set_shape((None if leaf.depth else leaf.num_rows, *leaf.shape))
        for level, split in enumerate(splits):
            split.set_shape((None if level or leaf.num_rows is None else leaf.num_rows + 1,))
        target = batch
        for part in leaf.path[:-1]:
            target = target.setdefault(part, {})
        whole = values if not splits else tf.RaggedTensor.from_nested_row_splits(values, splits, validate=False)
        target[leaf.path[-1]] = whole
    return batch


@cache
def _load_tensorflow() -> Any:
    return import_or_explain("tensorflow", "tf")
