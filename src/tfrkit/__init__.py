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
from tfrkit._version import VERSION
from tfrkit.build.run import build
from tfrkit.codec.columns import BytesColumn, Ragged
from tfrkit.errors import TfrkitError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.writer import Writer

if TYPE_CHECKING:
    from tfrkit import tools
    from tfrkit.dataset.dataset import Dataset
    from tfrkit.dataset.opening import mix
    from tfrkit.dataset.opening import open_dataset as open
    from tfrkit.ops.query.query import sql
    from tfrkit.ops.verify.verify import verify

__version__ = VERSION

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


# Names that are imported lazily, each with its module and its name in that module.
_LATER = {
    "Dataset": ("tfrkit.dataset.dataset", "Dataset"),
    "mix": ("tfrkit.dataset.opening", "mix"),
    "open": ("tfrkit.dataset.opening", "open_dataset"),
    "sql": ("tfrkit.ops.query.query", "sql"),
    "tools": ("tfrkit.tools", None),
    "verify": ("tfrkit.ops.verify.verify", "verify"),
}


def __getattr__(name: str) -> object:
    """Import the other public names on first use, to keep `import tfrkit` fast."""
    if name not in _LATER:
        from tfrkit._familiar import explain_name

        raise explain_name(name)
    import importlib

    place, attribute = _LATER[name]
    module = importlib.import_module(place)
    value = globals()[name] = module if attribute is None else getattr(module, attribute)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
