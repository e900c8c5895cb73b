"""The verbs of the command line as functions: `tfrkit.tools.repair("bad.tfrecord", "good.tfrecord")`."""

from tfrkit.ops.append import append
from tfrkit.ops.convert import convert
from tfrkit.ops.count import count_records as count
from tfrkit.ops.dedupe import dedupe
from tfrkit.ops.diff import diff
from tfrkit.ops.edit import edit
from tfrkit.ops.export_coco import export_coco
from tfrkit.ops.export_images import export_images
from tfrkit.ops.export_npz import export_npz
from tfrkit.ops.export_parquet import export_parquet
from tfrkit.ops.export_rows import export_csv, export_jsonl
from tfrkit.ops.export_voc import export_voc
from tfrkit.ops.export_webdataset import export_webdataset
from tfrkit.ops.export_yolo import export_yolo
from tfrkit.ops.merge import merge
from tfrkit.ops.query import sql
from tfrkit.ops.repair import repair
from tfrkit.ops.reshard import reshard
from tfrkit.ops.sample_records import sample
from tfrkit.ops.sheet import sheet
from tfrkit.ops.shuffle import shuffle
from tfrkit.ops.split import split
from tfrkit.ops.stats import stats
from tfrkit.ops.verify import verify

__all__ = [
    "append",
    "convert",
    "count",
    "dedupe",
    "diff",
    "edit",
    "export_coco",
    "export_csv",
    "export_images",
    "export_jsonl",
    "export_npz",
    "export_parquet",
    "export_voc",
    "export_webdataset",
    "export_yolo",
    "merge",
    "repair",
    "reshard",
    "sample",
    "sheet",
    "shuffle",
    "split",
    "sql",
    "stats",
    "verify",
]
