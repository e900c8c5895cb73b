"""TensorFlow's names for the TFRecord parts of a script, without TensorFlow.

    from tfrkit.compat import tensorflow as tf      # in place of: import tensorflow as tf

Messages (`tf.train.Example` and its parts), writers, record iterators, parse functions, `tf.data` iteration, input
queues of TensorFlow 1, `tf.gfile`. Values are NumPy arrays with a `numpy()` method. Names that have no effect on
records, such as `Session` options, are accepted; any other name raises an AttributeError that says what to do.

`tfr run script.py` runs an unchanged script: `import tensorflow` imports this module. Modules that converters use are
here, too: `tfrkit.compat.object_detection.utils` (`dataset_util`, `label_map_util`) and `tfrkit.compat.slim.datasets`
(`dataset_utils`).

What differs from TensorFlow, on purpose:

- A file appears under its name when its writer is closed or garbage-collected, or the script ends without an error.
- Records are written with sorted keys, so equal messages give equal bytes.
- Compression is detected from the file's bytes; a wrong `compression_type` is not an error.
- Shuffles with a seed are reproducible, but their order is not TensorFlow's.
- Both checksums of every record are verified, also of skipped records.
- A missing file is reported once, then reading continues with the next file; TensorFlow reports it endlessly.
- `interleave` without a `cycle_length` uses 16; TensorFlow uses the number of processors.
- `cache` keeps elements in memory, even if a file name is given.
- `make_one_shot_iterator().get_next()` returns a node for `Session.run`, as in TensorFlow 1, unless
  `enable_eager_execution()` was called; iterating over a dataset gives values, as in TensorFlow 2.
- A function of `map` is called for each element; TensorFlow calls it once, with a symbol. A function that only parses a
  record and returns features of it is called once for up to 256 records, which are then parsed together. It is one if
  it uses plain data, functions of this kind and `tf`'s names for parsing: if it prints, counts, draws random numbers,
  handles errors or looks at a value, it is called for each record.
- Fields of a message that tf.train does not define are dropped when it is parsed.
"""

from __future__ import annotations

from typing import Any as _Any

from tfrkit.compat.names import NAMES as _NAMES
from tfrkit.compat.namespace import explain_missing as _explain_missing


def __getattr__(name: str) -> _Any:
    if name in _NAMES:
        # Stored in the module, because scripts access tf.train twice per feature.
        return globals().setdefault(name, _NAMES[name])
    if name.startswith("__"):
        raise AttributeError(name)
    raise _explain_missing(f"tf.{name}", _NAMES)


def __dir__() -> list[str]:
    return sorted(_NAMES)
