"""Build, read, check and train from TFRecord files, without TensorFlow.

>>> import tfrkit as tfr
>>> with tfr.Writer("digits.tfrecord") as w:
...     w.write({"data": 7, "label": 1})
>>> ds = tfr.open("digits.tfrecord")
>>> ds[0]
{'data': 7, 'label': 1}
"""

from typing import TYPE_CHECKING

from tfrkit import errors, sources
from tfrkit.build.run import build
from tfrkit.codec.columns import BytesColumn, Ragged
from tfrkit.dataset import Dataset
from tfrkit.errors import TfrkitError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.opening import mix
from tfrkit.opening import open_dataset as open
from tfrkit.writer import Writer

if TYPE_CHECKING:
    from tfrkit import tools
    from tfrkit.ops.query import sql
    from tfrkit.ops.verify import verify

__all__ = [
    "BytesColumn",
    "Dataset",
    "Ragged",
    "Schema",
    "Spec",
    "TfrkitError",
    "Writer",
    "build",
    "errors",
    "mix",
    "open",
    "sources",
    "sql",
    "tools",
    "verify",
]


def __getattr__(name: str) -> object:
    """Import what few programs need when it is asked for: `import tfrkit` has to stay quick."""
    if name == "sql":
        from tfrkit.ops.query import sql

        return sql
    if name == "tools":
        import tfrkit.tools

        return tfrkit.tools
    if name == "verify":
        from tfrkit.ops.verify import verify

        return verify
    raise AttributeError(f"module 'tfrkit' has no attribute {name!r}")
