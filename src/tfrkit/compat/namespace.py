"""Names under a dot, as `tf.train`, and what is said about names that are not there."""

from __future__ import annotations

from typing import Any

# The longest start that fits gives the second line of the message.
_ADVICE = {
    "tf.app": "read the command line with argparse",
    "tf.flags": "read the command line with argparse",
    "tf.image": "change pictures with Pillow or NumPy, or while building: tfr build --resize --gray",
    "tf.io.encode": "encode pictures with Pillow, or keep the files' own bytes: tf.io.read_file(path)",
    "tf.io": "read and write records with tfr.open(path) and tfr.Writer(path), or install TensorFlow for this",
    "tf.python_io": "read and write records with tfr.open(path) and tfr.Writer(path)",
    "tf.data": 'read with tfrkit: tfr.open("train-*.tfrecord").shuffle(seed=0).batch(32), or install TensorFlow',
    "tf.train": "train with another framework: tfrkit hands it the records, or install TensorFlow for this",
    "tf.gfile": "use Python's os, glob and shutil",
    "tf.io.gfile": "use Python's os, glob and shutil",
}
_OTHERWISE = "install TensorFlow for this; what the script does with TFRecord files needs none"


def explain_missing(path: str) -> AttributeError:
    """The error for a name that compat does not offer."""
    starts = [start for start in _ADVICE if path.startswith(start)]
    advice = _ADVICE[max(starts, key=len)] if starts else _OTHERWISE
    name = path.rpartition(".")[2]
    return AttributeError(
        f"{path} is not offered, tfrkit.compat covers the TFRecord parts of TensorFlow only\n  {advice}", name=name
    )


class Namespace:
    """A dotted name with names under it; a missing one is explained."""

    def __init__(self, path: str, **names: Any) -> None:
        self.__dict__.update(names)
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise explain_missing(f"{self._path}.{name}")

    def __repr__(self) -> str:
        return f"<{self._path} of tfrkit.compat>"
