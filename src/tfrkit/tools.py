"""The verbs of the command line as functions: `tfrkit.tools.repair("bad.tfrecord", "good.tfrecord")`."""

from tfrkit.ops.count import count_records as count
from tfrkit.ops.repair import repair
from tfrkit.ops.sheet import sheet
from tfrkit.ops.verify import verify

__all__ = ["count", "repair", "sheet", "verify"]
