"""Namespaces such as `tf.train`, and errors for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

_TRAIN = "train with PyTorch or JAX, tfrkit reads for them: tfr.open(path).batch(32).to_torch(), .to_jax()"
_ARRAYS = "compute with NumPy: values here are NumPy arrays"
_FILES = "use Python's os, glob and shutil"
# The longest prefix that matches gives the second line of the message.
_ADVICE = {
    "tf.app": "read the command line with argparse",
    "tf.flags": "read the command line with argparse",
    "tf.image": "change pictures with Pillow or NumPy, or while building: tfr build --resize --gray",
    "tf.io": "read and write records with tfr.open(path) and tfr.Writer(path), or install TensorFlow for this",
    "tf.python_io": "read and write records with tfr.open(path) and tfr.Writer(path)",
    "tf.data": 'read with tfrkit: tfr.open("train-*.tfrecord").shuffle(seed=0).batch(32), or install TensorFlow',
    "tf.gfile": _FILES,
    "tf.io.gfile": _FILES,
    "tf.logging": "use Python's logging",
    "tf.math": _ARRAYS,
    "tf.linalg": _ARRAYS,
    "tf.strings": _ARRAYS,
    "tf.random": "draw with NumPy: numpy.random.default_rng(seed)",
    **dict.fromkeys(
        (
            *("tf.train", "tf.keras", "tf.layers", "tf.nn", "tf.losses", "tf.metrics", "tf.estimator", "tf.contrib"),
            *("tf.distribute", "tf.summary", "tf.saved_model", "tf.Variable", "tf.get_variable"),
            *("tf.GradientTape", "tf.gradients", "tf.function", "tf.trainable_variables", "tf.initializers"),
            *("tf.GraphDef", "tf.import_graph_def", "tf.lite", "tf.tpu", "tf.hub", "tf.global_variables"),
        ),
        _TRAIN,
    ),
}
_OTHERWISE = "install TensorFlow for this; what the script does with TFRecord files needs none"


class MissingNameError(AttributeError):
    """A name that compat does not offer; `path` is its full name, `advice` what to do instead."""

    def __init__(self, path: str, advice: str) -> None:
        what = f"{path} is not offered, tfrkit.compat covers the TFRecord parts of TensorFlow only"
        super().__init__(f"{what}\n  {advice}", name=path.rpartition(".")[2])
        self.path = path
        self.what = what
        self.advice = advice


def explain_missing(path: str, siblings: Iterable[str] = ()) -> MissingNameError:
    """Make the error for a name that compat does not offer; `siblings` are the names that exist."""
    plain = path.replace("tf.compat.v1.", "tf.").replace("tf.compat.v2.", "tf.")
    starts = [start for start in _ADVICE if f"{plain}.".startswith(f"{start}.")]
    advice = _ADVICE[max(starts, key=len)] if starts else _OTHERWISE
    same = _find_same(path, siblings)
    if same:
        return MissingNameError(path, f"use {same}")
    closest = _find_closest(path, siblings)
    return MissingNameError(path, f"closest is {closest}; otherwise {advice}" if closest else advice)


def _find_same(path: str, siblings: Iterable[str]) -> str | None:
    """Find the same name in different case, such as `tf.gfile.exists`, or elsewhere, such as `tf.TFRecordDataset`."""
    parent, _, name = path.rpartition(".")
    here = [f"{parent}.{sibling}" for sibling in siblings if sibling.lower() == name.lower()]
    elsewhere = [found for found in _walk_names() if found.rpartition(".")[2] == name]
    return min(here or elsewhere, key=len, default=None)


def _find_closest(path: str, siblings: Iterable[str]) -> str | None:
    """Find a sibling with a similar spelling."""
    parent, _, name = path.rpartition(".")
    close = difflib.get_close_matches(name, [sibling for sibling in siblings if sibling[0] != "_"], 1, cutoff=0.8)
    return f"{parent}.{close[0]}" if close else None


def _walk_names() -> Iterator[str]:
    """Yield every name except those of `tf.compat.v1` and `v2`, which are the same."""
    from tfrkit.compat.names import NAMES  # a cycle: names.py is made of namespaces

    def walk(path: str, names: dict[str, Any]) -> Iterator[str]:
        for name, value in names.items():
            if not name.startswith("_") and name not in ("v1", "v2"):
                yield f"{path}.{name}"
                if isinstance(value, Namespace):
                    yield from walk(f"{path}.{name}", vars(value))

    return walk("tf", NAMES)


class Namespace:
    """A dotted name with names below it; access to a missing one raises an error that explains it."""

    def __init__(self, path: str, **names: Any) -> None:
        self.__dict__.update(names)
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise explain_missing(f"{self._path}.{name}", vars(self))

    def __dir__(self) -> list[str]:
        return sorted(name for name in vars(self) if name != "_path")

    def __repr__(self) -> str:
        return f"<{self._path} of tfrkit.compat>"
