"""TensorFlow's names for the TFRecord parts of a script, with no TensorFlow installed.

    from tfrkit.compat import tensorflow as tf      # in place of: import tensorflow as tf

Messages (`tf.train.Example` and its parts), writers, record iterators, parse functions, `tf.data` iteration, input
queues of TensorFlow 1, `tf.gfile`. Values are NumPy arrays with a `numpy()` method. Names that mean nothing for
records, such as `Session` options, are accepted; any other name raises an AttributeError that says what to do.

`tfr run script.py` runs a script as it is, `import tensorflow` meaning this module. Helpers that converters import are
here, too: `tfrkit.compat.object_detection.utils` (`dataset_util`, `label_map_util`) and `tfrkit.compat.slim.datasets`
(`dataset_utils`).

What differs from TensorFlow, on purpose:

- A file appears under its name when its writer is closed, goes, or the script ends well; never half of it.
- Records are written with sorted keys, so equal messages are equal bytes.
- Compression is found from the file's bytes; a `compression_type` that does not fit is no error.
- Shuffles with a seed are reproducible, but their order is not TensorFlow's.
- Both checksums of every record are verified, those of skipped records too.
- A file that is missing is reported once, and the next file comes; TensorFlow reports it for ever.
- `interleave` without a `cycle_length` takes 16; TensorFlow the number of processors.
- `cache` keeps elements in memory, also where a file name is given.
- `make_one_shot_iterator().get_next()` gives a value for `Session.run`, as in TensorFlow 1, unless
  `enable_eager_execution()` was called; iterating over a dataset gives values, as in TensorFlow 2.
- Fields of a message that tf.train does not define are dropped when it is parsed.
"""

from __future__ import annotations

from typing import Any as _Any

from tfrkit.compat.names import NAMES as _NAMES
from tfrkit.compat.namespace import explain_missing as _explain_missing


def __getattr__(name: str) -> _Any:
    if name in _NAMES:
        # A name of the module from now on: scripts ask for tf.train twice a feature.
        return globals().setdefault(name, _NAMES[name])
    if name.startswith("__"):
        raise AttributeError(name)
    raise _explain_missing(f"tf.{name}", _NAMES)


def __dir__() -> list[str]:
    return sorted(_NAMES)
