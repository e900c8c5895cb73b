"""TensorFlow 1 under real TensorFlow and under tfrkit.compat: queues, shapes of graphs, arguments by every name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as real
from both import plain

from tfrkit.compat import tensorflow as ours
from tfrkit.compat.names import NAMES
from tfrkit.compat.namespace import Namespace

GraphScript = Callable[[Any, list[str]], Any]


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    for name, count in (("a", 5), ("b", 3)):
        with ours.io.TFRecordWriter(tmp_path / name) as writer:
            for number in range(count):
                writer.write(f"{name}{number}".encode())
    return [str(tmp_path / name) for name in "ab"]


def run_to_end(tf: Any, fetches: Any) -> list[Any]:
    seen: list[Any] = []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=session, coord=coordinator)
        try:
            while len(seen) < 20:
                seen.append(session.run(fetches))
        except tf.errors.OutOfRangeError:
            seen.append("end")
        coordinator.request_stop()
        coordinator.join(threads)
    return seen


def read_some(tf: Any, paths: list[str], count: int) -> list[Any]:
    queue = tf.train.string_input_producer(paths, num_epochs=1, shuffle=False)
    return list(tf.TFRecordReader().read_up_to(queue, count))


def read_joined(tf: Any, paths: list[str]) -> list[list[Any]]:
    queue = tf.train.string_input_producer(paths, num_epochs=1, shuffle=False)
    return [list(tf.TFRecordReader().read(queue)) for _ in range(2)]


def gather(batches: list[Any]) -> list[Any]:
    return [sorted(record for batch in batches[:-1] for record in batch[1]), batches[-1]]


def pad(tf: Any, paths: list[str]) -> Any:
    (number,) = tf.train.slice_input_producer([np.array([1, 2, 3], np.int32)], num_epochs=1, shuffle=False)
    row = tf.one_hot(0, number)
    row.set_shape([None])
    batches = tf.train.batch([row, number], 2, dynamic_pad=True, allow_smaller_final_batch=True)
    return run_to_end(tf, batches)


def initialize(tf: Any, paths: list[str]) -> Any:
    with tf.Session() as session:
        found = tf.train.match_filenames_once(paths[0][:-1] + "*")
        done = [tf.global_variables_initializer().run(), tf.local_variables_initializer().run(session=session)]
        return [*done, session.run(found), session.run(tf.matching_files([paths[0], paths[1] + "x*"]))]


def show_shapes(tf: Any, paths: list[str]) -> Any:
    known, unknown = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32)
    changed = tf.reshape(unknown, [2, -1, 3])
    constant = tf.constant([[1, 2, 3]])
    shapes = [known.shape, known.get_shape(), changed.shape, constant.shape]
    sizes = [(shape.as_list(), shape.ndims, shape.rank, shape.is_fully_defined(), str(shape)) for shape in shapes]
    return [sizes, unknown.shape.ndims, constant.shape[1] == 3, constant.shape.num_elements(), len(constant.shape)]


def show_errors(tf: Any, paths: list[str]) -> Any:
    kinds = ["OutOfRange", "DataLoss", "NotFound", "InvalidArgument", "Cancelled", "Aborted", "ResourceExhausted"]
    errors = [getattr(tf.errors, f"{kind}Error")(None, None, "m") for kind in kinds]
    codes = [tf.errors.DATA_LOSS, tf.errors.OUT_OF_RANGE, tf.errors.INVALID_ARGUMENT, tf.errors.UNKNOWN]
    return [[(e.message, e.op, e.node_def, e.error_code) for e in errors], codes]


def feed_files(tf: Any, paths: list[str]) -> Any:
    given = tf.placeholder(tf.string, [None])
    data = tf.data.TFRecordDataset(given).map(lambda record: (record, {"twice": tf.stack([record, record])}))
    iterator = data.batch(4).repeat(2).make_initializable_iterator()
    record, rest = iterator.get_next()
    seen: list[Any] = []
    with tf.Session() as session:
        for files in (paths[:1], paths):
            session.run(iterator.initializer, feed_dict={given: files})
            try:
                while True:
                    seen.append(session.run([record, rest["twice"]]))
            except tf.errors.OutOfRangeError:
                seen.append("end")
    return seen


SCRIPTS: dict[str, GraphScript] = {
    "files fed later": feed_files,
    "several records": lambda tf, paths: run_to_end(tf, read_some(tf, paths, 3)),
    "more records than a file has": lambda tf, paths: run_to_end(tf, read_some(tf, paths, 10)),
    "rows": lambda tf, paths: run_to_end(
        tf, tf.train.batch(read_some(tf, paths, 3), 4, enqueue_many=True, allow_smaller_final_batch=True)
    ),
    "list of one": lambda tf, paths: run_to_end(tf, tf.train.batch(read_some(tf, paths, 3)[1:], 4, enqueue_many=True)),
    "joined": lambda tf, paths: gather(run_to_end(tf, tf.train.batch_join(read_joined(tf, paths), 2))),
    "joined in any order": lambda tf, paths: gather(
        run_to_end(tf, tf.train.shuffle_batch_join(read_joined(tf, paths), 2, capacity=5, min_after_dequeue=2))
    ),
    "filled up": pad,
    "initializers": initialize,
    "shapes": show_shapes,
    "errors": show_errors,
    "compressions": lambda tf, paths: tf.python_io.TFRecordOptions.compression_type_map,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_graph_does_what_tensorflows_does(name: str, paths: list[str]) -> None:
    found = []
    for tf in (real.compat.v1, ours):
        with tf.Graph().as_default():
            found.append(plain(SCRIPTS[name](tf, paths)))
    assert found[1] == found[0]


# --- arguments -------------------------------------------------------------------------------------------------------

# Made by TensorFlow itself, never by a script.
NOT_CALLED = {"tf.DType", "tf.dtypes.DType", "tf.RaggedTensor", "tf.data.Dataset"}


def walk_names(space: dict[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for name, member in space.items():
        if isinstance(member, Namespace) and name != "compat":
            yield from walk_names({k: v for k, v in vars(member).items() if k[0] != "_"}, f"{path}.{name}")
        elif callable(member):
            yield f"{path}.{name}", member
            if inspect.isclass(member):
                methods = {k: getattr(member, k) for k in dir(member) if k[0] != "_"}
                yield from walk_names({k: v for k, v in methods.items() if inspect.isroutine(v)}, f"{path}.{name}")


def find_name(root: Any, path: str) -> Any:
    for name in path.split(".")[1:]:
        root = getattr(root, name, None)
    return root


def parameters_of(function: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


CALLED = {
    path: member
    for path, member in walk_names(NAMES, "tf")
    if path not in NOT_CALLED and not path.startswith(("tf.app.", "tf.flags."))
}


@pytest.mark.parametrize("path", CALLED)
def test_arguments_are_taken_by_every_name_tensorflow_gives_them(path: str) -> None:
    mine = parameters_of(CALLED[path])
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in mine.values()):
        return
    taken = {*mine, *getattr(CALLED[path], "old_names", {})}
    for root in (real, real.compat.v1):
        theirs = parameters_of(find_name(root, path))
        named = [n for n, p in theirs.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        assert [name for name in named if name not in taken] == []
